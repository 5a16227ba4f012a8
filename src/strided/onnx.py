"""`torch.onnx`: only what public code asks and registers while it is imported. Nothing is exported here: a state_dict() saved here loads in PyTorch, which exports.
"""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from .refused import missing


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """Says how an operator would be exported: nothing is, so it is not kept."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes back `register_custom_op_symbolic`."""


def parse_args(*arg_descriptors: str) -> Callable:
    """A decorator for functions that export an operator: the function itself."""
    return lambda function: function


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Refused: what is recorded here are kernels, not a graph of operators."""
    raise NotImplementedError("torch.onnx.export: what is recorded here are kernels, not a graph of Python; export from PyTorch, where a state_dict() saved here loads")


export.is_refusal = True  # type: ignore[attr-defined]
_absent = missing("torch.onnx")


def __getattr__(name: str) -> Any:
    if name.startswith("symbolic_"):  # modules of functions that export operators: packages bind their names and call nothing
        module = ModuleType(f"torch.onnx.{name}")
        module.__getattr__ = missing(module.__name__)  # type: ignore[method-assign]
        return module
    return _absent(name)
