"""What a pickled tensor is rebuilt from: storages, and the functions that torch.save's pickles call by name, each checked against its storage.

Holds no reading of files and no allow-list. Every argument may come from a hostile file: a tensor never reaches beyond its storage.
"""

from __future__ import annotations

import operator
from typing import Any

from strided import dtypes
from strided.dtypes import DType
from strided.io.unpickler import UnpicklingError
from strided.kernels.native import wrap_storage
from strided.layout import INT64_MAX, Layout
from strided.tensor import Spec, Tensor, TypedStorage, UntypedStorage, bytes_for, place_of, wrap

# PyTorch's class of a typed storage, by dtype. Dtypes that are not here are saved as untyped bytes with the dtype beside them.
STORAGE_NAMES = {
    "float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage", "int64": "LongStorage", "int32": "IntStorage", "int16": "ShortStorage",
    "int8": "CharStorage", "uint8": "ByteStorage", "bool": "BoolStorage", "bfloat16": "BFloat16Storage", "complex128": "ComplexDoubleStorage",
    "complex64": "ComplexFloatStorage",
}  # fmt: skip


class StorageType:
    """Stands for a typed storage class (torch.FloatStorage) in a pickle. Only its dtype counts."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: DType):
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def flat(mem: Any, dtype: DType, device: Any) -> Tensor:
    """All of a storage as a vector of `dtype`."""
    spec = Spec.of(Layout.contiguous((mem.nbytes * 8 // dtype.bits if dtype.packed else mem.nbytes // dtype.itemsize,)), dtype, device)
    return wrap(spec, mem, place_of(mem, spec))


def untyped(mem: Any, device: Any) -> UntypedStorage:
    """A storage as users see it."""
    return UntypedStorage(flat(mem, dtypes.uint8, device))


def typed(storage: UntypedStorage, dtype: DType) -> TypedStorage:
    """The same storage as a sequence of `dtype`."""
    return TypedStorage(flat(storage._mem, dtype, storage.device))


def is_internal(name: Any) -> bool:
    """Whether an attribute of a tensor is the house's own: no file may set it, and none is written."""
    return not isinstance(name, str) or name in ("spec", "mem", "ptr") or hasattr(Tensor, name)


def set_attributes(target: Tensor, state: Any) -> Tensor:
    """Gives a tensor the attributes that its user had hung on it. Raises UnpicklingError for names that mean something to a tensor."""
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    for part in parts:
        if not isinstance(part, (dict, type(None))):
            raise UnpicklingError(f"a tensor's attributes are a dict, but got {type(part)}")
        for name, value in (part or {}).items():
            if is_internal(name):
                raise UnpicklingError(f"a pickle may not set the attribute {name!r} of a tensor")
            setattr(target, name, value)
    return target


def _counts(name: str, values: Any) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or not all(type(value) is int and 0 <= value <= INT64_MAX for value in values) or len(values) > 64:
        raise UnpicklingError(f"a tensor's {name} is a tuple of integers from 0 on, but got {str(values)[:100]}")
    return tuple(values)


def _layout(size: Any, stride: Any) -> Layout:
    size, stride = _counts("size", size), _counts("stride", stride)
    if len(size) != len(stride):
        raise UnpicklingError(f"mismatch in length of strides and shape: {len(stride)} strides for {len(size)} dimensions")
    reach, numel = 1, 1
    for count, step in zip(size, stride):
        reach += max(count - 1, 0) * step
        numel *= max(count, 1)
    if max(reach, numel) > INT64_MAX:
        raise UnpicklingError(f"a tensor of size {size} with strides {stride} has more elements than 64 bits can count")
    return Layout.of(size, stride)


