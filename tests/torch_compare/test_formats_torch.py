"""Number formats beside PyTorch 2.13: casts between all of its dtypes, limits, promotion, printing, and the operators that it has for float8."""

import itertools
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import strided
from strided import dtypes

FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"]
FLOATS = ["float64", "float32", "float16", "bfloat16", *FLOAT8]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"]


def stratified(count=1_000_000, seed=0):
    """float32 patterns: every sign and exponent, mantissas with long runs of zeros."""
    rng = np.random.default_rng(seed)
    exponents = np.repeat(np.arange(512, dtype=np.uint32) << 23, count // 512)
    shifts = rng.integers(0, 24, exponents.size, dtype=np.uint32)
    return (exponents | (rng.integers(0, 2**23, exponents.size, dtype=np.uint32) >> shifts << shifts)).view(np.float32)


def bits(t):
    width = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}[t.element_size()]
    return t.view(getattr(torch if isinstance(t, torch.Tensor) else strided, width)).numpy()


def same(ours, theirs):
    """Equal bits; any NaN is any other."""
    equal = bits(ours) == bits(theirs)
    if theirs.dtype.is_floating_point and not equal.all():
        nan = torch.isnan(theirs.float()).numpy() & np.isnan(np.array(ours.to(strided.float64).tolist()).reshape(equal.shape))
        equal |= nan
    return bool(equal.all())


@pytest.mark.parametrize("name", FLOATS[2:])
def test_float32_to_smaller(name):
    values = stratified()
    assert same(strided.from_numpy(values).to(getattr(strided, name)), torch.from_numpy(values).to(getattr(torch, name)))


@pytest.mark.parametrize("name", FLOATS[2:])
def test_every_code_to_float32_and_back(name):
    wide = name in ("float16", "bfloat16")
    codes = np.arange(2**16, dtype=np.uint16).view(np.int16) if wide else np.arange(2**8, dtype=np.uint8)
    ours, theirs = strided.from_numpy(codes).view(getattr(strided, name)), torch.from_numpy(codes).view(getattr(torch, name))
    assert same(ours.float(), theirs.float()) and same(ours.double(), theirs.double())
    assert same(ours.float().to(ours.dtype), theirs.float().to(theirs.dtype))
    assert repr(ours[:9]).replace("\n", "") == repr(theirs[:9]).replace("\n", "") and ours[3].item() == theirs[3].item()


@pytest.mark.parametrize("source, target", [p for p in itertools.product([*FLOATS, *INTEGERS], repeat=2) if "8_e" in "".join(p) or "uint" in "".join(p)])
def test_casts_between_all_pairs(source, target):
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.integers(-60, 60, 200), [0, 1, -1, 127, 100]]).astype(np.float32) * (0.25 if source in FLOATS else 1)
    if source.startswith("u") or target.startswith("u") or "e8m0" in source + target:
        values = np.abs(values)
    ours, theirs = strided.from_numpy(values).to(getattr(strided, source)), torch.from_numpy(values).to(getattr(torch, source))
    assert same(ours, theirs) and same(ours.to(getattr(strided, target)), theirs.to(getattr(torch, target)))


@pytest.mark.parametrize("name", FLOAT8)
def test_limits(name):
    ours, theirs = strided.finfo(getattr(strided, name)), torch.finfo(getattr(torch, name))
    assert repr(ours) == repr(theirs) and (ours.max, ours.min, ours.eps, ours.tiny, ours.bits) == (theirs.max, theirs.min, theirs.eps, theirs.tiny, theirs.bits)


def test_names_sizes_and_kinds():
    for dtype in dtypes.all_dtypes():
        theirs = getattr(torch, dtype.name, None)
        if theirs is not None:
            assert (dtype.itemsize, dtype.is_floating_point, dtype.is_complex) == (theirs.itemsize, theirs.is_floating_point, theirs.is_complex)
            assert repr(dtype) == repr(theirs)
    missing = {name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)} - set(dir(strided))
    assert missing <= {"bits16", "bits1x8", "bits2x4", "bits4x2", "bits8", "qint32", "qint8", "quint2x4", "quint4x2", "quint8"}


