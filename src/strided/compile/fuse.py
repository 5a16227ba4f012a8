"""Fusing: neighbouring maps and folds of a recording become one kernel, and the memory between them is never written.

A step whose only result is read by one later step is computed there instead: a map inside a map or a fold, a fold (its row's sums and all) inside a map
over the same rows, a map of a product's result inside the product, block by block (kernels/epilogue.py). Values are rounded as they would be in memory, so that results of maps do not change; sums
may be added up in another order. What a kernel computes is known from its recipe (kernels/recipes.py); steps without one (scatters, sorts) stay as they are.
"""
from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple

from ..kernels import epilogue
from ..kernels import expr as E
from ..kernels.fold import build_fold
from ..kernels.map import build_map
from ..kernels.recipes import Copied, Recipe
from ..layout import Layout
from ..ops.elementwise import _substitute_params as substitute_params
from .order import written_by
from .placed import placed
from .program import Step, names

OPERANDS = 12  # so many a fused kernel may have in memory: more would spill registers and gain nothing
SLOTS = 24  # and so many with its numbers


class Operand(NamedTuple):
    """place: ((kind, number), offset) in memory, a number's slot as it is, or None for a position along a dimension; kind and layout as builders take them."""

    place: Any
    kind: Any
    layout: Any

    @property
    def in_memory(self) -> bool:
        return type(self.place) is tuple


class Bits(NamedTuple):
    """The kind of a copy's operands until it is joined to something that says what they are."""

    itemsize: int


class Kernel(NamedTuple):
    """A step that is a map (dims None) or a fold. Expressions read `ins` as their params and do all conversions themselves."""

    exprs: tuple
    outs: tuple
    ins: tuple
    dims: tuple | None
    lines: tuple  # (file, line) of the recorded steps that are in it, None where no user's code called
    saved: int = 0  # bytes that are neither written nor read again

    @property
    def shape(self):
        return next((o.layout.shape for o in self.ins if o.in_memory), self.outs[0].layout.shape) if self.dims is not None else self.outs[0].layout.shape


def _decode_copy(step: Step, recipe: Copied) -> Kernel | None:
    """A copy as the map of x to x, where both sides run along the same dimension; copies that turn have better kernels of their own."""
    runs = [d for d, (size, to, source) in enumerate(zip(recipe.target.shape, recipe.target.strides, recipe.source.strides)) if size > 7 and 0 < to <= 2 and 0 < source <= 2]
    if not runs or not all(type(slot) is tuple for slot in step.slots):
        return None
    kind = Bits(recipe.itemsize)
    target, source = Operand(step.slots[0], kind, recipe.target), Operand(step.slots[1], kind, recipe.source)
    return Kernel((E.param(0),), (target,), (source,), None, (step.line,))


def _typed(kernel: Kernel, kind) -> Kernel | None:
    """A copy of elements of the kind, and every other kernel as it is; None where nothing says what a copy's elements are."""
    if type(kernel.outs[0].kind) is not Bits:
        return kernel
    if type(kind) is Bits or kind.itemsize != kernel.outs[0].kind.itemsize:
        return None
    return kernel._replace(outs=(kernel.outs[0]._replace(kind=kind),), ins=(kernel.ins[0]._replace(kind=kind),))


class Product(NamedTuple):
    """A step that is a matrix product into fresh memory: its descriptor and operands, [m, n], and what is computed of each finished block. kept: its own result is needed as well."""

    what: bytes
    slots: tuple  # where the product goes, then its operands
    shape: tuple
    nbytes: int
    after: Kernel | None
    kept: bool
    lines: tuple
    saved: int = 0

    @property
    def out(self):
        """Where its last result goes."""
        return self.slots[0] if self.after is None else self.after.outs[0].place


