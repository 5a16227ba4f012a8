"""Tensors of a batch that operators see as one sample: what `vmap` maps a function over.

A `Batched` holds a tensor with one dimension more, in front. It answers calls through `__torch_function__`: pointwise operators, reductions, views and
products have rules, which call the operator once for the whole batch; all others run sample by sample. Gradients need no rules: the graph is that of the
tensors inside. Which function is mapped, and how, is func.py's.
"""
from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from . import ops, tree
from .kernels.native_objects import new
from .layout import Layout, Size, wrap_dim
from .ops import overriding
from .ops.generator import get_rng_state, set_rng_state
from .ops.table import TABLE
from .tensor import Spec, Tensor


class OfSample(NotImplementedError):
    """An operator was given a whole batch where it works on plain tensors."""


class Batched(Tensor):
    """A batch `value` [B, *shape] that looks like a tensor of `shape`. level: how many maps it is inside of."""

    value: Tensor
    level: int

    @property
    def spec(self) -> Spec:  # type: ignore[override]
        return Spec.of(Layout.of(self.shape, self.value.stride()[1:]), self.dtype, self.device)

    @property
    def mem(self):  # type: ignore[override]
        raise OfSample("vmap: this tensor stands for every sample of a batch, and what was asked needs its memory (data_ptr, numpy, …)")

    ptr = mem

    @property
    def shape(self) -> Size:  # type: ignore[override]
        return Size(self.value.shape[1:])

    @property
    def ndim(self) -> int:  # type: ignore[override]
        return self.value.ndim - 1

    @property
    def dtype(self):  # type: ignore[override]
        return self.value.dtype

    @property
    def device(self):  # type: ignore[override]
        return self.value.device

    @property
    def requires_grad(self) -> bool:  # type: ignore[override]
        return self.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.value.requires_grad_(value)

    @property
    def grad_fn(self):  # type: ignore[override]
        return self.value.grad_fn

    @property
    def is_leaf(self) -> bool:  # type: ignore[override]
        return self.value.is_leaf

    def size(self, dim=None):  # type: ignore[override]
        return self.shape if dim is None else self.shape[wrap_dim(dim, self.ndim)]

    def dim(self) -> int:  # type: ignore[override]
        return self.ndim

    ndimension = dim

    def numel(self) -> int:  # type: ignore[override]
        return math.prod(self.shape)

    nelement = numel

    def requires_grad_(self, requires_grad: bool = True):  # type: ignore[override]
        self.value.requires_grad_(requires_grad)
        return self

    def is_floating_point(self) -> bool:  # type: ignore[override]
        return self.value.is_floating_point()

    def is_complex(self) -> bool:  # type: ignore[override]
        return self.value.is_complex()

    def is_contiguous(self, memory_format=None) -> bool:  # type: ignore[override]
        return self.value.is_contiguous()

    def stride(self, dim=None):  # type: ignore[override]
        strides = self.value.stride()[1:]
        return strides if dim is None else strides[wrap_dim(dim, self.ndim)]

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(len(self))])

    def __bool__(self) -> bool:
        raise RuntimeError(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, please file an issue at "
            "https://github.com/pytorch/pytorch/issues .\n  Every sample takes the same way through the function: choose between values by torch.where."
        )

    def item(self):
        raise RuntimeError(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to rewrite what you're doing with "
            "other operations.\n  It would have another value for every sample."
        )

    __float__ = __int__ = __index__ = tolist = item  # type: ignore[assignment]

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Batched(level={self.level}, value=\n{self.value!r})"

    __hash__ = object.__hash__  # type: ignore[assignment]

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return call(func, args, kwargs or {})


def batched(value: Tensor, level: int) -> Batched:
    """The tensor [B, *] as a sample of `level`."""
    t = new(Batched)
    t.value, t.level = value, level
    return t


# ---- the maps that are going on -----------------------------------------------------------------------------------------------------


class Map:
    """A vmap that is running: its level, its batch, how random numbers are drawn, and the generator's state at its start."""

    def __init__(self, size: int, randomness: str):
        self.size, self.randomness = size, randomness
        self.level = 0

    def __enter__(self) -> Map:
        _MAPS.append(self)
        self.level = len(_MAPS)
        self.state = get_rng_state()
        self.mode = _Different(self) if self.randomness == "different" else overriding.Watched()
        self.mode.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.mode.__exit__(*error)
        _MAPS.pop()


