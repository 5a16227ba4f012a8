"""The map template: every element of the results is an expression of the elements of the inputs at the same place of a strided space.

Holds the choice of loop order, the loops' code and their descriptors. Does not know operators, promotion or broadcasting: layouts come broadcast,
`compute` says in which dtype to calculate, and the expression says what.

A kernel is two loops, rows of elements, specialised on the expression, the dtypes and how each operand moves along a row ("c" next to each other,
"s" stays, "g" any other stride, "i" counts positions); sizes and strides are words of the descriptor. Spaces of more dimensions are walked by one
kernel for all, `walker_text`, that calls the two loops for each of their outer places. Where an input runs along another dimension than the results
(x + y.T), the places are tiles of both dimensions, so that each line of the input is used up while it is in cache.

Words of the two loops: elements a row, rows, how parts share (0: rows; ALIGN - 1: elements of each row), the operands' steps along a row, their
steps from row to row.
Words of the walker: address of the loops, outer places, dims, slots, whether parts share the places (1) or are handed on (0), where the loops'
descriptor starts and its length, whether the two fastest dimensions count tiles, the whole lengths of rows and columns, the walk table of the outer
dimensions, then the loops' descriptor with its header.
"""
from __future__ import annotations

import math
from collections.abc import Sequence

from ..layout import collapse
from . import complex, jit, native
from . import expr as E
from .loops import AHEAD, MAX_DIMS, Body, chunk_of, walk_table
from .lower import ITEMSIZE, MEMORY, Lowering, Value, compute_type, name_of
from .recipes import note

GRAIN = 1 << 15       # additions a part should have at least, 4 µs of them: a thread that is awake takes over in half of one, one that sleeps comes too late for less
LONG = 50_000         # nanoseconds from which a kernel gives up the GIL
ALIGN = 64            # elements; parts of the inner loop start at multiples of it
TILE = (16, 64)       # rows, elements of a row: a line of the input that runs along the rows holds 16 float32
STREAM = 16 << 20     # bytes of a fresh result from which it is written past the caches: nobody will find it there, and lines need not be read first
FILLED = 24 << 20     # the same for one that is made of nothing: all there is then moves once, and what comes next may still find it in the outermost cache
WHOLE = 1 << 9        # elements of a row from which it does not matter that its ends are no whole lines
WALKER = 10           # words of the walker before its table


def build_map(exprs: Sequence[E.Expr] | E.Expr, outs: Sequence[tuple], ins: Sequence[tuple], *, compute=None, result_bytes: int = 0,
              threads: bool = True) -> bytes:
    """Descriptor of `outs[k][place] = exprs[k](ins[...][place])` for every place of a shape.

    exprs: one expression an output, reading inputs as param(0), param(1), ….
    outs, ins: (dtype, layout) with every layout of one shape; an input may also be ("param", "f64" | "i64"), a scalar passed in its slot, or
    ("index", d), the int64 position along dimension d (takes no slot).
    compute: dtype that tensor elements are converted to on loading, or one (or None) an input; None leaves them as they are.
    result_bytes: size of the fresh first result, for `native.launch_new`. Slots: addresses of outs, then addresses and scalars of ins.
    """
    return note(_descriptor(exprs, outs, ins, compute, result_bytes, threads), exprs, outs, ins, compute)


