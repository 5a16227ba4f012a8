"""Contractions over products: outer, inner, tensordot, kron, chains of matrices, and einsum.

Written over operators (views, sums, matmul), whose gradients they inherit; no kernel here. An einsum equation with given shapes is worked out once
into a recipe of such steps.
"""
from __future__ import annotations

from math import prod
from typing import NamedTuple

from ..autograd import backward, no_grad, record, tracking
from ..dispatch import PlanCache
from ..dtypes import bool_
from ..layout import wrap_dim
from ..tensor import Tensor
from .added import _back, _check_added, _times
from .elementwise import sum_to
from .matmul import _conj, _tensors, dot, matmul, mm, mv
from .table import operator

# ---- vectors ----------------------------------------------------------------------------------------------------------------


def _one_dimensional(name: str, **vectors) -> None:
    for argument, t in vectors.items():
        if t.ndim != 1:
            raise RuntimeError(f"{name}: Expected 1-D argument {argument}, but got {t.ndim}-D\n  shape {list(t.shape)}: flatten it first.")


@operator("outer", out=True, aliases=("ger",), flops=lambda args, kwargs, result: result.numel())
def outer(input, vec2):
    """Every element of one vector times every one of another: [m], [n] -> [m, n]."""
    _tensors("outer", input=input, vec2=vec2)
    _one_dimensional("outer", self=input, vec2=vec2)
    return input.unsqueeze(1) * vec2  # [m, 1] * [n]


@backward("Addr", saved_names=("vec1", "vec2"))
def AddrBackward0(node, g):
    a, b = node.saved
    scaled = _back(g, node.alpha)
    return (
        sum_to(_back(g, node.beta), node.shape) if node.needs[0] else None,
        mv(scaled, _conj(b)) if node.needs[1] else None,
        mv(scaled.t(), _conj(a)) if node.needs[2] else None,
    )


@operator("addr", out=True, inplace=True, flops=lambda args, kwargs, result: 2 * result.numel())
def addr(input, vec1, vec2, *, beta=1, alpha=1):
    """beta * input + alpha * outer(vec1, vec2): [m, n] (or what broadcasts to it), [m], [n] -> [m, n]."""
    _tensors("addr", input=input, vec1=vec1, vec2=vec2)
    _one_dimensional("addr", vec1=vec1, vec2=vec2)
    full = (vec1.shape[0], vec2.shape[0])
    _check_added("addr", input, full)
    if not any(t.dtype.is_floating_point or t.dtype.is_complex for t in (input, vec1, vec2)):
        for name, factor in (("beta", beta), ("alpha", alpha)):
            if isinstance(factor, float):
                raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    if input.dtype is vec1.dtype is vec2.dtype is bool_:
        alpha, beta = bool(alpha), bool(beta)
    with no_grad():
        out = _times(vec1.unsqueeze(1), alpha) * vec2
        out = out + _times(input, beta) if beta else out
    if tracking(input, vec1, vec2):
        record(AddrBackward0, (input, vec1, vec2), out, (vec1, vec2), alpha=alpha, beta=beta, shape=input.shape)
    return out


@operator("vecdot", method=False, out=True, namespace="linalg", autocast="lower", flops=lambda args, kwargs, result: 2 * args[0].numel())
def vecdot(x, y, *, dim=-1):
    """Sums of products along one dimension, of the conjugate of x with y; the others broadcast."""
    _tensors("linalg.vecdot", x=x, y=y)
    return (_conj(x) * y).sum(dim)


# ---- tensordot and what follows from it -------------------------------------------------------------------------------------


def _tensordot_flops(args, kwargs, result) -> int:
    a, b = args[:2]
    contracted = (a.numel() * b.numel() / max(result.numel(), 1)) ** 0.5 if result.numel() else 0
    return 2 * result.numel() * round(contracted)