class _Different(overriding.TorchFunctionMode):
    """While it is open, fresh random tensors are drawn for each sample."""

    def __init__(self, running: Map):
        self.running = running

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func.__name__ in _FRESH and not any(isinstance(leaf, Batched) for leaf in tree.flatten((args, kwargs or {}))):
            return batched(ops.stack([func(*args, **(kwargs or {})) for _ in range(self.running.size)]), self.running.level)
        return func(*args, **(kwargs or {}))


_FRESH = frozenset("rand randn randint randperm normal".split())


_MAPS: list[Map] = []


def in_every_map(x: Tensor) -> Tensor:
    """A tensor with the batch of every map that is going on: what is differentiated inside a map has a gradient a sample."""
    for running in _MAPS:
        x = _with_level(x, running.level, running.size)
    return x


def _with_level(x: Tensor, level: int, size: int) -> Tensor:
    if isinstance(x, Batched) and x.level > level:
        return batched(_with_level(x.value, level, size), x.level)
    if isinstance(x, Batched) and x.level == level:
        return x
    return batched(x.expand(size, *x.shape), level)  # type: ignore[attr-defined]  # [B, *]


def inside(x: Any) -> Any:
    """The plain tensor of a sample, with all its batch dimensions in front."""
    while isinstance(x, Batched):
        x = x.value
    return x


def like(x: Tensor, plain: Tensor) -> Tensor:
    """A plain tensor as a sample of the maps that x is a sample of."""
    return batched(like(x.value, plain), x.level) if isinstance(x, Batched) else plain


def as_sample_of(x: Tensor, like_that: Tensor) -> Tensor:
    """x with every batch that `like_that` has."""
    for running in _MAPS:
        if _has(like_that, running.level):
            x = _with_level(x, running.level, running.size)
    return x


def _has(x: Any, level: int) -> bool:
    while isinstance(x, Batched):
        if x.level == level:
            return True
        x = x.value
    return False


# ---- calls -------------------------------------------------------------------------------------------------------------------------


def call(func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """An operator on samples: by its rule, else one sample after the other."""
    leaves = [leaf for leaf in tree.flatten((args, kwargs)) if isinstance(leaf, Batched)]
    level = max(leaf.level for leaf in leaves)
    name = func.__name__
    rule = _RULES.get(name)
    entry = TABLE.get(name)
    if rule is None and entry is not None and entry.pointwise and entry.call is func:
        rule = _pointwise
    random = name in _RANDOM and _MAPS and level <= len(_MAPS)
    if random:
        running = _MAPS[level - 1]
        if running.randomness == "error":
            raise RuntimeError(ERROR_MODE)
        if running.randomness == "same":
            return _one_by_one(func, args, kwargs, level, running.state)
    if rule is not None:
        result = rule(func, args, kwargs, level)
        if result is not NotImplemented:
            return result
    return _one_by_one(func, args, kwargs, level)


ERROR_MODE = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or "
    "perform the randomness operation out of vmap"
)


def _is(x: Any, level: int) -> bool:
    return isinstance(x, Batched) and x.level == level


def _wrap(result: Any, level: int) -> Any:
    if isinstance(result, Tensor):
        return batched(result, level)
    if isinstance(result, (tuple, list)):
        return type(result)(*(_wrap(r, level) for r in result)) if hasattr(result, "_fields") else type(result)(_wrap(r, level) for r in result)
    return result


