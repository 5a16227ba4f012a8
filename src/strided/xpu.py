"""`torch.xpu` as scripts probe it: there is no such device."""
from .refused import missing as _missing


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def synchronize(device=None) -> None:
    """Nothing runs behind the caller's back."""


def empty_cache() -> None:
    """There is no device memory."""


__getattr__ = _missing("torch.xpu")
