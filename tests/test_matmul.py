"""Matrix products against NumPy in float64: kernels for all dtypes, strides, batches and tiles, then the operators, their gradients, errors and costs."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import strided as torch
from strided import dtypes
from strided.dispatch import listen
from strided.kernels import gemm_ir, gemm_pack, gemv_ir, jit, matmul, native, thin_ir
from strided.layout import Layout

NUMPY = {"float32": np.float32, "float64": np.float64, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "int64": np.int64, "int32": np.int32, "int16": np.int16, "int8": np.int8, "uint8": np.uint8}  # fmt: skip
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "bfloat16": 2.0**-8, "float16": 2.0**-11}
SHAPES = [(1, 1, 1), (4, 4, 4), (1, 70, 33), (70, 1, 33), (1, 1, 300), (14, 32, 16), (15, 33, 17), (29, 65, 100), (3, 130, 500), (33, 7, 1), (5, 5, 0), (40, 50, 900)]


def layout(x):
    return Layout.of(x.shape, tuple(s // x.itemsize for s in x.strides))


def values(rng, shape, name):
    return rng.standard_normal(shape).astype(NUMPY[name]) if "float" in name else rng.integers(-40, 50, shape).astype(NUMPY[name])


def operand(rng, batch, rows, columns, form, name):
    """A matrix that is row-major ("n"), transposed ("t") or a window with gaps in both directions ("s")."""
    if form == "t":
        return np.swapaxes(values(rng, (*batch, columns, rows), name), -1, -2)
    if form == "s":
        return values(rng, (*batch, rows * 2, columns * 3), name)[..., ::2, ::3]
    return values(rng, (*batch, rows, columns), name)


def multiply(a, b, name, epilogue="", added=None, alpha=2, beta=3):
    """The kernel's product of arrays whose batch dimensions agree; the result starts as garbage."""
    dtype = getattr(dtypes, name)
    out = np.full((*a.shape[:-1], b.shape[-1]), 77, NUMPY[name])
    number = float if "float" in name else int
    slots = [out.ctypes.data, a.ctypes.data, b.ctypes.data]
    options = {}
    if epilogue == "scale":
        options["scale"] = True
        slots += [number(alpha)]
    elif epilogue == "add":
        options["added"] = (dtype, layout(added))
        slots += [added.ctypes.data, number(alpha), number(beta)]
    native.launch(matmul.build_matmul((dtype, layout(out)), (dtype, layout(a)), (dtype, layout(b)), **options), *slots)
    return out


def assert_product(out, a, b, name, epilogue="", added=None, alpha=2, beta=3):
    wide = np.float64 if "float" in name else np.int64
    expected = a.astype(wide) @ b.astype(wide)
    size = np.abs(a.astype(wide)) @ np.abs(b.astype(wide))
    if epilogue:
        expected, size = alpha * expected, alpha * size
    if epilogue == "add":
        expected, size = expected + beta * added.astype(wide), size + beta * np.abs(added.astype(wide))
    if wide is np.int64:
        np.testing.assert_array_equal(out, expected.astype(NUMPY[name]))
        return
    accumulated = min(EPSILON[name], EPSILON["float32"]) * (a.shape[-1] + 8) * size
    assert (np.abs(out.astype(np.float64) - expected) <= EPSILON[name] * np.abs(expected) * 1.01 + accumulated + 1e-30).all()


@pytest.mark.parametrize("name", NUMPY)
def test_products_of_every_dtype(name):
    rng = np.random.default_rng(1)
    for (m, n, k), epilogue in itertools.product(SHAPES, ("", "add")):
        a, b = operand(rng, (), m, k, "n", name), operand(rng, (), k, n, "t", name)
        added = np.broadcast_to(values(rng, (n,), name), (m, n))
        assert_product(multiply(a, b, name, epilogue, added), a, b, name, epilogue, added)


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
@pytest.mark.parametrize("forms", list(itertools.product("nts", "nts")))
def test_operands_are_read_with_any_strides(name, forms):
    rng = np.random.default_rng(2)
    for (m, n, k), epilogue in itertools.product(SHAPES, ("", "scale")):
        a, b = operand(rng, (), m, k, forms[0], name), operand(rng, (), k, n, forms[1], name)
        assert_product(multiply(a, b, name, epilogue), a, b, name, epilogue)


