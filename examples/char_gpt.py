"""A small GPT that learns to write this repository's own documentation, character by character.

    strided run examples/char_gpt.py                   # about ten seconds for 100 steps
    python examples/char_gpt.py                        # the same file on an installed PyTorch: the same losses

--text FILE reads another text, --steps N takes more steps, --save FILE keeps model, optimiser and schedule and goes on from there.
"""
import argparse
import math
import pathlib

import torch
from torch import nn
from torch.nn import functional as F

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--text", type=pathlib.Path, default=DOCS / "architecture.md")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--save", type=pathlib.Path)
parser.add_argument("--seed", type=int, default=1337)
options = parser.parse_args()

T, D, H, LAYERS, B = 64, 64, 4, 2, 16       # characters in a window, width, heads, blocks, windows in a batch
DROPOUT, RATE, WARMUP, CLIP = 0.1, 3e-3, 10, 1.0

text = options.text.read_text(encoding="utf-8")
characters = sorted(set(text))
V = len(characters)
number = {c: i for i, c in enumerate(characters)}
data = torch.tensor([number[c] for c in text])           # [N] int64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(D, 3 * D, bias=False)
        self.out = nn.Linear(D, D, bias=False)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = (part.view(B, T, H, D // H).transpose(1, 2) for part in self.qkv(x).split(D, dim=-1))  # each [B, H, T, D/H]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=DROPOUT if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(B, T, D))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attend = Attention()
        self.think = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D), nn.Dropout(DROPOUT))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.think(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(V, D), nn.Embedding(T, D)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(D)
        self.head = nn.Linear(D, V, bias=False)
        self.head.weight = self.tokens.weight            # one matrix reads characters and writes them
        self.apply(self.start)

    def start(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, 0.0, 0.02)

    def forward(self, tokens, targets=None):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.size(1)))      # [B, T, D]
        logits = self.head(self.norm(self.blocks(x)))                            # [B, T, V]
        loss = None if targets is None else F.cross_entropy(logits.view(-1, V), targets.reshape(-1))
        return logits, loss

    @torch.no_grad()
    def write(self, tokens, count):
        for _ in range(count):
            logits, _ = self(tokens[:, -T:])
            following = torch.multinomial(logits[:, -1].softmax(-1), 1)          # [B, 1]
            tokens = torch.cat([tokens, following], dim=1)
        return tokens


torch.manual_seed(options.seed)
model = GPT()
decayed = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=RATE, betas=(0.9, 0.99))
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min((i + 1) / WARMUP, 0.5 + 0.5 * math.cos(math.pi * min(i / options.steps, 1))))

first = 0
if options.save and options.save.exists():
    kept = torch.load(options.save, weights_only=True)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    schedule.load_state_dict(kept["schedule"])
    first = kept["step"]

print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(data):,} characters, {V} different")
for step in range(first, options.steps):
    starts = torch.randint(len(data) - T, (B,))
    window = torch.stack([data[i : i + T + 1] for i in starts.tolist()])         # [B, T + 1]
    _, loss = model(window[:, :-1], window[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), CLIP)
    optimizer.step()
    schedule.step()
    if step % 10 == 0 or step == options.steps - 1:
        print(f"step {step:4d}   loss {loss.item():.3f}   gradient {norm.item():.3f}")

if options.save:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "step": options.steps}, options.save)

model.eval()
written = model.write(data[:1].view(1, 1), 200)[0].tolist()
print("".join(characters[i] for i in written))
