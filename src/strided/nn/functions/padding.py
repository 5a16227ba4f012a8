"""Padding: constants around a tensor, and the modes that repeat or mirror its own values."""
from ... import ops
from ...kernels.edges import MODES
from ...ops import edges
from ...ops.views import integers
from .autocast import under_autocast


def pad(input, pad, mode="constant", value=None):
    """Pads the last dimensions by pairs (before, after), the last dimension first. Negative constant padding crops.

    mode: "constant" (with `value`, 0), "reflect", "replicate" or "circular" (these three pad the last 1 to 3 dimensions).
    """
    pad = list(integers("pad", "pad", (pad,)))
    if len(pad) % 2 != 0:
        raise RuntimeError(f"Padding length must be divisible by 2, got {len(pad)}" if mode != "constant" else
                           f"Length of pad must be even but instead it equals {len(pad)}")  # fmt: skip
    if len(pad) // 2 > input.dim():
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. "
            f"Pad length is {len(pad)} while the input has {input.dim()} dimensions."
        )
    if mode == "constant":
        return ops.constant_pad_nd(input, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise ValueError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    dims = len(pad) // 2
    if not (1 <= dims <= 3 and input.dim() in (dims + 1, dims + 2)):
        raise NotImplementedError(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now, "
            f"got {input.dim()}D input with padding {tuple(pad)}"
        )
    in_float32 = mode == "replicate" or mode == "reflect" and dims < 3  # autocast's list
    return (_in_float32 if in_float32 else _by_edges)(input, pad, mode, dims)


def _by_edges(input, pad, mode, dims):
    places = []
    for i in range(dims):
        before, after, d = pad[2 * i], pad[2 * i + 1], input.dim() - 1 - i
        if mode == "circular" and min(before, after) < 0:  # what is cropped away is not wrapped around either
            start, end = max(-before, 0), input.size(d) - max(-after, 0)
            input, before, after = input.narrow(d, start, max(end - start, 0)), max(before, 0), max(after, 0)
        _check_reach(input, d, before, after, mode)
        places += before, after
    return edges.pad_edges(input, tuple(places), mode)


_in_float32 = under_autocast("float32")(_by_edges)


def _check_reach(input, dim, before, after, mode):
    size = input.size(dim)
    limit = {"reflect": size - 1, "circular": size}.get(mode)
    if limit is not None and max(before, after) > limit and (before or after):
        if mode == "circular":
            raise RuntimeError("Padding value causes wrapping around more than once.")
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, "
            f"but got: padding ({before}, {after}) at dimension {dim} of input {list(input.shape)}"
        )