def _descriptor(exprs, outs, ins, compute, result_bytes, threads) -> bytes:
    exprs = (exprs,) if isinstance(exprs, E.Expr) else tuple(exprs)
    if len(exprs) != len(outs):
        raise ValueError(f"build_map got {len(exprs)} expressions for {len(outs)} results")
    exprs = complex.of_parts(exprs, ins, compute)
    shape = tuple(outs[0][1].shape)
    kinds, strides = _operands(shape, outs, ins)
    sizes, strides = _loop_order(shape, strides, len(outs))
    classes = "".join(_inner_class(k, s[-1], sizes[-1]) for k, s in zip(kinds, strides))
    in_compute = tuple(None if c is None else name_of(c) for c in (compute if isinstance(compute, tuple | list) else [compute] * len(ins)))
    in_kinds = tuple(f"param {i[1]}" if i[0] == "param" else "index" if i[0] == "index" else name_of(i[0]) for i in ins)
    out_names = tuple(name_of(dtype) for dtype, _ in outs)
    tiled = _rows_of_tiles(sizes, strides[len(outs):]) if math.prod(sizes) >= GRAIN else None
    whole = not any(s % 64 for s in strides[0][:-1])  # rows begin at lines where the result does
    stream = ahead = 0
    if result_bytes >= (STREAM if any(c in "cg" for c in classes[1:]) else FILLED) and len(outs) == 1 and classes[0] == "c" and (whole or sizes[-1] >= WHOLE and tiled is None):
        stream, ahead = (chunk_of(sizes[-1], max(ITEMSIZE[k] for k in kinds if k != "index")), AHEAD) if tiled is None else (TILE[1], 0)  # what lies ahead of a tile's row is not read soon
    key = ("map", E.key_of(exprs), out_names, in_kinds, in_compute, classes, stream, ahead)
    address = jit.compile_kernel(key, lambda: map_text(exprs, out_names, in_kinds, in_compute, classes, stream, ahead))
    parts, long = _split(exprs, math.prod(sizes), classes, sum(ITEMSIZE[k] for k in kinds if k != "index"), threads)
    slots = len(outs) + sum(i[0] != "index" for i in ins)
    if tiled is not None:
        order = [d for d in range(len(sizes) - 1) if d != tiled] + [tiled, len(sizes) - 1]
        sizes, strides = tuple(sizes[d] for d in order), [tuple(s[d] for d in order) for s in strides]
    rows, inner = sizes[-2] if len(sizes) > 1 else 1, sizes[-1]
    steps = [s[-1] for s in strides]
    row_steps = [s[-2] if len(sizes) > 1 else 0 for s in strides]
    if tiled is not None:
        words = [TILE[1], TILE[0], 0, *steps, *row_steps]
        return _walked(address, slots, parts, long, result_bytes, words, sizes, _slot_strides(ins, len(outs), strides), True)
    words = [inner, rows, ALIGN - 1 if rows < 8 * parts else 0, *steps, *row_steps]
    if len(sizes) <= 2 and "i" not in classes:
        return native.pack_desc(address, slots, parts, long, result_bytes, words)
    return _walked(address, slots, parts, long, result_bytes, words, sizes, _slot_strides(ins, len(outs), strides), False)


def _rows_of_tiles(sizes, inputs) -> int | None:
    """The dimension along which some input runs, if it is not the innermost and both are long; None where plain rows do."""
    for strides in inputs:
        steps = [abs(s) for s in strides]
        near = min((d for d in range(len(sizes)) if steps[d]), key=lambda d: steps[d], default=None)
        if near is not None and steps[-1] > steps[near] and sizes[near] >= TILE[0] and sizes[-1] >= TILE[0]:
            return near
    return None


