"""Resampling of images: interpolate, grid_sample, affine_grid, and the shuffles between pixels and channels."""
import math
from functools import lru_cache

from ... import dtypes, ops
from ...autograd import backward, enable_grad, engine, no_grad, record, tracking
from ...dispatch import launch
from ...formats import contiguous_format, suggested
from ...kernels import sampler
from ...ops import resample, sampling
from ...ops.folding import plain
from ...ops.onlooking import seen_as
from . import counts
from .antialias import smoothed
from .conv import tuple_of
from .entry import entry
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .precision import in_float32

_DIMS = {"linear": 1, "bilinear": 2, "trilinear": 3, "bicubic": 2}
_NODES = {"linear": "Linear1D", "bilinear": "Bilinear2D", "trilinear": "Trilinear3D", "bicubic": "Bicubic2D"}


@entry(counts.interpolate)
def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resizes the spatial dimensions of [N, C, ..] to `size` or by `scale_factor`.

    mode: nearest | nearest-exact | linear (3-D) | bilinear, bicubic (4-D) | trilinear (5-D) | area; lanczos (4-D) with antialias.
    antialias (bilinear, bicubic, lanczos): where it shrinks, the filter is as wide as the step, so that fine details do not turn into coarse ones.
    """
    n = input.dim() - 2
    _check_interpolate(input, size, scale_factor, mode, align_corners, antialias)
    if size is not None:
        sizes, scales = tuple_of(size, n), (None,) * n
    else:
        scales = tuple_of(scale_factor, n)
        sizes = tuple(math.floor(s * f) for s, f in zip(input.shape[2:], scales))
        if recompute_scale_factor:
            scales = (None,) * n
    if min(sizes, default=1) <= 0 or 0 in input.shape[2:]:
        letters = "DHW"[-n:]
        before, after = (", ".join(f"{letter}: {size}" for letter, size in zip(letters, given)) for given in (input.shape[2:], sizes))
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input ({before}) {'and ' if n == 1 else ''}output ({after})")
    resample.room(input, sizes)
    if antialias:
        return smoothed(input, sizes, scales, bool(align_corners), mode)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[n - 1](input, sizes)
    if mode.startswith("nearest"):
        return _nearest(input, sizes, scales, mode == "nearest-exact")
    weights = input.dtype if mode != "bilinear" else input.dtype.compute  # PyTorch rounds 16-bit weights, but not those of its own bilinear kernel
    return _weighted(input, sizes, scales, bool(align_corners), mode, weights)


@in_float32
def _weighted(input, sizes, scales, align_corners, mode, weights):
    """The last dimension first, as PyTorch nests them. weights: the dtype that they are rounded to."""
    bands = {}
    for dim, out, scale in reversed(list(zip(range(2, input.dim()), sizes, scales))):
        if input.size(dim) != out or scale not in (None, 1):
            bands[dim] = _bands(mode, input.size(dim), out, scale, align_corners, weights.name)
    return _resized(input, bands, f"Upsample{_NODES[mode]}", mode != "bicubic")


def _resized(input, bands, node, keeps=True):
    if not bands or not resample.takes(input):
        form = suggested(input.spec.layout)
        for dim, band in bands.items():
            input = _by_matrix(input, dim, band)
        return input.clone(memory_format=form) if not bands else input.contiguous(memory_format=form)
    return resample.resample(input, bands, node, keeps)


def _by_matrix(x, dim, bands):
    """The product with the whole matrix, for what the kernel does not take."""
    rows = [[0] * first + row + [0] * (bands.size - first - len(row)) for first, row in zip(bands.first, bands.weights)]
    matrix = ops.tensor(rows, dtype=x.dtype, device=x.device)  # [out, size]
    return (x.transpose(dim, -1) @ matrix.t()).transpose(dim, -1)  # [.., out, ..]


def _check_interpolate(input, size, scale_factor, mode, align_corners, antialias):
    n = input.dim() - 2
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    for given, what in ((size, "size"), (scale_factor, "scale_factor")):
        if isinstance(given, (tuple, list)) and len(given) != n:
            raise ValueError(
                f"Input and {'output' if what == 'size' else 'scale_factor'} must have the same number of spatial dimensions, "
                f"but got input with spatial dimensions of {list(input.shape[2:])} and {what} of {given}."
            )
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and n == 2):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if mode == "lanczos" and n == 2:
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        return
    known = mode in ("nearest", "nearest-exact", "area") or _DIMS.get(mode) == n
    if not known or not 1 <= n <= 3:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
        )


def _nearest(x, sizes, scales, exact):
    chosen = {}
    for dim, out, scale in reversed(list(zip(range(2, x.dim()), sizes, scales))):
        index = _chosen(x.size(dim), out, scale, exact)
        if index != tuple(range(x.size(dim))):
            chosen[dim] = index
    form = suggested(x.spec.layout)
    if x.is_floating_point() and resample.takes(x) and chosen:
        return resample.resample(x, {dim: _selection(x.size(dim), index) for dim, index in chosen.items()}, f"UpsampleNearest{'Exact' * exact}{x.dim() - 2}D", x.dim() < 5)
    given = x
    for dim, index in chosen.items():
        x = x.index_select(dim, ops.tensor(index, device=x.device))  # [.., out, ..]
    return x.clone(memory_format=form) if x is given else x.contiguous(memory_format=form)


@lru_cache(maxsize=256)
def _chosen(size, out, scale, exact):
    step = size / out if scale is None else 1.0 / scale
    shift = 0.5 if exact else 0.0
    return tuple(min(int(math.floor((i + shift) * step)), size - 1) for i in range(out))


@lru_cache(maxsize=256)
def _selection(size, index):
    return resample.Bands(size, list(index), [[1.0]] * len(index))


def _source(i, size, out, scale, align_corners, clamp):
    """The position in the input that output position i looks at."""
    if align_corners:
        return i * (size - 1) / (out - 1) if out > 1 else 0.0
    step = size / out if scale is None else 1.0 / scale
    place = (i + 0.5) * step - 0.5
    return max(place, 0.0) if clamp else place


@lru_cache(maxsize=256)
def _bands(mode, size, out, scale, align_corners, dtype):
    """The weights of a mode's taps at every output position; taps beyond the border are those of its last element."""
    places = [_source(i, size, out, scale, align_corners, mode != "bicubic") for i in range(out)]
    fractions = [p - math.floor(p) for p in places]
    if mode != "bicubic":
        fractions = _rounded(fractions, dtype)  # as PyTorch does, which rounds only the weights of cubic functions
    first, weights = [], []
    for place, fraction in zip(places, fractions):
        taps: dict[int, float] = {}
        for offset, weight in (_cubic if mode == "bicubic" else _linear)(fraction, dtype):
            index = min(max(math.floor(place) + offset, 0), size - 1)
            taps[index] = taps.get(index, 0.0) + weight
        first.append(min(taps))
        weights.append(list(taps.values()))
    return resample.Bands(size, first, weights)


