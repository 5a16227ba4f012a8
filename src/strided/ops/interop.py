"""Other libraries' protocols on tensors: NumPy's, DLPack, the array API standard; pickling and copying; shared memory.

Holds the methods and `from_dlpack`; DLPack's structures are in dlpack.py, the namespace of the standard in array_api/, files of tensors in io/.
"""

from __future__ import annotations

import copyreg
import sys
from typing import Any

from .. import dtypes
from ..arrays import array_of, tensor_of
from ..dtypes import DType
from ..kernels.native import Storage, new_storage, wrap_storage
from ..layout import Layout
from ..tensor import Spec, Tensor, bytes_for, place_of, wrap
from .table import operator

# ---- NumPy --------------------------------------------------------------------------------------


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """NumPy's view of the tensor (no copy unless the dtype changes or one is asked for). Raises RuntimeError for one that requires grad."""
    found = self.numpy()
    if dtype is not None and found.dtype != dtype:
        if copy is False:
            raise ValueError(f"Unable to avoid copy while creating an array as requested: {self.dtype} converts to {dtype} only in a copy")
        return found.astype(dtype)
    return found.copy() if copy else found


def _array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """What NumPy's functions of tensors return: a tensor (uint8 for truth values, as in PyTorch)."""
    if array.dtype == bool:
        array = array.astype("uint8")
    return tensor_of(array)


def _array_interface(self: Tensor) -> dict[str, Any]:
    """NumPy's description of the memory, where it is exact: a cpu tensor of a NumPy dtype that does not require grad."""
    spec = self.spec
    if spec.is_meta or self._tracked or spec.dtype.format is None and not spec.dtype.is_complex:
        raise AttributeError(f"__array_interface__ describes memory of NumPy's dtypes outside any graph, not {spec.dtype} {'that requires grad' if self._tracked else f'on {spec.device}'}")
    found = array_of(self)
    interface = dict(found.__array_interface__)
    interface["strides"] = tuple(found.strides)
    return interface


# ---- DLPack and the array API -------------------------------------------------------------------


def _dlpack(self: Tensor, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[Any, int] | None = None, copy: bool | None = None) -> Any:
    """A DLPack capsule over the memory (over a copy of it with copy=True). Raises BufferError for a tensor that requires grad."""
    if self._tracked:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and stream != -1:
        if type(stream) is not int:
            raise TypeError("stream must be ``int`` or ``none``")
        raise BufferError(f"stream {stream}: tensors on the CPU have no streams")
    from .dlpack import CPU_DEVICE, export

    if dl_device is not None and tuple(int(part) for part in dl_device) != CPU_DEVICE:
        raise BufferError(f"cannot export a tensor to the DLPack device {tuple(dl_device)}: tensors live on the CPU, {CPU_DEVICE}")
    return export(self.clone() if copy else self, max_version, bool(copy))


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    """(device type, index) as DLPack numbers them: (1, 0) is the CPU."""
    if self.is_meta:
        raise ValueError("Unknown device type meta for Dlpack")
    return 1, 0


def _array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """The module that follows the array API standard for tensors."""
    from importlib import import_module

    array_api = import_module(f"{__package__.partition('.')[0]}.array_api")  # by name: it stands on a floor above
    if api_version is not None and api_version not in array_api.VERSIONS:
        raise ValueError(f"the array API standard {api_version!r} is not followed; {', '.join(array_api.VERSIONS)} are")
    return array_api


@operator("from_dlpack", method=False)
def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of an object with `__dlpack__`, or of a DLPack capsule; writes are seen on both sides. copy: True always, False never copies."""
    from . import dlpack  # loaded when it is first used

    return dlpack.from_dlpack(ext_tensor, device=device, copy=copy)


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The array API's name of `.to(device)`."""
    if stream is not None:
        raise NotImplementedError("to_device(): tensors on the CPU have no streams")
    return self.to(device)


# ---- pickling and copying -----------------------------------------------------------------------


def _reduce_storage(storage: Any) -> tuple:
    """A storage by value; pickle keeps one storage one, so that views in one pickle share it again."""
    if storage.nbytes and not storage.data:
        return _meta_storage, (storage.nbytes,)
    return _storage_from, (bytes(memoryview(storage).cast("B")[: storage.nbytes]) if storage.nbytes else b"",)


