"""First and second derivatives of the operators, against PyTorch's, in float64 on fixed numbers. One line an operator."""

from __future__ import annotations

import numpy as np
import pytest

import strided

pytorch = pytest.importorskip("torch")

PROGRAMS = {}  # name -> (function(torch, *inputs), [(shape, range of values)])
WIDE, POSITIVE, UNIT, ABOVE_ONE = (-2.0, 2.0), (0.3, 3.0), (-0.9, 0.9), (1.2, 3.0)


def add(name, function, *inputs):
    PROGRAMS[name] = function, [spec if len(spec) == 2 and isinstance(spec[0], tuple) else (spec, WIDE) for spec in inputs]


def named(name):
    return lambda torch, *inputs: getattr(torch, name)(*inputs)


M, V, B = (3, 4), (4,), (2, 3, 4)

# ---- pointwise ----------------------------------------------------------------------------------

for name in "neg exp exp2 expm1 sin cos tan sinh cosh tanh sigmoid erf erfc atan asinh square floor trunc frac relu sinc nan_to_num".split():
    add(name, named(name), M)
for name in "log log2 log10 log1p sqrt rsqrt reciprocal".split():
    add(name, named(name), (M, POSITIVE))
for name in "asin acos atanh erfinv".split():
    add(name, named(name), (M, UNIT))
add("acosh", named("acosh"), (M, ABOVE_ONE))
for name in "add sub mul div atan2 maximum minimum fmax fmin hypot logaddexp logaddexp2 remainder fmod copysign".split():
    add(name, named(name), M, (V, POSITIVE))
add("pow tensors", lambda torch, x, y: x**y, (M, POSITIVE), (3, 1))
add("pow number", lambda torch, x: x**3, M)
add("pow of number", lambda torch, x: 2**x, M)
add("division of a number", lambda torch, x: 1 / x, (M, POSITIVE))
add("add with alpha", lambda torch, x, y: torch.add(x, y, alpha=2.5), M, V)
add("where", lambda torch, x, y: torch.where(x > 0, x, y), M, V)
add("clamp", lambda torch, x: x.clamp(-1, 0.5), M)
add("clamp by tensors", lambda torch, x, a, b: torch.clamp(x, a, b), M, (V, (-2, -1)), (V, (0, 1)))
add("lerp", lambda torch, x, y: torch.lerp(x, y, 0.3), M, M)
add("lerp by a tensor", lambda torch, x, y, w: torch.lerp(x, y, w), M, M, V)
add("addcmul", lambda torch, x, y, z: torch.addcmul(x, y, z, value=0.5), M, M, V)
add("addcdiv", lambda torch, x, y, z: torch.addcdiv(x, y, z, value=0.5), M, M, (V, POSITIVE))
add("masked_fill", lambda torch, x: x.masked_fill(x > 0, 0.0), M)
add("masked_fill by a tensor", lambda torch, x, v: x.masked_fill(x > 0, v), M, ())

# ---- reductions and scans -----------------------------------------------------------------------

for name in "sum mean amax amin prod logsumexp std var norm".split():
    add(name + " dim", lambda torch, x, name=name: getattr(torch, name)(x, dim=1), M)
    add(name + " keepdim", lambda torch, x, name=name: getattr(torch, name)(x, dim=0, keepdim=True), M)
for name in "sum mean max min prod std var norm median".split():
    add(name + " all", named(name), M)
for name in "max min median mode cummax cummin sort".split():
    add(name + " dim", lambda torch, x, name=name: getattr(torch, name)(x, dim=1)[0], M)
for name in "kthvalue topk".split():
    add(name, lambda torch, x, name=name: getattr(torch, name)(x, 2, dim=1)[0], M)
for name in "cumsum cumprod softmax log_softmax diff".split():
    add(name, lambda torch, x, name=name: getattr(torch, name)(x, dim=1), M)
add("std_mean", lambda torch, x: torch.std_mean(x, dim=1), M)
add("var_mean", lambda torch, x: torch.var_mean(x, dim=1), M)
add("aminmax", lambda torch, x: tuple(torch.aminmax(x, dim=1)), M)

# ---- products -----------------------------------------------------------------------------------

