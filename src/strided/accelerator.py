"""`torch.accelerator` as scripts probe it: there is none."""
from .refused import missing as _missing


def is_available() -> bool:
    return False


def current_accelerator(check_available: bool = False):
    """None: tensors live on the CPU."""
    return None


def device_count() -> int:
    return 0


def synchronize(device=None) -> None:
    """Nothing runs behind the caller's back."""


__getattr__ = _missing("torch.accelerator")
