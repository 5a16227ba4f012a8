"""Block formats: what quantize stores and dequantize returns, against the reference in NumPy (block_reference.py); bad input."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

import strided
from block_reference import MX, dequantize_gguf, dequantize_gpt_oss, quantize_int, quantize_mx, quantize_nvfp4
from strided import block_formats

RNG = np.random.default_rng(7)
ALL = [f for f in block_formats.all_formats() if f.writable]


def sample(rows, cols):
    """Numbers of many sizes: blocks of ordinary, huge and tiny ones, halves that round to even, zeros."""
    x = RNG.standard_normal((rows, cols)).astype(np.float32) * np.exp2(RNG.integers(-20, 20, (rows, 1))).astype(np.float32)
    x[0] = RNG.integers(-64, 64, cols) / 8  # many halves
    x[1] = 0
    x[2] *= np.float32(2.0**-130)
    x[3] = RNG.standard_normal(cols) * 2.0**120
    x[4, ::3] = -0.0
    return x


def same(a, b):
    return np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)


@pytest.mark.parametrize("rule", ["floor", "ceil", "even", "rceil"])
@pytest.mark.parametrize("name", [*MX, "mxint8"])
def test_mx_against_reference(name, rule):
    x = sample(9, 96)
    q = strided.quantize(strided.from_numpy(x), name, scale_rule=rule)
    elements, scales, held = quantize_mx(x, name, rule)
    assert same(q.parts[1].numpy()[..., 0], scales)
    got = q.dequantize().numpy()
    assert same(got, held.astype(np.float32))
    assert same(q.parts[0].numpy(), elements)


def test_all_codes_of_all_scales():
    for name in (*MX, "mxint8"):
        f = block_formats.parse(name)
        codes = RNG.integers(0, 256, (256, 8, f.parts[0].nbytes), dtype=np.uint8)
        scales = np.broadcast_to(np.arange(256, dtype=np.uint8)[:, None], (256, 8)).copy()
        got = strided.as_blocks(name, strided.from_numpy(codes), strided.from_numpy(scales)).dequantize().numpy()
        bits = np.unpackbits(codes.reshape(256, -1), axis=1, bitorder="little").reshape(256, 256, -1)  # [scale, element, bit]
        width = f.element.bits
        each = (bits * (1 << np.arange(width))).sum(-1).astype(np.uint8)
        from block_reference import decode_float

        numbers = each.view(np.int8) / 64 if name == "mxint8" else decode_float(each, MX[name])
        with np.errstate(over="ignore"):
            want = (numbers * np.exp2(np.arange(256.0) - 127)[:, None]).astype(np.float32)
        want[255] = np.nan
        assert same(got, want), name


def test_gpt_oss_bit_for_bit():
    blocks = RNG.integers(0, 256, (3, 4, 5, 16), dtype=np.uint8)
    scales = RNG.integers(0, 255, (3, 4, 5), dtype=np.uint8)
    w = strided.as_blocks("mxfp4", strided.from_numpy(blocks), strided.from_numpy(scales))
    assert w.shape == (3, 4, 160) and w.nbytes == blocks.nbytes + scales.nbytes
    want = dequantize_gpt_oss(blocks, scales)
    assert w.dequantize().numpy().tobytes() == want.tobytes()
    assert w.parts[0].data_ptr() == blocks.ctypes.data  # in place
    assert same(w[1, 2:].dequantize().numpy(), want[1, 2:]) and same(w[:, 1].dequantize().numpy(), want[:, 1])
    assert same(w[2, :, 32:96].dequantize().numpy(), want[2, :, 32:96])
    assert same(w.dequantize(strided.bfloat16).float().numpy(), strided.from_numpy(want).bfloat16().float().numpy())


@pytest.mark.parametrize("given", [None, 0.013])
def test_nvfp4(given):
    x = sample(6, 64)[:3] if given else RNG.standard_normal((6, 64)).astype(np.float32)
    q = strided.quantize(strided.from_numpy(x), "nvfp4", tensor_scale=given)
    scale = np.float32(given) if given else np.float32(np.abs(x).max() / np.float32(448 * 6))
    assert q.tensor_scale.item() == scale
    elements, scales, held = quantize_nvfp4(x, scale)
    assert same(q.parts[1].numpy()[..., 0], scales) and same(q.parts[0].numpy(), elements)
    assert same(q.dequantize().numpy(), held)


def test_nvfp4_of_checkpoints():
    """ModelOpt's scale is multiplied by, compressed-tensors' is divided by; elements come as rows of bytes, scales as float8."""
    codes = RNG.integers(0, 256, (4, 24), dtype=np.uint8)
    scales = strided.from_numpy(RNG.integers(0, 127, (4, 3), dtype=np.uint8)).view(strided.float8_e4m3fn)
    a = strided.as_blocks("nvfp4", strided.from_numpy(codes), scales, tensor_scale=0.25)
    b = strided.as_blocks("nvfp4", strided.from_numpy(codes), scales, tensor_scale=strided.tensor([4.0]), reciprocal=True)
    assert a.shape == (4, 48) and same(a.dequantize().numpy(), b.dequantize().numpy())
    per_value = np.repeat(scales.float().numpy(), 16, 1)
    from block_reference import E2M1

    values = np.stack([E2M1[codes & 15], E2M1[codes >> 4]], -1).reshape(4, 48)
    assert same(a.dequantize().numpy(), values * (per_value * np.float32(0.25)))


@pytest.mark.parametrize("bits,zero,scale", list(itertools.product([4, 8], [False, True], ["float16", "bfloat16", "float32"])))
def test_grouped_integers(bits, zero, scale):
    import ml_dtypes

    dtype = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}[scale]
    for cols, group in ((128, 32), (130, 65), (77, None), (64, 64), (5, 1), (33, 3)):
        x = RNG.standard_normal((5, cols)).astype(np.float32)
        x[1] *= 1e-4
        x[2] = np.abs(x[2])
        x[3] = 0
        q = strided.quantize(strided.from_numpy(x), f"int{bits}", group=group, scale=scale, zero_point=zero)
        _, held = quantize_int(x, bits, group or cols, zero, dtype)
        assert same(q.dequantize().numpy(), held), (cols, group)
        assert q.nbytes == 5 * q.format.blocks(cols) * q.format.nbytes


def test_integers_of_checkpoints():
    codes = RNG.integers(0, 256, (6, 2, 32), dtype=np.uint8)
    scales = RNG.random((6, 2)).astype(np.float16)
    w = strided.as_blocks("int4_g64", strided.from_numpy(codes), strided.from_numpy(scales))
    signed = np.stack([codes & 15, codes >> 4], -1).reshape(6, 2, 64).astype(np.int32)
    signed = np.where(signed > 7, signed - 16, signed)
    assert same(w.dequantize().numpy(), (signed * scales.astype(np.float32)[..., None]).reshape(6, 128))


@pytest.mark.parametrize("name", [f.name for f in block_formats.all_formats() if not f.writable])
def test_gguf_blocks(name):
    f = block_formats.parse(name)
    raw = RNG.integers(0, 256, (40, f.nbytes), dtype=np.uint8)
    for _, at in [f.fields[name] for name in ("scale", "min") if name in f.fields]:
        raw[:, at : at + 2] = RNG.standard_normal(40).astype(np.float16)[:, None].view(np.uint8)
    w = strided.as_blocks(name, strided.from_numpy(raw.reshape(8, 5, -1)))
    assert w.shape == (8, 5 * f.block)
    assert w.dequantize().numpy().tobytes() == dequantize_gguf(raw, name).reshape(8, -1).tobytes()
    with pytest.raises(NotImplementedError, match="read only"):
        strided.quantize(strided.zeros(2, 256), name)


# ---- sizes ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.name)
def test_bits_and_bytes(f):
    x = strided.randn(3, 2 * f.block)
    q = x.to(f)
    assert q.dtype is f and q.nbytes == 6 * f.nbytes + 4 * f.tensor_scale and f.bits == 8 * f.nbytes / f.block
    assert repr(f) == f"torch.{f.name}" and block_formats.parse(f.name) == f
    assert {"mxfp4": 4.25, "mxfp6_e2m3": 6.25, "mxfp8_e5m2": 8.25, "mxint8": 8.25, "nvfp4": 4.5, "int4_g128": 4.125}.get(f.name, f.bits) == f.bits


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.name)
def test_empty_and_padded(f):
    for shape in ((0, 2 * f.block), (3, 0), (0,), (2, 0, 5)):
        q = strided.quantize(strided.zeros(shape), f) if shape[-1] != 5 else strided.quantize(strided.zeros(shape), f, pad=True)
        assert q.shape == shape and q.dequantize().shape == shape
    x = strided.randn(4, 2 * f.block + 5)
    with pytest.raises(ValueError, match=f"{2 * f.block + 5} elements, no multiple of the {f.block}"):
        strided.quantize(x, f)
    q = strided.quantize(x, f, pad=True)
    whole = strided.quantize(strided.cat([x, strided.zeros(4, f.block - 5)], 1), f, tensor_scale=q.tensor_scale)
    assert q.shape == x.shape and same(q.dequantize().numpy(), whole.dequantize()[:, : x.shape[1]].numpy())
    if f.zero != "zero":  # there the code of a zero is not 0, which is what lies behind a row's end
        assert all(same(a.numpy(), b.numpy()) for a, b in zip(q.parts, whole.parts))


@pytest.mark.parametrize("f", ALL, ids=lambda f: f.name)
def test_nan_and_infinity_make_a_block_nan(f):
    n = f.block
    for wild in (np.nan, np.inf, -np.inf):
        x = RNG.standard_normal((1, 3 * n)).astype(np.float32)
        x[0, n + 1] = wild
        y = strided.quantize(strided.from_numpy(x), f).dequantize().numpy()[0]
        x[0, n + 1] = 0
        z = strided.quantize(strided.from_numpy(x), f).dequantize().numpy()[0]
        assert np.isnan(y[n : 2 * n]).all() and same(y[:n], z[:n]) and same(y[2 * n :], z[2 * n :])


def test_sources():
    """Any strides, 16-bit floats and float64 come out as their float32 values do."""
    x = strided.randn(6, 4, 64)
    want = strided.quantize(x.permute(1, 0, 2).contiguous(), "mxfp4")
    got = strided.quantize(x.permute(1, 0, 2), "mxfp4")
    assert same(want.dequantize().numpy(), got.dequantize().numpy())
    got = strided.quantize(x.transpose(0, 2).contiguous().transpose(0, 2), "mxint8")
    assert same(strided.quantize(x, "mxint8").dequantize().numpy(), got.dequantize().numpy())
    for dtype in (strided.bfloat16, strided.float16, strided.float64):
        y = x.to(dtype)
        assert same(strided.quantize(y, "nvfp4").dequantize().numpy(), strided.quantize(y.float(), "nvfp4").dequantize().numpy())
    big = strided.randn(64, 96)[:, 32:]
    assert same(strided.quantize(big, "mxfp6_e2m3").dequantize().numpy(), strided.quantize(big.clone(), "mxfp6_e2m3").dequantize().numpy())


def test_threads_agree():
    x = strided.randn(300, 512)
    before = strided.get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            strided.set_num_threads(threads)
            q = [strided.quantize(x, f) for f in ("mxfp4", "int4", "mxfp6_e3m2")]
            results.append([p.numpy().tobytes() for t in q for p in t.parts] + [t.dequantize().numpy().tobytes() for t in q])
    finally:
        strided.set_num_threads(before)
    assert results[0] == results[1]


def test_float32_scales_never_become_infinite():
    x = np.zeros((2, 64), np.float32)
    x[0, 3] = 3e38
    q = strided.quantize(strided.from_numpy(x), "int4", group=64)
    assert np.isfinite(q.dequantize().numpy()).all()  # float16 scales end at 65504: the block saturates
    x[0, 3] = 1e-42
    assert np.isfinite(strided.quantize(strided.from_numpy(x), "int8", group=64, scale="float32").dequantize().numpy()).all()


# ---- bad input ------------------------------------------------------------------------------------------------------------------


def test_names():
    with pytest.raises(ValueError, match="did you mean mxfp6_e2m3 or mxfp6_e3m2"):
        strided.quantize(strided.zeros(32), "mxfp6")
    with pytest.raises(ValueError, match="did you mean mxfp4"):
        strided.quantize(strided.zeros(32), "mxpf4")
    for name in ("int4_g0", "int4_g", "int5_g32", "int4_g32_float8", "int4_g32_zero_zero", "int4_g" + "9" * 40, ""):
        with pytest.raises(ValueError, match="there is no block format"):
            block_formats.parse(name)
    with pytest.raises(TypeError):
        block_formats.parse(4)
    assert block_formats.parse("INT4_G32_BFLOAT16_ZERO") == strided.grouped_int(4, 32, strided.bfloat16, True)


@pytest.mark.parametrize("call,error,match", [
    (lambda x: strided.quantize(x, "mxfp4", scale_rule="up"), ValueError, "scale_rule"),
    (lambda x: strided.quantize(x, "nvfp4", scale_rule="ceil"), ValueError, "power"),
    (lambda x: strided.quantize(x, "mxfp4", tensor_scale=2.0), ValueError, "tensor_scale"),
    (lambda x: strided.quantize(x, "nvfp4", tensor_scale=0.0), ValueError, "positive"),
    (lambda x: strided.quantize(x, "mxfp4", zero_point=True), ValueError, "zero point"),
    (lambda x: strided.quantize(x, "int4", group=0), ValueError, "positive"),
    (lambda x: strided.quantize(x, "int4", scale="float64"), ValueError, "float32"),
    (lambda x: strided.quantize(x.int(), "mxfp4"), TypeError, "floating"),
    (lambda x: strided.quantize(strided.tensor(1.0), "mxfp4"), ValueError, "dimension"),
    (lambda x: strided.quantize([1.0], "mxfp4"), TypeError, "Tensor"),
    (lambda x: strided.as_blocks("mxfp4", x), ValueError, "bytes"),
    (lambda x: strided.as_blocks("mxfp4", x.to(strided.uint8)), ValueError, "needs scales"),
    (lambda x: strided.as_blocks("mxfp4", x.to(strided.uint8), x.to(strided.uint8)), ValueError, "scales are"),
    (lambda x: strided.as_blocks("mxfp4", x[:, :5].to(strided.uint8), x.to(strided.uint8)), ValueError, "multiple of 16"),
    (lambda x: strided.as_blocks("q4_0", x[:, :36].to(strided.uint8), x.to(strided.uint8)), ValueError, "leave scales out"),
    (lambda x: strided.dequantize(3), TypeError, "Tensor"),
])  # fmt: skip
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call(strided.ones(4, 64))


def test_the_tables_in_the_docs_are_current():
    path = Path(__file__).parent.parent / "tools" / "block_formats.py"
    spec = importlib.util.spec_from_file_location("block_formats_tool", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.DOCUMENT.read_text(encoding="utf-8")
    assert tool.with_tables(text) == text, "run python tools/block_formats.py"
