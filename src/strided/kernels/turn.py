"""Tiles of a transposing copy, in squares that are turned in vector registers: w loads of w neighbours, log2(w) rounds of shuffles, w stores.

Holds the function that such a copy calls for each tile; which copies those are is index.py's business.
"""
from __future__ import annotations

from . import jit
from .gemm_pack import transposed
from .gemm_text import Function, module, vector

TYPES = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
AHEAD = 32  # runs of the source that are fetched ahead: nobody else foresees lines so far apart
FURTHER = 64  # where the target is streamed: into the second-level cache, for what is written keeps the first busy


def turn(size: int, stream: bool, lines: int) -> str:
    """`@turn(to, source, n, m, to_step, source_step)`: to[i, j] = source[j, i] for n values of i, m of j, elements of `size` bytes; steps in bytes.

    The target's j and the source's i are neighbours. lines: how many of a run of the source n values are. stream: whole vectors are written past the caches;
    the target's rows then begin at multiples of one.
    """
    element = TYPES[size]
    w = lanes(size)
    wide = vector(element, w)
    arguments = "ptr noalias %to, ptr noalias readonly %source, i64 %n, i64 %m, i64 %to_step, i64 %source_step"
    f = Function("turn", arguments, jit.host().attributes + " noinline")
    # What is left at the ends is covered by squares that begin earlier and write some values a second time, if there is room for one.
    room = f.both(f.compare("sge", "%n", w), f.compare("sge", "%m", w))
    whole_n = f.op(f"select i1 {room}, i64 %n, i64 0")
    aligned = f.mul(f.div("%m", w), w)
    whole_m = aligned if stream else f.op(f"select i1 {room}, i64 %m, i64 0")
    mark = f", align {w * size}, !nontemporal !900" if stream else f", align {size}"
    with f.loop(0, whole_m, w) as j:
        j = j if stream else f.min(j, f.sub("%m", w))
        for r in range(w):
            ahead = f.at("i8", "%source", f.mul(f.add(f.add(j, r), FURTHER if stream else AHEAD), "%source_step"))
            for line in range(lines if stream else 1):
                f.do(f"call void @llvm.prefetch.p0(ptr {f.at('i8', ahead, 64 * line)}, i32 0, i32 {2 if stream else 3}, i32 1)")
        with f.loop(0, whole_n, w) as i:
            i = f.min(i, f.sub("%n", w))
            at = f.at(element, "%source", i)
            values = [f.load(wide, f.at("i8", at, f.mul(f.add(j, r), "%source_step")), size) for r in range(w)]
            to = f.at(element, "%to", j)
            for r, value in enumerate(transposed(f, element, values)):
                f.do(f"store {wide} {value}, ptr {f.at('i8', to, f.mul(f.add(i, r), '%to_step'))}{mark}")

    def singly(low_i, high_i, low_j, high_j):
        with f.loop(low_i, high_i) as i, f.loop(low_j, high_j) as j:
            value = f.load(element, f.at(element, f.at("i8", "%source", f.mul(j, "%source_step")), i), size)
            f.store(element, value, f.at(element, f.at("i8", "%to", f.mul(i, "%to_step")), j), size)

    singly(0, whole_n, whole_m, "%m")
    singly(whole_n, "%n", 0, "%m")
    return module(f, extra="declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")


def lanes(size: int) -> int:
    """Elements a side of a square."""
    return min(16, jit.host().vector_bits // (8 * size))
