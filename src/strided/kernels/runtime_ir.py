"""The native runtime as IR text: the caching allocator, the Storage type's functions, the launcher, the thread pool, scalar reads.

Everything here runs with the GIL held except kernels themselves and the pool's workers; the allocator relies on that instead of a lock.
Object layout of a Storage (after the 16-byte object header): 16 data, 24 nbytes, 32 version, 40 owner, 48 capacity (0: nothing of ours to free),
56 the next one that waits to be freed.
"""
from __future__ import annotations

MAX_SLOTS = 64

_TEXTS = {
    "s_memory": "DefaultCPUAllocator: can't allocate memory: you tried to allocate %lld bytes.\n  in use: %lld bytes, limit: %lld bytes (set_memory_limit changes it); nothing was changed.",
    "s_slots": "this kernel takes %lld operands, but %lld were given",
    "s_args": "this function takes %lld arguments",
    "s_meta": "Expected all tensors to be on the same device, but found at least two devices, cpu and meta!",
    "s_wide": "value cannot be converted to type int64_t without overflow",
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

declare ptr @PyBytes_AsString(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare ptr @PyBool_FromLong(i64)
declare ptr @PyFloat_FromDouble(double)
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

define ptr @strided_init(ptr %float_type, ptr %storage_type, ptr %runtime_error, ptr %type_error, i64 %huge) {
  store ptr %float_type, ptr @g_float_type
  store ptr %storage_type, ptr @g_storage_type
  store ptr %runtime_error, ptr @g_runtime_error
  store ptr %type_error, ptr @g_type_error
  store i64 %huge, ptr @g_huge
  call i32 @pthread_mutex_init(ptr @p_mutex, ptr null)
  call i32 @pthread_cond_init(ptr @p_cond, ptr null)
  ret ptr null
}
"""

_ALLOCATOR = r"""
; bytes -> (class, capacity): multiples of 64 up to 1 KiB, then eight steps a doubling
define internal {i64, i64} @size_class(i64 %n) alwaysinline {
  %tiny = icmp ule i64 %n, 1024
  br i1 %tiny, label %small, label %large
small:
  %n63 = add i64 %n, 63
  %c = lshr i64 %n63, 6
  %cap = shl i64 %c, 6
  %r0 = insertvalue {i64, i64} undef, i64 %c, 0
  %r1 = insertvalue {i64, i64} %r0, i64 %cap, 1
  ret {i64, i64} %r1
large:
  %n1 = sub i64 %n, 1
  %lz = call i64 @llvm.ctlz.i64(i64 %n1, i1 true)
  %k = sub i64 63, %lz
  %base = shl i64 1, %k
  %k3 = sub i64 %k, 3
  %over = sub i64 %n1, %base
  %q = lshr i64 %over, %k3
  %q1 = add i64 %q, 1
  %more = shl i64 %q1, %k3
  %lcap = add i64 %base, %more
  %k10 = sub i64 %k, 10
  %k8 = shl i64 %k10, 3
  %c1 = add i64 %k8, %q1
  %lc = add i64 %c1, 16
  %s0 = insertvalue {i64, i64} undef, i64 %lc, 0
  %s1 = insertvalue {i64, i64} %s0, i64 %lcap, 1
  ret {i64, i64} %s1
}

; gives every free block that is not part of a slab back to the system
define void @strided_empty_cache() {
entry:
  br label %class
class:
  %c = phi i64 [64, %entry], [%c2, %next]   ; classes below 64 (capacity < 64 KiB) live in slabs
  %head = getelementptr [512 x ptr], ptr @g_free, i64 0, i64 %c
  br label %block
block:
  %b = load ptr, ptr %head
  %none = icmp eq ptr %b, null
  br i1 %none, label %next, label %give
give:
  %after = load ptr, ptr %b
  %capp = getelementptr i64, ptr %b, i64 1
  %cap = load i64, ptr %capp
  store ptr %after, ptr %head
  call void @free(ptr %b)
  %r = load i64, ptr @g_reserved
  %r2 = sub i64 %r, %cap
  store i64 %r2, ptr @g_reserved
  %l = load i64, ptr @g_cached_large
  %l2 = sub i64 %l, %cap
  store i64 %l2, ptr @g_cached_large
  br label %block
next:
  %c2 = add i64 %c, 1
  %end = icmp eq i64 %c2, 512
  br i1 %end, label %done, label %class
done:
  ret void
}

define internal ptr @system_block(i64 %cap) {
  %out = alloca ptr
  store ptr null, ptr %out
  %big = icmp uge i64 %cap, 4194304
  %align = select i1 %big, i64 2097152, i64 64
  %rc = call i32 @posix_memalign(ptr %out, i64 %align, i64 %cap)
  %bad = icmp ne i32 %rc, 0
  br i1 %bad, label %fail, label %ok
fail:
  ret ptr null
ok:
  %p = load ptr, ptr %out
  %huge = load i64, ptr @g_huge
  %has = icmp ne i64 %huge, 0
  %advise = and i1 %big, %has
  br i1 %advise, label %adv, label %done
adv:
  %h32 = trunc i64 %huge to i32
  call i32 @madvise(ptr %p, i64 %cap, i32 %h32)
  br label %done
done:
  %r = load i64, ptr @g_reserved
  %r2 = add i64 %r, %cap
  store i64 %r2, ptr @g_reserved
  ret ptr %p
}

; a block of at least n bytes (n > 0), null where none can be had
define internal ptr @take(i64 %n, ptr %cap_out) {
entry:
  %sc = call {i64, i64} @size_class(i64 %n)
  %c = extractvalue {i64, i64} %sc, 0
  %cap = extractvalue {i64, i64} %sc, 1
  store i64 %cap, ptr %cap_out
  %a = load i64, ptr @g_allocated
  %a2 = add i64 %a, %n
  %limit = load i64, ptr @g_limit
  %over = icmp ugt i64 %a2, %limit
  %absurd = icmp ugt i64 %n, 70368744177664
  %no = or i1 %over, %absurd
  br i1 %no, label %refuse, label %look
look:
  %head = getelementptr [512 x ptr], ptr @g_free, i64 0, i64 %c
  %b = load ptr, ptr %head
  %hit = icmp ne ptr %b, null
  br i1 %hit, label %reuse, label %miss
reuse:
  %after = load ptr, ptr %b
  store ptr %after, ptr %head
  %was_large = icmp uge i64 %c, 64
  br i1 %was_large, label %uncache, label %count
uncache:
  %l = load i64, ptr @g_cached_large
  %l2 = sub i64 %l, %cap
  store i64 %l2, ptr @g_cached_large
  br label %count
miss:
  %large = icmp uge i64 %c, 64
  br i1 %large, label %fresh, label %slab
fresh:
  ; freed blocks of other sizes are kept only up to what is in use or 1 GiB: sizes that never come back must not pile up
  %cl = load i64, ptr @g_cached_large
  %floor = icmp ugt i64 %a, 1073741824
  %keep = select i1 %floor, i64 %a, i64 1073741824
  %hoard = icmp ugt i64 %cl, %keep
  %res = load i64, ptr @g_reserved
  %res2 = add i64 %res, %cap
  %tight = icmp ugt i64 %res2, %limit
  %sweep = or i1 %hoard, %tight
  br i1 %sweep, label %clean, label %ask
clean:
  call void @strided_empty_cache()
  br label %ask
ask:
  %p = call ptr @system_block(i64 %cap)
  %got = icmp ne ptr %p, null
  br i1 %got, label %count_p, label %retry
retry:
  call void @strided_empty_cache()
  %p2 = call ptr @system_block(i64 %cap)
  %got2 = icmp ne ptr %p2, null
  br i1 %got2, label %count_p2, label %refuse
count_p:
  br label %count
count_p2:
  br label %count
slab:
  %left = load i64, ptr @g_slab_left
  %fits = icmp uge i64 %left, %cap
  br i1 %fits, label %cut, label %newslab
newslab:
  %s = call ptr @system_block(i64 1048576)
  %sok = icmp ne ptr %s, null
  br i1 %sok, label %opened, label %refuse
opened:
  store ptr %s, ptr @g_slab
  store i64 1048576, ptr @g_slab_left
  br label %cut
cut:
  %sp = load ptr, ptr @g_slab
  %sl = load i64, ptr @g_slab_left
  %sp2 = getelementptr i8, ptr %sp, i64 %cap
  %sl2 = sub i64 %sl, %cap
  store ptr %sp2, ptr @g_slab
  store i64 %sl2, ptr @g_slab_left
  br label %count
count:
  %block = phi ptr [%b, %reuse], [%b, %uncache], [%p, %count_p], [%p2, %count_p2], [%sp, %cut]
  store i64 %a2, ptr @g_allocated
  %peak = load i64, ptr @g_peak
  %higher = icmp ugt i64 %a2, %peak
  %peak2 = select i1 %higher, i64 %a2, i64 %peak
  store i64 %peak2, ptr @g_peak
  %na = load i64, ptr @g_allocations
  %na2 = add i64 %na, 1
  store i64 %na2, ptr @g_allocations
  ret ptr %block
refuse:
  ret ptr null
}

define internal void @give_back(ptr %block, i64 %n, i64 %cap) {
  %sc = call {i64, i64} @size_class(i64 %cap)
  %c = extractvalue {i64, i64} %sc, 0
  %head = getelementptr [512 x ptr], ptr @g_free, i64 0, i64 %c
  %first = load ptr, ptr %head
  store ptr %first, ptr %block
  %capp = getelementptr i64, ptr %block, i64 1
  store i64 %cap, ptr %capp
  store ptr %block, ptr %head
  %a = load i64, ptr @g_allocated
  %a2 = sub i64 %a, %n
  store i64 %a2, ptr @g_allocated
  %large = icmp uge i64 %c, 64
  br i1 %large, label %count, label %done
count:
  %l = load i64, ptr @g_cached_large
  %l2 = add i64 %l, %cap
  store i64 %l2, ptr @g_cached_large
  br label %done
done:
  ret void
}

; a Storage of n fresh bytes, or null with the Python error set
define ptr @strided_storage_new(i64 %n) {
  %capp = alloca i64
  store i64 0, ptr %capp
  %empty = icmp sle i64 %n, 0
  br i1 %empty, label %make, label %alloc
alloc:
  %p = call ptr @take(i64 %n, ptr %capp)
  %bad = icmp eq ptr %p, null
  br i1 %bad, label %fail, label %make
fail:
  %e = load ptr, ptr @g_runtime_error
  %used = load i64, ptr @g_allocated
  %limit = load i64, ptr @g_limit
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %e, ptr @s_memory, i64 %n, i64 %used, i64 %limit)
  ret ptr null
make:
  %data = phi ptr [null, %0], [%p, %alloc]
  %type = load ptr, ptr @g_storage_type
  %s = call ptr @_PyObject_New(ptr %type)
  %oom = icmp eq ptr %s, null
  br i1 %oom, label %out, label %fill
fill:
  %f0 = getelementptr i8, ptr %s, i64 16
  store ptr %data, ptr %f0
  %f1 = getelementptr i8, ptr %s, i64 24
  store i64 %n, ptr %f1
  %f2 = getelementptr i8, ptr %s, i64 32
  store i64 0, ptr %f2
  %f3 = getelementptr i8, ptr %s, i64 40
  store ptr null, ptr %f3
  %f4 = getelementptr i8, ptr %s, i64 48
  %cap = load i64, ptr %capp
  store i64 %cap, ptr %f4
  ret ptr %s
out:
  ret ptr null
}

; Kernels that run without the GIL, oldest first: {next, previous, number}. A storage that dies while one of them runs may be under its hands (another
; thread said `x.data = y`), so it waits, linked at 56 and numbered at 32, until every kernel that began before its death is done.
@r_first = internal global ptr null
@r_last = internal global ptr null
@r_count = internal global i64 0
@r_late = internal global ptr null
@r_late_end = internal global ptr null

define internal void @run_begins(ptr %frame) {
  %c = load i64, ptr @r_count
  %c2 = add i64 %c, 1
  store i64 %c2, ptr @r_count
  %last = load ptr, ptr @r_last
  store ptr null, ptr %frame
  %fp = getelementptr i64, ptr %frame, i64 1
  store ptr %last, ptr %fp
  %fn = getelementptr i64, ptr %frame, i64 2
  store i64 %c2, ptr %fn
  store ptr %frame, ptr @r_last
  %alone = icmp eq ptr %last, null
  %link = select i1 %alone, ptr @r_first, ptr %last
  store ptr %frame, ptr %link
  ret void
}

define internal void @run_ends(ptr %frame) {
  %next = load ptr, ptr %frame
  %fp = getelementptr i64, ptr %frame, i64 1
  %prev = load ptr, ptr %fp
  %is_first = icmp eq ptr %prev, null
  %forward = select i1 %is_first, ptr @r_first, ptr %prev
  store ptr %next, ptr %forward
  %is_last = icmp eq ptr %next, null
  br i1 %is_last, label %last, label %inner
last:
  store ptr %prev, ptr @r_last
  br label %drain
inner:
  %np = getelementptr i64, ptr %next, i64 1
  store ptr %prev, ptr %np
  br label %drain
drain:                                                ; freeing may run Python code: nothing is kept across it
  %s = load ptr, ptr @r_late
  %none = icmp eq ptr %s, null
  br i1 %none, label %done, label %look
look:
  %oldest = load ptr, ptr @r_first
  %idle = icmp eq ptr %oldest, null
  br i1 %idle, label %free, label %compare
compare:
  %on = getelementptr i64, ptr %oldest, i64 2
  %number = load i64, ptr %on
  %dp = getelementptr i8, ptr %s, i64 32
  %died = load i64, ptr %dp
  %over = icmp slt i64 %died, %number
  br i1 %over, label %free, label %done
free:
  %lp = getelementptr i8, ptr %s, i64 56
  %later = load ptr, ptr %lp
  store ptr %later, ptr @r_late
  %empty = icmp eq ptr %later, null
  br i1 %empty, label %clear, label %now
clear:
  store ptr null, ptr @r_late_end
  br label %now
now:
  call void @storage_free(ptr %s)
  br label %drain
done:
  ret void
}

define void @strided_storage_dealloc(ptr %s) {
  %running = load ptr, ptr @r_first
  %idle = icmp eq ptr %running, null
  br i1 %idle, label %now, label %wait
now:
  call void @storage_free(ptr %s)
  ret void
wait:
  %c = load i64, ptr @r_count
  %dp = getelementptr i8, ptr %s, i64 32
  store i64 %c, ptr %dp
  %lp = getelementptr i8, ptr %s, i64 56
  store ptr null, ptr %lp
  %end = load ptr, ptr @r_late_end
  %first = icmp eq ptr %end, null
  %ep = getelementptr i8, ptr %end, i64 56
  %link = select i1 %first, ptr @r_late, ptr %ep
  store ptr %s, ptr %link
  store ptr %s, ptr @r_late_end
  ret void
}

define internal void @storage_free(ptr %s) {
  %f4 = getelementptr i8, ptr %s, i64 48
  %cap = load i64, ptr %f4
  %own = icmp ne i64 %cap, 0
  br i1 %own, label %back, label %borrowed
back:
  %f0 = getelementptr i8, ptr %s, i64 16
  %data = load ptr, ptr %f0
  %f1 = getelementptr i8, ptr %s, i64 24
  %n = load i64, ptr %f1
  call void @give_back(ptr %data, i64 %n, i64 %cap)
  br label %borrowed
borrowed:
  %f3 = getelementptr i8, ptr %s, i64 40
  %owner = load ptr, ptr %f3
  call void @Py_DecRef(ptr %owner)          ; null is fine
  %tp = getelementptr i8, ptr %s, i64 8
  %type = load ptr, ptr %tp
  call void @PyObject_Free(ptr %s)
  call void @Py_DecRef(ptr %type)           ; an instance of a heap type holds its type
  ret void
}

define i32 @strided_storage_getbuffer(ptr %s, ptr %view, i32 %flags) {
  %f0 = getelementptr i8, ptr %s, i64 16
  %data = load ptr, ptr %f0
  %f1 = getelementptr i8, ptr %s, i64 24
  %n = load i64, ptr %f1
  %none = icmp eq ptr %data, null
  %some = icmp sgt i64 %n, 0
  %meta = and i1 %none, %some
  br i1 %meta, label %refuse, label %give
refuse:
  %op = getelementptr i8, ptr %view, i64 8           ; a refused view has no owner
  store ptr null, ptr %op
  %e = load ptr, ptr @g_runtime_error
  call void @PyErr_SetString(ptr %e, ptr @s_nodata)
  ret i32 -1
give:
  %rc = call i32 @PyBuffer_FillInfo(ptr %view, ptr %s, ptr %data, i64 %n, i32 0, i32 %flags)
  ret i32 %rc
}
"""

_LAUNCHER = r"""
; an int that is no i64: the address of a meta tensor (tensor.META_ADDRESS, out of range so that no kernel can ever be given one), or a number too large
define internal void @slot_fault(ptr %a) noinline {
  %tp = getelementptr i8, ptr %a, i64 8
  %t = load ptr, ptr %tp
  %flags = call i64 @PyType_GetFlags(ptr %t)
  %int = and i64 %flags, 16777216                ; Py_TPFLAGS_LONG_SUBCLASS
  %other = icmp eq i64 %int, 0
  br i1 %other, label %keep, label %look
look:
  call void @PyErr_Clear()
  %u = call i64 @PyLong_AsUnsignedLongLongMask(ptr %a)
  %top = lshr i64 %u, 56
  %meta = icmp eq i64 %top, 192
  %text = select i1 %meta, ptr @s_meta, ptr @s_wide
  %e = load ptr, ptr @g_runtime_error
  call void @PyErr_SetString(ptr %e, ptr %text)
  ret void
keep:
  ret void
}

; fills slots from Python arguments; false with the error set when one is no number
define internal i1 @fill_slots(ptr %args, i64 %n, ptr %slots) alwaysinline {
entry:
  %ft = load ptr, ptr @g_float_type
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %ok
loop:
  %i = phi i64 [0, %entry], [%i2, %next]
  %ap = getelementptr ptr, ptr %args, i64 %i
  %a = load ptr, ptr %ap
  %tp = getelementptr i8, ptr %a, i64 8
  %t = load ptr, ptr %tp
  %sp = getelementptr i64, ptr %slots, i64 %i
  %isf = icmp eq ptr %t, %ft
  br i1 %isf, label %float, label %int
float:
  %d = call double @PyFloat_AsDouble(ptr %a)
  store double %d, ptr %sp
  br label %next
int:
  %v = call i64 @PyLong_AsLongLong(ptr %a)
  store i64 %v, ptr %sp
  %maybe = icmp eq i64 %v, -1
  br i1 %maybe, label %check, label %next
check:
  %e = call ptr @PyErr_Occurred()
  %bad = icmp ne ptr %e, null
  br i1 %bad, label %explain, label %next
explain:
  call void @slot_fault(ptr %a)
  br label %fail
next:
  %i2 = add i64 %i, 1
  %more = icmp slt i64 %i2, %n
  br i1 %more, label %loop, label %ok
ok:
  ret i1 true
fail:
  ret i1 false
}

define internal void @run(ptr %desc, ptr %slots) {
  %fn = load ptr, ptr %desc
  %pp = getelementptr i64, ptr %desc, i64 2
  %parts = load i64, ptr %pp
  %gp = getelementptr i64, ptr %desc, i64 3
  %gil = load i64, ptr %gp
  %split = icmp sgt i64 %parts, 1
  br i1 %split, label %pool, label %single
pool:
  %frame = call ptr @malloc(i64 24)                  ; not on the stack: a thread that the interpreter's end finds here never comes back
  call void @run_begins(ptr %frame)
  %save = call ptr @PyEval_SaveThread()
  call void @pool_run(ptr %fn, ptr %desc, ptr %slots, i64 %parts)
  call void @PyEval_RestoreThread(ptr %save)
  call void @run_ends(ptr %frame)
  call void @free(ptr %frame)
  ret void
single:
  %release = icmp ne i64 %gil, 0
  br i1 %release, label %long, label %short
long:
  %frame2 = call ptr @malloc(i64 24)
  call void @run_begins(ptr %frame2)
  %save2 = call ptr @PyEval_SaveThread()
  call void %fn(ptr %desc, ptr %slots, i64 0, i64 1)
  call void @PyEval_RestoreThread(ptr %save2)
  call void @run_ends(ptr %frame2)
  call void @free(ptr %frame2)
  ret void
short:
  call void %fn(ptr %desc, ptr %slots, i64 0, i64 1)
  ret void
}

define internal ptr @slot_error(i64 %want, i64 %got) noinline {
  %e = load ptr, ptr @g_type_error
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %e, ptr @s_slots, i64 %want, i64 %got)
  ret ptr null
}

