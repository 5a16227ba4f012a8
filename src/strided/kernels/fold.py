"""Row folds: reductions and row operators (softmax, layer_norm, …) as one fused kernel made from expressions with reduction nodes.

Holds geometry and plans; the kernel's text is written by fold_text.py. A row is what the folded dimensions make of one position of the kept
ones. Reductions whose argument reads only inputs are level 1, those that use them level 2, and so on: each level is one
sweep over the row, a last sweep writes the outputs that have an element for each input element.
"""
from __future__ import annotations

from functools import partial
from math import prod

from .. import dtypes
from ..layout import Layout, collapse
from . import accumulate, complex, fold_across, fold_rows, fold_text, jit, native
from . import expr as E
from .loops import CHUNK as STREAMED
from .loops import chunk_of, walk_table
from .map import GRAIN, STREAM, WHOLE, computed
from .recipes import note

LONG = 1 << 18  # additions' worth of work from which a kernel gives up the GIL
CHUNK = 1 << 13  # elements a piece of a row should have at least when a row is shared out
COLUMNS = fold_across.COLUMNS


class FoldPlan:
    """A fold ready to run: one kernel, or two where few long rows are shared out (pieces first, then the pieces' results)."""

    __slots__ = ("first", "second", "scratch", "offsets", "n_outs", "kept")

    def __init__(self, first, second=None, scratch=0, offsets=(), n_outs=1, kept=()):
        self.first, self.second, self.scratch, self.offsets, self.n_outs, self.kept = first, second, scratch, offsets, n_outs, kept

    def caller(self):
        """`launch_new` with as few Python frames as can be."""
        return self.launch_new if self.second is not None else partial(native.launch_new, self.first)

    def launch(self, *slots) -> None:
        """Slots: output addresses, then inputs and parameters."""
        if self.second is None:
            native.launch(self.first, *slots)
        else:
            scratch, places = self._pieces(slots[self.n_outs :])
            native.launch(self.second, *slots[: self.n_outs], *places)

    def launch_new(self, *slots):
        """A fresh Storage for the first output; slots: the other outputs, inputs and parameters."""
        if self.second is None:
            return native.launch_new(self.first, *slots)
        scratch, places = self._pieces(slots[self.n_outs - 1 :])
        return native.launch_new(self.second, *slots[: self.n_outs - 1], *places)

    def _pieces(self, ins):
        """Runs the first step; its scratch (to be kept alive) and the second step's inputs."""
        scratch = native.new_storage(self.scratch)
        places = [scratch.data + offset for offset in self.offsets]
        native.launch(self.first, *places, *ins)
        return scratch, [*places, *(ins[i] for i in self.kept)]


def build_fold(exprs, dims, outs, ins, *, result_bytes=0) -> bytes:
    """Descriptor of one kernel computing `exprs`, one an output, over the rows that `dims` fold.

    ins: (dtype, layout) or ("param", "f64" | "i64"); layouts of one common shape (broadcast with stride 0). outs: (dtype, layout); an output's
    layout has that shape too, with size 1 at `dims` where it has one element a row. Slots: outputs, then inputs and parameters.
    """
    return note(_Geometry(exprs, dims, outs, ins).descriptor(result_bytes), exprs, outs, ins, dims=dims)


def plan_fold(exprs, dims, outs, ins, *, result_bytes=0) -> FoldPlan:
    """Like `build_fold`; few long rows are cut into pieces, so that every thread has work."""
    geometry = _Geometry(exprs, dims, outs, ins)
    pieces = geometry.pieces()
    if pieces == 1:
        return FoldPlan(note(geometry.descriptor(result_bytes), exprs, outs, ins, dims=dims), n_outs=len(outs))
    return _split(geometry, pieces, result_bytes)


def kernel_text(kind: fold_text.Kind, across: bool) -> str:
    """The kernel's module."""
    shape = fold_across.Across if across else fold_rows.Rows if kind.stream == "rows" else fold_text.Along
    return shape(kind).write()


