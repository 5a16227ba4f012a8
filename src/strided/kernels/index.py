"""Kernels that move elements by position: indexed reads and writes, masks, strided copies.

One template, `build_indexed`, serves gather, scatter, index_select, index_put, embedding and their accumulating forms: an element's place is
the walk's offset plus the sum of index x stride. Every index is checked where it is used, so nothing is read or written out of bounds; the
first bad one is reported through an error slot, an array of two words (1 + which index tensor, its value) that must be zero before the call.
Copies know only element sizes; what a result's shape and layout should be is the business of ops/.
"""
from __future__ import annotations

from ..layout import collapse
from . import jit, native, turn
from .loops import AHEAD, CHUNK, Body, walk_table
from .lower import Lowering, Value
from .map import STREAM
from .recipes import note_copy

PUTS = ("set", "add", "mul", "amin", "amax")
ROW_BYTES = 32  # rows at least this long are moved as a run, shorter ones element by element
LONG = 4096  # bytes of a row from which those of large results are read by index and written past the caches
SHORT = 256  # bytes of a run from which those of large copies are written past the caches
GRAIN = 1 << 15  # elements a part should have at least
TILE = 16  # elements of the source's run that are moved at a time where the target runs elsewhere;
LINES = 128  # or bytes, where vectors turn them;
STREAMED = 256  # or these, where the target is written past the caches and keeps no lines in them


def _integer(itemsize: int) -> str:
    return f"i{8 * itemsize}"


def _aligned(width: str, access: str = "") -> str:
    """Metadata of an access to an element: one of 16 bytes (complex128) lies where its parts may lie."""
    return f", align 8{access}" if width == "i128" else access


def _pack(address: int, slots: int, words: list[int], parts: int = 1, work: int = 0, result_bytes: int = 0) -> bytes:
    return native.pack_desc(address, slots, parts, work >= GRAIN, result_bytes, words)


# ---- indexed reads and writes ----------------------------------------------------------------------------------------------------


