"""Work and scratch memory of a kernel's part as IR text: `claimed`, by which parts take work from each other as they come; `SCRATCH`, what a module needs for it.

A kernel can return no error. Where the system has no memory left for a part's scratch, the part counts itself and does nothing more; the launcher sees the count and
raises the error (runtime_calls.py).
"""
from __future__ import annotations

from .gemm_ir import STARVED, memory, starve
from .gemm_text import Function
from .runtime_pool import TEAM

CLAIMS = 16  # ranges of the work a part, about

SCRATCH = """declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
""" + STARVED


def allocate(f: Function, cell, size) -> None:
    """Stores the address of `size` bytes, at a cache line, into `cell`; `free` gives them back. Where there are none the part returns at once."""
    memory(f, cell, "null", size)
    tag = f"scratch{len(f.body)}"
    empty = f.op(f"icmp eq ptr {f.load('ptr', cell)}, null")
    f.do(f"br i1 {empty}, label %{tag}.none, label %{tag}.held")
    f.label(f"{tag}.none")
    starve(f)
    f.do("ret void")
    f.label(f"{tag}.held")


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
            empty = f.op(f"icmp eq ptr {f.load('ptr', cell)}, null")
            f.do(f"br i1 {empty}, label %{tag}.none, label %{tag}.held")
            f.label(f"{tag}.none")
            starve(f)
            f.do(f"br label %{tag}.end")
            f.label(f"{tag}.held")
        prepare(f.load("ptr", cell))
    work(f.load("ptr", cell), start, f.min(f.add(start, f.load("i64", each)), items))
    f.do(f"br label %{tag}.head")
    f.label(f"{tag}.end")
    borrowed = f.op(f"icmp eq ptr {f.load('ptr', kept)}, null")
    with f.when(f.both(f.load("i1", started), large, borrowed)):
        f.do(f"call void @free(ptr {f.load('ptr', cell)})")