; launch(desc, *slots) -> None
define ptr @strided_launch(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [64 x i64], align 64
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %first, label %bad
first:
  %a0 = load ptr, ptr %args
  %desc = call ptr @PyBytes_AsString(ptr %a0)
  %ok0 = icmp ne ptr %desc, null
  br i1 %ok0, label %count, label %fail
count:
  %given = sub i64 %n, 1
  %wp = getelementptr i64, ptr %desc, i64 1
  %want = load i64, ptr %wp
  %same = icmp eq i64 %given, %want
  %fits = icmp sle i64 %given, 64
  %good = and i1 %same, %fits
  br i1 %good, label %fill, label %wrong
wrong:
  %x = call ptr @slot_error(i64 %want, i64 %given)
  ret ptr null
fill:
  %rest = getelementptr ptr, ptr %args, i64 1
  %ok = call i1 @fill_slots(ptr %rest, i64 %given, ptr %slots)
  br i1 %ok, label %go, label %fail
go:
  call void @run(ptr %desc, ptr %slots)
  %none = load ptr, ptr @g_none
  call void @Py_IncRef(ptr %none)
  ret ptr %none
bad:
  %y = call ptr @slot_error(i64 1, i64 0)
  br label %fail
fail:
  ret ptr null
}

; launch_new(desc, *slots) -> Storage: allocates the result and passes it as slot 0
define ptr @strided_launch_new(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [64 x i64], align 64
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %first, label %bad
first:
  %a0 = load ptr, ptr %args
  %desc = call ptr @PyBytes_AsString(ptr %a0)
  %ok0 = icmp ne ptr %desc, null
  br i1 %ok0, label %count, label %fail
count:
  %wp = getelementptr i64, ptr %desc, i64 1
  %want = load i64, ptr %wp
  %same = icmp eq i64 %n, %want
  %fits = icmp sle i64 %n, 64
  %good = and i1 %same, %fits
  br i1 %good, label %fill, label %wrong
wrong:
  %x = call ptr @slot_error(i64 %want, i64 %n)
  ret ptr null
fill:
  %given = sub i64 %n, 1
  %rest = getelementptr ptr, ptr %args, i64 1
  %slots1 = getelementptr i64, ptr %slots, i64 1
  %ok = call i1 @fill_slots(ptr %rest, i64 %given, ptr %slots1)
  br i1 %ok, label %alloc, label %fail
alloc:
  %bp = getelementptr i64, ptr %desc, i64 4
  %bytes = load i64, ptr %bp
  %s = call ptr @strided_storage_new(i64 %bytes)
  %oks = icmp ne ptr %s, null
  br i1 %oks, label %go, label %fail
go:
  %dp = getelementptr i8, ptr %s, i64 16
  %data = load ptr, ptr %dp
  store ptr %data, ptr %slots
  call void @run(ptr %desc, ptr %slots)
  ret ptr %s
bad:
  %y = call ptr @slot_error(i64 1, i64 0)
  br label %fail
fail:
  ret ptr null
}
@g_none = internal global ptr null
define ptr @strided_set_none(ptr %none) {
  store ptr %none, ptr @g_none
  ret ptr null
}
"""

# One job at a time. `p_word` holds (generation << 32 | parts << 16 | next part): a worker claims a part by compare-and-swap on the whole word.
# Whether a part is left must follow from the word alone: the job's other fields may already be a newer job's while the word is still the old one's.
# While the word says that a part is left its job is unfinished, so the fields are its own; and a stale word cannot be swapped.
_POOL = r"""
@p_word = internal global i64 0
@p_done = internal global i64 0
@p_busy = internal global i64 0
@p_sleepers = internal global i64 0
@p_workers = internal global i64 0
@p_threads = internal global i64 1
@p_fn = internal global ptr null
@p_desc = internal global ptr null
@p_slots = internal global ptr null
@p_mutex = internal global [16 x i64] zeroinitializer, align 64
@p_cond = internal global [16 x i64] zeroinitializer, align 64