def _storage_from(data: Any) -> Any:
    storage = new_storage(len(data))
    if len(data):
        memoryview(storage).cast("B")[: len(data)] = memoryview(data).cast("B")
    return storage


def _meta_storage(nbytes: int) -> Any:
    return wrap_storage(0, nbytes, None)


copyreg.pickle(Storage, _reduce_storage)


_INTERNAL = frozenset(("spec", "mem", "ptr"))


def _reduce(self: Tensor, protocol: int) -> tuple:
    """The whole storage and how the tensor walks it, so that views pickled together share it again; attributes that users hung on it come along.

    A result of operators becomes a leaf that requires grad, as in PyTorch. Gradients and hooks stay behind.
    """
    offset = self.ptr - self.mem.data if self.spec.is_plain else self.storage_offset() * self.itemsize  # in bytes, or in packed elements
    state = {name: value for name, value in vars(self).items() if name not in _INTERNAL and not hasattr(Tensor, name)}
    args = (type(self), self.mem, offset, tuple(self.shape), self.stride(), self.dtype, str(self.device), bool(self._tracked))
    return (_rebuild, args, state) if state else (_rebuild, args)


def _rebuild(kind: type, mem: Any, offset: int, shape: tuple, strides: tuple, dtype: DType, device: str, requires_grad: bool) -> Any:
    layout = Layout.of(shape, strides)
    needed = bytes_for(offset + layout.span, dtype) if dtype.packed else offset + layout.span * dtype.itemsize
    if offset < 0 or mem.data and needed > mem.nbytes:
        from pickle import UnpicklingError

        raise UnpicklingError(f"a tensor that ends at byte {needed:,} does not fit its storage of {mem.nbytes:,} bytes")
    spec = Spec.of(layout, dtype, dtypes.resolve_device(device))
    t = wrap(spec, mem, place_of(mem, spec) + offset)
    if kind is not Tensor:
        t = t.as_subclass(kind)
    t._tracked = requires_grad
    return t


def _setstate(self: Tensor, state: dict) -> None:
    for name, value in state.items():
        setattr(self, name, value)


# ---- shared memory ------------------------------------------------------------------------------


_SHARED = "strided.shared"  # marks a mapping of share_memory_ among others that storages may lie in


def _share_memory(self: Tensor) -> Tensor:
    """Moves the tensor's storage into memory that this process shares with those it forks from now on: writes on either side are seen on the other.

    Raises NotImplementedError where other tensors (views, or a graph) use the same storage: they would stay behind in the old one.
    """
    if self.is_meta or _is_shared(self) or not self.mem.nbytes:
        return self
    holders = sys.getrefcount(self.mem) - 2  # this attribute and the call's argument
    if holders > 0:
        raise NotImplementedError(
            f"share_memory_(): {holders} other object{'s' if holders > 1 else ''} (views, or a graph) hold this tensor's storage, which cannot be moved under them. "
            "Share it before making views, or share a .clone()."
        )
    import ctypes
    import mmap

    class Shared(mmap.mmap):
        tag = _SHARED

    nbytes, old, offset = self.mem.nbytes, self.mem, self.ptr - self.mem.data
    memory = Shared(-1, nbytes)
    memory[:nbytes] = memoryview(old).cast("B")[:nbytes]
    self.mem = wrap_storage(ctypes.addressof(ctypes.c_char.from_buffer(memory)), nbytes, memory)
    self.mem.version = old.version
    if self.spec.is_plain:
        self.ptr = self.mem.data + offset
    return self


def _is_shared(self: Tensor) -> bool:
    """Whether the storage is in memory shared with forked processes."""
    return getattr(self.mem.owner, "tag", None) == _SHARED


_METHODS: dict[str, Any] = {
    "__array__": _array, "__array_wrap__": _array_wrap, "__array_interface__": property(_array_interface), "__dlpack__": _dlpack, "__dlpack_device__": _dlpack_device,
    "__array_namespace__": _array_namespace, "to_device": _to_device, "__reduce_ex__": _reduce, "__setstate__": _setstate, "share_memory_": _share_memory, "is_shared": _is_shared,
}  # fmt: skip
for _name, _method in _METHODS.items():
    setattr(Tensor, _name, _method)
