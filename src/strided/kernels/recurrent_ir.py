"""A layer of a recurrent network over all its steps in LLVM IR: the weights are packed once, then each step is a product and one sweep over its gates.

Forward and backward; rows of the batch do not need each other, so that parts of the work are rows and no step waits for another part. What a cell computes
is an expression (recurrent.py); the gradients of the weights are products afterwards (ops/recurrent.py).
"""
from __future__ import annotations

from collections.abc import Sequence

from . import expr as E
from .gemm_micro import micro
from .gemm_pack import Kind, pack
from .gemm_rectangle import pack_panels, panels
from .gemm_text import AS_WRITTEN, SIZES, Function, module
from .loops import Body
from .lower import Lowering, Value

# Sizes (width: all gates of a row; keep: whether each step saves its gates in a place of its own); elements from row to row of products; offsets of the scratch's parts in bytes;
# elements from step to step and from row to row of the outputs' gradient.
WORDS = "steps rows hidden width reverse keep ld at_b at_t at_held at_kept scratch d_step d_row".split()
FIRST = 8
Place = tuple[str, int]  # a row's pointer, and which piece of `hidden` elements behind it


def cell(exprs: Sequence[E.Expr], ins: Sequence[Place], outs: Sequence[Place], dtype: str, attributes: str) -> str:
    """`@cell(n, pointers…)`: for each of n elements of a row, the expressions of `ins` into `outs`. LLVM vectorises the loop."""
    b = Body()
    low = Lowering(b, dtype)
    element = {"float32": "float", "float64": "double"}[dtype]
    names = pointers(ins, outs)
    where = lambda place, j: b(f"getelementptr {element}, ptr %{place[0]}, i64 {b.add(j, b.mul('%n', place[1])) if place[1] else j}")
    access, around = b.parallel()
    with b.loop(0, "%n", extra=around) as j:
        env = {E.param(i): Value(b.load(element, where(place, j), access), dtype) for i, place in enumerate(ins)}
        for place, expr in zip(outs, exprs):
            b.store(element, low.emit(expr, env).text, where(place, j), access)
    arguments = ", ".join(["i64 %n", *(f"ptr noalias %{name}" for name in names)])
    definitions = low.definitions()
    return "\n".join([definitions, f"define internal void @cell({arguments}) {attributes} noinline {{\nentry:", *b.entry, *b.lines, "  ret void", "}", *b.tail])


def pointers(ins: Sequence[Place], outs: Sequence[Place]) -> list[str]:
    return list(dict.fromkeys(name for name, _ in (*ins, *outs)))


def layer_module(kind: Kind, backward: bool, exprs, ins, outs, attributes: str) -> str:
    """kind: the operands' dtype throughout. The pointers of `ins` and `outs` are the names that `forward_kernel` and `backward_kernel` know."""
    names = pointers(ins, outs)
    functions = [(backward_kernel if backward else forward_kernel)(kind, names, attributes), pack(kind, kind.a, kind.a, attributes + AS_WRITTEN)]
    functions += [micro(kind, height, attributes) for height in kind.tile.heights]
    known = {line.split("@")[1].split("(")[0] for f in functions for line in f.declared}
    text = cell(exprs, ins, outs, kind.c, attributes)
    lines = [line for line in text.split("\n") if not (line.startswith("declare") and line.split("@")[1].split("(")[0] in known)]
    return module(*functions, extra="\n".join(lines))


def product(f: Function, kind: Kind, rows, columns, k, left, right, target, held, wanted, each: int) -> None:
    """target [rows, columns] = left @ right, packed; whole tiles are written, so target has room for a tile behind its last row.

    Meanwhile `each` elements for each of the target's are fetched from `wanted` on, which the next step's gates will read.
    """
    acc, nr, size = kind.acc, kind.tile.nr, SIZES[kind.acc]
    rest = f"i1 false, i1 false, ptr null, i64 0, i64 0, ptr null, i64 0, i64 0, {acc} 0.0, {acc} 0.0"
    with f.loop(0, columns, nr) as j:
        panel_b = f.at(acc, right, f.mul(j, k))

        def emit(height, i, here, panel):
            place = f.at(acc, target, f.add(f.mul(i, columns), j))
            share = f.at(acc, wanted, f.mul(f.add(f.mul(j, rows), f.mul(i, nr)), each))
            step = f.div(each * height * nr * size, k)  # bytes from one row of the panels to the next
            f.do(f"call void @micro_{height}(i64 {k}, ptr {panel}, ptr {panel_b}, i64 {nr}, ptr {share}, i64 {step}, ptr {held}, ptr {place}, i64 {columns}, {rest})")

        panels(f, kind, rows, k, left, emit)


