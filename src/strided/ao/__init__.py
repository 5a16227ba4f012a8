"""`torch.ao`: only the marks of its quantisation that models carry while they compute in floats."""
from ..refused import missing as _missing
from . import quantization

__getattr__ = _missing("torch.ao")