def _rounded(numbers, dtype):
    """Python numbers as a 16-bit dtype has them; others are rounded where they are used."""
    return ops.tensor(numbers, dtype=getattr(dtypes, dtype)).tolist() if dtype in ("bfloat16", "float16") else numbers


def _linear(f, dtype):
    return (0, _rounded([1 - f], dtype)[0]), (1, f)


_A = -0.75  # Keys' cubic convolution


def _near(d):
    """The cubic weight at a distance below one."""
    return ((_A + 2) * d - (_A + 3)) * d * d + 1


def _far(d):
    """The cubic weight at a distance between one and two."""
    return ((_A * d - 5 * _A) * d + 8 * _A) * d - 4 * _A


def _cubic(f, dtype):
    return tuple(enumerate(_rounded([_far(f + 1), _near(f), _near(1 - f), _far(2 - f)], dtype), -1))


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """The older name of `interpolate`."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    return interpolate(input, size, scale_factor, "bilinear", align_corners=True)


# ---- sampling at given places -----------------------------------------------------------------


def affine_grid(theta, size, align_corners=None):
    """Sampling places of affine maps: theta [N, 2, 3], size (N, C, H, W) → [N, H, W, 2] in x, y order, −1 to 1."""
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (2, 3) or len(size) != 4:
        raise NotImplementedError("affine_grid: only 2-D maps are supported: theta [N, 2, 3] and a size of four numbers")
    height, width = size[2], size[3]
    y = _axis(height, align_corners, theta).reshape(-1, 1).expand(height, width)
    x = _axis(width, align_corners, theta).reshape(1, -1).expand(height, width)
    places = ops.stack([x, y, ops.ones_like(x)], -1).reshape(-1, 3)  # [H·W, 3]
    return (places @ theta.transpose(1, 2)).reshape(size[0], height, width, 2)


def _axis(count, align_corners, like):
    """Where an axis's elements lie, rounded as PyTorch rounds it: the identity's places are those of elements, where a sample's gradient depends on the last bit."""
    if count <= 1:
        return ops.zeros(count, dtype=like.dtype, device=like.device)
    places = ops.linspace(-1, 1, count, dtype=like.dtype, device=like.device)
    return places if align_corners else places * (count - 1) / count


