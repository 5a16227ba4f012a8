"""`torch.gradient`: derivatives of sampled functions by central differences, of second order inside and of order 1 or 2 at both ends."""
from __future__ import annotations

from typing import Any

from ..layout import wrap_dim
from ..tensor import Tensor
from .table import TABLE, operator


def _along(t: Tensor, dim: int, ndim: int) -> Tensor:
    """A vector as a tensor of `ndim` dimensions that runs along `dim`."""
    return t.view([-1 if d == dim else 1 for d in range(ndim)])


def _uniform(f: Tensor, h: Any, dim: int, edge_order: int) -> Tensor:
    """Equal steps h."""
    n = f.shape[dim]
    at = lambda start, length=1: f.narrow(dim, start, length)
    inside = (at(2, n - 2) - at(0, n - 2)) / (2 * h)
    if edge_order == 1:
        first, last = (at(1) - at(0)) / h, (at(n - 1) - at(n - 2)) / h
    else:
        first = (at(0) * -1.5 + at(1) * 2 + at(2) * -0.5) / h
        last = (at(n - 3) * 0.5 + at(n - 2) * -2 + at(n - 1) * 1.5) / h
    return TABLE["cat"].call([first, inside, last], dim)


def _at_points(f: Tensor, x: Tensor, dim: int, edge_order: int) -> Tensor:
    """Values at points x, a vector."""
    n = f.shape[dim]
    at = lambda start, length=1: f.narrow(dim, start, length)
    h = _along(TABLE["diff"].call(x), dim, f.ndim)  # [1, .., n - 1, .., 1]
    before, after = h.narrow(dim, 0, n - 2), h.narrow(dim, 1, n - 2)
    a, b, c = -after / (before * (before + after)), (after - before) / (before * after), before / (after * (before + after))
    inside = a * at(0, n - 2) + b * at(1, n - 2) + c * at(2, n - 2)
    if edge_order == 1:
        first, last = (at(1) - at(0)) / h.narrow(dim, 0, 1), (at(n - 1) - at(n - 2)) / h.narrow(dim, n - 2, 1)
    else:
        p, q = h.narrow(dim, 0, 1), h.narrow(dim, 1, 1)
        first = at(0) * (-(2 * p + q) / (p * (p + q))) + at(1) * ((p + q) / (p * q)) + at(2) * (-p / (q * (p + q)))
        p, q = h.narrow(dim, n - 3, 1), h.narrow(dim, n - 2, 1)
        last = at(n - 3) * (q / (p * (p + q))) + at(n - 2) * (-(p + q) / (p * q)) + at(n - 1) * ((p + 2 * q) / (q * (p + q)))
    return TABLE["cat"].call([first, inside, last], dim)


@operator("gradient", method=False)
def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """The derivative of sampled values along each of `dim` (all by default), as a tuple of tensors of input's shape.

    spacing: the distance of neighbours, one for all dimensions or one each, or the coordinates along each dimension as vectors.
    """
    spacing = 1 if spacing is None else spacing
    one = isinstance(spacing, (int, float))
    given = None if one else list(spacing)
    dims = [wrap_dim(d, input.ndim) for d in ((dim,) if isinstance(dim, int) else range(input.ndim) if dim is None else dim)]
    if isinstance(spacing, Tensor):
        given = [spacing] if spacing.ndim else [spacing.item()] * len(dims)
    if given is not None and len(given) != len(dims):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = {input.ndim}', since dim argument was not given, "
            f"but got a list of length {len(given)}" if dim is None else "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same length, "
            f"but got a spacing argument of length {len(given)} and a dim argument of length {len(dims)}."
        )  # fmt: skip
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"dim {next(d for d in dims if dims.count(d) > 1)} appears multiple times in the list of dims")
    for d in dims:
        if input.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    steps = [spacing] * len(dims) if one else given
    return tuple([(_at_points if isinstance(s, Tensor) else _uniform)(input, s, d, edge_order) for s, d in zip(steps, dims)])
