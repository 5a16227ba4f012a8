"""The runtime's launcher as IR text: Python numbers into a kernel's slots, a fresh result, the GIL given up while long work runs.

Splitting work over threads is runtime_pool.py's.
"""
from __future__ import annotations

LAUNCHER = r"""
; an int that is no i64: the address of a meta tensor or of packed elements (tensor.META_ADDRESS and PACKED_ADDRESS, out of range so that no kernel can
; ever be given one); a number that is only too large keeps Python's own OverflowError
define internal void @slot_fault(ptr %a) noinline {
  %tp = getelementptr i8, ptr %a, i64 8
  %t = load ptr, ptr %tp
  %flags = call i64 @PyType_GetFlags(ptr %t)
  %int = and i64 %flags, 16777216                ; Py_TPFLAGS_LONG_SUBCLASS
  %other = icmp eq i64 %int, 0
  br i1 %other, label %keep, label %look
look:
  %u = call i64 @PyLong_AsUnsignedLongLongMask(ptr %a)
  %top = lshr i64 %u, 56
  %meta = icmp eq i64 %top, 192
  %packed = icmp eq i64 %top, 160
  %address = or i1 %meta, %packed
  br i1 %address, label %tell, label %keep
tell:
  call void @PyErr_Clear()
  %text = select i1 %packed, ptr @s_packed, ptr @s_meta
  %where = select i1 %packed, ptr @g_packed_error, ptr @g_runtime_error
  %e = load ptr, ptr %where
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

; the address of the count that a kernel raises when it finds no memory
define ptr @strided_starved() {
  ret ptr @g_starved
}

; whether no kernel starved since the count was read; else the error is set. Another thread's kernel may have: both say so.
define internal i1 @fed(i64 %before) alwaysinline {
  %now = load atomic i64, ptr @g_starved monotonic, align 8
  %same = icmp eq i64 %now, %before
  br i1 %same, label %well, label %starved
well:
  ret i1 true
starved:
  call void @say_starved()
  ret i1 false
}

define internal void @say_starved() noinline {
  %e = load ptr, ptr @g_runtime_error
  call void @PyErr_SetString(ptr %e, ptr @s_starved)
  ret void
}

; runs a job; false with the error set where it found no memory
define internal i1 @run(ptr %desc, ptr %slots) {
  %before = load atomic i64, ptr @g_starved monotonic, align 8
  call void @run_job(ptr %desc, ptr %slots)
  %fed = call i1 @fed(i64 %before)
  ret i1 %fed
}

define internal void @run_job(ptr %desc, ptr %slots) alwaysinline {
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
  br i1 %ok, label %watch, label %fail
watch:
  %cb = load ptr, ptr @g_capture
  %quiet = icmp eq ptr %cb, null
  br i1 %quiet, label %go, label %tell
tell:
  %nothing = load ptr, ptr @g_none
  %told = call i1 @captured(i64 0, ptr %a0, ptr %slots, i64 %given, ptr %nothing)
  br i1 %told, label %go, label %fail
go:
  %ran = call i1 @run(ptr %desc, ptr %slots)
  br i1 %ran, label %ready, label %fail
ready:
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
  %cb = load ptr, ptr @g_capture
  %quiet = icmp eq ptr %cb, null
  br i1 %quiet, label %start, label %tell
tell:
  %told = call i1 @captured(i64 1, ptr %a0, ptr %slots, i64 %n, ptr %s)
  br i1 %told, label %start, label %drop
drop:
  call void @Py_DecRef(ptr %s)
  br label %fail
start:
  %ran = call i1 @run(ptr %desc, ptr %slots)
  br i1 %ran, label %ready, label %drop
ready:
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
