"""`torch.linalg`: the operators of that namespace, from the table."""
from .ops.table import functions as _functions

globals().update(_functions("linalg"))


def __getattr__(name: str):
    raise AttributeError(f"module 'torch.linalg' has no attribute '{name}'")
