"""The fold template on bare memory, compared with NumPy: levels, loop shapes, NaN, long rows cut into pieces."""
import numpy as np
import pytest

from strided import dtypes
from strided.kernels import expr as E
from strided.kernels import fold, native
from strided.layout import Layout

x, y = E.param(0), E.param(1)
TYPES = {"float32": dtypes.float32, "float64": dtypes.float64, "int64": dtypes.int64, "int32": dtypes.int32, "bool": dtypes.bool_}
mean = E.rsum(x) / E.extent()
variance = E.rsum((x - mean) * (x - mean)) / E.extent()


def operand(a):
    if not isinstance(a, np.ndarray):
        return "param", "f64"
    return TYPES[a.dtype.name], Layout.of(a.shape, [s // a.itemsize for s in a.strides])


def run(exprs, dims, outs, ins):
    plan = fold.plan_fold(exprs, dims, [operand(o) for o in outs], [operand(a) for a in ins])
    plan.launch(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in [*outs, *ins]))
    return plan


def rows(a, dims, kind="float32"):
    return np.zeros([1 if d in dims else n for d, n in enumerate(a.shape)], kind)


SHAPES = [((5,), (0,)), ((3, 70), (1,)), ((70, 3), (0,)), ((6, 5, 40), (0, 2)), ((2, 3, 4, 5), (1,)), ((5000, 20), (0,)), ((3, 5000), (1,)), ((7, 1), (1,)), ((2, 0), (1,))]


@pytest.fixture(params=[False, True], ids=["rows", "columns"])
def order(request):
    return (lambda a: np.ascontiguousarray(a.T).T) if request.param else (lambda a: a)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("shape, dims", SHAPES)
def test_sums_and_any(shape, dims, order, rng):
    a = order(rng.standard_normal(shape, np.float32))
    total, average = rows(a, dims), rows(a, dims)
    run([E.rsum(x), mean], dims, [total, average], [a])
    np.testing.assert_allclose(total, a.sum(dims, keepdims=True, dtype=np.float64), rtol=1e-5, atol=5e-5)
    if a.size:
        np.testing.assert_allclose(average, a.mean(dims, keepdims=True, dtype=np.float64), rtol=1e-5, atol=1e-5)
    b = a > 0
    some, every, count = rows(a, dims, "bool"), rows(a, dims, "bool"), rows(a, dims, "int64")
    run([E.rany(x), E.rall(x), E.rsum(x)], dims, [some, every, count], [b])
    assert (some == b.any(dims, keepdims=True)).all() and (every == b.all(dims, keepdims=True)).all() and (count == b.sum(dims, keepdims=True)).all()


@pytest.mark.parametrize("shape, dims", SHAPES[:-1])
def test_extremes_and_positions(shape, dims, order, rng):
    for a in (order(rng.standard_normal(shape, np.float32)), order(rng.integers(-9, 9, shape).astype(np.int32))):
        best, worst = rows(a, dims, a.dtype), rows(a, dims, a.dtype)
        run([E.rmax(x), E.rmin(x)], dims, [best, worst], [a])
        assert (best == a.max(dims, keepdims=True)).all() and (worst == a.min(dims, keepdims=True)).all()
        if len(dims) == 1:
            at, low = rows(a, dims, "int64"), rows(a, dims, "int64")
            run([E.rmax(x), E.rargmax(x), E.rargmin(x)], dims, [best, at, low], [a])
            assert (at == a.argmax(dims[0], keepdims=True)).all() and (low == a.argmin(dims[0], keepdims=True)).all()


@pytest.mark.parametrize("shape, dims", SHAPES[:-1])
def test_row_operators(shape, dims, order, rng):
    a, w = order(rng.standard_normal(shape, np.float32)), rng.standard_normal(shape, np.float32)
    out, m = np.zeros(shape, np.float32), rows(a, dims)
    e = E.exp(x - E.rmax(x))
    run([e / E.rsum(e)], dims, [out], [a])
    expected = np.exp(a - a.max(dims, keepdims=True))
    np.testing.assert_allclose(out, expected / expected.sum(dims, keepdims=True), rtol=1e-5, atol=1e-6)
    run([(x - mean) * E.rsqrt(variance + E.param(2)) * y, mean], dims, [out, m], [a, w, 1e-5])
    expected = (a - a.mean(dims, keepdims=True)) / np.sqrt(a.var(dims, keepdims=True) + 1e-5) * w
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def test_the_first_nan_is_the_largest_and_the_smallest():
    a = np.random.default_rng(0).standard_normal((4, 5000)).astype(np.float32)
    a[1, [3000, 4000]] = np.nan
    a[2] = -np.inf
    best, at, low = rows(a, (1,)), rows(a, (1,), "int64"), rows(a, (1,), "int64")
    run([E.rmax(x), E.rargmax(x), E.rargmin(x)], (1,), [best, at, low], [a])
    assert at.ravel().tolist() == a.argmax(1).tolist() and low.ravel().tolist() == a.argmin(1).tolist()
    assert np.isnan(best[1, 0]) and best[2, 0] == -np.inf


@pytest.mark.parametrize("shape, dims", [((600_001,), (0,)), ((300, 2000), (0, 1)), ((50_000, 16), (0,)), ((1, 600_001), (0, 1)), ((1, 600_001), (1,))])
def test_long_rows_are_cut_into_pieces(shape, dims, rng):
    a = rng.standard_normal(shape, np.float32) + 1
    average, best, every = rows(a, dims), rows(a, dims), rows(a, dims, "bool")
    run([mean, E.rmax(x), E.rall(x)], dims, [average, best, every], [a])
    np.testing.assert_allclose(average, a.mean(dims, keepdims=True, dtype=np.float64), rtol=1e-6)
    assert (best == a.max(dims, keepdims=True)).all() and every.all()
    at = rows(a, dims, "int64")
    run([E.rargmax(x)], dims, [at], [a])
    assert (at == (a.argmax() if len(dims) == a.ndim else a.argmax(dims[0], keepdims=True))).all()


@pytest.mark.parametrize("shape", [(5, 64), (37, 1040), (3, 4, 528), (2, 20_000), (5, 3001), (2, 3, 20_003), (7, 192)], ids=str)
def test_streamed_results(shape, rng, monkeypatch):
    """Results written past the caches: short rows, whose exponentials wait on the stack, and long ones, where they are computed again."""
    monkeypatch.setattr(fold, "STREAM", 1)
    a, bias = rng.standard_normal(shape, np.float32), rng.standard_normal(shape[-1]).astype(np.float32)
    dim, wide = len(shape) - 1, a.astype(np.float64)
    exps = np.exp(wide - wide.max(-1, keepdims=True))
    norm = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) + bias
    softmax = E.exp(x - E.rmax(x)) * (1 / E.rsum(E.exp(x - E.rmax(x))))
    rstd = E.rsqrt(variance + 1e-5)
    spread = np.broadcast_to(bias, shape)
    for exprs, ins, expected in (([softmax], [a], exps / exps.sum(-1, keepdims=True)), ([(x - mean) * rstd + y, rstd], [a, spread], norm)):
        for kind, tolerance in ((dtypes.float32, 2e-6), (dtypes.float64, 2e-6)):
            outs = [(kind, Layout.contiguous(shape)), (dtypes.float32, Layout.contiguous((*shape[:-1], 1)))][: len(exprs)]
            plan = fold.plan_fold(exprs, (dim,), outs, [operand(i) for i in ins], result_bytes=a.size * kind.itemsize)
            scales = np.zeros((*shape[:-1], 1), np.float32)
            storage = plan.launch_new(*[scales.ctypes.data][: len(exprs) - 1], *(i.ctypes.data for i in ins))
            result = np.frombuffer(storage, kind.numpy).reshape(shape)
            np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
            if len(exprs) == 2:
                np.testing.assert_allclose(scales, 1 / np.sqrt(wide.var(-1, keepdims=True) + 1e-5), rtol=1e-5)