@operator("tensordot", method=False, out=True, autocast="lower", flops=_tensordot_flops)
def tensordot(a, b, dims=2):
    """Sums of products over several dimensions at once.

    dims: how many of a's last dimensions meet b's first ones, or two lists of dimensions that meet pairwise. Result: a's remaining dimensions, then b's.
    """
    _tensors("tensordot", a=a, b=b)
    left, right = _dims_of_tensordot(a, b, dims)
    for x, y in zip(left, right):
        if a.shape[x] != b.shape[y] and 1 not in (a.shape[x], b.shape[y]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[x]} in dim {_as_given(dims, 0, x, a.ndim)} and second has size {b.shape[y]} in dim {_as_given(dims, 1, y, b.ndim)}\n"
                f"  a: {list(a.shape)}, dims {left}\n  b: {list(b.shape)}, dims {right}"
            )
    if a.dtype is not b.dtype:
        raise RuntimeError(f"both inputs should have same dtype\n  a: {a.dtype}, b: {b.dtype}: convert one of them, as in b.to({a.dtype}).")
    for x, y in zip(left, right):  # a size of 1 meets a longer dimension: sum that one first
        if a.shape[x] != b.shape[y]:
            a, b = (a, b.sum(y, True)) if a.shape[x] == 1 else (a.sum(x, True), b)
    rest_a, rest_b = ([d for d in range(t.ndim) if d not in used] for t, used in ((a, left), (b, right)))
    shape = (*(a.shape[d] for d in rest_a), *(b.shape[d] for d in rest_b))
    inner = prod(a.shape[d] for d in left)
    rows = a.permute(*rest_a, *left).reshape(prod(a.shape[d] for d in rest_a), inner)  # [rows, inner]
    columns = b.permute(*right, *rest_b).reshape(inner, prod(b.shape[d] for d in rest_b))  # [inner, columns]
    return mm(rows, columns).reshape(shape)


def _dims_of_tensordot(a: Tensor, b: Tensor, dims):
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return list(range(a.ndim - dims, a.ndim)), list(range(dims))
    left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(left) != len(right):
        raise RuntimeError(f"both dimension lists should have same length\n  got {left} and {right}")
    return [wrap_dim(d, a.ndim) for d in left], [wrap_dim(d, b.ndim) for d in right]


def _as_given(dims, side: int, dim: int, ndim: int) -> int:
    return dim - ndim if isinstance(dims, int) and side == 0 else dim


def _inner_flops(args, kwargs, result) -> int:
    return 2 * result.numel() * (args[0].shape[-1] if args[0].ndim and args[1].ndim else 1)


@operator("inner", out=True, autocast="lower", flops=_inner_flops)
def inner(input, other):
    """Sums of products along the last dimension: [*a, k], [*b, k] -> [*a, *b]; with a number, a plain product."""
    _tensors("inner", input=input, other=other)
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and {list(other.shape)}")
    if input.ndim == other.ndim == 1 and input.dtype is other.dtype:
        return dot(input, other)
    return tensordot(input, other, ([-1], [-1]))


@operator("kron", out=True, flops=lambda args, kwargs, result: result.numel())
def kron(input, other):
    """Kronecker product: every element of input times the whole of other, laid out as blocks. Sizes multiply dimension by dimension."""
    _tensors("kron", input=input, other=other)
    ndim = max(input.ndim, other.ndim)
    a = (1,) * (ndim - input.ndim) + tuple(input.shape)
    b = (1,) * (ndim - other.ndim) + tuple(other.shape)
    left = input.reshape([size for pair in zip(a, (1,) * ndim) for size in pair])  # [a0, 1, a1, 1, …]
    right = other.reshape([size for pair in zip((1,) * ndim, b) for size in pair])  # [1, b0, 1, b1, …]
    return (left * right).reshape([x * y for x, y in zip(a, b)])


def _chain_flops(args, kwargs, result) -> int:
    matrices = args[0] if isinstance(args[0], (list, tuple)) else args
    sizes = [*(m.shape[0] if m.ndim == 2 else 1 for m in matrices), matrices[-1].shape[-1] if matrices[-1].ndim == 2 else 1]
    if matrices[0].ndim == 1:
        sizes[1] = matrices[0].shape[0]
    return 2 * _cheapest(sizes)[0]


