"""Scratch memory of kernels as IR text: `SCRATCH`, what a module needs for `allocate`.

A kernel can return no error. Where the system has no memory left for its scratch, the process ends with a sentence that says so, before anything is written.
"""
from __future__ import annotations

from .gemm_text import Function

_SENTENCE = "strided: out of memory: the system has none left for a kernel's scratch\n"

SCRATCH = f"""declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i64 @write(i32, ptr, i64)
declare void @abort()
@starved.text = private constant [{len(_SENTENCE)} x i8] c"{_SENTENCE.replace(chr(10), chr(92) + "0A")}"

define internal void @scratch(ptr %cell, i64 %size) noinline nounwind {{
entry:
  %code = call i32 @posix_memalign(ptr %cell, i64 64, i64 %size)
  %bad = icmp ne i32 %code, 0
  br i1 %bad, label %none, label %done
none:
  call void @starved()
  br label %done
done:
  ret void
}}

define internal void @starved() noinline nounwind {{
entry:
  %n = call i64 @write(i32 2, ptr @starved.text, i64 {len(_SENTENCE)})
  call void @abort()
  unreachable
}}"""


def allocate(f: Function, cell, size) -> None:
    """Stores the address of `size` bytes, at a cache line, into `cell`; `free` gives them back."""
    f.do(f"call void @scratch(ptr {cell}, i64 {size})")


def require(f: Function, address) -> None:
    """Ends the process where an allocation found nothing."""
    with f.when(f.op(f"icmp eq ptr {address}, null")):
        f.do("call void @starved()")