def decode(step: Step, recipes: dict[bytes, Recipe | Copied]) -> Kernel | None:
    """The step as a kernel of known expressions, or None."""
    recipe = recipes.get(step.what) if type(step.what) is bytes else None
    if type(recipe) is Copied:
        return _decode_copy(step, recipe)
    if type(recipe) is not Recipe or any(kind[0].is_complex for kind in (*recipe.outs, *recipe.ins) if type(kind[0]) is not str):
        return None
    slots = list(step.slots)
    outs = tuple(Operand(slots.pop(0), dtype, layout) for dtype, layout in recipe.outs)
    ins, converted = [], {}
    for i, ((kind, layout), compute) in enumerate(zip(recipe.ins, recipe.compute)):
        ins.append(Operand(None if kind == "index" else slots.pop(0), kind, layout))
        if compute is not None and kind not in ("param", "index"):
            converted[i] = E.cast(E.param(i), compute)
    if slots or not all(o.in_memory for o in outs):
        return None
    exprs = tuple(substitute_params(e, converted) for e in recipe.exprs) if converted else recipe.exprs
    return Kernel(exprs, outs, tuple(ins), recipe.dims, (step.line,))


def decode_product(step: Step) -> Product | None:
    """The step as a product that takes an epilogue, or None."""
    rows = epilogue.rows_of(step.what) if type(step.what) is bytes else None
    if rows is None or type(step.slots[0]) is not tuple or step.slots[0][1]:
        return None
    return Product(step.what, step.slots, rows[:2], rows[2], None, True, (step.line,))


def encode_product(product: Product, recipes: dict) -> tuple[list[Step], int]:
    """The product with its epilogue compiled, as a step (two where that cannot be), and the bytes that saves."""
    after = product.after
    assert after is not None
    place, target, saved = product.slots[0], after.outs[0], product.saved + product.nbytes  # at least it is not read again
    try:
        made = epilogue.build_epilogue(after.exprs, *[[(o.kind, o.layout) for o in operands] for operands in (after.outs, after.ins)])
    except NotImplementedError:
        return [Step(product.what, product.slots, product.lines[0]), encode(after, recipes)], product.saved
    others = {o.place[0] for o in after.ins if o.in_memory and o.place != place}
    if not product.kept and target.kind.itemsize * target.layout.numel == product.nbytes and target.place[0] not in others:
        after = after._replace(ins=tuple(o._replace(place=target.place) if o.place == place else o for o in after.ins))
        place = target.place  # sums stand where the result will
        saved += product.nbytes
    slots = (place, *product.slots[1:], *(o.place for o in (*after.outs, *after.ins)))
    return [Step(epilogue.with_epilogue(product.what, made), slots, product.lines[-1], (place[0], *[o.place[0] for o in after.outs]))], saved


def encode(kernel: Kernel, recipes: dict) -> Step:
    """The kernel compiled, as a step; its recipe is put among the others."""
    outs, ins = [(o.kind, o.layout) for o in kernel.outs], [(o.kind, o.layout) for o in kernel.ins]
    nbytes = kernel.outs[0].layout.numel * kernel.outs[0].kind.itemsize
    if kernel.dims is None:
        descriptor = build_map(kernel.exprs, outs, ins, result_bytes=nbytes)
    else:
        descriptor = build_fold(kernel.exprs, kernel.dims, outs, ins)  # in one step: only rows that are few and long would be cut into pieces
    recipes[descriptor] = Recipe(kernel.exprs, tuple(outs), tuple(ins), (None,) * len(ins), kernel.dims)
    return Step(descriptor, tuple(o.place for o in (*kernel.outs, *kernel.ins) if o.place is not None), kernel.lines[-1], tuple(o.place[0] for o in kernel.outs))


