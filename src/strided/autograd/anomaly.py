"""Anomaly mode: remembers the forward line of every node, and names it when a backward function fails or yields NaN."""

from __future__ import annotations

from strided.kernels.native_objects import set_anomaly

enabled = False
check_nan = True


class detect_anomaly:
    """Context manager: errors in backward name the forward call that caused them; NaN gradients raise when `check_nan`."""

    def __init__(self, check_nan: bool = True):
        import warnings

        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.", stacklevel=2)

    def __enter__(self):
        self.previous = enabled, check_nan
        _set(True, self.check_nan)

    def __exit__(self, *exc):
        _set(*self.previous)


class set_detect_anomaly:
    """Switches anomaly mode at once; as a context manager, until its end."""

    def __init__(self, mode: bool, check_nan: bool = True):
        self.previous = enabled, globals()["check_nan"]
        _set(bool(mode), check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        _set(*self.previous)


def is_anomaly_enabled() -> bool:
    return enabled


def is_anomaly_check_nan_enabled() -> bool:
    return check_nan


def _set(on: bool, nan: bool) -> None:
    global enabled, check_nan
    enabled, check_nan = on, nan
    set_anomaly(int(on))


def remember(node) -> None:
    """Keeps the stack of the forward call in the node's metadata, as PyTorch does, without the frames of this package's recording."""
    import traceback

    node.metadata["traceback_"] = traceback.format_stack()[:-2]


def explain(node) -> None:
    """Warns with the forward stack of a node whose backward function just failed."""
    import warnings

    stack = node.metadata.get("traceback_")
    if stack is None:
        text = f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass for more information."
    else:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(stack)}"
    warnings.warn(text, stacklevel=2)


def check(node, grads) -> None:
    """Raises if a gradient the node returned holds NaN (anomaly mode with check_nan)."""
    for number, grad in enumerate(grads):
        if grad is not None and (grad.spec.dtype.is_floating_point or grad.spec.dtype.is_complex) and bool((grad != grad).any()):
            explain(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {number}th output.")