define internal void @spin_pause() alwaysinline {
  PAUSE
  ret void
}

; takes parts of generation %gen until none is left
define internal void @work(i64 %gen) {
entry:
  %w = load atomic i64, ptr @p_word acquire, align 8
  br label %look
look:
  %cur = phi i64 [%w, %entry], [%seen, %lost], [%w3, %did]
  %g = lshr i64 %cur, 32
  %same = icmp eq i64 %g, %gen
  br i1 %same, label %mine, label %end
mine:
  %fn = load ptr, ptr @p_fn
  %desc = load ptr, ptr @p_desc
  %slots = load ptr, ptr @p_slots
  %high = lshr i64 %cur, 16
  %parts = and i64 %high, 65535
  %part = and i64 %cur, 65535
  %left = icmp ult i64 %part, %parts
  br i1 %left, label %claim, label %end
claim:
  %next = add i64 %cur, 1
  %pair = cmpxchg ptr @p_word, i64 %cur, i64 %next seq_cst seq_cst
  %seen = extractvalue {i64, i1} %pair, 0
  %won = extractvalue {i64, i1} %pair, 1
  br i1 %won, label %do, label %lost
lost:
  br label %look
do:
  call void %fn(ptr %desc, ptr %slots, i64 %part, i64 %parts)
  %old = atomicrmw add ptr @p_done, i64 1 seq_cst
  br label %did
did:
  %w3 = load atomic i64, ptr @p_word acquire, align 8
  br label %look
end:
  ret void
}

