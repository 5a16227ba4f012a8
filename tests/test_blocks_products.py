"""Products with block tensors against float64 products of the numbers they hold: all formats, sizes that do not fit vectors, both ways of computing."""

from __future__ import annotations

import numpy as np
import pytest

import strided
import strided.nn as nn
import strided.nn.functional as F
from strided import block_formats
from strided.kernels import block_dots, block_lanes, block_thin, gemm_pack, jit
from strided.kernels.block_products import MOST

RNG = np.random.default_rng(11)
TOLERANCE = {strided.float32: 4e-6, strided.bfloat16: 4e-3, strided.float16: 1e-3}


def weight(f, n, k):
    """A block tensor [n, about k] of any format."""
    if f.writable:
        return strided.quantize(strided.randn(n, k), f, pad=True)
    blocks = max(1, k // f.block)
    raw = RNG.integers(0, 256, (n, blocks, f.nbytes), dtype=np.uint8)
    for _, at in [f.fields[name] for name in ("scale", "min") if name in f.fields]:
        raw[..., at : at + 2] = (RNG.standard_normal((n, blocks)) / 64).astype(np.float16)[..., None].view(np.uint8)
    return strided.as_blocks(f.name, strided.from_numpy(raw))


def check(x, w, bias=None):
    y = F.linear(x, w, bias)
    d = w.dequantize().double()
    want = x.double() @ d.T + (0 if bias is None else bias.double())
    scale = (x.double().abs() @ d.T.abs() + (0 if bias is None else bias.double().abs())).amax().item() + 1e-30
    assert y.dtype is x.dtype and y.shape == want.shape
    error = (y.double() - want).abs().max().item() / scale
    assert error < TOLERANCE[x.dtype], (w.dtype, tuple(x.shape), error)


@pytest.mark.parametrize("f", block_formats.all_formats(), ids=lambda f: f.name)
def test_every_format(f):
    for m, n, k in ((1, 7, 3 * f.block), (3, 9, f.block + 5), (1, 1, 1), (4, 5, 1200), (17, 8, 1100), (MOST + 3, 6, 300)):
        w = weight(f, n, k)
        check(strided.randn(m, w.shape[1]), w)
        if f.name in ("mxfp4", "q6_k", "int8_g128"):
            for dtype in TOLERANCE:
                check(strided.randn(m, w.shape[1]).to(dtype), w, strided.randn(n))


@pytest.mark.parametrize("f", block_formats.all_formats(), ids=lambda f: f.name)
def test_every_format_with_rows_in_lanes(f, kernels_asked):
    w = weight(f, 60, 2 * f.block + (5 if f.writable else 0))
    for m in (16, 45):
        check(strided.randn(m, w.shape[1]), w)
        check(strided.randn(m, w.shape[1]).bfloat16(), w, strided.randn(60))
    assert "block thin" in {key[0] for key in kernels_asked}


@pytest.mark.parametrize("group", [16, 48, 256])
@pytest.mark.parametrize("name,zero", [("int4", False), ("int4", True), ("int8", False), ("int8", True)])
def test_groups(name, zero, group):
    w = strided.quantize(strided.randn(9, 3 * group + 1), name, group=group, zero_point=zero, scale="float32", pad=True)
    check(strided.randn(2, w.shape[1]), w)
    check(strided.randn(1, w.shape[1]).bfloat16(), w)


@pytest.mark.parametrize("f", ["mxfp4", "nvfp4", "int4_g32_zero", "int8_g64", "int8_g32_zero"])
def test_dot_kernel_with_large_and_small_numbers(f):
    """Few elements of X share an exponent, so that a large number costs the others next to nothing; and X may be zero, huge or tiny."""
    w = strided.quantize(strided.randn(6, 1024), f)
    x = strided.randn(4, 1024)
    x[0, 5] = 1e6
    x[1] = 0
    x[2] *= 1e30
    x[3] *= 1e-30
    d = w.dequantize().double()
    for row in range(4):
        got, want = F.linear(x[row], w).double(), x[row].double() @ d.T
        beside = 8 * x[row].abs().max().item() * d.abs().max().item() * 2.0**-22  # what the largest number's neighbours may lose
        assert ((got - want).abs() <= 4e-6 * (x[row].double().abs() @ d.T.abs()) + beside).all()
    y = F.linear(x[0].detach().clone()[5:6].expand(1024).contiguous() * 0 + x[0], w)
    assert y.isfinite().all()


@pytest.mark.parametrize("name", ["mxfp4", "nvfp4", "int4_g128", "int4_g32_zero", "int8_g128", "int8_g512_zero", "q4_1", "q8_0"])
def test_rows_in_lanes_of_integers(name, kernels_asked):
    """Every panel of rows, tiles and rounds that lack rows and codes, scales of several groups in a step and of half a group."""
    if block_dots.dots() is None or not block_lanes.serves(block_dots.dots(), 2, 16, 32, False):
        pytest.skip("this host has no dot product of bytes for many rows")
    f = block_formats.parse(name)
    for m, n, k in ((2, 16, f.block), (4, 39, 1100), (7, 16, 2048 + f.block), (16, 32, 3 * f.block), (16 + 3, 17, 1000), (48, 21, 700)):
        w = weight(f, n, k)
        check(strided.randn(m, w.shape[1]).bfloat16(), w, strided.randn(n))
        check(strided.randn(m, w.shape[1]).half(), w)
    assert len({key for key in kernels_asked if key[0] == "block lanes"}) >= 6
    x = strided.randn(5, 2 * w.shape[1]).bfloat16()[:, : w.shape[1]]  # rows lie apart
    check(x, w)


def test_outliers_are_multiplied_as_floats():
    """An element that is much larger than its neighbours costs them nothing, even where it meets a zero."""
    w = strided.quantize(strided.randn(64, 1024), "int4_g128")
    w.parts[0][:, :1, 1] = 0  # elements 2 and 3 of each row
    d = w.dequantize().double()
    assert (d[:, 2:4] == 0).all()
    for threads in (1, 3):
        before = strided.get_num_threads()
        strided.set_num_threads(threads)
        try:
            for m in (3, 16):
                for dtype, tolerance in ((strided.bfloat16, 4e-3), (strided.float16, 1e-3)):
                    x = strided.randn(m, 1024).to(dtype)
                    x[1, 2] = 6e4
                    want = x.double() @ d.T
                    got = F.linear(x, w).double()
                    assert ((got - want).abs().amax(1) <= tolerance * want.abs().amax(1)).all()
                    x[0, 7] = float("inf")
                    got = F.linear(x, w)
                    assert not got[0].isfinite().any() or (d[:, 7] == 0).any()
                    assert got[1:].isfinite().all()
        finally:
            strided.set_num_threads(before)


def test_infinities_and_nan():
    w = strided.quantize(strided.randn(5, 256), "mxfp4")
    d = w.dequantize()
    for wild in (float("inf"), float("-inf"), float("nan")):
        x = strided.randn(2, 256)
        x[0, 100] = wild
        got, want = F.linear(x, w), x @ d.T
        assert (got.isnan() == want.isnan()).all() and (got.isinf() == want.isinf()).all()
        assert (got[1] - want[1]).abs().max() < 1e-4
    scales = w.parts[1].clone()
    scales[2, 3] = 255  # a block that is NaN makes its row of the result NaN, and no other
    w = strided.as_blocks("mxfp4", w.parts[0], scales)
    for m in (1, 8, MOST + 1):
        nan = F.linear(strided.randn(m, 256), w).isnan()
        assert nan[:, 2].all() and nan.sum() == m


def test_both_ways_agree(monkeypatch):
    w = strided.quantize(strided.randn(33, 704), "mxfp4")
    x = strided.randn(2, 704)
    one = F.linear(x, w)
    monkeypatch.setattr(block_dots, "dots", lambda: None)
    strided.set_num_threads(strided.get_num_threads() + 1)  # forgets plans
    try:
        two = F.linear(x, w)
    finally:
        strided.set_num_threads(strided.get_num_threads() - 1)
    assert (one - two).abs().max() < 1e-4


@pytest.mark.parametrize("name", ["mxfp4", "int4_g32_zero", "q4_1", "q8_0"])
def test_narrower_vectors(monkeypatch, name):
    """The text for AVX2 runs on any AVX2 host; the one for arm is compiled."""
    f = block_formats.parse(name)
    if "+avx2" in jit.host().features:
        monkeypatch.setattr(block_dots, "dots", lambda: block_dots.Dots("avx2", 32))
        strided.set_num_threads(strided.get_num_threads() + 1)
        try:
            for m, k in ((1, 512), (3, 480)):
                check(strided.randn(m, weight(f, 7, k).shape[1]), weight(f, 7, k))
        finally:
            strided.set_num_threads(strided.get_num_threads() - 1)


def test_arm_kernels_compile(monkeypatch):
    import llvmlite.binding as llvm

    from strided.kernels import block_products
    from strided.kernels.block_text import Kind

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(cpu="apple-m1", opt=3)
    monkeypatch.setattr(jit, "_host", jit.Host("aarch64-unknown-linux-gnu", "apple-m1", "+neon,+dotprod,+fullfp16"))
    assert block_dots.dots() == block_dots.Dots("neon", 16)
    for name in ("mxfp4", "int8_g32", "q4_1"):
        f = block_formats.parse(name)
        plain = [block_products._tiles(), block_products._kernel("float32", None, "general")]
        module = llvm.parse_assembly(block_dots.text(Kind(*f.kernel), "float32", None, f.block, f.order == "halves", plain))
        module.triple = "aarch64-unknown-linux-gnu"
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        llvm.create_pass_builder(machine, options).getModulePassManager().run(module, llvm.create_pass_builder(machine, options))
        assert "sdot" in machine.emit_assembly(module)
        tile = gemm_pack.Tile(4, (8, 4), 3, True, True, False)
        rows = block_lanes.text(Kind(*f.kernel), "bfloat16", None, f.block, f.order == "halves", block_dots.dots(), (4, 2), tile, plain)
        module = llvm.parse_assembly(rows)
        module.triple = "aarch64-unknown-linux-gnu"
        llvm.create_pass_builder(machine, options).getModulePassManager().run(module, llvm.create_pass_builder(machine, options))
        assert "sdot" in machine.emit_assembly(module)
        module = llvm.parse_assembly(block_thin.text(Kind(*f.kernel), "bfloat16", "float32", tile, f.block))
        module.triple = "aarch64-unknown-linux-gnu"
        assert "fmla" in machine.emit_assembly(module)


def test_shapes_and_methods():
    w = strided.quantize(strided.randn(6, 64), "mxfp4")
    d = w.dequantize()
    x = strided.randn(2, 3, 64)
    close = lambda a, b: a.shape == b.shape and (a - b).abs().max().item() < 1e-4
    assert close(x @ w.T, x @ d.T) and close(x @ w.mT, x @ d.T) and close(strided.matmul(x, w.t()), x @ d.T)
    assert close(F.linear(x[0, 0], w), d @ x[0, 0]) and close(w @ x[0, 0], d @ x[0, 0])
    assert close(strided.mv(w, x[0, 0]), d @ x[0, 0]) and close(strided.mm(x[0], w.T), x[0] @ d.T)
    assert close(w @ strided.ones(64, 5), d @ strided.ones(64, 5)) and close(strided.ones(4, 6) @ w, strided.ones(4, 6) @ d)
    assert close(strided.randn(2, 4, 6).mul(0).add(1) @ w, strided.ones(2, 4, 6) @ d)
    assert close(F.linear(x.transpose(1, 2).contiguous().transpose(1, 2), w), x @ d.T) and close(F.linear(x[:, :, ::1][:, 1:], w), x[:, 1:] @ d.T)
    assert close(F.linear(x, w[2:5]), x @ d[2:5].T) and close(F.linear(x, w[[4, 0]]), x @ d[[4, 0]].T) and close(F.linear(x, w[::2]), x @ d[::2].T)
    assert F.linear(strided.zeros(0, 64), w).shape == (0, 6) and F.linear(x, w[:0]).shape == (2, 3, 0)
    assert F.linear(strided.empty(2, 64, device="meta"), w).is_meta
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        F.linear(strided.randn(2, 60), w)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        strided.randn(2, 60) @ w.T
    with pytest.raises(RuntimeError, match="float32, bfloat16 or float16"):
        F.linear(strided.ones(2, 64, dtype=strided.int32), w)
    with pytest.raises(NotImplementedError, match=r"w\[0\]"):
        x @ strided.quantize(strided.randn(2, 6, 64), "mxfp4").mT  # several matrices
    with pytest.raises(NotImplementedError, match="dequantize"):
        w @ w.T
    with pytest.raises(RuntimeError, match="bias"):
        F.linear(x, w, strided.ones(5))


def test_gradient_of_the_input():
    w = strided.quantize(strided.randn(6, 64), "int4_g32")
    x, b = strided.randn(3, 64, requires_grad=True), strided.randn(6, requires_grad=True)
    g = strided.randn(3, 6)
    F.linear(x, w, b).backward(g)
    assert (x.grad - g @ w.dequantize()).abs().max() < 1e-5 and (b.grad - g.sum(0)).abs().max() < 1e-6


def test_threads_agree():
    w, x = strided.quantize(strided.randn(200, 1024), "mxfp4"), strided.randn(2, 1024)
    y = strided.quantize(strided.randn(200, 1024), "mxfp8_e4m3")
    before, results = strided.get_num_threads(), []
    try:
        for threads in (1, 3):
            strided.set_num_threads(threads)
            results.append((F.linear(x, w), F.linear(x, y)))
    finally:
        strided.set_num_threads(before)
    assert all((a == b).all() for a, b in zip(*results))


def test_no_unpacked_copy():
    """What a product takes beside its result: nothing from the allocator; the kernels' scratch is a few rows."""
    w = strided.quantize(strided.randn(2048, 1024), "mxfp4")
    unpacked = 2048 * 1024 * 4
    for m in (1, 16, MOST, MOST + 200):
        x = strided.randn(m, 1024)
        F.linear(x, w)
        strided.reset_peak_memory_stats()
        before = strided.max_memory_allocated()
        y = F.linear(x, w)
        extra = strided.max_memory_allocated() - before - y.nbytes
        assert extra == 0 if m <= MOST else extra < unpacked * 2 // 3, (m, extra)


def test_modules():
    model = nn.Sequential(nn.Embedding(20, 64), nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 8, bias=False))
    plain = nn.Sequential(nn.Embedding(20, 64), nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 8, bias=False))
    plain.load_state_dict(model.state_dict())
    for i, name in ((0, "mxint8"), (1, "mxfp4"), (3, "int8_g32")):
        model[i].weight = nn.Parameter(strided.quantize(model[i].weight, name), requires_grad=False)
        with strided.no_grad():
            plain[i].weight.copy_(model[i].weight.dequantize())
    tokens = strided.tensor([[1, 2, 19], [0, 5, 5]])
    assert (model(tokens) - plain(tokens)).abs().max() < 1e-5
    with strided.autocast("cpu"):
        assert model(tokens).dtype is strided.bfloat16
    model.half().float().to("cpu")
    assert model[1].weight.dtype == strided.mxfp4 and isinstance(model[1].weight, nn.Parameter)
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        nn.Parameter(model[1].weight.detach())