def test_results_and_added_inputs_may_have_any_strides():
    rng = np.random.default_rng(3)
    f32 = dtypes.float32
    for m, n, k in [(30, 70, 600), (1, 40, 20), (40, 1, 20), (7, 5, 3)]:
        a, b, added = (operand(rng, (), *shape, "s", "float32") for shape in ((m, k), (k, n), (m, n)))
        out = operand(rng, (), m, n, "s", "float32")
        desc = matmul.build_matmul((f32, layout(out)), (f32, layout(a)), (f32, layout(b)), (f32, layout(added)))
        native.launch(desc, out.ctypes.data, a.ctypes.data, b.ctypes.data, added.ctypes.data, 2.0, 3.0)
        assert_product(out, a, b, "float32", "add", added)


@pytest.mark.parametrize("batch", [(3,), (2, 3), (2, 1, 3)])
def test_batches(batch):
    rng = np.random.default_rng(4)
    for m, n, k in [(5, 6, 7), (1, 40, 20), (40, 1, 20), (20, 33, 70), (3, 100, 90), (7, 100, 90), (90, 25, 100)]:
        a, b = operand(rng, batch, m, k, "n", "float32"), operand(rng, batch, k, n, "t", "float32")
        assert_product(multiply(a, b, "float32"), a, b, "float32")
        shared = np.broadcast_to(operand(rng, (), k, n, "n", "float32"), (*batch, k, n))
        assert_product(multiply(a, shared, "float32"), a, shared, "float32")
        one = np.broadcast_to(operand(rng, (1,) * len(batch), m, k, "n", "float32"), (*batch, m, k))
        assert_product(multiply(one, b, "float32"), one, b, "float32")


def test_narrow_operands_at_the_end_of_memory_are_not_read_beyond():
    # The bytes behind the operands are NaN: they must not reach a result.
    rng = np.random.default_rng(5)
    for n in (1, 3, 17, 31):
        memory = np.full(4 * n + 64, np.nan, np.float32)
        memory[: 4 * n] = rng.standard_normal(4 * n)
        b = memory[: 4 * n].reshape(4, n)
        a = operand(rng, (), 4, 4, "n", "float32")
        assert_product(multiply(a, b, "float32"), a, b, "float32")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_split_over_threads_gives_the_product(threads):
    before = native.get_num_threads()
    rng = np.random.default_rng(6)
    try:
        native.set_num_threads(threads)
        for m, n, k in [(130, 257, 300), (1, 5000, 100), (5000, 1, 100), (600, 40, 64)]:
            a, b = operand(rng, (), m, k, "n", "float32"), operand(rng, (), k, n, "n", "float32")
            assert_product(multiply(a, b, "float32"), a, b, "float32")
    finally:
        native.set_num_threads(before)


@pytest.mark.parametrize("tile", [gemm_pack.Tile(8, (6, 4), 2, True, True, False), gemm_pack.Tile(4, (8, 4), 3, False, False, False)], ids=["256-bit", "128-bit"])
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int32"])
def test_tiles_of_narrower_machines(tile, name, monkeypatch):
    if tile.fused and not jit.host().fma or tile.half and not jit.host().half:
        pytest.skip("this host lacks the instructions")
    monkeypatch.setattr(matmul, "tile_for", lambda accumulator: tile)
    rng = np.random.default_rng(7)
    for (m, n, k), forms in itertools.product([(1, 70, 33), (70, 1, 33), (15, 33, 17), (29, 65, 100), (5, 5, 0)], ("nn", "nt", "tn", "ss")):
        a, b = operand(rng, (), m, k, forms[0], name), operand(rng, (), k, n, forms[1], name)
        added = values(rng, (m, n), name)
        assert_product(multiply(a, b, name), a, b, name)
        assert_product(multiply(a, b, name, "add", added), a, b, name, "add", added)


