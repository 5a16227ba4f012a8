"""Depthwise convolution of images with channels innermost and its weights' gradient, in LLVM IR: some neighbouring positions of a row times two vectors of channels stay in registers.

Every element of the input that such a tile needs is loaded once a row of the window and meets all elements of the window's row. Images are read where they lie:
columns outside of them are read from a vector of zeros, rows outside are left out. Which convolutions come here is decided in conv_last.py; windows of other shapes
are conv_last_ir.py's.
"""
from __future__ import annotations

from contextlib import contextmanager

from .conv_vectors import Kernel, Vectors
from .gemm_pack import Tile
from .gemm_text import Function, module, vector

# Sizes; strides, padding, dilation of rows; steps of the image and the result in elements.
# w0, wh, ww: the window's elements are taken from the rows w0 + i * wh + j * ww of the weights (for an input's gradient backwards, and every stride-th).
WORDS = "batch channels k1 size_h size_w o1 o2 stride1 p1 p2 e1 xb xh xw yb yh yw w0 wh ww".split()
TAPS = 7  # columns of a window at most: their weights stay in registers as well
STRIDES = (1, 2)


def _met(q: int, taps: int, stride: int, positions: int) -> list[tuple[int, int]]:
    """(position, column of its window) of all windows that column q of the image lies in."""
    return [(r, q - r * stride) for r in range(positions) if 0 <= q - r * stride < taps]


def strip(acc: str, tile: Tile, taps: int, stride: int, positions: int, attributes: str) -> Function:
    """out [positions, channels] = the sum over rows of windows of `taps` columns, `stride` apart (+ bias). Positions from `wanted` on are not stored.

    %x is the image's first element of the window's first row that lies inside, %first the column where the first window begins (may be outside), %rows how many
    rows of the window lie inside, `row` elements apart; %weights are those of its first element, `down` and `next` elements apart from row to row and column to column.
    """
    w = tile.width
    arguments = (
        "ptr noalias readonly %x, i64 %first, i64 %size_w, i64 %xw, i64 %row, i64 %rows, ptr noalias readonly %weights, i64 %down, i64 %next, i64 %channels, "
        "ptr noalias readonly %bias, ptr noalias %out, i64 %yw, i64 %wanted"
    )
    f = Function("strip", arguments, attributes + " noinline")
    v = Vectors(f, acc, tile)
    columns = (positions - 1) * stride + taps
    zeros = f.variable(vector(acc, 2 * w), "zeroinitializer", 64)
    places = [f.add("%first", q) for q in range(columns)]
    inside = [f.compare("ult", place, "%size_w") for place in places]
    offsets = [f.mul(place, "%xw") for place in places]
    biased = f.op("icmp ne ptr %bias, null")

    def sums_of(c, count: int, mask: str | None):
        sums = [[f.variable(v.type, None, 64) for _ in range(count)] for _ in range(positions)]
        starts = v.zeros(count)
        with f.when(biased):
            for n, slot in enumerate(starts):
                v.put(v.load(f.at(acc, "%bias", f.add(c, n * w)), mask), slot)
        for slots in sums:
            for slot, start in zip(slots, starts):
                v.put(v.get(start), slot)
        with f.loop(0, "%rows") as i:
            line = f.at(acc, "%x", f.add(c, f.mul(i, "%row")))
            factors = f.at(acc, "%weights", f.add(c, f.mul(i, "%down")))
            weights = [[v.load(f.at(acc, f.at(acc, factors, f.mul("%next", j)), n * w), mask) for n in range(count)] for j in range(taps)]
            for q in range(columns):
                place = f.op(f"select i1 {inside[q]}, ptr {f.at(acc, line, offsets[q])}, ptr {zeros}")
                values = v.loads(place, count, mask)
                for r, j in _met(q, taps, stride, positions):
                    for slot, value, weight in zip(sums[r], values, weights[j]):
                        v.add_product(slot, value, weight)
        for r, slots in enumerate(sums):
            with f.when(f.compare("sgt", "%wanted", r)):
                target = f.at(acc, "%out", f.add(c, f.mul("%yw", r)))
                for n, slot in enumerate(slots):
                    place, value = f.at(acc, target, n * w), v.get(slot)
                    v.store(value, place, mask)

    v.across(0, "%channels", sums_of)
    return f


