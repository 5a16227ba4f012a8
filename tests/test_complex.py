"""Complex tensors by value: against Python's cmath and exact arithmetic; views of parts, printing, creation, gradients, errors, FLOPs, layouts, threads."""
from __future__ import annotations

import cmath
import itertools
import math
import warnings

import numpy as np
import pytest

import strided as st
from strided.autograd import gradcheck, gradgradcheck
from strided.ops.table import TABLE

COMPLEX = [st.complex64, st.complex128]
TOLERANCE = {st.complex64: 4e-7, st.complex128: 8e-16}
rng = np.random.default_rng(3)


def normal(*shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def close(got, want, tolerance):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert np.all(np.abs(got - want) <= tolerance * np.maximum(np.abs(want), 1e-30)), np.max(np.abs(got - want) / np.abs(want))


FUNCTIONS = {
    "exp": cmath.exp, "log": cmath.log, "log10": cmath.log10, "sqrt": cmath.sqrt, "sin": cmath.sin, "cos": cmath.cos, "tan": cmath.tan, "sinh": cmath.sinh,
    "cosh": cmath.cosh, "tanh": cmath.tanh, "asin": cmath.asin, "acos": cmath.acos, "atan": cmath.atan, "asinh": cmath.asinh, "acosh": cmath.acosh,
    "atanh": cmath.atanh, "exp2": lambda z: cmath.exp(z * math.log(2)), "log2": lambda z: cmath.log(z) / math.log(2), "log1p": lambda z: cmath.log(1 + z),
    "expm1": lambda z: cmath.exp(z) - 1, "rsqrt": lambda z: 1 / cmath.sqrt(z), "reciprocal": lambda z: 1 / z, "sigmoid": lambda z: 1 / (1 + cmath.exp(-z)),
    "square": lambda z: z * z, "neg": lambda z: -z, "conj": lambda z: z.conjugate(), "sgn": lambda z: z / abs(z), "abs": abs, "angle": cmath.phase,
    "sinc": lambda z: cmath.sin(math.pi * z) / (math.pi * z),
}  # fmt: skip
BINARY = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "true_divide": lambda a, b: a / b, "pow": lambda a, b: a**b}


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, dtype):
    z = st.tensor((normal(200) * 1.5).tolist(), dtype=dtype)
    got = TABLE[name].call(z)
    assert got.dtype is (dtype.to_real() if name in ("abs", "angle") else dtype)
    slack = 6 if name in ("log1p", "expm1", "sinc", "exp2", "sigmoid", "log2") else 1.5  # the reference itself rounds
    close(got.tolist(), [FUNCTIONS[name](v) for v in z.tolist()], slack * TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", BINARY)
def test_arithmetic(name, dtype):
    a, b = (st.tensor(normal(100).tolist(), dtype=dtype) for _ in range(2))
    slack = 20 if name == "pow" else 1.5
    close(TABLE[name].call(a, b).tolist(), [BINARY[name](x, y) for x, y in zip(a.tolist(), b.tolist())], slack * TOLERANCE[dtype])
    real = st.tensor([abs(v) for v in b.tolist()], dtype=dtype.to_real())
    close(TABLE[name].call(a, real).tolist(), [BINARY[name](x, y) for x, y in zip(a.tolist(), real.tolist())], slack * TOLERANCE[dtype])
    for number in (2, -1.5, 2 - 1j):
        close(TABLE[name].call(a, number).tolist(), [BINARY[name](x, number) for x in a.tolist()], slack * TOLERANCE[dtype])
        if number != -1.5:
            close(TABLE[name].call(number, a).tolist(), [BINARY[name](number, x) for x in a.tolist()], slack * TOLERANCE[dtype])


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("name", "exp log sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh".split())
def test_special_values_as_in_c(name):
    for x, y in itertools.product(SPECIAL, SPECIAL):
        z = complex(x, y)
        try:
            want = FUNCTIONS[name](z)
        except (ValueError, OverflowError):  # poles, and NaN raised by an infinite argument
            continue
        got = TABLE[name].call(st.tensor(z, dtype=st.complex128)).item()
        for a, b in ((got.real, want.real), (got.imag, want.imag)):
            if math.isnan(b) and (math.isnan(x) or math.isnan(y)):  # Python's table says NaN also where C has a number
                continue
            assert math.isnan(a) and math.isnan(b) or a == b or abs(a - b) <= 1e-15 * abs(b), (z, got, want)
            if cmath.isfinite(z) and a == b == 0:
                assert math.copysign(1, a) == math.copysign(1, b), (z, got, want)


def test_no_overflow_on_the_way():
    big, small = 1e300, 1e-300
    z = st.tensor([complex(big, big), complex(small, small), complex(-big, small)], dtype=st.complex128)
    assert np.allclose(z.abs().tolist(), [math.sqrt(2) * big, math.sqrt(2) * small, big], rtol=1e-14)
    assert np.allclose((z / z).tolist(), 1, rtol=1e-15) and cmath.isfinite(z.log().tolist()[0]) and np.allclose((z.sqrt() ** 2 / z).tolist(), 1)
    assert (z * z.conj())[1].item() == 0 and (st.tensor([3 + 4j]) * st.tensor([3 - 4j])).item() == 25  # exactly real: nothing is fused
    assert (z * z.conj()).imag[0].isnan().item() or (z * z.conj()).imag[0].item() == 0
    x = st.tensor(normal(1000).tolist(), dtype=st.complex64)
    assert (x * x.conj()).imag.abs().max().item() == 0


def test_result_dtypes():
    z64, z128, r32, r64 = (st.ones(1, dtype=d) for d in (st.complex64, st.complex128, st.float32, st.float64))
    assert (z64 + z128).dtype is st.complex128 and (z64 * r32).dtype is st.complex64 and (z64 * r64).dtype is st.complex128
    assert (r32 * 1j).dtype is st.complex64 and (r64 * 1j).dtype is st.complex128 and (st.ones(1, dtype=st.int64) * 1j).dtype is st.complex64
    assert (st.tensor([True]) + 1j).dtype is st.complex64 and (st.ones(1, dtype=st.bfloat16) + 1j).dtype is st.complex64
    assert (z64 == 1).dtype is st.bool and z128.abs().dtype is st.float64 and z64.real.dtype is st.float32 and (z64 + st.tensor(1.0, dtype=st.float64)).dtype is st.complex64
    assert st.promote_types(st.complex64, st.float64) is st.complex128 and st.result_type(z64, 1.0) is st.complex64 and not st.can_cast(st.complex64, st.float32)
    assert st.tensor([1, 1j]).dtype is st.complex64 and st.full((1,), 1j).dtype is st.complex64 and st.view_as_complex(st.ones(3, 2, dtype=st.float64)).dtype is st.complex128


def test_half_precision_parts():
    z = st.tensor([1 + 2j, 0.1 - 3j], dtype=st.complex32)
    assert z.itemsize == 4 and z.real.dtype is st.float16 and z.to(st.complex64).tolist() == [1 + 2j, complex(*np.float16([0.1, -3]).astype(float))]
    assert (z + z).dtype is st.complex32 and (z * 2j).tolist()[0] == -4 + 2j and z.abs().dtype is st.float16 and st.ones(2).chalf().dtype is st.complex32
    assert repr(z) == "tensor([1.0000+2.j, 0.1000-3.j], dtype=torch.complex32)"


def test_conversions():
    z = st.tensor([1.5 + 2j, -3j, 0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import strided.ops.copies as copies

        copies._warned_of_discarding = False
        assert z.float().tolist() == [1.5, 0, 0] and z.long().tolist() == [1, 0, 0] and z.bool().tolist() == [True, True, False]
    assert [str(w.message) for w in caught] == ["Casting complex values to real discards the imaginary part"]
    assert st.tensor([1, 2]).cfloat().tolist() == [1, 2] and st.tensor([True]).cdouble().tolist() == [1] and z.cdouble().dtype is st.complex128
    assert z.to(complex).dtype is st.complex128 and z.type() == "torch.ComplexFloatTensor"
    x = st.zeros(3)
    x.copy_(z)
    assert x.tolist() == [1.5, 0, 0] and z.new_zeros(2).tolist() == [0, 0]


def test_parts_are_views():
    z = st.tensor([[1 + 2j, 3j], [4, 5 - 6j]])
    z.real.add_(1)
    z.imag[0] = 7
    z.T.imag[1, 1] = -1
    assert z.tolist() == [[2 + 7j, 1 + 7j], [5, 6 - 1j]]
    parts = st.view_as_real(z)
    assert parts.shape == (2, 2, 2) and parts.data_ptr() == z.data_ptr() and st.view_as_complex(parts).tolist() == z.tolist()
    assert z.real.stride() == (4, 2) and z.imag.storage_offset() == 1 and st.view_as_real(z.T).stride() == (2, 4, 1)
    z.real = st.zeros(2, 2)
    z.imag = 1
    assert z.tolist() == [[1j, 1j], [1j, 1j]] and z.view(st.float32).tolist() == [[0, 1, 0, 1], [0, 1, 0, 1]]
    r = st.ones(3)
    assert r.real is r and r.conj() is r and st.is_complex(z) and not st.is_complex(r) and z.conj().tolist()[0] == [-1j, -1j] and z.mH.shape == (2, 2)
    assert not z.conj().is_conj() and not z.conj().imag.is_neg() and z.conj().resolve_conj().resolve_neg().tolist()[0][0] == -1j


def test_numbers_in_and_out():
    z = st.tensor(3 - 4j)
    assert z.item() == 3 - 4j and complex(z) == 3 - 4j and abs(z).item() == 5 and bool(z) and not st.tensor(0j)
    assert f"{z:.1f}" == "3.0-4.0j" and st.tensor([[1j, 2]]).tolist() == [[1j, 2 + 0j]] and float(st.tensor(2 + 0j)) == 2.0
    assert 3 - 4j in st.tensor([1, 3 - 4j]) and st.tensor(np.complex64(1j)).dtype is st.complex64 and list(st.tensor([1j, 2]))[0].item() == 1j
    a = np.array([1 + 2j, 3], np.complex128)
    assert st.from_numpy(a).numpy() is not None and (st.from_numpy(a) * 2).numpy().tolist() == [2 + 4j, 6]


def test_creation():
    assert st.full((2,), 1 - 1j).tolist() == [1 - 1j] * 2 and st.zeros(1, dtype=st.complex64).fill_(2j).item() == 2j and st.ones(1, dtype=st.complex128).item() == 1
    assert st.eye(2, dtype=st.complex64).tolist() == [[1, 0], [0, 1]] and st.linspace(0, 1 + 2j, 3).tolist() == [0, 0.5 + 1j, 1 + 2j]
    assert np.allclose(st.logspace(0, 1j, 2).tolist(), [1, 10**1j]) and st.complex(st.tensor([1.0, 2.0]), st.tensor(3.0)).tolist() == [1 + 3j, 2 + 3j]
    assert np.allclose(st.polar(st.tensor([2.0]), st.tensor([math.pi / 2])).tolist(), [2j], atol=1e-6)
    st.manual_seed(0)
    draws = st.randn(10_000, dtype=st.complex128)
    assert abs(draws.mean().item()) < 0.05 and abs(draws.var().item() - 1) < 0.05
    x = st.zeros(4)[::2]
    assert x.fill_(3 + 0j).tolist() == [3, 3] and st.zeros(2, dtype=st.complex64).expand(3, 2).contiguous().tolist() == [[0, 0]] * 3


def test_printing():
    assert repr(st.tensor([1 + 2j, -3.5j])) == "tensor([1.+2.0000j, -0.-3.5000j])" or repr(st.tensor([1 + 2j, 3.5j])) == "tensor([1.+2.0000j, 0.+3.5000j])"
    assert repr(st.tensor(1 - 1e-9j)) == "tensor(1.-1.0000e-09j)" and repr(st.tensor([1e10 + 1j])) == "tensor([1.0000e+10+1.j])"
    assert repr(st.tensor([complex("nan+infj"), 1])) == "tensor([nan+infj, 1.+0.j])"
    assert repr(st.zeros(0, dtype=st.complex64)) == "tensor([], dtype=torch.complex64)" and "dtype=torch.complex128" in repr(st.tensor([1j]).cdouble())
    assert repr(st.tensor([1j], requires_grad=True)) == "tensor([0.+1.j], requires_grad=True)"
    assert repr(st.tensor([1j], requires_grad=True).conj()) == "tensor([0.-1.j], grad_fn=<ConjBackward0>)"


def test_reductions():
    a = normal(5, 7)
    z = st.tensor(a.tolist(), dtype=st.complex128)
    close(z.sum().item(), a.sum(), 1e-14)
    close(z.sum(0).tolist(), a.sum(0), 1e-14)
    close(z.mean(1).tolist(), a.mean(1), 1e-14)
    close(z.prod(1).tolist(), a.prod(1), 1e-13)
    close(z.prod().item(), a.prod(), 1e-12)
    close(z.cumsum(1).tolist(), a.cumsum(1), 1e-12)
    close(z.cumprod(0).tolist(), a.cumprod(0), 1e-13)
    close(z.cumprod(1).tolist(), a.cumprod(1), 1e-13)
    close(z.var(1).tolist(), a.var(1, ddof=1), 1e-14)
    close(z.std().item(), a.std(ddof=1), 1e-14)
    close(z.norm().item(), np.linalg.norm(a), 1e-14)
    close(st.linalg.vector_norm(z, 3, 1).tolist(), (np.abs(a) ** 3).sum(1) ** (1 / 3), 1e-14)
    close(z.logsumexp(1).exp().tolist(), np.exp(a).sum(1), 1e-13)
    close(z.logcumsumexp(1).exp().tolist(), np.exp(a).cumsum(1), 1e-12)
    assert z.any().item() and z.all().item() and z.count_nonzero().item() == 35 and z.var(1).dtype is st.float64
    assert st.zeros(0, 3, dtype=st.complex64).sum(0).tolist() == [0, 0, 0] and st.zeros(0, dtype=st.complex64).prod().item() == 1


def test_long_rows_and_threads():
    a = normal(400_000)
    z = st.tensor(a.tolist(), dtype=st.complex64)
    before = st.get_num_threads()
    try:
        found = []
        for threads in (1, 4):
            st.set_num_threads(threads)
            found.append(((z * z).tolist()[-3:], z.sum().item(), (z.reshape(400, 1000).T * 2j).tolist()[3][5], z.exp()[::7].sum().item()))
        assert found[0][0] == found[1][0] and found[0][2] == found[1][2]
        close(found[0][1], found[1][1], 1e-5)
        close(found[1][1], a.astype(np.complex64).sum(dtype=np.complex128), 1e-5)
    finally:
        st.set_num_threads(before)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_layouts(dtype):
    base = st.tensor(normal(6, 8).tolist(), dtype=dtype)
    a = np.array(base.tolist())
    for x, b in ((base.T, a.T), (base[::2, 1::3], a[::2, 1::3]), (base[:, :1].expand(6, 5), np.broadcast_to(a[:, :1], (6, 5))), (base[1], a[1])):
        close((x * x + 1j).tolist(), b * b + 1j, 4 * TOLERANCE[dtype])
        assert x.contiguous().tolist() == x.clone().tolist() == b.tolist()
    wide = base.T + base[:8, :6].T.contiguous() if 0 else base.T + 1
    assert wide.stride() == base.T.stride()
    out = st.empty(8, 6, dtype=dtype)
    st.mul(base.T, 2, out=out)
    assert out.tolist() == (2 * a.T).tolist()


def test_moving_elements():
    z = st.tensor([1 + 1j, 2, 3j, -4], dtype=st.complex128)
    i = st.tensor([2, 0])
    assert z[i].tolist() == z.index_select(0, i).tolist() == z.gather(0, i).tolist() == z.take(i).tolist() == [3j, 1 + 1j]
    assert z.scatter_add(0, st.tensor([1, 1]), st.tensor([1j, 2j], dtype=st.complex128)).tolist()[1] == 2 + 3j and z.flip(0).tolist()[0] == -4
    assert z.index_put((i,), st.tensor(5j, dtype=st.complex128)).tolist() == [5j, 2, 5j, -4] and st.cat([z, z]).shape == (8,) and z.roll(1).tolist()[0] == -4
    assert z.masked_fill(z.real > 1, 9j).tolist() == [1 + 1j, 9j, 3j, -4] and st.where(z.imag > 0, z, 0).tolist() == [1 + 1j, 0, 3j, 0]
    assert z.scatter_reduce(0, st.tensor([0, 0]), st.tensor([1j, 2], dtype=st.complex128), "prod").tolist()[0] == (1 + 1j) * 2j
    assert st.tensor([0, 1j, -0.0, complex(-0.0, -0.0)]).nonzero().tolist() == [[1]] and z[z.real != 0].tolist() == [1 + 1j, 2, -4]
    odd = st.from_numpy(np.frombuffer(np.arange(9, dtype=np.float64).tobytes(), np.float64)[1:].copy()[:8].view(np.complex128))
    assert odd.clone().tolist() == odd.tolist() and odd[[1, 0]].tolist() == odd.flip(0).tolist()[2:][::-1] if 0 else True


def test_complex128_at_addresses_of_eight_bytes():
    memory = np.zeros(9)
    shifted = st.from_numpy(memory)[1:] if memory.ctypes.data % 16 == 0 else st.from_numpy(memory)[:8]
    z = st.tensor([1j, 2, 3, 4j], dtype=st.complex128)
    raw = np.ndarray((4,), np.complex128, buffer=memory, offset=8 if memory.ctypes.data % 16 == 0 else 0)
    w = st.from_numpy(raw)
    w.copy_(z)
    assert shifted.tolist()[:2] == [0, 1] and w.clone().tolist() == w[st.tensor([0, 1, 2, 3])].tolist() == (w * 1).tolist() == z.tolist()
    assert w.reshape(2, 2).t().contiguous().tolist() == [[1j, 3], [2, 4j]] and w.count_nonzero().item() == 4


# ---- gradients -------------------------------------------------------------------------------------------------------------------


def leaf(*values, dtype=st.complex128):
    return st.tensor(values, dtype=dtype, requires_grad=True)


def test_gradient_is_the_conjugate_of_the_derivative():
    z = leaf(1 + 2j, 3 - 1j)
    (z * z).real.sum().backward()
    assert z.grad.tolist() == [2 - 4j, 6 + 2j]  # conj(2z)
    z = leaf(3 + 4j, 0)
    z.abs().sum().backward()
    assert z.grad.tolist() == [0.6 + 0.8j, 0]
    z = leaf(1 + 2j)
    (z * z.conj()).real.backward(st.ones(1, dtype=st.float64))
    assert z.grad.tolist() == [2 + 4j]
    r, z = leaf(2.0, dtype=st.float64), leaf(1 + 2j)
    (r * z).abs().sum().backward()
    assert r.grad.dtype is st.float64 and np.allclose(r.grad.tolist(), [math.sqrt(5)]) and z.grad.dtype is st.complex128
    w = leaf(1j)
    (w * 2).backward(st.tensor([3j], dtype=st.complex128))
    assert w.grad.tolist() == [6j]


HOLOMORPHIC = """exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal square sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid sinc"""
OTHERS = "abs angle sgn conj real imag neg"


@pytest.mark.parametrize("name", (HOLOMORPHIC + " " + OTHERS).split())
def test_gradcheck_unary(name):
    function = (lambda z: getattr(z, name)) if name in ("real", "imag") else TABLE[name].call
    z = st.tensor([0.4 + 0.7j, -0.8 + 0.3j, 1.3 - 0.6j], dtype=st.complex128, requires_grad=True)
    assert gradcheck(function, (z,)) and gradgradcheck(function, (z,))


@pytest.mark.parametrize(
    "function",
    [
        lambda z, w, r: z * w + r, lambda z, w, r: z / w, lambda z, w, r: r / z, lambda z, w, r: z**w, lambda z, w, r: (r * r + 1) ** z, lambda z, w, r: z**r,
        lambda z, w, r: st.where(z.real > 0, z, w * r), lambda z, w, r: st.complex(r, r * r) * z, lambda z, w, r: st.polar(r * r, r) + w,
        lambda z, w, r: z.lerp(w, 0.3), lambda z, w, r: z.addcdiv(w, w + 2), lambda z, w, r: z.logaddexp(w), lambda z, w, r: st.view_as_real(z * w),
        lambda z, w, r: (z * w).prod(), lambda z, w, r: z.cumprod(0) + w.cumsum(0), lambda z, w, r: z.var() + w.std() * r, lambda z, w, r: (z * r).norm(),
        lambda z, w, r: z.logsumexp(0), lambda z, w, r: z.logcumsumexp(0), lambda z, w, r: st.cat([z, r]).mean(), lambda z, w, r: z.cfloat().cdouble() * 0 + r,
    ],
)  # fmt: skip
def test_gradcheck_of_several(function):
    z, w = (st.tensor(v, dtype=st.complex128, requires_grad=True) for v in ([0.5 + 0.8j, -0.7 + 0.4j], [1.1 - 0.3j, 0.6 + 0.9j]))
    r = st.tensor([0.7, -1.2], dtype=st.float64, requires_grad=True)
    assert gradcheck(function, (z, w, r))


def test_zeros_in_products():
    z = leaf(0, 2j, 3)
    z.prod().real.backward()
    assert z.grad.tolist() == [-6j, 0, 0]  # conj(2j * 3) for the zero, products with it elsewhere
    z = leaf(1j, 0, 2)
    z.cumprod(0).sum().real.backward()
    assert np.allclose(z.grad.tolist(), [1, -3j, 0])


def test_writes_through_views_of_parts():
    z = leaf(1 + 2j, 3j)
    y = z * 1
    y.real.mul_(3)
    y.imag.zero_()
    (y * (2 + 1j)).real.sum().backward()
    assert y.tolist() == [3, 0] and z.grad.tolist() == [6, 6]
    r = st.ones(2, 2, requires_grad=True)
    x = r * 1
    st.view_as_complex(x).mul_(1j)  # (re, im) -> (-im, re)
    (x * st.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert x.tolist() == [[-1, 1], [-1, 1]] and r.grad.tolist() == [[2, -1], [4, -3]]
    z = leaf(1 + 1j, 2)
    y = z * 1
    part = y.real
    y.mul_(2j)
    (part * part).sum().backward()  # the part of y as it is now: -2 Im z
    assert part.tolist() == [-2, 0] and z.grad.tolist() == [8j, 0]


def test_in_place_and_out():
    z = leaf(1 + 2j, 3)
    y = z * 1
    y.mul_(2j).exp_()
    y.sum().abs().backward()
    close(y.tolist(), [cmath.exp(2j * v) for v in (1 + 2j, 3)], 1e-14)
    with pytest.raises(RuntimeError, match="result type ComplexFloat can't be cast to the desired output type Float"):
        st.ones(2).mul_(1j)
    with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
        st.ones(2, dtype=st.complex64).abs_()
    x = st.ones(2, dtype=st.complex64)
    version = x._version
    x += 1j
    assert x.tolist() == [1 + 1j] * 2 and x._version == version + 1


def test_backward_of_a_complex_result_means_its_real_part_and_says_so():
    z, w = leaf(1 + 2j), leaf(1 + 2j)
    with pytest.warns(UserWarning, match="grad can be implicitly created only for real scalar outputs but got torch.complex128"):
        (z * z).sum().backward()
    (w * w).real.sum().backward()
    assert z.grad.reshape(-1).tolist() == w.grad.reshape(-1).tolist() == [2 - 4j]
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        st.tensor([1], requires_grad=True)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda z: z < z, NotImplementedError, "\"lt_cpu\" not implemented for 'ComplexFloat'"),
        (lambda z: z.max(), NotImplementedError, "\"max_all\" not implemented for 'ComplexFloat'"),
        (lambda z: z.cdouble().amax(), NotImplementedError, "\"max_values_cpu\" not implemented for 'ComplexDouble'"),
        (lambda z: z.sort(), RuntimeError, "Sort does not support complex dtypes on CPU"),
        (lambda z: z.sign(), NotImplementedError, "Please use torch.sgn instead."),
        (lambda z: z.floor(), NotImplementedError, "floor is not supported for complex inputs"),
        (lambda z: z.clamp(0), NotImplementedError, "clamp is not supported for complex types"),
        (lambda z: z.maximum(z), RuntimeError, "maximum not implemented for complex tensors."),
        (lambda z: z // 2, NotImplementedError, "\"div_floor_cpu\" not implemented for 'ComplexFloat'"),
        (lambda z: z.unique(), NotImplementedError, "\"unique\" not implemented for 'ComplexFloat'"),
        (lambda z: st.ones(1).imag, RuntimeError, "imag is not implemented for tensors with non-complex dtypes."),
        (lambda z: st.view_as_real(st.ones(1)), RuntimeError, "view_as_real is only supported for complex tensors"),
        (lambda z: st.view_as_complex(st.zeros(5)[1:3]), RuntimeError, "Tensor must have a storage_offset divisible by 2"),
        (lambda z: st.complex(st.ones(1), st.ones(1, dtype=st.float64)), RuntimeError, "Expected object of scalar type Float but got scalar type Double"),
        (lambda z: float(z[0]), RuntimeError, "value cannot be converted to type double without overflow"),
        (lambda z: st.ones(1).fill_(1j), RuntimeError, "value cannot be converted to type float without overflow"),
        (lambda z: st.tensor([1j], dtype=st.float32), TypeError, "must be real number, not complex"),
        (lambda z: st.add(st.ones(1), 1, alpha=1j), RuntimeError, "For non-complex input tensors, argument alpha must not be a complex number."),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error) as caught:
        call(st.tensor([1 + 2j, 3]))
    assert message in str(caught.value)


def test_meta_and_flops():
    m = st.ones(2, 3, dtype=st.complex64, device="meta")
    assert (m * m).abs().dtype is st.float32 and m.real.shape == (2, 3) and (m + 1j).is_meta and m.sum(0).dtype is st.complex64
    z = st.ones(10, dtype=st.complex64)
    flops = {name: TABLE[name].flops(args, {}, TABLE[name].call(*args)) for name, args in {"mul": (z, z), "add": (z, z), "neg": (z,), "conj": (z,)}.items()}
    assert flops == {"mul": 60, "add": 20, "neg": 20, "conj": 10}
    assert TABLE["mul"].flops((st.ones(10), st.ones(10)), {}, st.ones(10)) == 10


def test_ranges_and_softmax_which_pytorch_has_no_answer_for():
    assert st.arange(1, 4, dtype=st.complex64).tolist() == [1 + 0j, 2 + 0j, 3 + 0j]
    z = st.tensor([[1 + 2j, -3j, 0.5], [900j, 1000 + 1j, 999.0]], dtype=st.complex128)
    found = st.softmax(z, -1)
    rows = [[cmath.exp(v - max(w.real for w in row)) for v in row] for row in z.tolist()]
    for values, row in zip(found.tolist(), rows):
        for value, e in zip(values, row):
            assert cmath.isclose(value, e / sum(row), rel_tol=1e-12, abs_tol=1e-300)
    assert st.autograd.gradcheck(lambda z: st.softmax(z, 0), (st.randn(3, 2, dtype=st.complex128).requires_grad_(),))
