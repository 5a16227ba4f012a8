"""What folds need to know of expressions with reduction nodes, and the accumulators that carry them out. No loops: fold_text.py writes those."""
from __future__ import annotations

from . import expr as E
from .lower import FLOATS, IR, Lowering, Value, compute_type, infer, literal

PICKS = ("rpickmax", "rpickmin")  # (value, position) of the best value: combines the pieces of an argmax
REDUCTIONS = E.REDUCTIONS | set(PICKS)

# ---- questions about expressions -------------------------------------------------------------------------------------------------


def element_params(ins, constant) -> set[int]:
    """Inputs that vary along the folded dimensions. `constant` holds a flag a tensor input."""
    flags = iter(constant)
    return {i for i, (kind, _) in enumerate(ins) if kind != "param" and not next(flags)}


def reads_elements(expr, element) -> bool:
    """Whether `expr` needs the row's elements outside of reductions."""
    stack, seen = [expr], set()
    while stack:
        n = stack.pop()
        if n in seen or n.op in REDUCTIONS:
            continue
        seen.add(n)
        if n.op == "position" or (n.op == "param" and n.data in element):
            return True
        stack.extend(n.args)
    return False


def splittable(exprs, ins) -> bool:
    """Whether rows may be cut into pieces: one level of reductions, and nothing but them and scalars outside of it."""
    tensors = {i for i, (kind, _) in enumerate(ins) if kind != "param"}
    if any(reads_elements(e, tensors) for e in exprs):
        return False
    found = [n for n in E.topological(exprs) if n.op in REDUCTIONS]
    return bool(found) and not any(n.op in PICKS or any(m.op in REDUCTIONS for m in E.topological(n.args)) for n in found)


def input_types(ins, default) -> dict:
    """Compute types of the leaves, for `lower.infer`. `ins`: dtype names, "f64" or "i64"."""
    types = {"f64": "weak float", "i64": "weak int"}
    known = {E.param(i): types.get(name) or compute_type(name) for i, name in enumerate(ins)}
    known[E.position()] = known[E.extent()] = "int64"
    return known


def strong(type: str) -> str:
    return {"weak int": "int64", "weak float": "float64"}.get(type, type)


def result_type(op: str, argument: str) -> str:
    """Compute type of a reduction's result, given its argument's."""
    argument = strong(argument)
    if op in ("rany", "rall"):
        return "bool"
    if op.startswith(("rarg", "rpick")):
        return "int64"
    if op in ("rsum", "rprod") and argument not in FLOATS:
        return "int64"
    return argument


def total_type(n, ins) -> str:
    """The type in which a reduction's pieces are kept."""
    names = [k if d == "param" else d.name for d, k in ins]
    argument = strong(infer(n.args[0], input_types(names, "float32")))
    if n.op in ("rsum", "rprod") and argument in FLOATS:
        return "float64"
    return result_type(n.op, argument)


# ---- accumulators ----------------------------------------------------------------------------------------------------------------


class Accumulator:
    """One reduction while it runs: what it starts from, how an element enters, how blocks combine."""

    def __init__(self, node, argument: str):
        self.node, self.op = node, node.op
        self.result = result_type(node.op, argument)
        argument = strong(argument)
        if self.op in ("rany", "rall"):
            self.block = self.total = "int32"
        elif self.op in ("rsum", "rprod"):
            self.block = argument if argument in FLOATS else "int64"
            self.total = "float64" if argument in FLOATS else "int64"
        else:
            self.block = self.total = "uint8" if argument == "bool" else argument
        largest = "min" in self.op
        start: float
        if self.op == "rsum":
            start = 0
        elif self.op == "rprod":
            start = 1
        elif self.op in ("rany", "rall"):
            start = int(self.op == "rall")
        elif self.block in FLOATS:
            start = float("inf") if largest else float("-inf")
        else:
            bits = int(IR[self.block][1:])
            unsigned = self.block[0] == "u"
            low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
            start = high if largest else low
        self.start_block, self.start_total = literal(start, self.block), literal(start, self.total)

    @property
    def pair(self) -> bool:
        return self.op.startswith(("rarg", "rpick"))

    def enter(self, low: Lowering, type: str, old: str, value: Value) -> str:
        """`old` combined with an element (or a block's result) in accumulator type `type`."""
        b, ir = low.body, IR[type]
        if self.op in ("rany", "rall"):
            new = b(f"zext i1 {low.convert(value, 'bool').text} to i32")  # a block's result, which is 0 or 1, as well as an int32 element, which need not be
            return b(f"{'or' if self.op == 'rany' else 'and'} i32 {old}, {new}")
        new = low.convert(value, type).text
        if self.op in ("rsum", "rprod"):
            text = "add" if self.op == "rsum" else "mul"
            return b(f"f{text} reassoc {ir} {old}, {new}" if type in FLOATS else f"{text} {ir} {old}, {new}")
        way = "min" if "min" in self.op else "max"
        if type in FLOATS:
            name = f"@llvm.{way}imum.{'f64' if ir == 'double' else 'f32'}"
        else:
            name = f"@llvm.{'u' if type[0] == 'u' else 's'}{way}.{ir}"
        b.declare(f"declare {ir} {name}({ir}, {ir})")
        sign = "nsz " if type in FLOATS else ""  # of 0.0 and -0.0 either is the largest: telling them apart would take twice as long
        return b(f"call {sign}{ir} {name}({ir} {old}, {ir} {new})")

    def better(self, low: Lowering, best: str, value: str) -> str:
        """i1: whether `value` beats `best` and is not merely its equal; the first NaN beats all."""
        b, ir = low.body, IR[self.total]
        if self.total in FLOATS:
            beats = b(f"fcmp {'olt' if 'min' in self.op else 'ogt'} {ir} {value}, {best}")
            nan, had = b(f"fcmp uno {ir} {value}, 0.0"), b(f"fcmp ord {ir} {best}, 0.0")
            return b(f"or i1 {beats}, {b(f'and i1 {nan}, {had}')}")
        return b(f"icmp {'u' if self.total[0] == 'u' else 's'}{'lt' if 'min' in self.op else 'gt'} {ir} {value}, {best}")

    def equals(self, low: Lowering, best: str, value: str) -> str:
        b, ir = low.body, IR[self.total]
        if self.total in FLOATS:
            both = b(f"and i1 {b(f'fcmp uno {ir} {best}, 0.0')}, {b(f'fcmp uno {ir} {value}, 0.0')}")
            return b(f"or i1 {b(f'fcmp oeq {ir} {best}, {value}')}, {both}")
        return b(f"icmp eq {ir} {best}, {value}")

    def finish(self, low: Lowering, total: str) -> Value:
        value = Value(total, self.total)
        if self.op in ("rany", "rall") or self.result == "bool":
            return Value(low.body(f"icmp ne {IR[self.total]} {total}, 0"), "bool")
        return low.convert(value, self.result)