def test_promotion():
    names = [*FLOAT8, "float32", "float16", "int8", "uint8", "int64", "bool", "uint16", "uint32", "uint64", "complex64", "uint4", "uint1"]
    for a, b in itertools.product(names, repeat=2):
        try:
            expected = str(torch.promote_types(getattr(torch, a), getattr(torch, b)))
        except RuntimeError as error:
            with pytest.raises(RuntimeError) as caught:
                strided.promote_types(getattr(strided, a), getattr(strided, b))
            if "8_e" in a + b:
                assert str(caught.value) == str(error)
        else:
            assert str(strided.promote_types(getattr(strided, a), getattr(strided, b))) == expected, (a, b)


OPERATORS = {
    "abs": lambda t, x: x.abs(), "eq": lambda t, x: x == x.flip(0), "ne a number": lambda t, x: x != 1, "where": lambda t, x: t.where(x == x, x, x.flip(0)), "cat": lambda t, x: t.cat([x, x]),
    "stack": lambda t, x: t.stack([x, x], 1), "index": lambda t, x: x[t.tensor([2, 0])], "index_select": lambda t, x: x.index_select(0, t.tensor([1, 1])), "clone": lambda t, x: x.t().contiguous(),
    "flip": lambda t, x: x.flip(1), "roll": lambda t, x: x.roll(1, 0), "repeat": lambda t, x: x.repeat(2, 1), "fill_": lambda t, x: x.clone().fill_(3.3), "zeros_like": lambda t, x: t.zeros_like(x),
    "full": lambda t, x: t.full((3,), 2.7, dtype=x.dtype), "ones": lambda t, x: t.ones(3, dtype=x.dtype), "masked_fill": lambda t, x: x.masked_fill(x == 1, 0.3), "gather": lambda t, x: x.gather(1, t.tensor([[0], [1], [2], [0]])),
    "slice assignment": lambda t, x: x.clone().index_put_((t.tensor([0]),), x[1]), "tensor": lambda t, x: t.tensor([0.3, 500.0, -2.6], dtype=x.dtype), "tolist": lambda t, x: x.tolist(), "repr": lambda t, x: repr(x),
    "unfold": lambda t, x: x.unfold(1, 2, 1).contiguous(), "view as bytes": lambda t, x: x.view(t.uint8), "isnan": lambda t, x: t.isnan(x), "copy_": lambda t, x: t.empty(4, 3).copy_(x),
    "0-d promotes to it": lambda t, x: t.tensor(2.0) * x, "sum": lambda t, x: x.float().sum(), "split": lambda t, x: x.split(2)[1], "equal": lambda t, x: t.equal(x, x),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOAT8)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_that_pytorch_has(name, operator):
    values = np.array([[0.0, 1.0, -2.5], [448.0, 0.07, 3.0], [1.0, 1.0, 0.5], [-0.5, 20.0, 7.0]], np.float32)
    call = OPERATORS[operator]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            theirs = call(torch, torch.from_numpy(values).to(getattr(torch, name)))
        except (NotImplementedError, RuntimeError):
            pytest.skip("PyTorch has no answer")
    ours = call(strided, strided.from_numpy(values).to(getattr(strided, name)))
    if isinstance(theirs, torch.Tensor):
        assert str(ours.dtype) == str(theirs.dtype) and ours.shape == theirs.shape and ours.stride() == theirs.stride() and same(ours, theirs)
    else:
        assert str(ours) == str(theirs)


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_unsigned_arithmetic(name):
    rng = np.random.default_rng(2)
    a, b = (rng.integers(0, 2 ** int(name[4:]) - 1, 100, dtype=name) for _ in range(2))
    make = lambda lib, m: lib.from_numpy(m.copy())
    for operator in (lambda x, y: x + y, lambda x, y: x * y, lambda x, y: x - y, lambda x, y: x & y, lambda x, y: x ^ y, lambda x, y: x == y, lambda x, y: x < y, lambda x, y: x.float() / 3):
        try:
            theirs = operator(make(torch, a), make(torch, b))
        except (NotImplementedError, RuntimeError):
            continue
        ours = operator(make(strided, a), make(strided, b))
        assert str(ours.dtype) == str(theirs.dtype) and ours.tolist() == theirs.tolist()


def test_saved_float8_loads_in_both():
    import io

    for name in FLOAT8:
        values = np.array([0.5, 1.0, 2.0, 16.0], np.float32)
        for writer, reader in ((strided, torch), (torch, strided)):
            file = io.BytesIO()
            writer.save({"x": writer.from_numpy(values).to(getattr(writer, name))}, file)
            file.seek(0)
            loaded = reader.load(file)["x"]
            assert str(loaded.dtype) == f"torch.{name}" and loaded.float().tolist() == values.tolist()