add("matrix @ matrix", lambda torch, x, y: x @ y, M, (4, 2))
add("matrix @ vector", lambda torch, x, y: x @ y, M, V)
add("vector @ matrix", lambda torch, x, y: x @ y, (3,), M)
add("vector @ vector", lambda torch, x, y: x @ y, V, V)
add("batch @ batch", lambda torch, x, y: x @ y, (2, 1, 3, 4), (5, 4, 2))
add("batch @ vector", lambda torch, x, y: x @ y, B, V)
add("vector @ batch", lambda torch, x, y: x @ y, (3,), B)
add("bmm", named("bmm"), B, (2, 4, 2))
add("addmm", lambda torch, a, x, y: torch.addmm(a, x, y, beta=0.5, alpha=2), (2,), M, (4, 2))
add("baddbmm", named("baddbmm"), (2, 3, 2), B, (2, 4, 2))
add("outer", named("outer"), (3,), V)
add("einsum batched", lambda torch, x, y: torch.einsum("bij,bkj->bik", x, y), B, (2, 5, 4))
add("einsum", lambda torch, x, y: torch.einsum("ij,jk", x, y), M, (4, 5))
add("tensordot", lambda torch, x, y: torch.tensordot(x, y, dims=1), M, (4, 5))

# ---- shapes and indices: [2, 3, 4] --------------------------------------------------------------

add("view", lambda torch, x: x.view(4, 6)[1:], B)
add("reshape", lambda torch, x: x.transpose(0, 1).reshape(-1), B)
add("permute", lambda torch, x: x.permute(2, 0, 1), B)
add("t", lambda torch, x: x[0].t(), B)
add("expand", lambda torch, x: x.unsqueeze(1).expand(2, 5, 3, 4), B)
add("squeeze", lambda torch, x: x[:1].squeeze(), B)
add("slice", lambda torch, x: x[:, 1:, ::2], B)
add("select", lambda torch, x: x.select(1, -1), B)
add("narrow", lambda torch, x: x.narrow(2, 1, 2), B)
add("unfold", lambda torch, x: x.unfold(2, 2, 1), B)
add("diagonal", lambda torch, x: x.diagonal(dim1=1, dim2=2), B)
add("flatten", lambda torch, x: x.flatten(1), B)
add("chunk", lambda torch, x: x.chunk(2, 2)[1], B)
add("split", lambda torch, x: x.split([1, 3], 2)[1], B)
add("unbind", lambda torch, x: x.unbind(1)[2], B)
add("flip", lambda torch, x: x.flip(1, 2), B)
add("roll", lambda torch, x: x.roll(1, 2), B)
add("repeat", lambda torch, x: x.repeat(2, 1, 2), B)
add("repeat_interleave", lambda torch, x: x.repeat_interleave(2, dim=1), B)
add("tile", lambda torch, x: x.tile((1, 2, 1)), B)
add("cat", lambda torch, x: torch.cat([x, x * 2], 1), B)
add("stack", lambda torch, x: torch.stack([x, x * 2], 1), B)
add("movedim", lambda torch, x: x.movedim(0, 2), B)
add("as_strided", lambda torch, x: x.as_strided((2, 3), (4, 2), 1), B)
add("as_strided overlapping", lambda torch, x: x.as_strided((3, 3), (1, 1), 1), B)
add("unflatten", lambda torch, x: x.unflatten(2, (2, 2)), B)
add("tril", lambda torch, x: x.tril(), B)
add("triu", lambda torch, x: x.triu(1), B)
add("contiguous", lambda torch, x: x.transpose(1, 2).contiguous(), B)
add("clone", lambda torch, x: x.clone(), B)
add("to float32", lambda torch, x: x.to(torch.float32), B)
add("index", lambda torch, x: x[:, torch.tensor([0, 2, 0])], B)
add("index twice", lambda torch, x: x[torch.tensor([0, 1, 1]), torch.tensor([0, 2, 2])], B)
add("index by mask", lambda torch, x: x[x > 0], B)
add("index_select", lambda torch, x: x.index_select(1, torch.tensor([0, 2, 0])), B)
add("gather", lambda torch, x: x.gather(2, torch.tensor([[[0, 1], [1, 1], [3, 0]]] * 2)), B)
add("take", lambda torch, x: x.take(torch.tensor([0, 5, 5])), B)
add("take_along_dim", lambda torch, x: torch.take_along_dim(x, torch.tensor([[[0], [1], [3]]] * 2), dim=2), B)
add("masked_select", lambda torch, x: x.masked_select(x > 0), B)
add("diag", lambda torch, x: x[0, 0].diag(), B)
add("diag_embed", lambda torch, x: torch.diag_embed(x[0]), B)
add("trace", lambda torch, x: x[0].trace(), B)
add("expand_as", lambda torch, x: x[:, :1].expand_as(x), B)
add("broadcast_to", lambda torch, x: torch.broadcast_to(x[0], (5, 3, 4)), B)
add("meshgrid", lambda torch, x: torch.meshgrid(x[0, 0], x[1, 0], indexing="ij")[0], B)
add("rot90", lambda torch, x: x.rot90(1, (1, 2)), B)
add("pad", lambda torch, x: torch.nn.functional.pad(x, (1, 2)), B)
add("hstack", lambda torch, x: torch.hstack([x, x]), B)
add("kron", lambda torch, x: torch.kron(x[0], x[1]), B)
add("scatter", lambda torch, x: torch.zeros(2, 3, 5, dtype=torch.float64).scatter(2, torch.tensor([[[0, 1, 2, 4]] * 3] * 2), x), B)
add("scatter_add", lambda torch, x: torch.zeros(2, 3, 5, dtype=torch.float64).scatter_add(2, torch.tensor([[[0, 1, 1, 4]] * 3] * 2), x), B)
add("index_add", lambda torch, x: torch.zeros(2, 3, 4, dtype=torch.float64).index_add(1, torch.tensor([0, 0, 2]), x), B)
add("index_copy", lambda torch, x: (x * 2).index_copy(1, torch.tensor([1]), x[:, :1]), B)
add("index_put", lambda torch, x: (x * 2).index_put((torch.tensor([0]),), x[1:]), B)
add("index_fill", lambda torch, x: x.index_fill(1, torch.tensor([1]), 0.0), B)
add("masked_scatter", lambda torch, x: (x * 2).masked_scatter(x > 0, x), B)
add("setitem", lambda torch, x: (lambda y: (y.__setitem__((slice(None), 0), x[:, 1]), y)[1])(x * 2), B)
add("setitem by mask", lambda torch, x: (lambda y: (y.__setitem__(x > 0, 0.0), y)[1])(x * 2), B)