define internal ptr @worker(ptr %first) {
entry:
  %boxed = alloca ptr
  store ptr %first, ptr %boxed
  %g0 = load i64, ptr %boxed
  br label %wait
wait:
  %last = phi i64 [%g0, %entry], [%gen, %job]
  br label %spin
spin:
  %i = phi i64 [0, %wait], [%i2, %again], [0, %awake]
  %w = load atomic i64, ptr @p_word acquire, align 8
  %gen = lshr i64 %w, 32
  %new = icmp ne i64 %gen, %last
  br i1 %new, label %job, label %pause
pause:
  call void @spin_pause()
  %i2 = add i64 %i, 1
  %long = icmp ugt i64 %i2, 3000
  br i1 %long, label %sleep, label %again
again:
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr @p_mutex)
  %s = atomicrmw add ptr @p_sleepers, i64 1 seq_cst
  br label %check
check:
  %w2 = load atomic i64, ptr @p_word seq_cst, align 8
  %gen2 = lshr i64 %w2, 32
  %still = icmp eq i64 %gen2, %last
  br i1 %still, label %block, label %awake
block:
  call i32 @pthread_cond_wait(ptr @p_cond, ptr @p_mutex)
  br label %check
awake:
  %s2 = atomicrmw sub ptr @p_sleepers, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr @p_mutex)
  br label %spin