def _start(kind: Kind, attributes: str, slots: Sequence[str]):
    f = Function("kernel", "ptr %desc, ptr %slots, i64 %part, i64 %parts", attributes + AS_WRITTEN, linkage="dso_local")
    word = {name: f.load("i64", f.at("i64", "%desc", FIRST + i)) for i, name in enumerate(WORDS)}
    slot = {name: f.load("ptr", f.at("ptr", "%slots", n)) for n, name in enumerate(slots)}
    begin, end = f.share(word["rows"])
    left = f.at("i8", slot["scratch"], f.mul("%part", word["scratch"]))
    parts = left, *(f.at("i8", left, word[name]) for name in ("at_b", "at_t", "at_held", "at_kept"))
    return f, word, slot, begin, f.sub(end, begin), parts


def _steps(f: Function, word: dict, number, backwards: bool):
    """(the step of this number, the one whose state it starts from) in the order of the layer, or against it."""
    last = f.sub(word["steps"], 1)
    turned = f.compare("ne", word["reverse"], 0)
    up, down = number, f.sub(last, number)
    first, second = (down, up) if backwards else (up, down)
    t = f.op(f"select i1 {turned}, i64 {second}, i64 {first}")
    return t, f.op(f"select i1 {turned}, i64 {f.add(t, 1)}, i64 {f.sub(t, 1)}")


FORWARD = ("out", "cells", "saved", "x", "h0", "c0", "bias", "weight", "scratch")


def forward_kernel(kind: Kind, names: Sequence[str], attributes: str) -> Function:
    """A row's pointers: x (its gates so far), p (the product with the state), bias, h_before, c_before; saved, c, h."""
    acc, nr = kind.acc, kind.tile.nr
    f, word, slot, begin, rows, (left, right, sums, held, _) = _start(kind, attributes, FORWARD)
    hidden, width = word["hidden"], word["width"]
    with f.loop(0, width, nr) as j:
        count = f.min(nr, f.sub(width, j))
        f.do(f"call void @pack_{kind.b}(ptr {f.at(acc, slot['weight'], f.mul(j, hidden))}, i64 {hidden}, i64 1, i64 {count}, i64 {hidden}, ptr {f.at(acc, right, f.mul(j, hidden))}, i64 {nr})")
    state = f.mul(word["rows"], hidden)
    with f.loop(0, word["steps"]) as number:
        t, before = _steps(f, word, number, False)
        begun, saving = f.compare("ne", number, 0), f.mul(t, word["keep"])
        previous = {
            name: f.op(f"select i1 {begun}, ptr {f.at(acc, slot[all_], f.mul(before, state))}, ptr {slot[first]}")
            for name, all_, first in (("h_before", "out", "h0"), ("c_before", "cells", "c0"))
        }
        pack_panels(f, kind, f.at(acc, previous["h_before"], f.mul(begin, hidden)), hidden, rows, hidden, left)
        product(f, kind, rows, word["ld"], hidden, left, right, sums, held, f.at(acc, slot["x"], f.mul(f.add(f.mul(t, word["rows"]), begin), width)), 1)
        with f.loop(0, rows) as i:
            row = f.add(begin, i)
            place = f.add(f.mul(t, word["rows"]), row)
            where = {
                "x": f.at(acc, slot["x"], f.mul(place, width)), "p": f.at(acc, sums, f.mul(i, word["ld"])), "bias": slot["bias"],
                "saved": f.at(acc, slot["saved"], f.mul(f.mul(f.add(f.mul(saving, word["rows"]), row), hidden), 4)),
                "c": f.at(acc, slot["cells"], f.mul(place, hidden)), "h": f.at(acc, slot["out"], f.mul(place, hidden)),
                **{name: f.at(acc, pointer, f.mul(row, hidden)) for name, pointer in previous.items()},
            }  # fmt: skip
            f.do(f"call void @cell(i64 {hidden}, {', '.join(f'ptr {where[name]}' for name in names)})")
    return f


