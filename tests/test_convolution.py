"""Convolutions, pooling and their gradients against the sums that define them, in whole numbers, so that every value is exact."""

import itertools

import pytest

import strided as torch
from strided.kernels import conv, jit, native
from strided.kernels.conv_direct_ir import direct_module
from strided.kernels.conv_few_ir import few_module
from strided.kernels.conv_packed_ir import packed_module
from strided.kernels.conv_rows_ir import rows_gradient_module, rows_module
from strided.kernels.conv_weight_ir import weight_module
from strided.kernels.gemm_pack import Kind
from strided.kernels.gemm_text import TYPES
from strided.kernels.pool_ir import maximum_module
from strided.nn import functional as F

CASES = [
    # spatial size, kernel, stride, padding, dilation, groups
    ((7, 6), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    ((7, 6), (3, 2), (1, 1), (1, 1), (1, 1), 2),
    ((9, 8), (3, 3), (2, 2), (1, 1), (1, 1), 1),
    ((9, 8), (3, 2), (2, 3), (2, 1), (1, 1), 4),
    ((9, 9), (3, 3), (2, 1), (1, 0), (2, 2), 2),
    ((40, 5), (2, 2), (1, 1), (0, 0), (1, 1), 1),  # more positions than a panel holds
    ((5, 5), (1, 1), (3, 3), (0, 0), (1, 1), 1),  # elements of the input that no window meets
]


def whole_numbers(*shape, seed=0):
    torch.manual_seed(seed)
    return torch.randint(-4, 5, shape)


def by_definition(x, w, stride, padding, dilation, groups):
    """(out, what d_input and d_weight are for a gradient) as nested sums over Python integers."""
    n, channels, *sizes = x.shape
    features, each, *kernel = w.shape
    places = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(sizes, padding, dilation, kernel, stride)]
    terms = []
    for b, f, c in itertools.product(range(n), range(features), range(each)):
        channel = f // (features // groups) * each + c
        for o in itertools.product(*map(range, places)):
            for k in itertools.product(*map(range, kernel)):
                at = [i * t - p + j * d for i, t, p, j, d in zip(o, stride, padding, k, dilation)]
                if all(0 <= a < s for a, s in zip(at, sizes)):
                    terms.append(((b, f, *o), (b, channel, *at), (f, c, *k)))
    return (n, features, *places), terms


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
@pytest.mark.parametrize(("size", "kernel", "stride", "padding", "dilation", "groups"), CASES)
def test_values_and_gradients(size, kernel, stride, padding, dilation, groups, dtype):
    x, w = whole_numbers(2, 4, *size), whole_numbers(8, 4 // groups, *kernel, seed=1)
    shape, terms = by_definition(x, w, stride, padding, dilation, groups)
    xs, ws = x.tolist(), w.tolist()

    def element(nested, index):
        for i in index:
            nested = nested[i]
        return nested

    g = whole_numbers(*shape, seed=2)
    gs = g.tolist()
    out, dx, dw = {}, {}, {}
    for o, i, k in terms:
        out[o] = out.get(o, 0) + element(xs, i) * element(ws, k)
        dx[i] = dx.get(i, 0) + element(gs, o) * element(ws, k)
        dw[k] = dw.get(k, 0) + element(gs, o) * element(xs, i)

    def dense(values, shape):
        return torch.tensor([values.get(i, 0) for i in itertools.product(*map(range, shape))]).reshape(shape)

    steps = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if dtype is torch.int64:
        assert torch.equal(F.conv2d(x, w, **steps), dense(out, shape))
        return
    bias = torch.arange(8).to(dtype)
    leaves = [t.to(dtype).requires_grad_() for t in (x, w, bias)]
    found = F.conv2d(*leaves, **steps)
    assert torch.equal(found.detach(), dense(out, shape).to(dtype) + bias.reshape(-1, 1, 1))
    d_input, d_weight, d_bias = torch.autograd.grad(found, leaves, g.to(dtype))
    assert torch.equal(d_input, dense(dx, x.shape).to(dtype))
    assert torch.equal(d_weight, dense(dw, w.shape).to(dtype))
    assert torch.equal(d_bias, g.sum((0, 2, 3)).to(dtype))
    assert type(found.grad_fn).__name__ == "ConvolutionBackward0"
    # the transpose is the input's gradient
    extra = [s - ((o - 1) * t - 2 * p + d * (k - 1) + 1) for s, o, t, p, d, k in zip(size, shape[2:], stride, padding, dilation, kernel)]
    turned = F.conv_transpose2d(g.to(dtype), w.to(dtype), None, stride, padding, extra, groups, dilation)
    assert torch.equal(turned, dense(dx, x.shape).to(dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_are_rounded_once(dtype):
    x, w, b = whole_numbers(1, 3, 8, 8).to(dtype), whole_numbers(5, 3, 3, 3, seed=1).to(dtype), torch.full((5,), 0.25, dtype=dtype)
    assert torch.equal(F.conv2d(x, w, b), F.conv2d(x.double(), w.double(), b.double()).to(dtype))


def test_one_and_three_dimensions_unbatched_and_strided_inputs():
    x, w = whole_numbers(2, 3, 4, 5, 6).double(), whole_numbers(4, 3, 2, 3, 2, seed=1).double()
    out = F.conv3d(x, w)
    by_slices = sum(F.conv2d(x[:, :, i : i + 3].transpose(1, 2).reshape(-1, 3, 5, 6), w[:, :, i]).reshape(2, 3, 4, 3, 5).transpose(1, 2) for i in range(2))
    assert torch.equal(out, by_slices)
    assert torch.equal(F.conv3d(x[0], w), out[0])
    turned = x.permute(0, 1, 4, 3, 2)  # not contiguous
    assert torch.equal(F.conv3d(turned, w.permute(0, 1, 4, 3, 2)), out.permute(0, 1, 4, 3, 2))
    line, kernel = whole_numbers(2, 3, 9).double(), whole_numbers(4, 3, 2, seed=1).double()
    assert torch.equal(F.conv1d(line, kernel), F.conv2d(line.unsqueeze(2), kernel.unsqueeze(2)).squeeze(2))


def test_second_derivatives_and_meta():
    x, w = torch.randn(1, 2, 5, 5, dtype=torch.float64, requires_grad=True), torch.randn(2, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=2), (x, w))
    assert F.conv2d(torch.empty(2, 3, 9, 9, device="meta"), torch.empty(4, 3, 3, 3, device="meta"), stride=2).shape == (2, 4, 4, 4)
    assert F.conv2d(torch.empty(0, 3, 9, 9), torch.empty(4, 3, 3, 3)).shape == (0, 4, 7, 7)


def test_the_top_level_function():
    x, w, b = torch.randn(1, 2, 6, 6), torch.randn(4, 2, 3, 3), torch.randn(4)
    assert torch.equal(torch.convolution(x, w, b, [2], [1], [1], False, [0], 1), F.conv2d(x, w, b, 2, 1))
    assert torch.equal(torch.convolution(x, w.transpose(0, 1).contiguous(), b, [2, 2], [1, 1], [1, 1], True, [1, 1], 1), F.conv_transpose2d(x, w.transpose(0, 1).contiguous(), b, 2, 1, 1))


def test_transposed_results_that_nothing_reaches():
    x, w = torch.randn(1, 2, 2, 3, requires_grad=True), torch.randn(2, 3, 1, 1, requires_grad=True)
    y = F.conv_transpose2d(x, w, stride=(2, 1), padding=(1, 0))  # only the position between two elements is left
    assert y.shape == (1, 3, 1, 3) and y.requires_grad and not y.any()
    y.sum().backward()
    assert not x.grad.any() and not w.grad.any()
    with pytest.raises(RuntimeError, match=r"Calculated output size per channel: \(4 x 0\). Output size is too small"):
        F.conv_transpose2d(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 4, 5), padding=(0, 3))


# input, weight, stride, padding, dilation, groups: every kernel and its edges, beside the same sums over integers, which are products of windows laid out
KINDS = [
    ((5, 3, 5, 5), (33, 3, 3, 3), 1, 1, 1, 1),  # small maps, several entries at once
    ((3, 64, 7, 6), (40, 64, 3, 3), 2, 1, 1, 1),
    ((2, 35, 4, 4), (32, 35, 1, 1), 1, 0, 1, 1),
    ((2, 3, 20, 45), (19, 3, 5, 5), 1, 2, 1, 1),
    ((2, 3, 30, 41), (14, 3, 7, 7), 2, 3, 1, 1),
    ((2, 4, 25, 30), (6, 2, 3, 3), 3, 2, 2, 2),
    ((1, 6, 17, 60), (6, 1, 3, 3), 1, 1, 1, 6),
    ((1, 6, 17, 60), (12, 1, 5, 3), 2, (2, 0), 1, 6),
    ((1, 2, 3, 2500), (3, 2, 1, 9), 1, (0, 4), 1, 1),  # bands of columns
    ((1, 2, 300, 9), (3, 2, 3, 3), 1, 1, 1, 1),  # bands of rows
    ((2, 5, 12, 12), (7, 5, 1, 1), 3, 0, 1, 1),
    ((2, 3, 16, 12), (9, 3, 4, 4), 4, 0, 1, 1),  # tiles
    ((2, 3, 17, 13), (9, 3, 4, 4), 4, 0, 1, 1),
    ((1, 2, 6, 7, 18), (5, 2, 3, 2, 3), (2, 1, 2), 1, 1, 1),
]


def compare_with_integers(case, layout):
    x_shape, w_shape, stride, padding, dilation, groups = case
    n = len(x_shape) - 2
    convolve, steps = getattr(F, f"conv{n}d"), (stride, padding, dilation, groups)
    x, w = whole_numbers(*x_shape), whole_numbers(*w_shape, seed=1)
    expected = convolve(x, w, None, *steps)
    g = whole_numbers(*expected.shape, seed=2)
    leaves = [x.float().requires_grad_(), w.float().requires_grad_()]
    given = layout(leaves[0])
    out = convolve(given, leaves[1], None, *steps)
    assert torch.equal(out.detach().long(), expected)
    d_input, d_weight = torch.autograd.grad(out, leaves, g.float())
    extra = [s - ((o - 1) * t - 2 * p + d * (k - 1) + 1) for s, o, t, p, d, k in zip(x_shape[2:], g.shape[2:], *(v if isinstance(v, tuple) else (v,) * n for v in (stride, padding, dilation)), w_shape[2:])]
    assert torch.equal(d_input.long(), getattr(F, f"conv_transpose{n}d")(g, w, None, stride, padding, extra, groups, dilation))
    each, per = x_shape[1] // groups, w_shape[0] // groups
    for group in range(groups):  # the weights' gradient is a convolution of the input with the gradient, steps and gaps changed round
        part = convolve(x[:, group * each : (group + 1) * each].transpose(0, 1), g[:, group * per : (group + 1) * per].transpose(0, 1), None, dilation, padding, stride)
        part = part[(slice(None), slice(None), *(slice(k) for k in w_shape[2:]))]
        assert torch.equal(d_weight[group * per : (group + 1) * per].long(), part.transpose(0, 1))


@pytest.mark.parametrize("case", KINDS, ids=str)
def test_kinds(case):
    compare_with_integers(case, lambda x: x)


@pytest.mark.parametrize("case", KINDS[::3], ids=str)
def test_kinds_from_other_layouts(case):
    compare_with_integers(case, lambda x: x.transpose(1, -1).contiguous().transpose(1, -1))
    compare_with_integers(case, lambda x: torch.cat([x, x], -1)[..., : x.shape[-1]])


@pytest.fixture
def avx2(monkeypatch):
    """Kernels as on a host of sixteen registers of 256 bits and no masks."""
    host = jit.host()
    if host.arch != "x86_64" or "+avx2" not in host.features:
        pytest.skip("runs where AVX2 is")
    monkeypatch.setattr(jit, "_host", jit.Host(host.triple, "haswell", "+avx2,+fma,+f16c"))
    monkeypatch.setattr(jit, "_machine", None)
    monkeypatch.setattr(jit, "_addresses", {})  # none of this host's, nor these for it
    native.clear_plans()
    yield
    native.clear_plans()


@pytest.mark.parametrize("case", KINDS[1::4], ids=str)
def test_kinds_with_short_vectors(avx2, case):
    compare_with_integers(case, lambda x: x)


@pytest.mark.parametrize(("triple", "cpu", "features", "instruction"), [("aarch64-unknown-linux-gnu", "apple-m1", "+neon", "fmla"), ("x86_64-unknown-linux-gnu", "haswell", "+avx2,+fma,+f16c", "vfmadd")], ids=["neon", "avx2"])
def test_kernels_compile_for_other_hosts(monkeypatch, triple, cpu, features, instruction):
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3)
    monkeypatch.setattr(jit, "_host", jit.Host(triple, cpu, features))
    attributes = jit.host().attributes
    for dtype in ("float32", "bfloat16", "float64"):
        acc = "float64" if dtype == "float64" else "float32"
        kind = Kind(dtype, dtype, acc, acc, "", conv.direct_tile(TYPES[dtype][1]))
        block = conv._block(TYPES[dtype][1])
        texts = [direct_module(kind, dtype, attributes), packed_module(kind, dtype, attributes), weight_module(kind, block, dtype, attributes), maximum_module(kind, dtype, True, attributes)]
        texts += [build("double" if acc == "float64" else "float", kind.tile, taps, stride, 7, attributes) for build in (rows_module, rows_gradient_module) for taps, stride in ((3, 1), (5, 2))]
        texts.append(few_module("double" if acc == "float64" else "float", kind.tile, 5, attributes))
        for text in texts:
            module = llvm.parse_assembly(text)
            module.verify()
            builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(3))
            builder.getModulePassManager().run(module, builder)
            assembly = machine.emit_assembly(module)
            assert instruction in assembly or text is texts[3]


