"""The native runtime as IR text, put together: its globals, the functions Python calls, scalar reads; allocator, launcher, pool,
objects and recording are the files beside it.

Everything here runs with the GIL held except kernels themselves and the pool's workers; the allocator relies on that instead of a lock.
Object layout of a Storage (after the 16-byte object header): 16 data, 24 nbytes, 32 version, 40 owner, 48 capacity (0: nothing of ours to free),
56 the next one that waits to be freed.
"""
from __future__ import annotations

from ..dtypes import CODES
from .formats import ENCODINGS, conversion_functions
from .runtime_calls import LAUNCHER
from .runtime_capture import CAPTURE
from .runtime_memory import ALLOCATOR
from .runtime_objects import objects_ir
from .runtime_pool import pool_ir
from .runtime_record import record_ir
from .runtime_watch import watch_ir

MAX_SLOTS = 64

_TEXTS = {
    "s_memory": "DefaultCPUAllocator: can't allocate memory: you tried to allocate %lld bytes.\n  in use: %lld bytes, limit: %lld bytes (set_memory_limit changes it); nothing was changed.",
    "s_slots": "this kernel takes %lld operands, but %lld were given",
    "s_starved": "DefaultCPUAllocator: can't allocate memory: the system has none left for a kernel's scratch. The result was not computed.",
    "s_args": "this function takes %lld arguments",
    "s_meta": "Expected all tensors to be on the same device, but found at least two devices, cpu and meta!",
    "s_packed": "elements stored several a byte cannot be computed with in place: convert them first, as in x.to(torch.float32)",
    "s_nodata": "Cannot access data pointer of Tensor that doesn't have storage: a meta tensor has a shape and no data",
}


