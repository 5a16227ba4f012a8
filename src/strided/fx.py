"""`torch.fx`: only the names that public code imports, marks functions with and tests for. No graph of Python is made here, so making one is refused.

What a model computes is shown by hooks (`register_forward_hook`) and by `strided annotate`.
"""
from __future__ import annotations

import sys
from typing import Any, NoReturn

from .refused import missing

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


def _no_graph(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.fx.{name}: what is recorded here are kernels, not a graph of Python; use hooks (register_forward_hook), or `strided annotate` for what each line does"
    )


class _OfGraphs:
    """A class without instances: `isinstance` is False for all there is, and making one is refused."""

    def __init__(self, *args: Any, **kwargs: Any):
        _no_graph(type(self).__name__)


class Graph(_OfGraphs):
    """PyTorch's list of a function's operations."""


class Node(_OfGraphs):
    """One operation of a graph."""


class Proxy(_OfGraphs):
    """What stands for a tensor while a graph is made."""


class Tracer(_OfGraphs):
    """What makes a graph."""


class GraphModule(_OfGraphs):
    """A module made of a graph."""


class Interpreter(_OfGraphs):
    """What runs a graph, operation by operation."""


Transformer = Interpreter
Target = Argument = Any
_CodeOnlyModule = GraphModule


def wrap(fn_or_name: Any) -> Any:
    """fn_or_name itself: a mark that a tracer shall not look inside."""
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: Any = None) -> NoReturn:
    """Refused: there is no graph of Python."""
    _no_graph("symbolic_trace")


def _copy_attr(from_module: Any, to_module: Any, target: str) -> NoReturn:
    _no_graph("graph_module")


graph = graph_module = node = proxy = _symbolic_trace = sys.modules[__name__]  # PyTorch's files of these classes
symbolic_trace.is_refusal = True  # type: ignore[attr-defined]
__getattr__ = missing("torch.fx")
