"""Samples of images at whole positions with given weights, as one operator with its gradients. What positions and weights are is nn/functions/vision.py's."""
from __future__ import annotations

import itertools

from ..autograd import backward, engine, record, tracking
from ..dispatch import PlanCache, launch_new
from ..kernels import samples as kernels
from ..layout import Layout
from ..tensor import Spec, Tensor, wrap
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
