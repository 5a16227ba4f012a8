"""What a tensor is: storage, layout, dtype, device, gradient slot. Everything that needs an operator is installed from the operator table.

Attributes of an instance: `spec` (shape, strides, dtype, device, interned), `mem` (its native Storage), `ptr` (address of element [0, …, 0]).
The start offset is derived from the address, so that windows of one buffer share their spec and with it their plans.
"""
from __future__ import annotations

from typing import Any

from .dtypes import Device, DType
from .errors import storage_overflow
from .kernels.native import Storage, new_storage, wrap_storage
from .kernels.native_objects import TensorBase, make_tensor, set_tensor_type
from .layout import Layout, Size, wrap_dim

META_ADDRESS = 3 << 62  # where meta tensors "begin": no address, and too large for a kernel's slot, so that a launch refuses it instead of reading there
# Packed elements (several a byte) have no address each: `ptr` counts elements from here, for every storage. Too large for a slot as well.
PACKED_ADDRESS = 5 << 61

_SPECS: dict[tuple, Spec] = {}
_SPEC_LIMIT = 20_000  # beyond this many the table is emptied; a spec met again is then made anew


class Spec:
    """The kind of a tensor: layout, dtype and device. Interned, so that plans are found by identity; `cache` holds plans for tensors of this kind."""

    __slots__ = ("layout", "dtype", "device", "shape", "strides", "numel", "ndim", "itemsize", "nbytes", "is_contiguous", "is_meta", "is_plain", "cache", "__weakref__")

    @staticmethod
    def of(layout: Layout, dtype: DType, device: Device) -> Spec:
        key = (layout, dtype, device)
        found = _SPECS.get(key)
        if found is None:
            if len(_SPECS) >= _SPEC_LIMIT:
                _SPECS.clear()
            found = object.__new__(Spec)
            found.layout, found.dtype, found.device = layout, dtype, device
            found.shape, found.strides, found.numel, found.ndim = layout.shape, layout.strides, layout.numel, layout.ndim
            found.itemsize = dtype.itemsize
            found.nbytes = bytes_for(layout.numel, dtype)
            found.is_contiguous = layout.is_contiguous
            found.is_meta = device.type == "meta"
            found.is_plain = not (found.is_meta or dtype.packed)  # its elements have addresses
            found.cache = {}
            found = _SPECS.setdefault(key, found)
        return found

    def with_layout(self, layout: Layout) -> Spec:
        return Spec.of(layout, self.dtype, self.device)

    def with_dtype(self, dtype: DType) -> Spec:
        return Spec.of(self.layout, dtype, self.device)

    def __repr__(self):
        return f"Spec({self.dtype}{list(self.shape)}, strides {self.strides}, {self.device})"


def _sealed(name):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"Tensor.{name} is not installed: import strided, not strided.tensor")
    return refuse


