"""Maxima of windows whose channels lie innermost, or whose sizes differ (adaptive pools), and where they are; and the gradient that is put back there.

x and out are walked with their own strides. With channels innermost a vector of them is compared at a time, else one element after the other. Windows that slide
over rows are pool.py's.
"""
from __future__ import annotations

from . import jit, native
from .gemm_text import AS_WRITTEN, SIZES, TYPES, Function, module, vector
from .matmul import GIL_GRAIN, tile_for

GRAIN = 1 << 15  # elements that a part should read at least
FIRST = 8
WORDS = "channels o0 o1 o2 size_h size_w xb xc xd xh xw ob oc od oh ow e0 e1 e2 items".split()
LOWEST = "0xFFF0000000000000"  # minus infinity


def build_windows(dtype, out, x, windows, dilation, indices: bool, result_bytes: int = 0) -> bytes:
    """Descriptor of the largest element of each window of x [N, C, D, H, W] and, with `indices`, its place in the plane (int64), both laid out as `out` [N, C, O..].

    windows: for each of the three dimensions, (first element, number of elements) of every window; elements are `dilation` apart. The first of equal elements
    wins, and any NaN. Slots: results, (places,) x.
    """
    last = x.strides[1] == out.strides[1] == 1 and x.shape[1] > 1
    address = jit.compile_kernel(("windows", dtype.name, last, indices), lambda: _maximum(dtype.name, last, indices, jit.host().attributes))
    batch, channels = x.shape[:2]
    places = out.shape[2] * out.shape[3] * out.shape[4]
    items = batch * places if last else batch * channels * places
    total = batch * channels
    for axis in windows:
        total *= sum(count for _, count in axis)
    parts = max(1, min(native.parts_for(total, GRAIN), max(items, 1)))
    words = [channels, *out.shape[2:], *x.shape[3:], *x.strides, *out.strides, *dilation, items]
    words += [word for axis in windows for window in axis for word in window]
    return native.pack_desc(address, 2 + indices, parts, total > GIL_GRAIN, result_bytes, words)


def _maximum(name: str, last: bool, indices: bool, attributes: str) -> str:
    memory, acc = TYPES[name]
    w = tile_for(acc).width if last else 1
    half = tile_for(acc).half
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes + AS_WRITTEN, linkage="dso_local")
    word = {n: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, n in enumerate(WORDS)}
    slots = [f.load("ptr", f.at("ptr", "%slots", n)) for n in range(2 + indices)]
    out, index, x = slots[0], slots[-2], slots[-1]
    table = f.at("i64", "%desc", FIRST + len(WORDS))
    tables = [table, f.at("i64", table, f.mul(word["o0"], 2)), f.at("i64", table, f.mul(f.add(word["o0"], word["o1"]), 2))]
    begin, end = f.share(word["items"])
    with f.loop(begin, end) as item:
        places, left = [], item
        for size in ("o2", "o1", "o0"):
            places.append(f.rem(left, word[size]))
            left = f.div(left, word[size])
        places.reverse()
        entry, channel = (left, 0) if last else (f.div(left, word["channels"]), f.rem(left, word["channels"]))
        source, target = f.mul(entry, word["xb"]), f.mul(entry, word["ob"])
        if not last:
            source, target = f.add(source, f.mul(channel, word["xc"])), f.add(target, f.mul(channel, word["oc"]))
        for place, step in zip(places, ("od", "oh", "ow")):
            target = f.add(target, f.mul(place, word[step]))
        firsts, counts = [], []
        for place, axis in zip(places, tables):
            at = f.at("i64", axis, f.mul(place, 2))
            firsts.append(f.load("i64", at))
            counts.append(f.load("i64", f.at("i64", at, 1)))
        flat = lambda z, i, j: f.add(f.mul(f.add(f.mul(z, word["size_h"]), i), word["size_w"]), j)
        start = flat(*firsts)

        def channels(c, lanes, source=source, target=target, firsts=firsts, counts=counts, start=start):
            wide, ints, bits = vector(acc, lanes), vector("i32", lanes), vector("i1", lanes)
            best, which = f.variable(wide, None, 64), f.variable(ints, None, 64)
            f.store(wide, f.constant(acc, LOWEST, lanes), best, 64)
            f.store(ints, f.splat("i32", f.op(f"trunc i64 {start} to i32"), lanes), which, 64)
            here = f.at(memory, x, f.add(source, c) if c else source)
            with f.loop(0, counts[0]) as z, f.loop(0, counts[1]) as i:
                depth, row = (f.add(first, f.mul(n, word[e])) for first, n, e in zip(firsts, (z, i), ("e0", "e1")))
                line = f.at(memory, here, f.add(f.mul(depth, word["xd"]), f.mul(row, word["xh"])))
                number = flat(depth, row, 0)
                with f.loop(0, counts[2]) as j:
                    column = f.add(firsts[2], f.mul(j, word["e2"]))
                    value = f.decode(name, f.load(vector(memory, lanes), f.at(memory, line, f.mul(column, word["xw"])), SIZES[memory]), lanes, half)
                    so_far = f.load(wide, best, 64)
                    above = f.op(f"or {bits} {f.op(f'fcmp ogt {wide} {value}, {so_far}')}, {f.op(f'fcmp uno {wide} {value}, {value}')}")
                    f.store(wide, f.op(f"select {bits} {above}, {wide} {value}, {wide} {so_far}"), best, 64)
                    if indices:
                        place = f.splat("i32", f.op(f"trunc i64 {f.add(number, column)} to i32"), lanes)
                        f.store(ints, f.op(f"select {bits} {above}, {ints} {place}, {ints} {f.load(ints, which, 64)}"), which, 64)
            to = f.add(target, c) if c else target
            f.store(vector(memory, lanes), f.encode(name, f.load(wide, best, 64), lanes, half), f.at(memory, out, to), SIZES[memory])
            if indices:
                f.store(vector("i64", lanes), f.op(f"sext {ints} {f.load(ints, which, 64)} to {vector('i64', lanes)}"), f.at("i64", index, to), 8)

        if last:
            whole = f.mul(f.div(word["channels"], w), w)
            with f.loop(0, whole, w) as c:
                channels(c, w)
            with f.loop(whole, word["channels"]) as c:
                channels(c, 1)
        else:
            channels(0, 1)
    return module(f)


