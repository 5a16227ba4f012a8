"""Distances between the rows of two matrices. The Euclidean ones of many rows follow from a matrix product.

`pdist` and `pairwise_distance` are nn's (nn/functions/distance.py).
"""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, no_grad, record, tracking
from ..kernels import expr as E
from .elementwise import Pointwise, sum_to
from .matmul import matmul
from .reduce import sum as sum_
from .table import TABLE, operator

_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
_MANY = 25  # rows, above which PyTorch takes the product where it may choose

# |x - y| from x·y, |x|² and |y|²; rounding may leave a little less than 0 under the root
_from_products = Pointwise("cdist", lambda xy, xx, yy: E.sqrt(E.clamp(xx + yy - 2.0 * xy, 0.0, None)), 3)

# g / d, and 0 where d = 0, where the distance has no derivative; so have its own derivatives
_RATIO_GRADIENTS = (lambda h, g, d, r: E.where(d == 0, 0.0, h / d), lambda h, g, d, r: E.where(d == 0, 0.0, -h * r / d))
_ratio = Pointwise("cdist_backward", lambda g, d: E.where(d == 0, 0.0, g / d), 2, node="CdistBackward")
_ratio.gradient = lambda i: _RATIO_GRADIENTS[i]


def _euclidean(x, y):
    """[*, P, M] and [*, R, M] -> [*, P, R], without a tensor of all differences."""
    with no_grad():
        xx, yy = sum_(x * x, -1, True), sum_(y * y, -1).unsqueeze(-2)  # [*, P, 1], [*, 1, R]
        out = _from_products(matmul(x, y.mT), xx, yy)
    if tracking(x, y):
        record(EuclideanDistBackward0, (x, y), out, (x, y, out))
    return out


@backward("EuclideanDist", saved_names=("x1", "x2", "result"))
def EuclideanDistBackward0(node, g):
    x, y, d = node.saved
    c = _ratio(g, d)  # [*, P, R]
    gx = sum_to(x * sum_(c, -1, True) - matmul(c, y), x.shape) if node.needs[0] else None
    return gx, sum_to(y * sum_(c, -2).unsqueeze(-1) - matmul(c.mT, x), y.shape) if node.needs[1] else None


@operator("cdist", method=False, autocast="float32")
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """Distances between rows: [*, P, M] and [*, R, M] -> [*, P, R], in the p-norm.

    compute_mode: whether p = 2 may be computed from the rows' products, |x|² + |y|² - 2 x·y, which is much faster and loses digits where rows lie close to
    each other: "use_mm_for_euclid_dist_if_necessary" does from P > 25 or R > 25 on; "use_mm_for_euclid_dist"; "donot_use_mm_for_euclid_dist".
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode\n  One of: {', '.join(_MODES)}.")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.scalar_name}\n  Convert it first: x.float().")
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.scalar_name} but found {x2.dtype.scalar_name}\n  Convert one of them: .to({x1.dtype}).")
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    many = max(x1.shape[-2], x2.shape[-2]) > _MANY
    if p == 2 and (compute_mode == _MODES[1] or compute_mode == _MODES[0] and many) and x1.dtype in (dtypes.float32, dtypes.float64):
        return _euclidean(x1, x2)
    difference = TABLE["sub"].call(x1.unsqueeze(-2), x2.unsqueeze(-3))  # [*, P, R, M]
    return TABLE["vector_norm"].call(difference, p, -1)