BACKWARD = ("d_x", "d_p", "d_h", "d_c", "out", "cells", "saved", "d_out", "h0", "c0", "weight", "scratch")


def backward_kernel(kind: Kind, names: Sequence[str], attributes: str) -> Function:
    """A row's pointers: saved, h, c, h_before, c_before, d_out; d_state (what the step behind gives back), kept (that past its product); d_c; d_x, d_p."""
    acc, nr = kind.acc, kind.tile.nr
    f, word, slot, begin, rows, (left, right, sums, held, kept) = _start(kind, attributes, BACKWARD)
    hidden, width = word["hidden"], word["width"]
    with f.loop(0, hidden, nr) as j:
        count = f.min(nr, f.sub(hidden, j))
        f.do(f"call void @pack_{kind.b}(ptr {f.at(acc, slot['weight'], j)}, i64 1, i64 {hidden}, i64 {count}, i64 {width}, ptr {f.at(acc, right, f.mul(j, width))}, i64 {nr})")
    state = f.mul(word["rows"], hidden)
    behind = lambda i: f.at(acc, sums, f.mul(i, word["ld"]))
    with f.loop(0, rows) as i, f.loop(0, hidden) as j:
        f.store(acc, f.load(acc, f.at(acc, slot["d_h"], f.add(f.mul(f.add(begin, i), hidden), j))), f.at(acc, behind(i), j))
        f.store(acc, "0.0", f.at(acc, kept, f.add(f.mul(i, hidden), j)))
    last = f.sub(word["steps"], 1)
    with f.loop(0, word["steps"]) as number:
        t, before = _steps(f, word, number, True)
        inside = f.compare("ne", number, last)
        previous = {
            name: f.op(f"select i1 {inside}, ptr {f.at(acc, slot[all_], f.mul(before, state))}, ptr {slot[first]}")
            for name, all_, first in (("h_before", "out", "h0"), ("c_before", "cells", "c0"))
        }
        with f.loop(0, rows) as i:
            row = f.add(begin, i)
            place = f.add(f.mul(t, word["rows"]), row)
            one = f.mul(place, hidden)
            where = {
                "saved": f.at(acc, slot["saved"], f.mul(one, 4)), "h": f.at(acc, slot["out"], one), "c": f.at(acc, slot["cells"], one),
                "d_out": f.at(acc, slot["d_out"], f.add(f.mul(t, word["d_step"]), f.mul(row, word["d_row"]))),
                "d_state": behind(i), "kept": f.at(acc, kept, f.mul(i, hidden)), "d_c": f.at(acc, slot["d_c"], f.mul(row, hidden)),
                "d_x": f.at(acc, slot["d_x"], f.mul(place, width)), "d_p": f.at(acc, slot["d_p"], f.mul(place, width)),
                **{name: f.at(acc, pointer, f.mul(row, hidden)) for name, pointer in previous.items()},
            }  # fmt: skip
            f.do(f"call void @cell(i64 {hidden}, {', '.join(f'ptr {where[name]}' for name in names)})")
        source = f.at(acc, slot["d_p"], f.mul(f.add(f.mul(t, word["rows"]), begin), width))
        pack_panels(f, kind, source, width, rows, width, left)
        following = f.op(f"select i1 {inside}, i64 {before}, i64 {t}")
        place = f.mul(f.add(f.mul(following, word["rows"]), begin), hidden)
        product(f, kind, rows, word["ld"], width, left, right, sums, held, *((f.at(acc, slot["saved"], f.mul(place, 4)), 4) if "saved" in names else (f.at(acc, slot["out"], place), 1)))
    with f.loop(0, rows) as i, f.loop(0, hidden) as j:
        value = f.plus(acc, 1, f.load(acc, f.at(acc, behind(i), j)), f.load(acc, f.at(acc, kept, f.add(f.mul(i, hidden), j))))
        f.store(acc, value, f.at(acc, slot["d_h"], f.add(f.mul(f.add(begin, i), hidden), j)))
    return f