THIN = [(14, 60, 64), (16, 57, 300), (33, 70, 255), (50, 113, 520), (64, 200, 90), (100, 61, 1030)]


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "float16"])
def test_some_dozens_of_rows_meet_a_matrix_in_place(name, monkeypatch):
    thin = []
    original = matmul._thin
    monkeypatch.setattr(matmul, "_thin", lambda *given: thin.append(1) or original(*given))
    rng = np.random.default_rng(8)
    for (m, n, k), (form, epilogue) in itertools.product(THIN, (("n", ""), ("t", "add"), ("s", "scale"))):
        a, b = operand(rng, (), m, k, form, name), operand(rng, (), k, n, "t", name)
        added = np.broadcast_to(values(rng, (n,), name), (m, n)) if k % 2 else np.broadcast_to(values(rng, (m, 1), name), (m, n))
        assert_product(multiply(a, b, name, epilogue, added), a, b, name, epilogue, added)
        few = operand(rng, (), n, k, "n", name)  # the same with the sides exchanged
        columns = operand(rng, (), k, m, form, name)
        assert_product(multiply(few, columns, name), few, columns, name)
    a, b = operand(rng, (2, 3), 20, 70, "n", name), operand(rng, (2, 3), 70, 90, "t", name)
    assert_product(multiply(a, b, name), a, b, name)
    assert len(thin) > 2 * len(THIN)


@pytest.mark.parametrize("tile", [None, gemm_pack.Tile(8, (6, 4), 2, False, False, False), gemm_pack.Tile(4, (8, 4), 3, False, False, False)], ids=["host", "256-bit", "128-bit"])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_a_tall_operand_beside_few_columns_is_multiplied_where_it_is(name, tile, monkeypatch):
    """Whole numbers, so that every sum is exact: rows or columns that are contiguous, none or some left over, results and added inputs of any strides, one and three threads."""
    forms = []
    if tile is not None:
        monkeypatch.setattr(matmul, "tile_for", lambda accumulator: tile._replace(width=tile.width if accumulator == "float" else tile.width // 2))
    monkeypatch.setattr(matmul, "DIRECT_WORK", 1)
    original = matmul._left
    monkeypatch.setattr(matmul, "_left", lambda *given: forms.append(original(*given)) or forms[-1])
    rng = np.random.default_rng(12)
    number, f = NUMPY[name], getattr(dtypes, name)
    before = native.get_num_threads()
    for threads, (m, n, k), form, pad in itertools.product((1, 3), [(140, 32, 33), (150, 40, 300), (14, 7, 9), (29, 30, 1), (700, 24, 20)], "nt", (0, 5)):
        native.set_num_threads(threads)
        memory = rng.integers(-4, 5, ((m, k + pad) if form == "n" else (k, m + pad))).astype(number)
        a = memory[:, :k] if form == "n" else memory[:, :m].T
        b, added = rng.integers(-4, 5, (k, n)).astype(number), rng.integers(-4, 5, (n, m)).astype(number).T
        wide = np.full((m + 1, 2 * n + 3), 5, number)
        for out in (np.full((m, n), 7, number), wide[:m, :n], wide[:m, : 2 * n : 2]):
            native.launch(matmul.build_matmul((f, layout(out)), (f, layout(a)), (f, layout(b))), out.ctypes.data, a.ctypes.data, b.ctypes.data)
            np.testing.assert_array_equal(out, a @ b)
            native.launch(matmul.build_matmul((f, layout(out)), (f, layout(a)), (f, layout(b)), (f, layout(added))), out.ctypes.data, a.ctypes.data, b.ctypes.data, added.ctypes.data, 2.0, 3.0)
            np.testing.assert_array_equal(out, 2 * (a @ b) + 3 * added)
            out[:] = 5
            assert (wide == 5).all()
    native.set_num_threads(before)
    assert {"rows", "columns"} <= set(forms)


def test_thin_results_may_have_any_strides_and_neighbours_are_left_alone():
    rng = np.random.default_rng(9)
    f32 = dtypes.float32
    for m, n, k in THIN[:4]:
        a, b, added = operand(rng, (), m, k, "n", "float32"), operand(rng, (), k, n, "t", "float32"), operand(rng, (), m, n, "s", "float32")
        for wide in (np.full((2 * m, 3 * n), 5, np.float32), np.full((m + 2, n + 7), 5, np.float32), np.full((n + 3, m + 5), 5, np.float32).T):
            rows, columns = (2, 3) if wide.shape == (2 * m, 3 * n) else (1, 1)
            out = wide[: rows * m : rows, : columns * n : columns]
            desc = matmul.build_matmul((f32, layout(out)), (f32, layout(a)), (f32, layout(b)), (f32, layout(added)))
            native.launch(desc, out.ctypes.data, a.ctypes.data, b.ctypes.data, added.ctypes.data, 2.0, 3.0)
            assert_product(out, a, b, "float32", "add", added)
            out[:] = 5
            assert (wide == 5).all()


@pytest.mark.parametrize("tile", [gemm_pack.Tile(8, (6, 4), 2, False, False, False), gemm_pack.Tile(4, (8, 4), 3, False, False, False)], ids=["256-bit", "128-bit"])
def test_thin_tiles_of_narrower_machines(tile, monkeypatch):
    monkeypatch.setattr(matmul, "tile_for", lambda accumulator: tile)
    rng = np.random.default_rng(10)
    for m, n, k in [(14, 61, 70), (23, 97, 300), (37, 50, 129)]:
        for name in ("float32", "bfloat16"):
            a, b, added = operand(rng, (), m, k, "n", name), operand(rng, (), k, n, "t", name), values(rng, (m, n), name)
            assert_product(multiply(a, b, name, "add", added), a, b, name, "add", added)


def test_the_arm_kernels_compile():
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("aarch64-unknown-linux-gnu").create_target_machine(cpu="apple-m1", opt=3)
    tile = gemm_pack.Tile(4, (8, 4), 3, True, True, False)
    for name in ("float32", "bfloat16", "float16"):
        kind = gemm_pack.Kind(name, name, name, name, "add", tile)
        for text in (gemm_ir.gemm_module(kind, "nounwind"), gemv_ir.gemv_module(kind, "dot", "nounwind"), gemv_ir.gemv_module(kind, "axpy", "nounwind"), thin_ir.thin_module(kind, True, "nounwind")):
            module = llvm.parse_assembly(text)
            module.triple = "aarch64-unknown-linux-gnu"
            assert "fmla" in machine.emit_assembly(module)


def test_half_precision_rounds_to_nearest_even_once():
    # 1 + 2^-11 lies between two float16 values, 1 + 2^-8 between two bfloat16 ones: ties go to the even one, anything above goes up.
    for name, half_step in (("float16", 2.0**-11), ("bfloat16", 2.0**-8)):
        a = np.array([[1.0, half_step, half_step * half_step]], NUMPY[name])
        b = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 3.0], [0.0, 1.0, 0.0]], NUMPY[name])
        out = multiply(a, b, name).astype(np.float64)
        assert out.tolist() == [[1.0, 1.0 + 2 * half_step, 1.0 + 4 * half_step]]