def _texts() -> str:
    lines = []
    for name, text in _TEXTS.items():
        data = text.encode() + b"\0"
        lines.append(f'@{name} = internal constant [{len(data)} x i8] c"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data) + '"')
    return "\n".join(lines)


# State set once by `strided_init`: addresses of Python's types and exceptions, the page policy.
_GLOBALS = r"""
@g_float_type = internal global ptr null
@g_storage_type = internal global ptr null
@g_runtime_error = internal global ptr null
@g_type_error = internal global ptr null
@g_packed_error = internal global ptr null
@g_huge = internal global i64 0          ; MADV_HUGEPAGE's number where the system has it, else 0

@g_free = internal global [512 x ptr] zeroinitializer   ; a list of free blocks a size class
@g_slab = internal global ptr null                      ; small blocks are cut from slabs
@g_slab_left = internal global i64 0
@g_allocated = internal global i64 0                    ; bytes asked for and alive
@g_peak = internal global i64 0
@g_reserved = internal global i64 0                     ; bytes taken from the system
@g_cached_large = internal global i64 0                 ; of these: free blocks that can go back
@g_allocations = internal global i64 0
@g_limit = internal global i64 9223372036854775807
@g_starved = internal global i64 0                      ; parts of kernels that found no memory for their scratch

declare ptr @PyBytes_AsString(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyFloat_FromDouble(double)
declare ptr @PyComplex_FromDoubles(double, double)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_SetString(ptr, ptr)
declare i64 @PyType_GetFlags(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @_PyObject_New(ptr)
declare void @PyObject_Free(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare i32 @PyBuffer_FillInfo(ptr, ptr, ptr, i64, i32, i32)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare ptr @malloc(i64)
declare i32 @madvise(ptr, i64, i32)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()

define ptr @strided_init(ptr %float_type, ptr %storage_type, ptr %runtime_error, ptr %type_error, ptr %packed_error, i64 %huge) {
  store ptr %float_type, ptr @g_float_type
  store ptr %storage_type, ptr @g_storage_type
  store ptr %runtime_error, ptr @g_runtime_error
  store ptr %type_error, ptr @g_type_error
  store ptr %packed_error, ptr @g_packed_error
  store i64 %huge, ptr @g_huge
  call i32 @pthread_mutex_init(ptr @p_mutex, ptr null)
  call i32 @pthread_cond_init(ptr @p_cond, ptr null)
  ret ptr null
}
"""

_BUILTINS = r"""
define internal ptr @arg_error(i64 %want) noinline {
  %e = load ptr, ptr @g_type_error
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %e, ptr @s_args, i64 %want)
  ret ptr null
}

define ptr @strided_py_new_storage(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [4 x i64]
  %right = icmp eq i64 %n, 1
  br i1 %right, label %go, label %bad
go:
  %ok = call i1 @fill_slots(ptr %args, i64 1, ptr %slots)
  br i1 %ok, label %make, label %fail
make:
  %b = load i64, ptr %slots
  %s = call ptr @strided_storage_new(i64 %b)
  %made = icmp ne ptr %s, null
  %cb = load ptr, ptr @g_capture
  %watched = icmp ne ptr %cb, null
  %both = and i1 %made, %watched
  br i1 %both, label %tell, label %give
tell:
  %none = load ptr, ptr @g_none
  %told = call i1 @captured(i64 2, ptr %none, ptr %slots, i64 1, ptr %s)
  br i1 %told, label %give, label %drop
drop:
  call void @Py_DecRef(ptr %s)
  br label %fail
give:
  ret ptr %s
bad:
  %e = call ptr @arg_error(i64 1)
  ret ptr null
fail:
  ret ptr null
}

; wrap_storage(address, nbytes, owner)
define ptr @strided_py_wrap_storage(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [4 x i64]
  %right = icmp eq i64 %n, 3
  br i1 %right, label %go, label %bad
go:
  %ok = call i1 @fill_slots(ptr %args, i64 2, ptr %slots)
  br i1 %ok, label %make, label %fail
make:
  %s = call ptr @strided_storage_new(i64 0)
  %oks = icmp ne ptr %s, null
  br i1 %oks, label %set, label %fail
set:
  %data = load ptr, ptr %slots
  %np = getelementptr i64, ptr %slots, i64 1
  %bytes = load i64, ptr %np
  %op = getelementptr ptr, ptr %args, i64 2
  %owner = load ptr, ptr %op
  call void @Py_IncRef(ptr %owner)
  %f0 = getelementptr i8, ptr %s, i64 16
  store ptr %data, ptr %f0
  %f1 = getelementptr i8, ptr %s, i64 24
  store i64 %bytes, ptr %f1
  %f3 = getelementptr i8, ptr %s, i64 40
  store ptr %owner, ptr %f3
  ret ptr %s
bad:
  %e = call ptr @arg_error(i64 3)
  ret ptr null
fail:
  ret ptr null
}

define internal ptr @none() {
  %none = load ptr, ptr @g_none
  call void @Py_IncRef(ptr %none)
  ret ptr %none
}

define ptr @strided_py_empty_cache(ptr %self, ptr %args, i64 %n) {
  call void @strided_empty_cache()
  %r = call ptr @none()
  ret ptr %r
}

define ptr @strided_py_reset_peak(ptr %self, ptr %args, i64 %n) {
  %a = load i64, ptr @g_allocated
  store i64 %a, ptr @g_peak
  %r = call ptr @none()
  ret ptr %r
}

define ptr @strided_py_set_limit(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [4 x i64]
  %right = icmp eq i64 %n, 1
  br i1 %right, label %go, label %bad
go:
  %ok = call i1 @fill_slots(ptr %args, i64 1, ptr %slots)
  br i1 %ok, label %set, label %fail
set:
  %v = load i64, ptr %slots
  store i64 %v, ptr @g_limit
  %r = call ptr @none()
  ret ptr %r
bad:
  %e = call ptr @arg_error(i64 1)
  ret ptr null
fail:
  ret ptr null
}

; (allocated, peak, reserved, cached, allocations, limit)
define ptr @strided_py_stats(ptr %self, ptr %args, i64 %n) {
  %t = call ptr @PyTuple_New(i64 6)
  %ok = icmp ne ptr %t, null
  br i1 %ok, label %fill, label %fail
fill:
  %v0 = load i64, ptr @g_allocated
  %o0 = call ptr @PyLong_FromLongLong(i64 %v0)
  call i32 @PyTuple_SetItem(ptr %t, i64 0, ptr %o0)
  %v1 = load i64, ptr @g_peak
  %o1 = call ptr @PyLong_FromLongLong(i64 %v1)
  call i32 @PyTuple_SetItem(ptr %t, i64 1, ptr %o1)
  %v2 = load i64, ptr @g_reserved
  %o2 = call ptr @PyLong_FromLongLong(i64 %v2)
  call i32 @PyTuple_SetItem(ptr %t, i64 2, ptr %o2)
  %v3 = load i64, ptr @g_cached_large
  %o3 = call ptr @PyLong_FromLongLong(i64 %v3)
  call i32 @PyTuple_SetItem(ptr %t, i64 3, ptr %o3)
  %v4 = load i64, ptr @g_allocations
  %o4 = call ptr @PyLong_FromLongLong(i64 %v4)
  call i32 @PyTuple_SetItem(ptr %t, i64 4, ptr %o4)
  %v5 = load i64, ptr @g_limit
  %o5 = call ptr @PyLong_FromLongLong(i64 %v5)
  call i32 @PyTuple_SetItem(ptr %t, i64 5, ptr %o5)
  ret ptr %t
fail:
  ret ptr null
}

; fill_bytes(address, byte, count), move_bytes(to, from, count)
define ptr @strided_py_fill_bytes(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [4 x i64]
  %right = icmp eq i64 %n, 3
  br i1 %right, label %go, label %bad
go:
  %ok = call i1 @fill_slots(ptr %args, i64 3, ptr %slots)
  br i1 %ok, label %watch, label %fail
watch:
  %told = call i1 @capture_plain(i64 3, ptr %slots, i64 3)
  br i1 %told, label %set, label %fail
set:
  %p = load ptr, ptr %slots
  %vp = getelementptr i64, ptr %slots, i64 1
  %v = load i8, ptr %vp
  %cp = getelementptr i64, ptr %slots, i64 2
  %c = load i64, ptr %cp
  call void @llvm.memset.p0.i64(ptr %p, i8 %v, i64 %c, i1 false)
  %r = call ptr @none()
  ret ptr %r
bad:
  %e = call ptr @arg_error(i64 3)
  ret ptr null
fail:
  ret ptr null
}

define ptr @strided_py_move_bytes(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [4 x i64]
  %right = icmp eq i64 %n, 3
  br i1 %right, label %go, label %bad
go:
  %ok = call i1 @fill_slots(ptr %args, i64 3, ptr %slots)
  br i1 %ok, label %watch, label %fail
watch:
  %told = call i1 @capture_plain(i64 4, ptr %slots, i64 3)
  br i1 %told, label %set, label %fail
set:
  %p = load ptr, ptr %slots
  %vp = getelementptr i64, ptr %slots, i64 1
  %q = load ptr, ptr %vp
  %cp = getelementptr i64, ptr %slots, i64 2
  %c = load i64, ptr %cp
  call void @llvm.memmove.p0.p0.i64(ptr %p, ptr %q, i64 %c, i1 false)
  %r = call ptr @none()
  ret ptr %r
bad:
  %e = call ptr @arg_error(i64 3)
  ret ptr null
fail:
  ret ptr null
}
"""


def _half_to_double() -> str:
    """float16 bits -> double as integer code: the conversion instruction is not everywhere."""
    return r"""
define internal double @half_value(i16 %h) {
  %w = zext i16 %h to i32
  %sign = and i32 %w, 32768
  %mag = and i32 %w, 32767
  %shifted = shl i32 %mag, 13
  %f = bitcast i32 %shifted to float          ; exponent still biased by 15: scale by 2^112
  %scaled = fmul float %f, 0x46F0000000000000
  %special = icmp uge i32 %mag, 31744
  %bits = bitcast float %scaled to i32
  %ones = or i32 %shifted, 2139095040
  %chosen = select i1 %special, i32 %ones, i32 %bits
  %s = shl i32 %sign, 16
  %all = or i32 %chosen, %s
  %r = bitcast i32 %all to float
  %d = fpext float %r to double
  ret double %d
}
"""


_SMALL_FLOATS = [name for name in CODES if name in ENCODINGS]  # the last of the codes

# code -> (IR type, how its Python object is made); the codes are `DType.code`
_SCALARS = [
    ("i8", "bool"), ("i8", "u"), ("i8", "s"), ("i16", "s"), ("i32", "s"), ("i64", "s"), ("i16", "half"), ("i16", "bfloat"), ("float", "f"), ("double", "d"),
    ("i16", "u"), ("i32", "u"), ("i64", "u64"), ("i16", "complex"), ("float", "complex"), ("double", "complex"),
    *(("i8", name) for name in _SMALL_FLOATS),
]


def _scalar_reader() -> str:
    cases, blocks = [], []
    for code, (type, kind) in enumerate(_SCALARS):
        cases.append(f"    i64 {code}, label %c{code}")
        lines = [f"c{code}:", f"  %v{code} = load {type}, ptr %p, align 1"]
        if kind == "bool":
            lines += [f"  %b{code} = icmp ne i8 %v{code}, 0", f"  %w{code} = zext i1 %b{code} to i64", f"  %o{code} = call ptr @PyBool_FromLong(i64 %w{code})"]
        elif kind in "us":
            word = f"%v{code}"
            if type != "i64":
                lines.append(f"  %w{code} = {'zext' if kind == 'u' else 'sext'} {type} %v{code} to i64")
                word = f"%w{code}"
            lines.append(f"  %o{code} = call ptr @PyLong_FromLongLong(i64 {word})")
        elif kind == "u64":
            lines.append(f"  %o{code} = call ptr @PyLong_FromUnsignedLongLong(i64 %v{code})")
        elif kind == "complex":  # two numbers of the type, one behind the other
            widen = {"i16": "call double @half_value(i16 {})", "float": "fpext float {} to double", "double": "fadd double {}, -0.0"}[type]
            lines += [f"  %p{code} = getelementptr {type}, ptr %p, i64 1", f"  %i{code} = load {type}, ptr %p{code}, align 1"]
            lines += [f"  %x{code} = {widen.format(f'%v{code}')}", f"  %y{code} = {widen.format(f'%i{code}')}"]
            lines.append(f"  %o{code} = call ptr @PyComplex_FromDoubles(double %x{code}, double %y{code})")
        else:
            if kind == "half":
                lines.append(f"  %d{code} = call double @half_value(i16 %v{code})")
            elif kind == "bfloat":
                lines += [f"  %w{code} = zext i16 %v{code} to i32", f"  %s{code} = shl i32 %w{code}, 16", f"  %f{code} = bitcast i32 %s{code} to float", f"  %d{code} = fpext float %f{code} to double"]
            elif kind in ENCODINGS:
                lines += [f"  %f{code} = call float @decode_{kind}(i8 %v{code})", f"  %d{code} = fpext float %f{code} to double"]
            elif kind == "f":
                lines.append(f"  %d{code} = fpext float %v{code} to double")
            else:
                lines.append(f"  %d{code} = fadd double %v{code}, -0.0")
            lines.append(f"  %o{code} = call ptr @PyFloat_FromDouble(double %d{code})")
        lines.append(f"  ret ptr %o{code}")
        blocks += lines
    return conversion_functions(tuple(f"decode_{name}" for name in _SMALL_FLOATS)) + "\n" + "\n".join(
        ["define internal ptr @read(i64 %code, ptr %p) {", "  switch i64 %code, label %bad [", *cases, "  ]", *blocks, "bad:", "  %e = call ptr @arg_error(i64 0)", "  ret ptr null", "}"]
    ) + r"""

; read_scalar(code, address)
define ptr @strided_py_read_scalar(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [4 x i64]
  %right = icmp eq i64 %n, 2
  br i1 %right, label %go, label %bad
go:
  %ok = call i1 @fill_slots(ptr %args, i64 2, ptr %slots)
  br i1 %ok, label %watch, label %fail
watch:
  %told = call i1 @capture_plain(i64 5, ptr %slots, i64 2)
  br i1 %told, label %get, label %fail
get:
  %code = load i64, ptr %slots
  %pp = getelementptr i64, ptr %slots, i64 1
  %p = load ptr, ptr %pp
  %r = call ptr @read(i64 %code, ptr %p)
  ret ptr %r
bad:
  %e = call ptr @arg_error(i64 2)
  ret ptr null
fail:
  ret ptr null
}

; read_list(code, address, count, byte_stride)
define ptr @strided_py_read_list(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [4 x i64]
  %right = icmp eq i64 %n, 4
  br i1 %right, label %go, label %bad
go:
  %ok = call i1 @fill_slots(ptr %args, i64 4, ptr %slots)
  br i1 %ok, label %watch, label %fail
watch:
  %told = call i1 @capture_plain(i64 5, ptr %slots, i64 4)
  br i1 %told, label %get, label %fail
get:
  %code = load i64, ptr %slots
  %pp = getelementptr i64, ptr %slots, i64 1
  %p = load ptr, ptr %pp
  %cp = getelementptr i64, ptr %slots, i64 2
  %count = load i64, ptr %cp
  %sp = getelementptr i64, ptr %slots, i64 3
  %stride = load i64, ptr %sp
  %list = call ptr @PyList_New(i64 %count)
  %okl = icmp ne ptr %list, null
  br i1 %okl, label %loop, label %fail
loop:
  %i = phi i64 [0, %get], [%i2, %set]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %one, label %done
one:
  %off = mul i64 %i, %stride
  %q = getelementptr i8, ptr %p, i64 %off
  %o = call ptr @read(i64 %code, ptr %q)
  %oko = icmp ne ptr %o, null
  br i1 %oko, label %set, label %drop
set:
  call i32 @PyList_SetItem(ptr %list, i64 %i, ptr %o)
  %i2 = add i64 %i, 1
  br label %loop
done:
  ret ptr %list
drop:
  call void @Py_DecRef(ptr %list)
  br label %fail
bad:
  %e = call ptr @arg_error(i64 4)
  ret ptr null
fail:
  ret ptr null
}
"""


def runtime_ir(arch: str) -> str:
    """The whole runtime for an architecture (only the spin-wait instruction differs)."""
    pause, declaration = {
        "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
        "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
    }.get(arch, ("call i32 @sched_yield()", ""))
    return _texts() + _GLOBALS + ALLOCATOR + LAUNCHER + CAPTURE + declaration + pool_ir(pause) + _BUILTINS + _half_to_double() + _scalar_reader() + objects_ir() + record_ir() + watch_ir()
