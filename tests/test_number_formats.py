"""Every number format against exact arithmetic and ml_dtypes: decoding, rounding, limits, packed storage, and what operators make of them."""

import copy
import importlib.util
import io
import itertools
import math
import os
import pathlib
import pickle
import subprocess
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import strided as torch
from strided import dtypes
from strided.errors import PackedOperand
from strided.io import safetensors

ROOT = pathlib.Path(__file__).parent.parent
FLOATS = [d for d in dtypes.all_dtypes() if d.encoding is not None and d.bits <= 16]
SMALL_FLOATS = [d for d in FLOATS if d.bits <= 8]
PACKED = [d for d in dtypes.all_dtypes() if d.packed]
SMALL_INTS = [d for d in PACKED if d.kind != "float"]
by_name = lambda d: d.name if hasattr(d, "name") else None


def codes_of(dtype):
    return np.arange(2**dtype.bits, dtype=np.uint8 if dtype.bits <= 8 else np.uint16)


def numpy_type(dtype):
    return np.dtype(getattr(ml_dtypes, dtype.name, np.float16))


def all_values(dtype):
    """Every finite number of a format, ascending."""
    values = {dtype.encoding.decode(int(c)) for c in codes_of(dtype)}
    return sorted(v for v in values if math.isfinite(v))


def encoded(values, dtype):
    """Codes of float32 values as kernels store them."""
    held = torch.from_numpy(np.ascontiguousarray(values, np.float32)).to(dtype.unpacked)
    return held.view(torch.uint8 if dtype.bits <= 8 else torch.uint16).numpy()


def wrapped(value, dtype):
    value = int(value) & (2**dtype.bits - 1)
    return value - 2**dtype.bits if dtype.is_signed and value >> (dtype.bits - 1) else value


# ---- codes and numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=by_name)
def test_every_code_decodes_as_in_ml_dtypes(dtype):
    codes = codes_of(dtype)
    expected = codes.view(numpy_type(dtype)).astype(np.float32)
    held = torch.from_numpy(codes).view(dtype.unpacked)
    for values in (held.float().numpy(), np.array(held.tolist(), np.float32), np.array([dtype.encoding.decode(int(c)) for c in codes], np.float32)):
        assert np.array_equal(np.isnan(values), np.isnan(expected))
        numbers = ~np.isnan(expected)
        assert np.array_equal(values[numbers].view(np.uint32), expected[numbers].view(np.uint32))  # the sign of zero, too
    assert np.array_equal([dtype.encoding.is_nan(int(c)) for c in codes], np.isnan(expected))


