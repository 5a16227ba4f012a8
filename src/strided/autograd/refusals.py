"""Why autograd refuses a write: the sentences for views that cannot follow one. When it refuses is graph.py's and saved.py's business."""

from __future__ import annotations


def operation_name(name: str) -> str:
    """`Mul` for `MulBackward0`, as messages call it."""
    return name.rstrip("0123456789").removesuffix("Backward")


_WITHOUT_RECORDING = (
    "A view was created in {mode} mode and {written} inplace {outside}. Given that this use case is ambiguous and error-prone, it is forbidden. "
    "You can clarify your code by moving both the view and the inplace either both inside the {block} block (if you don't want the inplace to be "
    "tracked) or both outside (if you want the inplace to be tracked)."
)
_VIEW_KINDS = {
    "no_grad": _WITHOUT_RECORDING,
    "inference": _WITHOUT_RECORDING,
    "multi": "Output {number} of {name} is a view and {written} inplace. This view is the output of a function that returns multiple views. Such functions do not "
    "allow the output views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    "custom": "Output {number} of {name} is a view and {written} inplace. This view was created inside a custom Function (or because an input was returned as-is) "
    "and the autograd logic to handle view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This "
    "behavior is forbidden. You can fix this by cloning the output of the custom Function.",
}


def refuse(view, written: str) -> RuntimeError:
    """Why a view of this kind cannot follow a write."""
    kind, _, name = view._view_kind.partition(":")
    mode, block, outside = ("no_grad", "no_grad", "with grad mode enabled") if kind == "no_grad" else ("inference", "inference_mode", "in normal mode")
    return RuntimeError(_VIEW_KINDS[kind].format(number=view._nr, name=operation_name(name), written=written, mode=mode, outside=outside, block=block))