def build_put_back(dtype, result, g, result_bytes: int = 0) -> bytes:
    """Descriptor of zeros [N, C, S..] to which each element of g [N, C, O..] is added at its place in the plane, if it lies there. Slots: result, g, places (laid out as g).

    result and g are dense in one of two orders: channels innermost in both, or contiguous in both.
    """
    memory = TYPES[dtype.name][0]
    last = result.strides[1] == g.strides[1] == 1 and result.shape[1] > 1
    batch, channels = result.shape[:2]
    size, count = result.numel // max(batch * channels, 1), g.numel // max(batch * channels, 1)
    address = jit.compile_kernel(("put back", memory), lambda: _put_back(memory, jit.host().attributes))
    planes, inner = (batch, channels) if last else (batch * channels, 1)
    parts = max(1, min(native.parts_for(batch * channels * size, GRAIN), max(planes, 1)))
    return native.pack_desc(address, 3, parts, batch * channels * size > GIL_GRAIN, result_bytes, [planes, size, count, inner])


def _put_back(memory: str, attributes: str) -> str:
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes, linkage="dso_local")
    planes, size, count, inner = (f.load("i64", f.at("i64", "%desc", FIRST + i)) for i in range(4))
    out, g, index = (f.load("ptr", f.at("ptr", "%slots", n)) for n in range(3))
    begin, end = f.share(planes)
    with f.loop(begin, end) as plane:
        target, first = f.at(memory, out, f.mul(plane, f.mul(size, inner))), f.mul(plane, f.mul(count, inner))
        with f.loop(0, f.mul(size, inner)) as i:
            f.store(memory, "0.0", f.at(memory, target, i))
        with f.loop(0, count) as i, f.loop(0, inner) as c:
            here = f.add(f.add(first, f.mul(i, inner)), c)
            number = f.load("i64", f.at("i64", index, here))
            with f.when(f.compare("ult", number, size)):  # a window of nothing but padding has no place
                place = f.at(memory, target, f.add(f.mul(number, inner), c))
                f.store(memory, f.plus(memory, 1, f.load(memory, place), f.load(memory, f.at(memory, g, here))), place)
    return module(f)