@pytest.mark.parametrize("dtype", FLOATS, ids=by_name)
def test_every_number_and_every_midpoint_rounds_to_even(dtype):
    pairs = list(itertools.pairwise(all_values(dtype)))
    if len(pairs) > 256:  # some of the 16-bit formats' numbers: both ends, around 0, and all over
        pairs = [*pairs[:64], *pairs[-64:], *pairs[len(pairs) // 2 - 64 : len(pairs) // 2 + 64], *pairs[::509]]
    middle = [float((Fraction(a) + Fraction(b)) / 2) for a, b in pairs]
    around = np.array([*(a for a, _ in pairs), pairs[-1][1], *middle], np.float32)
    values = np.concatenate([around, np.nextafter(around, np.float32(np.inf)), np.nextafter(around, np.float32(-np.inf))])
    assert encoded(values, dtype).tolist() == [dtype.encoding.encode(float(v)) for v in values]
    if dtype is not dtypes.float8_e8m0fnu:  # which is no format of numbers with a sign: halves go up there
        for (a, b), m in zip(pairs, middle):
            even = a if dtype.encoding.encode(a) % 2 == 0 else b
            assert dtype.encoding.decode(dtype.encoding.encode(m)) == even or m == 0


@pytest.mark.parametrize("dtype", FLOATS, ids=by_name)
def test_a_stratified_million_of_floats_encodes_as_in_ml_dtypes(dtype):
    rng = np.random.default_rng(dtype.bits)
    exponents = np.repeat(np.arange(512, dtype=np.uint32) << 23, 1953)  # every sign and exponent of float32
    shifts = rng.integers(0, 24, exponents.size, dtype=np.uint32)  # mantissas with long runs of zeros: ties
    mantissas = (rng.integers(0, 2**23, exponents.size, dtype=np.uint32) >> shifts << shifts) & 0x7FFFFF
    values = (exponents | mantissas).view(np.float32)
    with np.errstate(all="ignore"):
        expected = values.astype(numpy_type(dtype)).view(np.uint8 if dtype.bits <= 8 else np.uint16)
    nan, sign = np.isnan(values), (np.signbit(values) * dtype.encoding.sign_bit).astype(expected.dtype)
    if dtype is dtypes.float8_e4m3fn:  # PyTorch's cast saturates
        expected = np.where(~nan & (np.abs(values) > 448), 0x7E | sign, expected)
    if dtype is dtypes.float8_e8m0fnu:  # PyTorch's cast drops the sign
        with np.errstate(all="ignore"):
            expected = np.where(values == 0, 0, np.abs(values).astype(numpy_type(dtype)).view(np.uint8))
    got = encoded(values, dtype)
    assert np.array_equal(got[~nan], expected[~nan])
    if dtype.encoding.nan_code is None:
        assert (got[nan] == dtype.encoding.sign_bit).all()
    else:
        assert all(dtype.encoding.is_nan(int(c)) for c in np.unique(got[nan]))


@pytest.mark.parametrize("name, value, code", [
    ("float8_e4m3fn", math.inf, 0x7E), ("float8_e4m3fn", -1e9, 0xFE), ("float8_e4m3fn", math.nan, 0x7F), ("float8_e5m2", 61440.0, 0x7C), ("float8_e5m2", 61439.0, 0x7B),
    ("float8_e5m2", -math.inf, 0xFC), ("float8_e4m3fnuz", 248.0, 0x80), ("float8_e4m3fnuz", 247.9, 0x7F), ("float8_e4m3fnuz", -0.0, 0), ("float8_e5m2fnuz", math.inf, 0x80),
    ("float8_e8m0fnu", 0.0, 0), ("float8_e8m0fnu", -1.0, 127), ("float8_e8m0fnu", 1.5, 128), ("float8_e8m0fnu", 3.0, 129), ("float8_e8m0fnu", 3.4e38, 255),
    ("float6_e2m3fn", 100.0, 0x1F), ("float6_e3m2fn", -math.inf, 0x3F), ("float6_e2m3fn", math.nan, 0x20), ("float4_e2m1fn", 5.0, 6), ("float4_e2m1fn", 0.25, 0),
    ("float4_e2m1fn", 0.75, 2), ("float4_e2m1fn", -0.0, 8), ("float4_e2m1fn", math.nan, 8), ("float16", 65520.0, 0x7C00), ("bfloat16", 3.4e38, 0x7F80),
])  # fmt: skip
def test_ends_of_the_ranges(name, value, code):
    dtype = getattr(torch, name)
    assert encoded([value], dtype).tolist() == [code] == [dtype.encoding.encode(value)]


def test_overflow_by_another_rule():
    e4m3, e5m2 = torch.float8_e4m3fn.encoding, torch.float8_e5m2.encoding
    assert e4m3.encode(1e9, "nan") == 0x7F and e4m3.encode(464.0, "nan") == 0x7E and e5m2.encode(-1e9, "saturate") == 0xFB
    with pytest.raises(ValueError, match="only saturate"):
        torch.float4_e2m1fn.encoding.encode(10.0, "nan")


def test_float64_rounds_through_float32():
    assert torch.tensor([1 + 2.0**-11 + 2.0**-40], dtype=torch.float64).to(torch.float16).item() == 1.0  # twice: NumPy gives 1.001


@pytest.mark.parametrize("dtype", [d for d in dtypes.all_dtypes() if d.encoding is not None], ids=by_name)
def test_finfo_follows_from_the_encoding(dtype):
    info, theirs = torch.finfo(dtype), ml_dtypes.finfo(numpy_type(dtype) if dtype.bits <= 16 else dtype.numpy)
    assert (info.bits, info.max, info.smallest_normal) == (dtype.bits, float(theirs.max), float(theirs.smallest_normal))
    assert info.min == (float(theirs.min) if dtype.is_signed else info.smallest_normal)
    assert info.eps == (0.125 if dtype is torch.float8_e5m2fnuz else float(theirs.eps)) and info.dtype == dtype.name


@pytest.mark.parametrize("dtype", SMALL_INTS, ids=by_name)
def test_iinfo(dtype):
    info = torch.iinfo(dtype)
    assert (info.min, info.max) == ((-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if dtype.is_signed else (0, 2**dtype.bits - 1))


# ---- packed storage --------------------------------------------------------------------------------------------------------


def random_values(dtype, count, seed=0):
    rng = np.random.default_rng(seed)
    if dtype.kind == "float":
        return rng.choice(all_values(dtype), count).tolist()
    info = torch.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, count).tolist()


@pytest.mark.parametrize("dtype", PACKED, ids=by_name)
def test_storage_is_packed_and_views_begin_anywhere(dtype):
    for count in (0, 1, 2, 3, 7, 8, 9, 31, 64, 65, 1000):
        values = random_values(dtype, count, count)
        x = torch.tensor(values, dtype=torch.float32).to(dtype)
        assert x.nbytes == x.untyped_storage().nbytes() == (count * dtype.bits + 7) // 8 and x.itemsize == x.element_size() == 1
        assert x.tolist() == values and x.float().tolist() == values
        for start, step in itertools.product((0, 1, 2, 3, 5), (1, 2, 3)):
            view = x[start::step]
            assert view.tolist() == values[start::step] and view.clone().tolist() == values[start::step]
            assert view.numel() == 0 or view.storage_offset() == start
        if count:
            assert x[-1].item() == values[-1] and x[count // 2].data_ptr() == x.data_ptr() + count // 2 * dtype.bits // 8


@pytest.mark.parametrize("dtype", PACKED, ids=by_name)
def test_bits_lie_from_the_lowest_up(dtype):
    values = random_values(dtype, 24)
    x = torch.tensor(values, dtype=torch.float32).to(dtype)
    codes = [dtype.encoding.encode(v) if dtype.kind == "float" else v % 2**dtype.bits for v in values]
    stream = sum(code << (dtype.bits * k) for k, code in enumerate(codes))
    assert bytes(x.untyped_storage().tolist()) == stream.to_bytes(3 * dtype.bits, "little")
    odd = x[:3].clone()
    assert odd.untyped_storage().tolist()[-1] >> (3 * dtype.bits - 1) % 8 >> 1 == 0  # bits behind the last element


@pytest.mark.parametrize("dtype", [torch.int4, torch.uint1, torch.float6_e3m2fn, torch.int3], ids=by_name)
def test_writing_leaves_the_neighbours_alone(dtype):
    values = random_values(dtype, 75)
    for start, stop, step in ((1, 2, 1), (3, 70, 1), (0, 75, 2), (5, 60, 7), (2, 3, 1), (8, 16, 1), (0, 75, 1)):
        x = torch.tensor(values, dtype=torch.float32).to(dtype)
        new = random_values(dtype, len(range(start, stop, step)), 9)
        x[start:stop:step] = torch.tensor(new, dtype=torch.float32).to(dtype)
        expected = list(values)
        expected[start:stop:step] = new
        assert x.tolist() == expected


def test_large_tensors_pack_in_parts():
    for dtype in (torch.int4, torch.float6_e2m3fn, torch.uint2):
        values = np.array(random_values(dtype, 600_007), np.float32)
        x = torch.from_numpy(values).to(dtype)
        for threads in (1, 2, 3):
            before = torch.get_num_threads()
            torch.set_num_threads(threads)
            try:
                assert np.array_equal(x.float().numpy(), values)
                assert np.array_equal(x[5:].clone().float().numpy(), values[5:])
                y = torch.zeros(600_010, dtype=dtype)
                y[3:] = x
                assert np.array_equal(y.float().numpy()[3:], values) and not y[:3].float().any()
            finally:
                torch.set_num_threads(before)


def test_storages_and_shared_memory():
    x = torch.arange(-8, 8, dtype=torch.int4)
    assert x[3:5].storage().tolist() == x.tolist() and len(x.storage()) == 16 and x.storage()[2] == -6
    y = x.clone()
    window = y.share_memory_()
    assert window.tolist() == x.tolist() and y.is_shared() and y[5].item() == -3
    z = torch.empty(0, dtype=torch.int4).set_(x.untyped_storage(), 3, (4,), (2,))
    assert z.tolist() == x[3:11:2].tolist() and z.storage_offset() == 3
    z.zero_()
    assert x.tolist() == [-8, -7, -6, 0, -4, 0, -2, 0, 0, 0, 2, 3, 4, 5, 6, 7]
    assert x.as_strided((2, 3), (8, 1), 1).tolist() == [[-7, -6, 0], [0, 2, 3]]
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 8"):
        x.as_strided((17,), (1,), 0)


def test_dimensions_and_strides():
    x = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4).remainder(8).to(torch.uint3)
    dense = x.float()
    assert x.stride() == (12, 4, 1) and x.nbytes == 9
    for view in (lambda t: t.permute(2, 0, 1), lambda t: t[:, 1:, ::2], lambda t: t.transpose(0, 2)[1:], lambda t: t.select(1, 2), lambda t: t.unfold(2, 2, 1), lambda t: t[0].expand(5, 3, 4)):
        assert view(x).stride() == view(dense).stride() and view(x).tolist() == view(dense).tolist()
        assert view(x).contiguous().tolist() == view(dense).tolist() and view(x).reshape(-1).tolist() == view(dense).reshape(-1).tolist()


def test_views_of_bytes():
    data = torch.tensor([0x21, 0x43, 0x65, 0x87], dtype=torch.uint8)
    x = data.view(torch.uint4)
    assert x.tolist() == [1, 2, 3, 4, 5, 6, 7, 8] and x.view(torch.int4).tolist() == [1, 2, 3, 4, 5, 6, 7, -8]
    data[0] = 0xFF
    assert x[:3].tolist() == [15, 15, 3]
    assert x[4:].view(torch.uint8).tolist() == [0x65, 0x87] and x.view(2, 4).view(torch.uint8).tolist() == [[0xFF, 0x43], [0x65, 0x87]]
    assert x.view(torch.float4_e2m1fn)[2:6].tolist() == [1.5, 2.0, 3.0, 4.0] and x.view(torch.int16).tolist() == [0x43FF, 0x8765 - 65536]
    assert data.view(torch.uint2).numel() == 16 and data.view(torch.uint1)[:8].tolist() == [1] * 8
    pair = data.view(torch.float4_e2m1fn_x2)
    assert pair.shape == (4,) and pair.view(torch.float4_e2m1fn).shape == (8,)
    for bad, sentence in ((lambda: x[1:3].view(torch.uint8), "self.storage_offset\\(\\) must be divisible by 2"), (lambda: x[:7].view(torch.uint8), "self.size\\(-1\\) must be divisible by 2"),
                          (lambda: x[::2].view(torch.uint8), "self.stride\\(-1\\) must be 1"), (lambda: x[0].view(torch.uint8), "self.dim\\(\\) cannot be 0"),
                          (lambda: data.view(torch.float6_e2m3fn), "self.size\\(-1\\) must be divisible by 3")):  # fmt: skip
        with pytest.raises(RuntimeError, match=sentence):
            bad()


def test_save_load_pickle_and_deepcopy_share_storages():
    x = torch.arange(16, dtype=torch.float32).to(torch.uint4).view(4, 4)
    parts = {"all": x, "window": x[1:, 1:3], "six": torch.linspace(-7, 7, 11).to(torch.float6_e2m3fn)}
    file = io.BytesIO()
    torch.save(parts, file)
    file.seek(0)
    for loaded in (torch.load(file), pickle.loads(pickle.dumps(parts)), copy.deepcopy(parts)):
        for name, t in parts.items():
            assert loaded[name].dtype is t.dtype and loaded[name].tolist() == t.tolist() and loaded[name].stride() == t.stride()
        assert loaded["all"].untyped_storage().data_ptr() == loaded["window"].untyped_storage().data_ptr()
        assert loaded["six"].untyped_storage().nbytes() == 9


def test_safetensors_hold_packed_floats(tmp_path):
    six, four = torch.arange(8.0).to(torch.float6_e3m2fn).reshape(2, 4), torch.tensor([0.5, 6.0, -1.5, 3.0]).to(torch.float4_e2m1fn)
    path = tmp_path / "packed.safetensors"
    safetensors.save_file({"six": six, "four": four}, path)
    data = path.read_bytes()
    assert len(data) - 8 - int.from_bytes(data[:8], "little") == 6 + 2
    loaded = safetensors.load_file(path)
    assert loaded["six"].dtype is torch.float6_e3m2fn and loaded["six"].tolist() == six.tolist()
    assert loaded["four"].dtype is torch.float4_e2m1fn_x2 and loaded["four"].view(torch.float4_e2m1fn).tolist() == four.tolist()  # pairs, as in PyTorch
    for bad in (six[0, 1:2], four[:3], four[1:3]):
        with pytest.raises(ValueError, match="no whole bytes"):
            safetensors.save_file({"bad": bad}, path)
    with pytest.raises(NotImplementedError, match="no name for"):
        safetensors.save_file({"int4": torch.ones(2, dtype=torch.int4)}, path)


def test_pairs_of_float4_are_moved_and_not_computed_with():
    x = torch.arange(8, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    for f in (lambda t: t.clone(), lambda t: t.view(2, 4).t().contiguous(), lambda t: torch.cat([t, t]), lambda t: t[torch.tensor([1, 0])], lambda t: torch.empty_like(t).copy_(t), lambda t: t[::3]):
        assert f(x).dtype is torch.float4_e2m1fn_x2 and f(x).contiguous().view(torch.uint8).tolist() == f(x.view(torch.uint8)).tolist()
    assert repr(x[:3]) == "tensor([0, 1, 2], dtype=torch.float4_e2m1fn_x2)"  # its bytes, as PyTorch
    with pytest.raises(NotImplementedError, match="not implemented for 'Float4_e2m1fn_x2'"):
        x + x
    with pytest.raises(NotImplementedError, match="opaque"):
        x.tolist()


@pytest.mark.parametrize("dtype", [*PACKED, *SMALL_FLOATS, torch.bfloat16], ids=by_name)
def test_arrays(dtype):
    values = random_values(dtype, 9)
    x = torch.tensor(values, dtype=torch.float32).to(dtype)
    array = x.numpy()
    assert array.dtype == (getattr(ml_dtypes, dtype.name) if dtype.kind == "float" or dtype.bits in (2, 4) else f"{dtype.kind}8")
    assert array.astype(np.float32).tolist() == x.tolist()
    back = torch.tensor(array)
    assert back.tolist() == x.tolist() and (back.dtype is dtype or array.dtype.kind in "iu" and dtype.bits not in (2, 4, 8))
    if dtype.packed:
        array[0] = 0
        assert x.tolist() == values  # a copy
    else:
        array[0] = 1
        assert x[0] == 1


def test_kernels_refuse_packed_memory():
    from strided.dispatch import launch
    from strided.kernels import expr, index, map
    from strided.kernels.native import read_list

    x = torch.ones(8, dtype=torch.int4)
    with pytest.raises(PackedOperand):
        map.build_map(expr.param(0), [(torch.float32, x.spec.layout)], [(torch.int4, x.spec.layout)])
    with pytest.raises(PackedOperand):
        launch(index.build_copy(1, (8,), (1,), (1,)), x.ptr, x.ptr)
    with pytest.raises(PackedOperand):
        read_list(2, x.ptr, 8, 1)


# ---- operators --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2fnuz, torch.float6_e2m3fn, torch.float6_e3m2fn, torch.float4_e2m1fn], ids=by_name)
def test_arithmetic_is_float32_rounded_once(dtype):
    values = np.array(all_values(dtype), np.float32)
    a, b = (m.ravel() for m in np.meshgrid(values, values))
    x, y = torch.from_numpy(a).to(dtype), torch.from_numpy(b).to(dtype)
    with np.errstate(all="ignore"):
        for ours, exact in ((x + y, a + b), (x * y, a * b), (x - y, a - b), (x / y, a / b), (torch.maximum(x, y), np.maximum(a, b)), (x * 1.5, a * np.float32(1.5))):
            assert ours.dtype is dtype
            expected = torch.from_numpy(exact.astype(np.float32)).to(dtype)
            assert np.array_equal(ours.float().numpy(), expected.float().numpy(), equal_nan=True)
    assert ((x < y).numpy() == (a < b)).all() and ((x == y).numpy() == (a == b)).all()


@pytest.mark.parametrize("dtype", [torch.int4, torch.uint4, torch.int2, torch.uint2, torch.uint1, torch.int5], ids=by_name)
def test_small_integers_wrap_at_their_width(dtype):
    info = torch.iinfo(dtype)
    every = np.arange(info.min, info.max + 1)
    a, b = (m.ravel() for m in np.meshgrid(every, every))
    x, y = torch.from_numpy(a).to(dtype), torch.from_numpy(b).to(dtype)
    wrap = np.vectorize(lambda v: wrapped(v, dtype))
    safe = np.where(b == 0, 1, b)
    for ours, exact in ((x + y, a + b), (x * y, a * b), (x - y, a - b), (-x, -a), (~x, ~a), (x & y, a & b), (x ^ y, a ^ b), (torch.minimum(x, y), np.minimum(a, b)),
                        (x // torch.from_numpy(safe).to(dtype), a // safe), (x % torch.from_numpy(safe).to(dtype), a % safe), (x + 1, a + 1)):  # fmt: skip
        assert ours.dtype is dtype and np.array_equal(ours.long().numpy(), wrap(exact))
    assert ((x > y).numpy() == (a > b)).all()
    assert (x / torch.from_numpy(safe).to(dtype)).dtype is torch.float32 and (x * 2.5).tolist() == (a * 2.5).tolist()
    total = x.sum()
    assert total.dtype is torch.int64 and total.item() == a.sum() and x.cumsum(0).tolist() == a.cumsum().tolist()


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.float8_e4m3fn, torch.float6_e3m2fn, torch.float4_e2m1fn], ids=by_name)
def test_reductions_rows_and_products_round_once(dtype):
    x = torch.tensor(random_values(dtype, 35), dtype=torch.float32).reshape(5, 7).clamp(-6, 6).to(dtype)
    wide = x.float()
    same = lambda ours, exact: ours.dtype is dtype and ours.tolist() == exact.to(dtype).tolist()
    assert same(x.sum(), wide.sum()) and same(x.mean(1), wide.mean(1)) and same(x.amax(0), wide.amax(0)) and same(torch.softmax(x, -1), torch.softmax(wide, -1))
    assert same(x @ x.t(), wide @ wide.t()) and same(x.cumsum(1), wide.cumsum(1)) and same(torch.exp(x), torch.exp(wide)) and same(x.prod(1), wide.prod(1))
    assert same(torch.nn.functional.layer_norm(x, (7,)), torch.nn.functional.layer_norm(wide, (7,)))
    assert x.argmax(1).tolist() == wide.argmax(1).tolist() and x.sum(dtype=torch.float32).dtype is torch.float32


@pytest.mark.parametrize("dtype", [torch.int4, torch.float6_e2m3fn, torch.uint2, torch.float8_e4m3fnuz], ids=by_name)
def test_moving_data_moves_codes(dtype):
    x = torch.tensor(random_values(dtype, 24), dtype=torch.float32).reshape(4, 6).to(dtype)
    wide, index, columns = x.float(), torch.tensor([3, 0, 0]), torch.tensor([[0, 5, 2]] * 4)
    for f in (lambda t: t[index], lambda t: t[:, index], lambda t: t.gather(1, columns), lambda t: t.index_select(1, index), lambda t: t.flip(0), lambda t: t.roll(1, 1), lambda t: t.repeat(2, 1),
              lambda t: torch.cat([t, t[1:]]), lambda t: torch.stack([t, t], 1), lambda t: t.sort(1).values, lambda t: t.sort(0).indices.to(torch.int8), lambda t: t.topk(2).values, lambda t: t.unique(),
              lambda t: torch.where(t > 0, t, t.flip(1)), lambda t: t.masked_fill(t > 0, 0), lambda t: t[t > 0], lambda t: t.tril(), lambda t: torch.zeros_like(t).scatter_(1, columns, t[:, :3]),
              lambda t: t.clone().index_put_((index,), t[:3]), lambda t: t.clone().index_fill_(0, index, 1), lambda t: t.split(4, 1)[1], lambda t: t.diagonal(), lambda t: torch.nn.functional.embedding(index, t)):  # fmt: skip
        ours, theirs = f(x), f(wide)
        assert ours.dtype in (dtype, theirs.dtype) and ours.tolist() == theirs.tolist()


def test_in_place_and_out():
    x = torch.zeros(9, dtype=torch.int4)
    window = x[1:6]
    version = x._version
    window.add_(7)
    assert x._version == version + 1 and x.tolist() == [0, 7, 7, 7, 7, 7, 0, 0, 0]
    window += 1
    x[::4] = 3
    x[x == 7] = 2
    assert x.tolist() == [3, -8, -8, -8, 3, -8, 0, 0, 3]
    torch.add(x, x, out=x)
    assert x.tolist() == [6, 0, 0, 0, 6, 0, 0, 0, 6]
    out = torch.empty(3)
    assert torch.sub(x[:3], 1, out=out) is out and out.tolist() == [5.0, -1.0, -1.0]
    assert x.fill_(5).sum() == 45 and x.zero_().sum() == 0 and x.copy_(torch.arange(9.0)).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, -8]
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.mul_(1.5)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.zeros(1, dtype=torch.int4).expand(4).add_(1)
    x.resize_(4)
    assert x.tolist() == [0, 1, 2, 3]


def test_gradients_are_of_the_format():
    for dtype in (torch.float4_e2m1fn, torch.float6_e3m2fn, torch.float8_e5m2):
        x = torch.tensor([0.5, 1.0, -1.5, 3.0]).to(dtype).requires_grad_()
        loss = (x * x).sum()
        loss.backward()
        assert loss.dtype is dtype and x.grad.dtype is dtype and x.grad.tolist() == [1.0, 2.0, -3.0, 6.0]
        y = x.detach().clone().requires_grad_()
        (y.float() * 3).sum().backward()
        assert y.grad.tolist() == [3.0] * 4 and y.grad.dtype is dtype
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
            y.add_(1)
        z = y * 1
        z.mul_(2)
        z[0] = 0
        z.sum().backward()
        assert y.grad.tolist() == torch.tensor([3.0, 5.0, 5.0, 5.0]).to(dtype).tolist()


def test_creation():
    assert torch.arange(-8, 8, dtype=torch.int4).tolist() == list(range(-8, 8))
    assert torch.ones(3, dtype=torch.float4_e2m1fn).tolist() == [1.0] * 3 and torch.full((2,), 3, dtype=torch.uint2).tolist() == [3, 3]
    assert torch.eye(3, dtype=torch.uint1).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]] and torch.zeros_like(torch.ones(5, dtype=torch.int4)).nbytes == 3
    for bad in (lambda: torch.tensor([8], dtype=torch.int4), lambda: torch.full((2,), -9, dtype=torch.int4), lambda: torch.ones(2, dtype=torch.uint1).fill_(2)):
        with pytest.raises(RuntimeError, match="^value cannot be converted to type u?int[14] without overflow"):
            bad()
    meta = torch.empty(3, 5, dtype=torch.int4, device="meta")
    assert (meta + meta).dtype is torch.int4 and meta.nbytes == 8 and meta[1:].storage_offset() == 5 and meta.float().dtype is torch.float32
    assert repr(torch.arange(3, dtype=torch.int4)) == "tensor([0, 1, 2], dtype=torch.int4)"
    assert repr(torch.tensor([0.5, 6.0]).to(torch.float4_e2m1fn)) == "tensor([0.5000, 6.0000], dtype=torch.float4_e2m1fn)"


