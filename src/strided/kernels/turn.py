"""Tiles of a transposing copy, in squares that are turned in vector registers: w loads of w neighbours, log2(w) rounds of shuffles, w stores.

Holds the function that such a copy calls for each tile; which copies those are is index.py's business.
"""
from __future__ import annotations

from . import jit
from .gemm_text import Function, module, transposed, vector

TYPES = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
AHEAD = 32  # runs of the source that are fetched ahead: nobody else foresees lines so far apart
FURTHER = 24  # where the target is streamed: into the second-level cache, for what is written keeps the first busy. Lines a power of two apart share few places there
TOGETHER = 2  # lines of each of the target's rows that are then written one after the other


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

    def fetch(j, distance, count, level):
        for r in range(w):
            ahead = f.at("i8", "%source", f.mul(f.add(f.add(j, r), distance), "%source_step"))
            for line in range(count):
                f.do(f"call void @llvm.prefetch.p0(ptr {f.at('i8', ahead, 64 * line)}, i32 0, i32 {level}, i32 1)")

    def square(i, j):
        """Vectors of the target's rows i…i + w from j on."""
        at = f.at(element, "%source", i)
        return transposed(f, element, [f.load(wide, f.at("i8", at, f.mul(f.add(j, r), "%source_step")), size) for r in range(w)])

    if stream:  # rows of the target stay in cache until some lines of each are whole, which then are written together
        block = w * TOGETHER
        rows = f.variable(f"[{lines * 64 // size * block} x {element}]", None, 64)
        with f.loop(0, f.mul(f.div("%m", block), block), block) as j:
            for part in range(0, block, w):
                fetch(f.add(j, part), FURTHER, lines, 2)
                with f.loop(0, whole_n, w) as i:
                    i = f.min(i, f.sub("%n", w))
                    for r, value in enumerate(square(i, f.add(j, part))):
                        f.store(wide, value, f.at(element, rows, f.add(f.mul(f.add(i, r), block), part)), 64)
            f.do('fence syncscope("singlethread") seq_cst')
            with f.loop(0, whole_n) as i:
                to, row = f.at("i8", f.at(element, "%to", j), f.mul(i, "%to_step")), f.at(element, rows, f.mul(i, block))
                for part in range(0, block, w):
                    f.do(f"store {wide} {f.load(wide, f.at(element, row, part), 64)}, ptr {f.at(element, to, part)}, align 64, !nontemporal !900")
            f.do('fence syncscope("singlethread") seq_cst')
        whole_m = f.mul(f.div("%m", block), block)
    else:
        whole_m = f.op(f"select i1 {room}, i64 %m, i64 0")
        with f.loop(0, whole_m, w) as j:
            j = f.min(j, f.sub("%m", w))
            fetch(j, AHEAD, 1, 3)
            with f.loop(0, whole_n, w) as i:
                i = f.min(i, f.sub("%n", w))
                to = f.at(element, "%to", j)
                for r, value in enumerate(square(i, j)):
                    f.store(wide, value, f.at("i8", to, f.mul(f.add(i, r), "%to_step")), size)

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