def fuse(steps: list[Step], recipes: dict[bytes, Recipe | Copied], lasting: set, steady, sizes: dict[tuple, int]) -> tuple[list[Step], list[Any]]:
    """The steps with what can be fused fused, and the kernels that hold several of them.

    recipes: of the steps' descriptors, where there is one. lasting: regions whose contents are needed afterwards. steady(region): whether it is written by the operator that made it only, if at all.
    sizes: of the blocks that were made meanwhile, in bytes.
    """
    steps = placed(_without_moves(steps, recipes, lasting, sizes), recipes, lasting, sizes)
    work: list[Any] = [decode(step, recipes) or decode_product(step) or step for step in steps]
    users: dict[tuple, list[int]] = {}
    for number, step in enumerate(steps):
        for name in dict.fromkeys(names(step)):
            users.setdefault(name, []).append(number)
    for first, item in enumerate(work):
        if type(item) is Kernel and len(item.outs) == 1:
            region = item.outs[0].place[0]
        elif type(item) is Product and (item.after is None or len(item.after.outs) == 1):
            region = item.out[0]
        else:
            continue
        touching = users.get(region, [])
        if region[0] != "block" or len(touching) < 2 or touching[0] != first:
            continue
        second = touching[1]
        consumer = work[second]
        alone = region not in lasting and len(touching) == 2  # nobody else writes it either
        if type(consumer) is not Kernel or not alone and not (type(item) is Product and item.after is None):
            continue
        sources = _reads(item)
        changing = {name for name in sources if not steady(name)}
        if region in sources or any(_writes(work[k], sources, changing, recipes) for k in range(first + 1, second)):
            continue
        if type(item) is Product and any(first < n < second for n in users[item.slots[0][0]]):
            continue  # its own result is wanted before
        if type(item) is Product:
            merged: Any = join_product(item, consumer)
        else:
            merged = None if any(o.place[0] == region for o in consumer.outs) else join(item, consumer)
        if merged is None:
            continue
        work[first] = None
        for name in (*sources, *((item.slots[0][0],) if type(item) is Product else ())):
            users[name] = sorted({second if n == first else n for n in users[name]})
        if type(merged) is Product:
            name = merged.slots[0][0]
            merged = merged._replace(kept=name in lasting or users[name] != [second] or not steady(name))
        if alone and region != (merged.slots[0][0] if type(merged) is Product else None):
            users[region] = []
        work[second] = merged
    done: list[Step] = []
    fused: list[Any] = []
    for number, step in enumerate(work):
        if type(step) is Product and step.after is not None:
            made, saved = encode_product(step, recipes)
            fused.append(step._replace(saved=saved))
            done += made
        elif type(step) is Kernel and len(step.lines) > 1:
            fused.append(step)
            done.append(encode(step, recipes))
        elif step is not None:
            done.append(steps[number] if type(step) in (Kernel, Product) else step)
    return done, fused


def _without_moves(steps: list[Step], recipes, lasting, sizes) -> list[Step]:
    """The steps without copies of a whole block into a fresh one, where nobody looks at the first one afterwards: it is made in the second's place."""
    first: dict[tuple, int] = {}
    last: dict[tuple, int] = {}
    for number, step in enumerate(steps):
        for name in names(step):
            first.setdefault(name, number)
            last[name] = number
    becomes: dict[tuple, tuple] = {}
    left = []
    for number, step in enumerate(steps):
        recipe = recipes.get(step.what) if type(step.what) is bytes else None
        if type(recipe) is Copied and all(type(slot) is tuple and slot[0][0] == "block" and not slot[1] for slot in step.slots):
            (to, _), (source, _) = step.slots
            nbytes = recipe.target.numel * recipe.itemsize
            whole = recipe.target is recipe.source and recipe.target.is_dense and sizes.get(to) == sizes.get(source) == nbytes
            if whole and source not in lasting and first[to] == last[source] == number and first[source] < number:
                becomes[source] = to
                continue
        left.append(step)
    if not becomes:
        return steps

    def end(name):
        while name in becomes:
            name = becomes[name]
        return name

    return [step._replace(slots=tuple([(end(slot[0]), slot[1]) if type(slot) is tuple else slot for slot in step.slots])) for step in left]


