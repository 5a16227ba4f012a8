"""The packed, cache-blocked matrix product as LLVM IR: the module, and its kernel, which takes rectangles of C and the scratch memory that they need.

    for each rectangle of C (claimed as threads come):               C [m, n] = alpha * A [m, k] @ B [k, n]  (+ beta * I [m, n])
      the loop nest of gemm_rectangle.py around packing (gemm_pack.py) and the register-tiled micro-kernel (gemm_micro.py)

One generator for every host: vector width and tile are parameters (`Tile`). Which kernel a product gets is decided in matmul.py; vectors times matrices are gemv_ir.py.
"""
from __future__ import annotations

from contextlib import contextmanager

from .gemm_dots import close_tiles, open_tiles, tile_micro
from .gemm_micro import finish, micro
from .gemm_pack import Kind, packing
from .gemm_rectangle import rectangle
from .gemm_text import TYPES, Function, is_float, module
from .runtime_pool import TEAM

# Descriptor words (8 and up); strides in elements of the operand they belong to. The epilogue's operand I is the added input of addmm, or a bias.
# C is cut into rectangles: `down` slices of rows for each of `across` blocks of columns, whose bounds stand at the end. Threads claim `chunk` slices at a time. `keep` is what a round
# of k takes, in words, where a block of B is packed whole and kept for all slices of rows (0: it is packed anew for each).
WORDS = ("m n k units chunk down across kc mc nc rsa csa rsb csb rsc csc rsi csi at_b at_p at_tile scratch keep batch_dims").split()
FIRST = 8
AFTER, AFTER_WORDS = 5, 6  # of the header: what runs on finished blocks of C (0: nothing), and where its words begin (epilogue.py)
MIDDLE = 640  # rows of C up to which panels of B are packed by the first tiles that read them
STACK = 32768  # bytes of scratch up to which no allocation is made
BATCH = FIRST + len(WORDS)  # then five words a batch dimension: size, strides of A, B, C, I


def gemm_module(kind: Kind, attributes: str) -> str:
    t = kind.tile
    functions = [*packing(kind, attributes), finish(kind, attributes), rectangle(kind, attributes), kernel(kind)]
    tiles = kind.dot if kind.dot and kind.dot.form == "tiles" else None
    functions += [tile_micro(tiles, height, t.nr, attributes) if tiles else micro(kind, height, attributes) for height in t.heights]
    if kind.plain:
        functions.append(micro(kind, t.heights[0], attributes, "first"))
    if kind.left:
        functions.append(micro(kind, t.heights[0], attributes, kind.left))
    extra = "declare i32 @posix_memalign(ptr, i64, i64)\ndeclare void @free(ptr)\n" + STARVED
    return module(*functions, extra=extra)


def batch_offsets(f: Function, index, first_word: int, dims, operands: int) -> list[str]:
    """Splits a batch index over the batch dimensions of the descriptor: the operands' offsets in elements."""
    left = f.variable("i64", index)
    sums = [f.variable("i64", 0) for _ in range(operands)]
    with f.loop(0, dims) as d:
        word = f.at("i64", "%desc", f.add(f.mul(d, operands + 1), first_word))
        size, here = f.load("i64", word), f.load("i64", left)
        digit = f.rem(here, size)
        f.store("i64", f.div(here, size), left)
        for o in range(operands):
            stride = f.load("i64", f.at("i64", word, o + 1))
            f.store("i64", f.add(f.load("i64", sums[o]), f.mul(digit, stride)), sums[o])
    return [f.load("i64", s) for s in sums]