CENTRED = (x - mean) * E.rsqrt(E.rsum((x - mean) * (x - mean)) / E.extent() + 1e-5)
SOFTMAX = E.exp(x - E.rmax(x)) * (1 / E.rsum(E.exp(x - E.rmax(x))))


def streamed(exprs, ins, offset=0):
    """The first result of a fold over the last dimension, written past the caches, at `offset` bytes behind a whole line; the others have an element a row."""
    shape, kind = ins[0].shape, dtypes.names()[ins[0].dtype.name]
    outs = [(kind, Layout.contiguous(shape)), *[(kind, Layout.contiguous((*shape[:-1], 1)))] * (len(exprs) - 1)]
    plan = fold.build_fold(exprs, (len(shape) - 1,), outs, [operand(i) for i in ins], result_bytes=ins[0].nbytes)
    memory, others = np.zeros(ins[0].nbytes + 128, np.uint8), [np.zeros((*shape[:-1], 1), ins[0].dtype) for _ in exprs[1:]]
    start = -memory.ctypes.data % 64 + offset
    result = memory[start : start + ins[0].nbytes].view(ins[0].dtype).reshape(shape)
    native.launch(plan, result.ctypes.data, *(o.ctypes.data for o in others), *(i.ctypes.data for i in ins))
    assert not memory[:start].any() and not memory[start + ins[0].nbytes :].any()
    return [result, *others]


