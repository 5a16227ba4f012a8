"""Rows times a matrix of 4-bit elements or bytes in blocks, with rows of X in the lanes: Y [m, n] = X [m, k] @ W [n, k]^T (+ bias [n]), X of 16-bit floats.

As in block_dots.py bytes are multiplied four at a time into i32 lanes, and X is in fixed point for it. Here a vector holds R rows of X (R = 2, 4 … all lanes), so that
a few bytes of W, repeated, meet all of them, and sums stay integers for a whole group. The codes of W become bytes once for all rows, in scratch that stays in the
first-level cache.

    for 16 rows of W, ROWS at a time:   their scales
      for stretches of k:               for each panel of R rows of X: for rounds of vectors of codes:
        codes of ROWS rows to bytes (the first panel); for each unit of k: integer sums, then times both scales into the sums of the stretch

A unit is what integer sums run over: a group of W, or several where a step covers them, 256 elements at most. X has 15 bits under a row's largest element of a stretch.
Where that loses more than SLIGHT of the others, as beside an outlier, and where X is not finite, the kernel named @general runs instead.
"""
from __future__ import annotations

from . import jit
from .block_casts import PARTS, SLOTS, dequantize_row, words_of
from .block_dots import Dots, Dotting, joined
from .block_text import BlockText, Kind, _bits
from .gemm_pack import Kind as Product
from .gemm_pack import Tile
from .gemm_text import SIZES, TYPES, Function, module, vector
from .gemv_ir import horizontal
from .scratch import SCRATCH, claimed
from .thin_ir import finish

AHEAD = 1024  # bytes of a row that are fetched before they are used
ROWS = 8  # rows of W whose integer sums stand in registers: two digits each
TALL = 16  # rows of W whose results are turned and written together
UNIT = 256  # elements whose products with a byte and 16 bits fit 32 bits
STRETCH = 1024  # elements of k whose bytes stand in scratch
SLIGHT = {"bfloat16": 2.0**-9, "float16": 2.0**-12}  # of the sum of a stretch's magnitudes but the largest: what fixed point may lose, about what X's own rounding has lost
BITS = 15
SHORT = 4  # steps of a unit up to which its digits are added up one after the other


def heights(m: int, d: Dots) -> tuple[int, ...]:
    """Rows of X in a panel: of whole panels (where there are any), and of the last one, a power of two."""
    last = 1 << ((m - 1) % d.lanes).bit_length()
    return (last,) if m <= d.lanes or last == d.lanes else (d.lanes, last)


def serves(d: Dots, m: int, n: int, block: int, gaps: bool) -> bool:
    """Whether this kernel takes a product of 16-bit floats with a format that suits (block_dots.suits); `gaps` as in block_dots.text."""
    if d.how == "avx2" or m < 2 or n < TALL:
        return False
    return not gaps or block <= UNIT


def text(kind: Kind, dtype: str, bias: str | None, block: int, gaps: bool, d: Dots, panels: tuple[int, ...], tile: Tile, plain: list[Function]) -> str:
    """The module. `panels`: `heights`. `plain` are the functions of the kernel for other X, whose entry is @general."""
    maker = Lanes(kind, dtype, bias, block, gaps, d)
    product = Product(dtype, dtype, dtype, bias or dtype, "add" if bias else "", tile)
    functions = [dequantize_row(kind), *plain, maker.scales(), finish(product, jit.host().attributes)]
    for rows in panels:
        functions += [maker.prepare_panel(rows), maker.panel(rows, rows == panels[0]), maker.reduce(rows)]
    if panels[0] == d.lanes:
        functions.append(maker.panel(d.lanes, False))
    functions.append(maker.entry(panels, product))
    unique = {f.head: f for f in functions}
    return module(*unique.values(), extra=SCRATCH + "\n!900 = !{i32 1}")


