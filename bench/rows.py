"""The rows that bench/all.py measures: for each what is computed, the floors it is held to, and what it takes of the machine.

A `Row` makes its call in PyTorch's own spelling, for strided and PyTorch alike (`make`), and names the operation and its operands for the peers that
spell it otherwise (`operation`; see peers.py). Data is random; results are not checked here: tests do that.
"""
from __future__ import annotations

import math
import pathlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent))

MB = 1 << 20


@dataclass
class Row:
    """One line of the table.

    make(lib): the call to be timed, in the spelling both share. operation: (name, shapes of the float32 operands, settings) for other peers.
    theirs(torch): a call of PyTorch that stands for `make` where it spells it otherwise. compiled: by `compile` of either side.
    flops, reads, copies: multiply-adds (two each), bytes read, bytes read and written: what the limit of the row is made of.
    ratio: the floor against the best peer, or against the one that `against` names; share: the floor as a share of the limit.
    """

    group: str
    name: str
    make: Callable[[Any], Callable[[], Any]]
    ratio: float | None = None
    share: float | None = None
    flops: float = 0
    reads: float = 0
    copies: float = 0
    operation: tuple | None = None
    theirs: Callable[[Any], Callable[[], Any]] | None = None
    compiled: bool = False
    against: str = ""
    quick: bool = False
    settings: dict = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.group}: {self.name}"


# ---- matrix products --------------------------------------------------------------------------------------------------------


def _product(lib, m, n, k, dtype="float32"):
    a, b = (lib.randn(m, k) / 8).to(getattr(lib, dtype)), (lib.randn(k, n) / 8).to(getattr(lib, dtype))
    return lambda: a @ b


def products() -> Iterator[Row]:
    for n in (512, 1024, 2048, 4096):
        yield Row("matmul", f"float32 {n}", lambda lib, n=n: _product(lib, n, n, n), 1.0, 0.88, flops=2 * n**3, quick=n == 1024, operation=("matmul", ((n, n), (n, n)), {}))
    for n in (512, 1024, 2048, 4096):
        yield Row("matmul", f"bfloat16 {n}", lambda lib, n=n: _product(lib, n, n, n, "bfloat16"), 1.0, flops=2 * n**3, settings={"dtype": "bfloat16"}, against="torch", quick=n == 1024)


OUT, IN = 4096, 11008


def _linear(lib, rows, dtype):
    x, w = lib.randn(rows, IN).to(getattr(lib, dtype)), lib.randn(OUT, IN).to(getattr(lib, dtype))
    return lambda: lib.nn.functional.linear(x, w)


def _blocks(lib, rows, name):
    from strided import block_formats

    x, w = lib.randn(rows, IN).bfloat16(), lib.randn(OUT, IN).to(block_formats.parse(name))
    return lambda: lib.nn.functional.linear(x, w)