# ---- torch.nn.functional ------------------------------------------------------------------------

add("gelu", lambda torch, x: torch.nn.functional.gelu(x), M)
add("gelu tanh", lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"), M)
add("silu", lambda torch, x: torch.nn.functional.silu(x), M)
add("mish", lambda torch, x: torch.nn.functional.mish(x), M)
add("softplus", lambda torch, x: torch.nn.functional.softplus(x), M)
add("leaky_relu", lambda torch, x: torch.nn.functional.leaky_relu(x), M)
add("elu", lambda torch, x: torch.nn.functional.elu(x), M)
add("selu", lambda torch, x: torch.nn.functional.selu(x), M)
add("celu", lambda torch, x: torch.nn.functional.celu(x), M)
add("hardswish", lambda torch, x: torch.nn.functional.hardswish(x), M)
add("hardsigmoid", lambda torch, x: torch.nn.functional.hardsigmoid(x), M)
add("hardtanh", lambda torch, x: torch.nn.functional.hardtanh(x), M)
add("relu6", lambda torch, x: torch.nn.functional.relu6(x), M)
add("logsigmoid", lambda torch, x: torch.nn.functional.logsigmoid(x), M)
add("tanhshrink", lambda torch, x: torch.nn.functional.tanhshrink(x), M)
add("softsign", lambda torch, x: torch.nn.functional.softsign(x), M)
add("glu", lambda torch, x: torch.nn.functional.glu(x), M)
add("normalize", lambda torch, x: torch.nn.functional.normalize(x, dim=1), M)
add("layer_norm", lambda torch, x: torch.nn.functional.layer_norm(x, (4,)), M)
add("rms_norm", lambda torch, x: torch.nn.functional.rms_norm(x, (4,)), M)
add("mse_loss", lambda torch, x: torch.nn.functional.mse_loss(x, x.detach() * 2), M)
add("smooth_l1_loss", lambda torch, x: torch.nn.functional.smooth_l1_loss(x, x.detach() * 2), M)
add("huber_loss", lambda torch, x: torch.nn.functional.huber_loss(x, x.detach() * 2), M)
add("cross_entropy", lambda torch, x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 3, 1])), M)
add("cross_entropy smoothed", lambda torch, x: torch.nn.functional.cross_entropy(x, torch.tensor([0, -100, 1]), label_smoothing=0.1), M)
add("nll_loss", lambda torch, x: torch.nn.functional.nll_loss(torch.nn.functional.log_softmax(x, 1), torch.tensor([0, 3, 1])), M)
add("binary_cross_entropy", lambda torch, x: torch.nn.functional.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(x.detach() * 2)), M)
add("binary_cross_entropy_with_logits", lambda torch, x: torch.nn.functional.binary_cross_entropy_with_logits(x, torch.sigmoid(x.detach() * 2)), M)
add("kl_div", lambda torch, x: torch.nn.functional.kl_div(torch.nn.functional.log_softmax(x, 1), torch.nn.functional.softmax(x.detach() * 2, 1), reduction="batchmean"), M)
add("cosine_similarity", lambda torch, x: torch.nn.functional.cosine_similarity(x, x * 2 + 1), M)
add("pairwise_distance", lambda torch, x: torch.nn.functional.pairwise_distance(x, x * 2 + 1), M)
add("linear", lambda torch, x, w, b: torch.nn.functional.linear(x, w, b), B, (5, 4), (5,))
add("layer_norm affine", lambda torch, x, w, b: torch.nn.functional.layer_norm(x, (4,), w, b), B, V, V)
add("rms_norm affine", lambda torch, x, w: torch.nn.functional.rms_norm(x, (4,), w), B, V)
add("group_norm", lambda torch, x, w, b: torch.nn.functional.group_norm(x, 2, w, b), (2, 4, 3), V, V)
add("batch_norm", lambda torch, x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, True), (5, 4), V, V)
add("embedding", lambda torch, w: torch.nn.functional.embedding(torch.tensor([[0, 2], [2, 1]]), w), M)
add("embedding padded", lambda torch, w: torch.nn.functional.embedding(torch.tensor([[0, 2], [2, 1]]), w, padding_idx=2), M)
add("attention", lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v), (2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4))
add("attention causal", lambda torch, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), (2, 2, 3, 4), (2, 2, 3, 4), (2, 2, 3, 4))
add("conv1d", lambda torch, x, w, b: torch.nn.functional.conv1d(x, w, b, padding=1), (2, 3, 6), (4, 3, 3), V)
add("conv2d", lambda torch, x, w, b: torch.nn.functional.conv2d(x, w, b, stride=2, padding=1), (2, 3, 6, 5), (4, 3, 3, 3), V)
add("max_pool2d", lambda torch, x: torch.nn.functional.max_pool2d(x, 2), (2, 3, 6, 4))
add("avg_pool2d", lambda torch, x: torch.nn.functional.avg_pool2d(x, 2), (2, 3, 6, 4))
add("interpolate", lambda torch, x: torch.nn.functional.interpolate(x, scale_factor=2.0), (2, 3, 6, 4))