def _one_by_one(func: Callable[..., Any], args: tuple, kwargs: dict, level: int, state: Tensor | None = None) -> Any:
    """The call for each sample, its results stacked. state: what the generator starts from for each of them."""
    given = args, kwargs
    leaves = tree.flatten(given)
    size = next(leaf.value.shape[0] for leaf in leaves if _is(leaf, level))
    if size == 0:
        raise NotImplementedError(f"vmap: a batch of no samples: {func.__name__} runs once a sample, and has no result here")
    results = []
    for i in range(size):
        if state is not None:
            set_rng_state(state)
        a, k = tree.rebuild(given, [leaf.value[i] if _is(leaf, level) else leaf for leaf in leaves])
        results.append(func(*a, **k))
    first = results[0]
    if first is None or any(first is leaf for leaf in leaves):
        return first
    inputs = [leaf for leaf in leaves if _is(leaf, level)]
    if func.__name__.endswith("_") and not func.__name__.endswith("__") and inputs and inputs[0] is leaves[0]:
        return inputs[0]  # written in place, a window at a time
    columns = list(zip(*map(tree.flatten, results)))
    stacked = [batched(ops.stack(list(column)), level) if isinstance(column[0], Tensor) else _agreed(func, column) for column in columns]
    return tree.rebuild(first, stacked)


def _agreed(func: Callable[..., Any], values: tuple) -> Any:
    if any(value != values[0] for value in values):
        raise RuntimeError(f"vmap: {func.__name__} gives another {type(values[0]).__name__} for each sample, which no function of a sample can go on with")
    return values[0]


# ---- rules --------------------------------------------------------------------------------------------------------------------------------


def _pointwise(func: Callable[..., Any], args: tuple, kwargs: dict, level: int) -> Any:
    """Operands of the batch aligned behind their first dimension: [B, 1.., *shape]; others broadcast from behind as ever."""
    given = args, kwargs
    leaves = tree.flatten(given)
    rank = max(leaf.ndim for leaf in leaves if isinstance(leaf, Tensor))
    if func.__name__.endswith("_") and not _is(args[0], level):
        raise RuntimeError(
            f"vmap: {func.__name__}(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements than `self`. This happened "
            "due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place operators instead of in-place ones."
        )

    def aligned(x: Any) -> Any:
        if not _is(x, level):
            return x
        value = x.value
        return value.view(value.shape[0], *[1] * (rank - x.ndim), *value.shape[1:]) if x.ndim < rank and x.ndim else value if x.ndim == rank else value.view(-1, *[1] * rank)

    a, k = tree.rebuild(given, [aligned(leaf) for leaf in leaves])
    result = func(*a, **k)
    if func.__name__.endswith("_"):
        return args[0]
    return _wrap(result, level)


@functools.lru_cache(None)
def _signature(func: Callable[..., Any]) -> tuple[tuple[str, ...], frozenset[str], dict[str, Any]]:
    """(names of the arguments by position, all names, what dimensions are where they are not given)."""
    parameters = inspect.signature(func).parameters.values()
    places = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    return places, frozenset(p.name for p in parameters), {p.name: p.default for p in parameters if p.name in _DIMS and p.default is not p.empty}


def _bound(func: Callable[..., Any], args: tuple, kwargs: dict) -> dict[str, Any] | None:
    """The arguments by their names, dimensions with their defaults; None for a call that cannot be read so."""
    places, names, defaults = _signature(func)
    if len(args) > len(places) or not names.issuperset(kwargs):
        return None
    return {**defaults, **dict(zip(places, args)), **kwargs}


_DIMS = ("dim", "dims", "dim0", "dim1", "dim2", "start_dim", "end_dim", "source", "destination", "axis", "axis0", "axis1", "dimension")


def _moved(dim: Any, ndim: int) -> Any:
    """A dimension (or several) of a sample as one of the batch."""
    if isinstance(dim, (tuple, list)):
        return type(dim)(_moved(d, ndim) for d in dim)
    return wrap_dim(dim, ndim) + 1


def _along(whole: str) -> Callable[..., Any]:
    """The rule of operators with dimensions among their arguments. whole: what no `dim` means: "tuple" all of them by their numbers, "flat" all as one, "" that they stay as they are."""

    def rule(func: Callable[..., Any], args: tuple, kwargs: dict, level: int) -> Any:
        found = _bound(func, args, kwargs)
        if found is None or not args:
            return NotImplemented
        first, x = _signature(func)[0][0], args[0]
        names = [name for name in found if name != first]
        if not _is(x, level) or any(_is(leaf, level) for name in names for leaf in tree.flatten(found[name])):
            return NotImplemented
        value = x.value
        ndim = x.ndim
        if ndim == 0:
            if not whole:
                return NotImplemented
            value, ndim = value.unsqueeze(-1), 1
        given = [name for name in names if name in _DIMS and found[name] is not None]
        if not given and not whole:
            return NotImplemented
        if whole and not given and ("dim" not in found or found["dim"] is None):
            if whole == "flat" and ndim > 1:
                value = value.flatten(1)
            found["dim"] = tuple(range(1, ndim + 1)) if whole == "tuple" else 1
        for name in given:
            if whole == "tuple" and found[name] in ((), []):
                found[name] = tuple(range(ndim))
            found[name] = _moved(found[name], ndim)
        found[first] = value
        return _wrap(func(*[found.pop(first)], **found), level)

    return rule