def _tensor(storage: Any, dtype: Any, offset: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    if not isinstance(storage, UntypedStorage) or not isinstance(dtype, DType):
        raise UnpicklingError(f"a tensor is rebuilt from a storage and a dtype, but got {type(storage)} and {type(dtype)}")
    (offset,), layout, mem = _counts("storage offset", (offset,)), _layout(size, stride), storage._mem
    needed = bytes_for(offset + layout.span, dtype)
    if needed > mem.nbytes:
        raise UnpicklingError(
            f"setStorage: sizes {list(layout.shape)}, strides {list(layout.strides)}, storage offset {offset}, and itemsize {dtype.itemsize} requiring a storage "
            f"size of {needed} are out of bounds for storage of size {mem.nbytes}"
        )
    spec = Spec.of(layout, dtype, storage.device)
    t = wrap(spec, mem, place_of(mem, spec, offset))
    return t.requires_grad_(True) if requires_grad is True else t


def rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Tensor:
    return rebuild_tensor_v2(storage, storage_offset, size, stride, False, None)


def rebuild_tensor_v2(storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any, backward_hooks: Any, metadata: Any = None) -> Tensor:
    """A tensor over a typed storage. Hooks are never restored; metadata tells of lazily conjugated or negated views."""
    if not isinstance(storage, TypedStorage):
        raise UnpicklingError(f"a tensor is rebuilt from a typed storage, but got {type(storage)}")
    t = _tensor(storage.untyped(), storage.dtype, storage_offset, size, stride, requires_grad)
    for name in metadata or ():
        if name not in ("conj", "neg"):
            raise NotImplementedError(f"a tensor with the metadata {str(name)[:100]!r}: save it as a plain one, with .clone()")
        if metadata[name]:
            t = (t.conj() if name == "conj" else -t).detach().requires_grad_(requires_grad is True)
    return t


def rebuild_tensor_v3(storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any, backward_hooks: Any, dtype: Any, metadata: Any = None) -> Tensor:
    """A tensor of `dtype` over untyped bytes."""
    if metadata:
        raise NotImplementedError("a tensor with metadata: save it as a plain one, with .clone()")
    return _tensor(storage, dtype, storage_offset, size, stride, requires_grad)


def rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Any:
    from strided.nn.parameter import Parameter

    if not isinstance(data, Tensor):
        raise UnpicklingError(f"a parameter is rebuilt from a tensor, but got {type(data)}")
    return Parameter(data, bool(requires_grad))


def rebuild_parameter_with_state(data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Any:
    return set_attributes(rebuild_parameter(data, requires_grad, backward_hooks), state)


def rebuild_meta_tensor(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
    """A tensor that is a shape without values."""
    layout = _layout(size, stride)
    if not isinstance(dtype, DType):
        raise UnpicklingError(f"a tensor's dtype is a torch.dtype, but got {type(dtype)}")
    return _tensor(untyped(wrap_storage(0, bytes_for(layout.span, dtype), None), dtypes.META), dtype, 0, size, stride, requires_grad)


def rebuild_device_tensor(data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
    """A tensor of a device that PyTorch saves by way of the CPU (xla and others): it stays on the CPU."""
    if not isinstance(data, Tensor) or not isinstance(dtype, DType):
        raise UnpicklingError(f"a tensor is rebuilt from a tensor and a dtype, but got {type(data)} and {type(dtype)}")
    return data.to(dtype).requires_grad_(requires_grad is True)


def rebuild_blocks(name: Any, parts: Any, shape: Any, tensor_scale: Any = None, turned: Any = False) -> Tensor:
    """A block tensor of this package's own: every part is checked against the format and the shape."""
    from strided.block_tensor import rebuild_block_tensor

    try:
        return rebuild_block_tensor(name, parts, _counts("size", shape), tensor_scale, turned)
    except (ValueError, TypeError) as error:
        raise UnpicklingError(f"a block tensor that does not fit together: {error}") from None


def get_layout(name: Any) -> Any:
    """torch.strided; other layouts do not exist here."""
    from strided.formats import strided

    if name not in ("torch.strided", "strided"):
        raise NotImplementedError(f"the layout {str(name)[:100]}: tensors here are torch.strided; save them with .to_dense()")
    return strided


# ---- plain Python values whose constructors can be asked for harm ----------------------------


def encode(text: Any, encoding: Any) -> bytes:
    """`_codecs.encode`, by which old protocols spell bytes. Only as that: codecs can also compress, and be registered."""
    if type(text) is not str or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise UnpicklingError(f"bytes are spelled as text in latin1, but got {type(text)} and {str(encoding)[:100]!r}")
    return text.encode(encoding)


def make_bytes(data: Any = b"") -> bytes:
    """b"", which old protocols spell as a call."""
    if type(data) is not bytes:
        raise UnpicklingError(f"bytes are made from bytes, but got {type(data)}")
    return data


def make_bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    if encoding is not None:
        data = encode(data, encoding)
    if type(data) is not bytes and type(data) is not list:  # a number would ask for that many zeros
        raise UnpicklingError(f"a bytearray is made from bytes, but got {type(data)}")
    return bytearray(data)


def make_complex(real: Any, imag: Any = 0.0) -> complex:
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise UnpicklingError("a complex number is made from two numbers")
    return complex(real, imag)


def make_size(sizes: Any = ()) -> Any:
    from strided.layout import Size

    return Size(map(operator.index, sizes))
