"""The gradient of the weights of a convolution of few channels, channels innermost, in LLVM IR: vectors are features of the result's gradient.

d_weight [K, F] = windows [.., K]^T @ G [.., F], summed over positions: a few neighbouring elements of the window times up to two vectors of features stay in registers.
Windows are pieces found in tables as in conv_last_ir.py, whose vectors are window elements and would be mostly idle here. The walk is conv_last_walk.py's.
"""
from __future__ import annotations

from .conv_last_walk import Text, band
from .conv_vectors import Vectors
from .gemm_pack import Tile
from .gemm_text import Function, module

VECTORS = 2  # of features
HEIGHT = 12  # elements of the window, at most


def element_tile(acc: str, tile: Tile, height: int, count: int, attributes: str) -> Function:
    """sums [height window elements, count vectors of features] (rows `features` apart) += the sum over positions of x · g; the last vector's lanes may be fewer."""
    w = tile.width
    arguments = (
        "i64 %number, ptr noalias readonly %x, ptr noalias readonly %at_x, i64 %elements, ptr noalias readonly %g, ptr noalias readonly %at_g, i64 %lanes, ptr noalias %sums, i64 %features"
    )
    f = Function(f"elements_{count}", arguments, attributes + " noinline")
    v = Vectors(f, acc, tile)
    rows = [f.at(acc, "%x", f.min(r, f.sub("%elements", 1))) for r in range(height)]  # missing elements repeat the last one: their sums are dropped
    mask = v.lanes(f.sub("%lanes", (count - 1) * w))
    sums = [v.zeros(count) for _ in range(height)]

    def sweep(mask):
        with f.loop(0, "%number") as p:
            at = f.load("i64", f.at("i64", "%at_x", p))
            source = f.at(acc, "%g", f.load("i64", f.at("i64", "%at_g", p)))
            values = [*v.loads(source, count - 1), v.load(f.at(acc, source, (count - 1) * w), mask)]
            for row, slots in zip(rows, sums):
                v.add_row(slots, f.at(acc, row, at), values)

    v.whole_or_masked(f.compare("sge", "%lanes", count * w), mask, sweep)
    v.add_sums(sums, "%elements", "%features", mask)
    return f


def few_module(acc: str, tile: Tile, height: int, attributes: str) -> str:
    """d_weight [K, F], K in the order of memory. Slots: d_weight, x, g, scratch. Parts are ranges of blocks of features; the image's bands are copied for each."""
    text = Text(acc, attributes, 4)
    f, word, w = text.f, text.word, tile.width
    out, x, g = text.slots[:3]
    text.positions()
    low, high = f.share(f.ceil_div(word["features"], VECTORS * w))
    f0, f1 = f.mul(low, VECTORS * w), f.min(f.mul(high, VECTORS * w), word["features"])
    with f.loop(0, word["window"]) as k, f.loop(f0, f1) as n:
        f.store(acc, "0.0", f.at(acc, out, f.add(f.mul(k, word["features"]), n)))

    def each(source, target, number):
        k = f.variable("i64", 0)
        with f.loop(0, word["pieces"]) as q:
            offset, length = text.entry(text.pieces, q, 2)
            k0 = f.load("i64", k)
            with f.loop(0, length, height) as i, f.loop(f0, f1, VECTORS * w) as n:
                lanes = f.min(VECTORS * w, f.sub(f1, n))
                sums = f.at(acc, out, f.add(f.mul(f.add(k0, i), word["features"]), n))
                given = f"i64 {number}, ptr {f.at(acc, source, f.add(offset, i))}, ptr {text.scratch}, i64 {f.min(height, f.sub(length, i))}"
                rest = f"ptr {f.at(acc, target, n)}, ptr {text.at('at_y')}, i64 {lanes}, ptr {sums}, i64 {word['features']}"
                for count in range(1, VECTORS + 1):
                    with f.when(f.compare("eq", f.ceil_div(lanes, w), count)):
                        f.do(f"call void @elements_{count}({given}, {rest})")
            f.store("i64", f.add(k0, length), k)

    text.items(x, g, 0, 0, text.count(), each)
    return module(f, band(acc, tile, attributes), *(element_tile(acc, tile, height, count, attributes) for count in range(1, VECTORS + 1)))
