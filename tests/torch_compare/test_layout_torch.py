"""Layouts against PyTorch's: chains of random views, the results of pointwise operators, promotion. Same shapes, strides, offsets and errors."""

import importlib
import random

import pytest

torch = pytest.importorskip("torch")

from strided import dtypes as D
from strided.layout import Layout

L = importlib.import_module("strided.layout")


def outcome(function):
    try:
        return function(), None
    except Exception as error:
        return None, error


def same_view(rng, t, layout, offset, name, arguments):
    """Applies one view to both; None where both refuse (with the same sentence) or where it would be a copy."""
    theirs, their_error = outcome(lambda: getattr(t, name)(*arguments))
    if name == "view":
        ours, our_error = outcome(lambda: layout.view(L.infer_size(arguments[0], layout.numel)))
        if our_error is None and ours is None:
            assert str(their_error).startswith("view size is not compatible with input tensor's size and stride")
            return None
    else:
        ours, our_error = outcome(lambda: getattr(layout, {"unflatten": "split_dim"}.get(name, name))(*arguments))
    context = (tuple(t.shape), t.stride(), name, arguments)
    if their_error is not None:
        assert type(our_error) is type(their_error), context
        assert str(our_error).split("\n")[0] == str(their_error).split("\n")[0], context
        return None
    assert our_error is None, (context, our_error)
    ours, moved = ours if isinstance(ours, tuple) else (ours, 0)
    if name == "flatten" and ours is None:
        return None
    assert (tuple(theirs.shape), theirs.stride(), theirs.storage_offset()) == (tuple(ours.shape), ours.strides, offset + moved), context
    assert theirs.is_contiguous() == ours.is_contiguous and torch.ops.aten.is_non_overlapping_and_dense(theirs) == ours.is_dense, context
    return theirs, ours, offset + moved


def random_view(rng, t):
    n = t.dim()

    def dim():
        return rng.randint(-n - 1, n + 1) if rng.random() < 0.06 else rng.randint(-n, n - 1) if n else 0

    def sizes():
        left, found = t.numel(), []
        while left > 1 and rng.random() < 0.8:
            found.append(rng.choice([f for f in range(1, left + 1) if left % f == 0]))
            left //= found[-1]
        found.append(left if rng.random() < 0.5 else -1)
        rng.shuffle(found)
        return found if rng.random() < 0.9 else [rng.randint(-1, 5) for _ in range(rng.randint(0, 3))]

    stretched = [rng.randint(0, 4) if s == 1 and rng.random() < 0.5 else rng.choice([-1, s, s]) for s in t.shape]
    choices = [
        ("permute", (rng.sample(range(n), n),)),
        ("transpose", (dim(), dim())),
        ("expand", ([rng.randint(1, 3) for _ in range(rng.randint(0, 2))] + stretched,)),
        ("squeeze", () if rng.random() < 0.5 else (dim(),)),
        ("unsqueeze", (rng.randint(-n - 1, n),)),
        ("narrow", (dim(), rng.randint(-2, 4), rng.randint(0, 4))),
        ("select", (dim(), rng.randint(-3, 4))),
        ("unfold", (dim(), rng.randint(0, 3), rng.randint(1, 3))),
        ("diagonal", (rng.randint(-3, 3), dim(), dim())),
        ("flatten", (dim(), dim())),
        ("view", (sizes(),)),
    ]
    if n:
        choices.append(("unflatten", (dim(), [rng.randint(-1, 4) for _ in range(rng.randint(1, 3))])))
    return rng.choice(choices)


@pytest.mark.parametrize("seed", range(8))
def test_chains_of_views(seed):
    rng = random.Random(seed)
    for _ in range(300):
        shape = [rng.randint(0, 5) if rng.random() < 0.1 else rng.randint(1, 5) for _ in range(rng.randint(0, 4))]
        t, layout, offset = torch.zeros(shape), Layout.contiguous(shape), 0
        assert t.stride() == layout.strides
        for _ in range(rng.randint(1, 6)):
            found = same_view(rng, t, layout, offset, *random_view(rng, t))
            if found is not None:
                t, layout, offset = found


@pytest.mark.parametrize("seed", range(4))
def test_layout_of_pointwise_results(seed):
    rng = random.Random(seed)
    for _ in range(400):
        n = rng.randint(0, 4)
        shape = [rng.randint(1, 4) for _ in range(n)]
        operands = []
        for _ in range(rng.randint(1, 3)):
            own = [1 if rng.random() < 0.25 else s for s in shape][rng.randint(0, n) if rng.random() < 0.3 else 0 :]
            order = rng.sample(range(len(own)), len(own))
            t = torch.zeros([own[d] for d in order]).permute([order.index(d) for d in range(len(own))])
            if rng.random() < 0.25 and own:
                t = torch.zeros([2 * s for s in own])[tuple(slice(None, None, 2) for _ in own)]
            operands.append(t)
        result = [torch.neg, torch.add, torch.addcmul][len(operands) - 1](*operands)
        layouts = [Layout.of(t.shape, t.stride()) for t in operands]
        assert L.result_strides(L.broadcast_shapes(*[t.shape for t in operands]), *layouts).strides == result.stride(), [(t.shape, t.stride()) for t in operands]


def test_promotion_and_limits():
    ours = [d for d in D.all_dtypes() if hasattr(torch, d.name) and d.bits >= 8 and "x2" not in d.name]
    assert len(ours) > 15
    for a in ours:
        real = getattr(torch, a.name)
        assert (real.itemsize, real.is_floating_point, real.is_complex, real.is_signed) == (a.itemsize, a.is_floating_point, a.is_complex, a.is_signed)
        for limits in ("finfo", "iinfo"):
            assert [repr(x) or str(e) for x, e in [outcome(lambda: getattr(torch, limits)(real))]] == [repr(x) or str(e) for x, e in [outcome(lambda: getattr(D, limits)(a))]]
        for b in ours:
            theirs, their_error = outcome(lambda: torch.promote_types(real, getattr(torch, b.name)))
            mine, my_error = outcome(lambda: D.promote(a, b))
            assert str(theirs) == str(mine) and type(their_error) is type(my_error), (a, b)
            assert torch.can_cast(real, getattr(torch, b.name)) == D.can_cast(a, b), (a, b)