def test_infinity_and_nan_pass_through():
    for name in ("float32", "bfloat16", "float16"):
        a = np.array([[np.inf, 1.0], [np.nan, 1.0], [1.0, 1.0], [3e38 if name != "float16" else 6e4, 0.0]], NUMPY[name])
        b = np.array([[1.0, 0.0], [1.0, 1.0]], NUMPY[name])
        out = multiply(a, b, name).astype(np.float64)
        assert np.isposinf(out[0, 0]) and np.isnan(out[0, 1]) and np.isnan(out[1]).all() and out[2].tolist() == [2.0, 1.0] and np.isfinite(out[3, 0])


def test_unsupported_dtypes_are_named():
    l = Layout.contiguous((2, 2))
    with pytest.raises(NotImplementedError, match="no kernel for complex64"):
        matmul.build_matmul(*[(dtypes.complex64, l)] * 3)
    with pytest.raises(NotImplementedError, match="cannot mix"):
        matmul.build_matmul((dtypes.float32, l), (dtypes.float32, l), (dtypes.float64, l))


# ---- operators ------------------------------------------------------------------------------------------------------------


def random(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(dtype)


def close(tensor, expected, tolerance=1e-10):
    assert tuple(tensor.shape) == expected.shape
    np.testing.assert_allclose(tensor.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


RANKS = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((2, 2, 3), (3, 4)), ((2, 2, 3), (3,)), ((3,), (2, 3, 4)), ((5, 1, 2, 3), (4, 3, 6)), ((2, 3), (4, 3, 5)), ((2, 0, 3), (3, 4)), ((2, 0), (0, 3))]  # fmt: skip


@pytest.mark.parametrize("shapes", RANKS)
def test_matmul_of_all_ranks(shapes):
    a, b = random(*shapes[0]), random(*shapes[1])
    result = torch.from_numpy(a) @ torch.from_numpy(b)
    close(result, a @ b)
    assert result.is_contiguous()
    assert (torch.from_numpy(a).to("meta") @ torch.from_numpy(b).to("meta")).shape == result.shape


def numeric_gradient(function, arrays, index, weight, step=1e-6):
    """Central differences of sum(function(*arrays) * weight)."""
    gradient = np.zeros_like(arrays[index])
    for place in np.ndindex(*gradient.shape):
        moved = []
        for sign in (1, -1):
            changed = [x.copy() for x in arrays]
            changed[index][place] += sign * step
            moved.append((function(*changed) * weight).sum())
        gradient[place] = (moved[0] - moved[1]) / (2 * step)
    return gradient


def assert_gradients(function, reference, *arrays):
    tensors = [torch.from_numpy(x).requires_grad_() for x in arrays]
    result = function(*tensors)
    expected = reference(*arrays)
    close(result, np.asarray(expected))
    weight = random(*np.shape(expected), seed=9)
    (result * torch.from_numpy(np.asarray(weight))).sum().backward()
    for index, t in enumerate(tensors):
        close(t.grad, numeric_gradient(reference, arrays, index, weight), 1e-5)


@pytest.mark.parametrize("shapes", RANKS[:9])
def test_gradients_of_matmul(shapes):
    assert_gradients(torch.matmul, np.matmul, random(*shapes[0]), random(*shapes[1]))


def test_gradients_of_the_forms_with_an_added_input():
    a, b, left, right = random(2, 3), random(3, 4), random(5, 2, 3), random(5, 3, 4)
    for shape in [(2, 4), (4,), (2, 1)]:
        assert_gradients(lambda i, x, y: torch.addmm(i, x, y, beta=0.5, alpha=2), lambda i, x, y: 0.5 * i + 2 * x @ y, random(*shape), a, b)
    assert_gradients(lambda i, x, y: torch.baddbmm(i, x, y, beta=0.5, alpha=2), lambda i, x, y: 0.5 * i + 2 * x @ y, random(2, 4), left, right)
    assert_gradients(lambda i, x, y: torch.addbmm(i, x, y, beta=0.5, alpha=2), lambda i, x, y: 0.5 * i + 2 * (x @ y).sum(0), random(2, 4), left, right)
    assert_gradients(lambda i, x, y: torch.addmv(i, x, y, beta=0.5, alpha=2), lambda i, x, y: 0.5 * i + 2 * x @ y, random(2), a, random(3))
    assert_gradients(lambda i, x, y: torch.addr(i, x, y, beta=0.5, alpha=2), lambda i, x, y: 0.5 * i + 2 * np.outer(x, y), random(2, 3), random(2), random(3))


@pytest.mark.parametrize("shape", [(2, 3), (5, 2, 3), (3,)])
def test_linear(shape):
    linear = torch.nn.functional.linear
    assert_gradients(linear, lambda x, w, b: x @ w.T + b, random(*shape), random(4, 3), random(4))
    assert_gradients(linear, lambda x, w: x @ w.T, random(*shape), random(4, 3))


def test_second_derivatives():
    x = torch.from_numpy(random(3, 3)).requires_grad_()
    (first,) = torch.autograd.grad((x @ x @ x).sum(), x, create_graph=True)
    first.sum().backward()
    a = x.detach().numpy()

    def derivative(a):
        one = np.ones((3, 3))
        return (one @ (a @ a).T + a.T @ one @ a.T + (a @ a).T @ one).sum()

    close(x.grad, numeric_gradient(lambda a: np.asarray(derivative(a)), [a], 0, np.ones(())), 1e-5)


def test_node_names_are_pytorchs():
    def name(t):
        return type(t.grad_fn).__name__

    a, b, v = (torch.ones(*s).requires_grad_() for s in ((2, 3), (3, 4), (3,)))
    batch, four = torch.ones(2, 2, 3).requires_grad_(), torch.ones(2, 2, 3, 4)
    assert [name(a @ b), name(a @ v), name(v @ v), name(v @ b), name(batch @ b), name(batch.unsqueeze(1) @ four)] == [
        "MmBackward0", "MvBackward0", "DotBackward0", "SqueezeBackward4", "UnsafeViewBackward0", "UnsafeViewBackward0",
    ]  # fmt: skip
    assert name(torch.bmm(batch, four[0])) == "BmmBackward0" and name(torch.addmm(v, a, torch.ones(3, 3))) == "AddmmBackward0"
    linear = torch.nn.functional.linear
    assert [name(linear(a, b.t(), torch.ones(4))), name(linear(batch, b.t(), torch.ones(4))), name(linear(batch, b.t()))] == ["AddmmBackward0", "ViewBackward0", "UnsafeViewBackward0"]


def test_a_transposed_weight_gets_a_gradient_laid_out_like_itself():
    w = torch.ones(5, 3).t().requires_grad_()
    (torch.ones(2, 3) @ w).sum().backward()
    assert w.grad.stride() == (1, 3)


def test_out_and_in_place_forms():
    a, b = random(2, 3), random(3, 4)
    out = torch.empty(2, 4, dtype=torch.float64)
    assert torch.mm(torch.from_numpy(a), torch.from_numpy(b), out=out) is out
    close(out, a @ b)
    out.addmm_(torch.from_numpy(a), torch.from_numpy(b), beta=2)
    close(out, 3 * (a @ b))
    nan = torch.full((2, 4), float("nan"), dtype=torch.float64)
    close(torch.addmm(nan, torch.from_numpy(a), torch.from_numpy(b), beta=0), a @ b)  # beta = 0 leaves the input out


ERRORS = [
    (lambda: torch.ones(2, 3) @ torch.ones(4, 5), "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"),
    (lambda: torch.ones(2, 2) @ torch.ones(2, 2).bfloat16(), "expected m1 and m2 to have the same dtype, but got: float != c10::BFloat16"),
    (lambda: torch.ones(1, 2, 2) @ torch.ones(1, 2, 2).double(), "expected scalar type Float but found Double"),
    (lambda: torch.bmm(torch.ones(2, 3, 4), torch.ones(3, 4, 5)), "Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4]."),
    (lambda: torch.bmm(torch.ones(3, 4), torch.ones(2, 4, 5)), "batch1 must be a 3D tensor"),
    (lambda: torch.mv(torch.ones(2, 3), torch.ones(4)), "size mismatch, got input (2), mat (2x3), vec (4)"),
    (lambda: torch.ones(2, 3, 4) @ torch.ones(5), "size mismatch, got input (6), mat (6x4), vec (5)"),
    (lambda: torch.dot(torch.ones(3), torch.ones(4)), "inconsistent tensor size, expected tensor [3] and src [4] to have the same number of elements, but got 3 and 4 elements respectively"),
    (lambda: torch.ones(2, 2, 3, 4) @ torch.ones(3, 2, 4, 6), "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"),
    (lambda: torch.ones(()) @ torch.ones(4), "both arguments to matmul need to be at least 1D, but they are 0D and 1D"),
    (lambda: torch.addmm(torch.ones(3, 3), torch.ones(2, 3), torch.ones(3, 5)), "The expanded size of the tensor (5) must match the existing size (3) at non-singleton dimension 1.  Target sizes: [2, 5].  Tensor sizes: [3, 3]"),
    (lambda: torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 5)), "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)"),
    (lambda: torch.einsum("ij,jk", torch.ones(2, 3), torch.ones(4, 5)), "einsum(): subscript j has size 4 for operand 1 which does not broadcast with previously seen size 3"),
    (lambda: torch.einsum("ij->k", torch.ones(2, 3)), "einsum(): output subscript k does not appear in the equation for any input operand"),
    (lambda: torch.einsum("i1->i", torch.ones(2, 3)), "einsum(): invalid subscript given at index 1 in the equation string, subscripts must be in [a-zA-Z]"),
    (lambda: torch.einsum("ijk->i", torch.ones(2, 3)), "einsum(): the number of subscripts in the equation (3) does not match the number of dimensions (2) for operand 0 and no ellipsis was given"),
    (lambda: torch.tensordot(torch.ones(2, 3), torch.ones(4, 5), 1), "contracted dimensions need to match, but first has size 3 in dim -1 and second has size 4 in dim 0"),
]  # fmt: skip