@entry(counts.grid_sample, autocast="float32")
def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Values of [N, C, H, W] at the places [N, Ho, Wo, 2] (x, y in −1..1) → [N, C, Ho, Wo]; likewise [N, C, D, H, W] at [.., 3] (x, y, z).

    mode: bilinear | nearest | bicubic (4-D only); padding_mode: zeros | border | reflection.
    """
    n = input.dim() - 2
    if n not in (2, 3) or grid.dim() != n + 2 or grid.size(-1) != n or grid.size(0) != input.size(0):
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size and grid to have size "
            f"{n} in last dimension, but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    if mode == "bicubic" and n == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if mode == "bilinear" and n == 3 and input.dtype.itemsize > 2 and input.numel() and grid.numel() and tracking(grid) and not input.is_meta:
        return _trilinear(input, grid, padding_mode, align_corners)
    return _sampled(input, grid, mode, padding_mode, align_corners)


def _sampled(input, grid, mode, padding_mode, align_corners):
    n = input.dim() - 2
    if mode == "bilinear" and padding_mode != "reflection" and not tracking(grid) and sampling.takes(input, grid):
        positions, weights = sampling.linear_taps(plain(grid), tuple(input.shape[2:]), padding_mode == "border", bool(align_corners))
        return sampling.sample(input, positions, weights).unflatten(2, grid.shape[1:-1])  # [N, C, Ho, Wo]
    taps = []  # for each dimension of the image: [(whole positions, weights)], each [N, Ho, Wo]
    for d, size in enumerate(input.shape[2:]):
        pixel = _pixel(grid[..., n - 1 - d], size, align_corners, n)
        taps.append(_grid_taps(pixel, size, mode, padding_mode, align_corners))
    positions = ops.stack([ops.stack([place for place, _ in row]) for row in taps]).flatten(3)  # [n, T, N, P]
    weights = ops.stack([ops.stack([weight for _, weight in row]) for row in taps]).flatten(3)
    return sampling.sample(input, positions.detach(), weights).unflatten(2, grid.shape[1:-1])  # [N, C, Ho, Wo]


def _trilinear(input, grid, padding_mode, align_corners):
    """Samples whose places have a gradient: that is summed by a kernel of its own."""
    with no_grad():
        out = _sampled(input, grid, "bilinear", padding_mode, align_corners)
    record(GridSampler3DBackward0, (input, grid), out, (input, grid), options=("bilinear", padding_mode, align_corners))
    return out


@backward("GridSampler3D", saved_names=("input", "grid"))
@seen_as("grid_sampler_3d_backward", lambda node, g: 16 * g.numel() * (node.needs[0] + node.needs[1]))  # eight corners: a product and a sum each
def GridSampler3DBackward0(node, g):
    input, grid = node.saved
    if tracking(g, input, grid):
        return engine.grad(_sampled(input, grid, *node.options), (input, grid), g, create_graph=True, allow_unused=True)
    d_input = d_grid = None
    if node.needs[0]:
        with enable_grad():
            image = input.detach().requires_grad_()
            (d_input,) = engine.grad(_sampled(image, grid.detach(), *node.options), image, g)
    if node.needs[1]:
        d_grid = _places_gradient(g, input.detach(), grid.detach(), *node.options[1:])
    return d_input, d_grid


def _places_gradient(g, input, grid, padding_mode, align_corners):
    """[N, C, D', H', W'] → [N, D', H', W', 3]."""
    batch, channels, *sizes = input.shape
    pixels, factors = [], []
    for k, size in enumerate(reversed(sizes)):  # x, y, z
        pixel = _pixel(grid[..., k], size, align_corners, 3)
        pixels.append(_inside(pixel, size, padding_mode, align_corners).contiguous())
        factors.append(_slope(pixel, size, padding_mode, align_corners))
    result = ops.empty(3, *grid.shape[:-1], dtype=input.dtype, device=input.device)
    desc = sampler.build_places_gradient(input.dtype, batch, channels, pixels[0].numel() // batch, tuple(sizes))
    image, g = input.contiguous(), g.contiguous()
    launch(desc, result.ptr, *(p.ptr for p in pixels), image.ptr, g.ptr)
    return ops.stack([part * factor for part, factor in zip(result.unbind(0), factors)], -1)


def _slope(pixel, size, padding_mode, align_corners):
    """d position / d place: of `_pixel`, times that of `_inside`, which is 0 where a position was moved to the border."""
    scale = ((size - 1) if align_corners else size) / 2
    if padding_mode == "zeros":
        return scale
    if padding_mode == "border":
        return scale * ((pixel > 0) & (pixel < size - 1)).to(pixel.dtype)
    low, high, span = _mirrors(size, align_corners)
    turns = ((pixel - low).abs() / span).floor()
    sign = ops.where((pixel < low) == (turns % 2 == 0), -1.0, 1.0).to(pixel.dtype)
    moved = _reflected(pixel, size, align_corners)
    return scale * sign * ((moved > 0) & (moved < size - 1)).to(pixel.dtype)


def _pixel(place, size, align_corners, n):
    """−1..1 → pixel positions, in an image of n dimensions: PyTorch's two kernels scale in another order, and where a place is that of a pixel the last bit decides the gradient."""
    if n == 2:
        return (place + 1) * ((size - 1) / 2) if align_corners else ops.add(place.new_full((), -0.5), place + 1, alpha=size / 2)  # rounded once
    return (place + 1) / 2 * (size - 1) if align_corners else ((place + 1) * size - 1) / 2