def build_indexed(op: str, dtype, shape, target, source, indices, *, wrap=True, result_bytes=0) -> bytes:
    """Descriptor of `target[walk] = source[walk + index]` (op "get") or `target[walk + index] op= source[walk]` (a put) over `shape`.

    target, source: strides in elements over `shape`, 0 along the dimensions that an index replaces.
    indices: for each index tensor (itemsize 4 or 8, its strides over `shape`, size of the dimension it indexes, that dimension's stride).
    wrap: whether negative indices count from the end. Puts are `PUTS`. Slots: target, source, the indices, error words.
    """
    size = dtype.itemsize
    walks = [[s * size for s in target], [s * size for s in source]] + [[s * width for s in strides] for width, strides, _, _ in indices]
    shape, walks = collapse(shape, *walks)
    shape, walks = list(shape), [list(w) for w in walks]
    put = op != "get"
    if put:
        _free_dimension_first(shape, walks)
    if not shape:
        shape, walks = [1], [[0] for _ in walks]
    inner = shape[-1]
    run = walks[0][-1] == size and walks[1][-1] in ((size, 0) if put else (size,)) and not any(w[-1] for w in walks[2:]) and inner * size >= ROW_BYTES
    once = run and not walks[1][-1]  # one element for the whole run: an expanded gradient
    rows = 1
    for n in shape[:-1]:
        rows *= n
    # Parts of a put must own what they write: they may share out only dimensions that no index replaces.
    split_inner = bool(walks[0][-1]) if put else rows < 64
    split_rows = not split_inner and (not put or (len(shape) > 1 and walks[0][0] != 0))
    granule = (rows // shape[0] or 1) if put and split_rows else 1
    work = rows * inner
    parts = native.parts_for(work, GRAIN) if split_inner or split_rows else 1
    parts = parts if put else native.slices_for(parts, 2 * work * size)
    kind = dtype.name if op in PUTS[1:] else _integer(size)
    widths = tuple(_integer(width) for width, *_ in indices)
    stream = run and op == "get" and work * size >= STREAM and inner * size >= LONG
    key = ("indexed", op, kind, widths, run, once, stream)
    address = jit.compile_kernel(key, lambda: _indexed(op, kind, size, widths, run, once, stream))
    words = [len(shape) - 1, rows, granule, inner, int(split_inner)] + [w[-1] for w in walks]
    for _, _, extent, stride in indices:
        words += [extent, stride * size, -extent if wrap else 0]
    words += walk_table(shape[:-1], [w[:-1] for w in walks])
    return _pack(address, len(walks) + 1, words, parts, work, result_bytes)


def _free_dimension_first(shape, walks):
    """Moves the largest dimension that no index replaces outermost, unless the innermost one is such a dimension already."""
    if len(shape) < 2 or walks[0][-1]:
        return
    free = [d for d in range(len(shape)) if walks[0][d] and not any(w[d] for w in walks[2:])]
    free = free or [d for d in range(len(shape)) if walks[0][d]]
    if free:
        d = max(free, key=lambda d: shape[d])
        for row in (shape, *walks):
            row.insert(0, row.pop(d))


def _indexed(op, kind, size, widths, run, once, stream) -> str:
    b = Body()
    lowering = Lowering(b)
    k = len(widths)
    dims, rows, granule, inner, split_inner = (b.word(i) for i in range(5))
    steps = [b.word(5 + i) for i in range(2 + k)]
    extents = [(b.word(7 + k + 3 * j), b.word(8 + k + 3 * j), b.word(9 + k + 3 * j)) for j in range(k)]
    pointers = [b.slot(i) for i in range(2 + k)]
    error = b.slot(2 + k)
    by_inner = b(f"icmp ne i64 {split_inner}, 0")
    row_low, row_high = b.share(rows, granule)
    row_low, row_high = b.select(by_inner, 0, row_low), b.select(by_inner, rows, row_high)
    low, high = b.share(inner)
    low, high = b.select(by_inner, low, 0), b.select(by_inner, high, inner)
    with b.walk(7 + 4 * k, dims, 2 + k, row_low, row_high) as (row, offsets, _):
        bases = [b.at(pointer, offset) for pointer, offset in zip(pointers, offsets)]
        if run:
            number = b.add(b.slot(0, "i64"), offsets[0]) if stream else ""
            following = _following(b, widths, bases, extents, dims, row, row_high) if stream and k == 1 else None
            _checked(b, widths, bases[2:], extents, error, lambda at: _run(lowering, op, kind, size, bases, at, low, high, once, number, following))
        else:
            with b.loop(low, high) as i:
                places = [b.at(base, b.mul(i, step)) for base, step in zip(bases, steps)]
                _checked(b, widths, places[2:], extents, error, lambda at: _one(lowering, op, kind, places, at))
    if stream:
        b.fence()
    return b.text(lowering.definitions())


def _following(b, widths, bases, extents, dims, row, row_high):
    """Where the run begins that the next of a plain sequence of indices names, as bytes behind the source; 0 where there is none. Only fetched, hence unchecked."""
    found = b.cell("i64", "0")
    more = b(f"and i1 {b(f'icmp eq i64 {dims}, 1')}, {b(f'icmp slt i64 {b.add(row, 1)}, {row_high}')}")
    with b.when(more):
        value = b.load(widths[0], b.at(bases[2], b.word(7 + 4 + 3)))
        value = value if widths[0] == "i64" else b(f"sext {widths[0]} {value} to i64")
        extent, stride, _ = extents[0]
        found.set(b.mul(b.select(b(f"icmp slt i64 {value}, 0"), b.add(value, extent), value), stride))
    return found.get()


def _checked(b, widths, places, extents, error, action):
    """Loads the indices; where all are in range runs `action` with their byte offset, else reports the first that is not."""
    offset, good, verdicts = None, None, []
    for width, place, (extent, stride, lowest) in zip(widths, places, extents):
        value = b.load(width, place)
        if width != "i64":
            value = b(f"sext {width} {value} to i64")
        fits = b(f"and i1 {b(f'icmp sge i64 {value}, {lowest}')}, {b(f'icmp slt i64 {value}, {extent}')}")
        verdicts.append((value, fits))
        wrapped = b.select(b(f"icmp slt i64 {value}, 0"), b.add(value, extent), value)
        step = b.mul(wrapped, stride)
        offset = step if offset is None else b.add(offset, step)
        good = fits if good is None else b(f"and i1 {good}, {fits}")

    def report():
        with b.when(b(f"icmp eq i64 {b.load('i64', error)}, 0")):
            for j, (value, fits) in reversed(list(enumerate(verdicts))):
                with b.when(b(f"xor i1 {fits}, true")):
                    b.store("i64", str(j + 1), error)
                    b.store("i64", value, b.at(error, "8"))

    b.either(good, lambda: action(offset), report)


def _run(lowering, op, kind, size, bases, at, low, high, once, number="", following=None):
    """A contiguous run, elements low…high of it; past the caches where the target's address is given as a number. once: the source is one element. following: bytes to
    the run that is read after it."""
    b = lowering.body
    start = b.mul(low, size)
    if op == "get":
        to, source = b.at(bases[0], start), b.at(b.at(bases[1], at), start)
    else:
        to, source = b.at(b.at(bases[0], at), start), bases[1] if once else b.at(bases[1], start)
    if number:
        length = b.mul(b.sub(high, low), size)
        after = source if following is None else b.at(b.at(bases[1], following), start)

        def ahead(at):
            place = b.add(at, 2 * CHUNK)
            inside = b(f"icmp slt i64 {place}, {length}")
            return b.at(b.select(inside, source, after, "ptr"), b.select(inside, place, b.sub(place, length)))

        b.run_past(to, b.add(number, start), source, length, ahead)
        return
    if op in ("get", "set") and not once:
        b.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        b.do(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {b.mul(b.sub(high, low), size)}, i1 false)")
        return
    if op == "set":
        value = b.load(kind, source, _aligned(kind))
        with b.loop(0, b.sub(high, low)) as i:
            b.store(kind, value, b.at(to, b.mul(i, size)), _aligned(kind))
        return
    same = lowering.load(kind, source) if once else None
    access, mark = b.parallel()
    with b.loop(0, b.sub(high, low), extra=mark) as i:
        step = b.mul(i, size)
        place = b.at(to, step)
        old, new = lowering.load(kind, place, access), same or lowering.load(kind, b.at(source, step), access)
        lowering.store(kind, _combine(lowering, op, old, new), place, access)


def _one(lowering, op, kind, places, at):
    b = lowering.body
    if op == "get":
        b.store(kind, b.load(kind, b.at(places[1], at), _aligned(kind)), places[0], _aligned(kind))
        return
    to = b.at(places[0], at)
    if op == "set":
        b.store(kind, b.load(kind, places[1], _aligned(kind)), to, _aligned(kind))
        return
    new = lowering.load(kind, places[1])
    lowering.store(kind, _combine(lowering, op, lowering.load(kind, to), new), to)


def _combine(low: Lowering, op: str, old: Value, new: Value) -> Value:
    if old.type == "bool":
        return low.apply("or" if op in ("add", "amax") else "and", old, new)
    return low.apply({"amin": "minimum", "amax": "maximum"}.get(op, op), old, new)


def build_check(itemsize: int, shape, strides, extent: int, *, wrap=True) -> bytes:
    """Descriptor of a check that every index lies in its dimension, run before a put. Slots: the index tensor, error words."""
    shape, (walk,) = collapse(shape, [s * itemsize for s in strides])
    shape, walk = shape or (1,), walk or (0,)
    width = _integer(itemsize)
    address = jit.compile_kernel(("check", width), lambda: _check(width))
    rows = 1
    for n in shape[:-1]:
        rows *= n
    words = [len(shape) - 1, rows, shape[-1], walk[-1], extent, -extent if wrap else 0]
    return _pack(address, 2, words + walk_table(shape[:-1], [walk[:-1]]), 1, rows * shape[-1])


def _check(width) -> str:
    b = Body()
    dims, rows, inner, step, extent, lowest = (b.word(i) for i in range(6))
    pointer, error = b.slot(0), b.slot(1)
    bad = b.cell("i64", "0")
    with b.walk(6, dims, 1, "0", rows) as (_, (offset,), _):
        with b.loop(0, inner) as i:
            value = b.load(width, b.at(pointer, b.add(offset, b.mul(i, step))))
            if width != "i64":
                value = b(f"sext {width} {value} to i64")
            outside = b(f"icmp uge i64 {b.sub(value, lowest)}, {b.sub(extent, lowest)}")
            first = b(f"and i1 {outside}, {b(f'icmp eq i64 {bad.get()}, 0')}")
            with b.when(first):
                bad.set("1")
                b.store("i64", "1", error)
                b.store("i64", value, b.at(error, "8"))
    return b.text()


# ---- masks -----------------------------------------------------------------------------------------------------------------------


def _mask_words(itemsize, shape, walks):
    """Rows, inner size and how parts share them, for a walk that must keep its order."""
    shape, walks = list(shape) or [1], [list(w) or [0] for w in walks]
    rows = 1
    for n in shape[:-1]:
        rows *= n
    split_inner = int(rows < 64)
    return shape, walks, rows, [len(shape) - 1, rows, shape[-1], split_inner]


def mask_parts(numel: int) -> int:
    """How many parts `build_count`, `build_nonzero` and `build_compress` should share a mask of `numel` elements between."""
    return native.parts_for(numel, GRAIN)


def _mask_shares(b):
    rows, inner, split = b.word(1), b.word(2), b(f"icmp ne i64 {b.word(3)}, 0")
    row_low, row_high = b.share(rows)
    low, high = b.share(inner)
    return b.select(split, 0, row_low), b.select(split, rows, row_high), b.select(split, low, 0), b.select(split, high, inner)


def _magnitude_mask(dtype) -> int:
    """The bits of an element that make it differ from zero: all but the signs of floats (-0.0 is zero)."""
    bits = 8 * dtype.itemsize
    whole = 2**bits - 1
    if dtype.is_complex:
        return whole ^ (1 << (bits - 1) | 1 << (bits // 2 - 1))
    return whole ^ 1 << (bits - 1) if dtype.is_floating_point else whole


def _nonzero_bit(b, width, mask, place) -> str:
    value = b.load(width, place, _aligned(width))
    if mask.bit_length() < int(width[1:]) or mask & mask + 1:
        value = b(f"and {width} {value}, {mask}")
    return b(f"zext i1 {b(f'icmp ne {width} {value}, 0')} to i64")


def build_count(dtype, shape, strides, parts: int) -> bytes:
    """Descriptor of a count of the non-zero elements, one number a part. Slots: the mask, `parts` words for the counts.

    With more than one row of a split inner dimension the parts interleave, so several parts are used only where they keep the order.
    """
    width, mask = _integer(dtype.itemsize), _magnitude_mask(dtype)
    shape, (walk,), _, words = _mask_words(dtype.itemsize, shape, [[s * dtype.itemsize for s in strides]])
    words[3] = int(len(shape) == 1)
    address = jit.compile_kernel(("count", width, mask), lambda: _count(width, mask))
    return _pack(address, 2, words + [walk[-1]] + walk_table(shape[:-1], [walk[:-1]]), parts, words[1] * words[2])


def _count(width, magnitude) -> str:
    b = Body()
    row_low, row_high, low, high = _mask_shares(b)
    step = b.word(4)
    mask, counts = b.slot(0), b.slot(1)
    total = b.cell("i64", "0")
    with b.walk(5, b.word(0), 1, row_low, row_high) as (_, (offset,), _):
        start = b.at(mask, offset)
        size = str(int(width[1:]) // 8)

        def count(stride):
            with b.loop(low, high) as i:
                total.add(_nonzero_bit(b, width, magnitude, b.at(start, b.mul(i, stride))))

        b.either(b(f"icmp eq i64 {step}, {size}"), lambda: count(size), lambda: count(step))
    b.store("i64", total.get(), b(f"getelementptr i64, ptr {counts}, i64 %part"))
    return b.text()


def build_nonzero(dtype, shape, strides, parts: int, row_stride: int, column_stride: int) -> bytes:
    """Descriptor that writes the coordinates of the non-zero elements into [count, ndim] int64 of the given strides (elements).

    Slots: result, mask, starts (`parts` + 1 words: the first result row of each part, then the count).
    """
    width, mask = _integer(dtype.itemsize), _magnitude_mask(dtype)
    shape, (walk,), _, words = _mask_words(dtype.itemsize, shape, [[s * dtype.itemsize for s in strides]])
    words[3] = int(len(shape) == 1)
    address = jit.compile_kernel(("nonzero", width, mask), lambda: _nonzero(width, mask))
    words += [walk[-1], row_stride * 8, column_stride * 8]
    return _pack(address, 3, words + walk_table(shape[:-1], [walk[:-1]]), parts, words[1] * words[2])


def _nonzero(width, magnitude) -> str:
    b = Body()
    row_low, row_high, low, high = _mask_shares(b)
    dims, step, row_stride, column_stride = b.word(0), b.word(4), b.word(5), b.word(6)
    out, mask, starts = b.slot(0), b.slot(1), b.slot(2)
    place, end = _range_of_part(b, starts)
    inner_column = b.mul(dims, column_stride)
    with b.walk(7, dims, 1, row_low, row_high) as (_, (offset,), counters):
        start = b.at(mask, offset)
        i = b.cell("i64", low)
        with b.loop_while() as unless:
            at = i.get()
            # Leaving once the count is reached keeps every store inside the result, also when the mask changes under us.
            unless(b(f"and i1 {b(f'icmp slt i64 {at}, {high}')}, {b(f'icmp slt i64 {place.get()}, {end}')}"))
            bit = _nonzero_bit(b, width, magnitude, b.at(start, b.mul(at, step)))
            line = b.at(out, b.mul(place.get(), row_stride))
            b.store("i64", at, b.at(line, inner_column))
            with b.when(b(f"icmp ne i64 {bit}, 0")):
                with b.loop(0, dims) as d:
                    value = b.load("i64", b(f"getelementptr i64, ptr {counters}, i64 {d}"))
                    column = b.sub(b.sub(dims, d), 1)
                    b.store("i64", value, b.at(line, b.mul(column, column_stride)))
            place.add(bit)
            i.add("1")
    return b.text()


def _range_of_part(b, starts):
    first = b.load("i64", b(f"getelementptr i64, ptr {starts}, i64 %part"))
    end = b.load("i64", b(f"getelementptr i64, ptr {starts}, i64 {b.add('%part', 1)}"))
    return b.cell("i64", first), end


def build_compress(op: str, dtype, shape, data, mask, parts: int) -> bytes:
    """Descriptor of masked_select ("get": packed[j++] = data where the mask holds) or masked_scatter ("set": data = packed[j++] there).

    `data` and `mask` (bool) are strides in elements over `shape`. Slots: packed, data, mask, starts as for `build_nonzero`. The shape must be the one
    that was counted, since parts begin where the count's parts began: dimensions are not merged here.
    """
    width = _integer(dtype.itemsize)
    shape, walks, _, words = _mask_words(dtype.itemsize, shape, [[s * dtype.itemsize for s in data], list(mask)])
    words[3] = int(len(shape) == 1)
    address = jit.compile_kernel(("compress", op, width), lambda: _compress(op, width))
    return _pack(address, 4, words + [w[-1] for w in walks] + walk_table(shape[:-1], [w[:-1] for w in walks]), parts, words[1] * words[2])


def _compress(op, width) -> str:
    b = Body()
    row_low, row_high, low, high = _mask_shares(b)
    steps = b.word(4), b.word(5)
    packed, data, mask, starts = (b.slot(i) for i in range(4))
    place, end = _range_of_part(b, starts)
    with b.walk(6, b.word(0), 2, row_low, row_high) as (_, (data_offset, mask_offset), _):
        i = b.cell("i64", low)
        with b.loop_while() as unless:
            at = i.get()
            unless(b(f"and i1 {b(f'icmp slt i64 {at}, {high}')}, {b(f'icmp slt i64 {place.get()}, {end}')}"))
            bit = _nonzero_bit(b, "i8", 255, b.at(mask, b.add(mask_offset, b.mul(at, steps[1]))))
            element = b.at(data, b.add(data_offset, b.mul(at, steps[0])))
            slot = b(f"getelementptr {width}, ptr {packed}, i64 {place.get()}")
            if op == "get":
                b.store(width, b.load(width, element, _aligned(width)), slot, _aligned(width))
            else:
                with b.when(b(f"icmp ne i64 {bit}, 0")):
                    b.store(width, b.load(width, slot, _aligned(width)), element, _aligned(width))
            place.add(bit)
            i.add("1")
    return b.text()


# ---- copies ----------------------------------------------------------------------------------------------------------------------


def build_copy(itemsize: int, shape, target, source, *, result_bytes=0) -> bytes:
    """Descriptor of target[...] = source[...] over `shape`; strides in elements. Slots: target, source.

    Runs are moved whole; where target and source run along different dimensions, square tiles are moved.
    """
    return note_copy(_copy_plan(itemsize, shape, target, source, result_bytes), itemsize, shape, target, source)


def _copy_plan(itemsize: int, shape, target, source, result_bytes) -> bytes:
    order = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: (-target[d], -source[d]))
    shape, walks = collapse([shape[d] for d in order], [target[d] * itemsize for d in order], [source[d] * itemsize for d in order])
    shape, (to, source) = list(shape) or [1], (list(w) or [itemsize] for w in walks)
    numel = 1
    for n in shape:
        numel *= n
    parts = native.slices_for(native.parts_for(numel, GRAIN), 2 * numel * itemsize)
    width = _integer(itemsize)
    across = [d for d in range(len(shape) - 1) if source[d] == itemsize]
    if across and to[-1] == itemsize and source[-1] != itemsize and shape[across[0]] >= 4 and shape[-1] >= 4:
        d = across[0]
        n, m = shape.pop(d), shape.pop()  # n: the source's run; m: the target's
        words = [n, m, to.pop(d), source.pop()]
        to.pop(), source.pop(d)
        outer = numel // (n * m) if numel else 0
        vector = turn.lanes(itemsize) * itemsize if itemsize in turn.TYPES else 0
        stream = vector == 64 and result_bytes >= STREAM and not any(s % 64 for s in (*to, words[2]))
        tiles = -(-n // _tile(itemsize, stream))
        address = jit.compile_kernel(("copy", "tile", width, stream), lambda: _copy_tiles(width, itemsize, stream))
        words = [len(shape), outer * tiles, tiles, *words] + walk_table(shape, [to, source])
        return _pack(address, 2, words, parts, numel, result_bytes)
    run = to[-1] == source[-1] == itemsize and shape[-1] * itemsize >= ROW_BYTES
    rows = 1
    for n in shape[:-1]:
        rows *= n
    stream = run and numel * itemsize >= STREAM and shape[-1] * itemsize >= SHORT
    address = jit.compile_kernel(("copy", run, width, stream), lambda: _copy_rows(run, width, itemsize, stream))
    words = [len(shape) - 1, rows, shape[-1], int(rows < 64), to[-1], source[-1]] + (walk_table(shape[:-1], [to[:-1], source[:-1]]) or [0] * 3)
    return _pack(address, 2, words, parts, numel, result_bytes)


def _copy_rows(run, width, size, stream) -> str:
    b = Body()
    row_low, row_high, low, high = _mask_shares(b)
    steps = b.word(4), b.word(5)
    with b.walk(6, b.word(0), 2, row_low, row_high) as (_, offsets, _):
        to, source = (b.at(b.slot(i), offset) for i, offset in enumerate(offsets))
        if stream:
            start, length = b.mul(low, size), b.mul(b.sub(high, low), size)
            step, row = b.word(8), b.mul(b.word(2), size)  # to the next run, and how long one is
            number = b.add(b.add(b.slot(0, "i64"), offsets[0]), start)
            origin = b.at(source, start)
            skipped = b.add(b.div(AHEAD, row), 1)  # runs that are shorter than what is fetched ahead

            def ahead(at):
                place = b.add(at, AHEAD)
                inside = b(f"icmp slt i64 {place}, {length}")
                beyond = b.select(b(f"icmp slt i64 {row}, {AHEAD}"), b.add(at, b.mul(skipped, step)), b.add(b.sub(place, length), step))
                return b.at(origin, b.select(inside, place, beyond))

            b.run_past(b.at(to, start), number, origin, length, ahead)
        elif run:
            b.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
            start = b.mul(low, size)
            length = b.mul(b.sub(high, low), size)
            b.do(f"call void @llvm.memmove.p0.p0.i64(ptr {b.at(to, start)}, ptr {b.at(source, start)}, i64 {length}, i1 false)")
        else:
            access, mark = b.parallel()
            with b.loop(low, high, extra=mark) as i:
                value = b.load(width, b.at(source, b.mul(i, steps[1])), _aligned(width, access))
                b.store(width, value, b.at(to, b.mul(i, steps[0])), _aligned(width, access))
    if stream:
        b.fence()
    return b.text()


def _copy_tiles(width, size, stream) -> str:
    """A stripe of the source's runs at a time: its lines are read while they are in cache, the target is written in runs."""
    b = Body()
    dims, items, tiles, n, m, to_step, source_step = (b.word(i) for i in range(7))
    low, high = b.share(items)
    pointers = b.slot(0), b.slot(1)
    # The walk moves over the outer dimensions; parts may begin inside one of them.
    outer_low, outer_high = b.div(low, tiles), b.div(b.add(high, b.sub(tiles, 1)), tiles)
    with b.walk(7, dims, 2, outer_low, outer_high) as (row, offsets, _):
        to, source = (b.at(p, o) for p, o in zip(pointers, offsets))
        begin = b.sub(low, b.mul(row, tiles))
        begin = b.select(b(f"icmp slt i64 {begin}, 0"), 0, begin)
        end = b.min(b.sub(high, b.mul(row, tiles)), tiles)
        with b.loop(begin, end) as tile:
            first = b.mul(tile, _tile(size, stream))
            if size in turn.TYPES:  # the last stripe is as wide as the others, if there is room
                early = b.min(first, b.sub(n, _tile(size, stream)))
                first = b.select(b(f"icmp slt i64 {early}, 0"), first, early)
            last = b.min(b.add(first, _tile(size, stream)), n)
            if size in turn.TYPES:
                line, column = b.at(to, b.mul(first, to_step)), b.at(source, b.mul(first, size))
                b.do(f"call void @turn(ptr {line}, ptr {column}, i64 {b.sub(last, first)}, i64 {m}, i64 {to_step}, i64 {source_step})")
            else:
                _turn_singly(b, (to, source), (first, last), m, (to_step, source_step), width, size)
    if stream:
        b.tail.append("!900 = !{i32 1}")
        if jit.host().arch == "x86_64":
            b.declare("declare void @llvm.x86.sse.sfence()")
            b.do("call void @llvm.x86.sse.sfence()")
    return b.text(turn.turn(size, stream, (STREAMED if stream else LINES) // 64) if size in turn.TYPES else "")


def _tile(size, stream) -> int:
    return (STREAMED if stream else LINES) // size if size in turn.TYPES else TILE


def _turn_singly(b, pointers, rows, m, steps, width, size) -> None:
    """The same for elements that no vector holds: complex128."""
    with b.loop(0, m, TILE) as j0:
        j1 = b.min(b.add(j0, TILE), m)
        with b.loop(*rows) as i:
            line, column = b.at(pointers[0], b.mul(i, steps[0])), b.at(pointers[1], b.mul(i, size))
            access, mark = b.parallel()
            with b.loop(j0, j1, extra=mark) as j:
                value = b.load(width, b.at(column, b.mul(j, steps[1])), _aligned(width, access))
                b.store(width, value, b.at(line, b.mul(j, size)), _aligned(width, access))