class _Geometry:
    """The walk of one fold: which dimensions are kept and folded, in what order, and the class of each operand's innermost stride."""

    def __init__(self, exprs, dims, outs, ins):
        self.exprs, self.outs, self.ins = complex.of_parts(exprs, ins), outs, ins
        layouts = [layout for kind, layout in ins if kind != "param"]
        shape = layouts[0].shape if layouts else outs[0][1].shape
        for _, layout in outs:
            if not layouts:
                shape = layout.shape
        self.shape = shape
        self.dims = sorted(dims)
        self.extent = prod(shape[d] for d in self.dims)
        self.ordered = any(n.op in ("position", "rargmax", "rargmin", "rpickmax", "rpickmin") for n in E.topological(self.exprs))
        operands = [*outs, *(i for i in ins if i[0] != "param")]
        self.sizes = [dtype.itemsize for dtype, _ in operands]
        walks = []
        for dtype, layout in operands:
            own = [0 if n == 1 else s * dtype.itemsize for n, s in zip(layout.shape, layout.strides)]
            walks.append(own)
        main = max(range(len(walks)), key=lambda k: (k >= len(outs), sum(1 for s in walks[k] if s), -k))
        kept = [d for d in range(len(shape)) if d not in self.dims]
        kept.sort(key=lambda d: -walks[main][d])
        folded = list(self.dims)
        if not self.ordered:
            folded.sort(key=lambda d: -walks[main][d])
        self.kept, self.kept_walks = self._collapse(kept, walks)
        self.folded, self.folded_walks = self._collapse(folded, walks)
        if not self.folded:
            self.folded, self.folded_walks = [1], [[0] for _ in walks]
        self.rows = prod(self.kept)
        # An output has one element a row unless it walks the folded dimensions or its expression needs their elements.
        element = accumulate.element_params(self.ins, [not any(w) for w in self.folded_walks[len(outs):]])
        self.per_element = [any(w) or accumulate.reads_elements(e, element) for e, w in zip(self.exprs, self.folded_walks)]
        inner, across = self.folded_walks[main][-1], self.kept_walks[main][-1] if self.kept else 0
        longer = bool(self.kept) and across == inner and self.kept[-1] > self.folded[-1]  # windows: both directions step to the next element
        self.across = bool(self.kept) and self.kept[-1] >= 8 and (0 < across < inner or (across and (self.extent < 8 or longer)))
        # in additions of two tensors (map.py): a sweep reads one in a third of the time, writing takes half of it
        self.work = int(self.rows * self.extent * (0.3 * self._sweeps() + 0.5 * any(self.per_element) + computed(self.exprs)))

    def _sweeps(self) -> int:
        """How many sweeps over the row the reductions need."""
        depth = {}
        for n in E.topological(self.exprs):
            depth[n] = max((depth[a] for a in n.args), default=0) + (n.op in accumulate.REDUCTIONS)
        return max((depth[e] for e in self.exprs), default=0)

    def _collapse(self, dims, walks):
        shape, merged = collapse([self.shape[d] for d in dims], *([w[d] for d in dims] for w in walks))
        return list(shape), [list(w) for w in merged]

    def modes(self, walks):
        """Class of each operand's innermost stride: "same" (0), "run" (adjacent elements) or "step"."""
        return tuple("same" if not w or w[-1] == 0 else "run" if w[-1] == size else "step" for w, size in zip(walks, self.sizes))

    def pieces(self) -> int:
        """Into how many pieces each row should be cut."""
        threads = native.parts_for(self.work, GRAIN)
        units = self.rows if not self.across else (self.rows // self.kept[-1]) * -(-self.kept[-1] // COLUMNS)
        if threads == 1 or units >= threads or any(self.per_element) or not accumulate.splittable(self.exprs, self.ins):
            return 1
        return max(1, min(4 * threads // units, self.folded[0], self.rows * self.extent // CHUNK))

    def descriptor(self, result_bytes=0, pieces=1, piece_strides=(), extent=None) -> bytes:
        kept, kept_walks = list(self.kept), [list(w) for w in self.kept_walks]
        multi = len(self.folded) > 1
        rest = prod(self.folded[1:-1]) if self.across or multi else 1
        if self.across:
            rest = prod(self.folded[1:])
        length = -(-self.folded[0] // pieces)
        columns, inner_walks = None, self.folded_walks
        if self.across:
            inner_walks = self.kept_walks
            columns = kept.pop()
            steps = [w.pop() for w in kept_walks]
            kept.append(-(-columns // COLUMNS))
            for w, step in zip(kept_walks, steps):
                w.append(step * COLUMNS)
        if pieces > 1:
            kept.append(-(-self.folded[0] // length))
            outs = len(self.outs)
            for k, w in enumerate(kept_walks):
                w.append(piece_strides[k] if k < outs else self.folded_walks[k][0] * length)
        rows = prod(kept)
        slow = self.folded if self.across else self.folded[:-1]
        slow_walks = self.folded_walks if self.across else [w[:-1] for w in self.folded_walks]
        modes = self.modes(inner_walks)
        constant = tuple(not any(w) for w in self.folded_walks)
        names = tuple(d.name for d, _ in self.outs), tuple(k if d == "param" else d.name for d, k in self.ins)
        default = dtypes.get_default_dtype().compute.name
        alone = sum(self.per_element) == 1 and self.per_element[0] and modes[0] == "run" and not (self.across or multi) and pieces == 1 and kept
        stream, chunk, group = "", 0, 1
        if alone and result_bytes >= STREAM and (self.folded[0] >= WHOLE or not any(w % 64 for w in kept_walks[0])):
            stream, chunk = "short" if self.folded[0] <= fold_text.SHORT else "long", chunk_of(self.folded[0], max(self.sizes))
            if stream == "short" and self.folded[0] >= 2 * STREAMED // max(self.sizes):
                stream, chunk, group = self._together(kept_walks) or (stream, chunk, group)
        key = ("fold", E.key_of(self.exprs), names, modes, constant, tuple(self.per_element), self.across, multi, pieces > 1, default, stream, chunk, group)
        kind = fold_text.Kind(self.exprs, *names, modes, constant, tuple(self.per_element), multi, pieces > 1, default, stream, chunk, group)
        address = jit.compile_kernel(key, lambda: kernel_text(kind, self.across))
        inner = columns if self.across else self.folded[-1]
        words = [rows, len(kept), inner, prod(slow), len(slow), self.extent if extent is None else extent, self.folded[0], length, rest]
        words += [w[-1] if w else 0 for w in inner_walks] + walk_table(kept, kept_walks) + walk_table(slow, slow_walks)
        work = self.work
        moved = self.rows * self.extent * sum(size for size, walk in zip(self.sizes, self.folded_walks) if any(walk))
        parts = min(native.slices_for(native.parts_for(work, GRAIN), moved), max(rows, 1))
        return native.pack_desc(address, len(self.outs) + len(self.ins), parts, work >= LONG, result_bytes, words)

    def _together(self, kept_walks):
        """("rows", elements streamed at a time, rows worked on together) where rows are read while others are written; None: their reductions take several sweeps."""
        element = accumulate.element_params(self.ins, [not any(w) for w in self.folded_walks[len(self.outs):]])
        shape, size = fold_rows.shape_of(self.exprs, element), max(self.sizes)
        if shape is None:
            return None
        shared = sum(w[-1] == 0 and any(f) for w, f in zip(kept_walks, self.folded_walks))  # operands that are the same for all rows
        crowded = shared and shape != "exponentials" and (2 + shared) * self.folded[0] * size > fold_rows.FIRST
        return "rows", STREAMED // size, fold_rows.GROUP if crowded else 1


def _split(geometry, pieces, result_bytes) -> FoldPlan:
    """Two steps: every reduction of every piece into scratch, then the same expressions over the pieces."""
    g = geometry
    length = -(-g.folded[0] // pieces)
    pieces = -(-g.folded[0] // length)
    reductions = [n for n in E.topological(g.exprs) if n.op in E.REDUCTIONS]  # of real numbers: sums of complex ones are pairs of them
    kept = [i for i, (kind, _) in enumerate(g.ins) if kind == "param"]
    row_shape = [1 if d in g.dims else n for d, n in enumerate(g.shape)]
    exprs, outs, offsets, size = [], [], [], 0
    replaced, ins2 = {}, []
    for n in reductions:
        parts = [n] if not n.op.startswith("rarg") else [E.node("rmax" if n.op == "rargmax" else "rmin", n.args[0]), n]
        places = []
        for part in parts:
            dtype = dtypes.names()[accumulate.total_type(part, g.ins)]
            layout = Layout.of(row_shape, [s * pieces for s in Layout.contiguous(row_shape).strides])
            exprs.append(part)
            outs.append((dtype, layout))
            offsets.append(size)
            size += -(-prod(row_shape) * pieces * dtype.itemsize // 64) * 64
            strided = Layout.of([*row_shape, pieces], [*layout.strides, 1])
            places.append(E.param(len(ins2)))
            ins2.append((dtype, strided))
        if len(parts) == 2:
            replaced[n] = E.node("rpick" + n.op[4:], *places)
        else:
            replaced[n] = E.node(n.op, places[0])
    for i in kept:
        replaced[E.param(i)] = E.param(len(ins2))
        ins2.append(g.ins[i])
    first = _Geometry(exprs, g.dims, outs, g.ins)
    assert first.folded[0] == g.folded[0] and first.across == g.across, "the pieces are cut as they were counted"
    first_desc = first.descriptor(pieces=pieces, piece_strides=[d.itemsize for d, _ in outs])
    second_exprs = [E.substitute(e, replaced) for e in g.exprs]
    second_outs = [(d, Layout.of([*layout.shape, 1], [*layout.strides, 0])) for d, layout in g.outs]
    second = _Geometry(second_exprs, [len(row_shape)], second_outs, ins2)
    return FoldPlan(first_desc, second.descriptor(result_bytes, extent=g.extent), size, offsets, len(g.outs), kept)
