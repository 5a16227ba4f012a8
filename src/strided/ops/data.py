"""Tensors from data: numbers, nested lists, NumPy arrays, buffers, other tensors.

Factories that need only a shape are in create.py; values read out of tensors in values.py.
"""

from __future__ import annotations

from array import array
from operator import index as as_index
from typing import Any

from .. import dtypes
from ..arrays import tensor_of
from ..autograd import no_grad
from ..dtypes import DType, resolve_device
from ..kernels.native import move_bytes, new_storage, wrap_storage
from ..layout import Layout
from ..packing import packed
from ..tensor import Spec, Tensor, bytes_for, wrap
from .copies import as_dtype, to_copy
from .create import finish, full_of, options, spec_of
from .elementwise import self_copy
from .table import TABLE, operator
from .writes import number_for

# ---- nested sequences -----------------------------------------------------------------------------------------------------


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (list, tuple, range, bytearray)) or hasattr(value, "__len__") and hasattr(value, "__getitem__") and not hasattr(value, "keys")


def _measure(data: Any) -> tuple[int, ...]:
    """The shape that a nested sequence has along its first entries."""
    shape: list[int] = []
    while not isinstance(data, (str, bytes)):
        if isinstance(data, Tensor) or type(data).__module__ == "numpy":
            return (*shape, *data.shape)
        if not _is_sequence(data):
            break
        shape.append(len(data))
        if len(shape) > 64:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if not shape[-1]:
            break
        data = data[0]
    if isinstance(data, (str, bytes)) and shape and isinstance(data, str):
        raise ValueError(f"too many dimensions '{type(data).__name__}'")
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...]) -> list:
    """All numbers of a nested sequence of this shape, in order."""
    rows = [data]
    if 0 in shape:
        return []
    for dim, size in enumerate(shape):
        deeper: list = []
        for row in rows:
            if isinstance(row, Tensor):
                if row.numel() != 1:
                    raise TypeError("only integer tensors of a single element can be converted to an index")
                row = row.tolist()
            elif type(row).__module__ == "numpy" and getattr(row, "ndim", 0):
                row = row.tolist()
            elif not _is_sequence(row):
                raise TypeError("not a sequence")
            if len(row) != size:
                raise ValueError(f"expected sequence of length {size} at dim {dim} (got {len(row)})")
            deeper.extend(row)
        rows = deeper
    return rows


def _numbers(flat: list) -> tuple[list, DType | None]:
    """The entries as Python numbers, and the dtype they ask for (None for no entries)."""
    kinds = set(map(type, flat))
    if kinds <= {float}:
        return flat, dtypes.get_default_dtype() if kinds else None
    if kinds <= {int, bool}:
        return flat, dtypes.int64 if int in kinds else dtypes.bool_
    if kinds <= {int, bool, float}:
        return flat, dtypes.get_default_dtype()
    found: DType | None = None
    values = []
    for value in flat:
        one, value = _number(value)
        found = one if found is None else dtypes.promote(found, one)
        values.append(value)
    return values, found


def _number(value: Any) -> tuple[DType, Any]:
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return value.dtype, value.item()
    if isinstance(value, complex) and type(value).__module__ != "numpy":
        return dtypes.scalar_dtype(value), value
    if isinstance(value, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(value).__name__}'")
    if type(value).__module__ == "numpy" and hasattr(value, "dtype"):
        return dtypes.from_numpy_dtype(value.dtype), value.item()
    if isinstance(value, (bool, int, float)):
        return dtypes.scalar_dtype(value), value
    if _is_sequence(value):
        raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")
    if hasattr(value, "__index__"):
        return dtypes.int64, as_index(value)
    if hasattr(value, "__float__"):
        return dtypes.get_default_dtype(), float(value)
    raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")


def _pack(numbers: list, dtype: DType) -> array | bytes:
    """The numbers as memory of `dtype` (one that the struct letters know). Raises RuntimeError where one does not fit."""
    if dtype is dtypes.bool_:
        return bytes(map(bool, numbers))
    if dtype.is_complex:
        return array(dtype.to_real().format, [part for value in map(complex, numbers) for part in (value.real, value.imag)])
    letter = dtype.format
    assert letter is not None
    if dtype.is_floating_point:
        try:
            return array(letter, numbers)
        except OverflowError:
            raise OverflowError("int too large to convert to float") from None
    try:
        return array(letter, numbers)
    except (TypeError, OverflowError):  # floats, or a number that needs PyTorch's verdict
        pass
    names = {d.name: d.name for d in dtypes.all_dtypes()}
    values = []
    for value in numbers:
        if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
            raise ValueError("Overflow when unpacking long long")
        values.append(number_for(dtype, value, names))
    return array(letter, [v % 2**64 if letter == "Q" else v for v in values])