def _reads(item) -> set:
    """The regions that a kernel or a product reads, but for what is its own."""
    if type(item) is Kernel:
        return {o.place[0] for o in item.ins if o.in_memory}
    own = {slot[0] for slot in item.slots[1:] if type(slot) is tuple}
    return own if item.after is None else own | {o.place[0] for o in item.after.ins if o.in_memory and o.place != item.slots[0]}


def _writes(step, regions: set, changing: set, recipes) -> bool:
    """Whether a step may write one of the regions. changing: those of them that are written by others than the operator that made them."""
    if step is None:
        return False
    if type(step) is Kernel:
        return any(o.place[0] in regions for o in step.outs)
    if type(step) is Product:
        return step.slots[0][0] in regions or step.after is not None and any(o.place[0] in regions for o in step.after.outs)
    return not written_by(step, recipes, 1).isdisjoint(regions) or not changing.isdisjoint(written_by(step, recipes))


# ---- two kernels into one ---------------------------------------------------------------------------------------------------------


def join(producer: Kernel, consumer: Kernel) -> Kernel | None:
    """The consumer computing the producer's result itself, or None where that is not possible or would not pay."""
    region = producer.outs[0].place[0]
    inner = [i for i, o in enumerate(consumer.ins) if o.in_memory and o.place[0] == region]
    if not inner:  # another part of the same memory
        return None
    typed = _typed(producer, consumer.ins[inner[0]].kind), _typed(consumer, producer.outs[0].kind)
    if typed[0] is None or typed[1] is None:
        return None
    producer, consumer = typed
    out = producer.outs[0]
    if any(consumer.ins[i].place != out.place or consumer.ins[i].kind is not out.kind for i in inner):
        return None
    if producer.dims is None:
        moved = _walked_as(producer, consumer.ins[inner[0]].layout)
        if moved is None or any(not alike(consumer.ins[i].layout, moved.outs[0].layout) for i in inner):
            return None
        dims = consumer.dims
    else:
        consumer = _over_rows(producer, consumer, inner)
        if consumer is None:
            return None
        moved, dims = producer, producer.dims
    value = E.rounded(E.cast(moved.exprs[0], out.kind))
    operands: list[Operand] = []
    numbers: dict[Operand, int] = {}

    def number(operand):
        if operand not in numbers:
            numbers[operand] = len(operands)
            operands.append(operand)
        return E.param(numbers[operand])

    value = substitute_params(value, {i: number(o) for i, o in enumerate(moved.ins)})
    exprs = tuple(substitute_params(e, {i: value if i in inner else number(o) for i, o in enumerate(consumer.ins)}) for e in consumer.exprs)
    moving = sum(o.in_memory for o in operands)
    if moving + len(consumer.outs) > OPERANDS or len(operands) + len(consumer.outs) > SLOTS or not moving and dims is not None:
        return None
    if dims is not None and any(o.kind == "index" for o in operands):
        return None
    saved = producer.saved + consumer.saved + 2 * out.layout.numel * out.kind.itemsize
    return Kernel(exprs, consumer.outs, tuple(operands), dims, producer.lines + consumer.lines, saved)