def kernel(kind: Kind) -> Function:
    """The entry. A part takes rectangles of C one after the other, from a block of columns of its own first: those that no other part has taken yet."""
    acc = kind.acc
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", "nounwind", linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    names = ["c", "a", "b"] + (["i"] if kind.epilogue == "add" else [])
    slot = {name: f.load("ptr", f.at("ptr", "%slots", n)) for n, name in enumerate(names)}
    scalars = scalar_slots(f, kind, len(names))
    after = f.load("ptr", f.at("i64", "%desc", AFTER))
    after_words = f.load("i64", f.at("i64", "%desc", AFTER_WORDS))
    counters, kept = f.variable("ptr", f.variable("i64", 0)), f.variable("ptr", "null")  # alone: a counter of its own, and nothing is kept
    with f.when(f.compare("sgt", "%parts", 1)):
        shared = f.load("ptr", f.at("ptr", "%slots", f.load("i64", f.at("i64", "%desc", 1))))
        f.store("ptr", shared, counters)
        table = f.load("ptr", f.at("ptr", shared, TEAM))
        with f.when(f.op(f"icmp ne ptr {table}, null")):
            f.store("ptr", f.at("i8", table, f.mul("%part", 16)), kept)
    counters = f.load("ptr", counters)
    tiles = kind.dot and kind.dot.form == "tiles"
    cell, started = f.variable("ptr", f.variable(f"[{STACK} x i8]", align=64)), f.variable("i1", 0)
    large = f.compare("sgt", word["scratch"], STACK)
    rows, columns = f.at("i64", "%desc", f.add(f.mul(word["batch_dims"], 5), BATCH)), f.variable("ptr")
    f.store("ptr", f.at("i64", rows, f.add(word["down"], 1)), columns)
    columns = f.load("ptr", columns)
    low = f.compare("sle", word["m"], 2 * kind.tile.heights[0])
    middle = f.both(f.compare("sle", word["m"], MIDDLE), f.op(f"xor i1 {low}, true"))
    with f.loop(0, word["across"]) as turn:
        block = f.rem(f.add("%part", turn), word["across"])
        n0 = f.load("i64", f.at("i64", columns, block))
        n = f.sub(f.load("i64", f.at("i64", columns, f.add(block, 1))), n0)
        packed = f.variable("i64")  # the matrix of which this block of B is packed
        f.store("i64", -1, packed)
        taken = f.ceil_div(word["units"], word["chunk"])
        with claims(f, f.at("i64", counters, block), taken) as claim:
            first = f.mul(claim, word["chunk"])
            last = f.min(f.add(first, word["chunk"]), word["units"])
            with f.when(f.op(f"xor i1 {f.load('i1', started)}, true")):
                f.store("i1", 1, started)
                if tiles:
                    open_tiles(f)
                with f.when(large):
                    memory(f, cell, f.load("ptr", kept), word["scratch"])
                    empty = f.op(f"icmp eq ptr {f.load('ptr', cell)}, null")
                    f.do(f"br i1 {empty}, label %starved, label %fed")
                    f.label("fed")
            with f.loop(first, last) as unit:
                scratch = f.load("ptr", cell)
                at = {name: f.at("i8", scratch, word[name]) for name in ("at_b", "at_p", "at_tile")}
                matrix, slice_ = f.div(unit, word["down"]), f.rem(unit, word["down"])
                m0 = f.load("i64", f.at("i64", rows, slice_))
                m = f.sub(f.load("i64", f.at("i64", rows, f.add(slice_, 1))), m0)
                offsets = batch_offsets(f, matrix, BATCH, word["batch_dims"], 4)
                corner = {}
                for name, offset in zip("abci", offsets):
                    if name == "i" and "i" not in slot:
                        corner["i"] = "null"
                        continue
                    here = offset
                    if name != "b":
                        here = f.add(here, f.mul(m0, word["rs" + name]))
                    if name != "a":
                        here = f.add(here, f.mul(n0, word["cs" + name]))
                    corner[name] = f.at(TYPES[getattr(kind, name)][0], slot[name], here)
                ready = f.both(f.compare("ne", word["keep"], 0), f.compare("eq", f.load("i64", packed), matrix))
                f.store("i64", matrix, packed)
                strides = ", ".join(f"i64 {word[s]}" for s in ("rsa", "csa", "rsb", "csb", "rsc", "csc", "rsi", "csi"))
                f.do(
                    f"call void @rectangle(i64 {m}, i64 {n}, i64 {word['k']}, ptr {corner['a']}, ptr {corner['b']}, ptr {corner['c']}, ptr {corner['i']}, {strides}, "
                    f"i64 {word['kc']}, i64 {word['mc']}, i64 {word['nc']}, ptr {scratch}, ptr {at['at_b']}, ptr {at['at_p']}, ptr {at['at_tile']}, "
                    f"i64 {word['keep']}, i1 {ready}, i1 {low}, i1 {middle}, {acc} {scalars[0]}, {acc} {scalars[1]}, "
                    f"ptr {after}, ptr {f.at('i64', '%desc', after_words)}, ptr %slots, i64 {m0}, i64 {n0})"
                )
    f.do("br label %finish")
    f.label("starved")  # what this part claimed stays undone
    starve(f)
    f.do("br label %finish")
    f.label("finish")
    with f.when(f.load("i1", started)):
        if tiles:
            close_tiles(f)
        with f.when(f.both(large, f.op(f"icmp eq ptr {f.load('ptr', kept)}, null"))):
            f.do(f"call void @free(ptr {f.load('ptr', cell)})")
    return f