def _from_numbers(numbers: list, shape: tuple[int, ...], dtype: DType, device: Any) -> Tensor:
    if dtype.packed and not dtype.is_floating_point:
        for value in numbers:
            number_for(dtype, value)  # raises where it does not fit
    packed_as = dtype if dtype.format and dtype.format != "e" else dtypes.float32
    if dtype.is_complex:
        packed_as = dtypes.complex64 if dtype is dtypes.complex32 else dtype
    elif any(type(value) is complex for value in numbers) and dtype is not dtypes.bool_:
        raise TypeError("must be real number, not complex" if dtype.is_floating_point else "'complex' object cannot be interpreted as an integer")
    spec = spec_of(shape, packed_as, dtypes.CPU)
    packed = _pack(numbers, packed_as)
    made = _filled(spec, packed)
    return made if dtype is packed_as and device is dtypes.CPU else _moved(made, dtype, device)


def _filled(spec: Spec, packed: array | bytes) -> Tensor:
    """A fresh row-major tensor with these bytes."""
    mem = new_storage(spec.nbytes)
    if type(packed) is array:
        move_bytes(mem.data, packed.buffer_info()[0], spec.nbytes)
    elif spec.nbytes:
        memoryview(mem)[: spec.nbytes] = packed
    return wrap(spec, mem, mem.data)


def _quickly(data: Any, dtype: Any = None) -> Tensor | None:
    """`tensor(data, dtype=dtype)` for a number and for a flat list of floats or of ints, the usual cases; None for any other."""
    kind = type(data)
    if kind is list and data:
        shape, kinds = (len(data),), set(map(type, data))
        if len(kinds) != 1:
            return None
        (kind,) = kinds
    elif kind is float or kind is int:
        shape, data = (), (data,)
    else:
        return None
    if dtype is None:
        dtype = dtypes._default if kind is float else dtypes.int64 if kind is int else None
    elif type(dtype) is not DType or not (kind is int and dtype.kind == "int" or (kind is float or kind is int) and dtype.kind == "float"):
        return None  # among others unsigned ones, where negative numbers wrap
    if dtype is None or dtype.format in (None, "e") or dtypes.get_default_device() is not dtypes.CPU:
        return None
    try:
        packed = array(dtype.format, data)
    except OverflowError:
        return None
    return _filled(Spec.of(Layout.contiguous(shape), dtype, dtypes.CPU), packed)


def _moved(t: Tensor, dtype: DType, device: Any) -> Tensor:
    with no_grad():
        return to_copy(t, dtype, device)


