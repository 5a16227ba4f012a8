"""Convolutions and pooling beside PyTorch: values, places, gradients and second derivatives over kinds of windows, layouts and number formats."""

import itertools

import pytest

import strided

torch = pytest.importorskip("torch")

CONVOLUTIONS = [
    # input, weight, stride, padding, dilation, groups
    ((2, 3, 9, 10), (8, 3, 3, 3), 1, 1, 1, 1),
    ((2, 3, 19, 40), (5, 3, 7, 7), 2, 3, 1, 1),
    ((3, 64, 7, 7), (64, 64, 3, 3), 1, 1, 1, 1),  # small maps: entries packed together
    ((3, 32, 9, 8), (48, 32, 3, 2), 2, 1, 1, 1),
    ((2, 6, 12, 33), (6, 1, 3, 3), 1, 1, 1, 6),
    ((2, 6, 12, 33), (12, 1, 5, 3), 2, (2, 0), 1, 6),
    ((1, 4, 20, 20), (6, 2, 3, 3), 1, 2, 2, 2),
    ((1, 4, 20, 20), (6, 2, 3, 3), (2, 1), 2, (1, 3), 2),
    ((2, 5, 12, 12), (7, 5, 1, 1), 1, 0, 1, 1),
    ((2, 5, 12, 12), (7, 5, 1, 1), 3, 0, 1, 1),
    ((2, 5, 12, 12), (7, 5, 1, 1), 2, 1, 1, 1),
    ((2, 3, 16, 16), (9, 3, 4, 4), 4, 0, 1, 1),
    ((2, 3, 1500), (4, 3, 9), 1, 4, 1, 1),  # more columns than a band has
    ((2, 3, 1500), (4, 3, 9), 3, 4, 2, 1),
    ((1, 2, 5, 6, 7), (3, 2, 3, 2, 3), 1, 1, 1, 1),
    ((1, 2, 5, 6, 7), (3, 2, 3, 2, 3), (2, 1, 2), (1, 0, 1), 1, 1),
]


def pair(*shape, dtype="float64", seed=0):
    generator = torch.Generator().manual_seed(seed)
    t = torch.randn(*shape, generator=generator, dtype=torch.float64).to(getattr(torch, dtype))
    return t, strided.tensor(t.double().tolist(), dtype=strided.float64).to(getattr(strided, dtype)).reshape(shape)


