"""Maps of a product's result, computed block by block while the block is in cache: the epilogue of packed products.

`build_epilogue` prepares a map over [m, n] for it; the product's kernel (gemm_ir.py) calls the `driver` with each finished block of C. The driver hands the block to
the map's own kernel with the addresses moved there, so that neither the product nor the map needs code of its own for the pair.

What the driver reads: slots of the map, length of the map's descriptor, the product's slot where the map's begin, bytes from row to row and from
column to column for each slot, then the map's descriptor.
"""
from __future__ import annotations

import struct
from typing import NamedTuple

from . import gemm_ir, jit
from .loops import HEADER
from .lower import ITEMSIZE, name_of
from .map import build_map

SLOTS = 16  # of the map, at most
WORDS = 64  # of its descriptor, at most

_DRIVER = f"""
define void @kernel(ptr %what, ptr %slots, i64 %row, i64 %rows, i64 %col, i64 %cols) {{
entry:
  %desc = alloca [{WORDS} x i64], align 64
  %own = alloca [{SLOTS} x i64], align 64
  %count = load i64, ptr %what
  %lengthp = getelementptr i64, ptr %what, i64 1
  %length = load i64, ptr %lengthp
  %firstp = getelementptr i64, ptr %what, i64 2
  %first = load i64, ptr %firstp
  %given = getelementptr i64, ptr %slots, i64 %first
  %steps = getelementptr i64, ptr %what, i64 3
  %twice = shl i64 %count, 1
  %source = getelementptr i64, ptr %steps, i64 %twice
  br label %copy
copy:
  %i = phi i64 [0, %entry], [%i2, %copy]
  %fromp = getelementptr i64, ptr %source, i64 %i
  %word = load i64, ptr %fromp
  %top = getelementptr i64, ptr %desc, i64 %i
  store i64 %word, ptr %top
  %i2 = add i64 %i, 1
  %copied = icmp slt i64 %i2, %length
  br i1 %copied, label %copy, label %sizes
sizes:
  %np = getelementptr i64, ptr %desc, i64 {HEADER}
  store i64 %cols, ptr %np
  %rp = getelementptr i64, ptr %desc, i64 {HEADER + 1}
  store i64 %rows, ptr %rp
  br label %slot
slot:
  %k = phi i64 [0, %sizes], [%k2, %slot]
  %k2x = shl i64 %k, 1
  %downp = getelementptr i64, ptr %steps, i64 %k2x
  %acrossp = getelementptr i64, ptr %downp, i64 1
  %down = load i64, ptr %downp
  %across = load i64, ptr %acrossp
  %a = mul i64 %down, %row
  %b = mul i64 %across, %col
  %ab = add i64 %a, %b
  %atp = getelementptr i64, ptr %given, i64 %k
  %at = load i64, ptr %atp
  %moved = add i64 %at, %ab
  %ownp = getelementptr i64, ptr %own, i64 %k
  store i64 %moved, ptr %ownp
  %k2 = add i64 %k, 1
  %more = icmp slt i64 %k2, %count
  br i1 %more, label %slot, label %go
go:
  %fn = load ptr, ptr %desc
  call void %fn(ptr %desc, ptr %own, i64 0, i64 1)
  ret void
}}
"""


class Epilogue(NamedTuple):
    """driver: its address; slots: that the map takes, behind the product's own; words: what the driver reads, but for the first slot's number."""

    driver: int
    slots: int
    words: tuple


def rows_of(product: bytes) -> tuple[int, int, int] | None:
    """(rows, columns, bytes of the result) of a product that takes an epilogue: the packed one of one matrix into fresh memory; None for others."""
    words = memoryview(product).cast("q").tolist()
    if key_of(product)[:2] != ("matmul", repr("packed")) or words[gemm_ir.AFTER]:
        return None
    value = lambda name: words[gemm_ir.FIRST + gemm_ir.WORDS.index(name)]
    if value("batch_dims") or value("csc") != 1 or value("rsc") != value("n") or not words[4]:
        return None
    return value("m"), value("n"), words[4]


def with_epilogue(product: bytes, epilogue: Epilogue) -> bytes:
    """The product's descriptor with a map over its result, as one matrix of rows; the map's slots follow the product's. Raises NotImplementedError for others than `rows_of` knows."""
    if rows_of(product) is None:
        raise NotImplementedError("only packed products of one matrix take a map as their epilogue")
    words = memoryview(product).cast("q").tolist()
    words[gemm_ir.AFTER], words[gemm_ir.AFTER_WORDS] = epilogue.driver, len(words)
    slots, words[1] = words[1], words[1] + epilogue.slots
    return struct.pack(f"<{len(words) + len(epilogue.words) + 1}q", *words, *epilogue.words[:2], slots, *epilogue.words[2:])


_KEYS: dict[int, tuple] = {}  # address → key of the kernel there


def key_of(descriptor: bytes) -> tuple:
    """The key of a descriptor's kernel; () where that is not known."""
    address = memoryview(descriptor).cast("q")[0]
    if address not in _KEYS:
        _KEYS.update((found, key) for key, found in list(jit._addresses.items()) if type(key) is tuple)
    return _KEYS.get(address, ())


def fits(outs, ins) -> bool:
    """Whether a map over [m, n] has blocks: no positions, rows of all operands run along n, at least two of three columns."""
    m, n = outs[0][1].shape
    moving = [o for o in (*outs, *ins) if o[0] != "param"]
    few = len(outs) + len(ins) <= SLOTS and HEADER + 3 + 2 * len(moving) <= WORDS
    return m > 1 and n > 2 and few and all(kind != "index" and layout.strides[1] in (0, 1) for kind, layout in moving)


def build_epilogue(exprs, outs, ins) -> Epilogue:
    """The map as build_map takes it, results and tensors laid out over [m, n], the first result row-major. Raises NotImplementedError for one that does not fit."""
    if not fits(outs, ins):
        raise NotImplementedError("an epilogue takes maps over the product's rows, at least two of three columns")
    n = outs[0][1].shape[1]
    slots, moving = len(outs) + len(ins), [o for o in (*outs, *ins) if o[0] != "param"]
    sizes = [(0, 0) if kind == "param" else tuple(s * ITEMSIZE[name_of(kind)] for s in layout.strides) for kind, layout in (*outs, *ins)]
    narrow = lambda o: o if o[0] == "param" else (o[0], o[1].narrow(0, 0, 2)[0].narrow(1, 0, n - 1)[0])
    # Rows that do not touch are not merged into one: the kernel keeps its two loops, and the driver says how long they are.
    plan = build_map(exprs, [narrow(o) for o in outs], [narrow(o) for o in ins], threads=False)
    words = memoryview(plan).cast("q").tolist()
    if len(words) != HEADER + 3 + 2 * len(moving) or words[HEADER : HEADER + 2] != [n - 1, 2]:
        raise NotImplementedError("an epilogue takes maps of two plain loops")
    driver = jit.compile_kernel(("epilogue",), lambda: _DRIVER)
    return Epilogue(driver, slots, (slots, len(words), *(step for pair in sizes for step in pair), *words))