class _Rows(Kernel):
    """What both kernels begin with, and the loop over rows of the result."""

    @contextmanager
    def rows(self, low, high, x, y):
        """Yields, for rows `low` to `high` of all entries' results, x at the first row of the window that lies inside, y at the row, that first row and how many do."""
        f, acc, word = self.f, self.acc, self.word
        larger = lambda a, b: f.call("i64", "llvm.smax.i64", f"i64 {a}", f"i64 {b}")
        with f.loop(low, high) as number:
            entry, row = f.div(number, word["o1"]), f.rem(number, word["o1"])
            first = f.sub(f.mul(row, word["stride1"]), word["p1"])  # row of the image where the window begins
            reach = lambda edge: f.min(f.ceil_div(larger(edge, 0), word["e1"]), word["k1"])
            begin = reach(f.sub(0, first))
            rows = larger(f.sub(reach(f.sub(word["size_h"], first)), begin), 0)
            inside = f.min(f.add(first, f.mul(begin, word["e1"])), f.sub(word["size_h"], 1))  # where no row does, nothing is read
            source = f.at(acc, x, f.add(f.mul(entry, word["xb"]), f.mul(inside, word["xh"])))
            yield source, f.at(acc, y, f.add(f.mul(entry, word["yb"]), f.mul(row, word["yh"]))), begin, rows


def rows_module(acc: str, tile: Tile, taps: int, stride: int, positions: int, attributes: str) -> str:
    """out [N, O1, O2, C] of x [N, H, W, C] and weights [K, C]. Slots: out, x, weights, bias or null. Parts are ranges of rows of the result."""
    k = _Rows(acc, WORDS, attributes, 4)
    f, word = k.f, k.word
    out, x, weights, bias = k.slots
    next_ = f.mul(word["ww"], word["channels"])
    down = f.mul(word["wh"], word["channels"])
    low, high = f.share(f.mul(word["batch"], word["o1"]))
    with k.rows(low, high, x, out) as (source, target, begin, rows):
        factors = f.at(acc, weights, f.add(f.mul(word["w0"], word["channels"]), f.mul(begin, down)))
        with f.loop(0, word["o2"], positions) as column:
            given = f"ptr {source}, i64 {f.sub(f.mul(column, stride), word['p2'])}, i64 {word['size_w']}, i64 {word['xw']}, i64 {f.mul(word['e1'], word['xh'])}, i64 {rows}"
            place = f.at(acc, target, f.mul(column, word["yw"]))
            rest = f"ptr {factors}, i64 {down}, i64 {next_}, i64 {word['channels']}, ptr {bias}, ptr {place}, i64 {word['yw']}, i64 {f.sub(word['o2'], column)}"
            f.do(f"call void @strip({given}, {rest})")
    return module(f, strip(acc, tile, taps, stride, positions, attributes))