def _cheapest(sizes):
    """(multiply-adds, where to cut) of a chain of matrices sizes[i] x sizes[i + 1]: the classic dynamic programme over intervals."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    cut = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], cut[i, j] = min((cost[i, s] + cost[s + 1, j] + sizes[i] * sizes[s + 1] * sizes[j + 1], s) for s in range(i, j))
    return cost[0, count - 1], cut


def _multiply_chain(matrices):
    _, cut = _cheapest([m.shape[0] for m in matrices] + [matrices[-1].shape[1]])

    def product(i, j):
        return matrices[i] if i == j else mm(product(i, cut[i, j]), product(cut[i, j] + 1, j))

    return product(0, len(matrices) - 1)


@operator("chain_matmul", method=False, autocast="lower", flops=_chain_flops)
def chain_matmul(*matrices, out=None):
    """Product of several matrices, multiplied in the order that costs least."""
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for m in matrices:
        if m.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m.ndim}, expected 2 instead.")
    result = _multiply_chain(matrices)
    return result if out is None else out.copy_(result)


@operator("multi_dot", method=False, namespace="linalg", out=True, autocast="lower", flops=_chain_flops)
def multi_dot(tensors):
    """Product of several matrices in the order that costs least; the first and the last may be vectors."""
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got " + str(len(tensors)))
    first, last = tensors[0].ndim == 1, tensors[-1].ndim == 1
    if first:
        tensors[0] = tensors[0].unsqueeze(0)
    if last:
        tensors[-1] = tensors[-1].unsqueeze(1)
    for i, t in enumerate(tensors):
        if t.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.ndim}D")
    result = _multiply_chain(tensors)
    return result.reshape([size for size, gone in zip(result.shape, (first, last)) if not gone])


# ---- einsum -----------------------------------------------------------------------------------------------------------------

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Step(NamedTuple):
    """Contracts the running result with the next operand. Dimensions to sum first, orders to permute to, shapes to view as, then the result's shape."""

    multiply: bool  # nothing to sum over: an elementwise product
    sum_a: list
    sum_b: list
    order_a: list
    order_b: list
    shape_a: tuple
    shape_b: tuple
    swap: bool
    shape: tuple
    cost: int


class Recipe:
    """diagonals: for each operand, pairs of dimensions to replace by their diagonal. total: dimensions to sum at the end (one operand only).

    order: how to permute the result at last, None where it is right already.
    """

    def __init__(self) -> None:
        self.diagonals: list[list[tuple[int, int]]] = []
        self.steps: list[Step] = []
        self.total: list[int] = []
        self.order: list[int] | None = None

    @property
    def flops(self) -> int:
        return sum(step.cost for step in self.steps)


_RECIPES = PlanCache(1024)


