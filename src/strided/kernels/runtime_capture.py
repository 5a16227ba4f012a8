"""Recording and replaying of launches as IR text: what `compile` is built on.

While a callback is set (`set_capture`), everything that touches tensors' memory through the native border is told to it, before it runs:
launches, fresh storages, fills, moves, reads by Python. `replay` runs a program of launches in one call, with the interpreter's lock given up
for all of it. What a program is made of and where its operands lie is decided in Python (compile/).
"""
from __future__ import annotations

# Kinds of what the callback is told: callback(kind, what, address of the slots, count, storage).
LAUNCH, LAUNCH_NEW, NEW_STORAGE, FILL, MOVE, READ, BUFFER, FLAG = range(8)

CAPTURE = r"""
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
@g_capture = internal global ptr null
@s_capture = internal constant [6 x i8] c"LOLLO\00"

; false with the error set when the callback raised
define internal i1 @captured(i64 %kind, ptr %what, ptr %slots, i64 %n, ptr %storage) noinline {
  %cb = load ptr, ptr @g_capture
  %address = ptrtoint ptr %slots to i64
  %r = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %cb, ptr @s_capture, i64 %kind, ptr %what, i64 %address, i64 %n, ptr %storage)
  %bad = icmp eq ptr %r, null
  br i1 %bad, label %fail, label %good
good:
  call void @Py_DecRef(ptr %r)
  ret i1 true
fail:
  ret i1 false
}

define internal i1 @capture_plain(i64 %kind, ptr %slots, i64 %n) alwaysinline {
  %cb = load ptr, ptr @g_capture
  %off = icmp eq ptr %cb, null
  br i1 %off, label %quiet, label %tell
quiet:
  ret i1 true
tell:
  %none = load ptr, ptr @g_none
  %ok = call i1 @captured(i64 %kind, ptr %none, ptr %slots, i64 %n, ptr %none)
  ret i1 %ok
}

; read_flag(address): whether a kernel set the byte by which it says that it met bad input; a recorder takes it for no value that decides anything else
define ptr @strided_py_read_flag(ptr %self, ptr %args, i64 %n) {
  %slots = alloca [4 x i64]
  %right = icmp eq i64 %n, 1
  br i1 %right, label %go, label %bad
go:
  %ok = call i1 @fill_slots(ptr %args, i64 1, ptr %slots)
  br i1 %ok, label %watch, label %fail
watch:
  %told = call i1 @capture_plain(i64 7, ptr %slots, i64 1)
  br i1 %told, label %get, label %fail
get:
  %p = load ptr, ptr %slots
  %byte = load i8, ptr %p
  %set = icmp ne i8 %byte, 0
  %long = zext i1 %set to i64
  %r = call ptr @PyBool_FromLong(i64 %long)
  ret ptr %r
bad:
  %e = call ptr @arg_error(i64 1)
  ret ptr null
fail:
  ret ptr null
}

; set_capture(callback or None)
define ptr @strided_py_set_capture(ptr %self, ptr %args, i64 %n) {
  %right = icmp eq i64 %n, 1
  br i1 %right, label %go, label %bad
go:
  %cb = load ptr, ptr %args
  %none = load ptr, ptr @g_none
  %off = icmp eq ptr %cb, %none
  %new = select i1 %off, ptr null, ptr %cb
  call void @Py_IncRef(ptr %new)
  %old = load ptr, ptr @g_capture
  store ptr %new, ptr @g_capture
  call void @Py_DecRef(ptr %old)
  call void @Py_IncRef(ptr %none)
  ret ptr %none
bad:
  %e = call ptr @arg_error(i64 1)
  ret ptr null
}

; replay(program, bases): a program is a count, then for each step the address of a descriptor, a number of slots, and for each slot the number of
; a base and an offset from it (base -1: the offset is the value). In place of a descriptor, 0 fills (address, byte, count) and 1 moves (to, from, count).
define ptr @strided_py_replay(ptr %self, ptr %args, i64 %n) {
entry:
  %slots = alloca [64 x i64], align 64
  %right = icmp eq i64 %n, 2
  br i1 %right, label %open, label %bad
open:
  %a0 = load ptr, ptr %args
  %program = call ptr @PyBytes_AsString(ptr %a0)
  %ok0 = icmp ne ptr %program, null
  br i1 %ok0, label %second, label %fail
second:
  %ap = getelementptr ptr, ptr %args, i64 1
  %a1 = load ptr, ptr %ap
  %bases = call ptr @PyBytes_AsString(ptr %a1)
  %ok1 = icmp ne ptr %bases, null
  br i1 %ok1, label %start, label %fail
start:
  %steps = load i64, ptr %program
  %body = getelementptr i64, ptr %program, i64 1
  %frame = call ptr @malloc(i64 24)                  ; not on the stack: see @run
  %before = load atomic i64, ptr @g_starved monotonic, align 8
  call void @run_begins(ptr %frame)
  %save = call ptr @PyEval_SaveThread()
  br label %step
step:
  %i = phi i64 [0, %start], [%i2, %next]
  %at = phi ptr [%body, %start], [%after, %next]
  %more = icmp slt i64 %i, %steps
  br i1 %more, label %read, label %done
read:
  %desc = load ptr, ptr %at
  %np = getelementptr i64, ptr %at, i64 1
  %count = load i64, ptr %np
  %places = getelementptr i64, ptr %at, i64 2
  %double = shl i64 %count, 1
  %after = getelementptr i64, ptr %places, i64 %double
  br label %fill
fill:
  %k = phi i64 [0, %read], [%k2, %put]
  %left = icmp slt i64 %k, %count
  br i1 %left, label %one, label %act
one:
  %k2x = shl i64 %k, 1
  %bp = getelementptr i64, ptr %places, i64 %k2x
  %b = load i64, ptr %bp
  %op = getelementptr i64, ptr %bp, i64 1
  %o = load i64, ptr %op
  %plain = icmp slt i64 %b, 0
  br i1 %plain, label %put, label %based
based:
  %basep = getelementptr i64, ptr %bases, i64 %b
  %base = load i64, ptr %basep
  br label %put
put:
  %add = phi i64 [0, %one], [%base, %based]
  %v = add i64 %add, %o
  %sp = getelementptr i64, ptr %slots, i64 %k
  store i64 %v, ptr %sp
  %k2 = add i64 %k, 1
  br label %fill
act:
  %what = ptrtoint ptr %desc to i64
  switch i64 %what, label %kernel [ i64 0, label %set  i64 1, label %move ]
set:
  %s0 = load ptr, ptr %slots
  %s1p = getelementptr i64, ptr %slots, i64 1
  %s1 = load i8, ptr %s1p
  %s2p = getelementptr i64, ptr %slots, i64 2
  %s2 = load i64, ptr %s2p
  call void @llvm.memset.p0.i64(ptr %s0, i8 %s1, i64 %s2, i1 false)
  br label %next
move:
  %m0 = load ptr, ptr %slots
  %m1p = getelementptr i64, ptr %slots, i64 1
  %m1 = load ptr, ptr %m1p
  %m2p = getelementptr i64, ptr %slots, i64 2
  %m2 = load i64, ptr %m2p
  call void @llvm.memmove.p0.p0.i64(ptr %m0, ptr %m1, i64 %m2, i1 false)
  br label %next
kernel:
  %fn = load ptr, ptr %desc
  %pp = getelementptr i64, ptr %desc, i64 2
  %parts = load i64, ptr %pp
  %split = icmp sgt i64 %parts, 1
  br i1 %split, label %pool, label %single
pool:
  call void @pool_run(ptr %fn, ptr %desc, ptr %slots, i64 %parts)
  br label %next
single:
  call void %fn(ptr %desc, ptr %slots, i64 0, i64 1)
  br label %next
next:
  %i2 = add i64 %i, 1
  br label %step
done:
  call void @PyEval_RestoreThread(ptr %save)
  call void @run_ends(ptr %frame)
  call void @free(ptr %frame)
  %ran = call i1 @fed(i64 %before)
  br i1 %ran, label %ready, label %fail
ready:
  %none = load ptr, ptr @g_none
  call void @Py_IncRef(ptr %none)
  ret ptr %none
bad:
  %e = call ptr @arg_error(i64 2)
  ret ptr null
fail:
  ret ptr null
}
"""
