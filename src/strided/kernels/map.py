"""The map template: every element of the results is an expression of the elements of the inputs at the same place of a strided space.

Holds the choice of loop order, the loop's code and its descriptor. Does not know operators, promotion or broadcasting: layouts come broadcast,
`compute` says in which dtype to calculate, and the expression says what. Transposing copies go through `index.py`'s tiles.

A kernel is specialised on the expression, the dtypes and how each operand moves in the innermost loop ("c" next to each other, "s" stays, "g" any
other stride); sizes and strides are words of the descriptor:
flat    n, then one inner stride an operand
nested  rows, inner n, dims, split, inner strides, then the walk table of the outer dimensions
"""
from __future__ import annotations

from collections.abc import Sequence

from ..layout import collapse
from . import expr as E
from . import jit, native
from .loops import Body, walk_table
from .lower import ITEMSIZE, MEMORY, Lowering, Value, compute_type, name_of

GRAIN = 1 << 15       # additions a part should have at least
LONG = 50_000         # nanoseconds from which a kernel gives up the GIL
ALIGN = 64            # elements; parts of the inner loop start at multiples of it


def build_map(exprs: Sequence[E.Expr] | E.Expr, outs: Sequence[tuple], ins: Sequence[tuple], *, compute=None, result_bytes: int = 0,
              threads: bool = True) -> bytes:
    """Descriptor of `outs[k][place] = exprs[k](ins[...][place])` for every place of a shape.

    exprs: one expression an output, reading inputs as param(0), param(1), ….
    outs, ins: (dtype, layout) with every layout of one shape; an input may also be ("param", "f64" | "i64"), a scalar passed in its slot, or
    ("index", d), the int64 position along dimension d (takes no slot).
    compute: dtype that tensor elements are converted to on loading, or one (or None) an input; None leaves them as they are.
    result_bytes: size of the fresh first result, for `native.launch_new`. Slots: addresses of outs, then addresses and scalars of ins.
    """
    exprs = (exprs,) if isinstance(exprs, E.Expr) else tuple(exprs)
    if len(exprs) != len(outs):
        raise ValueError(f"build_map got {len(exprs)} expressions for {len(outs)} results")
    shape = tuple(outs[0][1].shape)
    kinds, strides = _operands(shape, outs, ins)
    sizes, strides = _loop_order(shape, strides, len(outs))
    classes = "".join(_inner_class(k, s[-1], sizes[-1]) for k, s in zip(kinds, strides))
    flat = len(sizes) == 1
    in_compute = tuple(None if c is None else name_of(c) for c in (compute if isinstance(compute, tuple | list) else [compute] * len(ins)))
    in_kinds = tuple(f"param {i[1]}" if i[0] == "param" else "index" if i[0] == "index" else name_of(i[0]) for i in ins)
    out_names = tuple(name_of(dtype) for dtype, _ in outs)
    key = ("map", E.key_of(exprs), out_names, in_kinds, in_compute, classes, flat)
    address = jit.compile_kernel(key, lambda: map_text(exprs, out_names, in_kinds, in_compute, classes, flat))
    inner, rows = sizes[-1], 1
    for n in sizes[:-1]:
        rows *= n
    parts, long = _split(exprs, rows * inner, classes, sum(ITEMSIZE[k] for k in kinds if k != "index"), threads)
    steps = [s[-1] for s in strides]
    if flat:
        words = [inner, *steps]
    else:
        split_inner = rows < 8 * parts and inner >= 4 * ALIGN * parts
        words = [rows, inner, len(sizes) - 1, int(split_inner), *steps, *walk_table(sizes[:-1], [s[:-1] for s in strides])]
    slots = len(outs) + sum(i[0] != "index" for i in ins)
    return native.pack_desc(address, slots, parts, long, result_bytes, words)


def _operands(shape, outs, ins):
    """Dtype name ("index" for positions) and byte strides of everything that moves: results, then tensors and positions among the inputs."""
    kinds, strides = [], []
    for dtype, layout in [*outs, *(i for i in ins if i[0] != "param")]:
        if dtype == "index":
            kinds.append("index")
            strides.append([int(d == layout % len(shape)) for d in range(len(shape))])
            continue
        if tuple(layout.shape) != shape:
            raise ValueError(f"build_map needs operands of one shape, got {tuple(layout.shape)} beside {shape}: expand them first")
        name = name_of(dtype)
        kinds.append(name)
        strides.append([s * ITEMSIZE[name] for s in layout.strides])
    return kinds, strides


def _loop_order(shape, strides, outputs):
    """Sizes and strides with dimensions ordered so that results are walked from near to far, then merged; at least one dimension remains."""
    dims = sorted(range(len(shape)), key=lambda d: [-abs(s[d]) for s in strides])  # stable: equal walks keep their order
    if 0 in shape:
        return (0,), [(0,)] * len(strides)
    sizes, walks = collapse([shape[d] for d in dims], *([s[d] for d in dims] for s in strides))
    if not sizes:
        return (1,), [(0,)] * len(strides)
    return sizes, walks


def _inner_class(kind: str, stride: int, size: int) -> str:
    if kind == "index":
        return "i"
    if size <= 1 or stride == ITEMSIZE[kind]:  # a single element shares the contiguous kernel
        return "c"
    return "s" if stride == 0 else "g"