job:
  call void @work(i64 %gen)
  br label %wait
}

define internal void @serial(ptr %fn, ptr %desc, ptr %slots, i64 %parts) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%i2, %loop]
  call void %fn(ptr %desc, ptr %slots, i64 %i, i64 %parts)
  %i2 = add i64 %i, 1
  %more = icmp slt i64 %i2, %parts
  br i1 %more, label %loop, label %done
done:
  ret void
}

define internal void @pool_run(ptr %fn, ptr %desc, ptr %slots, i64 %parts) {
entry:
  %id = alloca [8 x i64]
  %box = alloca i64
  %threads = load i64, ptr @p_threads
  %single = icmp sle i64 %threads, 1
  %many = icmp ugt i64 %parts, 65535                ; more than the word can count
  %one = or i1 %single, %many
  br i1 %one, label %alone, label %lock
alone:
  call void @serial(ptr %fn, ptr %desc, ptr %slots, i64 %parts)
  ret void
lock:                                              ; a second Python thread finds the pool taken and works alone
  %pair = cmpxchg ptr @p_busy, i64 0, i64 1 seq_cst seq_cst
  %free = extractvalue {i64, i1} %pair, 1
  br i1 %free, label %staff, label %alone
staff:
  %have = load i64, ptr @p_workers
  %need = sub i64 %threads, 1
  %short = icmp slt i64 %have, %need
  br i1 %short, label %hire, label %publish
hire:
  %w0 = load i64, ptr @p_word
  %gen0 = lshr i64 %w0, 32
  store i64 %gen0, ptr %box
  %gp = load ptr, ptr %box
  %rc = call i32 @pthread_create(ptr %id, ptr null, ptr @worker, ptr %gp)
  %failed = icmp ne i32 %rc, 0
  br i1 %failed, label %publish, label %hired
hired:
  %tid = load ptr, ptr %id
  call i32 @pthread_detach(ptr %tid)
  %h2 = add i64 %have, 1
  store i64 %h2, ptr @p_workers
  br label %staff
publish:
  store ptr %fn, ptr @p_fn
  store ptr %desc, ptr @p_desc
  store ptr %slots, ptr @p_slots
  store atomic i64 0, ptr @p_done seq_cst, align 8
  %w = load i64, ptr @p_word
  %g = lshr i64 %w, 32
  %g1 = add i64 %g, 1
  %gen = and i64 %g1, 4294967295
  %gen32 = shl i64 %gen, 32
  %parts16 = shl i64 %parts, 16
  %word = or i64 %gen32, %parts16
  store atomic i64 %word, ptr @p_word seq_cst, align 8
  %sl = load atomic i64, ptr @p_sleepers seq_cst, align 8
  %asleep = icmp sgt i64 %sl, 0
  br i1 %asleep, label %wake, label %own
wake:
  call i32 @pthread_mutex_lock(ptr @p_mutex)
  call i32 @pthread_cond_broadcast(ptr @p_cond)
  call i32 @pthread_mutex_unlock(ptr @p_mutex)
  br label %own
own:
  call void @work(i64 %gen)
  br label %join
join:
  %i = phi i64 [0, %own], [%i2, %more]
  %d = load atomic i64, ptr @p_done acquire, align 8
  %all = icmp sge i64 %d, %parts
  br i1 %all, label %done, label %relax
relax:
  call void @spin_pause()
  %i2 = add i64 %i, 1
  %much = icmp ugt i64 %i2, 10000
  br i1 %much, label %yield, label %more0
yield:
  call i32 @sched_yield()
  br label %more0
more0:
  br label %more
more:
  br label %join
done:
  store atomic i64 0, ptr @p_busy seq_cst, align 8
  ret void
}

