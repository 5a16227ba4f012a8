"""Running totals along a dimension: cumsum, cumprod, cummax, cummin, logcumsumexp, diff."""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, check_inplace, no_grad, record, tracking
from ..dispatch import PlanCache, run
from ..errors import c_name
from ..kernels.scan import build_scan
from ..layout import Layout, wrap_dim
from ..tensor import Spec
from . import host
from .folding import accumulation_dtype, check_dtype, conjugates, plain
from .return_types import TYPES
from .table import TABLE, adopt, operator

_plans = PlanCache()


def _scan(input, dim, dtype, op):
    """A running "add" or "mul", unrecorded."""
    key = op, input.spec, dim, dtype
    plan = _plans.get(key)
    if plan is None:
        check_dtype("cumsum", input)
        spec = Spec.of(Layout.contiguous(input.shape), dtype, input.device)
        desc = None
        if not spec.is_meta:
            shape, strides, own = (spec.shape, spec.strides, input.spec.strides) if input.ndim else ((1,), (1,), (1,))
            desc = build_scan(op, shape, dim, (dtype, strides), (input.dtype, own), result_bytes=spec.nbytes)
        plan = _plans.put(key, (desc, spec))
    return run(plan[0], plan[1], input.ptr)


@operator("cumsum", out=True, flops=lambda args, kwargs, result: result.numel())
def cumsum(input, dim, *, dtype=None):
    """The running sum along `dim`; integers and bool give int64 unless `dtype` says otherwise."""
    dim = wrap_dim(dim, input.ndim)
    dtype = accumulation_dtype(input, dtype)
    out = _scan(input, dim, dtype, "add")
    if tracking(input):
        record(CumsumBackward0, (input,), out, dim=dim, own=input.dtype)
    return out


@backward("Cumsum")
def CumsumBackward0(node, g):
    g = _reversed_sum(g, node.dim)
    return (g if g.dtype is node.own else TABLE["to"].call(g, node.own),)


def _reversed_sum(g, dim):
    """From each place on, the sum of what follows (itself included)."""
    if g.ndim == 0:
        return g
    return _reversed(g, dim, cumsum)


def _reversed(x, dim, scan):
    flip = TABLE["flip"].call
    return flip(scan(flip(x, (dim,)), dim), (dim,))


@operator("cumprod", out=True, flops=lambda args, kwargs, result: result.numel())
def cumprod(input, dim, *, dtype=None):
    """The running product along `dim`."""
    dim = wrap_dim(dim, input.ndim)
    dtype = accumulation_dtype(input, dtype)
    out = _scan(input, dim, dtype, "mul")
    if tracking(input):
        record(CumprodBackward0, (input,), out, (input, out), dim=dim)
    return out


@backward("Cumprod", saved_names=("self", "result"))
def CumprodBackward0(node, g):
    """Without zeros: the reversed sum of g * result, over x. With them, term by term: d result_j / d x_i is the product of the others up to j."""
    x, result = node.saved
    dim = node.dim
    if x.ndim == 0:
        return (g,)
    x, result = conjugates(x, result)
    if x.is_meta or not bool(TABLE["any"].call(TABLE["eq"].call(x, 0))):
        return (_reversed_sum(g * result, dim) / x,)
    narrow, cat, n, columns = TABLE["narrow"].call, TABLE["cat"].call, x.shape[dim], []
    one = TABLE["ones_like"].call(narrow(x, dim, 0, 1))
    for i in range(n):
        before = TABLE["prod"].call(narrow(x, dim, 0, i), dim, True) if i else one
        after = cumprod(cat([one, narrow(x, dim, i + 1, n - i - 1)], dim), dim)  # for j = i, i + 1, …
        columns.append(before * TABLE["sum"].call(narrow(g, dim, i, n - i) * after, dim, True))
    return (cat(columns, dim),)


def _in_place(name, scan):
    """In place the total is run in the tensor's own dtype: integers stay what they are, bool has none."""

    def into(input, dim, *, dtype=None):
        check_inplace(input)
        if dtype is not None and dtype is not input.dtype:
            raise RuntimeError(f"Bad in-place call: input tensor dtype {c_name(input.dtype)} and output tensor dtype {c_name(dtype)} should match")
        if input.dtype is not dtypes.bool_:
            return adopt(input, scan(input, dim, dtype=input.dtype), name)
        wrap_dim(dim, input.ndim)
        if input.ndim and input.numel():
            raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool': {name} without the underscore counts in int64")
        return input

    into.__doc__ = f"In-place form of `{name}`."
    return operator(f"{name}_", function=False, flops=TABLE[name].flops)(into)


cumsum_, cumprod_ = _in_place("cumsum", cumsum), _in_place("cumprod", cumprod)


