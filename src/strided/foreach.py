"""`torch._foreach_…`: an operator over lists of tensors, as optimisers call it. Each result is the operator's own, one tensor after another, with its gradient.

Arguments beside the list are for all tensors, or lists with one for each. What optimisers here do in one launch is in ops/many.py.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from . import linalg, ops
from .refused import missing
from .tensor import Tensor

_UNARY = """abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan
tanh trunc""".split()
_BINARY = "add sub mul div clamp_max clamp_min maximum minimum pow lerp".split()


def _checked(lists: Sequence[Any]) -> int:
    """How many tensors each list has. RuntimeError for none, or for lists of different lengths."""
    count = len(lists[0]) if isinstance(lists[0], (list, tuple)) else len(lists[1])
    if not count:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in lists:
        if isinstance(other, (list, tuple)) and len(other) != count:
            if other and isinstance(other[0], Tensor):
                raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(other)}")
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return count


def _of(argument: Any, i: int) -> Any:
    return argument[i] if isinstance(argument, (list, tuple)) else argument


def _bound(name: str, x: Tensor, other: Any) -> Tensor:
    """maximum and minimum of a tensor and a number, clamp_max and clamp_min by a tensor."""
    low = name in ("maximum", "clamp_min")
    if isinstance(other, Tensor):
        return ops.maximum(x, other) if low else ops.minimum(x, other)
    return ops.clamp(x, min=other) if low else ops.clamp(x, max=other)


def _apply(name: str, x: Any, *args: Any, **options: Any) -> Any:
    if name in ("maximum", "minimum", "clamp_max", "clamp_min"):
        return _bound(name, x, *args)
    return getattr(ops, name)(x, *args, **options)


def _results(name: str, self: Any, args: tuple, options: dict[str, Any]) -> Iterator[Tensor]:
    """Each tensor's result, computed when it is asked for."""
    options = {"value" if key == "scalars" else key: value for key, value in options.items()}
    if name in ("addcmul", "addcdiv"):  # value: a number, one for each, or a tensor of them
        args = (*args, *(options.pop(key) for key in ("tensor1", "tensor2") if key in options))
        value = args[2] if len(args) > 2 else options.get("value", 1)
        args, options = args[:2], {"value": value.tolist() if isinstance(value, Tensor) and value.ndim else value}
    elif name not in ("add", "sub"):  # the names of the second list or number
        args, options = (*args, *options.values()), {}
    else:
        alpha = {"alpha": options.pop("alpha")} if "alpha" in options else {}
        args, options = (*args, *options.values()), alpha
    count = _checked((self, *args, *options.values()))
    return (_apply(name, _of(self, i), *(_of(a, i) for a in args), **{key: _of(value, i) for key, value in options.items()}) for i in range(count))


def _pair(name: str) -> tuple[Callable, Callable]:
    def function(self: Any, *args: Any, **options: Any) -> tuple[Tensor, ...]:
        return tuple(_results(name, self, args, options))

    def inplace(self: Any, *args: Any, **options: Any) -> Any:
        results: Iterable[Tensor] = _results(name, self, args, options)
        memories = [id(t.mem) for list_ in (self, *args, *options.values()) if isinstance(list_, (list, tuple)) for t in list_ if isinstance(t, Tensor)]
        if len(set(memories)) == len(memories):  # nothing is read that is written before: all are computed, and checked, first
            results = list(results)
        for x, result in zip(self, results):
            if result.shape != x.shape:
                raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(result.shape)}")
            x.copy_(result)
        return self

    function.__name__, inplace.__name__ = f"_foreach_{name}", f"_foreach_{name}_"
    function.__doc__ = f"`torch.{name}` of each tensor in a list. Returns a tuple."
    inplace.__doc__ = f"`torch.{name}` of each tensor in a list, written into it. Returns the list."
    return function, inplace


for _name in (*_UNARY, *_BINARY, "addcmul", "addcdiv"):
    globals()[f"_foreach_{_name}"], globals()[f"_foreach_{_name}_"] = _pair(_name)


def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> Any:
    """Copies each tensor of `src` into that of the list."""
    _checked((self, src))
    for x, y in zip(self, src):
        x.copy_(y)
    return self


def _foreach_zero_(self: Sequence[Tensor]) -> Any:
    """Sets each tensor to zero."""
    _checked((self,))
    for x in self:
        x.zero_()
    return self


def _foreach_norm(self: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The norm of each tensor, over all its elements."""
    _checked((self,))
    return tuple(linalg.vector_norm(x, ord, dtype=dtype) for x in self)


def _foreach_max(self: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The largest element of each tensor."""
    _checked((self,))
    return tuple(x.max() for x in self)


__getattr__ = missing("torch")
