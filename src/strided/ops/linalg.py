"""Linear algebra: loads its families, and holds the small operators that need no factorisation (cross products, Vandermonde matrices, diagonals)."""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, no_grad, record, tracking
from ..dispatch import PlanCache, launch
from ..kernels import expr as E
from ..kernels.map import build_map
from ..layout import Layout, broadcast_shapes, wrap_dim
from ..tensor import Spec, empty_of
from . import linalg_factor, linalg_least, linalg_norms, linalg_qr, linalg_solve, linalg_spectral  # noqa: F401
from .elementwise import sum_to
from .linalg_checks import are_tensors
from .table import TABLE, operator


def _cross(x, y, dim):
    """Along a dimension of size 3: x₂ y₃ - x₃ y₂, and so on around."""
    name = "linalg.cross"
    if x.ndim != y.ndim:
        raise RuntimeError(f"{name}: inputs must have the same number of dimensions.\n  {list(x.shape)} and {list(y.shape)}")
    d = wrap_dim(dim, x.ndim)
    if x.shape[d] != 3 or y.shape[d] != 3:
        raise RuntimeError(f"{name}: inputs dimension {dim} must have length 3. Got {x.shape[d]} and {y.shape[d]}")
    broadcast_shapes(x.shape, y.shape)
    if x.dtype is not y.dtype:
        raise RuntimeError(f"expected scalar type {x.dtype.scalar_name} but found {y.dtype.scalar_name}\n  Convert one of them: other.to({x.dtype}).")
    if x.dtype is dtypes.bool_:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'\n  Convert both first: x.int().")
    if x.dtype.compute is x.dtype and not (x.dtype.is_complex or x.is_meta):
        out = _cross_at_once(x, y, d)
    else:
        roll = TABLE["roll"].call
        with no_grad():
            out = roll(x, -1, d) * roll(y, -2, d) - roll(x, -2, d) * roll(y, -1, d)
    if tracking(x, y):
        record(LinalgCrossBackward0, (x, y), out, (x, y), dim=d)
    return out


_cross_plans = PlanCache()  # specs and dimension -> (descriptor, the result's spec, where each operand's three components begin, in bytes)


def _cross_at_once(x, y, d):
    """All three components by one kernel. Products are rounded alone: that of a vector with itself is exactly 0."""
    key = x.spec, y.spec, d
    found = _cross_plans.get(key)
    if found is None:
        shape = broadcast_shapes(x.shape, y.shape)
        spec = Spec.of(Layout.contiguous(shape), x.dtype, x.device)
        parts = [layout.select(d, i) for layout in (spec.layout, x.spec.layout.expand(shape), y.spec.layout.expand(shape)) for i in range(3)]
        turns = [((i + 1) % 3, (i + 2) % 3) for i in range(3)]
        exprs = [E.rounded(E.param(j) * E.param(3 + k)) - E.rounded(E.param(k) * E.param(3 + j)) for j, k in turns]
        operands = [(x.dtype, layout) for layout, _ in parts]
        found = build_map(exprs, operands[:3], operands[3:]), spec, [offset * spec.itemsize for _, offset in parts]
        _cross_plans.put(key, found)
    desc, spec, offsets = found
    out = empty_of(spec)
    launch(desc, *(t.ptr + offset for t, offset in zip((out, out, out, x, x, x, y, y, y), offsets)))
    return out


@backward("LinalgCross", saved_names=("self", "other"))
def LinalgCrossBackward0(node, g):
    x, y = node.saved
    gx = sum_to(_cross(y.conj(), g, node.dim), x.shape) if node.needs[0] else None
    return gx, sum_to(_cross(g, x.conj(), node.dim), y.shape) if node.needs[1] else None


@operator("linalg_cross", method=False, out=True, namespace="linalg", flops=lambda args, kwargs, result: 3 * result.numel())
def linalg_cross(input, other, *, dim=-1):
    """Cross products of vectors of three elements along `dim`; the other dimensions broadcast."""
    are_tensors("linalg_cross", input=input, other=other)
    return _cross(input, other, dim)


@operator("cross", out=True, flops=lambda args, kwargs, result: 3 * result.numel())
def cross(input, other, dim=None):
    """Cross products along `dim`, by default the first dimension of size 3."""
    are_tensors("cross", input=input, other=other)
    if dim is None:
        dim = next((d for d, n in enumerate(input.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError(f"no dimension of size 3 in input\n  shape {list(input.shape)}")
    return _cross(input, other, dim)


@operator("linalg_diagonal", method=False, namespace="linalg", view=True, flops=lambda *_: 0)
def linalg_diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """A view of the diagonals of the matrices in two dimensions, at the end: [*, n, n] -> [*, n]."""
    return TABLE["diagonal"].call(A, offset, dim1, dim2)


@operator("linalg_vander", method=False, namespace="linalg", flops=lambda args, kwargs, result: result.numel())
def linalg_vander(x, *, N=None):
    """Powers 0 … N - 1 of every element (N: by default the length of the last dimension): [*, n] -> [*, n, N]."""
    are_tensors("linalg_vander", x=x)
    if x.dtype is dtypes.bool_:
        raise RuntimeError("linalg.vander: Expected a floating point, complex or integer tensor. Got Bool")
    if N is None and x.ndim == 0 or N is not None and N <= 1:
        raise RuntimeError("N must be greater than 1.")
    if x.ndim == 0:
        x = x.unsqueeze(0)
    return _powers(x, x.shape[-1] if N is None else N)


def _powers(x, count):
    """1, x, x², …: [*, n] -> [*, n, count], as running products."""
    if x.dtype.kind in ("uint", "int", "bool"):
        x = x.to(dtypes.int64)
    x = x.unsqueeze(-1)  # [*, n, 1]
    ones = TABLE["ones_like"].call(x)
    if count <= 1:
        return ones.narrow(-1, 0, count)
    return TABLE["cat"].call([ones, x.expand((*x.shape[:-1], count - 1)).cumprod(-1)], -1)


@operator("vander", method=False, flops=lambda args, kwargs, result: result.numel())
def vander(x, N=None, increasing=False):
    """Powers of a vector's elements, N of them, the highest first unless `increasing`: [n] -> [n, N]."""
    are_tensors("vander", x=x)
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    out = _powers(x, count)
    return out if increasing else TABLE["flip"].call(out, (-1,))