@contextmanager
def claims(f: Function, counter, stop):
    """The numbers below `stop` that nobody has taken from the counter yet, one after the other."""
    tag = f"claim{len(f.body)}"
    f.do(f"br label %{tag}.head")
    f.label(f"{tag}.head")
    number = f.op(f"atomicrmw add ptr {counter}, i64 1 monotonic")
    f.do(f"br i1 {f.compare('slt', number, stop)}, label %{tag}.body, label %{tag}.end")
    f.label(f"{tag}.body")
    yield number
    f.do(f"br label %{tag}.head")
    f.label(f"{tag}.end")


STARVED = "@strided_starved = external global i64"  # the runtime's


def starve(f: Function) -> None:
    """Counts a part that found no memory for its scratch: its job's launcher raises the error."""
    f.do("atomicrmw add ptr @strided_starved, i64 1 monotonic")


def memory(f: Function, cell, kept, size) -> None:
    """Scratch of `size` bytes into `cell`: what this part kept from its last job where that is enough. Null where the system has none left."""

    def take(place):
        f.store("ptr", "null", place)
        code = f.op(f"call i32 @posix_memalign(ptr {place}, i64 64, i64 {size})")
        with f.when(f.op(f"icmp ne i32 {code}, 0")):
            f.store("ptr", "null", place)

    def fresh():
        take(cell)

    def held():
        room = f.at("i64", kept, 1)
        with f.when(f.compare("slt", f.load("i64", room), size)):
            f.do(f"call void @free(ptr {f.load('ptr', kept)})")
            f.store("i64", 0, room)
            take(kept)
            with f.when(f.op(f"icmp ne ptr {f.load('ptr', kept)}, null")):
                f.store("i64", size, room)
        f.store("ptr", f.load("ptr", kept), cell)

    f.choose(f.op(f"icmp eq ptr {kept}, null"), fresh, held)


def scalar_slots(f: Function, kind: Kind, first: int) -> list[str]:
    """alpha and beta from the slots: doubles for floating products, i64 for integer ones."""
    acc = kind.acc
    wanted = {"": 0, "scale": 1, "add": 2}[kind.epilogue]
    values = []
    for n in range(2):
        if n >= wanted:
            values.append("0.0" if is_float(acc) else "0")
            continue
        given = "double" if is_float(acc) else "i64"
        value = f.load(given, f.at("i64", "%slots", first + n))
        if acc == "float":
            value = f.op(f"fptrunc double {value} to float")
        elif acc == "i32":
            value = f.op(f"trunc i64 {value} to i32")
        values.append(value)
    return values