def _cum_extreme(name, largest):
    cls = backward(name.capitalize(), saved_names=("indices",))(_scatter_add_back)

    def extreme(input, dim):
        import numpy

        if input.ndim and not input.numel():  # PyTorch does not look at the dimension then
            return TYPES[name]((TABLE["clone"].call(input), TABLE["empty_like"].call(input, dtype=dtypes.int64)))
        d = wrap_dim(dim, input.ndim)
        if input.is_meta:
            return TYPES[name]((host.like(input.spec), host.like(input.spec, dtype=dtypes.int64)))
        if input.ndim == 0:
            return TYPES[name]((TABLE["clone"].call(input), TABLE["zeros"].call((), dtype=dtypes.int64, device=input.device)))
        a = host.wide(input)
        best = (numpy.maximum if largest else numpy.minimum).accumulate(a, axis=d)
        here = a == best
        if a.dtype.kind == "f":
            here |= numpy.isnan(a)
        shape = [1] * a.ndim
        shape[d] = -1
        place = numpy.where(here, numpy.arange(a.shape[d]).reshape(shape), 0)
        indices = host.tensor(numpy.maximum.accumulate(place, axis=d), dtypes.int64, input.device)
        values = host.tensor(best, input.dtype, input.device)
        if tracking(input):
            record(cls, (input,), values, (indices,), shape=input.shape, dim=d)
        return TYPES[name]((values, indices))

    extreme.__doc__ = f"(values, indices) of the running {'maximum' if largest else 'minimum'} along `dim`; the last of equal elements."
    return operator(name, out=True, flops=lambda *_: 0)(extreme)


def _scatter_add_back(node, g):
    (indices,) = node.saved
    return (TABLE["scatter_add"].call(TABLE["zeros"].call(node.shape, dtype=g.dtype, device=g.device), node.dim, indices, g),)


cummax, cummin = _cum_extreme("cummax", True), _cum_extreme("cummin", False)


@operator("logcumsumexp", out=True, flops=lambda args, kwargs, result: 3 * result.numel())
def logcumsumexp(input, dim):
    """log of the running sum of exp(x) along `dim`, without overflow."""
    import numpy

    d = wrap_dim(dim, input.ndim)
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise NotImplementedError(f'"logcumsumexp_out_cpu" not implemented for \'{input.dtype.scalar_name}\'')
    if input.is_meta:
        out = host.like(input.spec)
    elif input.ndim == 0:
        out = TABLE["clone"].call(plain(input))
    elif input.dtype.is_complex:
        out = _complex_logcumsumexp(plain(input), d)
    else:
        out = host.tensor(numpy.logaddexp.accumulate(host.wide(input).astype("float64"), axis=d), input.dtype, input.device)
    if tracking(input):
        record(LogcumsumexpBackward0, (input,), out, (input, out), dim=d)
    return out


def _complex_logcumsumexp(x, dim):
    """One after the other: the imaginary part counts the turns that the sum takes on its way."""
    rows = TABLE["unbind"].call(x, dim)
    with no_grad():
        sums = list(rows[:1])
        for row in rows[1:]:
            sums.append(TABLE["logaddexp"].call(row, sums[-1]))
        return TABLE["stack"].call(sums, dim) if sums else TABLE["clone"].call(x)


@backward("Logcumsumexp", saved_names=("self", "result"))
def LogcumsumexpBackward0(node, g):
    """exp(x_i) * sum over j >= i of g_j exp(-result_j), in logarithms, positive and negative gradients apart: nothing overflows."""
    x, result = node.saved
    if x.ndim == 0:
        return (g,)
    if x.dtype.is_complex:
        x, result = conjugates(x, result)
        return (TABLE["exp"].call(_reversed(TABLE["log"].call(g) - result, node.dim, logcumsumexp) + x),)

    def part(g):
        positive, where = g > 0, TABLE["where"].call
        log = where(positive, TABLE["log"].call(where(positive, g, 1.0)) - result, dtypes.finfo(g.dtype).min)
        return TABLE["exp"].call(_reversed(log, node.dim, logcumsumexp) + x)

    return (part(g) - part(-g),)


@operator("diff", out=True, flops=lambda args, kwargs, result: result.numel())
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """Differences of neighbours along `dim`, n times; prepend and append are joined to the input first."""
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = wrap_dim(dim, input.ndim)
    if n == 0:
        return TABLE["clone"].call(input)
    pieces = [t for t in (prepend, input, append) if t is not None]
    x = TABLE["cat"].call(pieces, dim) if len(pieces) > 1 else input
    for _ in range(n):
        size = x.shape[dim]
        if size == 0:
            break
        low, high = TABLE["narrow"].call(x, dim, 0, size - 1), TABLE["narrow"].call(x, dim, 1, size - 1)
        x = TABLE["logical_xor"].call(high, low) if x.dtype is dtypes.bool_ else high - low
    return x