@pytest.mark.parametrize("dtype", [*SMALL_FLOATS, torch.bfloat16], ids=by_name)
def test_random_fills_are_float32s_rounded(dtype):
    torch.manual_seed(3)
    drawn = torch.rand(50)
    torch.manual_seed(3)
    held = torch.rand(50, dtype=dtype)
    rounded = drawn.to(dtype)
    expected = [0.0 if v == 1 else v for v in rounded.tolist()]
    if dtype is torch.float8_e8m0fnu:
        expected = [2.0**-127 if v == 0 else v for v in expected]
    assert held.dtype is dtype and held.tolist() == expected
    torch.manual_seed(3)
    drawn = torch.randn(48)
    torch.manual_seed(3)
    assert torch.randn(48, dtype=dtype).tolist() == drawn.to(dtype).tolist()


def test_random_integers():
    x = torch.randint(-8, 8, (1000,), dtype=torch.int4)
    assert sorted(set(x.tolist())) == list(range(-8, 8)) and set(torch.randint(0, 2, (100,), dtype=torch.uint1).tolist()) == {0, 1}
    with pytest.raises(RuntimeError, match="to - 1 is out of bounds"):
        torch.randint(0, 9, (2,), dtype=torch.int4)


def test_promotion():
    e4m3, int4 = torch.ones(2).to(torch.float8_e4m3fn), torch.ones(2, dtype=torch.int4)
    assert (e4m3 + 1).dtype is (e4m3 * 2.5).dtype is (e4m3 + torch.tensor(1.0)).dtype is torch.float8_e4m3fn
    assert (int4 + 1).dtype is torch.int4 and (int4 + 1.5).dtype is torch.float32 and (int4 + torch.ones(2)).dtype is torch.float32
    for a, b in ((e4m3, torch.ones(2)), (e4m3, e4m3.to(torch.float8_e5m2)), (e4m3, int4), (torch.ones(2).to(torch.float4_e2m1fn), torch.ones(2)), (torch.ones(2).to(torch.float6_e2m3fn), int4)):
        with pytest.raises(RuntimeError, match="^Promotion for Float8 Types is not supported, attempted to promote"):
            a + b
    for a, b in ((int4, torch.ones(2, dtype=torch.int8)), (int4, torch.ones(2, dtype=torch.uint4)), (int4, torch.ones(2, dtype=torch.int64))):
        with pytest.raises(RuntimeError, match="^Promotion for"):
            a + b


