"""Pooling over windows: maximum, average, p-norm, and the adaptive forms."""
import math
from functools import lru_cache

from ... import ops
from ...autograd import tracking
from ...autograd.modes import no_grad
from ...formats import contiguous_format, suggested
from ...ops import pooling, resample
from . import checks, counts
from .conv import tuple_of, windows
from .entry import entry
from .padding import pad
from .precision import in_float32


def _sizes(x, n, kernel, stride, padding, dilation, ceil_mode, name, plain=True):
    """(kernel, stride, padding, dilation, output sizes) of a pooling over the last n dimensions of x."""
    checks.window_sizes(name, n, kernel, stride)
    kernel = tuple_of(kernel, n)
    stride = kernel if stride is None or stride == () or stride == [] else tuple_of(stride, n)
    padding, dilation = tuple_of(padding, n), tuple_of(dilation, n)
    checks.pool(name, n, x, kernel, stride, padding, dilation, plain)
    outs = [_out(*args, ceil_mode) for args in zip(x.shape[-n:], kernel, stride, padding, dilation)]
    checks.pool_result(name, n, x, kernel, outs)
    return kernel, stride, padding, dilation, outs


def _out(size, kernel, stride, padding, dilation, ceil_mode):
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return span // stride + 1
    out = -(-span // stride) + 1
    return out - 1 if (out - 1) * stride >= size + padding else out  # the last window must start inside


def _padded(x, n, kernel, stride, padding, dilation, outs, value):
    """x with its padding, and with what a last, partial window (ceil_mode) reaches beyond it."""
    ends = []
    for size, k, s, p, d, o in zip(x.shape[-n:], kernel, stride, padding, dilation, outs):
        need = (o - 1) * s + d * (k - 1) + 1
        ends.append((p, max(need - size - p, 0)))
    flat = [p for pair in reversed(ends) for p in pair]
    return pad(x, flat, value=value) if any(flat) else x


def _lowest(dtype):
    from ...dtypes import iinfo

    return -math.inf if dtype.is_floating_point else iinfo(dtype).min


def _max_pool(n, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    name = f"max_pool{n}d"
    tracked = tracking(input)
    kernel, stride, padding, dilation, outs = _sizes(
        input, n, kernel_size, stride, padding, dilation, ceil_mode, name, not return_indices
    )
    if pooling.takes(input):
        x = input if input.dim() == n + 2 else input.unsqueeze(0)  # [N, C, S..]
        values, index = pooling.maximum(x, kernel, stride, padding, dilation, tuple(outs), return_indices)
        if input.dim() != n + 2:
            values, index = values.squeeze(0), None if index is None else index.squeeze(0)
        return (values, index) if return_indices else values
    with no_grad():
        x = _padded(input, n, kernel, stride, padding, dilation, outs, _lowest(input.dtype))
        view = windows(x, kernel, stride, dilation)  # [.., O.., K..]
        view = view[(..., *(slice(o) for o in outs), *(slice(None),) * n)]
        values, index = view.flatten(-n).max(-1)  # [.., O..]
        if return_indices or tracked:
            index = _flat_index(index, input.shape[-n:], kernel, stride, padding, dilation, outs)
    if tracked:  # looked up again, so that the gradient is one scatter
        values = input.flatten(-n).gather(-1, index.flatten(-n)).reshape(index.shape)
    return (values, index) if return_indices else values


def _flat_index(index, sizes, kernel, stride, padding, dilation, outs):
    """Position within the window → position within the flattened input."""
    n, flat = len(kernel), 0
    for d in range(n):
        inner = math.prod(kernel[d + 1 :])
        within = index // inner % kernel[d]
        start = ops.arange(outs[d], device=index.device) * stride[d] - padding[d]
        place = (start.reshape(-1, *(1,) * (n - 1 - d)) + within * dilation[d]).clamp(0, sizes[d] - 1)  # padding only wins against −inf
        flat = flat * sizes[d] + place
    return flat


@entry(counts.nothing)
def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window: [.., L] → [.., O]."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@entry(counts.nothing)
def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window: [.., H, W] → [.., Oh, Ow]."""
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@entry(counts.nothing, autocast="float32")
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """The largest element of each window: [.., D, H, W] → [.., Od, Oh, Ow]."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _max_unpool(n, input, indices, kernel_size, stride, padding, output_size):
    kernel = tuple_of(kernel_size, n)
    stride = kernel if stride is None else tuple_of(stride, n)
    padding = tuple_of(padding, n)
    if indices.shape != input.shape:
        one = [1] if n == 1 else []  # PyTorch unpools a line as a column
        raise RuntimeError(f"Expected shape of indices to be same as that of the input tensor ({[*input.shape, *one]}) but got indices tensor with shape: {[*indices.shape, *one]}")
    sizes = [(size - 1) * s + k - 2 * p for size, k, s, p in zip(input.shape[-n:], kernel, stride, padding)]
    if output_size is not None:
        wanted = tuple(output_size)[-n:]
        if any(not size - s < w < size + s for w, size, s in zip(wanted, sizes, stride)):
            raise ValueError(f'invalid output_size "{wanted}" (each size must be within stride {stride} of {sizes})')
        sizes = list(wanted)
    flat = ops.zeros(*input.shape[:-n], math.prod(sizes), dtype=input.dtype, device=input.device)
    return flat.scatter(-1, indices.flatten(-n), input.flatten(-n)).unflatten(-1, sizes)  # [.., sizes..]


@entry(counts.nothing)
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts each element where `max_pool1d` with return_indices found it; zeros elsewhere."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


@entry(counts.nothing, autocast="float32")
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts each element where `max_pool2d` with return_indices found it; zeros elsewhere."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


@entry(counts.nothing, autocast="float32")
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Puts each element where `max_pool3d` with return_indices found it; zeros elsewhere."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _avg_pool(n, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
    name = f"avg_pool{n}d"
    kernel, stride, padding, dilation, outs = _sizes(input, n, kernel_size, stride, padding, 1, ceil_mode, name)
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    counts = [
        [_covered(i * s - p, k, size, p if count_include_pad else 0) for i in range(o)]
        for size, k, s, p, o in zip(input.shape[-n:], kernel, stride, padding, outs)
    ]
    equal = divisor_override is None and all(count == k for row, k in zip(counts, kernel) for count in row)
    exact = equal and all(k & (k - 1) == 0 for k in kernel)  # dividing by powers of two may come before the sum
    total = _sums(input, n, kernel, stride, padding, dilation, outs, exact)  # [.., O..]
    if divisor_override is not None:
        return _divided(total, divisor_override)
    if equal:
        return total if exact and resample.takes(input) else _divided(total, math.prod(kernel))
    if not total.is_floating_point():  # integers are divided once
        area = ops.ones((1,) * n, dtype=total.dtype, device=total.device)
        for d, row in enumerate(counts):
            area = area * ops.tensor(row, dtype=total.dtype, device=total.device).reshape(-1, *(1,) * (n - 1 - d))
        return _divided(total, area)
    for d, row in enumerate(counts):
        counted = ops.tensor(row, dtype=total.dtype, device=total.device)
        total = total / counted.reshape(-1, *(1,) * (n - 1 - d))
    return total


def _sums(input, n, kernel, stride, padding, dilation, outs, mean=False):
    """The sum of each window, or where `resample` takes it its mean: [.., S..] → [.., O..]."""
    if resample.takes(input):
        bands = {}
        for d in range(n):  # whole rows are added up first, while there are many of them
            size, arguments = input.size(d - n), (kernel[d], stride[d], padding[d], outs[d])
            if arguments != (1, 1, 0, size):
                ranges = tuple((max(i * stride[d] - padding[d], 0), min(i * stride[d] - padding[d] + kernel[d], size)) for i in range(outs[d]))
                bands[d + 2] = _ones(size, ranges, 1.0 / kernel[d] if mean else 1.0)
        alike = kernel, stride, padding, 1.0 / math.prod(kernel) if mean else 1.0
        return _resampled(input.contiguous() if n == 3 else input, n, bands, f"AvgPool{n}D", alike)
    x = _padded(input, n, kernel, stride, padding, dilation, outs, 0)
    view = windows(x, kernel, stride, dilation)[(..., *(slice(o) for o in outs), *(slice(None),) * n)]  # [.., O.., K..]
    return view.sum(tuple(range(-n, 0)))


@lru_cache(maxsize=256)
def _ones(size, ranges, weight=1.0):
    """The bands that add up each range (start, end), times a weight."""
    return resample.Bands(size, [start for start, _ in ranges], [[weight] * (end - start) for start, end in ranges])


def _resampled(input, n, bands, node, alike=None):
    """`resample` of [C, S..] or [N, C, S..]."""
    if not bands:
        return input
    x = input if input.dim() == n + 2 else input.unsqueeze(0)
    x = resample.resample(x, bands, node, "input", alike)
    return x if input.dim() == n + 2 else x.squeeze(0)


def _divided(total, count):
    return total / count if total.is_floating_point() else total.div(count, rounding_mode="trunc")


def _covered(start, kernel, size, padding):
    """How many positions of [−padding, size + padding) a window covers."""
    return min(start + kernel, size + padding) - max(start, -padding)


@entry(counts.average_pool(1))
def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """The mean of each window: [.., L] → [.., O]."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@entry(counts.average_pool(2))
def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """The mean of each window: [.., H, W] → [.., Oh, Ow]."""
    return _avg_pool(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@entry(counts.average_pool(3), autocast="float32")
def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
):
    """The mean of each window: [.., D, H, W] → [.., Od, Oh, Ow]."""
    return _avg_pool(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@entry(counts.power_pool(1))
def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(Σ x^p)^(1/p) of each window of the last dimension."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@entry(counts.power_pool(2))
def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(Σ x^p)^(1/p) of each window of the last two dimensions."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@entry(counts.power_pool(3))
def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(Σ x^p)^(1/p) of each window of the last three dimensions."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _lp_pool(n, input, p, kernel_size, stride, ceil_mode):
    mean = _avg_pool(n, input.pow(p), kernel_size, stride, 0, ceil_mode, True)
    return (mean.sign() * mean.abs().relu() * math.prod(tuple_of(kernel_size, n))).pow(1.0 / p)


# ---- adaptive ---------------------------------------------------------------------------------


def _targets(input, n, output_size):
    """The output sizes, None standing for the input's own."""
    sizes = tuple_of(output_size, n)
    return [s if o is None else o for s, o in zip(input.shape[-n:], sizes)]


def _ranges(size, out):
    """(start, end) of the ranges that cover a dimension."""
    return tuple((i * size // out, -(-(i + 1) * size // out)) for i in range(out))


def _adaptive_avg(n, input, output_size):
    checks.adaptive("avg", n, input, output_size)
    targets = _targets(input, n, output_size)
    resample.room(input, targets)
    form = suggested(input.spec.layout) if input.dim() == n + 2 else contiguous_format
    if all(t == 1 for t in targets):
        if form is contiguous_format:
            return input.mean(tuple(range(-n, 0)), keepdim=True)
        means = input.mean(tuple(range(-n, 0)))  # [N, C] → [N, 1.., C] → [N, C, 1..], with PyTorch's strides
        return means.reshape(means.size(0), *(1,) * n, -1).permute(0, n + 1, *range(1, n + 1))
    if not resample.takes(input):
        return _averaged_by_matrix(n, input, targets).contiguous(memory_format=form if n == 2 else contiguous_format)
    if n == 3:  # PyTorch's volumes become contiguous here, as in `_sums`
        input = input.contiguous()
    bands, area = {}, 1
    for d in range(n):
        size, out = input.size(d - n), targets[d]
        ranges = _ranges(size, out)
        counts = {end - start for start, end in ranges}
        if out != size:
            bands[d + 2] = _ones(size, ranges)
        if len(counts) != 1:
            counted = ops.tensor([end - start for start, end in ranges], dtype=input.dtype, device=input.device)
            area = area * counted.reshape(-1, *(1,) * (n - 1 - d))
        elif counts != {1}:
            area = area * counts.pop()
    total = _resampled(input, n, bands, f"AdaptiveAvgPool{n}D")
    return total.clone() if total is input else total / area


def _averaged_by_matrix(n, input, targets):
    for dim, out in zip(range(input.dim() - n, input.dim()), targets):
        size = input.size(dim)
        if out == size:
            continue
        matrix = [[0.0] * size for _ in range(out)]  # row i averages the i-th range
        for i, (start, end) in enumerate(_ranges(size, out)):
            matrix[i][start:end] = [1.0 / (end - start)] * (end - start)
        matrix = ops.tensor(matrix, dtype=input.dtype, device=input.device)  # [out, size]
        input = (input.transpose(dim, -1) @ matrix.t()).transpose(dim, -1)  # [.., out, ..]
    return input


@entry(counts.adaptive_average(1))
@in_float32
def adaptive_avg_pool1d(input, output_size):
    """Means of `output_size` ranges that cover the last dimension."""
    return _adaptive_avg(1, input, output_size)


@entry(counts.adaptive_average(2))
@in_float32
def adaptive_avg_pool2d(input, output_size):
    """Means of ranges that cover the last two dimensions; None keeps a size."""
    return _adaptive_avg(2, input, output_size)


@entry(counts.adaptive_average(3), autocast="float32")
@in_float32
def adaptive_avg_pool3d(input, output_size):
    """Means of ranges that cover the last three dimensions; None keeps a size."""
    return _adaptive_avg(3, input, output_size)


def _adaptive_max(n, input, output_size, return_indices):
    checks.adaptive("max", n, input, output_size)
    targets, sizes = _targets(input, n, output_size), input.shape[-n:]
    resample.room(input, targets)
    if pooling.takes(input) and input.numel():
        x = input if input.dim() == n + 2 else input.unsqueeze(0)  # [N, C, S..]
        found = pooling.adaptive(x, tuple(tuple((start, end - start) for start, end in _ranges(size, out)) for size, out in zip(sizes, targets)), return_indices)
        values, index = found if input.dim() == n + 2 else (t if t is None else t.squeeze(0) for t in found)
        return (values, index) if return_indices else values
    places = []  # for each dimension [out, width]: positions in a range; a short range repeats its last one
    for size, out in zip(sizes, targets):
        ranges = _ranges(size, out)
        width = max(end - start for start, end in ranges)
        places.append(ops.tensor([[min(s + j, e - 1) for j in range(width)] for s, e in ranges], device=input.device))
    flat = 0
    for d, place in enumerate(places):  # each reshaped to [1.., out, 1.., width, 1..]
        shape = [1] * (2 * n)
        shape[d], shape[n + d] = place.shape
        flat = flat * sizes[d] + place.reshape(shape)
    view = input.flatten(-n)[..., flat.flatten(n)]  # [.., out.., widths]
    values, index = view.max(-1)
    if not return_indices:
        return values
    table = flat.flatten(n).expand(*view.shape)
    return values, table.gather(-1, index.unsqueeze(-1)).squeeze(-1)


@entry(counts.nothing)
def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Maxima of `output_size` ranges that cover the last dimension."""
    return _adaptive_max(1, input, output_size, return_indices)


@entry(counts.nothing)
def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Maxima of ranges that cover the last two dimensions; None keeps a size."""
    return _adaptive_max(2, input, output_size, return_indices)


@entry(counts.nothing, autocast="float32")
def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Maxima of ranges that cover the last three dimensions; None keeps a size."""
    return _adaptive_max(3, input, output_size, return_indices)


# ---- PyTorch's names for pools that return places, too --------------------------------------------------------------------------------


def _with_indices(pool):
    def function(*args, **kwargs):
        return pool(*args, **{**kwargs, "return_indices": True})

    function.__name__ = function.__qualname__ = pool.__name__ + "_with_indices"
    function.__doc__ = f"(`{pool.__name__}`, the places of its elements). The arguments are the same."
    return function


max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = map(_with_indices, (max_pool1d, max_pool2d, max_pool3d))
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = map(
    _with_indices, (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)
)
