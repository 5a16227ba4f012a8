"""Samples: tensors of a batch that operators see as one of its members, the maps that are going on, and how an operator is called on samples.

A call goes by the operator's rule, for the whole batch at once, where there is one (`rule` registers them, the families do), else sample by sample.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import ops, tree
from ..autograd import engine
from ..kernels.native_objects import new
from ..layout import Layout, Size, wrap_dim
from ..ops import overriding
from ..ops.generator import get_rng_state, set_rng_state
from ..ops.table import TABLE
from ..tensor import Spec, Tensor


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
        engine.MAPPED.append(_grad)
        return self

    def __exit__(self, *error: Any) -> None:
        engine.MAPPED.pop()
        self.mode.__exit__(*error)
        _MAPS.pop()


def _grad(outputs: Any, inputs: Any, grads: Any, options: dict) -> tuple | None:
    """`autograd.grad` of outputs from outside of a map along gradients that its samples are: a backward pass for each. None where no gradient is such a sample."""
    given = {i: g for i, g in enumerate(grads) if isinstance(g, Tensor)}

    def along(*some: Tensor) -> tuple:
        seeds = {**dict(enumerate(grads)), **dict(zip(given, some))}
        return engine.grad(outputs, inputs, [*seeds.values()], retain_graph=True, **options)

    for running in maps_beyond(given.values(), outputs):
        return one_by_one(along, in_map(given.values(), running), {}, running.level)
    return None


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


def in_map(tensors: Any, running: Map) -> tuple:
    """Each tensor as a sample of a map that is going on."""
    return tuple(_with_level(x, running.level, running.size) for x in tensors)


def maps_beyond(tensors: Any, others: Any) -> list[Map]:
    """The maps, the innermost first, of which some of `tensors` are samples and none of `others`."""
    return [running for running in reversed(_MAPS) if any(_has(x, running.level) for x in tensors) and not any(_has(x, running.level) for x in others)]


def _has(x: Any, level: int) -> bool:
    while isinstance(x, Batched):
        if x.level == level:
            return True
        x = x.value
    return False


# ---- rules -------------------------------------------------------------------------------------------------------------------------

Rule = Callable[[Callable[..., Any], tuple, dict, int], Any]
POINTWISE = "(pointwise)"  # in the place of a name: all operators of the table that are

_RULES: dict[str, Rule] = {}


def rule(names: str) -> Callable[[Rule], Rule]:
    """Registers a rule of operators: given the function, its arguments, its keywords and the map's level, it returns the result, or NotImplemented where samples are to be taken one by one."""

    def register(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names.split(), function))
        return function

    return register


def is_of(x: Any, level: int) -> bool:
    """Whether x is a sample of the map of this level."""
    return isinstance(x, Batched) and x.level == level


def wrapped(result: Any, level: int) -> Any:
    """What an operator returned for the whole batch, as of a sample."""
    if isinstance(result, Tensor):
        return batched(result, level)
    if isinstance(result, (tuple, list)):
        return type(result)(*(wrapped(r, level) for r in result)) if hasattr(result, "_fields") else type(result)(wrapped(r, level) for r in result)
    return result


# ---- calls -------------------------------------------------------------------------------------------------------------------------


def call(func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """An operator on samples: by its rule, else one sample after the other."""
    leaves = [leaf for leaf in tree.flatten((args, kwargs)) if isinstance(leaf, Batched)]
    level = max(leaf.level for leaf in leaves)
    name = func.__name__
    found = _RULES.get(name)
    entry = TABLE.get(name)
    if found is None and entry is not None and entry.pointwise and entry.call is func:
        found = _RULES[POINTWISE]
    random = name in _RANDOM and _MAPS and level <= len(_MAPS)
    if random:
        running = _MAPS[level - 1]
        if running.randomness == "error":
            raise RuntimeError(ERROR_MODE)
        if running.randomness == "same":
            return one_by_one(func, args, kwargs, level, running.state)
    if found is not None:
        result = found(func, args, kwargs, level)
        if result is not NotImplemented:
            return result
    return one_by_one(func, args, kwargs, level)


ERROR_MODE = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or "
    "perform the randomness operation out of vmap"
)

_RANDOM = frozenset("dropout feature_dropout rand_like randn_like randint_like bernoulli normal_ uniform_ bernoulli_ exponential_ multinomial alpha_dropout random_".split())


def one_by_one(func: Callable[..., Any], args: tuple, kwargs: dict, level: int, state: Tensor | None = None) -> Any:
    """The call for each sample, its results stacked. state: what the generator starts from for each of them."""
    given = args, kwargs
    leaves = tree.flatten(given)
    size = next(leaf.value.shape[0] for leaf in leaves if is_of(leaf, level))
    if size == 0:
        raise NotImplementedError(f"vmap: a batch of no samples: {func.__name__} runs once a sample, and has no result here")
    results = []
    for i in range(size):
        if state is not None:
            set_rng_state(state)
        a, k = tree.rebuild(given, [leaf.value[i] if is_of(leaf, level) else leaf for leaf in leaves])
        results.append(func(*a, **k))
    first = results[0]
    if first is None or any(first is leaf for leaf in leaves):
        return first
    inputs = [leaf for leaf in leaves if is_of(leaf, level)]
    if func.__name__.endswith("_") and not func.__name__.endswith("__") and inputs and inputs[0] is leaves[0]:
        return inputs[0]  # written in place, a window at a time
    columns = list(zip(*map(tree.flatten, results)))
    stacked = [batched(ops.stack(list(column)), level) if isinstance(column[0], Tensor) else _agreed(func, column) for column in columns]
    return tree.rebuild(first, stacked)


def _agreed(func: Callable[..., Any], values: tuple) -> Any:
    if any(value != values[0] for value in values):
        raise RuntimeError(f"vmap: {func.__name__} gives another {type(values[0]).__name__} for each sample, which no function of a sample can go on with")
    return values[0]