def _unsqueeze(func, args, kwargs, level):
    found = _bound(func, args, kwargs)
    if found is None or not _is(found.get("input"), level):
        return NotImplemented
    x, dim = found["input"], found["dim"]
    return batched(x.value.unsqueeze(wrap_dim(dim, x.ndim + 1) + 1), level)


def _squeeze(func, args, kwargs, level):
    found = _bound(func, args, kwargs)
    if found is None or not _is(found.get("input"), level):
        return NotImplemented
    x, dim = found["input"], found.get("dim")
    dims = [d for d in range(x.ndim) if x.shape[d] == 1] if dim is None else [wrap_dim(d, x.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))] if x.ndim else []
    return batched(x.value.squeeze(tuple(d + 1 for d in dims)) if dims else x.value, level)


def _last_first(index: int, last: int) -> Callable[..., Any]:
    """Operators on a sample's last dimensions, the batch being one more in front; only for samples of at least `last` dimensions. index: which argument is the sample."""

    def rule(func, args, kwargs, level):
        x = args[index] if len(args) > index else None
        others = [leaf for i, value in enumerate((*args, kwargs)) if i != index for leaf in tree.flatten(value)]
        if not _is(x, level) or x.ndim < last or any(_is(leaf, level) for leaf in others):
            return NotImplemented
        return _wrap(func(*args[:index], x.value, *args[index + 1 :], **kwargs), level)

    return rule


def _sizes(func, args, kwargs, level):
    """view, reshape, expand, …: the batch's size in front of the sizes given."""
    x, *sizes = args
    if kwargs or not sizes or not all(isinstance(s, int) or isinstance(s, (tuple, list)) for s in sizes):
        return NotImplemented
    sizes = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else tuple(sizes)
    name = func.__name__
    if name == "expand":
        value = x.value.view(x.value.shape[0], *[1] * (len(sizes) - x.ndim), *x.value.shape[1:])
        return batched(value.expand(-1, *sizes), level)
    if name in ("repeat", "tile"):
        if len(sizes) < x.ndim:
            return NotImplemented
        return batched(x.value.view(x.value.shape[0], *[1] * (len(sizes) - x.ndim), *x.value.shape[1:]).repeat(1, *sizes), level)
    if name == "permute":
        return batched(x.value.permute(0, *(wrap_dim(d, x.ndim) + 1 for d in sizes)), level)
    if -1 in sizes:
        known = math.prod(s for s in sizes if s != -1)
        if known == 0 or sizes.count(-1) > 1 or x.numel() % known:
            return NotImplemented
        sizes = tuple(x.numel() // known if s == -1 else s for s in sizes)
    return batched(func(x.value, (x.value.shape[0], *sizes)), level)


def _transposed(func, args, kwargs, level):
    x = args[0]
    if func.__name__ == "t" and x.ndim > 2:
        return NotImplemented
    return x if x.ndim < 2 else batched(x.value.transpose(-1, -2), level)


def _item(func, args, kwargs, level):
    """x[key]: ints, slices, None and ... behind the batch; index tensors of all samples where they stand together."""
    x, key = args
    if not _is(x, level):
        return NotImplemented
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(leaf, Batched) for leaf in tree.flatten(parts)):
        return NotImplemented
    advanced = [i for i, part in enumerate(parts) if isinstance(part, (Tensor, list)) or isinstance(part, bool)]
    if advanced and len(advanced) != advanced[-1] - advanced[0] + 1 or any(isinstance(part, bool) for part in parts):
        return NotImplemented
    if advanced and any(isinstance(part, int) for part in parts):  # an int beside index tensors is one of them
        return NotImplemented
    return batched(x.value[(slice(None), *parts)], level)


