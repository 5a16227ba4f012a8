"""`torch.nn.attention`: asking for a way to compute attention. There is one here, fused and exact, which answers for every backend that is asked for."""
import enum
from contextlib import contextmanager

from ..refused import missing

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """PyTorch's ways to compute scaled_dot_product_attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __repr__(self):
        return f"<SDPBackend.{self.name}: {self.value}>"

    def __str__(self):
        return f"SDPBackend.{self.name}"


@contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Accepts one backend or a list; the result of attention is the same with any of them. Raises AssertionError for anything else."""
    given = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(given, list) or not all(isinstance(b, SDPBackend) for b in given):
        raise AssertionError(f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}")
    yield {}


__getattr__ = missing("torch.nn.attention")
