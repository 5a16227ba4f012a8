"""What this machine can do at best, measured by three small kernels: multiply-adds that touch no memory, bytes read, bytes copied.

Every figure of `strided bench` and of the scripts in bench/ is held against these, measured in the same run. Holds the kernels; no report.
"""
from __future__ import annotations

from collections.abc import Callable

from ..kernels import jit, native
from ..kernels.gemm_text import Function, module, vector

CHAINS = 24  # independent sums: enough to hide the latency of two multiply-add units
AHEAD = 8  # vectors read or copied a round of the loop
BURST = 1024  # bytes that a streamed copy reads, then writes: lines that are written and lines that are read wait for each other least so
FETCHED = 8192  # bytes that a streamed copy fetches ahead into the second-level cache


def multiply_adds(rounds: int = 20_000, threads: int | None = None) -> tuple[Callable[[], object], int]:
    """(a call that multiplies and adds float32 in registers, its floating-point operations), on `threads` threads (default: all that kernels use)."""
    lanes, threads = jit.host().vector_bits // 32, threads or native.get_num_threads()
    address = jit.compile_kernel(("limit", "multiply-adds", CHAINS), _multiply_adds)
    out = native.new_storage(CHAINS * lanes * 4 * threads)
    desc = native.pack_desc(address, 1, threads, True, 0, [rounds])
    return lambda: native.launch(desc, out.data), threads * rounds * CHAINS * lanes * 2


def read(nbytes: int, threads: int | None = None) -> tuple[Callable[[], object], int]:
    """(a call that reads `nbytes` of memory once, the bytes it reads)."""
    line, threads = jit.host().vector_bits // 8 * AHEAD, threads or native.get_num_threads()
    lines = max(1, nbytes // line)
    parts = native.slices_for(threads, lines * line)
    source, out = native.new_storage(lines * line), native.new_storage(line * parts)
    native.fill_bytes(source.data, 0, lines * line)
    desc = native.pack_desc(jit.compile_kernel(("limit", "read", AHEAD), _read), 2, parts, True, 0, [lines])
    return lambda: native.launch(desc, out.data, source.data), lines * line


def copy(nbytes: int, threads: int | None = None, streamed: bool | None = None) -> tuple[Callable[[], object], int]:
    """(a call that copies `nbytes`, the bytes it reads and writes: twice that).

    streamed: written past the caches, which saves reading the lines that are written; by default from 16 MB on, as maps do.
    """
    streamed = nbytes >= 16 << 20 if streamed is None else streamed
    vectors = _copied(streamed)
    line, threads = jit.host().vector_bits // 8 * vectors, threads or native.get_num_threads()
    lines = max(1, nbytes // line)
    source, target = native.new_storage(lines * line), native.new_storage(lines * line)
    native.fill_bytes(source.data, 0, lines * line)
    address = jit.compile_kernel(("limit", "copy", vectors, streamed), lambda: _copy(streamed, vectors))
    desc = native.pack_desc(address, 2, native.slices_for(threads, 2 * lines * line), True, 0, [lines])  # claimed as other kernels' are
    return lambda: native.launch(desc, target.data, source.data), 2 * lines * line


# ---- the kernels ----------------------------------------------------------------------------------------------------------


def _function() -> Function:
    return Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", jit.host().attributes, linkage="dso_local")


def _multiply_adds() -> str:
    """Word 8 says how many rounds each part runs."""
    f, lanes = _function(), jit.host().vector_bits // 32
    wide = vector("float", lanes)
    rounds = f.load("i64", f.at("i64", "%desc", 8))
    factor = f.splat("float", f.op(f"sitofp i64 {rounds} to float"), lanes)  # unknown to the compiler
    sums = [f.variable(wide, "zeroinitializer", 64) for _ in range(CHAINS)]
    with f.loop(0, rounds):
        for s in sums:
            f.store(wide, f.fma("float", lanes, factor, factor, f.load(wide, s, 64)), s, 64)
    out = f.at("float", f.load("ptr", "%slots"), f.mul("%part", CHAINS * lanes))
    for n, s in enumerate(sums):
        f.store(wide, f.load(wide, s, 64), f.at("float", out, n * lanes), 4)
    return module(f)


def _part(f: Function):
    """The part's first line and the one behind its last; word 8 counts the lines of AHEAD vectors."""
    lines = f.load("i64", f.at("i64", "%desc", 8))
    return f.div(f.mul(lines, "%part"), "%parts"), f.div(f.mul(lines, f.add("%part", 1)), "%parts")


def _read() -> str:
    f, lanes = _function(), jit.host().vector_bits // 32
    wide = vector("i32", lanes)
    out, source = f.load("ptr", "%slots"), f.load("ptr", f.at("ptr", "%slots", 1))
    sums = [f.variable(wide, "zeroinitializer", 64) for _ in range(AHEAD)]
    low, high = _part(f)
    with f.loop(low, high) as line:
        at = f.at(wide, source, f.mul(line, AHEAD))
        for n, s in enumerate(sums):
            f.store(wide, f.plus("i32", lanes, f.load(wide, s, 64), f.load(wide, f.at(wide, at, n), 16)), s, 64)
    out = f.at(wide, out, f.mul("%part", AHEAD))
    for n, s in enumerate(sums):
        f.store(wide, f.load(wide, s, 64), f.at(wide, out, n), 16)
    return module(f)


def _copied(streamed: bool) -> int:
    """Vectors copied a round of the loop; they are in registers together, of which AVX-512 has twice as many."""
    return BURST // 64 if streamed and jit.host().vector_bits == 512 else AHEAD


def _copy(streamed: bool, vectors: int) -> str:
    f, lanes = _function(), jit.host().vector_bits // 32
    wide = vector("i32", lanes)
    target, source = f.load("ptr", "%slots"), f.load("ptr", f.at("ptr", "%slots", 1))
    low, high = _part(f)
    with f.loop(low, high) as line:
        place = f.mul(line, vectors)
        if streamed:
            far = f.at("i8", f.at(wide, source, place), FETCHED)
            for step in range(0, vectors * lanes * 4, 64):
                f.call("void", "llvm.prefetch.p0", f"ptr {f.at('i8', far, step)}", "i32 0", "i32 2", "i32 1")
        values = [f.load(wide, f.at(wide, source, f.add(place, n)), 16) for n in range(vectors)]
        for n, value in enumerate(values):
            where = f.at(wide, target, f.add(place, n))
            if streamed:
                f.do(f"store {wide} {value}, ptr {where}, align {lanes * 4}, !nontemporal !0")
            else:
                f.store(wide, value, where, 16)
    extra = ""
    if streamed and jit.host().arch == "x86_64":
        f.do("call void @llvm.x86.sse.sfence()")
        extra = "declare void @llvm.x86.sse.sfence()\n"
    return module(f, extra=extra) + ("!0 = !{i32 1}\n" if streamed else "")