def strip_gradient(acc: str, tile: Tile, taps: int, stride: int, positions: int, attributes: str) -> Function:
    """sums [rows, taps, channels] += the sum over one row's positions of g times the windows of x, for channels %c0 to %c1. Other arguments as of `strip`."""
    w = tile.width
    arguments = (
        "ptr noalias readonly %x, i64 %before, i64 %size_w, i64 %xw, i64 %row, i64 %rows, ptr noalias readonly %g, i64 %yw, i64 %o2, ptr noalias %sums, i64 %channels, i64 %c0, i64 %c1"
    )
    f = Function("strip_gradient", arguments, attributes + " noinline")
    v = Vectors(f, acc, tile)
    columns = (positions - 1) * stride + taps
    chains = 2 if taps < 4 else 1  # of an element of the window: enough for the units' latency
    zeros = f.variable(vector(acc, 2 * w), "zeroinitializer", 64)

    def over_rows(c, count: int, mask: str | None):
        sums = [[[f.variable(v.type, None, 64) for _ in range(count)] for _ in range(chains)] for _ in range(taps)]
        with f.loop(0, "%rows") as i:
            line = f.at(acc, "%x", f.add(c, f.mul(i, "%row")))
            for slot in (slot for tap in sums for chain in tap for slot in chain):
                v.put("zeroinitializer", slot)
            with f.loop(0, "%o2", positions) as column:
                first = f.sub(f.mul(column, stride), "%before")
                gradients = f.at(acc, "%g", f.add(c, f.mul(column, "%yw")))
                ends = f.add(first, columns)

                def meet(edge: bool, first=first, gradients=gradients, column=column, line=line):
                    values = []
                    for r in range(positions):
                        place = f.at(acc, gradients, f.mul("%yw", r))
                        if edge:
                            place = f.op(f"select i1 {f.compare('slt', f.add(column, r), '%o2')}, ptr {place}, ptr {zeros}")
                        values.append(v.loads(place, count, mask))
                    for q in range(columns):
                        at = f.add(first, q)
                        place = f.at(acc, line, f.mul(at, "%xw"))
                        if edge:
                            place = f.op(f"select i1 {f.compare('ult', at, '%size_w')}, ptr {place}, ptr {zeros}")
                        x = v.loads(place, count, mask)
                        for r, j in _met(q, taps, stride, positions):
                            for slot, gradient, element in zip(sums[j][r % chains], values[r], x):
                                v.add_product(slot, gradient, element)

                whole = f.both(f.compare("sge", first, 0), f.compare("sle", ends, "%size_w"), f.compare("sle", f.add(column, positions), "%o2"))
                f.choose(whole, lambda meet=meet: meet(False), lambda meet=meet: meet(True))
            target = f.at(acc, "%sums", f.add(c, f.mul(i, f.mul("%channels", taps))))
            for j, tap in enumerate(sums):
                for n in range(count):
                    total = v.get(tap[0][n])
                    if chains == 2:
                        total = v.plus(total, v.get(tap[1][n]))
                    place = f.at(acc, f.at(acc, target, f.mul("%channels", j)), n * w)
                    v.store(v.plus(total, v.load(place, mask)), place, mask)

    v.across("%c0", "%c1", over_rows)
    return f


def rows_gradient_module(acc: str, tile: Tile, taps: int, stride: int, positions: int, attributes: str) -> str:
    """d_weight [K, C] of x [N, H, W, C] and g [N, O1, O2, C]. Slots: d_weight, x, g. Parts are ranges of pairs of vectors of channels."""
    k = _Rows(acc, WORDS, attributes, 3)
    f, word, w = k.f, k.word, tile.width
    out, x, g = k.slots
    low, high = f.share(f.ceil_div(word["channels"], 2 * w))
    c0, c1 = f.mul(low, 2 * w), f.min(f.mul(high, 2 * w), word["channels"])
    with f.loop(0, f.mul(word["k1"], taps)) as tap, f.loop(c0, c1) as c:
        f.store(acc, "0.0", f.at(acc, out, f.add(f.mul(tap, word["channels"]), c)))
    with k.rows(0, f.mul(word["batch"], word["o1"]), x, g) as (source, gradients, begin, rows):
        given = f"ptr {source}, i64 {word['p2']}, i64 {word['size_w']}, i64 {word['xw']}, i64 {f.mul(word['e1'], word['xh'])}, i64 {rows}"
        sums = f.at(acc, out, f.mul(begin, f.mul(taps, word["channels"])))
        f.do(f"call void @strip_gradient({given}, ptr {gradients}, i64 {word['yw']}, i64 {word['o2']}, ptr {sums}, i64 {word['channels']}, i64 {c0}, i64 {c1})")
    return module(f, strip_gradient(acc, tile, taps, stride, positions, attributes))