@operator("tensor", method=False)
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new tensor with a copy of `data`: a number, nested lists or tuples of numbers, an array, or another tensor.

    The dtype follows from the data: bool, int64, the default float, or the array's own. Raises ValueError where lists differ in length.
    """
    if device is None and not requires_grad and not pin_memory:
        made = _quickly(data, dtype)
        if made is not None:
            return made
    chosen, place = options("tensor", dtype, device, pin_memory=pin_memory)
    wanted = None if dtype is None else chosen
    return finish("tensor", _build(data, wanted, place, "tensor"), requires_grad)


def _build(data: Any, dtype: DType | None, device: Any, name: str) -> Tensor:
    kind = type(data)
    if kind is float or kind is int or kind is bool:
        numbers, found = [data], dtypes.scalar_dtype(data)
        return _from_numbers(numbers, (), dtype or found, device)
    if isinstance(data, Tensor):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            stacklevel=5,
        )
        return _moved(data, dtype or data.dtype, data.device if device is dtypes.CPU and data.is_meta else device)
    if _is_array(data):
        return _copy_array(data, dtype, device)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not _is_sequence(data):
        if hasattr(data, "__array_interface__") or hasattr(data, "__array__"):
            import numpy

            return _copy_array(numpy.asarray(data), dtype, device)
        one, value = _number(data)
        return _from_numbers([value], (), dtype or one, device)
    shape = _measure(data)
    numbers, inferred = _numbers(_flatten(data, shape))
    if dtype is not None and dtype.is_floating_point or dtype is None and inferred is not None and inferred.is_floating_point:
        return _from_numbers(numbers, shape, dtype or inferred, device)  # type: ignore[arg-type]
    return _from_numbers(numbers, shape, dtype or inferred or dtypes.get_default_dtype(), device)


def _is_array(data: Any) -> bool:
    return type(data).__module__.partition(".")[0] == "numpy" and hasattr(data, "dtype")


def _copy_array(data: Any, dtype: DType | None, device: Any) -> Tensor:
    import numpy

    data = numpy.asarray(data)
    if not data.dtype.isnative:
        data = data.astype(data.dtype.newbyteorder("="))
    if data.dtype.name not in dtypes._ALL:
        dtypes.from_numpy_dtype(data.dtype)
    small = dtypes._ALL.get(data.dtype.name)
    if small is not None and small.packed:  # an array has one element a byte
        codes = numpy.array(data, order="C").view("uint8") if small.is_floating_point else numpy.ascontiguousarray(data.astype(f"{small.kind}8"))
        made = packed(TABLE["view"].call(tensor_of(codes), small.unpacked))
        return made if dtype in (None, small) and device is dtypes.CPU else _moved(made, dtype or small, device)
    if dtype is not None and dtype.code < 0:
        data = data.astype(dtype.numpy)
    shared = tensor_of(numpy.array(data, order="C", copy=True))
    return shared if dtype in (None, shared.dtype) and device is dtypes.CPU else _moved(shared, dtype or shared.dtype, device)


def as_tensor(data, dtype=None, device=None):
    """A tensor over `data` where that needs no copy (a tensor, a NumPy array of the same dtype), else a new one."""
    wanted = None if dtype is None else as_dtype("as_tensor", dtype)
    if isinstance(data, Tensor):
        return TABLE["to"].call(data, dtype=wanted, device=device)
    place = resolve_device(device)
    if _is_array(data) and getattr(data, "ndim", 0) and data.flags.writeable:
        shared = tensor_of(data)
        return shared if wanted in (None, shared.dtype) and place is dtypes.CPU else _moved(shared, wanted or shared.dtype, place)
    return _build(data, wanted, place, "as_tensor")


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """A tensor from a tensor, an array, an object with the buffer protocol, or nested sequences; shares memory where it can unless `copy` is True.

    Raises ValueError when `copy` is False and a copy would be needed.
    """
    wanted = None if dtype is None else as_dtype("asarray", dtype)
    if isinstance(obj, (bytes, bytearray, memoryview)):
        made = frombuffer(obj, dtype=wanted or dtypes.get_default_dtype())
    elif isinstance(obj, Tensor) or _is_array(obj) and getattr(obj, "ndim", 0):
        made = as_tensor(obj, wanted, device)
        source = obj if isinstance(obj, Tensor) else tensor_of(obj)
        if copy is False and made.ptr != source.ptr:
            raise ValueError("can't alias tensor: the requested dtype or device needs a copy")
        copy = copy and made.ptr == source.ptr
    else:
        if copy is False:
            raise ValueError(f"can't alias arbitrary sequence into a tensor: {type(obj).__name__} holds no array memory")
        made, copy = _build(obj, wanted, resolve_device(device), "asarray"), None
    if copy:
        made = self_copy(made)
    return finish("asarray", made.detach() if requires_grad and made._tracked else made, requires_grad)


def from_numpy(ndarray):
    """A tensor over the memory of a NumPy array: a write to one is seen in the other."""
    if type(ndarray).__name__ not in ("ndarray", "memmap") and not (hasattr(ndarray, "flags") and hasattr(ndarray, "strides") and hasattr(ndarray, "base") and _is_ndarray(ndarray)):
        kind = type(ndarray)
        raise TypeError(f"expected np.ndarray (got {kind.__name__ if kind.__module__ == 'builtins' else f'{kind.__module__}.{kind.__name__}'})")
    if not ndarray.flags.writeable:
        import warnings

        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to this tensor will result in "
            "undefined behavior. You may want to copy the array to protect its data or make it writable before converting it to a tensor.",
            stacklevel=2,
        )
    return tensor_of(ndarray)


def _is_ndarray(value: Any) -> bool:
    import numpy

    return isinstance(value, numpy.ndarray)


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """A vector over the memory of an object with the buffer protocol: `count` elements (-1: all) from byte `offset`."""
    import numpy

    flat = numpy.frombuffer(buffer, numpy.uint8)
    size, item = flat.nbytes, dtype.itemsize
    if dtype.packed:
        return frombuffer(buffer, dtype=dtypes.uint8, count=count if count < 0 else bytes_for(count, dtype), offset=offset).view(dtype)[: count if count >= 0 else None]
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1")
    if count < 0:
        if (size - offset) % item:
            raise ValueError(f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({item})")
        count = (size - offset) // item
    if offset + count * item > size:
        raise ValueError(f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than actual buffer length ({size} bytes)")
    mem = wrap_storage(flat.__array_interface__["data"][0] + offset, count * item, flat)
    return finish("frombuffer", wrap(Spec.of(Layout.contiguous((count,)), dtype, dtypes.CPU), mem, mem.data), requires_grad)


def scalar_tensor(s, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A 0-d tensor of a number, in the default dtype unless one is given."""
    chosen, place = options("scalar_tensor", dtype, device, layout, pin_memory)
    return finish("scalar_tensor", full_of(spec_of((), chosen, place), s.item() if isinstance(s, Tensor) else s), requires_grad)


@operator("new_tensor", function=False)
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """`torch.tensor` with this tensor's dtype and device."""
    wanted = self.dtype if dtype is None else as_dtype("new_tensor", dtype)
    return finish("new_tensor", _build(data, wanted, resolve_device(self.device if device is None else device), "new_tensor"), requires_grad)


@operator("new", function=False)
def new(self, *args):
    """An undefined tensor of a shape, or one of data, with this tensor's dtype and device."""
    if len(args) == 1 and not isinstance(args[0], (int, tuple)):
        return new_tensor(self, args[0])
    return TABLE["new_empty"].call(self, *(args or (0,)))
