"""Convolutions whose windows do not overlap: matrix products of weights and columns, a column a window. Nothing here is recorded.

Windows of one element are read where they lie; those that stand side by side (a patch embedding, a transposed convolution that doubles an image) are laid out first.
The operator, its gradients and all other convolutions are convolution.py's.
"""
from __future__ import annotations

from math import prod

from ..formats import contiguous_format, suggested
from ..layout import Layout
from ..tensor import Spec, empty_of, wrap
from .added import linear
from .convolution_last import layout_of
from .folding import plain
from .matmul import matmul
from .table import TABLE

FEW = 16  # features, or elements of a window, below which laying windows out costs more than a product of their sums gains


def takes(x, weight, stride, before, dilation, groups: int, places) -> bool:
    """Whether windows of x [N, C, S..] that give `places` are columns of a product: of one element each, or side by side."""
    return reach(x.shape[2:], weight, stride, before, dilation, groups, places) and all(o == (s - k) // t + 1 for o, s, k, t in zip(places, x.shape[2:], weight.shape[2:], stride))


def reach(sizes, weight, stride, before, dilation, groups: int, places) -> bool:
    """The same for the transposed walk, where `sizes` may go beyond the last window."""
    kernel = weight.shape[2:]
    if groups != 1 or any(before) or any((o - 1) * t + k > s for o, s, k, t in zip(places, sizes, kernel, stride)):
        return False
    if prod(kernel) == 1:
        return True
    return tuple(stride) == tuple(kernel) and all(d == 1 for d in dilation) and min(weight.shape[0], weight.shape[1] * prod(kernel)) >= FEW


def _patches(x, kernel, places):
    """Windows side by side, a view: [N, C, S..] → [N, C, O.., K..]."""
    n = len(kernel)
    for d, (k, o) in enumerate(zip(kernel, places)):
        x = x.narrow(2 + 2 * d, 0, o * k).unflatten(2 + 2 * d, (o, k))  # [N, C, .., O_d, K_d, ..]
    return x.permute(0, 1, *range(2, 2 + 2 * n, 2), *range(3, 3 + 2 * n, 2))


def _columns(x, kernel, stride, places, last: bool, joined: bool = False):
    """The windows as [N·O, K·C] (last), [C·K, N·O] (joined) or [N, C·K, O]."""
    n = len(kernel)
    if prod(kernel) == 1:
        if any(s != 1 for s in stride):
            x = x[(slice(None), slice(None), *(slice(None, None, s) for s in stride))]
        view, spaces, taps = x, range(2, 2 + n), ()
    else:
        view, spaces, taps = _patches(x, kernel, places), range(2, 2 + n), range(2 + n, 2 + 2 * n)
    elements, positions = x.shape[1] * prod(kernel), prod(places)
    if last:
        return view.permute(0, *spaces, *taps, 1).reshape(x.shape[0] * positions, elements)
    if joined:
        return view.permute(1, *taps, 0, *spaces).reshape(elements, x.shape[0] * positions)
    return view.permute(0, 1, *taps, *spaces).reshape(x.shape[0], elements, positions)


def _rows(weight, last: bool):
    """[F, C, K..] → [F, K·C] or [F, C·K], as columns are."""
    if last:
        weight = weight.permute(0, *range(2, weight.ndim), 1)
    return weight.reshape(weight.shape[0], -1)


def _image(rows, batch: int, places):
    """[N·O, F] → [N, F, O..] with its channels innermost."""
    n = len(places)
    return rows.view(batch, *places, rows.shape[1]).permute(0, n + 1, *range(1, n + 1))


def correlate(x, weight, bias, places, stride, form):
    """x [N, C, S..] with weight [F, C, K..] (+ bias [F]) → [N, F, places..] in the given format."""
    kernel, batch, positions = tuple(weight.shape[2:]), x.shape[0], prod(places)
    last = form is not contiguous_format
    if last or positions == 1:
        columns, rows = _columns(x, kernel, stride, places, True), _rows(weight, True)
        out = linear(columns, rows, bias)
        return _image(out, batch, places) if last else out.view(batch, -1, *places)
    columns, rows = _columns(x, kernel, stride, places, False), _rows(weight, False)
    if bias is not None and x.dtype.itemsize < 4:  # rounded after its bias is added, not before
        out = TABLE["baddbmm"].call(bias.reshape(-1, 1), rows.expand(batch, -1, -1), columns)
    else:
        out = matmul(rows, columns if batch > 1 else columns[0])
        if bias is not None:
            out = out.add_(bias.reshape(-1, 1))
    return out.view(batch, -1, *places)


def way(x, weight, bias, places, stride, form):
    """`correlate` as a function of (x, weight, bias) for operands of these specs, where both are read in place; None where they are not."""
    kernel, batch = tuple(weight.shape[2:]), x.shape[0]
    last = form is not contiguous_format
    as_rows = last or prod(places) == 1
    if prod(kernel) != 1 or any(s != 1 for s in stride) or not as_rows and bias is not None and x.dtype.itemsize < 4:
        return None
    columns, rows = _columns(x, kernel, stride, places, as_rows), _rows(weight, as_rows)
    if not as_rows and batch == 1:
        columns = columns[0]
    if columns.ptr != x.ptr or rows.ptr != weight.ptr:
        return None
    shape = batch, weight.shape[0], *places
    seen, rows, spec = columns.spec, rows.spec, Spec.of(layout_of(shape) if last else Layout.contiguous(shape), x.dtype, x.device)

    def by_linear(x, weight, bias):
        out = linear(wrap(seen, x.mem, x.ptr), wrap(rows, weight.mem, weight.ptr), None if bias is None else wrap(bias.spec, bias.mem, bias.ptr))
        return wrap(spec, out.mem, out.ptr)

    def by_matmul(x, weight, bias):
        out = matmul(wrap(rows, weight.mem, weight.ptr), wrap(seen, x.mem, x.ptr))
        if bias is not None:
            out.add_(plain(bias).reshape(-1, 1))
        return wrap(spec, out.mem, out.ptr)

    return by_linear if as_rows else by_matmul


def input_gradient(g, weight, sizes, stride, form):
    """[N, F, O..] → [N, C, sizes..] in the given format: each window's gradients are put where the window was read."""
    kernel, batch, places, channels = tuple(weight.shape[2:]), g.shape[0], tuple(g.shape[2:]), weight.shape[1]
    n, last = len(kernel), form is not contiguous_format
    rows = _rows(weight, last)
    if last:
        tiles = matmul(_columns(g, (1,) * n, (1,) * n, places, True), rows).view(batch, *places, *kernel, channels)
        tiles = tiles.permute(0, 2 * n + 1, *range(1, 2 * n + 1))  # [N, C, O.., K..]
    else:
        columns = _columns(g, (1,) * n, (1,) * n, places, False)  # [N, F, O]
        tiles = matmul(rows.t(), columns if batch > 1 else columns[0]).view(batch, channels, *kernel, *places)
        tiles = tiles.permute(0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))  # [N, C, O.., K..]
    if prod(kernel) == 1 and tuple(sizes) == places:
        return tiles.view(batch, channels, *places) if not last else tiles[(..., *(0,) * n)]
    shape = batch, channels, *sizes
    out = empty_of(Spec.of(layout_of(shape) if last else Layout.contiguous(shape), g.dtype, g.device))
    if prod(kernel) == 1:
        out.zero_()[(slice(None), slice(None), *(slice(None, None, s) for s in stride))].copy_(tiles[(..., *(0,) * n)])
        return out
    if any(k * o != size for k, o, size in zip(kernel, places, sizes)):
        out.zero_()
    _patches(out, kernel, places).copy_(tiles)
    return out


