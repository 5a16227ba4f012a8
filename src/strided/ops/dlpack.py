"""DLPack: a tensor's memory lent to another array library without a copy, and borrowed from one. Loaded when it is first used.

Holds the structures of the standard, the capsules they travel in, and `from_dlpack`/`to_dlpack`. What runs when a capsule or a lent tensor dies is
compiled code (a few lines of IR): it may be called from any thread and at any moment, where Python code could not run.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .. import dtypes
from ..kernels import jit
from ..kernels.native import wrap_storage
from ..layout import Layout
from ..tensor import Spec, Tensor, wrap
from .table import TABLE

VERSION = (1, 1)
CPU_DEVICE = (1, 0)  # kDLCPU, the first
READ_ONLY, IS_COPIED = 1, 2  # flags of the versioned form

# (type code, bits) of one element, as the standard numbers them.
_CODES = {
    "bool": (6, 8), "uint8": (1, 8), "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64), "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64),
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64), "bfloat16": (4, 16), "complex32": (5, 32), "complex64": (5, 64), "complex128": (5, 128),
    "float8_e4m3fn": (10, 8), "float8_e4m3fnuz": (11, 8), "float8_e5m2": (12, 8), "float8_e5m2fnuz": (13, 8), "float8_e8m0fnu": (14, 8),
}  # fmt: skip
_NAMES = {code: name for name, code in _CODES.items()}


class _Array(ctypes.Structure):  # DLTensor, 48 bytes
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Plain(ctypes.Structure):  # DLManagedTensor
    _fields_ = [("array", _Array), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):  # DLManagedTensorVersioned
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("array", _Array),
    ]  # fmt: skip


# Capsule name → the structure in it. A consumer takes a capsule over by renaming it; what we took over hangs in a capsule of our own name.
_FORMS: dict[bytes, Any] = {b"dltensor": _Plain, b"dltensor_versioned": _Versioned}
_TAKEN = {b"dltensor": b"strided_dltensor", b"dltensor_versioned": b"strided_dltensor_versioned"}


def _ir() -> str:
    """`drop`: a capsule's destructor, which calls the deleter of what is still in it. `free_plain`, `free_versioned`: the deleters of what we lend."""
    names, tests = [], []
    for k, (name, form) in enumerate([*_FORMS.items(), *((_TAKEN[name], form) for name, form in _FORMS.items())]):
        names.append(f'@n{k} = internal constant [{len(name) + 1} x i8] c"{name.decode()}\\00"')
        tests.append(f"""
  %v{k} = call i32 @PyCapsule_IsValid(ptr %capsule, ptr @n{k})
  %is{k} = icmp ne i32 %v{k}, 0
  br i1 %is{k}, label %take{k}, label %next{k}
take{k}:
  %m{k} = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr @n{k})
  %at{k} = getelementptr i8, ptr %m{k}, i64 {form.deleter.offset}
  %f{k} = load ptr, ptr %at{k}
  %none{k} = icmp eq ptr %f{k}, null
  br i1 %none{k}, label %end, label %call{k}
call{k}:
  call void %f{k}(ptr %m{k})
  br label %end
next{k}:""")
    frees = [
        f"""
define void @{symbol}(ptr %managed) {{
  %up = call i32 @Py_IsInitialized()
  %gone = icmp eq i32 %up, 0
  br i1 %gone, label %end, label %free
free:
  %state = call i32 @PyGILState_Ensure()
  %at = getelementptr i8, ptr %managed, i64 {form.context.offset}
  %context = load ptr, ptr %at
  call void @Py_DecRef(ptr %context)
  call void @PyGILState_Release(i32 %state)
  br label %end
end:
  ret void
}}"""
        for symbol, form in (("free_plain", _Plain), ("free_versioned", _Versioned))
    ]
    return "\n".join(
        [
            "declare i32 @PyCapsule_IsValid(ptr, ptr)", "declare ptr @PyCapsule_GetPointer(ptr, ptr)", "declare i32 @Py_IsInitialized()",
            "declare i32 @PyGILState_Ensure()", "declare void @PyGILState_Release(i32)", "declare void @Py_DecRef(ptr)",
            *names, "define void @drop(ptr %capsule) {", *tests, "  br label %end\nend:\n  ret void\n}", *frees,
        ]
    )  # fmt: skip


_drop, _free_plain, _free_versioned = jit.compile_module(("dlpack", 1), _ir, ("drop", "free_plain", "free_versioned"))
jit.make_immortal()  # lent memory may come back while the interpreter is being torn down

_python = ctypes.PyDLL(None)
_python.PyCapsule_New.restype, _python.PyCapsule_New.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_python.PyCapsule_GetPointer.restype, _python.PyCapsule_GetPointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_IsValid.restype, _python.PyCapsule_IsValid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_SetName.restype, _python.PyCapsule_SetName.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_python.Py_IncRef.restype, _python.Py_IncRef.argtypes = None, [ctypes.py_object]
# Capsules keep the address of their name, not a copy.
_NAME_MEMORY = {name: ctypes.c_char_p(name) for name in (*_FORMS, *_TAKEN.values(), b"used_dltensor", b"used_dltensor_versioned")}


# ---- lending ---------------------------------------------------------------------------------