def values(shape, limits, place):
    """Fixed numbers within the limits, all different."""
    count = int(np.prod(shape))
    spread = (np.arange(count) * 0.618033988749895 + 0.137 * (place + 1)) % 1.0
    return (limits[0] + spread * (limits[1] - limits[0])).reshape(shape).tolist()


def weighted(torch, tensors, step):
    """A scalar in which every element counts differently."""
    total = 0
    for place, t in enumerate(tensors):
        total = total + (t * (torch.arange(float(t.numel()), dtype=t.dtype) * step + place + 0.1).sin().reshape(tuple(t.shape))).sum()
    return total


def plain(tensors):
    return [None if t is None else np.array(t.detach().tolist()) for t in tensors]


def derivatives(torch, name):
    """(results, first derivatives, second derivatives or None where there are none or they are not implemented)"""
    function, specs = PROGRAMS[name]
    inputs = [torch.tensor(values(shape, limits, place), dtype=torch.float64).requires_grad_() for place, (shape, limits) in enumerate(specs)]
    outputs = function(torch, *inputs)
    outputs = [t for t in (outputs if isinstance(outputs, (tuple, list)) else (outputs,)) if t.requires_grad]
    if not outputs:
        return None
    first = torch.autograd.grad(weighted(torch, outputs, 0.3), inputs, create_graph=True, allow_unused=True)
    live = [g for g in first if g is not None and g.requires_grad]
    try:
        second = torch.autograd.grad(weighted(torch, live, 0.7), inputs, allow_unused=True) if live else None
    except (RuntimeError, NotImplementedError):
        if torch is strided:
            raise
        second = None  # PyTorch has none for some fused operators
    return plain(outputs), plain(first), None if second is None else plain(second)


def agree(ours, theirs):
    for a, b in zip(ours, theirs):
        if a is None or b is None:  # no gradient and a gradient of zeros are the same derivative
            assert not np.any(a if b is None else b) or a is b
        else:
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name):
    theirs, ours = derivatives(pytorch, name), derivatives(strided, name)
    assert (ours is None) == (theirs is None)
    if theirs is None:
        return
    agree(ours[0], theirs[0])
    agree(ours[1], theirs[1])
    if theirs[2] is not None:
        agree(ours[2] or [None] * len(theirs[2]), theirs[2])
