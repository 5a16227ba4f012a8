"""PyTorch's oldest constructors: `torch.Tensor(...)`, `torch.FloatTensor(...)` and its siblings, which are types and not functions.

Holds only how they read their arguments; the tensors come from create.py.
"""
from __future__ import annotations

import sys
from typing import Any

from .. import dtypes
from ..kernels.native_objects import new
from ..layout import Size
from ..tensor import Tensor, TypedStorage, wrap
from . import overriding
from .data import frombuffer
from .table import TABLE


def construct(dtype: dtypes.DType, args: tuple, kwargs: dict) -> Tensor:
    """`Tensor()`: empty; `Tensor(2, 3)` or `Tensor(size)`: uninitialised; `Tensor(data)`: a copy of a sequence, the same memory of a tensor."""
    device = kwargs.pop("device", None)
    if kwargs:
        raise TypeError(f"new() received an invalid keyword argument: {next(iter(kwargs))}")
    if not args:
        return TABLE["empty"].call((0,), dtype=dtype, device=device)
    if isinstance(args[0], Size) and len(args) == 1:
        return TABLE["empty"].call(tuple(args[0]), dtype=dtype, device=device)
    if all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        return TABLE["empty"].call(tuple(args), dtype=dtype, device=device)
    if len(args) > 1:
        raise TypeError(f"new() received an invalid combination of arguments - got ({', '.join(type(a).__name__ for a in args)}), but expected sizes, or one sequence or tensor")
    (data,) = args
    if isinstance(data, Tensor):
        if data.dtype is not dtype:
            raise TypeError(f"expected {NAMES[dtype]} (got {data.type()})\n  This constructor shares memory and cannot convert: use data.to({dtype}).")
        return wrap(data.spec, data.mem, data.ptr)
    if isinstance(data, TypedStorage):
        if data.dtype is not dtype:
            raise TypeError(f"expected a storage of {dtype}, got one of {data.dtype}")
        return TABLE["empty"].call((0,), dtype=dtype).set_(data)
    if isinstance(data, (float, bool)):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})\n  For a tensor of one number use torch.tensor({data}).")
    return TABLE["tensor"].call(data, dtype=dtype, device=device)


def _new(cls, *args: Any, **kwargs: Any) -> Tensor:
    made = construct(dtypes.get_default_dtype(), args, kwargs)
    return made if cls is Tensor else subclass(cls, made)


def subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """`Tensor._make_subclass`: the same memory as an instance of `cls`, a leaf."""
    if not issubclass(cls, Tensor):
        raise TypeError(f"{cls.__name__} is no subclass of Tensor")
    t = new(cls)
    t.spec, t.mem, t.ptr = data.spec, data.mem, data.ptr
    if require_grad:
        t._tracked = True
    overriding.count(t)
    return t


def _as_subclass(self: Tensor, cls: type) -> Any:
    """The same memory as an instance of `cls`, with history: a view of this tensor."""
    if self._tracked:
        with overriding.DisableTorchFunctionSubclass():
            self = TABLE["alias"].call(self)
    t = subclass(cls, self)
    t._tracked, t._node, t._nr, t._base = self._tracked, self._node, self._nr, self._base
    return t


Tensor.__new__ = staticmethod(_new)  # type: ignore[assignment, method-assign]
Tensor.__init__ = lambda self, *args, **kwargs: None  # type: ignore[method-assign]
Tensor._make_subclass = staticmethod(subclass)  # type: ignore[attr-defined]
Tensor.as_subclass = _as_subclass  # type: ignore[attr-defined]


class _TypeOfDtype(type):
    """`isinstance(x, torch.FloatTensor)` asks for the dtype; calling the type constructs."""

    dtype: dtypes.DType

    def __instancecheck__(cls, value):
        return isinstance(value, Tensor) and value.dtype is cls.dtype

    def __call__(cls, *args, **kwargs):
        return construct(cls.dtype, args, kwargs)

    def __repr__(cls):
        return f"<class 'torch.{cls.__name__}'>"


_TYPES = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16, "BFloat16Tensor": dtypes.bfloat16, "ByteTensor": dtypes.uint8,
    "CharTensor": dtypes.int8, "ShortTensor": dtypes.int16, "IntTensor": dtypes.int32, "LongTensor": dtypes.int64, "BoolTensor": dtypes.bool_,
}  # fmt: skip
NAMES = {dtype: f"torch.{name}" for name, dtype in _TYPES.items()}
TYPES = {name: _TypeOfDtype(name, (), {"dtype": dtype, "__module__": "torch"}) for name, dtype in _TYPES.items()}


class _StorageOfDtype(type):
    """`torch.FloatStorage` and its siblings: `isinstance` asks for the dtype, calling makes a typed storage of numbers or of a size."""

    dtype: dtypes.DType

    def __instancecheck__(cls, value):
        return isinstance(value, TypedStorage) and value.dtype is cls.dtype

    def __call__(cls, *args):
        return TypedStorage(construct(cls.dtype, args or (0,), {}))

    def from_buffer(cls, buffer, byte_order="native", count=-1, offset=0):
        """A copy of the numbers in an object that has the buffer protocol."""
        if byte_order not in ("native", sys.byteorder):
            raise NotImplementedError(f"from_buffer: only the machine's byte order is read, {sys.byteorder!r}; got {byte_order!r}")
        view = memoryview(buffer).cast("B")
        if not len(view) - offset:
            return cls(0)
        return TypedStorage(frombuffer(bytearray(view), dtype=cls.dtype, count=count, offset=offset))

    def __repr__(cls):
        return f"<class 'torch.{cls.__name__}'>"


STORAGES = {name.replace("Tensor", "Storage"): _StorageOfDtype(name.replace("Tensor", "Storage"), (), {"dtype": dtype, "__module__": "torch"}) for name, dtype in _TYPES.items()}


def set_default_tensor_type(kind: Any) -> None:
    """Sets the default dtype by one of the old type names. Raises TypeError for an unknown one."""
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    name = name.removeprefix("torch.")
    if name not in _TYPES:
        raise TypeError(f"invalid type object: only floating-point types are supported as the default type, not {kind!r}")
    dtypes.set_default_dtype(_TYPES[name])
