"""The walk over positions of convolutions with channels innermost, in LLVM IR: tables of windows and results, items of work, and padded copies of some rows (`band`).

What happens at the positions is conv_last_ir.py's and conv_few_ir.py's.
"""
from __future__ import annotations

from .conv_vectors import FIRST, Kernel
from .gemm_pack import Tile
from .gemm_text import AS_WRITTEN, SIZES, Function, vector

# Sizes; the walk over the image and over the result (or its gradient), in elements; the band; what an item is; offsets of the scratch's parts in bytes.
WORDS = (
    "batch groups features channels o0 o1 o2 k0 size_d size_h size_w stride0 stride1 stride2 p0 p1 p2 e0 xb xd xh xw yb yd yh yw "
    "padded tall wide pieces chunks window blocks taps wg wf wc padded_features some_entries some_rows some_columns some_blocks at_y at_packed at_bias at_band at_t scratch"
).split()


class Text(Kernel):
    """The kernel while it is written: its words, tables behind them, and the loop over items."""

    def __init__(self, acc: str, attributes: str, slots: int):
        super().__init__(acc, WORDS, attributes, slots)
        f = self.f
        self.pieces = f.at("i64", "%desc", FIRST + len(WORDS))  # (offset, length) each
        self.chunks = f.at("i64", self.pieces, f.mul(self.word["pieces"], 2))  # (first piece, number of pieces, first element) each
        self.blocks = f.at("i64", self.chunks, f.mul(self.word["chunks"], 3))  # (first feature, vectors) each
        self.taps = f.at("i64", self.blocks, f.mul(self.word["blocks"], 2))  # where the weights of each window element begin
        scratch = self.slots[-1]
        self.scratch = f.at("i8", scratch, f.mul("%part", self.word["scratch"]))
        self.at = lambda name: f.at("i8", self.scratch, self.word[name])

    def entry(self, table: str, index, width: int) -> list[str]:
        """The numbers of entry `index` of a table."""
        f = self.f
        start = f.at("i64", table, f.mul(index, width))
        return [f.load("i64", f.at("i64", start, i)) for i in range(width)]

    def positions(self) -> None:
        """Writes where the window and the result of each position of an item begin, counted from the item's first ones."""
        f, word = self.f, self.word
        number = f.variable("i64", 0)
        padded = f.compare("ne", word["padded"], 0)
        pick = lambda yes, no: f.op(f"select i1 {padded}, i64 {yes}, i64 {no}")
        line = f.mul(word["wide"], word["channels"])
        across = pick(f.mul(word["stride2"], word["channels"]), f.mul(word["stride2"], word["xw"]))
        down = pick(f.mul(word["stride1"], line), f.mul(word["stride1"], word["xh"]))
        apart = pick(f.mul(f.mul(word["k0"], word["tall"]), line), word["xb"])
        with f.loop(0, word["some_entries"]) as e, f.loop(0, word["some_rows"]) as r, f.loop(0, word["some_columns"]) as c:
            here = f.load("i64", number)
            f.store("i64", f.add(f.mul(e, apart), f.add(f.mul(r, down), f.mul(c, across))), f.at("i64", self.scratch, here))
            f.store("i64", f.add(f.mul(e, word["yb"]), f.add(f.mul(r, word["yh"]), f.mul(c, word["yw"]))), f.at("i64", self.at("at_y"), here))
            f.store("i64", f.add(here, 1), number)

    def items(self, x: str, y: str, group, low, high, each) -> None:
        """Calls `each(x of the first window, y of the first position, positions)` for items `low` to `high` of a group: bands of rows of some entries."""
        f, word = self.f, self.word
        counts = [f.ceil_div(word["batch"], word["some_entries"]), word["o0"], f.ceil_div(word["o1"], word["some_rows"]), f.ceil_div(word["o2"], word["some_columns"])]
        first_channel = f.mul(group, word["channels"])
        with f.loop(low, high) as item:
            left, digits = item, []
            for count in reversed(counts):
                digits.append(f.rem(left, count))
                left = f.div(left, count)
            at_column, at_row, depth, at_entry = digits
            n0, h0, w0 = f.mul(at_entry, word["some_entries"]), f.mul(at_row, word["some_rows"]), f.mul(at_column, word["some_columns"])
            entries, rows, columns = (f.min(word[s], f.sub(word[n], b)) for s, n, b in (("some_entries", "batch", n0), ("some_rows", "o1", h0), ("some_columns", "o2", w0)))
            corner = [f.sub(f.mul(o, word[f"stride{a}"]), word[f"p{a}"]) for a, o in enumerate((depth, h0, w0))]
            source = f.at(self.acc, x, f.add(f.mul(n0, word["xb"]), first_channel))
            start = f.variable("ptr")
            inner = f.add(f.mul(corner[0], word["xd"]), f.add(f.mul(corner[1], word["xh"]), f.mul(corner[2], word["xw"])))

            def copied(source=source, entries=entries, corner=corner, start=start):
                given = {"entries": entries, "d0": corner[0], "h0": corner[1], "w0": corner[2]}
                f.do(f"call void @band(ptr {source}, ptr {self.at('at_band')}, {', '.join(f'i64 {given.get(a) or word[a]}' for a in BAND)})")
                f.store("ptr", self.at("at_band"), start)

            f.choose(f.compare("ne", word["padded"], 0), copied, lambda start=start, source=source, inner=inner: f.store("ptr", f.at(self.acc, source, inner), start))
            place = f.add(f.add(f.mul(n0, word["yb"]), f.mul(depth, word["yd"])), f.add(f.mul(h0, word["yh"]), f.mul(w0, word["yw"])))
            each(f.load("ptr", start), f.at(self.acc, y, place), f.mul(entries, f.mul(rows, columns)))

    def count(self) -> str:
        f, word = self.f, self.word
        total = word["o0"]
        for n, some in (("batch", "some_entries"), ("o1", "some_rows"), ("o2", "some_columns")):
            total = f.mul(total, f.ceil_div(word[n], word[some]))
        return total