def export(t: Tensor, max_version: tuple[int, int] | None = None, copied: bool = False) -> Any:
    """A capsule that lends the memory of `t`, which lives until the borrower is done. Raises BufferError for a tensor without memory or DLPack type."""
    spec = t.spec
    if spec.is_meta:
        raise BufferError("Can't export tensors on the meta device: they have no data")
    code = _CODES.get(spec.dtype.name)
    if code is None:
        raise BufferError(f"{spec.dtype} is not supported by dlpack")
    versioned = max_version is not None and max_version[0] >= 1
    managed = _Versioned() if versioned else _Plain()
    if versioned:
        managed.major, managed.minor = VERSION
        managed.flags = IS_COPIED if copied else 0
    array = managed.array
    sizes = (ctypes.c_int64 * max(spec.ndim, 1))(*spec.shape)
    strides = (ctypes.c_int64 * max(spec.ndim, 1))(*spec.strides)
    array.data, array.device_type, array.device_id = t.ptr if spec.numel else None, *CPU_DEVICE
    array.ndim, (array.code, array.bits), array.lanes = spec.ndim, code, 1
    array.shape, array.strides = ctypes.addressof(sizes), ctypes.addressof(strides)
    managed.deleter = _free_versioned if versioned else _free_plain
    managed.context = id(managed)
    managed.lent = t.mem, sizes, strides  # a structure keeps what hangs on it
    name = b"dltensor_versioned" if versioned else b"dltensor"
    _python.Py_IncRef(managed)
    return _python.PyCapsule_New(ctypes.addressof(managed), _NAME_MEMORY[name], _drop)


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule (the unversioned form) over the tensor's memory. Raises BufferError for one that requires grad."""
    return tensor.__dlpack__()


# ---- borrowing -------------------------------------------------------------------------------


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of an object with `__dlpack__`, or of a DLPack capsule; writes are seen on both sides.

    copy: True always copies, False never. Raises ValueError for arrays of another device, BufferError where the other side refuses.
    """
    if device is not None and dtypes.Device(device).type not in ("cpu", "meta"):
        dtypes.resolve_device(device)
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
        return _import(ext_tensor)
    place = tuple(int(part) for part in ext_tensor.__dlpack_device__())
    wanted: dict[str, Any] = {"max_version": VERSION}
    if place[0] != CPU_DEVICE[0]:
        if copy is False:
            raise ValueError(f"cannot move DLPack tensor from device {place} to {CPU_DEVICE} without copying. Set copy=None or copy=True.")
        wanted["dl_device"] = CPU_DEVICE
    if copy is not None:
        wanted["copy"] = copy
    handled = "copy" in wanted
    for dropped in (None, "max_version", "copy", "dl_device"):  # producers of older versions of the standard know fewer arguments
        if dropped is not None:
            wanted.pop(dropped, None)
            handled = handled and dropped != "copy"
        try:
            capsule = ext_tensor.__dlpack__(**wanted)
            break
        except TypeError:
            if not wanted:
                raise
    made = _import(capsule)
    if copy and not handled:
        made = TABLE["clone"].call(made)
    return made if device is None or made.device == dtypes.Device(device) else made.to(device)


def _import(capsule: Any) -> Tensor:
    """A tensor over what is in a capsule, which it takes over. A capsule can be taken once."""
    name = next((name for name in _FORMS if type(capsule).__name__ == "PyCapsule" and _python.PyCapsule_IsValid(capsule, name)), None)
    if name is None:
        raise RuntimeError(
            f"from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might have already constructed a tensor from it once. (got {str(capsule)[:100]})"
        )
    address = _python.PyCapsule_GetPointer(capsule, name)
    form = _FORMS[name]
    managed = form.from_address(address)
    if form is _Versioned and managed.major > VERSION[0]:
        raise BufferError(f"from_dlpack: the capsule is of DLPack {managed.major}.{managed.minor}, and {VERSION[0]}.{VERSION[1]} is known here")
    spec, start = _read(managed.array)
    _python.PyCapsule_SetName(capsule, _NAME_MEMORY[b"used_" + name])
    owner = _python.PyCapsule_New(address, _NAME_MEMORY[_TAKEN[name]], _drop)
    memory = wrap_storage(start, spec.layout.span * spec.itemsize, owner)
    if form is _Versioned and managed.flags & READ_ONLY:
        import warnings

        warnings.warn(
            "The given array is not writable, and tensors here are: writing to this tensor changes memory that its owner relies on. Copy it with copy=True to protect it.",
            stacklevel=5,
        )
    return wrap(spec, memory, start)


def _read(array: Any) -> tuple[Spec, int]:
    """A DLTensor's spec and the address of its first element."""
    if array.device_type != CPU_DEVICE[0]:
        raise BufferError(f"from_dlpack: the array is on a device of DLPack type {array.device_type}: move it to the CPU first")
    name = _NAMES.get((array.code, array.bits))
    if name is None or array.lanes != 1:
        raise BufferError(f"from_dlpack: no tensor dtype for DLPack's type code {array.code} of {array.bits} bits with {array.lanes} lanes")
    ndim, dtype = array.ndim, dtypes.names()[name]
    shape = tuple((ctypes.c_int64 * ndim).from_address(array.shape)) if ndim else ()
    strides = tuple((ctypes.c_int64 * ndim).from_address(array.strides)) if ndim and array.strides else None
    if strides is None or 0 in shape:
        layout = Layout.contiguous(shape)
    elif any(step < 0 for step, size in zip(strides, shape) if size > 1):
        raise BufferError("At least one stride of the given array is negative, and tensors with negative strides are not currently supported: copy it first")
    else:
        layout = Layout.of(shape, [step if size > 1 else max(step, 0) for step, size in zip(strides, shape)])
    return Spec.of(layout, dtype, dtypes.CPU), (array.data or 0) + array.byte_offset