class Tensor(TensorBase):
    """A multi-dimensional array: flat memory and a recipe for walking it, with an optional gradient. Its methods are the operator table's."""

    spec: Spec
    mem: Any
    ptr: int

    # Fields of the native base; what a new tensor holds is said in kernels/runtime_objects.py.
    _tracked: bool  # False; asks for a gradient: a leaf that was told to, or a result of one
    _node: Any  # None; what made it (grad_fn)
    _nr: int  # 0; which output of the node
    _grad: Any  # None
    _base: Any  # None; the tensor whose view this is, for in-place history
    _hooks: Any  # None; of a leaf's gradient
    _inference: bool  # False
    _accumulator: Any  # None; the leaf's AccumulateGrad
    _seen: int  # 0; storage version for which a view's `_node` is right; later writes through its base outdate it
    _view_kind: str | None  # None; why a view must not be written in place under grad mode: "no_grad", "inference", "multi:<Node>", "custom:<Node>"
    _retains: bool  # False; retain_grad() was asked for
    _post_hooks: Any  # None; of a leaf: run after its gradient was added

    __hash__ = object.__hash__
    __array_priority__ = 1000  # NumPy hands `array + tensor` to us

    # ---- shape and memory -----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        return self.spec.shape

    @property
    def dtype(self) -> DType:
        return self.spec.dtype

    @property
    def device(self) -> Device:
        return self.spec.device

    @property
    def ndim(self) -> int:
        return self.spec.ndim

    @property
    def itemsize(self) -> int:
        return self.spec.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of the elements: numel × element size (the storage may hold more, or fewer under an expanded dimension)."""
        return self.spec.nbytes

    @property
    def is_cpu(self) -> bool:
        return self.spec.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return self.spec.is_meta

    is_cuda = is_sparse = is_quantized = is_mkldnn = is_mps = is_xpu = is_nested = False

    def size(self, dim: int | None = None):
        """All sizes, or the size of one dimension. Raises IndexError for a dimension that does not exist."""
        if dim is None:
            return self.spec.shape
        return self.spec.shape[wrap_dim(dim, self.spec.ndim)]

    def stride(self, dim: int | None = None):
        """All strides in elements, or one dimension's."""
        if dim is None:
            return self.spec.strides
        return self.spec.strides[wrap_dim(dim, self.spec.ndim)]

    def dim(self) -> int:
        return self.spec.ndim

    ndimension = dim

    def numel(self) -> int:
        """Number of elements."""
        return self.spec.numel

    nelement = numel

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.spec.itemsize

    def storage_offset(self) -> int:
        """Elements from the start of the storage to element [0, …, 0]."""
        if not self.spec.is_plain:
            return self.ptr % (META_ADDRESS if self.spec.is_meta else PACKED_ADDRESS) // self.spec.itemsize
        return (self.ptr - self.mem.data) // self.spec.itemsize if self.mem.data else 0

    def data_ptr(self) -> int:
        """Address of element [0, …, 0] (of the byte that it begins in); 0 for an empty or meta tensor."""
        if self.spec.dtype.packed and self.mem.data and self.spec.numel:
            return self.mem.data + self.storage_offset() * self.spec.dtype.bits // 8
        return self.ptr if self.spec.numel and self.mem.data else 0

    def is_contiguous(self, memory_format=None) -> bool:
        """Whether the elements lie in row-major order without gaps (or in channels-last order, when asked for that)."""
        if memory_format is None or getattr(memory_format, "name", None) in ("contiguous_format", "preserve_format"):
            return self.spec.is_contiguous
        return memory_format.matches(self.spec.layout)

    def is_floating_point(self) -> bool:
        return self.spec.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.spec.dtype.is_complex

    def is_signed(self) -> bool:
        return self.spec.dtype.is_signed

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self._inference

    def is_pinned(self, device=None) -> bool:
        return False

    def pin_memory(self, device=None):
        """Itself: pinning speeds up copies to an accelerator, and there is none."""
        return self

    def get_device(self) -> int:
        return -1

    def untyped_storage(self) -> UntypedStorage:
        """The flat bytes behind this tensor, shared by all its views."""
        return UntypedStorage(self)

    def storage(self) -> TypedStorage:
        """The flat memory behind this tensor as a sequence of its dtype."""
        return TypedStorage(self)

    @property
    def _version(self) -> int:
        """How often the storage was written in place."""
        if self._inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self.mem.version

    __len__: Any = _sealed("__len__")


set_tensor_type(Tensor)


def wrap(spec: Spec, mem: Any, ptr: int) -> Tensor:
    """A tensor over existing memory, without checks."""
    return make_tensor(spec, mem, ptr or place_of(mem, spec))


def bytes_for(elements: int, dtype: DType) -> int:
    """Bytes that so many elements take: whole ones, also where the last is shared with nothing."""
    return (elements * dtype.bits + 7) // 8 if dtype.packed else elements * dtype.itemsize


def place_of(mem: Any, spec: Spec, offset: int = 0) -> int:
    """`ptr` of element `offset` of a storage, for tensors of a spec's dtype and device."""
    return (mem.data if spec.is_plain else META_ADDRESS if spec.is_meta else PACKED_ADDRESS) + offset * spec.itemsize