BAND = "entries channels k0 e0 d0 h0 w0 size_d size_h size_w xb xd xh xw tall wide".split()


def band(acc: str, tile: Tile, attributes: str) -> Function:
    """Copies rows of an image with zeros around them: [entries, k0, tall, wide, channels] from the corner (d0, h0, w0) on, which may lie outside."""
    w, size = tile.width, SIZES[acc]
    f = Function("band", "ptr noalias %x, ptr noalias %out, " + ", ".join(f"i64 %{a}" for a in BAND), attributes + " noinline" + AS_WRITTEN)
    at = f.variable("ptr", "%out")
    bound = lambda value, low, high: f.min(f.call("i64", "llvm.smax.i64", f"i64 {value}", f"i64 {low}"), high)
    line = f.mul("%wide", "%channels")
    start = bound(f.sub(0, "%w0"), 0, "%wide")
    stop = f.call("i64", "llvm.smax.i64", f"i64 {bound(f.sub('%size_w', '%w0'), 0, '%wide')}", f"i64 {start}")

    def zeros(target, count):
        with f.loop(0, count) as i:
            f.store(acc, "0.0", f.at(acc, target, i))

    def run(source, target, count):
        whole = f.mul(f.div(count, w), w)
        with f.loop(0, whole, w) as i:
            f.store(vector(acc, w), f.load(vector(acc, w), f.at(acc, source, i), size), f.at(acc, target, i), size)
        with f.loop(whole, count) as i:
            f.store(acc, f.load(acc, f.at(acc, source, i)), f.at(acc, target, i))

    with f.loop(0, "%entries") as e, f.loop(0, "%k0") as z, f.loop(0, "%tall") as r:
        target = f.load("ptr", at)
        depth, row = f.add("%d0", f.mul(z, "%e0")), f.add("%h0", r)

        def inside(e=e, depth=depth, row=row, target=target):
            zeros(target, f.mul(start, "%channels"))
            first = f.add(f.mul(e, "%xb"), f.add(f.mul(depth, "%xd"), f.add(f.mul(row, "%xh"), f.mul(f.add("%w0", start), "%xw"))))
            source, to = f.at(acc, "%x", first), f.at(acc, target, f.mul(start, "%channels"))

            def apart():
                with f.loop(0, f.sub(stop, start)) as i:
                    run(f.at(acc, source, f.mul(i, "%xw")), f.at(acc, to, f.mul(i, "%channels")), "%channels")

            f.choose(f.compare("eq", "%xw", "%channels"), lambda: run(source, to, f.mul(f.sub(stop, start), "%channels")), apart)
            zeros(f.at(acc, target, f.mul(stop, "%channels")), f.mul(f.sub("%wide", stop), "%channels"))

        f.choose(f.both(f.compare("ult", depth, "%size_d"), f.compare("ult", row, "%size_h")), inside, lambda target=target: zeros(target, line))
        f.store("ptr", f.at(acc, target, line), at)
    zeros(f.load("ptr", at), 4 * w)  # what vectors behind the last element read
    return f