class Lanes(Dotting):
    """Writes the functions of one kernel. Byte positions count raw bytes of a row's codes, without gaps."""

    SHIFT = 13  # scales of W are held as much smaller, in powers of two, as those of X are larger: integer sums come between them

    def __init__(self, kind: Kind, dtype: str, bias: str | None, block: int, gaps: bool, d: Dots):
        super().__init__(kind, dtype, bias, block, gaps, d)
        assert self.digits == 2

    # ---- how a row is cut: bytes of a step (a side of them each), of a unit, of a round ----

    def step_bytes(self, rows: int) -> int:
        return self.d.width // rows

    def unit_bytes(self, rows: int) -> int:
        most = UNIT // self.sides
        size = self.piece if self.piece <= most else most if self.piece % most == 0 else self.d.width
        return max(size, self.step_bytes(rows))

    def round_bytes(self, rows: int) -> int:
        return max(self.unit_bytes(rows), self.d.width)

    def units_of_stretch(self, rows: int) -> int:
        return self.turns(rows) * self.round_bytes(rows) // self.unit_bytes(rows)

    def turns(self, rows: int) -> int:
        """Rounds of a stretch."""
        return max(1, STRETCH // (self.round_bytes(rows) * self.sides))

    def steps(self, rows: int) -> int:
        """Steps of a unit."""
        return self.unit_bytes(rows) * self.sides // self.step_bytes(rows)

    def memory_bytes(self, f: Function, rows: int):
        """Bytes between two rounds of a row in memory."""
        return f.mul("%step", self.round_bytes(rows) // self.piece) if self.gaps else self.round_bytes(rows)

    # ---- X in fixed point: for a panel [unit][step][digit][lanes] bytes, then by unit and lane what is taken off and sums, by stretch and lane scales ----

    def panel_bytes(self, f: Function, rows: int, units) -> str:
        return f.mul(units, self.steps(rows) * self.digits * self.d.width + 12 * self.d.lanes)

    def panel_parts(self, f: Function, rows: int, base, units) -> list[str]:
        parts = [base, f.at("i8", base, f.mul(units, self.steps(rows) * self.digits * self.d.width))]
        for _ in range(2):
            parts.append(f.at("i8", parts[-1], f.mul(units, 4 * self.d.lanes)))
        return parts

    def sides_of(self, f: Function, values, n: int) -> list[str]:
        """<n x i32> elements in order -> for each side those of its bytes in order."""
        if self.sides == 1:
            return [values]
        half = n // 2
        if self.kind.order == "pairs":
            orders = [[2 * j + side for j in range(half)] for side in (0, 1)]
        else:
            orders = [[32 * (j // 16) + 16 * side + j % 16 for j in range(half)] for side in (0, 1)]
        return [f.op(f"shufflevector <{n} x i32> {values}, <{n} x i32> poison, <{half} x i32> <" + ", ".join(f"i32 {i}" for i in order) + ">") for order in orders]

    def prepare_panel(self, rows: int) -> Function:
        """`m` rows of X (row_x bytes apart) into a panel; wild [1] becomes 1 where fixed point does not serve."""
        f = Function(f"prepare_{rows}", "ptr noalias readonly %x, i64 %row_x, i64 %m, i64 %cols, i64 %units, ptr noalias %base, ptr noalias %wild", self.attributes)
        b = BlockText(f, self.kind)
        d, w, step = self.d, self.d.width, self.step_bytes(rows)
        digits, offsets, sums, scales = self.panel_parts(f, rows, "%base", "%units")
        memory = TYPES[self.dtype][0]
        bytes_ = self.unit_bytes(rows)
        size, each = bytes_ * self.sides, self.units_of_stretch(rows)  # elements of a unit, units of a stretch
        some = min(bytes_, 64)  # raw bytes that are worked on together
        n = some * self.sides
        wide, ints = vector("float", n), vector("i32", n)
        magic = b.real(1.5 * 2.0**23, n)  # its last place is 1: the adder rounds
        with f.when(f.compare("slt", "%m", rows)):  # rows that are not there are zeros, not slow garbage
            f.call("void", "llvm.memset.p0.i64", f"ptr {digits}", "i8 0", f"i64 {self.panel_bytes(f, rows, '%units')}", "i1 false")
        copy = f.variable(f"[{each * size} x {memory}]", align=64)
        held = f.variable(f"[{self.sides * self.digits * some} x i8]", align=64)
        cells = [f.variable(type_, align=64) for type_ in (ints, wide, wide)]

        def number(x, first):
            return f.decode(self.dtype, f.load(vector(memory, n), f.at(memory, x, first), SIZES[memory]), n, jit.host().half)

        def magnitude(value):
            return f.op(f"and {ints} {f.op(f'bitcast {wide} {value} to {ints}')}, {b.const('i32', 0x7FFFFFFF, n)}")

        def grow(cell, type_, combine):
            f.store(type_, combine(f.load(type_, cell, 64)), cell, 64)

        def quantise(x, u, inside, part, factor, r):
            """Part `part` of unit u, which begins `inside` the stretch."""
            scaled = f.times("float", n, number(x, f.add(inside, part * n)), factor)
            moved = f.plus("float", n, scaled, magic)
            off = f.op(f"fsub {wide} {scaled}, {f.op(f'fsub {wide} {moved}, {magic}')}")
            for cell, value in zip(cells[1:], (off, scaled)):
                grow(cell, wide, lambda total, value=value: f.plus("float", n, total, f.op(f"bitcast {ints} {magnitude(value)} to {wide}")))
            whole = f.op(f"sub {ints} {f.op(f'bitcast {wide} {moved} to {ints}')}, {b.const('i32', _bits(1.5 * 2.0**23), n)}")
            for side, rest in enumerate(self.sides_of(f, whole, n)):
                for digit in range(self.digits):
                    byte = f.op(f"trunc <{some} x i32> {rest} to <{some} x i8>")
                    f.store(f"<{some} x i8>", byte, f.at("i8", held, (side * self.digits + digit) * some), 1)
                    if digit + 1 < self.digits:
                        rest = f.op(f"sub <{some} x i32> {rest}, {f.op(f'sext <{some} x i8> {byte} to <{some} x i32>')}")
                        rest = f.op(f"ashr <{some} x i32> {rest}, {b.const('i32', 8, some)}")
            target = f.at("i8", digits, f.add(f.mul(u, self.steps(rows) * self.digits * w), f.mul(r, step)))
            for chunk in range(some // step):
                for side in range(self.sides):
                    for digit in range(self.digits):
                        to = (((part * (some // step) + chunk) * self.sides + side) * self.digits + digit) * w
                        value = f.load(f"<{step} x i8>", f.at("i8", held, (side * self.digits + digit) * some + chunk * step), 1)
                        f.store(f"<{step} x i8>", value, f.at("i8", target, to), 1)

        with f.loop(0, "%units", each) as first, f.loop(0, "%m") as r:
            source = f.at(memory, f.at("i8", "%x", f.mul(r, "%row_x")), f.mul(first, size))
            there = f.call("i64", "llvm.smax.i64", f"i64 {f.min(f.sub('%cols', f.mul(first, size)), each * size)}", "i64 0")
            partly = f.compare("slt", there, each * size)
            with f.when(partly):
                f.call("void", "llvm.memset.p0.i64", f"ptr {copy}", "i8 0", f"i64 {each * size * SIZES[memory]}", "i1 false")
                f.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {copy}", f"ptr {source}", f"i64 {f.mul(there, SIZES[memory])}", "i1 false")
            x = f.op(f"select i1 {partly}, ptr {copy}, ptr {source}")
            for cell, type_ in zip(cells, (ints, wide, wide)):
                f.store(type_, "zeroinitializer", cell, 64)
            with f.loop(0, each * size, n) as i:
                grow(cells[0], ints, lambda largest: b.both("umax", largest, magnitude(number(x, i)), n))
            top = f.call("i32", f"llvm.vector.reduce.umax.v{n}i32", f"{ints} {f.load(ints, cells[0], 64)}")
            # The exponent under which the largest number stays below 2^15 - 128, which two signed digits hold.
            exponent = f.op(f"lshr i32 {f.op(f'add i32 {top}, 66560')}, 23")
            exponent = f.call("i32", "llvm.smax.i32", f"i32 {exponent}", f"i32 {BITS}")
            power = lambda biased: f.op(f"bitcast i32 {f.op(f'shl i32 {biased}, 23')} to float")
            factor = power(f.op(f"sub i32 {253 + BITS}, {exponent}"))
            every = d.lanes // rows
            place = f.at("float", scales, f.add(f.mul(f.div(first, each), d.lanes), f.mul(r, every)))
            f.store(vector("float", every), f.splat("float", power(f.op(f"add i32 {exponent}, {self.SHIFT - BITS + 1}")), every), place, 4)
            wide_factor = f.splat("float", factor, n)
            with f.loop(first, f.min(f.add(first, each), "%units")) as u:
                for part in range(size // n):
                    quantise(x, u, f.mul(f.sub(u, first), size), part, wide_factor, r)
            lost, all_ = (horizontal(f, "float", n, f.load(wide, cell, 64)) for cell in cells[1:])
            largest = f.times("float", 1, f.op(f"bitcast i32 {top} to float"), factor)
            allowed = f.times("float", 1, f.op(f"fsub float {all_}, {largest}"), b.real(SLIGHT[self.dtype], 1))
            bad = f.op(f"or i1 {f.op(f'icmp uge i32 {top}, {0x7F800000}')}, {f.op(f'fcmp ogt float {lost}, {allowed}')}")
            with f.when(bad):
                f.store("i32", "1", "%wild")
        i32, ones = f"<{d.lanes} x i32>", "<" + ", ".join(["i8 1"] * w) + ">"
        with f.loop(0, "%units") as u:
            found = [f.variable(i32, align=64) for _ in range(self.digits)]
            for slot in found:
                f.store(i32, "zeroinitializer", slot, 64)
            with f.loop(0, self.steps(rows)) as s:
                for digit, slot in enumerate(found):
                    x = f.load(f"<{w} x i8>", f.at("i8", digits, f.mul(f.add(f.mul(f.add(f.mul(u, self.steps(rows)), s), self.digits), digit), w)), 1)
                    f.store(i32, self.dot(f, f.load(i32, slot, 64), ones, x), slot, 64)
            total = self.joined(f, *(f.load(i32, slot, 64) for slot in found))
            f.store(i32, f.op(f"mul {i32} {total}, {b.const('i32', -self.offset, d.lanes)}"), f.at("i32", offsets, f.mul(u, d.lanes)), 4)
            number_ = f.op(f"sitofp {i32} {total} to <{d.lanes} x float>")
            number_ = f.times("float", d.lanes, number_, b.real(2.0**-self.SHIFT, d.lanes))
            f.store(f"<{d.lanes} x float>", number_, f.at("float", sums, f.mul(u, d.lanes)), 4)
        return f

    def joined(self, f: Function, low, high) -> str:
        """high * 256 + low."""
        i32 = f"<{self.d.lanes} x i32>"
        return f.op(f"add {i32} {f.op(f'shl {i32} {high}, ' + f.constant('i32', 8, self.d.lanes))}, {low}")

    # ---- rows of W ----

    def near(self, f: Function, element: str, base, strides):
        """place(r): the addresses of ROWS rows, reached from few registers: two of them, and one, three and five strides, which addressing scales."""
        bases = [base, f.at(element, base, f.mul(strides, 7))]
        odd = {i: f.mul(strides, i) for i in (1, 3, 5)}

        def place(r):
            at, within = bases[r // 7], r % 7
            if not within:
                return at
            power = within & -within
            times = odd[within // power]
            return f.at(element, at, times if power == 1 else f.op(f"shl i64 {times}, {power.bit_length() - 1}"))

        return place

    def raw(self, f: Function, rows: int, row, v: int) -> str:
        """Vector v of a round of a row's codes."""
        w = self.d.width
        if not self.gaps:
            return f.load(f"<{w} x i8>", f.at("i8", row, v * w), 1)
        size = min(self.piece, w)
        found = []
        for p in range(w // size):
            byte = v * w + p * size
            block = f.at("i8", row, f.mul("%step", byte // self.piece))
            found.append(f.load(f"<{size} x i8>", f.at("i8", block, byte % self.piece + self.kind.at("codes")[1]), 1))
        return joined(f, found, size)

    def spread_lanes(self, f: Function, rows: int, numbers) -> str:
        """The scales of a unit's groups, each in its lanes; `numbers` is the address of the first."""
        lanes, step = self.d.lanes, self.step_bytes(rows)
        groups = max(1, step // self.piece)
        if groups == 1:
            return f.splat("float", f.load("float", numbers, 4), lanes)
        few = f.load(f"<{groups} x float>", numbers, 4)
        order = ", ".join(f"i32 {4 * (lane % (lanes // rows)) // self.piece}" for lane in range(lanes))
        return f.op(f"shufflevector <{groups} x float> {few}, <{groups} x float> poison, <{lanes} x i32> <{order}>")

    def panel(self, rows: int, decode: bool) -> Function:
        """sums [ROWS, lanes] += a panel of X times ROWS rows of W, in the rounds `first` … `last`. decode: from codes, else what stands in scratch already.

        `bytes` is `scratch` again: known to be the same, its vectors would be repeated by instructions instead of loads.
        """
        f = Function(
            f"panel_{rows}_{'codes' if decode else 'bytes'}",
            "ptr noalias readonly %base, i64 %units, i64 %first, i64 %last, ptr readonly %w, i64 %next, i64 %step, i64 %whole, ptr readonly %tail, i64 %ld_tail, "
            "ptr noalias readonly %factors, ptr noalias readonly %addends, i64 %ld, ptr %scratch, ptr %bytes, ptr noalias %sums", self.attributes,
        )  # fmt: skip
        w, lanes, step = self.d.width, self.d.lanes, self.step_bytes(rows)
        wide, i32 = f"<{lanes} x float>", f"<{lanes} x i32>"
        digits, offsets, lane_sums, scales = self.panel_parts(f, rows, "%base", "%units")
        bytes_, round_ = self.unit_bytes(rows), self.round_bytes(rows)
        vectors, decoded = round_ // w, round_ * self.sides
        totals = [f.variable(wide, align=64) for _ in range(ROWS)]
        for total in totals:
            f.store(wide, "zeroinitializer", total, 64)
        cells = [[f.variable(i32, align=64) for _ in range(self.digits)] for _ in range(ROWS)]
        stride = self.memory_bytes(f, rows)
        factor_of, addend_of = (self.near(f, "float", base, "%ld") for base in ("%factors", "%addends"))

        def bytes_of_codes(k, here):
            ends = f.compare("eq", k, "%whole")
            at = f.mul(k, stride)
            start = f.op(f"select i1 {ends}, ptr %tail, ptr {f.at('i8', '%w', at)}")
            row_of = self.near(f, "i8", start, f.op(f"select i1 {ends}, i64 %ld_tail, i64 %next"))
            # What is fetched: behind a row's end, the rows that come next.
            beyond = f.compare("sge", f.add(at, AHEAD), f.mul("%whole", stride))
            far = f.add(f.op(f"select i1 {beyond}, i64 {f.mul('%next', ROWS - 1)}, i64 0"), AHEAD)
            for r in range(ROWS):
                row = row_of(r)
                for line in range(0, round_, 64):
                    f.call("void", "llvm.prefetch.p0", f"ptr {f.at('i8', row, f.add(far, line))}", "i32 0", "i32 3", "i32 1")
                for v in range(vectors):
                    for side, found in enumerate(self.look_up(f, self.raw(f, rows, row, v))):
                        f.store(f"<{w} x i8>", found, f.at("i8", here, r * decoded + (v * self.sides + side) * w), w)

        def repeated(r, here):
            """The bytes of a step of row r, for every row of X; `here` is the place of the first row's."""
            few = f.load(f"<{step // 4} x i32>", f.at("i8", here, r * decoded), 4)
            every = f.op(f"shufflevector <{step // 4} x i32> {few}, <{step // 4} x i32> poison, {i32} <" + ", ".join(f"i32 {i % (step // 4)}" for i in range(lanes)) + ">")
            return f.op(f"bitcast {i32} {every} to <{w} x i8>")

        def add(r, digit, bytes_of_w, x):
            f.store(i32, self.dot(f, f.load(i32, cells[r][digit], 64), bytes_of_w, x), cells[r][digit], 64)

        def digits_at(x):
            return [f.load(f"<{w} x i8>", f.at("i8", x, digit * w), w) for digit in range(self.digits)]

        def long(u, x, here, inside):
            """Sums of both digits side by side."""
            start = f.load(i32, f.at("i32", offsets, f.mul(u, lanes)), 4)
            for row in cells:
                for digit, cell in enumerate(row):
                    f.store(i32, "zeroinitializer" if digit or not self.offset else start, cell, 64)
            together = min(chunks, 4)
            for v in range(max(1, bytes_ // w)):
                with f.loop(0, chunks, together) as c:
                    for chunk in range(together):
                        at = f.add(c, chunk)
                        for side in range(self.sides):
                            some = digits_at(f.at("i8", x, f.mul(f.add(f.mul(f.add(at, v * chunks), self.sides), side), self.digits * w)))
                            bytes_of_w = f.at("i8", here, f.add(f.mul(at, step), (v * self.sides + side) * w + inside))
                            for r in range(ROWS):
                                row = repeated(r, bytes_of_w)
                                for digit in range(self.digits):
                                    add(r, digit, row, some[digit])
            return [self.joined(f, *(f.load(i32, cell, 64) for cell in row)) for row in cells]

        def short(u, x, here, inside):
            """Row by row, which leaves registers to the sums of the stretch."""
            start = f.load(i32, f.at("i32", offsets, f.mul(u, lanes)), 4)
            places = [(v, chunk, side) for v in range(max(1, bytes_ // w)) for chunk in range(chunks) for side in range(self.sides)]
            some = [digits_at(f.at("i8", x, number * self.digits * w)) for number in range(len(places))]
            found = []
            for r in range(ROWS):
                rows_ = [repeated(r, f.at("i8", here, (v * self.sides + side) * w + inside + chunk * step)) for v, chunk, side in places]
                total = "zeroinitializer"
                for row, x_digits in zip(rows_, some):
                    total = self.dot(f, total, row, x_digits[1])
                total = self.joined(f, start, total) if self.offset else f.op(f"shl {i32} {total}, {f.constant('i32', 8, lanes)}")
                for row, x_digits in zip(rows_, some):
                    total = self.dot(f, total, row, x_digits[0])
                found.append(total)
            return found

        chunks = min(bytes_, w) // step

        def unit(u, here, inside):
            """Unit u of the row; its bytes begin `inside` a round's vector."""
            x = f.at("i8", digits, f.mul(u, self.steps(rows) * self.digits * w))
            found = (short if self.steps(rows) <= SHORT else long)(u, x, here, inside)
            of_x = f.load(wide, f.at("float", lane_sums, f.mul(u, lanes)), 4) if self.added else None
            group = f.mul(u, bytes_ // self.piece) if bytes_ >= self.piece else f.div(f.mul(u, bytes_), self.piece)
            for r, total in enumerate(totals):
                number = f.op(f"sitofp {i32} {found[r]} to {wide}")
                sum_ = f.fma("float", lanes, number, self.spread_lanes(f, rows, f.at("float", factor_of(r), group)), f.load(wide, total, 64), True)
                if of_x is not None:
                    sum_ = f.fma("float", lanes, of_x, self.spread_lanes(f, rows, f.at("float", addend_of(r), group)), sum_, True)
                f.store(wide, sum_, total, 64)

        with f.loop("%first", "%last") as k:
            here = f.mul(f.sub(k, "%first"), ROWS * decoded)
            if decode:
                bytes_of_codes(k, f.at("i8", "%scratch", here))
            here = f.at("i8", "%bytes", here)
            for number in range(round_ // bytes_):
                unit(f.add(f.mul(k, round_ // bytes_), number), here, number * bytes_)
        scale = f.load(wide, f.at("float", scales, f.mul(f.div("%first", self.turns(rows)), lanes)), 4)
        for r, total in enumerate(totals):
            place = f.at("float", "%sums", r * lanes)
            f.store(wide, f.fma("float", lanes, f.load(wide, total, 64), scale, f.load(wide, place, 64), True), place, 64)
        return f

    def reduce(self, rows: int) -> Function:
        """target [ROWS, lds]: for each row of W its sums with `rows` rows of X."""
        f = Function(f"reduce_{rows}", "ptr noalias readonly %sums, ptr noalias %target, i64 %lds", self.attributes)
        lanes = self.d.lanes
        wide = vector("float", lanes)
        shuffle = lambda value, order: f.op(f"shufflevector {wide} {value}, {wide} poison, <{len(order)} x i32> <" + ", ".join(f"i32 {i}" for i in order) + ">")
        with f.loop(0, ROWS) as r:
            value = f.load(wide, f.at("float", "%sums", f.mul(r, lanes)), 64)
            apart = 1
            while apart < lanes // rows:
                value = f.plus("float", lanes, value, shuffle(value, [lane ^ apart for lane in range(lanes)]))
                apart *= 2
            if rows == 1:
                value = f.op(f"extractelement {wide} {value}, i64 0")
            elif rows < lanes:
                value = shuffle(value, [lane * (lanes // rows) for lane in range(rows)])
            f.store(vector("float", rows), value, f.at("float", "%target", f.mul(r, "%lds")), 4)
        return f

    # ---- the entry ----

    def entry(self, panels: tuple[int, ...], product: Product) -> Function:
        f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
        words = words_of(f)
        slots = [f.load("ptr", f.at("ptr", "%slots", n)) for n in range(SLOTS)]
        ts = f.load("float", slots[5], 4)
        lanes = self.d.lanes
        size = SIZES[TYPES[self.dtype][0]]
        round_ = self.round_bytes(panels[0])
        assert all(self.round_bytes(rows) == round_ for rows in panels)
        items = f.div(words["rows"], TALL)  # a tile that lacks rows begins earlier
        row_bytes = f.mul(words["blocks"], self.piece)  # of codes
        whole, rounds = f.div(row_bytes, round_), f.ceil_div(row_bytes, round_)
        last = panels[-1] if panels[-1] != lanes else None
        many = 0 if panels[0] != lanes else f.div(words["m"], lanes) if last else f.ceil_div(words["m"], lanes)  # panels of all lanes
        count = f.add(many, int(last is not None))
        units = [f.mul(rounds, round_ // self.unit_bytes(rows)) for rows in panels]
        sizes = [self.panel_bytes(f, rows, n) for rows, n in zip(panels, units)]
        x_bytes = f.add(f.mul(sizes[0], many), sizes[-1] if last else 0)
        groups = f.add(f.ceil_div(f.mul(rounds, round_), self.piece), 16)
        lds = f.mul(f.ceil_div(words["m"], product.tile.width), product.tile.width)
        turns = self.turns(panels[0])
        scratch_bytes = turns * ROWS * round_ * self.sides
        tail_row = f.mul(words["step0"], round_ // self.piece) if self.gaps else round_
        wild = f.variable("i32", 0)
        total = x_bytes
        parts = []
        for more in (scratch_bytes, f.mul(groups, 4 * ROWS), f.mul(groups, 4 * ROWS), f.mul(count, 4 * ROWS * lanes), f.mul(f.add(lds, lanes), 4 * TALL), f.mul(tail_row, ROWS)):
            parts.append(total)
            total = f.mul(f.ceil_div(f.add(total, more), 64), 64)
        def panel_of(base, p):
            return f.at("i8", base, f.mul(sizes[0], p))

        def each(emit):
            """emit(rows of the panel, number of the panel, its units, whether it is the first)."""
            if panels[0] == lanes:
                emit(lanes, 0, units[0], True)
                with f.loop(1, many) as p:
                    emit(lanes, p, units[0], False)
            if last:
                emit(last, many, units[-1], panels[0] != lanes)

        def prepare_panel(base, rows, p, units_):
            x = f.at("i8", slots[1], f.mul(f.mul(words["row_x"], lanes), p) if p else 0)
            there = f.min(f.sub(words["m"], f.mul(p, lanes) if p else 0), rows)
            f.do(f"call void @prepare_{rows}(ptr {x}, i64 {words['row_x']}, i64 {there}, i64 {words['cols']}, i64 {units_}, ptr {panel_of(base, p)}, ptr {wild})")

        def prepare(base):
            f.call("void", "llvm.memset.p0.i64", f"ptr {f.at('i8', base, parts[1])}", "i8 0", f"i64 {f.sub(total, parts[1])}", "i1 false")  # behind a row's last group and last code: zero
            each(lambda rows, p, units_, _: prepare_panel(base, rows, p, units_))

        def work(base, first, last):
            low = f.mul(first, TALL)
            high = f.op(f"select i1 {f.compare('eq', last, items)}, i64 {words['rows']}, i64 {f.mul(last, TALL)}")
            general = f"call void @general(ptr %desc, ptr %slots, i64 {low}, i64 {high})"
            f.choose(f.op(f"icmp eq i32 {f.load('i32', wild)}, 0"), lambda: fast(base, low, high), lambda: f.do(general))

        def fast(base, low, high):
            held = f.at("i8", base, parts[4])
            with f.loop(low, high, TALL) as tile:
                n0 = f.min(tile, f.sub(words["rows"], TALL))
                for part in range(0, TALL, ROWS):
                    rows_(base, f.add(n0, part), f.at("float", held, f.mul(lds, part)))
                stride = f.div(words["row_y"], size)
                f.do(
                    f"call void @finish(ptr {held}, i64 {lds}, i64 {words['m']}, i64 {TALL}, i64 {n0}, ptr {slots[0]}, i64 {stride}, i64 1, ptr {slots[6]}, i64 0, i64 1, "
                    f"float 1.0, float 1.0)"
                )

        def rows_(base, n0, target):
            """The sums of ROWS rows of W from n0 on."""
            scratch, factors, addends, sums, _, tail = (f.at("i8", base, part) for part in parts)
            at = [f.at("i8", slots[2 + p], f.mul(n0, words[f"row{p}"])) for p in range(PARTS)]
            with f.loop(0, ROWS) as r:
                starts = [f.at("i8", at[p], f.mul(r, words[f"row{p}"])) for p in range(PARTS)]
                parts_ = ", ".join(f"ptr {starts[p]}, i64 {words[f'step{p}']}" for p in range(PARTS))
                places = ", ".join(f"ptr {f.at('float', base_, f.mul(r, groups))}" for base_ in (factors, addends))
                f.do(f"call void @scales({parts_}, i64 {words['blocks']}, float {ts}, {places})")
                row_tail = f.at("i8", tail, f.mul(r, tail_row))
                if self.gaps:
                    done = f.mul(whole, round_ // self.piece)
                    with f.loop(done, words["blocks"]) as g:
                        from_, to = (f.at("i8", place, f.mul(i, words["step0"])) for place, i in ((starts[0], g), (row_tail, f.sub(g, done))))
                        f.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {to}", f"ptr {from_}", f"i64 {self.piece + self.kind.at('codes')[1]}", "i1 false")
                else:
                    from_ = f.at("i8", starts[0], f.mul(whole, round_))
                    f.call("void", "llvm.memcpy.p0.p0.i64", f"ptr {row_tail}", f"ptr {from_}", f"i64 {f.sub(row_bytes, f.mul(whole, round_))}", "i1 false")
            f.call("void", "llvm.memset.p0.i64", f"ptr {sums}", "i8 0", f"i64 {f.mul(count, 4 * ROWS * lanes)}", "i1 false")
            with f.loop(0, rounds, turns) as first:
                stop = f.min(f.add(first, turns), rounds)

                def multiply(rows, p, units_, decode):
                    f.do(
                        f"call void @panel_{rows}_{'codes' if decode else 'bytes'}(ptr {panel_of(base, p)}, i64 {units_}, i64 {first}, i64 {stop}, ptr {at[0]}, i64 {words['row0']}, "
                        f"i64 {words['step0']}, i64 {whole}, ptr {tail}, i64 {tail_row}, ptr {factors}, ptr {addends}, i64 {groups}, ptr {scratch}, ptr {scratch}, "
                        f"ptr {f.at('float', sums, f.mul(p, ROWS * lanes) if p else 0)})"
                    )

                each(multiply)
            each(lambda rows, p, units_, decode: f.do(
                f"call void @reduce_{rows}(ptr {f.at('float', sums, f.mul(p, ROWS * lanes) if p else 0)}, ptr {f.at('float', target, f.mul(p, lanes) if p else 0)}, i64 {lds})"))  # fmt: skip

        claimed(f, items, f.add(total, 64), prepare, work)
        return f
