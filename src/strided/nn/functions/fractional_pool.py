"""Fractional max pooling: windows whose starts are drawn, so that their number need not divide the input's size."""
from ... import ops
from ...autograd.modes import no_grad
from . import counts
from .conv import tuple_of
from .entry import entry

_AXES = ("time", "height", "width")


def _starts(samples, size, out, kernel):
    """Where the `out` windows of a dimension begin: samples [N, C] in [0, 1) → [N, C, out]. The last one ends at the input's end."""
    steps = ops.arange(max(out - 1, 0), dtype=samples.dtype)
    alpha = ops.tensor((size - kernel) / (out - 1) if out > 1 else 0.0, dtype=samples.dtype)
    samples = samples.unsqueeze(-1)  # [N, C, 1]
    inner = ((steps + samples) * alpha).long() - (samples * alpha).long()
    last = ops.full((*samples.shape[:-1], 1), size - kernel, dtype=inner.dtype)
    return ops.cat([inner, last], -1)


def _arguments(n, x, kernel, sizes, samples):
    """(kernel, sizes, samples), checked in PyTorch's order and words."""
    name = f"fractional_max_pool{n}d"
    for what, value in (("kernel_size", kernel), ("output_size", sizes)):
        if isinstance(value, (tuple, list)) and len(value) not in (1, n):
            raise RuntimeError(f"{name}: {what} must either be a single Int or tuple of Ints")
    kernel, sizes = tuple_of(kernel, n), tuple_of(sizes, n)
    for d in range(x.dim() - n - 1, x.dim()):
        if x.shape[d] == 0:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got{list(x.shape)} with dimension {d} being empty.")
    if samples.dtype != x.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.dim() != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.dim()}")
    batch = 1 if x.dim() == n + 1 else x.size(0)
    if samples.size(0) < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.size(1) != x.size(-n - 1):
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.size(2) != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n}; got {samples.size(2)}.")
    for axis, k, o, size in zip(_AXES[-n:], kernel, sizes, x.shape[-n:]):
        if o + k - 1 > size:
            raise RuntimeError(f"{name}{'' if n == 2 else '_out'}(): pool {axis} {k} too large relative to input {axis} {size}")
    return kernel, sizes, samples[:batch]


def _pool(n, x, kernel, sizes, ratio, samples):
    """(maxima, their places in the flattened plane) of x [N, C, ..] or [C, ..]."""
    name = f"fractional_max_pool{n}d"
    if sizes is None and ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if sizes is None:
        if n == 2 and len(ratio) > 2:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        ratio = tuple_of(ratio, n)
        sizes = [int(x.size(d - n) * ratio[d]) for d in range(n)]
    if samples is None:
        samples = ops.rand(1 if x.dim() == n + 1 else x.size(0), x.size(-n - 1), n, dtype=x.dtype, device=x.device)
    kernel, sizes, samples = _arguments(n, x, kernel, sizes, samples)
    planes = x if x.dim() == n + 2 else x.unsqueeze(0)  # [N, C, ..]
    flat = planes.flatten(2)  # [N, C, size]
    with no_grad():
        place = ops.zeros((), dtype=ops.arange(0).dtype)
        for d in range(n):  # place: [N, C, O_1, K_1, .., O_d, K_d], flattened at the end
            column = {3: d, 2: 1 - d}[n]  # PyTorch reads the samples of two dimensions last first
            inside = _starts(samples[..., column], planes.size(2 + d), sizes[d], kernel[d]).unsqueeze(-1) + ops.arange(kernel[d])  # [N, C, O, K]
            shape = [*planes.shape[:2], *(1,) * (2 * d), sizes[d], kernel[d], *(1,) * (2 * (n - 1 - d))]
            place = place * planes.size(2 + d) + inside.view(shape)
        order = [0, 1, *range(2, 2 + 2 * n, 2), *range(3, 3 + 2 * n, 2)]
        place = place.permute(order).flatten(2 + n).flatten(2, 1 + n)  # [N, C, O, K]
        windows = flat.detach().gather(2, place.flatten(2)).view(place.shape)
        if x.size(0) and place.size(-1):
            best = windows.argmax(-1, keepdim=True)
            index = place.gather(-1, best).squeeze(-1)  # [N, C, O]
        else:
            index = place.sum(-1)
    values = flat.gather(2, index).unflatten(2, sizes)
    index = index.unflatten(2, sizes)
    return (values, index) if x.dim() == n + 2 else (values.squeeze(0), index.squeeze(0))


@entry(counts.nothing, autocast="float32")
def fractional_max_pool2d_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """`fractional_max_pool2d` with the places of the maxima in each flattened plane."""
    return _pool(2, input, kernel_size, output_size, output_ratio, _random_samples)


@entry(counts.nothing, autocast="float32")
def fractional_max_pool3d_with_indices(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """`fractional_max_pool3d` with the places of the maxima in each flattened volume."""
    return _pool(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """Maxima of windows whose starts are drawn: [N, C, H, W] or [C, H, W] → `output_size`, or `output_ratio` of the input's size."""
    both = fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
    return both if return_indices else both[0]


def fractional_max_pool3d(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
    """Maxima of windows whose starts are drawn: [N, C, T, H, W] or [C, T, H, W] → `output_size`, or `output_ratio` of the input's size."""
    both = fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
    return both if return_indices else both[0]
