"""Samples of images at given places: weighted sums of a few pixels each, and their gradients. Which pixels, and how much they weigh, is given for each dimension.

out [N, C, P] = Σ over taps (t₁.., tₙ) of w₁[t₁]..wₙ[tₙ] · image [N, C, i₁[t₁].., iₙ[tₙ]], with whole positions i and weights w [n, T, N, P]; pixels outside of the image
are zero. Positions are worked out for some places at a time and serve all channels. Modes and paddings are nn/functions/vision.py's.
"""
from __future__ import annotations

from itertools import product
from math import prod

from . import jit, native
from .loops import Body
from .lower import IR

DTYPES = ("float32", "float64")
LARGEST = 1 << 31  # elements of a channel: positions in it are kept in 32 bits
TOGETHER = 64  # places
GRAIN = 1 << 14  # pixels that a part should read at least


def _build(kind: str, dtype, batch: int, channels: int, places: int, sizes, taps: int, slots: int, by_channel: bool, result_bytes: int) -> bytes:
    address = jit.compile_kernel(("samples", kind, dtype.name, len(sizes), taps), lambda: _Text(IR[dtype.name], dtype.itemsize, len(sizes), taps).write(kind))
    work = batch * channels * places * taps ** len(sizes)
    items = batch * (channels if by_channel else -(-places // TOGETHER))
    parts = max(1, min(native.parts_for(work, GRAIN), items))
    return native.pack_desc(address, slots, parts, work > GRAIN, result_bytes, [batch, channels, places, prod(sizes), *sizes])


def build_samples(dtype, batch: int, channels: int, places: int, sizes, taps: int, result_bytes: int = 0) -> bytes:
    """Descriptor of the samples. Slots: result [N, C, P], image [N, C, sizes..], positions (whole numbers in the image's dtype), weights; all row-major."""
    return _build("samples", dtype, batch, channels, places, sizes, taps, 4, False, result_bytes)


def build_image_gradient(dtype, batch: int, channels: int, places: int, sizes, taps: int, result_bytes: int = 0) -> bytes:
    """Descriptor of the gradient of the image. Slots: result [N, C, sizes..], gradient [N, C, P], positions, weights."""
    return _build("image", dtype, batch, channels, places, sizes, taps, 4, True, result_bytes)


def build_tap_gradient(dtype, batch: int, channels: int, places: int, sizes, taps: int, result_bytes: int = 0) -> bytes:
    """Descriptor of each tap's pixel times the gradient, summed over channels. Slots: result [T ** n, N, P], image, gradient [N, C, P], positions, weights."""
    return _build("tap_sums", dtype, batch, channels, places, sizes, taps, 5, False, result_bytes)


class _Text:
    def __init__(self, type: str, itemsize: int, dims: int, taps: int):
        self.type, self.itemsize, self.dims, self.taps = type, itemsize, dims, taps
        b = self.b = Body()
        self.batch, self.channels, self.places, self.plane, *self.sizes = (b.word(i) for i in range(4 + dims))
        self.corners = list(product(range(taps), repeat=dims))
        self.offsets = b.cell(f"[{len(self.corners) * TOGETHER} x i32]").name
        self.weights = b.cell(f"[{len(self.corners) * TOGETHER} x {type}]").name

    def element(self, base, index, type=None):
        return self.b(f"getelementptr {type or self.type}, ptr {base}, i64 {index}")

    def located(self, positions, weights, n, p0, count) -> None:
        """Where the pixels of `count` places are in a channel (−1: outside), and their weights."""
        b, t = self.b, self.type
        convert = f"@llvm.fptosi.sat.i64.{'f32' if t == 'float' else 'f64'}"
        b.declare(f"declare i64 {convert}({t})")
        access, around = b.parallel()
        with b.loop(0, count, extra=around) as i:
            found = []
            for d in range(self.dims):
                row = []
                for tap in range(self.taps):
                    at = b.add(b.mul(b.add(b.mul(d * self.taps + tap, self.batch), n), self.places), b.add(p0, i))
                    place = b.load(t, self.element(positions, at), access)
                    whole = b(f"call i64 {convert}({t} {place})")
                    inside = b(f"icmp ult i64 {whole}, {self.sizes[d]}")
                    inside = b(f"and i1 {inside}, {b(f'fcmp ord {t} {place}, {place}')}")
                    row.append((whole, inside, b.load(t, self.element(weights, at), access)))
                found.append(row)
            for k, corner in enumerate(self.corners):
                offset, inside, weight = found[0][corner[0]]
                for d in range(1, self.dims):
                    whole, here, w = found[d][corner[d]]
                    offset = b.add(b.mul(offset, self.sizes[d]), whole)
                    inside, weight = b(f"and i1 {inside}, {here}"), b(f"fmul {t} {weight}, {w}")
                short = b(f"trunc i64 {offset} to i32")
                slot = b.add(i, k * TOGETHER)
                b.store("i32", b.select(inside, short, -1, "i32"), self.element(self.offsets, slot, "i32"), access)
                b.store(t, weight, self.element(self.weights, slot), access)

    def pixel(self, base, i, k, access):
        """(value of tap k at place i of those located, its weight)."""
        b, t = self.b, self.type
        slot = b.add(i, k * TOGETHER)
        offset = b.load("i32", self.element(self.offsets, slot, "i32"), access)
        outside = b(f"icmp slt i32 {offset}, 0")
        wide = b(f"sext i32 {b.select(outside, 0, offset, 'i32')} to i64")
        value = b.load(t, self.element(base, wide), access)
        return b.select(outside, "0.0", value, t), b.load(t, self.element(self.weights, slot), access)

    def write(self, kind: str) -> str:
        getattr(self, kind)()
        return self.b.text()

    def blocks(self):
        """(entry, first place, number of places) of each block of this part, inside a loop."""
        b = self.b
        each = b.div(b.add(self.places, TOGETHER - 1), TOGETHER)
        low, high = b.share(b.mul(self.batch, each))
        return each, low, high

    def samples(self) -> None:
        b, t = self.b, self.type
        out, image, positions, weights = (b.slot(i) for i in range(4))
        each, low, high = self.blocks()
        with b.loop(low, high) as block:
            n = b.div(block, each)
            p0 = b.mul(b.sub(block, b.mul(n, each)), TOGETHER)
            count = b.min(TOGETHER, b.sub(self.places, p0))
            self.located(positions, weights, n, p0, count)
            with b.loop(0, self.channels) as c:
                row = b.add(b.mul(n, self.channels), c)
                base, target = self.element(image, b.mul(row, self.plane)), self.element(out, b.add(b.mul(row, self.places), p0))
                access, around = b.parallel()
                with b.loop(0, count, extra=around) as i:
                    total = ""
                    for k in range(len(self.corners)):
                        value, weight = self.pixel(base, i, k, access)
                        term = b(f"fmul contract {t} {value}, {weight}")
                        total = b(f"fadd contract {t} {total}, {term}") if total else term
                    b.store(t, total, self.element(target, i), access)

    def tap_sums(self) -> None:
        b, t = self.b, self.type
        out, image, gradient, positions, weights = (b.slot(i) for i in range(5))
        each, low, high = self.blocks()
        with b.loop(low, high) as block:
            n = b.div(block, each)
            p0 = b.mul(b.sub(block, b.mul(n, each)), TOGETHER)
            count = b.min(TOGETHER, b.sub(self.places, p0))
            self.located(positions, weights, n, p0, count)
            targets = [self.element(out, b.add(b.mul(b.add(b.mul(k, self.batch), n), self.places), p0)) for k in range(len(self.corners))]
            with b.loop(0, self.channels) as c:
                row = b.add(b.mul(n, self.channels), c)
                base, g = self.element(image, b.mul(row, self.plane)), self.element(gradient, b.add(b.mul(row, self.places), p0))
                first = b(f"icmp eq i64 {c}, 0")
                access, around = b.parallel()
                with b.loop(0, count, extra=around) as i:
                    grad = b.load(t, self.element(g, i), access)
                    for k, target in enumerate(targets):
                        value, _ = self.pixel(base, i, k, access)
                        place = self.element(target, i)
                        before = b.select(first, "0.0", b.load(t, place, access), t)
                        b.store(t, b(f"fadd contract {t} {before}, {b(f'fmul contract {t} {value}, {grad}')}"), place, access)

    def image(self) -> None:
        b, t = self.b, self.type
        out, gradient, positions, weights = (b.slot(i) for i in range(4))
        low, high = b.share(b.mul(self.batch, self.channels))
        with b.loop(b.mul(low, self.plane), b.mul(high, self.plane)) as i:
            b.store(t, "0.0", self.element(out, i))
        with b.loop(0, self.batch) as n:
            first = b.mul(n, self.channels)
            c0 = self._bound(b.sub(low, first))
            c1 = self._bound(b.sub(high, first))
            with b.when(b(f"icmp slt i64 {c0}, {c1}")):
                with b.loop(0, self.places, TOGETHER) as p0:
                    count = b.min(TOGETHER, b.sub(self.places, p0))
                    self.located(positions, weights, n, p0, count)
                    with b.loop(c0, c1) as c:
                        row = b.add(first, c)
                        base, g = self.element(out, b.mul(row, self.plane)), self.element(gradient, b.add(b.mul(row, self.places), p0))
                        with b.loop(0, count) as i:
                            grad = b.load(t, self.element(g, i))
                            for k in range(len(self.corners)):
                                slot = b.add(i, k * TOGETHER)
                                offset = b.load("i32", self.element(self.offsets, slot, "i32"))
                                with b.when(b(f"icmp sge i32 {offset}, 0")):
                                    place = self.element(base, b(f"sext i32 {offset} to i64"))
                                    term = b(f"fmul contract {t} {grad}, {b.load(t, self.element(self.weights, slot))}")
                                    b.store(t, b(f"fadd contract {t} {b.load(t, place)}, {term}"), place)

    def _bound(self, value):
        b = self.b
        value = b.select(b(f"icmp slt i64 {value}, 0"), 0, value)
        return b.min(value, self.channels)