def empty(shape, dtype: DType, device: Device, strides=None) -> Tensor:
    """A fresh uninitialised tensor; `strides` in elements (default row-major, must be dense)."""
    layout = Layout.contiguous(shape) if strides is None else Layout.of(shape, strides)
    return empty_of(Spec.of(layout, dtype, device))


def empty_of(spec: Spec) -> Tensor:
    """A fresh uninitialised tensor of a spec."""
    if not spec.is_plain:
        return _empty_unusual(spec)
    try:
        mem = new_storage(spec.layout.span * spec.itemsize)
    except OverflowError:
        raise storage_overflow(spec.shape) from None
    return wrap(spec, mem, mem.data)


def meta_storage(spec: Spec):
    """The storage of a fresh meta tensor: no memory, and the bytes that it would have. Raises RuntimeError where 64 bits do not count them."""
    try:
        return wrap_storage(0, bytes_for(spec.layout.span, spec.dtype), None)
    except OverflowError:
        raise storage_overflow(spec.shape) from None


def _empty_unusual(spec: Spec) -> Tensor:
    if spec.is_meta:
        return wrap(spec, meta_storage(spec), META_ADDRESS)
    nbytes = bytes_for(spec.layout.span, spec.dtype)
    mem = new_storage(nbytes)
    if spec.layout.span * spec.dtype.bits % 8:  # the bits behind the last element are defined, since they are saved with it
        memoryview(mem)[nbytes - 1] = 0
    return wrap(spec, mem, PACKED_ADDRESS)


class UntypedStorage:
    """A storage as users see it: bytes. Indexing gives ints; `data_ptr()` and `nbytes()` as in PyTorch."""

    def __init__(self, owner: Tensor):
        self._mem, self._device = owner.mem, owner.device

    def nbytes(self) -> int:
        return self._mem.nbytes

    size = nbytes

    def __len__(self):
        return self._mem.nbytes

    def data_ptr(self) -> int:
        return self._mem.data

    @property
    def device(self):
        return self._device

    def __getitem__(self, key):
        return memoryview(self._mem)[key]

    def __iter__(self):
        return iter(memoryview(self._mem))

    def tolist(self):
        return list(memoryview(self._mem))

    def __eq__(self, other):
        return isinstance(other, UntypedStorage) and other._mem is self._mem

    def __hash__(self):
        return hash(id(self._mem))

    def _version(self):
        return self._mem.version

    def __repr__(self):
        lines = "".join(f" {b}\n" for b in self)
        return f"{lines}[torch.storage.UntypedStorage(device={self._device}) of size {len(self)}]"


class TypedStorage:
    """A storage as a flat sequence of one dtype."""

    def __init__(self, owner: Tensor):
        self._owner = owner
        self._mem, self.dtype = owner.mem, owner.dtype

    def __len__(self):
        return self._mem.nbytes * 8 // self.dtype.bits if self.dtype.packed else self._mem.nbytes // self.dtype.itemsize

    size = __len__

    def nbytes(self) -> int:
        return self._mem.nbytes

    def data_ptr(self) -> int:
        return self._mem.data

    def untyped(self) -> UntypedStorage:
        return UntypedStorage(self._owner)

    @property
    def device(self):
        return self._owner.device

    def tolist(self) -> list:
        from .kernels.native import read_list

        memoryview(self._mem)  # raises for a meta tensor
        if self.dtype.packed or self.dtype.code < 0:
            spec = Spec.of(Layout.contiguous((len(self),)), self.dtype, self.device)
            return wrap(spec, self._mem, place_of(self._mem, spec)).tolist()
        return read_list(self.dtype.code, self._mem.data, len(self), self.dtype.itemsize)

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, key):
        return self.tolist()[key]

    def __repr__(self):
        lines = "".join(f" {v}\n" for v in self.tolist())
        return f"{lines}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


__all__ = ["Device", "DType", "Layout", "Size", "Spec", "Storage", "Tensor", "TypedStorage", "UntypedStorage", "empty", "empty_of", "new_storage", "wrap", "wrap_storage"]
