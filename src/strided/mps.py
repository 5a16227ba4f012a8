"""`torch.mps` as scripts probe it: there is no such device."""
from .refused import missing as _missing


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def manual_seed(seed: int) -> None:
    """Without a device there is no generator to seed."""


def empty_cache() -> None:
    """There is no device memory."""


def synchronize() -> None:
    """Nothing runs behind the caller's back."""


__getattr__ = _missing("torch.mps")
