"""`torch.linalg`: the operators of that namespace, from the table, and the top level's that it repeats."""
from .ops.linalg_checks import LinAlgError  # noqa: F401
from .ops.table import TABLE as _TABLE
from .ops.table import functions as _functions
from .refused import missing as _missing

_SHARED = "det matmul matrix_exp matrix_power"

# In the table most of them carry PyTorch's own prefix: a top-level operator of the same name often means something else (norm, cross, svd).
globals().update({name.removeprefix("linalg_"): call for name, call in _functions("linalg").items()})
globals().update({name: _TABLE[name].call for name in _SHARED.split()})

__getattr__ = _missing("torch.linalg")
