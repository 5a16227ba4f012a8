"""What kernels of convolutions with channels innermost are written with, in LLVM IR: their beginning, and vectors of sums that stand in registers.

The kernels are conv_last_ir.py, conv_few_ir.py and conv_rows_ir.py.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from .gemm_pack import Tile
from .gemm_text import AS_WRITTEN, SIZES, Function, masked_load, masked_store, vector

FIRST = 8  # word of the descriptor that is the kernel's own


class Kernel:
    """A kernel while it is written: its text `f`, its words by their names, and its slots."""

    def __init__(self, acc: str, words: Sequence[str], attributes: str, slots: int):
        f = self.f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes + AS_WRITTEN, linkage="dso_local")
        self.acc, self.word = acc, {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(words)}
        self.slots = [f.load("ptr", f.at("ptr", "%slots", n)) for n in range(slots)]


class Vectors:
    """A function's vectors of `tile.width` elements. Slots are sums in registers; a mask says which lanes of a vector there are (None: all)."""

    def __init__(self, f: Function, acc: str, tile: Tile):
        self.f, self.acc, self.w, self.fused = f, acc, tile.width, tile.fused
        self.type, self.size = vector(acc, tile.width), SIZES[acc]

    def zeros(self, count: int) -> list[str]:
        return [self.f.variable(self.type, "zeroinitializer", 64) for _ in range(count)]

    def get(self, slot: str) -> str:
        return self.f.load(self.type, slot, 64)

    def put(self, value: str, slot: str) -> None:
        self.f.store(self.type, value, slot, 64)

    def plus(self, a: str, b: str) -> str:
        return self.f.plus(self.acc, self.w, a, b)

    def add_product(self, slot: str, a: str, b: str) -> None:
        self.put(self.f.fma(self.acc, self.w, a, b, self.get(slot), self.fused), slot)

    def add_row(self, slots: list[str], place: str, values: list[str]) -> None:
        """Adds the element at `place`, times each of the vectors, to their sums."""
        a = self.f.splat(self.acc, self.f.load(self.acc, place), self.w)
        for slot, value in zip(slots, values):
            self.add_product(slot, a, value)

    # ---- memory --------------------------------------------------------------------------------------------------------

    def load(self, place: str, mask: str | None = None) -> str:
        return masked_load(self.f, self.acc, self.w, place, mask) if mask else self.f.load(self.type, place, self.size)

    def store(self, value: str, place: str, mask: str | None = None) -> None:
        masked_store(self.f, self.acc, self.w, value, place, mask) if mask else self.f.store(self.type, value, place, self.size)

    def lanes(self, count: str) -> str:
        """The mask of the first `count` lanes."""
        return self.f.lanes_below(count, self.w)

    def loads(self, place: str, count: int, mask: str | None = None) -> list[str]:
        """Vectors behind each other."""
        return [self.load(self.f.at(self.acc, place, j * self.w), mask) for j in range(count)]

    def store_lanes(self, values: list[str], lanes: str, target: str) -> None:
        """Stores vectors of which only `lanes` elements are wanted."""
        f, w = self.f, self.w
        for j, value in enumerate(values):
            place = f.at(self.acc, target, j * w)
            some = lambda: self.store(value, place, self.lanes(f.sub(lanes, j * w)))
            f.choose(f.compare("sge", lanes, (j + 1) * w), lambda: self.store(value, place), some)

    def add_sums(self, sums: list[list[str]], rows: str, ld: str, mask: str) -> None:
        """Adds the first `rows` rows of sums to those at %sums, `ld` elements apart; `mask` says what there is of the last vector of a row."""
        f = self.f
        for r, slots in enumerate(sums):
            target = f.at(self.acc, "%sums", f.mul(ld, r))
            with f.when(f.compare("sgt", rows, r)):
                for j, slot in enumerate(slots):
                    place, value = f.at(self.acc, target, j * self.w), self.get(slot)
                    given = mask if j == len(slots) - 1 else None
                    self.store(self.plus(value, self.load(place, given)), place, given)

    # ---- walks ---------------------------------------------------------------------------------------------------------

    def whole_or_masked(self, whole: str, mask: str, sweep: Callable[[str | None], None]) -> None:
        """`sweep(mask)` without a mask where vectors are whole: two loops, so that the usual one has none."""
        self.f.choose(whole, lambda: sweep(None), lambda: sweep(mask))

    def across(self, low, high, emit: Callable[[str, int, str | None], None]) -> None:
        """`emit(channel, vectors, mask)` for channels from low to high: pairs of vectors as long as they last, then one, then what is left."""
        f, w = self.f, self.w
        many = f.sub(high, low) if low else high
        pairs = f.add(low, f.mul(f.div(many, 2 * w), 2 * w))
        whole = f.add(low, f.mul(f.div(many, w), w))
        with f.loop(low, pairs, 2 * w) as c:
            emit(c, 2, None)
        with f.loop(pairs, whole, w) as c:
            emit(c, 1, None)
        with f.when(f.compare("slt", whole, high)):
            emit(whole, 1, self.lanes(f.sub(high, whole)))
