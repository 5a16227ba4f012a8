"""`torch._inductor`: only the settings of PyTorch's code generator, for scripts that set them. What compiles here is compile/ and kernels/."""
from ..refused import missing as _missing
from . import config

__getattr__ = _missing("torch._inductor")