def test_products_of_integers_and_bools():
    rng = np.random.default_rng(1)
    for dtype in (torch.uint16, torch.uint32, torch.uint64, torch.int4, torch.uint2):
        high = 2**dtype.bits if dtype.bits < 64 else 2**63
        a, b = (rng.integers(0, high, shape).astype(object) for shape in ((5, 70), (70, 33)))
        exact = np.vectorize(lambda v, d=dtype: wrapped(v, d))(a @ b)
        make = lambda m, d=dtype: torch.from_numpy(m.astype(np.uint64)).to(torch.int64).to(d)
        assert (make(a) @ make(b)).tolist() == exact.tolist()
    a, b = rng.random((9, 600)) < 0.05, rng.random((600, 40)) < 0.02
    assert np.array_equal((torch.from_numpy(a) @ torch.from_numpy(b)).numpy(), a @ b)
    assert torch.ones(1, 512, dtype=torch.bool).matmul(torch.ones(512, 1, dtype=torch.bool)).item() is True  # 512 is 0 in a byte


NEW_FORMAT = """
import importlib.machinery, importlib.util, pathlib, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "strided.dtypes":
            return importlib.util.spec_from_loader(name, self)
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        source = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
        for line in ('float8_e3m4 = _define("float8_e3m4", "f8e3m4", 8, "float", None, Encoding(1, 3, 4, 3), compute=float32)',
                     'float5_e2m2fn = _define("float5_e2m2fn", "f5e2m2fn", 5, "float", None, Encoding(1, 2, 2, 1, "none", "saturate"), compute=float32)'):
            source = source.replace("# fmt: on", line + "\\n# fmt: on", 1)
        exec(compile(source, sys.argv[1], "exec"), module.__dict__)

sys.meta_path.insert(0, Finder())
import ml_dtypes, numpy as np
import strided as torch

codes = np.arange(256, dtype=np.uint8)
x = torch.from_numpy(codes).view(torch.float8_e3m4)
expected = codes.view(ml_dtypes.float8_e3m4).astype(np.float32)
assert np.array_equal(x.float().numpy(), expected, equal_nan=True) and np.array_equal(x.tolist(), expected, equal_nan=True)
values = np.random.default_rng(0).standard_normal(1000, dtype=np.float32) * 6
assert torch.from_numpy(values).to(torch.float8_e3m4).view(torch.uint8).tolist() == values.astype(ml_dtypes.float8_e3m4).view(np.uint8).tolist()
assert (x[:16] + x[:16]).dtype is torch.float8_e3m4 and torch.finfo(torch.float8_e3m4).max == 15.5
assert (torch.ones(3, 3).to(torch.float8_e3m4) @ torch.ones(3, 3).to(torch.float8_e3m4)).tolist() == [[3.0] * 3] * 3
five = torch.tensor([0.25, 7.0, -1.75, 9.0, 2.6]).to(torch.float5_e2m2fn)
assert five.tolist() == [0.25, 7.0, -1.75, 7.0, 2.5] and five.nbytes == 4 and (five * 2).tolist() == [0.5, 7.0, -3.5, 7.0, 5.0]
assert torch.rand(4, dtype=torch.float5_e2m2fn).dtype is torch.float5_e2m2fn
print(repr(five))
"""


def test_a_format_is_one_entry(tmp_path):
    """Two formats that are not here, each defined by one more line of dtypes.py, take part in everything."""
    environment = {**os.environ, "STRIDED_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", NEW_FORMAT, dtypes.__file__], capture_output=True, text=True, env=environment)
    assert done.stdout == "tensor([ 0.2500,  7.0000, -1.7500,  7.0000,  2.5000],\n       dtype=torch.float5_e2m2fn)\n", done.stderr


# ---- the document ------------------------------------------------------------------------------------------------------------


def test_the_tables_in_the_docs_are_current():
    spec = importlib.util.spec_from_file_location("number_formats_tool", ROOT / "tools" / "number_formats.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.DOCUMENT.read_text(encoding="utf-8")
    assert tool.with_tables(text) == text, "run python tools/number_formats.py"