def _grid_taps(pixel, size, mode, padding_mode, align_corners):
    """Which pixels of one dimension count at each place, and how much."""
    if mode == "bicubic":  # the padding moves every tap by itself
        start = pixel.floor().detach()
        f = pixel - start
        moved = [_inside(start + k, size, padding_mode, align_corners) for k in (-1, 0, 1, 2)]
        return list(zip(moved, (_far(f + 1), _near(f), _near(1 - f), _far(2 - f))))
    pixel = _inside(pixel, size, padding_mode, align_corners)
    if mode == "nearest":
        place = pixel.round()  # its gradient is zero, and so is the grid's
        return [(place.detach(), 1 + (place - place.detach()).nan_to_num(0.0, 0.0, 0.0))]
    start = pixel.floor().detach()
    return [(start, start + 1 - pixel), (start + 1, pixel - start)]


def _inside(pixel, size, padding_mode, align_corners):
    """Positions moved into the image by the padding mode."""
    if padding_mode == "zeros":
        return pixel
    moved = (pixel if padding_mode == "border" else _reflected(pixel, size, align_corners)).clamp(0, size - 1)
    return ops.where(moved == moved, moved, 0.0)  # a NaN goes to the first pixel


def _mirrors(size, align_corners):
    """(the first mirror, the last one, how far apart they are)."""
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    return low, high, max(high - low, 1e-12)


def _reflected(pixel, size, align_corners):
    low, _, span = _mirrors(size, align_corners)
    distance = (pixel - low).abs()
    turns, within = (distance / span).floor(), distance.fmod(span)
    return ops.where(turns % 2 == 0, within + low, span - within + low)


# ---- shuffles ---------------------------------------------------------------------------------


def pixel_shuffle(input, upscale_factor):
    """[.., C·r², H, W] → [.., C, H·r, W·r]."""
    r = upscale_factor
    if input.dim() < 3:
        raise RuntimeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.dim()} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if input.size(-3) % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={input.size(-3)} is not divisible by {r * r}"
        )
    *lead, channels, height, width = input.shape
    x = input.reshape(*lead, channels // (r * r), r, r, height, width)
    form = suggested(input.spec.layout)
    if form is not contiguous_format and input.dim() == 4:  # laid out once, as the result lies
        x = x.permute(0, 4, 2, 5, 3, 1).reshape(*lead, height * r, width * r, -1)  # [N, H·r, W·r, C]
        return x.permute(0, 3, 1, 2).contiguous(memory_format=form)
    x = x.movedim((-4, -3), (-3, -1))  # [.., C, H, r, W, r]
    return x.reshape(*lead, channels // (r * r), height * r, width * r).contiguous(memory_format=suggested(input.spec.layout))


def pixel_unshuffle(input, downscale_factor):
    """[.., C, H·r, W·r] → [.., C·r², H, W]."""
    r = downscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, channels, height, width = input.shape
    if height % r or width % r:
        raise RuntimeError(
            "pixel_unshuffle expects height and width to be divisible by downscale_factor, "
            f"but input.size(-2)={height}, input.size(-1)={width} and downscale_factor={r}"
        )
    x = input.reshape(*lead, channels, height // r, r, width // r, r)
    form = suggested(input.spec.layout)
    if form is not contiguous_format and input.dim() == 4:
        x = x.permute(0, 2, 4, 1, 3, 5).reshape(*lead, height // r, width // r, -1)  # [N, H, W, C·r²]
        return x.permute(0, 3, 1, 2).contiguous(memory_format=form)
    x = x.movedim((-3, -1), (-4, -3))  # [.., C, r, r, H, W]
    return x.reshape(*lead, channels * r * r, height // r, width // r).contiguous(memory_format=suggested(input.spec.layout))


def channel_shuffle(input, groups):
    """Interleaves the channels of `groups` groups. input [N, C, ..]."""
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if input.size(1) % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {input.size(1)} channels and {groups} groups.")
    return input.unflatten(1, (groups, -1)).transpose(1, 2).flatten(1, 2).contiguous(memory_format=suggested(input.spec.layout))


native_channel_shuffle = channel_shuffle