@pytest.mark.parametrize("offset", [0, 8])
@pytest.mark.parametrize("shape", [(1, 512), (9, 1024), (37, 1040), (5, 2, 777), (4, 4096), (13, 6000), (2, 16_384)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_read_while_others_are_written(shape, dtype, offset, rng, monkeypatch):
    """Values of each way to make the reductions in one sweep: alone, with weights that all rows share, and with results of one element a row."""
    monkeypatch.setattr(fold, "STREAM", 1)
    a, w, s = rng.standard_normal(shape).astype(dtype) * 3 + 1, *rng.standard_normal((2, shape[-1])).astype(dtype)
    w, s, wide = np.broadcast_to(w, shape), np.broadcast_to(s, shape), a.astype(np.float64)
    tolerance = 3e-6 if dtype == "float32" else 1e-13
    rms, exps = 1 / np.sqrt((wide**2).mean(-1, keepdims=True)), np.exp(wide - wide.max(-1, keepdims=True))
    norm = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    total = exps.sum(-1, keepdims=True)
    root = E.rsqrt(E.rsum(x * x) / E.extent())
    for exprs, ins, expected in (
        ([x * root * y, root], [a, w], [wide * rms * w, rms]),
        ([CENTRED * y + E.param(2), mean], [a, w, s], [norm * w + s, wide.mean(-1, keepdims=True)]),
        ([SOFTMAX], [a], [exps / total]),
        ([E.exp(x) * (1 / E.rsum(E.exp(x)))], [a], [exps / total]),
        ([x - E.rmax(x) - E.log(E.rsum(E.exp(x - E.rmax(x))))], [a], [wide - wide.max(-1, keepdims=True) - np.log(total)]),
    ):
        for got, wanted in zip(streamed(exprs, ins, offset), expected):
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


def test_rows_of_all_kinds_of_exponentials(rng, monkeypatch):
    """Softmax is computed from an element of the row that need not be its largest: rows that rise, fall, are masked or are not numbers."""
    monkeypatch.setattr(fold, "STREAM", 1)
    a = rng.standard_normal((9, 1024), np.float32)
    a[0] += np.linspace(0, 500, 1024)
    a[1] -= np.linspace(0, 500, 1024)
    a[2, :700], a[3, 300:], a[4] = -np.inf, -np.inf, -np.inf
    a[2] -= 300
    a[5, 5], a[6, 1000], a[7, 600], a[8, 900] = np.inf, np.nan, np.inf, 3e38
    with np.errstate(invalid="ignore"):
        exps = np.exp(a.astype(np.float64) - a.max(-1, keepdims=True))
        expected = exps / exps.sum(-1, keepdims=True)
    (result,) = streamed([SOFTMAX], [a])
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-37)
    assert np.isnan(result[4:8]).all() and result[8, 900] == 1


def test_rows_far_from_zero(rng, monkeypatch):
    """Squares of deviations are taken from the mean of a row's first elements, also where those are far from the others."""
    monkeypatch.setattr(fold, "STREAM", 1)
    a = rng.standard_normal((4, 4096))
    a[1] += 1e6
    a[2, :256] += 1e4
    a[3] = 0.1
    mean_, deviation = a.mean(-1, keepdims=True), np.sqrt(a.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(streamed([CENTRED], [a])[0], (a - mean_) / deviation, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("triple, cpu, features", [("aarch64-unknown-linux-gnu", "apple-m1", "+neon"), ("x86_64-unknown-linux-gnu", "haswell", "+avx2,+fma,+f16c")], ids=["arm", "avx2"])
def test_other_hosts_kernels_compile(triple, cpu, features, monkeypatch):
    """Streamed maps and rows, and rows that are fetched ahead, as vectors of another machine."""
    import llvmlite.binding as llvm

    from strided.kernels import fold_text, jit
    from strided.kernels.map import map_text

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3)
    monkeypatch.setattr(jit, "_host", jit.Host(triple, cpu, features))
    monkeypatch.setattr(jit, "_machine", machine)
    softmax = E.exp(x - E.rmax(x)) * (1 / E.rsum(E.exp(x - E.rmax(x))))
    kind = fold_text.Kind((softmax,), ("float32",), ("float32",), ("run", "run"), (False, False), (True,), False, False, "float32", "short", 256)
    found = kind._replace(exprs=(E.node("rargmax", x),), outs=("int64",), modes=("same", "run"), constant=(True, False), per_element=(False,), stream="", chunk=0)
    together = kind._replace(stream="rows")
    texts = [fold.kernel_text(k, False) for k in (kind, together, found)]
    for text in (map_text((E.exp(x) + E.erf(x),), ("float32",), ("float32",), (None,), "cc", 256, 8192), *texts):
        assembly = jit.assembly(text)
        assert ("prfm" if cpu == "apple-m1" else "prefetch") in assembly and "load_ahead" not in assembly and "m_exp" not in assembly
        assert (".4s" if cpu == "apple-m1" else "ymm") in assembly
    assert ("stnp" if cpu == "apple-m1" else "vmovntps") in jit.assembly(fold.kernel_text(kind, False))