def join_product(product: Product, consumer: Kernel) -> Product | None:
    """The product with the map `consumer` of its last result as its epilogue, or None where that is not possible."""
    operands = {slot[0] for slot in product.slots[1:] if type(slot) is tuple}
    if type(consumer.outs[0].kind) is Bits or consumer.dims is not None or any(o.place[0] in operands for o in consumer.outs):
        return None
    if len(consumer.outs) > 1 and any(o.place[0] in [i.place[0] for i in consumer.ins if i.in_memory] for o in consumer.outs):
        return None
    place, whole = product.out, Layout.contiguous(product.shape)
    if product.after is not None:
        merged = None if consumer.outs[0].place[0] == place[0] else join(product.after, consumer)
        after = None if merged is None else _reshaped(merged, product.shape)
    else:
        after = _reshaped(consumer, product.shape)
        inner = [o for o in consumer.ins if o.in_memory and o.place[0] == place[0]]
        if any(o.place != place or o.kind.itemsize * whole.numel != product.nbytes for o in inner):
            return None
    if after is None or len(after.ins) + 1 > OPERANDS or not all(alike(o.layout, whole) for o in after.outs):
        return None
    out = after.outs[0]
    if any(not alike(o.layout, whole) for o in after.ins if o.in_memory and o.place[0] in (product.slots[0][0], out.place[0])):
        return None  # another block than the one that is written
    if any(o.place != out.place for o in after.ins if o.in_memory and o.place[0] == out.place[0]) or out.place[0] == product.slots[0][0] and out.place != product.slots[0]:
        return None
    if not epilogue.fits([(o.kind, o.layout) for o in after.outs], [(o.kind, o.layout) for o in after.ins]):
        return None
    before = product.after
    saved = 0 if before is None else 2 * before.outs[0].layout.numel * before.outs[0].kind.itemsize
    return product._replace(after=after, lines=product.lines + consumer.lines, saved=product.saved + consumer.saved + saved)


def _over_rows(fold: Kernel, consumer: Kernel, inner: list[int]) -> Kernel | None:
    """A map that uses a fold's result, as the fold's space has it: over the same elements, or over its rows; None where it is neither."""
    if consumer.dims is not None or len(consumer.outs) != 1 or any(o.kind == "index" for o in consumer.ins):
        return None
    out, full = fold.outs[0], tuple(fold.shape)
    if tuple(consumer.shape) == full:
        spread = out.layout.expand(full)
        return consumer if all(alike(consumer.ins[i].layout, spread) for i in inner) else None
    rows = tuple(1 if d in fold.dims else size for d, size in enumerate(full))
    if tuple(out.layout.shape) != rows:
        return None
    consumer = _reshaped(consumer, rows)
    if consumer is None or not all(alike(consumer.ins[i].layout, out.layout) for i in inner):
        return None
    return consumer._replace(ins=tuple(o._replace(layout=o.layout.expand(full)) if o.in_memory else o for o in consumer.ins))


def _walked_as(kernel: Kernel, layout: Layout) -> Kernel | None:
    """The map walked so that its result has the layout: as it is, in another shape, or with its dimensions in another order; None where none of these is it."""
    own = kernel.outs[0].layout
    if alike(own, layout):
        return kernel
    reshaped = _reshaped(kernel, layout.shape)
    if reshaped is not None and alike(reshaped.outs[0].layout, layout):
        return reshaped
    if own.ndim != layout.ndim or own.ndim > 4 or any(o.kind == "index" for o in kernel.ins):
        return None
    for order in permutations(range(own.ndim)):
        if alike(own.permute(order), layout):
            turn = lambda o: o._replace(layout=o.layout.permute(order)) if o.in_memory else o  # noqa: B023
            return kernel._replace(outs=tuple(map(turn, kernel.outs)), ins=tuple(map(turn, kernel.ins)))
    return None


def _reshaped(kernel: Kernel, shape) -> Kernel | None:
    """The map walked in another shape of as many elements, or None where an operand has no such view."""
    if tuple(kernel.shape) == tuple(shape):
        return kernel
    if kernel.outs[0].layout.numel != _numel(shape) or any(o.kind == "index" for o in kernel.ins):
        return None
    seen = []
    for o in (*kernel.outs, *kernel.ins):
        layout = o.layout.view(shape) if o.in_memory else o.layout
        if layout is None:
            return None
        seen.append(o._replace(layout=layout))
    return kernel._replace(outs=tuple(seen[: len(kernel.outs)]), ins=tuple(seen[len(kernel.outs) :]))


def _numel(shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def alike(a: Layout, b: Layout) -> bool:
    """Whether two layouts walk memory the same way; the stride of a dimension of size 1 says nothing."""
    return tuple(a.shape) == tuple(b.shape) and all(s == t for n, s, t in zip(a.shape, a.strides, b.strides) if n != 1)

