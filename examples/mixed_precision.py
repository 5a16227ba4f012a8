"""Training in less memory: bfloat16 arithmetic by autocast, activations recomputed instead of kept, and an average of the weights for the end.

    strided run examples/mixed_precision.py            # a few seconds
    python examples/mixed_precision.py                 # the same file on an installed PyTorch: the same losses to bfloat16's precision

--no-checkpoint keeps the activations; under strided the last line shows what that costs.
"""
import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--checkpoint", action=argparse.BooleanOptionalAction, default=True)
options = parser.parse_args()

B, D, DEPTH = 256, 128, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(D), nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))   # [B, D] → [B, 4D] → [B, D]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(DEPTH)])
        self.out = nn.Linear(D, 1)

    def forward(self, x):
        for block in self.blocks:
            # Only x is kept; what the block computes is computed again on the way back, with the same dropout.
            x = checkpoint(block, x, use_reentrant=False) if options.checkpoint and self.training else block(x)
        return self.out(x)


torch.manual_seed(0)
x = torch.randn(B, D)
y = (x[:, :4].sin().sum(1, keepdim=True) + x[:, 4:5] * x[:, 5:6])       # [B, 1]
model = Net()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step in range(options.steps):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        predicted = model(x)
        loss = F.mse_loss(predicted.float(), y)
    optimizer.zero_grad()
    loss.backward()                                                     # parameters and their gradients stay float32
    optimizer.step()
    average.update_parameters(model)
    if step % 5 == 0 or step == options.steps - 1:
        print(f"step {step:3d}   loss {loss.item():.3f}   {predicted.dtype}")

average.eval()
with torch.no_grad():
    print(f"averaged weights   loss {F.mse_loss(average(x), y).item():.3f}")
if "strided" in torch.__version__:
    import strided

    print(f"peak {strided.memory.max_memory_allocated() / 2**20:.1f} MiB")
