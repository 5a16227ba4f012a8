"""`torch.types`: names for the kinds of values that annotations use."""
from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import Any, TypeAlias

from .dtypes import Device as _DeviceClass
from .dtypes import DType
from .layout import Size
from .refused import missing
from .tensor import Tensor, UntypedStorage

__all__ = ["Device", "FileLike", "Number", "Storage"]

_int, _float, _bool, _complex, _str, _bytes = builtins.int, builtins.float, builtins.bool, builtins.complex, builtins.str, builtins.bytes
_dtype: TypeAlias = DType
_device: TypeAlias = _DeviceClass
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = _TensorOrTensors
_symint = _int
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
Number: TypeAlias = int | float | bool
_Number = (_int, _float, _bool)
PySymType: TypeAlias = int | float | bool
py_sym_types = ()
FileLike: TypeAlias = str | os.PathLike[str] | Any
Device: TypeAlias = _DeviceClass | str | int | None
Storage: TypeAlias = UntypedStorage

__getattr__ = missing("torch.types")