def _joined(func, args, kwargs, level):
    """cat and stack: tensors that are the same for all samples are expanded."""
    found = _bound(func, args, kwargs)
    if found is None or not args:
        return NotImplemented
    tensors, dim = args[0], found.get("dim", 0)
    size = next(t.value.shape[0] for t in tensors if _is(t, level))
    ndim = tensors[0].ndim + (func.__name__ == "stack")
    values = [t.value if _is(t, level) else t.expand(size, *t.shape) for t in tensors]
    return batched(func(values, wrap_dim(dim, ndim) + 1), level)


def _product(func, args, kwargs, level):
    """Matrix products by matmul, which has batches: vectors get the dimension that they lack."""
    a, b = args[:2]
    if len(args) > 2 or kwargs:
        return NotImplemented
    x = a.value if _is(a, level) else a
    y = b.value if _is(b, level) else b
    ranks = a.ndim, b.ndim
    if 0 in ranks or func.__name__ != "matmul" and ranks != {"mm": (2, 2), "mv": (2, 1), "dot": (1, 1), "bmm": (3, 3), "inner": (1, 1), "vdot": (1, 1)}.get(func.__name__):
        return NotImplemented
    if func.__name__ == "vdot" and a.is_complex():
        return NotImplemented
    rank = max(2, *ranks)
    if ranks[0] == 1:
        x = x.unsqueeze(-2)  # [B, 1, k]
    if ranks[1] == 1:
        y = y.unsqueeze(-1)  # [B, k, 1]
    if _is(a, level) and max(ranks[0], 2) < rank:
        x = x.view(x.shape[0], *[1] * (rank - max(ranks[0], 2)), *x.shape[1:])
    if _is(b, level) and max(ranks[1], 2) < rank:
        y = y.view(y.shape[0], *[1] * (rank - max(ranks[1], 2)), *y.shape[1:])
    out = TABLE["matmul"].call(x, y)
    if ranks[1] == 1:
        out = out.squeeze(-1)
    if ranks[0] == 1:
        out = out.squeeze(-1 if ranks[1] == 1 else -2)
    return batched(out, level)


def _linear(func, args, kwargs, level):
    found = _bound(func, args, kwargs)
    if found is None:
        return NotImplemented
    x, weight, bias = found["input"], found["weight"], found.get("bias")
    if not _is(weight, level) and not _is(bias, level):
        return batched(func(x.value, weight, bias), level) if x.ndim else NotImplemented
    out = TABLE["matmul"].call(x, TABLE["transpose"].call(weight, -1, -2) if weight.ndim > 1 else weight)
    return out if bias is None else out + bias


def _merged(func, args, kwargs, level):
    """Convolutions and their kind, whose input has a batch of its own: both as one, the weights being the same for all samples."""
    x, *others = args
    if not _is(x, level) or any(_is(leaf, level) for leaf in tree.flatten((others, kwargs))):
        return NotImplemented
    n = {"1": 3, "2": 4, "3": 5}.get(next((c for c in func.__name__ if c in "123"), ""), 4)
    if x.ndim not in (n - 1, n):
        return NotImplemented
    value = x.value if x.ndim == n - 1 else x.value.flatten(0, 1)  # [B * N, C, *]
    result = func(value, *others, **kwargs)
    back = lambda t: batched(t if x.ndim == n - 1 else t.unflatten(0, x.value.shape[:2]), level)
    return back(result) if isinstance(result, Tensor) else type(result)(map(back, result))


