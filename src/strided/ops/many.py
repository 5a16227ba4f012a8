"""Operators over lists of tensors that are one launch, however many tensors there are: an optimiser's update, the norm of all gradients, their scaling.

Holds `fused_update`, which turns a formula into such an operator, `total_norm`, `scale_all` and `clamp_all`. The formulas are in `optim`.
"""
from __future__ import annotations

import functools
import math
from threading import get_ident

from .. import dispatch, errors
from ..autograd.graph import tracking
from ..autograd.modes import is_grad_enabled
from ..kernels import expr as E
from ..kernels import native
from ..kernels.fold import build_fold
from ..kernels.many import Many
from ..kernels.map import GRAIN, LONG, build_map
from ..kernels.recipes import KEEP, LISTENERS
from ..layout import Layout
from .create import empty, tensor
from .elementwise import check_overlap
from .join import stack
from .moments import _NORMS, vector_norm
from .table import operator

PIECE = 1 << 14  # elements of a gradient whose norm is one piece of work


def fused_update(name, written, tensors, numbers):
    """Decorates a formula over `tensors` elements and `numbers` numbers that returns new values of the first `written` tensors.

    The result is a function of a list of members, each a tuple of that many tensors (one shape, one device), and of floats that all members share: one
    launch, which writes in place, outside the graph. Arithmetic is in the first tensor's compute dtype: float32 for 16-bit parameters. The formula's keyword
    arguments are choices (bools): each combination that is asked for becomes an expression of its own, so that nothing is computed, or counted, that an
    option left out.

    In grad mode (an optimiser with `differentiable=True`) the formula runs on the tensors themselves and is recorded; its numbers may then be tensors, too.
    """

    def make(formula):
        plans, lists = dispatch.PlanCache(), dispatch.PlanCache(64)

        @functools.cache
        def exprs(choices):
            found = E.trace(functools.partial(formula, **dict(choices)), tensors + numbers)
            return found if isinstance(found, tuple) else (found,)

        def plan(operands, choices):
            """The descriptor for one member; None on the meta device."""
            shape, common = operands[0].shape, operands[0].dtype.compute
            for t in operands:
                if t.shape != shape:
                    raise RuntimeError(f"{name}: parameter, gradient and state must have one shape, but got {list(shape)} and {list(t.shape)}")
            errors.check_devices(name, operands)
            for t in operands[:written]:
                check_overlap(t)
            if operands[0].is_meta:
                return None
            ins = [(t.dtype, t.spec.layout) for t in operands]
            return build_map(exprs(choices), ins[:written], [*ins, *[("param", "f64")] * numbers], compute=[common] * tensors + [None] * numbers)

        def member_plan(operands, choices):
            key = (choices, *[t.spec for t in operands])
            found = plans.get(key)
            if found is None:
                found = plans.put(key, (plan(operands, choices),))
            return found[0]

        def list_plan(members, choices):
            """One launch for all members, or None where they go one by one: a single one, and on the meta device."""
            descs = [member_plan(operands, choices) for operands in members]
            if len(members) == 1 or None in descs:
                return None
            end = len(members) * tensors
            given = [(end + k, 0) for k in range(numbers)]
            pieces = []
            for number, desc in enumerate(descs):
                own = [(number * tensors + k, 0) for k in range(tensors)]
                pieces.append((desc, (*own[:written], *own, *given)))
            work = sum(operands[0].spec.numel for operands in members) * max(1, E.work(exprs(choices)) // 4)
            return Many(pieces, end, numbers, native.parts_for(work, GRAIN), work * 0.2 > LONG)

        def recorded(operands, values, choices):
            new = formula(*[t.clone() for t in operands], *values, **choices)
            for t, value in zip(operands[:written], new if isinstance(new, tuple) else (new,)):
                t.copy_(value)

        @operator(name, function=False, method=False, writes=True,
                  flops=lambda args, kwargs, result: E.flops(exprs(tuple(kwargs.items()))) * sum(operands[0].numel() for operands in args[0]))  # fmt: skip
        def update(members, *values, **choices):
            kind = tuple(choices.items())
            listener = LISTENERS.get(get_ident()) if LISTENERS else None
            if listener is not None and listener.rule((name, kind, *[id(operands[0]) for operands in members]), values):
                return []  # only the numbers were wanted
            flat = [t for operands in members for t in operands]
            if KEEP[0]:  # somebody records launches, and knows addresses in slots only
                together = None
            else:
                key = (kind, *[t.spec for t in flat])
                found = lists.get(key)
                if found is None:
                    found = lists.put(key, (list_plan(members, kind),))
                together = found[0]
            if together is not None:
                together.launch([t.ptr for t in flat], values)
            else:
                values = [float(v) for v in values]
                for operands, desc in [(operands, member_plan(operands, kind)) for operands in members]:  # all checked before the first is written
                    if desc is not None:
                        pointers = [t.ptr for t in operands]
                        dispatch.launch(desc, *pointers[:written], *pointers, *values)
                if listener is not None:
                    listener.ruled()
            for operands in members:
                for t in operands[:written]:
                    t.mem.version += 1
            return [operands[0] for operands in members]

        def step(members, *values, **choices):
            if not is_grad_enabled():
                return update(members, *values, **choices)
            for operands in members:
                recorded(operands, values, choices)

        return step

    return make


@fused_update("scale_all_", 1, 1, 1)
def scale_all(x, factor):
    """Every tensor times a number, in place: `scale_all([(x,), ...], factor)`."""
    return x * factor


@fused_update("clamp_all_", 1, 1, 2)
def clamp_all(x, low, high):
    """Every tensor clamped to low … high, in place; NaN stays: `clamp_all([(x,), ...], low, high)`."""
    return E.clamp(x, low, high)


_norm_plans = dispatch.PlanCache(64)


@operator("total_norm", function=False, method=False, flops=lambda args, kwargs, result: 2 * sum(t.numel() for t in args[0]))
def total_norm(tensors, ord=2.0):
    """The ord-norm of all elements of all tensors (floating point, ord as `vector_norm`'s), as if they were one vector. A 0-dimensional tensor."""
    if not tensors:
        return tensor(0.0)
    first = tensors[0]
    dtype, ord = first.dtype, float(ord)
    key = (ord, *[t.spec for t in tensors])
    found = None if KEEP[0] or tracking(*tensors) else _norm_plans.get(key)
    if found is None and (KEEP[0] or ord not in (1.0, 2.0, math.inf) or len(tensors) == 1 or tracking(*tensors) or not all(_plain(t, dtype) for t in tensors)):
        norms = [vector_norm(t, ord) for t in tensors]
        return vector_norm(stack([n.to(first.device) for n in norms]), ord) if len(norms) > 1 else vector_norm(norms[0], ord)
    if found is None:
        found = _norm_plans.put(key, _norm_plan(tensors, ord))
    plan, count = found
    norms = empty(count, dtype=dtype.compute)  # [pieces]
    plan.launch([*[t.ptr for t in tensors], norms.ptr])
    return vector_norm(norms, ord).to(dtype)


def _plain(t, dtype) -> bool:
    return t.dtype is dtype and dtype.is_floating_point and dtype.code >= 0 and not t.is_meta and t.spec.numel > 0


def _norm_plan(tensors, ord):
    """(the launch, how many norms it writes). A dense tensor's elements are taken in pieces, in the order in which they lie in memory."""
    expr, pieces, work = _NORMS[ord].exprs[0], [], []
    item, descs = tensors[0].dtype.compute.itemsize, {}

    def piece(number, offset, dtype, layout):
        desc = descs.get(layout)
        if desc is None:
            out = Layout.contiguous((1,) * layout.ndim)
            desc = descs[layout] = build_fold((expr,), tuple(range(layout.ndim)), [(dtype.compute, out)], [(dtype, layout)])
        pieces.append((desc, ((len(tensors), len(pieces) * item), (number, offset * dtype.itemsize))))
        work.append(layout.numel)

    for number, t in enumerate(tensors):
        layout = t.spec.layout
        if not (layout.is_dense and min(layout.strides, default=1) >= 0):
            piece(number, 0, t.dtype, layout)
            continue
        for offset in range(0, layout.numel, PIECE):
            piece(number, offset, t.dtype, Layout.contiguous((min(PIECE, layout.numel - offset),)))
    cost = sum(work) * max(1, E.work((expr,)) // 4)
    return Many(pieces, len(tensors) + 1, 0, min(native.parts_for(cost, GRAIN), len(pieces)), cost * 0.2 > LONG, work), len(pieces)
