"""`torch.signal`: the windows of spectral analysis, in `torch.signal.windows`."""
from .. import refused as _refused
from . import windows

__getattr__ = _refused.missing("torch.signal")
