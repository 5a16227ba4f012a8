"""Convolutions with many features as products with windows that are laid out: the matrices are so large that laying out is little beside the product.

Holds what lays windows out, too: `windows`, the view that shows every window of a tensor, and `pad`. Nothing but these is recorded. Which convolutions
come here is `takes`'s choice; the operator, its gradients and all other convolutions are convolution.py's.
"""
from __future__ import annotations

from math import prod

from ..formats import contiguous_format, suggested
from ..layout import Layout
from ..tensor import Spec, empty_of
from .convolution_last import layout_of
from .matmul import matmul
from .table import TABLE

FEATURES = 256  # that every element laid out is multiplied by, at least
WINDOW = 1000  # elements, at least
WEIGHTS = 1 << 20  # images with channels innermost: so many do not stay in cache while a kernel of its own passes over positions
LEAST = 1 << 22  # multiplications, at least
ENTRY = 1 << 23  # elements laid out of one batch entry, at most
ROOM = 1 << 24  # and of the entries that are multiplied at once


def windows(x, kernel, stride, dilation):
    """Every window over the last n dimensions, as a view (kernel, stride and dilation are tuples): [.., S₁.., Sₙ] → [.., O₁.., Oₙ, K₁.., Kₙ]."""
    n = len(kernel)
    first = x.dim() - n
    if stride == kernel and all(d == 1 for d in dilation):  # windows that tile the input: a view whose gradient is a view again
        for d, k in enumerate(kernel):
            x = x.narrow(first + 2 * d, 0, x.size(first + 2 * d) // k * k).unflatten(first + 2 * d, (-1, k))  # [.., O_d, K_d, ..]
        return x.permute(*range(first), *range(first, first + 2 * n, 2), *range(first + 1, first + 2 * n, 2))
    for d in range(n):
        x = x.unfold(first + d, (kernel[d] - 1) * dilation[d] + 1, stride[d])  # [.., O_d, .., reach]
        if dilation[d] != 1:
            x = x[..., :: dilation[d]]  # [.., O_d, .., K_d]
    return x


def pad(x, amounts):
    """`amounts` as constant_pad_nd takes them: (before, after) of the last dimension first; negative ones cut off."""
    return TABLE["constant_pad_nd"].call(x, amounts) if any(amounts) else x


def around(before, after):
    return [p for pair in reversed(list(zip(before, after))) for p in pair]


def takes(what: str, dtype, weight, batch: int, places, groups: int, form) -> bool:
    """Whether a product of laid-out windows is the faster way to a "result", an "input" gradient or a "weight" gradient.

    weight: shape [F, C, K..]; places: positions of one entry.
    """
    features, elements, positions = weight[0], prod(weight[1:]), prod(places)
    if groups != 1 or features < FEATURES or positions * elements > ENTRY or batch * positions * elements * features < LEAST or len(places) > 2:
        return False
    if dtype.itemsize < 4 and (what == "input" or batch * positions * elements > ROOM):  # sums of several products would be rounded each time
        return False
    if what == "weight":
        return elements >= WINDOW
    return what == "input" if form is contiguous_format else features * elements >= WEIGHTS


def _some(batch: int, each: int):
    """Ranges of entries that are multiplied at once."""
    count = max(1, ROOM // max(each, 1))
    return [slice(i, i + count) for i in range(0, batch, count)]


def _columns(x, kernel, places, stride, before, dilation, last: bool):
    """The windows of x [N, C, S..] as [N·O, K·C] (last) or [C·K, N·O]."""
    n = len(kernel)
    after = [(o - 1) * t + (k - 1) * d + 1 - p - s for o, t, k, d, p, s in zip(places, stride, kernel, dilation, before, x.shape[2:])]
    view = windows(pad(x, around(before, after)), kernel, stride, dilation)  # [N, C, O.., K..]
    spaces, taps = range(2, 2 + n), range(2 + n, 2 + 2 * n)
    if last:
        return view.permute(0, *spaces, *taps, 1).reshape(-1, x.shape[1] * prod(kernel))
    return view.permute(1, *taps, 0, *spaces).reshape(x.shape[1] * prod(kernel), -1)


def _joined(g):
    """[N, F, O..] → [F, N·O]."""
    return g.transpose(0, 1).reshape(g.shape[1], -1)


def _rows_of(g):
    """[N, F, O..] → [N·O, F]."""
    return g.permute(0, *range(2, g.ndim), 1).reshape(-1, g.shape[1])


def correlate(x, weight, bias, places, stride, before, dilation):
    """x [N, C, S..] with weight [F, C, K..] (+ bias [F]) → [N, F, places..] with its channels innermost."""
    kernel, batch, features, n = tuple(weight.shape[2:]), x.shape[0], weight.shape[0], len(places)
    rows = _rows_of(weight).reshape(features, -1)  # [F, K·C]
    products = []
    for some in _some(batch, prod(places) * rows.shape[1]):
        columns = _columns(x[some], kernel, places, stride, before, dilation, True)
        products.append(matmul(columns, rows.t()) if bias is None else TABLE["addmm"].call(bias, columns, rows.t()))
    out = products[0] if len(products) == 1 else TABLE["cat"].call(products)
    return out.view(batch, *places, features).permute(0, n + 1, *range(1, n + 1))


def input_gradient(g, weight, sizes, stride, padding, dilation, form):
    """[N, F, O..] → [N, C, sizes..] in the given format: gradients of windows, each element of which is added where it was read."""
    last, kernel, places, channels = form is not contiguous_format, tuple(weight.shape[2:]), tuple(g.shape[2:]), weight.shape[1]
    n, shape = len(places), (g.shape[0], channels, *sizes)
    rows = (_rows_of(weight) if last else weight).reshape(weight.shape[0], -1)  # [F, K·C] or [F, C·K]
    out = empty_of(Spec.of(layout_of(shape) if last else Layout.contiguous(shape), g.dtype, g.device)).zero_()
    for some in _some(g.shape[0], prod(places) * rows.shape[1]):
        if last:
            tiles = matmul(_rows_of(g[some]), rows).view(-1, *places, *kernel, channels)  # [N, O.., K.., C]
            tiles = tiles.permute(0, 2 * n + 1, *range(1 + n, 1 + 2 * n), *range(1, 1 + n))
        else:
            tiles = matmul(rows.t(), _joined(g[some])).view(channels, *kernel, -1, *places)  # [C, K.., N, O..]
            tiles = tiles.permute(1 + n, 0, *range(1, 1 + n), *range(2 + n, 2 + 2 * n))
        target = out[some]
        for where, tap, what in _taps(kernel, sizes, places, stride, padding, dilation):
            target[(slice(None), slice(None), *where)].add_(tiles[(slice(None), slice(None), *tap, *what)])
    return out


def _taps(kernel, sizes, places, stride, padding, dilation):
    """For each element of a window: where in the input those of all windows lie, its number, and which windows have it inside."""
    found = [((), (), ())]
    for k, size, o, s, p, d in zip(kernel, sizes, places, stride, padding, dilation):
        line = []
        for i in range(k):
            first = max(0, -((i * d - p) // s))  # the first window whose element is not before the input
            end = min(o, (size - 1 + p - i * d) // s + 1)
            if end > first:
                start = first * s - p + i * d
                line.append((slice(start, start + (end - first - 1) * s + 1, s), i, slice(first, end)))
        found = [((*where, w), (*tap, i), (*what, v)) for where, tap, what in found for w, i, v in line]
    return found


def weight_gradient(x, weight: Spec, g, stride, before, dilation, form):
    """[F, C, K..]: the sum over batch and positions of g [N, F, O..] times the windows of x [N, C, S..]."""
    last, kernel, places, shape = form is not contiguous_format, tuple(weight.shape[2:]), tuple(g.shape[2:]), weight.shape
    n, out = len(kernel), None
    for some in _some(x.shape[0], prod(places) * (weight.numel // shape[0])):
        columns = _columns(x[some], kernel, places, stride, before, dilation, last)
        product = matmul(_rows_of(g[some]).t(), columns) if last else matmul(_joined(g[some]), columns.t())  # [F, K·C] or [F, C·K]
        out = product if out is None else out.add_(product)
    out = out.view(shape[0], *kernel, shape[1]).permute(0, n + 1, *range(1, n + 1)) if last else out.view(shape)
    return out.contiguous(memory_format=suggested(weight.layout))