def _einsum_arguments(args):
    """(equation, operands) from either calling form; index lists become letters."""
    if len(args) < 2:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    if isinstance(args[0], str):
        operands = args[1:]
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = tuple(operands[0])
        return args[0], operands

    def letters(subscripts):
        text = ""
        for s in subscripts:
            if s is Ellipsis:
                text += "..."
            elif isinstance(s, int) and 0 <= s < 52:
                text += LETTERS[s]
            else:
                raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        return text

    pairs, rest = args[: len(args) // 2 * 2], args[len(args) // 2 * 2 :]
    equation = ",".join(letters(s) for s in pairs[1::2])
    return equation + ("->" + letters(rest[0]) if rest else ""), pairs[::2]


def _einsum_flops(args, kwargs, result) -> int:
    equation, operands = _einsum_arguments(args)
    return _recipe(equation, operands).flops


@operator("einsum", method=False, autocast="lower", flops=_einsum_flops)
def einsum(*args):
    """Sums of products in Einstein's notation: einsum("bij,bjk->bik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2]).

    A letter is a dimension; letters missing on the right are summed over; a letter twice in one operand takes its diagonal; "..." stands for the
    dimensions that are not named and broadcast. Operands are contracted from left to right.
    """
    equation, operands = _einsum_arguments(args)
    for t in operands:
        if not isinstance(t, Tensor):
            raise TypeError(f"einsum(): operands must be Tensors, not {type(t).__name__}")
    recipe = _recipe(equation, operands)
    tensors = []
    for t, pairs in zip(operands, recipe.diagonals):
        for keep, gone in pairs:
            t = t.diagonal(0, keep, gone).movedim(-1, keep)
        tensors.append(t)
    result = tensors[0]
    for step, t in zip(recipe.steps, tensors[1:]):
        result = _contract(step, result, t)
    if recipe.total:
        result = result.sum(recipe.total)
    return result if recipe.order is None else result.permute(recipe.order)


def _contract(step: Step, a: Tensor, b: Tensor) -> Tensor:
    if step.sum_a:
        a = a.sum(step.sum_a, True)
    if step.sum_b:
        b = b.sum(step.sum_b, True)
    a, b = _arranged(a, step.order_a, step.shape_a), _arranged(b, step.order_b, step.shape_b)
    if step.multiply:
        return a * b
    return _arranged(matmul(b, a) if step.swap else matmul(a, b), (), step.shape)


def _arranged(t: Tensor, order, shape) -> Tensor:
    """Permuted (unless order is empty), then viewed as shape; steps that change nothing are left out."""
    if order:
        t = t.permute(order)
    return t if t.shape == shape else t.reshape(shape)


def _recipe(equation: str, operands) -> Recipe:
    key = (equation, *[t.shape for t in operands])
    recipe = _RECIPES.get(key)
    return recipe if recipe is not None else _RECIPES.put(key, _work_out(equation, [tuple(t.shape) for t in operands]))


def _work_out(equation: str, shapes) -> Recipe:
    inputs, output, sizes = _labels(equation, shapes)
    recipe = Recipe()
    held = []  # labels and sizes of each operand once diagonals are taken
    for labels, shape in zip(inputs, shapes):
        labels, shape, pairs = list(labels), list(shape), []
        for label in dict.fromkeys(labels):
            while labels.count(label) > 1:
                first = labels.index(label)
                second = labels.index(label, first + 1)
                pairs.append((first, second))
                del labels[second], shape[second]
        recipe.diagonals.append(pairs)
        held.append((labels, shape))
    labels, shape = held[0]
    for position, (other, other_shape) in enumerate(held[1:], 1):
        later = set(output).union(*(labels_ for labels_, _ in held[position + 1 :]))
        step, labels, shape = _plan_step(labels, shape, other, other_shape, later, output, sizes)
        recipe.steps.append(step)
    recipe.total = [d for d, label in enumerate(labels) if label not in output]
    left = [label for label in labels if label in output]
    recipe.order = [left.index(label) for label in output]
    if recipe.steps and recipe.order == list(range(len(output))):
        recipe.order = None  # a product is a fresh tensor already; of one operand alone the result is a view, as PyTorch's
    return recipe


def _plan_step(a, shape_a, b, shape_b, later, output, sizes):
    """One contraction of labels `a` with `b`; labels in `later` stay."""
    size_a, size_b = dict(zip(a, shape_a)), dict(zip(b, shape_b))
    union = list(dict.fromkeys([*a, *b]))
    both = [label for label in union if label in size_a and label in size_b]
    # Summed away beforehand: what only one side has and nobody needs, or what meets a size of 1 on the other side.
    gone = [label for label in union if label not in later]
    sum_a = [d for d, label in enumerate(a) if label in gone and size_b.get(label, 1) == 1 and size_a[label] != 1]
    sum_b = [d for d, label in enumerate(b) if label in gone and size_a.get(label, 1) == 1 and size_b[label] != 1]
    inner = [label for label in both if label in gone and size_a[label] != 1 and size_b[label] != 1]
    batch = [label for label in both if label not in gone]
    only_a = [label for label in a if label not in both and label not in gone]
    only_b = [label for label in b if label not in both and label not in gone]
    dropped_a = [label for label in a if label in gone and label not in inner]  # size 1 by now
    dropped_b = [label for label in b if label in gone and label not in inner]
    cost = prod(sizes[label] for label in union if label not in gone or label in inner) * (2 if inner else 1)

    def arrange(labels, own, groups, dropped):
        """Order to permute to, and the shape to view that as: each group is one dimension, or a list of its own."""
        order = [labels.index(k) for group in groups for k in group if k in own] + [labels.index(k) for k in dropped]
        return [] if order == list(range(len(order))) else order, tuple(prod(own.get(k, 1) for k in group) for group in groups)

    singles = lambda labels: [[k] for k in labels]
    place = {label: p for p, label in enumerate(output)}
    swap = False
    if not inner:
        # In the output's order, as far as it says: the product is then laid out row-major.
        kept = sorted([*batch, *only_a, *only_b], key=lambda k: place.get(k, len(place)))
        groups_a = groups_b = singles(kept)
    else:
        # Rows of the result come from the operand whose dimensions the output names first.
        swap = bool(only_a and only_b) and place.get(only_b[0], len(place)) < place.get(only_a[0], len(place))
        kept = [*batch, *only_b, *only_a] if swap else [*batch, *only_a, *only_b]
        groups_a = [*singles(batch), *([inner, only_a] if swap else [only_a, inner])]
        groups_b = [*singles(batch), *([only_b, inner] if swap else [inner, only_b])]
    shape = [0 if 0 in (size_a.get(k, 1), size_b.get(k, 1)) else max(size_a.get(k, 1), size_b.get(k, 1)) for k in kept]
    order_a, shape_a = arrange(a, size_a, groups_a, dropped_a)
    order_b, shape_b = arrange(b, size_b, groups_b, dropped_b)
    return Step(not inner, sum_a, sum_b, order_a, order_b, shape_a, shape_b, swap, tuple(shape), cost), kept, shape


def _labels(equation: str, shapes):
    """Labels of every operand's dimensions and of the output; sizes by label. Dimensions under an ellipsis get negative numbers, counted from the right."""
    left, arrow, right = equation.partition("->")
    parts = _split_terms(left)
    if len(shapes) < len(parts):
        raise RuntimeError(f"einsum(): fewer operands were provided than specified in the equation\n  '{equation}' names {len(parts)}, got {len(shapes)}")
    if len(shapes) > len(parts):
        raise RuntimeError(f"einsum(): more operands were provided than specified in the equation\n  '{equation}' names {len(parts)}, got {len(shapes)}")
    inputs, sizes, widest = [], {}, 0
    for number, (term, shape) in enumerate(zip(parts, shapes)):
        named = sum(t != "..." for t in term)
        if "..." not in term and named != len(shape):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({named}) does not match the number of dimensions ({len(shape)}) for operand {number} and no ellipsis was given"
                f"\n  '{equation}', operand {number}: {list(shape)}"
            )
        if named > len(shape):
            raise RuntimeError(f"einsum(): the number of subscripts in the equation ({named}) is more than the number of dimensions ({len(shape)}) for operand {number}")
        hidden = len(shape) - named
        widest = max(widest, hidden)
        labels = [label for t in term for label in (range(-hidden, 0) if t == "..." else (t,))]
        for d, label in enumerate(labels):
            first = labels.index(label)
            if first != d and shape[first] != shape[d]:
                raise RuntimeError(f"einsum(): subscript {label} is repeated for operand {number} but the sizes don't match, {shape[d]} != {shape[first]}")
            seen = sizes.setdefault(label, shape[d])
            if shape[d] != seen:
                if 1 not in (shape[d], seen):
                    if isinstance(label, int):
                        label = f"... (dimension {label})"
                    raise RuntimeError(
                        f"einsum(): subscript {label} has size {shape[d]} for operand {number} which does not broadcast with previously seen size {seen}"
                        f"\n  '{equation}' with " + ", ".join(str(list(s)) for s in shapes)
                    )
                sizes[label] = max(shape[d], seen) if 0 not in (shape[d], seen) else 0
        inputs.append(labels)
    hidden = list(range(-widest, 0))
    if not arrow:
        every = [label for labels in inputs for label in labels if isinstance(label, str)]
        return inputs, hidden + sorted(label for label in set(every) if every.count(label) == 1), sizes
    output = []
    for t in _split_terms(right, len(left) + 2, output=True)[0]:
        for label in hidden if t == "..." else (t,):
            if label in output:
                raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
            if label not in sizes:
                raise RuntimeError(f"einsum(): output subscript {label} does not appear in the equation for any input operand\n  '{equation}'")
            output.append(label)
    return inputs, output, sizes


def _split_terms(text: str, start: int = 0, output: bool = False):
    """Subscripts of each operand: letters, and "..." where an ellipsis stands."""
    terms: list[list[str]] = [[]]
    i = 0
    while i < len(text):
        c = text[i]
        whose = "the output" if output else f"operand {len(terms) - 1}"
        if c == ".":
            if text[i : i + 3] != "...":
                raise RuntimeError(f"einsum(): found '.' for {whose} that is not part of any ellipsis")
            if "..." in terms[-1]:
                raise RuntimeError(f"einsum(): found '.' for {whose} for which an ellipsis was already found")
            terms[-1].append("...")
            i += 3
            continue
        if c == "," and not output:
            terms.append([])
        elif c in LETTERS:
            terms[-1].append(c)
        elif c != " ":
            raise RuntimeError(f"einsum(): invalid subscript given at index {start + i} in the equation string, subscripts must be in [a-zA-Z]")
        i += 1
    return terms
