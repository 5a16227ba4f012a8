"""Samples of images at whole positions with given weights, as one operator with its gradients. What positions and weights are is nn/functions/vision.py's."""
from __future__ import annotations

import itertools

from ..autograd import backward, engine, record, tracking
from ..dispatch import PlanCache, launch, launch_new
from ..kernels import expr as E
from ..kernels import samples as kernels
from ..kernels.map import build_map
from ..layout import Layout
from ..tensor import Spec, Tensor, empty, wrap
from .folding import plain
from .onlooking import seen_as
from .table import TABLE

_plans = PlanCache()


def takes(image: Tensor, positions: Tensor) -> bool:
    """Whether there is a kernel for these."""
    small = image.numel() < kernels.LARGEST * max(image.shape[0] * image.shape[1], 1)
    return image.dtype.name in kernels.DTYPES and positions.dtype is image.dtype and image.numel() > 0 and positions.numel() > 0 and small and not image.is_meta


def sample(image: Tensor, positions: Tensor, weights: Tensor) -> Tensor:
    """image [N, C, sizes..] at positions [n, T, N, P] weighed by weights [n, T, N, P] → [N, C, P]: the sum over the taps of every dimension; zeros outside. Recorded."""
    if not takes(image, positions):
        return by_gathers(image, positions, weights)
    batch, channels = image.shape[:2]
    out = _run(kernels.build_samples, (batch, channels, positions.shape[3]), image, positions, (plain(image).contiguous(), plain(positions).contiguous(), plain(weights).contiguous()))
    if tracking(image, weights):
        record(SamplesBackward0, (image, weights), out, (image, positions, weights))
    return out


def linear_taps(grid: Tensor, sizes: tuple[int, ...], border: bool, align_corners: bool) -> tuple[Tensor, Tensor]:
    """(positions, weights) [n, 2, N, P] of the pixels beside places in -1..1, grid [N, .., n] with x first, the image's `sizes` with x last. Not recorded.

    border: places outside are moved to the border, a NaN to the first pixel.
    """
    n, shape = len(sizes), grid.shape[:-1]
    key = grid.spec, n, border, align_corners
    plan = _plans.get(key)
    if plan is None:
        spec = Spec.of(Layout.contiguous((n, 2, shape[0], grid.numel() // (n * max(shape[0], 1)))), grid.dtype, grid.device)
        results, exprs = [(grid.dtype, Layout.contiguous(shape))] * (4 * n), _taps(n, border, align_corners)
        place = Layout.of(shape, grid.stride()[:-1])
        plan = _plans.put(key, (spec, build_map(exprs, results, [(grid.dtype, place)] * n + [("param", "f64")] * n)))
    spec, descriptor = plan
    positions, weights = empty(spec.shape, grid.dtype, grid.device), empty(spec.shape, grid.dtype, grid.device)
    step, place = spec.nbytes // (2 * n), grid.stride(-1) * grid.itemsize
    outs = [t.ptr + k * step for t in (positions, weights) for k in range(2 * n)]
    launch(descriptor, *outs, *[grid.ptr + (n - 1 - d) * place for d in range(n)], *[float(s) for s in sizes])
    return positions, weights


def _taps(n: int, border: bool, align_corners: bool) -> list:
    """Of n places and n sizes: both positions of each dimension, then both weights of each; rounded where operators one after the other would."""
    positions, weights = [], []
    for d in range(n):
        place, size = E.param(d), E.param(n + d)
        if n == 2:  # as nn.functional.grid_sample's `_pixel`
            pixel = (place + 1) * ((size - 1) / 2) if align_corners else (place + 1) * (size / 2) - 0.5
        else:
            pixel = (place + 1) / 2 * (size - 1) if align_corners else (E.rounded((place + 1) * size) - 1) / 2
        pixel = E.rounded(pixel)
        if border:
            moved = E.clamp(pixel, 0, size - 1)
            pixel = E.where(moved == moved, moved, 0.0)
        start = E.floor(pixel)
        positions += start, start + 1
        weights += start + 1 - pixel, pixel - start
    return positions + weights


def _run(build, shape, image, positions, operands) -> Tensor:
    key = build.__name__, image.shape, image.dtype, positions.shape
    plan = _plans.get(key)
    if plan is None:
        spec = Spec.of(Layout.contiguous(shape), image.dtype, image.device)
        plan = _plans.put(key, (spec, build(image.dtype, *image.shape[:2], positions.shape[3], tuple(image.shape[2:]), positions.shape[1], spec.nbytes)))
    spec, descriptor = plan
    mem = launch_new(descriptor, *[t.ptr for t in operands])
    return wrap(spec, mem, mem.data)


def _back_flops(node, g) -> int:
    """A product and a sum a tap, for the image's gradient and for the weights'."""
    n, taps = node.saved[1].shape[:2]
    return 2 * g.numel() * taps**n * (node.needs[0] + node.needs[1])


@backward("Samples", saved_names=("input", "positions", "weights"))
@seen_as("samples_backward", _back_flops)
def SamplesBackward0(node, g):
    image, positions, weights = node.saved
    if tracking(g, image, weights):
        return engine.grad(by_gathers(image, positions, weights), (image, weights), g, create_graph=True, allow_unused=True)
    d_image = d_weights = None
    g, at, w = plain(g).contiguous(), plain(positions).contiguous(), plain(weights).contiguous()
    if node.needs[0]:
        d_image = _run(kernels.build_image_gradient, image.shape, image, positions, (g, at, w))
    if node.needs[1]:
        n, taps, batch, places = positions.shape
        sums = _run(kernels.build_tap_gradient, (taps**n, batch, places), image, positions, (plain(image).contiguous(), g, at, w)).reshape(*(taps,) * n, batch, places)
        d_weights = TABLE["stack"].call([_others(sums, w, d) for d in range(n)])
    return d_image, d_weights


def _others(sums, weights, d: int):
    """[T.., N, P] summed over all taps but those of dimension d, weighed by them: [T, N, P]."""
    n = weights.shape[0]
    for other in reversed(range(n)):
        if other != d:
            shape = [1] * n
            shape[other] = weights.shape[1]
            sums = (sums * weights[other].reshape(*shape, *weights.shape[2:])).sum(other, keepdim=True)
    return sums.reshape(weights.shape[1:])


def by_gathers(image, positions, weights):
    """The same in operators that are recorded: one gather a tap."""
    out = 0
    for corner in itertools.product(range(positions.shape[1]), repeat=positions.shape[0]):
        weight, flat, inside = None, 0, None
        for d, (tap, size) in enumerate(zip(corner, image.shape[2:])):
            place = positions[d, tap]  # [N, P]
            fits = (place >= 0) & (place < size)
            inside = fits if inside is None else inside & fits
            flat = flat * size + TABLE["where"].call(fits, place, 0.0).long()  # what lies outside, a NaN included, is read somewhere and not used
            weight = weights[d, tap] if weight is None else weight * weights[d, tap]
        pixels = image.flatten(2).gather(2, flat.unsqueeze(1).expand(-1, image.size(1), -1)) * inside.unsqueeze(1)  # [N, C, P]
        out = out + pixels * weight.unsqueeze(1)
    return out
