"""`torch._higher_order_ops`: of PyTorch's operators that take functions, the scan. Loops and branches are written in Python."""
from ..refused import missing as _missing
from .associative_scan import associative_scan

__all__ = ["associative_scan"]
__getattr__ = _missing("torch._higher_order_ops")
