"""Peak memory of a training step beside PyTorch's: what a step allocates at once beyond parameters, optimiser state and inputs.

    python bench/memory.py [--only GPT]

Ours is exact: the allocator counts the bytes of living storages (`strided.memory`). PyTorch's is the running sum of the allocations and releases that its
profiler reports for one step, also exact for tensors; scratch that its libraries allocate by themselves is not counted against it. A step is forward,
backward and the optimiser's step, gradients dropped before it (`zero_grad()`), everything eager and on one thread.
"""
import argparse

import torch
from torch._C._profiler import _EventType

import strided


class Block:
    """Builders of the models, written once for both libraries."""

    @staticmethod
    def mlp(lib, inputs=784, hidden=256, rows=64):
        nn = lib.nn
        net = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 10))
        x, classes = lib.randn(rows, inputs), lib.randint(0, 10, (rows,))
        return net, lambda: nn.functional.cross_entropy(net(x), classes)

    @staticmethod
    def wide(lib, dropout=0.0):
        nn = lib.nn
        net = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Dropout(dropout), nn.LayerNorm(1024), nn.Linear(1024, 256), nn.Tanh(), nn.Linear(256, 10))
        x, classes = lib.randn(512, 256), lib.randint(0, 10, (512,))
        return net, lambda: nn.functional.cross_entropy(net(x), classes)

    @staticmethod
    def convnet(lib):
        nn = lib.nn
        net = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))  # fmt: skip
        x, classes = lib.randn(32, 3, 32, 32), lib.randint(0, 10, (32,))
        return net, lambda: nn.functional.cross_entropy(net(x), classes)

    @staticmethod
    def gpt(lib, layers, width, heads, length, batch, vocabulary, dropout=0.0):
        nn, F = lib.nn, lib.nn.functional

        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
                self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
                self.gelu, self.drop = nn.GELU(), nn.Dropout(dropout)

            def forward(self, x):
                B, T, C = x.shape
                q, k, v = self.attn(self.ln_1(x)).split(C, dim=2)  # [B, T, C] each
                q, k, v = (t.view(B, T, heads, C // heads).transpose(1, 2) for t in (q, k, v))  # [B, n_h, T, d_h]
                y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout if self.training else 0, is_causal=True)
                x = x + self.drop(self.proj(y.transpose(1, 2).contiguous().view(B, T, C)))
                return x + self.drop(self.down(self.gelu(self.up(self.ln_2(x)))))

        class GPT(nn.Module):
            def __init__(self):
                super().__init__()
                self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
                self.h, self.ln, self.drop = nn.ModuleList([Layer() for _ in range(layers)]), nn.LayerNorm(width), nn.Dropout(dropout)
                self.head = nn.Linear(width, vocabulary, bias=False)
                self.wte.weight = self.head.weight

            def forward(self, idx, targets):
                x = self.drop(self.wte(idx) + self.wpe(lib.arange(idx.shape[1])))
                for layer in self.h:
                    x = layer(x)
                logits = self.head(self.ln(x))  # [B, T, vocabulary]
                return F.cross_entropy(logits.view(-1, vocabulary), targets.view(-1))

        net = GPT()
        data = lib.randint(0, vocabulary, (batch, length + 1))
        idx, targets = data[:, :-1].contiguous(), data[:, 1:].contiguous()
        return net, lambda: net(idx, targets)

    @staticmethod
    def layer(lib, width=768, heads=12, batch=4, length=256):
        nn = lib.nn
        net = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        x = lib.randn(batch, length, width)
        return net, lambda: net(x).square().mean()


MODELS = {
    "MLP 784-256-10, 64 rows": lambda lib: Block.mlp(lib),
    "MLP with GELU, dropout, norm, 512 rows": lambda lib: Block.wide(lib, 0.1),
    "ConvNet, 32 images of 32 x 32": lambda lib: Block.convnet(lib),
    "GPT, nanoGPT's CPU settings": lambda lib: Block.gpt(lib, 4, 128, 4, 64, 12, 65),
    "GPT, the same with dropout 0.2": lambda lib: Block.gpt(lib, 4, 128, 4, 64, 12, 65, 0.2),
    "GPT-2-small block, B=2, T=256, vocabulary 5000": lambda lib: Block.gpt(lib, 1, 768, 12, 256, 2, 5000),
    "TransformerEncoderLayer, 768 wide, B=2, T=256": lambda lib: Block.layer(lib, batch=2),
}


def step_of(lib, make):
    lib.manual_seed(0)
    net, loss = make(lib)
    optimizer = lib.optim.AdamW(net.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    step()
    step()
    optimizer.zero_grad()
    return step


def ours(make):
    """Bytes at the peak of one step beyond what was held before it."""
    step = step_of(strided, make)
    before = strided.memory.memory_allocated()
    strided.memory.reset_peak_memory_stats()
    step()
    return strided.memory.max_memory_allocated() - before


def theirs(make):
    step = step_of(torch, make)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, record_shapes=True, with_stack=False) as profile:
        step()
    changes, stack = [], list(profile.profiler.kineto_results.experimental_event_tree())
    while stack:
        event = stack.pop()
        stack += event.children
        if event.tag == _EventType.Allocation:
            changes.append((event.start_time_ns, event.typed[1].alloc_size))
    now = peak = 0
    for _, size in sorted(changes, key=lambda c: c[0]):
        now += size
        peak = max(peak, now)
    return peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose name has this in it")
    options = parser.parse_args()
    strided.set_num_threads(1)
    torch.set_num_threads(1)
    print(f"{'peak of a step, beyond parameters and state':52} {'strided':>12} {'PyTorch':>12}  ratio")
    for name, make in MODELS.items():
        if options.only in name:
            a, b = ours(make), theirs(make)
            print(f"{name:52} {a / 1e6:9.3f} MB {b / 1e6:9.3f} MB  {a / b:.2f}")


if __name__ == "__main__":
    main()