def by_windows(x, kernel, stride, padding, dilation):
    """(largest, place) of each window of one row of numbers: NaN counts as larger than anything, the last one stays; the first of equals."""
    results = []
    for start in range(-padding, len(x) + padding - dilation * (kernel - 1), stride):
        places = [p for p in range(start, start + dilation * kernel, dilation) if 0 <= p < len(x)]
        best = places[0]
        value = float("-inf")
        for p in places:
            if x[p] > value or x[p] != x[p]:
                best, value = p, x[p]
        results.append((value, best))
    return results


@pytest.mark.parametrize("arguments", [(2, 2, 0, 1), (3, 1, 1, 1), (3, 2, 1, 2), (5, 3, 2, 1)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_maxima_of_windows(arguments, dtype):
    kernel, stride, padding, dilation = arguments
    rows = whole_numbers(3, 41).to(dtype)
    rows[1, 3:20] = float("-inf")
    rows[2, 5:9] = float("nan")
    values, places = F.max_pool1d(rows, kernel, stride, padding, dilation, return_indices=True)
    square, flat = F.max_pool2d(rows.unsqueeze(0).expand(2, 3, 41)[:, None], (1, kernel), (1, stride), (0, padding), (1, dilation), return_indices=True)
    assert torch.equal(square[1, 0].nan_to_num(99.0), values.nan_to_num(99.0)) and torch.equal(flat[0, 0] % 41, places)
    for row, found, where in zip(rows.tolist(), values.tolist(), places.tolist()):
        for (value, place), a, b in zip(by_windows(row, kernel, stride, padding, dilation), found, where):
            assert (a == value or a != a and value != value) and b == place
    leaf = rows.nan_to_num(7.0).clamp(min=-9).requires_grad_()
    out, where = F.max_pool1d(leaf, kernel, stride, padding, dilation, return_indices=True)
    (g,) = torch.autograd.grad(out.sum(), leaf)
    assert torch.equal(g, torch.zeros_like(leaf).scatter_add(1, where, torch.ones_like(out)))


def test_places_are_counted_over_all_elements():
    """Also those that windows of one element step over, in a row and from row to row."""
    x = torch.arange(2 * 3 * 5 * 7.0).reshape(2, 3, 5, 7).requires_grad_()
    for kernel, stride in ((1, 2), ((1, 2), (3, 1)), ((2, 1), (1, 3))):
        out, places = F.max_pool2d(x, kernel, stride, return_indices=True)
        first = torch.arange(6).reshape(2, 3, 1, 1) * 35
        assert torch.equal(out, (places + first).float())  # every element is its own place
        (g,) = torch.autograd.grad(out.sum(), x)
        assert torch.equal(g.flatten().nonzero().flatten(), (places + first).flatten().unique())


def test_windows_of_nothing_but_padding():
    """They give minus infinity and no gradient: the place that PyTorch tells for them lies outside the plane."""
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.ones(1, 4, 1, 4, dtype=dtype).requires_grad_()
        out, places = F.max_pool2d(x, 2, (3, 2), (1, 0), (2, 1), return_indices=True)
        assert out.tolist() == [[[[float("-inf")] * 2]] * 4] and places.tolist() == [[[[4, 6]]] * 4]
        assert torch.autograd.grad(out.sum(), x)[0].tolist() == [[[[0.0] * 4]] * 4]


def test_an_average_pool_is_a_sum_of_neighbours():
    x = whole_numbers(2, 3, 7, 9).double().requires_grad_()
    out = F.avg_pool2d(x, 3, 2, 1)
    padded = F.pad(x, (1, 1, 1, 1))
    assert torch.allclose(out, padded.unfold(2, 3, 2).unfold(3, 3, 2).mean((-1, -2)))
    assert torch.autograd.gradcheck(lambda t: F.avg_pool2d(t, 3, 2, 1), x) and torch.autograd.gradgradcheck(lambda t: F.avg_pool2d(t, 2) ** 2, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_of_one_channel_and_a_large_window_on_several_threads(dtype):
    """Neither the features nor the one channel can be shared out further."""
    threads = torch.get_num_threads()
    x, w = torch.ones(64, 1, 28, 28, dtype=dtype), torch.zeros(8, 1, 7, 7, dtype=dtype, requires_grad=True)
    try:
        for count in (2, 4):
            torch.set_num_threads(count)
            (grad,) = torch.autograd.grad(torch.nn.functional.conv2d(x, w).sum(), w)
            assert grad.tolist() == torch.full_like(grad, 64 * 22 * 22).tolist()
    finally:
        torch.set_num_threads(threads)