def _torch_blocks(torch, rows, name):
    """PyTorch's own products with packed weights where it has them; for MXFP4 its bfloat16 product."""
    x = torch.randn(rows, IN).bfloat16()
    if name.startswith("int8"):
        w, scales = torch.randint(-128, 128, (OUT, IN), dtype=torch.int8), torch.rand(OUT).bfloat16()
        return lambda: torch._weight_int8pack_mm(x, w, scales)
    if name.startswith("int4"):
        w = torch._convert_weight_to_int4pack_for_cpu(torch.randint(0, 16, (OUT, IN), dtype=torch.int32), 2)
        scales = torch.rand(IN // 128, OUT, 2).bfloat16()
        return lambda: torch.ops.aten._weight_int4pack_mm_for_cpu(x, w, 128, scales)
    return _linear(torch, rows, "bfloat16")


def skinny() -> Iterator[Row]:
    weights = {"float32": 4.0, "bfloat16": 2.0}
    blocks = {"int8_g128": 1 + 2 / 128, "int4_g128": 0.5 + 2 / 128, "mxfp4": 0.5 + 1 / 32}
    for rows in (1, 4, 16, 64):
        flops = 2 * rows * OUT * IN
        for dtype, size in weights.items():
            operation = ("linear", ((rows, IN), (OUT, IN)), {}) if dtype == "float32" else None
            yield Row("skinny", f"{rows} row{'s' * (rows > 1)} x {dtype} [{OUT}, {IN}]", lambda lib, rows=rows, dtype=dtype: _linear(lib, rows, dtype), 1.3, 0.9,
                      flops=flops, reads=OUT * IN * size, operation=operation, settings={"dtype": dtype}, against="torch", quick=rows == 1)  # fmt: skip
        for name, size in blocks.items():
            yield Row("skinny", f"{rows} row{'s' * (rows > 1)} x {name} [{OUT}, {IN}]", lambda lib, rows=rows, name=name: _blocks(lib, rows, name), 1.3, 0.9,
                      flops=flops, reads=OUT * IN * size, theirs=lambda torch, rows=rows, name=name: _torch_blocks(torch, rows, name), settings={"dtype": name}, against="torch")  # fmt: skip


# ---- rows and elements ------------------------------------------------------------------------------------------------------


def elementwise(lib, name, shape):
    """The call of one of the operations on [rows, columns], on its own operands."""
    F, n = lib.nn.functional, shape[-1]
    x, y = lib.randn(shape), lib.randn(shape)
    w, b = lib.randn(n), lib.randn(n)
    return {
        "add": lambda: x + y,
        "mul": lambda: x * y,
        "exp": lambda: x.exp(),
        "gelu": lambda: F.gelu(x),
        "silu": lambda: F.silu(x),
        "softmax": lambda: lib.softmax(x, -1),
        "layer_norm": lambda: F.layer_norm(x, (n,), w, b),
        "rms_norm": lambda: F.rms_norm(x, (n,), w),
    }[name]


def rowwork() -> Iterator[Row]:
    names = "add mul exp gelu silu softmax layer_norm rms_norm".split()
    for group, shape, ratio, share, against in (("64 MB", (4096, 4096), 3.0, 0.85, ""), ("256 kB", (64, 1024), 1.2, None, "torch")):
        size = 4 * math.prod(shape)
        for name in names:
            two = name in ("add", "mul")
            yield Row(group, name, lambda lib, name=name, shape=shape: elementwise(lib, name, shape), ratio, share, copies=size * (3 if two else 2),
                      operation=(name, (shape, shape) if two else (shape,), {}), against=against, quick=name in ("add", "gelu", "softmax"))  # fmt: skip


def _cross_entropy(lib, rows=512, classes=50257):
    x, y = lib.randn(rows, classes, requires_grad=True), lib.randint(0, classes, (rows,))

    def call():
        x.grad = None
        lib.nn.functional.cross_entropy(x, y).backward()

    return call


def losses() -> Iterator[Row]:
    # read once for the loss, once more for the gradient, which is written
    yield Row("loss", "cross_entropy 512 x 50257, forward + backward", _cross_entropy, 3.0, reads=512 * 50257 * 4, copies=512 * 50257 * 8, against="torch", quick=True)


# ---- attention --------------------------------------------------------------------------------------------------------------


def _attention(lib, shape, backward=False, causal=True):
    q, k, v = (lib.randn(shape, requires_grad=backward) for _ in range(3))
    attend = lib.nn.functional.scaled_dot_product_attention
    if not backward:
        return lambda: attend(q, k, v, is_causal=causal)
    g = lib.randn(shape)

    def call():
        q.grad = k.grad = v.grad = None
        attend(q, k, v, is_causal=causal).backward(g)

    return call


def _decode(lib, heads=32, groups=8, cache=4096, width=128, dtype="float32"):
    q = lib.randn(1, heads, 1, width).to(getattr(lib, dtype))
    k, v = (lib.randn(1, groups, cache, width).to(getattr(lib, dtype)) for _ in range(2))
    return lambda: lib.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def attention() -> Iterator[Row]:
    for shape in ((16, 6, 64, 64), (2, 8, 512, 64), (1, 32, 2048, 128)):  # short heads are a small model's
        b, h, n, d = shape
        flops = 4 * b * h * n * n * d / 2  # half of the scores are hidden
        for name, backward, times in (("forward", False, 1.0), ("forward + backward", True, 3.5)):
            yield Row("attention", f"{list(shape)} causal, {name}", lambda lib, shape=shape, backward=backward: _attention(lib, shape, backward), 1.5,
                      flops=flops * times, operation=("attention", (shape,) * 3, {"causal": True}) if not backward else None, against="torch", quick=n == 512)  # fmt: skip
    for dtype, size in (("float32", 4), ("bfloat16", 2)):
        yield Row("attention", f"decoding: 1 query, 4096 keys, heads 32/8, {dtype}", lambda lib, dtype=dtype: _decode(lib, dtype=dtype), 1.5,
                  reads=2 * 8 * 4096 * 128 * size, settings={"dtype": dtype}, against="torch", quick=True)  # fmt: skip


# ---- small calls ------------------------------------------------------------------------------------------------------------


def _small(lib, name):
    a, b, m, mg = lib.tensor([1.0, 2.0, 3.0, 4.0]), lib.tensor([5.0, 6.0, 7.0, 8.0]), lib.ones(4, 4), lib.ones(4, 4, requires_grad=True)
    g = lib.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    return {
        "add": lambda: a + b, "add, recorded": lambda: g + b,
        "view": lambda: m.view(2, 8), "view, recorded": lambda: mg.view(2, 8),
        "transpose": lambda: m.transpose(0, 1), "transpose, recorded": lambda: mg.transpose(0, 1),
        "index": lambda: m[1], "index, recorded": lambda: mg[1],
        "matmul 4 x 4": lambda: m @ m, "matmul 4 x 4, recorded": lambda: mg @ m,
        "sum": lambda: a.sum(), "sum, recorded": lambda: g.sum(),
        "(g * b).sum().backward()": lambda: (g * b).sum().backward(),
    }[name]  # fmt: skip


SMALL = ("add", "view", "transpose", "index", "matmul 4 x 4", "sum")


def small() -> Iterator[Row]:
    for name in [n + suffix for n in SMALL for suffix in ("", ", recorded")] + ["(g * b).sum().backward()"]:
        yield Row("small", name, lambda lib, name=name: _small(lib, name), 1 / 0.9, against="torch", quick=name == "add")


# ---- training ---------------------------------------------------------------------------------------------------------------


def _mlp(lib, compiled=False):
    lib.manual_seed(0)
    nn = lib.nn
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    update = lib.optim.SGD(net.parameters(), lr=1e-3)
    x, classes = lib.randn(64, 784), lib.randint(0, 10, (64,))
    run = lib.compile(net) if compiled else net

    def step():
        update.zero_grad()
        nn.functional.cross_entropy(run(x), classes).backward()
        update.step()

    return step


def block(lib, width=768, heads=12):
    """A block of GPT-2 small: attention and a perceptron, each behind a layer norm, added to what came in."""
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):  # [B, T, C]
            B, T, C = x.shape
            q, k, v = self.qkv(self.before(x)).split(C, dim=2)
            q, k, v = (t.view(B, T, heads, C // heads).transpose(1, 2) for t in (q, k, v))  # [B, H, T, C/H]
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.mix(y.transpose(1, 2).contiguous().view(B, T, C))
            return x + self.down(nn.functional.gelu(self.up(self.between(x)), approximate="tanh"))

    return Block()


def _block(lib, compiled=False, B=4, T=256, width=768):
    lib.manual_seed(0)
    net = block(lib, width)
    run = lib.compile(net) if compiled else net
    x, g = lib.randn(B, T, width, requires_grad=True), lib.randn(B, T, width)

    def call():
        for p in net.parameters():
            p.grad = None
        x.grad = None
        run(x).backward(g)

    return call


def training() -> Iterator[Row]:
    work = 6 * 64 * (784 * 256 + 256 * 10) - 2 * 64 * 784 * 256  # the input needs no gradient
    yield Row("training", "MLP 784-256-10, 64 rows, SGD step", _mlp, 1.0, flops=work, against="torch", quick=True)
    yield Row("training", "MLP 784-256-10, 64 rows, SGD step, compiled", lambda lib: _mlp(lib, True), 2.0, flops=work, compiled=True, against="torch.compile")
    tokens = 4 * 256
    work = 6 * tokens * 12 * 768**2 + 4 * 4 * 12 * 256**2 * 64 / 2 * 3.5
    yield Row("training", "GPT-2-small block, B=4, T=256, forward + backward", _block, 1.5, flops=work, against="torch", quick=True)
    yield Row("training", "GPT-2-small block, B=4, T=256, forward + backward, compiled", lambda lib: _block(lib, True), 1.3, flops=work, compiled=True, against="torch.compile")


# ---- moving, and layers without a floor --------------------------------------------------------------------------------------


def _moves(lib, name):
    x = lib.randn(4096, 4096)
    places, table, ids = lib.randint(0, 4096, (4096,)), lib.randn(32000, 1024), lib.randint(0, 32000, (4096,))
    weights = lib.randn(32000, 256, requires_grad=True)

    def embedding():
        weights.grad = None
        lib.nn.functional.embedding(ids, weights).sum().backward()

    return {
        "x.t().contiguous()": lambda: x.t().contiguous(),
        "[B, T, H, D] to [B, H, T, D]": lambda: x.view(4, 1024, 64, 64).transpose(1, 2).contiguous(),
        "cat of 2": lambda: lib.cat([x, x]),
        "x[ids]": lambda: x[places],
        "embedding": lambda: lib.nn.functional.embedding(ids, table),
        "embedding, forward + backward": embedding,
        "cumsum": lambda: x.cumsum(-1),
        "argmax": lambda: x.argmax(-1),
        "topk 50 of 4096": lambda: x.topk(50),
        "sort": lambda: x[:256].sort(-1),
    }[name]


def moving() -> Iterator[Row]:
    full = 4096 * 4096 * 4
    copied = {"x.t().contiguous()": 2, "[B, T, H, D] to [B, H, T, D]": 2, "cat of 2": 4, "x[ids]": 2, "embedding": 0.5, "cumsum": 2}
    for name in [*copied, "argmax", "topk 50 of 4096", "embedding, forward + backward", "sort"]:
        yield Row("moving", name, lambda lib, name=name: _moves(lib, name), reads=full * (name in ("argmax", "topk 50 of 4096")), copies=full * copied.get(name, 0))


def _layer(lib, layer, shape):
    net, x = layer(lib.nn), lib.randn(shape, requires_grad=True)

    def call():
        for p in net.parameters():
            p.grad = None
        x.grad = None
        out = net(x)
        (out[0] if isinstance(out, tuple) else out).sum().backward()

    return call


def layers() -> Iterator[Row]:
    convolution = lambda lib: _layer(lib, lambda nn: nn.Conv2d(64, 128, 3, padding=1), (8, 64, 56, 56))
    recurrent = lambda lib: _layer(lib, lambda nn: nn.LSTM(128, 256), (64, 32, 128))
    yield Row("layers", "Conv2d 64 -> 128, 3 x 3, [8, 64, 56, 56], forward + backward", convolution, flops=6 * 8 * 56 * 56 * 64 * 128 * 9)
    yield Row("layers", "LSTM 128 -> 256, 64 steps, 32 rows, forward + backward", recurrent, flops=6 * 64 * 32 * 4 * 256 * (128 + 256))


def rows() -> list[Row]:
    return [*products(), *skinny(), *rowwork(), *losses(), *attention(), *small(), *training(), *moving(), *layers()]


# ---- growth -----------------------------------------------------------------------------------------------------------------


def growth() -> dict[str, tuple[tuple[int, ...], Callable[[Any, int], Callable[[], Any]]]]:
    """Work that should take 2, 4, 8 times as long when there is so much more of it: the scales, and the call at a scale. Everything is out of cache."""
    scales = (1, 2, 4, 8)
    calls = {
        "matmul, rows of 1024 x 1024": lambda lib, s: _product(lib, 512 * s, 1024, 1024),
        "linear, 1 row, float32": lambda lib, s: _vector(lib, 4096 * s),
        **{f"{name}, rows of 4096": lambda lib, s, name=name: elementwise(lib, name, (4096 * s, 4096)) for name in ("add", "exp", "gelu", "softmax", "layer_norm")},
        "cross_entropy, rows of 50257": lambda lib, s: _cross_entropy(lib, 128 * s),
        "attention, heads of 512 x 64": lambda lib, s: _attention(lib, (2 * s, 8, 512, 64)),
        "attention, heads of 512 x 64, backward": lambda lib, s: _attention(lib, (s, 8, 512, 64), True),
        "GPT-2-small block, sequences of 256": lambda lib, s: _block(lib, B=2 * s),
    }
    return {name: (scales, call) for name, call in calls.items()}


def _vector(lib, outs):
    x, w = lib.randn(1, 4096), lib.randn(outs, 4096)
    return lambda: lib.nn.functional.linear(x, w)
