"""`torch.fft`: the operators of that namespace, from the table."""
from .ops.table import functions as _functions
from .refused import missing as _missing

globals().update({name.removeprefix("fft_"): call for name, call in _functions("fft").items()})

__getattr__ = _missing("torch.fft")
