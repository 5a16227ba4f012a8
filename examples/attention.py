"""Causal multi-head attention over one batch of token ids, in plain tensor operations.

    strided annotate examples/attention.py      # what every line does to shapes, strides, memory and FLOPs
    python examples/attention.py                # the same file on an installed PyTorch
"""
import torch

torch.manual_seed(0)

B, T = 2, 128                  # sequences in the batch, tokens in each
V, D = 5000, 512               # vocabulary, width of the model
H = 8                          # attention heads
K = D // H                     # width of a head: 64

# Parameters. A trained model would load these; scaled so that activations keep a variance near 1.
embedding = torch.randn(V, D)                           # [V, D]
w_query = torch.randn(D, D) / D**0.5                    # [D, D]
w_key = torch.randn(D, D) / D**0.5                      # [D, D]
w_value = torch.randn(D, D) / D**0.5                    # [D, D]
w_out = torch.randn(D, D) / D**0.5                      # [D, D]

tokens = torch.randint(0, V, (B, T))                    # [B, T] int64
x = embedding[tokens]                                   # [B, T, D]   rows are gathered: a copy

# Project, then cut the last dimension into heads and bring the heads forward. No bytes move after the products.
q = (x @ w_query).view(B, T, H, K).transpose(1, 2)      # [B, H, T, K]
k = (x @ w_key).view(B, T, H, K).transpose(1, 2)        # [B, H, T, K]
v = (x @ w_value).view(B, T, H, K).transpose(1, 2)      # [B, H, T, K]

# How strongly each token looks at each other one; later tokens are hidden from earlier ones.
scores = q @ k.transpose(-2, -1) / K**0.5               # [B, H, T, T]
future = torch.ones(T, T, dtype=torch.bool).triu(1)     # [T, T]      True above the diagonal
scores = scores.masked_fill(future, float("-inf"))      # [B, H, T, T]
weights = torch.softmax(scores, dim=-1)                 # [B, H, T, T]

mixed = weights @ v                                     # [B, H, T, K]
merged = mixed.transpose(1, 2).contiguous()             # [B, T, H, K]  the one copy that is needed:
merged = merged.view(B, T, D)                           # [B, T, D]     heads and width become one dimension
out = merged @ w_out                                    # [B, T, D]

print("output", tuple(out.shape), out.dtype)
print(f"mean {out.mean().item():.4f}, standard deviation {out.std().item():.4f}")
print(f"attention of the last token sums to {weights[0, 0, -1].sum().item():.4f}")