@pytest.mark.parametrize("call, sentence", ERRORS, ids=[s[:40] for _, s in ERRORS])
def test_errors_begin_with_pytorchs_sentence(call, sentence):
    with pytest.raises(RuntimeError) as caught:
        call()
    assert str(caught.value).split("\n")[0] == sentence


def test_other_refusals():
    with pytest.raises(TypeError, match=r"matmul\(\): argument 'other' \(position 2\) must be Tensor, not int"):
        torch.matmul(torch.ones(2, 2), 3)
    with pytest.raises(TypeError, match="unsupported operand type"):
        torch.ones(2, 2) @ 3


EQUATIONS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)),
    ("iij->j", (3, 3, 2)), ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("bhsd,bhSd->bhsS", (2, 3, 4, 5), (2, 3, 6, 5)), ("i,j->ji", (2,), (3,)), ("ij,ij->ij", (2, 3), (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("bij,bjk->kbi", (2, 3, 4), (2, 4, 5)), ("a,b,c->abc", (2,), (3,), (4,)), ("...,...->...", (2, 3), (3,)), ("bthd,bshd->bhts", (2, 3, 4, 5), (2, 6, 4, 5)),
    ("ij,kl->jl", (2, 3), (4, 5)), ("i,i", (3,), (3,)), ("aBc,Bc->Ba", (2, 3, 4), (3, 4)), ("ij,jk->ik", (2, 1), (3, 4)), (" i j , j k -> i k ", (2, 3), (3, 4)),
]  # fmt: skip


@pytest.mark.parametrize("equation, shapes", [(e, s) for e, *s in EQUATIONS], ids=[e for e, *_ in EQUATIONS])
def test_einsum(equation, shapes):
    arrays = [random(*s, seed=i) for i, s in enumerate(shapes)]
    stretched = arrays
    if shapes == [(2, 1), (3, 4)]:  # NumPy does not stretch a size of 1 here
        stretched = [np.broadcast_to(arrays[0], (2, 3)), arrays[1]]
    expected = np.einsum(equation.replace(" ", ""), *stretched)
    close(torch.einsum(equation, *map(torch.from_numpy, arrays)), np.asarray(expected))


def test_einsum_with_index_lists_and_gradients():
    a, b = random(2, 3), random(3, 4)
    close(torch.einsum(torch.from_numpy(a), [0, 1], torch.from_numpy(b), [1, 2], [2, 0]), (a @ b).T)
    assert_gradients(lambda x, y: torch.einsum("bij,bkj->bki", x, y), lambda x, y: np.einsum("bij,bkj->bki", x, y), random(2, 3, 4), random(2, 5, 4))
    with pytest.raises(ValueError, match="not within the valid range"):
        torch.einsum(torch.from_numpy(a), [0, 52])


def test_other_contractions():
    a, b, c = random(2, 3, 4), random(4, 3, 5), random(5, 2)
    t = torch.from_numpy
    close(torch.tensordot(t(a), t(b), ([1, 2], [1, 0])), np.tensordot(a, b, ([1, 2], [1, 0])))
    close(torch.tensordot(t(a), t(b), 1), np.tensordot(a, b, 1))
    close(torch.inner(t(a), t(random(6, 4))), np.inner(a, random(6, 4)))
    close(torch.outer(t(random(3)), t(random(4))), np.outer(random(3), random(4)))
    close(torch.kron(t(random(2, 3)), t(random(4))), np.kron(random(2, 3), random(4)))
    close(torch.chain_matmul(t(random(2, 3)), t(random(3, 5)), t(c)), random(2, 3) @ random(3, 5) @ c)


def test_flops_are_counted():
    events = []
    x, w, b = torch.ones(2, 5, 3), torch.ones(4, 3), torch.ones(4)
    with listen(events.append):
        x @ w.t()
        torch.nn.functional.linear(x, w, b)
        torch.einsum("bij,kj->bik", x, w)
        torch.addmm(b, x[0], w.t())
    counts = [e.flops for e in events if e.flops]
    assert counts == [2 * 10 * 4 * 3, 2 * 10 * 4 * 3 + 10 * 4, 2 * 10 * 4 * 3, 2 * 5 * 4 * 3 + 5 * 4]


def test_products_without_elements_by_one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for k in (0, 1, 5):
            wide = torch.ones(1, 2 * k + 1)[:, 1::2]  # [1, k], every second element
            assert (wide @ torch.ones(k, 0)).shape == (1, 0) and (wide @ torch.ones(0, k).t()).shape == (1, 0)
            assert (torch.ones(0, k) @ torch.ones(k, 3)).shape == (0, 3)
            assert torch.nn.functional.linear(wide, torch.ones(0, k), torch.ones(0)).shape == (1, 0)
            assert torch.baddbmm(torch.ones(2, 0, 3), torch.ones(2, 0, k), torch.ones(2, k, 3)).shape == (2, 0, 3)
    finally:
        torch.set_num_threads(threads)