def _split(exprs, numel, classes, bytes_each, threads):
    """(parts, whether to release the GIL) from a rough cost in additions of one contiguous float32."""
    cost = max(1, E.work(exprs) // 4, bytes_each // 12, 4 * classes.count("g"))
    parts = native.parts_for(numel * cost, GRAIN) if threads else 1
    return parts, numel * cost * 0.2 > LONG


def map_text(exprs, out_names, in_kinds, in_compute, classes, flat) -> str:
    """IR text of the kernel."""
    b = Body()
    lowering = Lowering(b)
    names = [*out_names, *(k for k in in_kinds if not k.startswith("param"))]  # operands that move
    pointers, env, slot = [b.slot(k) for k in range(len(out_names))], {}, len(out_names)
    moving = []  # which input each further operand is
    for i, kind in enumerate(in_kinds):
        if kind.startswith("param"):
            real = kind.endswith("f64")
            env[E.param(i)] = Value(b.slot(slot, "double" if real else "i64"), "weak float" if real else "weak int")
            slot += 1
        else:
            moving.append(i)
            pointers.append(None if kind == "index" else b.slot(slot))
            slot += kind != "index"
    operands = _Operands(b, lowering, names, classes, moving, in_compute, len(out_names))
    if flat:
        steps = [b.word(1 + k) for k in range(len(names))]
        low, high = _share_inner(b, b.word(0))
        operands.loop(exprs, dict(env), pointers, [0] * len(names), steps, low, high)
    else:
        rows, inner, dims, split = (b.word(i) for i in range(4))
        steps = [b.word(4 + k) for k in range(len(names))]
        by_inner = b(f"icmp ne i64 {split}, 0")
        low, high = _share_inner(b, inner)
        low, high = b.select(by_inner, low, 0), b.select(by_inner, high, inner)
        first, last = b.share(rows)
        first, last = b.select(by_inner, 0, first), b.select(by_inner, rows, last)
        with b.walk(4 + len(names), dims, len(names), first, last) as (_, offsets, _):
            bases = [None if p is None else b.at(p, offset) for p, offset in zip(pointers, offsets)]
            operands.loop(exprs, dict(env), bases, offsets, steps, low, high)
    return b.text(lowering.definitions())


def _share_inner(b: Body, n: str) -> tuple[str, str]:
    """This part's range of the inner loop; cuts fall on multiples of ALIGN, the last part takes the rest."""
    low, high = b.cell("i64", "0"), b.cell("i64", n)
    with b.when(b("icmp ne i64 %parts, 1")):
        following = b.add("%part", 1)
        cut = b.div(b.mul(n, following), "%parts")
        start = b.div(b.mul(n, "%part"), "%parts")
        low.set(b(f"and i64 {start}, {-ALIGN}"))
        last = b(f"icmp eq i64 {following}, %parts")
        high.set(b.select(last, n, b(f"and i64 {cut}, {-ALIGN}")))
    return low.get(), high.get()


class _Operands:
    """Everything the innermost loop reads and writes."""

    def __init__(self, b, lowering, names, classes, moving, in_compute, outputs):
        self.b, self.lowering, self.names, self.classes = b, lowering, names, classes
        self.inputs = list(zip(range(outputs, len(names)), moving))  # (operand, input index)
        self.compute, self.outputs = in_compute, outputs

    def loop(self, exprs, env, bases, offsets, steps, low, high):
        b, lowering = self.b, self.lowering
        for k, i in self.inputs:
            if self.classes[k] == "s":
                self.bind(env, i, lowering.load(self.names[k], bases[k]))
        access, mark = _parallel(b)
        with b.loop(low, high, extra=mark) as at:
            inside = dict(env)
            for k, i in self.inputs:
                if self.classes[k] == "i":
                    self.bind(inside, i, Value(b.add(offsets[k], b.mul(at, steps[k])), "int64"))
                elif self.classes[k] != "s":
                    self.bind(inside, i, lowering.load(self.names[k], self.place(k, bases, steps, at), access))
            results = [lowering.emit(e, inside) for e in exprs]  # every load before the first store: results may lie on inputs
            for k, result in enumerate(results):
                lowering.store(self.names[k], result, self.place(k, bases, steps, at), access)

    def bind(self, env, i, value):
        env[E.param(i)] = value if self.compute[i] is None else self.lowering.convert(value, compute_type(self.compute[i]))

    def place(self, k, bases, steps, at):
        b = self.b
        if self.classes[k] == "c":
            memory = "i16" if ITEMSIZE[self.names[k]] == 2 else MEMORY[self.names[k]]
            return b(f"getelementptr inbounds {memory}, ptr {bases[k]}, i64 {at}")
        return b.at(bases[k], b.mul(at, steps[k]))


def _parallel(b: Body) -> tuple[str, str]:
    """Metadata of accesses and of the loop: iterations are independent, and worth vectorising whatever LLVM's cost model thinks."""
    access, _ = b.parallel()
    group = access.split()[-1]
    n = int(group[1:])
    b.tail += [f'!{n + 3} = !{{!"llvm.loop.vectorize.enable", i1 true}}', f"!{n + 4} = distinct !{{!{n + 4}, !{n + 1}, !{n + 3}}}"]
    return access, f", !llvm.loop !{n + 4}"
