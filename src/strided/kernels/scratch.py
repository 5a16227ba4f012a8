"""Work and scratch memory of a kernel's part as IR text: `claimed`, by which parts take work from each other as they come; `SCRATCH`, what a module needs for it.

A kernel can return no error. Where the system has no memory left for its scratch, the process ends with a sentence that says so, before anything is written.
"""
from __future__ import annotations

from .gemm_ir import memory
from .gemm_text import Function
from .runtime_pool import TEAM

CLAIMS = 16  # ranges of the work a part, about

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


def claimed(f: Function, items, size, prepare, work, stack: int = 0) -> None:
    """Parts claim ranges of `items` from each other as they come: who is held up leaves the rest to the others. The descriptor's word SHARING is to be set.

    prepare(base): once a part, with its scratch of `size` bytes, on the stack up to `stack` of them; work(base, low, high): each range that nobody else has.
    """
    own, each, low = f.variable("i64", 0), f.variable("i64"), f.variable("i64")
    counter, kept, started = f.variable("ptr", own), f.variable("ptr", "null"), f.variable("i1", 0)
    cell = f.variable("ptr", f.variable(f"[{stack} x i8]", align=64) if stack else "null")
    large = f.compare("sgt", size, stack)
    alone = f.compare("eq", "%parts", 1)
    f.store("i64", items, each)
    with f.when(f.compare("sgt", "%parts", 1)):
        shared = f.load("ptr", f.at("ptr", "%slots", f.load("i64", f.at("i64", "%desc", 1))))
        f.store("ptr", shared, counter)
        f.store("i64", f.call("i64", "llvm.smax.i64", f"i64 {f.div(items, f.mul('%parts', CLAIMS))}", "i64 1"), each)
        table = f.load("ptr", f.at("ptr", shared, TEAM))
        with f.when(f.op(f"icmp ne ptr {table}, null")):
            f.store("ptr", f.at("i8", table, f.mul("%part", 16)), kept)
    tag = f"claim{len(f.body)}"
    f.do(f"br label %{tag}.head")
    f.label(f"{tag}.head")

    def next_of_own():
        number = f.load("i64", own)
        f.store("i64", number, low)
        f.store("i64", f.add(number, 1), own)

    f.choose(alone, next_of_own, lambda: f.store("i64", f.op(f"atomicrmw add ptr {f.load('ptr', counter)}, i64 1 monotonic"), low))
    start = f.mul(f.load("i64", low), f.load("i64", each))
    f.do(f"br i1 {f.compare('slt', start, items)}, label %{tag}.body, label %{tag}.end")
    f.label(f"{tag}.body")
    with f.when(f.op(f"xor i1 {f.load('i1', started)}, true")):
        f.store("i1", 1, started)
        with f.when(large):
            f.store("ptr", "null", cell)
            memory(f, cell, f.load("ptr", kept), size)
            with f.when(f.op(f"icmp eq ptr {f.load('ptr', cell)}, null")):
                f.do("call void @starved()")
        prepare(f.load("ptr", cell))
    work(f.load("ptr", cell), start, f.min(f.add(start, f.load("i64", each)), items))
    f.do(f"br label %{tag}.head")
    f.label(f"{tag}.end")
    borrowed = f.op(f"icmp eq ptr {f.load('ptr', kept)}, null")
    with f.when(f.both(f.load("i1", started), large, borrowed)):
        f.do(f"call void @free(ptr {f.load('ptr', cell)})")
