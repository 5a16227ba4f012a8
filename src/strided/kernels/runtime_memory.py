"""The runtime's caching allocator and the functions of the Storage type, as IR text. Everything runs with the GIL held: that is its lock.

The globals it works on are declared in runtime_ir.py; it knows no Python arguments (runtime_ir.py) and no kernels (runtime_calls.py).
"""
from __future__ import annotations

ALLOCATOR = r"""
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
  %cb = load ptr, ptr @g_capture
  %quiet = icmp eq ptr %cb, null
  br i1 %quiet, label %fill, label %tell
tell:
  %nothing = load ptr, ptr @g_none
  %told = call i1 @captured(i64 6, ptr %nothing, ptr null, i64 0, ptr %s)
  br i1 %told, label %fill, label %stop
stop:
  %op2 = getelementptr i8, ptr %view, i64 8
  store ptr null, ptr %op2
  ret i32 -1
fill:
  %rc = call i32 @PyBuffer_FillInfo(ptr %view, ptr %s, ptr %data, i64 %n, i32 0, i32 %flags)
  ret i32 %rc
}
"""