def weight_gradient(x, weight: Spec, g, stride, form):
    """[F, C, K..]: the sum over batch and positions of g [N, F, O..] times the windows of x [N, C, S..]."""
    kernel, places, batch = tuple(weight.shape[2:]), tuple(g.shape[2:]), x.shape[0]
    n, features, positions = len(kernel), weight.shape[0], prod(g.shape[2:])
    unit = (1,) * n
    if form is not contiguous_format or positions == 1:
        product = matmul(_columns(g, unit, unit, places, True).t(), _columns(x, kernel, stride, places, True))  # [F, K·C]
        out = product.view(features, *kernel, weight.shape[1]).permute(0, n + 1, *range(1, n + 1))
    else:
        elements = weight.numel // max(features, 1)
        if x.dtype.itemsize >= 4 and 4 * features * elements <= positions * (features + elements):  # a product an entry takes less memory than its operands
            product = matmul(_columns(g, unit, unit, places, False), _columns(x, kernel, stride, places, False).transpose(1, 2))  # [N, F, C·K]
            product = product.sum(0) if batch > 1 else product[0]
        else:
            product = matmul(_columns(g, unit, unit, places, False, True), _columns(x, kernel, stride, places, False, True).t())  # [F, C·K]
        out = product.view(weight.shape)
    return out.contiguous(memory_format=suggested(weight.layout))
