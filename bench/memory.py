"""Peak memory of a training step beside PyTorch's: what a step allocates at once beyond parameters, optimiser state and inputs.

    python bench/memory.py [--only GPT] [--foreach] [--compiled]

Ours is exact: the allocator counts the bytes of living storages (`strided.memory`). PyTorch's is the running sum of the allocations and releases that its
profiler reports for one step, also exact for tensors; scratch that its libraries allocate by themselves is not counted against it. A step is forward,
backward and the optimiser's step, gradients dropped before it (`zero_grad()`), on one thread, and eager unless told otherwise.
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

    @staticmethod
    def llama(lib, layers=2, width=512, heads=8, shared=2, length=256, batch=2, vocabulary=4000):
        """RMS norms, rotary positions, heads that share keys, gated feed-forward: no biases, no dropout."""
        nn, F = lib.nn, lib.nn.functional
        each = width // heads
        angles = lib.outer(lib.arange(length).float(), 10000.0 ** (-lib.arange(0, each, 2).float() / each))  # [T, d_h / 2]
        cos, sin = lib.cat([angles, angles], 1).cos(), lib.cat([angles, angles], 1).sin()

        def rotated(x):  # [B, n_h, T, d_h]
            a, b = x.chunk(2, dim=-1)
            return x * cos + lib.cat([-b, a], -1) * sin

        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.n_1, self.n_2 = nn.RMSNorm(width), nn.RMSNorm(width)
                self.q, self.k, self.v = (nn.Linear(width, each * n, bias=False) for n in (heads, shared, shared))
                self.o = nn.Linear(width, width, bias=False)
                self.gate, self.up, self.down = nn.Linear(width, 4 * width, bias=False), nn.Linear(width, 4 * width, bias=False), nn.Linear(4 * width, width, bias=False)

            def forward(self, x):
                B, T, C = x.shape
                y = self.n_1(x)
                q, k, v = (f(y).view(B, T, -1, each).transpose(1, 2) for f in (self.q, self.k, self.v))  # [B, n_h, T, d_h]
                y = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True, enable_gqa=True)
                x = x + self.o(y.transpose(1, 2).reshape(B, T, C))
                y = self.n_2(x)
                return x + self.down(F.silu(self.gate(y)) * self.up(y))

        net = nn.Sequential(nn.Embedding(vocabulary, width), *(Layer() for _ in range(layers)), nn.RMSNorm(width), nn.Linear(width, vocabulary, bias=False))
        data = lib.randint(0, vocabulary, (batch, length + 1))
        idx, targets = data[:, :-1].contiguous(), data[:, 1:].contiguous()
        return net, lambda: F.cross_entropy(net(idx).view(-1, vocabulary), targets.view(-1))

    @staticmethod
    def resnet(lib, channels=32, images=8, size=32):
        nn = lib.nn

        class Residual(nn.Module):
            def __init__(self, inside, out, stride):
                super().__init__()
                self.a, self.b = nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.Conv2d(out, out, 3, 1, 1, bias=False)
                self.n_a, self.n_b, self.relu = nn.BatchNorm2d(out), nn.BatchNorm2d(out), nn.ReLU(inplace=True)
                self.skip = nn.Sequential(nn.Conv2d(inside, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if stride > 1 else nn.Identity()

            def forward(self, x):
                y = self.n_b(self.b(self.relu(self.n_a(self.a(x)))))
                return self.relu(y + self.skip(x))

        net = nn.Sequential(
            nn.Conv2d(3, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True), Residual(channels, channels, 1),
            Residual(channels, 2 * channels, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * channels, 10))  # fmt: skip
        x, classes = lib.randn(images, 3, size, size), lib.randint(0, 10, (images,))
        return net, lambda: nn.functional.cross_entropy(net(x), classes)

    @staticmethod
    def lstm(lib, vocabulary=1000, width=128, hidden=256, length=64, rows=16):
        nn = lib.nn
        net = nn.ModuleDict({"embed": nn.Embedding(vocabulary, width), "lstm": nn.LSTM(width, hidden, num_layers=2, batch_first=True), "head": nn.Linear(hidden, vocabulary)})
        data = lib.randint(0, vocabulary, (rows, length + 1))
        idx, targets = data[:, :-1].contiguous(), data[:, 1:].contiguous()

        def loss():
            y, _ = net["lstm"](net["embed"](idx))
            return nn.functional.cross_entropy(net["head"](y).view(-1, vocabulary), targets.view(-1))

        return net, loss


MODELS = {
    "MLP 784-256-10, 64 rows": lambda lib: Block.mlp(lib),
    "MLP with GELU, dropout, norm, 512 rows": lambda lib: Block.wide(lib, 0.1),
    "ConvNet, 32 images of 32 x 32": lambda lib: Block.convnet(lib),
    "GPT, nanoGPT's CPU settings": lambda lib: Block.gpt(lib, 4, 128, 4, 64, 12, 65),
    "GPT, the same with dropout 0.2": lambda lib: Block.gpt(lib, 4, 128, 4, 64, 12, 65, 0.2),
    "GPT-2-small block, B=2, T=256, vocabulary 5000": lambda lib: Block.gpt(lib, 1, 768, 12, 256, 2, 5000),
    "TransformerEncoderLayer, 768 wide, B=2, T=256": lambda lib: Block.layer(lib, batch=2),
    "LLaMA-like, 2 layers, heads 8/2, B=2, T=256": lambda lib: Block.llama(lib),
    "ResNet blocks, 8 images of 32 x 32": lambda lib: Block.resnet(lib),
    "LSTM, 2 layers of 256, 16 rows of 64": lambda lib: Block.lstm(lib),
}


def step_of(lib, make, foreach, compiled):
    lib.manual_seed(0)
    net, loss = make(lib)
    optimizer = lib.optim.AdamW(net.parameters(), lr=1e-3, foreach=foreach)
    loss = lib.compile(loss) if compiled else loss

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    for _ in range(3):
        step()
    optimizer.zero_grad()
    return step


def ours(*model):
    """Bytes at the peak of one step beyond what was held before it."""
    step = step_of(strided, *model)
    before = strided.memory.memory_allocated()
    strided.memory.reset_peak_memory_stats()
    step()
    return strided.memory.max_memory_allocated() - before


def theirs(*model):
    step = step_of(torch, *model)
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
    parser.add_argument("--foreach", action="store_true", help="AdamW(foreach=True) on both sides")
    parser.add_argument("--compiled", action="store_true", help="the function from inputs to loss compiled, on both sides")
    options = parser.parse_args()
    strided.set_num_threads(1)
    torch.set_num_threads(1)
    print(f"{'peak of a step, beyond parameters and state':52} {'strided':>12} {'PyTorch':>12}  ratio")
    for name, make in MODELS.items():
        if options.only in name:
            a, b = (side(make, options.foreach or None, options.compiled) for side in (ours, theirs))
            print(f"{name:52} {a / 1e6:9.3f} MB {b / 1e6:9.3f} MB  {a / b:.3f}")


if __name__ == "__main__":
    main()