def _walked(address, slots, parts, long, result_bytes, words, sizes, strides, tiled):
    """Descriptor of the walker around the two loops. `strides`: one sequence of byte strides a slot, positions behind the others."""
    if tiled:  # the tiles' dimensions last, those of the rows fastest: the input's lines follow each other
        counts = [-(-sizes[-1] // TILE[1]), -(-sizes[-2] // TILE[0])]
        outer, walks = [*sizes[:-2], *counts], [[*s[:-2], s[-1] * TILE[1], s[-2] * TILE[0]] for s in strides]
    else:
        outer, walks = sizes[:-2], [s[:len(sizes[:-2])] for s in strides]
    places, table = math.prod(outer), walk_table(outer, walks)
    shared = tiled or places >= 8 * parts
    walker = jit.compile_kernel(("map walker",), walker_text)
    lengths = (sizes[-2], sizes[-1]) if tiled else (0, 0)
    head = [address, places, len(outer), len(strides), int(shared), 8 + WALKER + len(table), len(words) + 8, int(tiled), *lengths]
    return native.pack_desc(walker, slots, parts, long, result_bytes, [*head, *table, *[0] * 8, *words])


def _slot_strides(ins, outputs, strides):
    """The strides of what each slot holds: none for scalars; positions have virtual slots at the end."""
    moving = iter(strides[outputs:])
    real, positions = list(strides[:outputs]), []
    for i in ins:
        (positions if i[0] == "index" else real).append((0,) * len(strides[0]) if i[0] == "param" else next(moving))
    return real + positions


def _operands(shape, outs, ins):
    """Dtype name ("index" for positions) and byte strides of everything that moves: results, then tensors and positions among the inputs."""
    kinds, strides = [], []
    for dtype, layout in [*outs, *(i for i in ins if i[0] != "param")]:
        if dtype == "index":
            kinds.append("index")
            strides.append([int(d == layout % len(shape)) for d in range(len(shape))])
            continue
        if tuple(layout.shape) != shape:
            raise ValueError(f"build_map needs operands of one shape, got {tuple(layout.shape)} beside {shape}: expand them first")
        name = name_of(dtype)
        kinds.append(name)
        strides.append([s * ITEMSIZE[name] for s in layout.strides])
    return kinds, strides


def _loop_order(shape, strides, outputs):
    """Sizes and strides with dimensions ordered so that results are walked from near to far, then merged; at least one dimension remains."""
    dims = sorted(range(len(shape)), key=lambda d: [-abs(s[d]) for s in strides])  # stable: equal walks keep their order
    if 0 in shape:
        return (0,), [(0,)] * len(strides)
    sizes, walks = collapse([shape[d] for d in dims], *([s[d] for d in dims] for s in strides))
    if not sizes:
        return (1,), [(0,)] * len(strides)
    return sizes, walks


def _inner_class(kind: str, stride: int, size: int) -> str:
    if kind == "index":
        return "i"
    if size <= 1 or stride == ITEMSIZE[kind]:  # a single element shares the contiguous kernel
        return "c"
    return "s" if stride == 0 else "g"


def _split(exprs, numel, classes, bytes_each, threads):
    """(parts, whether to release the GIL) from a rough cost in additions of one contiguous float32."""
    cost = max(1, computed(exprs), bytes_each / 12, 4 * classes.count("g"))
    parts = native.slices_for(native.parts_for(int(numel * cost), GRAIN), numel * bytes_each) if threads else 1
    return parts, numel * cost * 0.2 > LONG


def computed(exprs) -> float:
    """What an element's arithmetic costs, in additions that wait for the cache: eight operations beside it are free on the widest registers."""
    return E.work(exprs) * 64 / jit.host().vector_bits


def map_text(exprs, out_names, in_kinds, in_compute, classes, stream=0, ahead=0) -> str:
    """IR text of the two loops; the inner one is a function of its own, which keeps LLVM's loop passes from weighing both together."""
    row, names = _row_text(exprs, out_names, in_kinds, in_compute, classes, stream, ahead)
    b = Body()
    n, rows = b.word(0), b.word(1)
    slots, count = iter(range(len(names) + len(in_kinds))), sum(k != "index" for k in in_kinds) + len(out_names)
    starts = [b.slot(next(slots)) for _ in out_names]
    for kind in in_kinds:
        if kind == "index":
            starts.append(b.slot(count, "i64"))
            count += 1
        elif kind.startswith("param"):
            next(slots)
        else:
            starts.append(b.slot(next(slots)))
    row_steps = [b.word(3 + len(names) + k) for k in range(len(names))]
    low, high, first, last = _share(b, n, rows)
    with b.loop(first, last) as at:
        bases = [(b.add if c == "i" else b.at)(start, b.mul(at, step)) for start, step, c in zip(starts, row_steps, classes)]
        arguments = ", ".join(f"{'i64' if c == 'i' else 'ptr'} {base}" for base, c in zip(bases, classes))
        if stream:
            arguments += f", i64 {b.add(b.slot(0, 'i64'), b.mul(at, row_steps[0]))}"
        b.do(f"call void @row(ptr %desc, ptr %slots, i64 {low}, i64 {high}, {arguments})")
    if stream:
        b.fence()
    return b.text(row)


def _row_text(exprs, out_names, in_kinds, in_compute, classes, stream, ahead) -> tuple[str, list[str]]:
    """IR text of `@row(desc, slots, low, high, base of each operand)`, elements low…high of a row; and the formats of the operands."""
    b = Body()
    lowering = Lowering(b)
    names = [*out_names, *(k for k in in_kinds if not k.startswith("param"))]  # operands that move
    bases = [f"%base{k}" for k in range(len(names))]
    steps = {k: b.word(3 + k) for k, c in enumerate(classes) if c in "gi"}
    moving = [i for i, kind in enumerate(in_kinds) if not kind.startswith("param")]
    inputs = list(enumerate(moving, len(out_names)))  # (operand, index of the input)
    slot, around = len(out_names), {}
    for i, kind in enumerate(in_kinds):
        if kind.startswith("param"):
            real = kind.endswith("f64")
            around[E.param(i)] = Value(b.slot(slot, "double" if real else "i64"), "weak float" if real else "weak int")
        slot += kind != "index"

    def bind(values, i, value):
        values[E.param(i)] = value if in_compute[i] is None else lowering.convert(value, compute_type(in_compute[i]))

    def place(k, at):
        if classes[k] == "c":
            memory = "i16" if ITEMSIZE[names[k]] == 2 else MEMORY[names[k]]
            return b(f"getelementptr inbounds {memory}, ptr {bases[k]}, i64 {at}")
        return b.at(bases[k], b.mul(at, steps[k]))

    for k, i in inputs:
        if classes[k] == "s":
            bind(around, i, lowering.load(names[k], bases[k]))
    access, mark = b.parallel()  # iterations are independent: no overlap checks when vectorising

    def element(at, target):
        inside = dict(around)
        for k, i in inputs:
            if classes[k] == "i":
                bind(inside, i, Value(b.add(bases[k], b.mul(at, steps[k])), "int64"))
            elif classes[k] != "s":
                bind(inside, i, lowering.load(names[k], place(k, at), access))
        results = [lowering.emit(e, inside) for e in exprs]  # every load before the first store: results may lie on inputs
        for k, result in enumerate(results):
            lowering.store(names[k], result, target(k), access)

    if stream:
        sources = [(bases[k], ITEMSIZE[names[k]], ahead) for k, _ in inputs if ahead and classes[k] == "c"]
        b.streamed(bases[0], ITEMSIZE[names[0]], "%low", "%high", mark, "%number", lambda at, address: element(at, lambda k: address), sources, stream)
    else:
        with b.loop("%low", "%high", extra=mark) as at:
            element(at, lambda k: place(k, at))
    arguments = ", ".join(f"{'i64' if c == 'i' else 'ptr'} {base}" for base, c in zip(bases, classes)) + ", i64 %number" * bool(stream)
    head = f"define internal void @row(ptr noalias readonly %desc, ptr noalias readonly %slots, i64 %low, i64 %high, {arguments}) noinline {jit.ATTRIBUTES} {{"
    return "\n".join([lowering.definitions(), head, "entry:", *b.entry, *b.lines, "  ret void", "}", *b.tail]), names


def _share(b: Body, n: str, rows: str) -> list[str]:
    """This part's range of elements and of rows; equal shares, cut within rows at multiples of ALIGN."""
    cells = [b.cell("i64", value) for value in ("0", n, "0", rows)]
    with b.when(b("icmp ne i64 %parts, 1")):
        mask = b.word(2)
        within = b(f"icmp ne i64 {mask}, 0")
        total = b.select(within, n, rows)
        share = b.add(b.div(b.sub(b.add(total, "%parts"), 1), "%parts"), mask)
        share = b(f"and i64 {share}, {b(f'xor i64 {mask}, -1')}")
        low = b.min(b.mul(share, "%part"), total)
        high = b.min(b.add(low, share), total)
        ranges = b.select(within, low, 0), b.select(within, high, n), b.select(within, 0, low), b.select(within, rows, high)
        for cell, bound in zip(cells, ranges):
            cell.set(bound)
    return [cell.get() for cell in cells]


def walker_text() -> str:
    """IR text of the walk over outer dimensions: moves a copy of the slots from place to place and calls the two loops there."""
    b = Body()
    places, dims, slots, shared, start, length, tiled, all_rows, all_inner = (b.word(i) for i in range(1, 10))
    loops = b.load("ptr", b("getelementptr i64, ptr %desc, i64 8"))
    given = b.load("i64", b("getelementptr i64, ptr %desc, i64 1"))
    own = b.cell(f"[{2 * native.MAX_SLOTS} x i64]").name
    inner = b.cell(f"[{16 + 4 * native.MAX_SLOTS} x i64]").name
    counters = b.cell(f"[{MAX_DIMS} x i64]").name
    in_tiles = b(f"icmp ne i64 {tiled}, 0")

    def item(array, index):
        return b(f"getelementptr i64, ptr {array}, i64 {index}")

    with b.loop(0, slots) as k:
        content = b.cell("i64", "0")
        with b.when(b(f"icmp slt i64 {k}, {given}")):
            content.set(b.load("i64", item("%slots", k)))
        b.store("i64", content.get(), item(own, k))
    with b.loop(0, length) as k:
        b.store("i64", b.load("i64", item("%desc", b.add(start, k))), item(inner, k))
    by_place = b(f"icmp ne i64 {shared}, 0")
    low, high = b.share(places)
    low, high = b.select(by_place, low, 0), b.select(by_place, high, places)
    part, parts = b.select(by_place, 0, "%part"), b.select(by_place, 1, "%parts")
    width = b.add(slots, 1)

    def move(entry, times):
        """Moves every slot `times` strides along the dimension whose table entry is `entry`."""
        with b.loop(0, slots) as k:
            step = b.mul(b.word(b.add(b.add(entry, k), 1)), times)
            b.store("i64", b.add(b.load("i64", item(own, k)), step), item(own, k))

    rest = b.cell("i64", low)
    with b.loop(0, dims) as d:
        entry = b.add(b.mul(d, width), WALKER)
        size, value = b.word(entry), rest.get()
        at = b(f"urem i64 {value}, {size}")
        rest.set(b.div(value, size))
        b.store("i64", at, item(counters, d))
        move(entry, at)
    with b.loop(low, high):
        with b.when(in_tiles):  # the last tile of a row or column is what remains
            for word, dim, tile, whole in ((8, 1, TILE[1], all_inner), (9, 0, TILE[0], all_rows)):
                begin = b.mul(b.load("i64", item(counters, dim)), tile)
                b.store("i64", b.min(b.sub(whole, begin), tile), item(inner, word))
        b.do(f"call void {loops}(ptr {inner}, ptr {own}, i64 {part}, i64 {parts})")
        d = b.cell("i64", "0")
        with b.loop_while() as unless:
            at = d.get()
            unless(b(f"icmp slt i64 {at}, {dims}"))
            entry = b.add(b.mul(at, width), WALKER)
            size, value = b.word(entry), b.add(b.load("i64", item(counters, at)), 1)
            b.store("i64", value, item(counters, at))
            move(entry, 1)
            unless(b(f"icmp sge i64 {value}, {size}"))
            b.store("i64", "0", item(counters, at))
            move(entry, b.sub(0, size))
            d.add("1")
    return b.text()
