"""`torch._dynamo` as scripts reach for it: its settings, and the switches that `torch.compiler` has too. What compiles here is compile/, which traces no Python.

What looks into PyTorch's graphs (`explain`, `export`, custom backends) is refused by name.
"""
import sys

from ..compile.module import OptimizedModule
from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, reset, set_stance
from ..refused import missing as _missing
from . import config

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "is_compiling", "mark_dynamic", "mark_static", "mark_static_address",
    "maybe_mark_dynamic", "reset", "set_stance",
]  # fmt: skip


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """Says that dimension `index` of t changes from call to call: nothing changes, each shape is a recording of its own."""


def mark_static(t, index=None):
    """Says that t's sizes stay: nothing changes."""


def mark_static_address(t, guard=False):
    """Says that t stays where it is: nothing changes."""


maybe_mark_dynamic = mark_static


def is_dynamo_supported():
    """Whether PyTorch's tracer of Python runs here: it does not."""
    return False


def is_compile_supported(device_type):
    """Whether `torch.compile` works on the device named."""
    return device_type == "cpu"


class TransformGetItemToIndex:
    """Context manager in which tensors are indexed by tensors that are mapped over. They always may be, so nothing changes."""

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass


eval_frame = utils = sys.modules[__name__]  # PyTorch's files of these names
__getattr__ = _missing("torch._dynamo")