define void @strided_set_threads(i64 %n) {
  store i64 %n, ptr @p_threads
  ret void
}
; in the child of a fork the workers do not exist
define void @strided_after_fork() {
  store i64 0, ptr @p_workers
  store i64 0, ptr @p_busy
  store i64 0, ptr @p_sleepers
  store ptr null, ptr @r_first                       ; nor do the kernels that other threads were running
  store ptr null, ptr @r_last
  call i32 @pthread_mutex_init(ptr @p_mutex, ptr null)
  call i32 @pthread_cond_init(ptr @p_cond, ptr null)
  ret void
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
  br i1 %ok, label %set, label %fail
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
  br i1 %ok, label %set, label %fail
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


# code -> (IR type, how its Python object is made); the codes are `DType.code`
_SCALARS = [
    ("i8", "bool"), ("i8", "u"), ("i8", "s"), ("i16", "s"), ("i32", "s"), ("i64", "s"), ("i16", "half"), ("i16", "bfloat"), ("float", "f"), ("double", "d"),
    ("i16", "u"), ("i32", "u"), ("i64", "u64"),
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
        else:
            if kind == "half":
                lines.append(f"  %d{code} = call double @half_value(i16 %v{code})")
            elif kind == "bfloat":
                lines += [f"  %w{code} = zext i16 %v{code} to i32", f"  %s{code} = shl i32 %w{code}, 16", f"  %f{code} = bitcast i32 %s{code} to float", f"  %d{code} = fpext float %f{code} to double"]
            elif kind == "f":
                lines.append(f"  %d{code} = fpext float %v{code} to double")
            else:
                lines.append(f"  %d{code} = fadd double %v{code}, -0.0")
            lines.append(f"  %o{code} = call ptr @PyFloat_FromDouble(double %d{code})")
        lines.append(f"  ret ptr %o{code}")
        blocks += lines
    return "\n".join(
        ["define internal ptr @read(i64 %code, ptr %p) {", "  switch i64 %code, label %bad [", *cases, "  ]", *blocks, "bad:", "  %e = call ptr @arg_error(i64 0)", "  ret ptr null", "}"]
    ) + r"""

; read_scalar(code, address)
define ptr @strided_py_read_scalar(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [4 x i64]
  %right = icmp eq i64 %n, 2
  br i1 %right, label %go, label %bad
go:
  %ok = call i1 @fill_slots(ptr %args, i64 2, ptr %slots)
  br i1 %ok, label %get, label %fail
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
  br i1 %ok, label %get, label %fail
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
    return _texts() + _GLOBALS + _ALLOCATOR + _LAUNCHER + declaration + _POOL.replace("PAUSE", pause) + _BUILTINS + _half_to_double() + _scalar_reader()