def same(mine, theirs, tolerance):
    assert tuple(mine.shape) == tuple(theirs.shape)
    scale = float(theirs.abs().max()) if theirs.numel() else 1.0
    assert float((torch.tensor(mine.double().tolist(), dtype=torch.float64).reshape(theirs.shape) - theirs.double()).abs().max()) <= tolerance * max(scale, 1.0)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolutions(case, channels_last):
    x_shape, w_shape, stride, padding, dilation, groups = case
    n = len(x_shape) - 2
    if channels_last and n != 2:
        pytest.skip("four dimensions only")
    leaves = [pair(*x_shape), pair(*w_shape, seed=1), pair(w_shape[0], seed=2)]
    theirs, mine = [[t[i] for t in leaves] for i in (0, 1)]
    if channels_last:
        theirs[0], mine[0] = theirs[0].contiguous(memory_format=torch.channels_last), mine[0].contiguous(memory_format=strided.channels_last)
    results = []
    for lib, tensors in ((torch, theirs), (strided, mine)):
        for t in tensors:
            t.requires_grad_()
        out = getattr(lib.nn.functional, f"conv{n}d")(*tensors, stride, padding, dilation, groups)
        first = lib.autograd.grad((out * out).sum(), tensors, create_graph=True)
        second = lib.autograd.grad(sum((g * g).sum() for g in first), tensors)
        results.append([out.detach(), *(g.detach() for g in first), *second])
        plain = lib.autograd.grad(getattr(lib.nn.functional, f"conv{n}d")(*tensors, stride, padding, dilation, groups).square().sum(), tensors)
        results[-1].extend(plain)
    for a, b in zip(results[1], results[0]):
        same(a, b, 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_convolutions_in_narrow_formats(dtype):
    (x, mx), (w, mw), (b, mb) = pair(2, 33, 9, 20, dtype=dtype), pair(34, 33, 3, 3, dtype=dtype, seed=1), pair(34, dtype=dtype, seed=2)
    exact = torch.nn.functional.conv2d(x.double(), w.double(), b.double(), 1, 1)
    out = strided.nn.functional.conv2d(mx, mw, mb, 1, 1)
    assert out.dtype == mx.dtype
    same(out, exact, {"float32": 5e-7, "bfloat16": 4e-3, "float16": 5e-4}[dtype])


def test_an_infinity_reaches_only_what_it_meets():
    """Lanes between rows multiply what they read by zero: that must not be seen."""
    x, w, g = torch.randn(1, 2, 6, 5), torch.randn(3, 2, 3, 3), torch.randn(1, 3, 6, 5)
    x[0, 1, 2, 4] = float("inf")
    mine, theirs = strided.tensor(x.tolist()), x
    d = torch.nn.grad.conv2d_weight(theirs, w.shape, g, padding=1)
    leaf = strided.tensor(w.tolist()).requires_grad_()
    strided.nn.functional.conv2d(mine, leaf, padding=1).backward(strided.tensor(g.tolist()))
    found = torch.tensor(leaf.grad.tolist())
    assert torch.equal(found.isfinite(), d.isfinite())
    assert torch.allclose(found[d.isfinite()], d[d.isfinite()], atol=1e-4)


POOLS = [
    # input, kernel, stride, padding, dilation, ceil_mode
    ((2, 3, 8, 9), 2, None, 0, 1, False),
    ((2, 3, 9, 40), 3, 2, 1, 1, False),
    ((2, 3, 9, 9), 3, 2, 1, 1, True),
    ((2, 3, 12, 12), (3, 2), (1, 3), (1, 0), (2, 1), False),
    ((3, 10, 11), 3, 1, 1, 2, True),
    ((2, 3, 1200), 5, 2, 2, 1, False),
    ((1, 2, 6, 7, 8), 2, 2, 1, 1, False),
    ((2, 6, 7, 8), (1, 2, 3), 1, 0, 1, False),
]


@pytest.mark.parametrize("kind", ["ordinary", "equal", "special"])
@pytest.mark.parametrize("case", POOLS, ids=str)
def test_max_pools(case, kind):
    shape, kernel, stride, padding, dilation, ceil_mode = case
    n = 3 if len(shape) == 5 or isinstance(kernel, tuple) and len(kernel) == 3 else 1 if shape[-1] == 1200 else 2
    theirs = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    if kind == "equal":
        theirs = theirs.round()
    if kind == "special":
        theirs[theirs > 1.3] = float("nan")
        theirs[theirs < 0.2] = -float("inf")
    mine = strided.tensor(theirs.tolist())
    arguments = kernel, stride, padding, dilation, ceil_mode
    results = []
    for lib, t in ((torch, theirs), (strided, mine)):
        t = t.clone().requires_grad_()
        out, index = getattr(lib.nn.functional, f"max_pool{n}d")(t, *arguments, return_indices=True)
        alone = getattr(lib.nn.functional, f"max_pool{n}d")(t.detach(), *arguments)
        weights = lib.arange(out.numel()).reshape(out.shape).to(out.dtype)
        (g,) = lib.autograd.grad((alone.new_tensor(1.0) * out.nan_to_num(0.0, 0.0, 0.0) * weights).sum(), t)
        results.append([out.detach().tolist(), index.tolist(), alone.tolist(), g.tolist()])
    for a, b in zip(*results):
        assert torch.equal(torch.tensor(a).nan_to_num(9.0), torch.tensor(b).nan_to_num(9.0))


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("case", [c for c in POOLS if c[4] == 1], ids=str)
def test_average_pools(case, include):
    shape, kernel, stride, padding, _, ceil_mode = case
    n = 3 if len(shape) == 5 or isinstance(kernel, tuple) and len(kernel) == 3 else 1 if shape[-1] == 1200 else 2
    theirs, mine = pair(*shape)
    results = []
    for lib, t in ((torch, theirs), (strided, mine)):
        t.requires_grad_()
        out = getattr(lib.nn.functional, f"avg_pool{n}d")(t, kernel, stride, padding, ceil_mode, include)
        (first,) = lib.autograd.grad((out**3).sum(), t, create_graph=True)
        (second,) = lib.autograd.grad((first**2).sum(), t)
        results.append([out.detach(), first.detach(), second])
    for a, b in zip(results[1], results[0]):
        same(a, b, 1e-12)


def test_second_derivatives_of_max_pools():
    for n, kernel in itertools.product((1, 2, 3), (2, 3)):
        x = strided.randperm(2 * 6**n).double().reshape(2, *[6] * n).requires_grad_()
        pool = getattr(strided.nn.functional, f"max_pool{n}d")
        assert strided.autograd.gradcheck(lambda t: pool(t, kernel, 1) ** 2, x)
        assert strided.autograd.gradgradcheck(lambda t: pool(t, kernel, 1) ** 2, x)