def _einsum(func, args, kwargs, level):
    equation, *tensors = args
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = list(tensors[0])
    if not isinstance(equation, str) or "..." in equation or "->" not in equation:
        return NotImplemented
    inputs, _, output = equation.replace(" ", "").partition("->")
    letter = next((c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBA" if c not in equation), None)
    if letter is None:
        return NotImplemented
    terms = [(letter if _is(t, level) else "") + term for t, term in zip(tensors, inputs.split(","))]
    return batched(func(f"{','.join(terms)}->{letter}{output}", *[t.value if _is(t, level) else t for t in tensors]), level)


def _cross_entropy(func, args, kwargs, level):
    """Rows of all samples as one matrix, [B, C] or [B * N, C], each sample's losses joined afterwards."""
    found = _bound(func, args, kwargs)
    if found is None or not {"input", "target", "reduction", "ignore_index"}.issuperset(found):
        return NotImplemented
    x, target, reduction, ignored = found["input"], found["target"], found.get("reduction", "mean"), found.get("ignore_index", -100)
    if not _is(x, level) or x.ndim not in (1, 2) or target.ndim != x.ndim - 1 or reduction not in ("mean", "sum", "none"):
        return NotImplemented
    size = x.value.shape[0]
    rows = target.value if _is(target, level) else target.expand(size, *target.shape)  # [B] or [B, N]
    each = func(x.value.reshape(-1, x.shape[-1]), rows.reshape(-1), reduction="none", ignore_index=ignored).view(rows.shape)
    if reduction == "none" or x.ndim == 1:
        return batched(each, level) if reduction != "mean" or x.ndim == 2 else batched(TABLE["where"].call(rows != ignored, each, math.nan), level)
    total = each.sum(1)
    return batched(total if reduction == "sum" else total / (rows != ignored).sum(1), level)


def _extreme(func, args, kwargs, level):
    """max and min: of all, along a dimension, or of two tensors."""
    if len(args) > 1 and isinstance(args[1], Tensor) or "other" in kwargs:
        return _pointwise(func, args, kwargs, level)
    if len(args) == 1 and not kwargs:
        return _ALL(TABLE["amax" if func.__name__ == "max" else "amin"].call, args, {}, level)
    return _ALONG(func, args, kwargs, level)


_ALL, _ALONG = _along("tuple"), _along("")


def _composed(func, args, kwargs, level):
    """What is written in operators runs on samples as it is."""
    return getattr(func, "__wrapped__", func)(*args, **kwargs)


_RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        """clone contiguous detach alias zeros_like ones_like empty_like full_like relu relu_ gelu silu elu selu celu leaky_relu softplus hardtanh hardswish hardsigmoid relu6 mish logsigmoid
        tanhshrink softsign sigmoid tanh to float double half bfloat16 long int bool type_as where masked_fill masked_fill_ clamp clamp_ nan_to_num isclose copy_ fill_ zero_
        rand_like randn_like bernoulli addcmul addcdiv lerp threshold hardshrink softshrink real imag abs nan_to_num sgn angle""".split(),
        _pointwise,
    ),
    **dict.fromkeys("sum mean amax amin any all var std var_mean std_mean nansum nanmean count_nonzero vector_norm norm".split(), _along("tuple")),
    **dict.fromkeys("argmax argmin median prod".split(), _along("flat")),
    **dict.fromkeys(
        """cumsum cumprod logsumexp softmax log_softmax softmin sort argsort topk kthvalue flip roll select narrow chunk split unbind transpose movedim flatten diff cummax cummin
        index_select tensor_split unflatten normalize logcumsumexp swapaxes swapdims moveaxis unfold glu""".split(),
        _along(""),
    ),
    **dict.fromkeys(("max", "min"), _extreme),
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    **dict.fromkeys("view reshape expand permute repeat tile".split(), _sizes),
    **dict.fromkeys("t T mT adjoint".split(), _transposed),
    "__getitem__": _item,
    **dict.fromkeys("cat stack".split(), _joined),
    **dict.fromkeys("matmul mm mv dot bmm inner vdot".split(), _product),
    "linear": _linear,
    **dict.fromkeys("conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool2d".split(), _merged),
    "cross_entropy": _cross_entropy,
    "einsum": _einsum,
    **dict.fromkeys("layer_norm rms_norm".split(), _last_first(0, 1)),
    **dict.fromkeys("tril triu inv det slogdet cholesky inverse matrix_exp".split(), _last_first(0, 2)),
    **dict.fromkeys("embedding pad_edges".split(), _last_first(0, 0)),
    **dict.fromkeys("mse_loss l1_loss".split(), _composed),
}
_RANDOM = frozenset("dropout feature_dropout rand_like randn_like randint_like bernoulli normal_ uniform_ bernoulli_ exponential_ multinomial alpha_dropout random_".split())
