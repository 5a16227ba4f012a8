"""A band of an image as direct convolutions read it, in LLVM IR: padded, and with the steps of a stride laid apart, so that every read is of neighbours.

A band is [channels, depth taps, row phases, column phases, rows, pitch]: element (r, q) of phase (i, j) is the image's row r * stride + i and column
q * stride + j, counted from the band's corner. Output positions are numbered along rows of `pitch` elements; the window element (i, j) of position p lies at
p + (i // stride) * pitch + j // stride of phase (i % stride, j % stride). The zeros behind a row are those before the next one where there are enough.
What is computed from bands is in conv_direct_ir.py and conv_weight_ir.py.
"""
from __future__ import annotations

from .gemm_pack import Kind
from .gemm_text import AS_WRITTEN, SIZES, TYPES, Function, masked_load, masked_store, vector

# What `band` takes: where the band's corner lies in the image (depth, row, column; may be outside), the image's sizes and steps in elements, and the band's sizes:
# planes are `plane` elements apart and `filled` of them are written.
ARGUMENTS = "channels depths between d0 h0 w0 size_d size_h size_w xc xd xh xw phases_h phases_w rows pitch filled plane".split()


def larger(f: Function, a, b):
    return f.call("i64", "llvm.smax.i64", f"i64 {a}", f"i64 {b}")


def filled(f: Function, acc: str, start, count, value: str) -> None:
    with f.loop(0, count) as i:
        f.store(acc, value, f.at(acc, start, i))


def band(kind: Kind, name: str, attributes: str, outside: str = "0.0") -> Function:
    """Copies one band of the image at %x to %out, decoded to the accumulator's type; what lies outside of the image is zero (or `outside`)."""
    t, memory, acc = kind.tile, TYPES[name][0], kind.acc
    w, size = t.width, SIZES[memory]
    f = Function("band", "ptr noalias %x, ptr noalias %out, " + ", ".join(f"i64 %{a}" for a in ARGUMENTS), attributes + " noinline" + AS_WRITTEN)
    step = f.mul("%xw", "%phases_w")
    zeros = lambda start, count: filled(f, acc, start, count, outside)

    def put(value, to, mask):
        value = f.decode(name, value, w, t.half)
        masked_store(f, acc, w, value, to, mask) if mask else f.store(vector(acc, w), value, to, SIZES[acc])

    def scalars(source, target, start, stop):
        with f.loop(start, stop) as q:
            f.store(acc, f.decode(name, f.load(memory, f.at(memory, source, f.mul(q, step))), 1, t.half), f.at(acc, target, q))

    def neighbours(source, target, count):
        whole = f.mul(f.div(count, w), w)
        with f.loop(0, whole, w) as q:
            put(f.load(vector(memory, w), f.at(memory, source, q), size), f.at(acc, target, q), None)
        if not t.masks:
            return scalars(source, target, whole, count)
        with f.when(f.compare("slt", whole, count)):
            mask = f.lanes_below(f.sub(count, whole), w)
            put(masked_load(f, memory, w, f.at(memory, source, whole), mask), f.at(acc, target, whole), mask)

    def every_second(source, target, count):
        even = f"<{w} x i32> <" + ", ".join(f"i32 {2 * i}" for i in range(w)) + ">"
        with f.loop(0, count, w) as q:
            left = f.sub(count, q)
            reach = f.sub(f.mul(left, 2), 1)  # elements up to the last one wanted
            low = masked_load(f, memory, w, f.at(memory, source, f.mul(q, 2)), f.lanes_below(reach, w))
            high = masked_load(f, memory, w, f.at(memory, source, f.add(f.mul(q, 2), w)), f.lanes_below(f.sub(reach, w), w))
            put(f.op(f"shufflevector {vector(memory, w)} {low}, {vector(memory, w)} {high}, {even}"), f.at(acc, target, q), f.lanes_below(left, w))

    def copied(source, target, count):
        rest = lambda: scalars(source, target, 0, count)
        second = (lambda: f.choose(f.compare("eq", step, 2), lambda: every_second(source, target, count), rest)) if t.masks else rest
        f.choose(f.compare("eq", step, 1), lambda: neighbours(source, target, count), second)

    at = f.variable("ptr", "%out")
    body = f.mul("%rows", "%pitch")
    with f.loop(0, "%channels") as c, f.loop(0, "%depths") as z, f.loop(0, "%phases_h") as i, f.loop(0, "%phases_w") as j:
        target = f.load("ptr", at)
        depth = f.add("%d0", f.mul(z, "%between"))
        from_ = f.at(memory, "%x", f.add(f.mul(c, "%xc"), f.mul(depth, "%xd")))
        first = f.add("%w0", j)
        clipped = lambda edge: f.min("%pitch", f.ceil_div(larger(f, edge, 0), "%phases_w"))
        start, stop = clipped(f.sub(0, first)), clipped(f.sub("%size_w", first))
        begin = f.at(memory, from_, f.mul(f.add(first, f.mul(start, "%phases_w")), "%xw"))
        count = larger(f, f.sub(stop, start), 0)
        with f.loop(0, "%rows") as r:
            row = f.add("%h0", f.add(f.mul(r, "%phases_h"), i))
            to = f.at(acc, target, f.mul(r, "%pitch"))
            inside = f.both(f.compare("ult", row, "%size_h"), f.compare("ult", depth, "%size_d"))

            def real(row=row, to=to):
                zeros(to, start)
                copied(f.at(memory, begin, f.mul(row, "%xh")), f.at(acc, to, start), count)
                zeros(f.at(acc, to, stop), f.sub("%pitch", stop))

            f.choose(inside, real, lambda to=to: zeros(to, "%pitch"))
        zeros(f.at(acc, target, body), f.sub("%filled", body))
        f.store("ptr", f.at(acc, target, "%plane"), at)
    zeros(f.load("ptr", at), (t.vectors + 1) * w)  # what lanes behind the last position read
    return f


def offsets(f: Function, target: str, channels, kernel, dilation, phases, pitch, plane) -> None:
    """Writes where each window element [channels, K0, K1, K2] of position 0 lies in a band, in elements. kernel, dilation: three values; phases: two."""
    at = f.variable("i64", 0)
    with f.loop(0, channels) as c, f.loop(0, kernel[0]) as z, f.loop(0, kernel[1]) as i, f.loop(0, kernel[2]) as j:
        row, column = f.mul(i, dilation[1]), f.mul(j, dilation[2])
        number = f.add(f.mul(c, kernel[0]), z)
        number = f.add(f.mul(number, phases[0]), f.rem(row, phases[0]))
        number = f.add(f.mul(number, phases[1]), f.rem(column, phases[1]))
        place = f.add(f.mul(number, plane), f.add(f.mul(f.div(row, phases[0]), pitch), f.div(column, phases[1])))
        here = f.load("i64", at)
        f.store("i64", place, f.at("i64", target, here))
        f.store("i64", f.add(here, 1), at)
