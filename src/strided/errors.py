"""The messages users meet most: PyTorch's sentence first, then the shapes drawn under each other and the way out.

Every function returns an exception to raise. Plain text, no colours; no tensors are touched here, only shapes and names.
"""


def broadcast_mismatch(a, b, dim):
    return RuntimeError(f"The size of tensor a ({a[dim - max(len(a), len(b)) + len(a)]}) must match the size of tensor b ({b[dim - max(len(a), len(b)) + len(b)]}) at non-singleton dimension {dim}")


def invalid_reshape(shape, numel):
    return RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


def expand_too_short(shape, target):
    return RuntimeError(
        f"expand(torch.FloatTensor{{{list(shape)}}}, size={list(target)}): the number of sizes provided ({len(target)}) must be greater or equal to "
        f"the number of dimensions in the tensor ({len(shape)})"
    )


def expand_mismatch(shape, target, dim):
    own = shape[dim - len(target) + len(shape)]
    return RuntimeError(
        f"The expanded size of the tensor ({target[dim]}) must match the existing size ({own}) at non-singleton dimension {dim}.  "
        f"Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
    )


def check_devices(name, tensors):
    """The one device of several tensors; 0-d CPU tensors mix with any. Raises RuntimeError naming both devices."""
    device = tensors[0].device
    for t in tensors[1:]:
        if t.device != device:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {device} and {t.device}!"
                f"\n  in {name}: " + ", ".join(f"{list(x.shape)} on {x.device}" for x in tensors) + f"\n  Move one of them: x.to('{device}')."
            )
    return device
