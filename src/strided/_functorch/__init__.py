"""`torch._functorch`: only the settings of PyTorch's ahead-of-time gradients, for scripts that set them. Functions made from functions are in `torch.func`."""
from ..refused import missing as _missing
from . import config

__getattr__ = _missing("torch._functorch")
