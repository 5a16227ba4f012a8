"""Rules of operators along dimensions: reductions, sorting and running sums, rows, and what works on a sample's last dimensions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import tree
from ..ops.table import TABLE
from ..tensor import Tensor
from .arguments import DIMS, bound, moved, signature
from .pointwise import pointwise
from .samples import Rule, is_of, rule, wrapped


def along(whole: str) -> Rule:
    """The rule of operators with dimensions among their arguments. whole: what no `dim` means: "tuple" all of them by their numbers, "flat" all as one, "" that they stay as they are."""

    def run(func: Callable[..., Any], args: tuple, kwargs: dict, level: int) -> Any:
        found = bound(func, args, kwargs)
        if found is None or not args:
            return NotImplemented
        first, x = signature(func)[0][0], args[0]
        names = [name for name in found if name != first]
        if not is_of(x, level) or any(is_of(leaf, level) for name in names for leaf in tree.flatten(found[name])):
            return NotImplemented
        value = x.value
        ndim = x.ndim
        if ndim == 0:
            if not whole:
                return NotImplemented
            value, ndim = value.unsqueeze(-1), 1
        given = [name for name in names if name in DIMS and found[name] is not None]
        if not given and not whole:
            return NotImplemented
        if whole and not given and ("dim" not in found or found["dim"] is None):
            if whole == "flat" and ndim > 1:
                value = value.flatten(1)
            found["dim"] = tuple(range(1, ndim + 1)) if whole == "tuple" else 1
        for name in given:
            if whole == "tuple" and found[name] in ((), []):
                found[name] = tuple(range(ndim))
            found[name] = moved(found[name], ndim)
        found[first] = value
        return wrapped(func(*[found.pop(first)], **found), level)

    return run


_ALL, _ALONG = along("tuple"), along("")

rule("sum mean amax amin any all var std var_mean std_mean nansum nanmean count_nonzero vector_norm norm")(_ALL)
rule("argmax argmin median prod")(along("flat"))
rule(
    """cumsum cumprod logsumexp softmax log_softmax softmin sort argsort topk kthvalue flip roll select narrow chunk split unbind transpose movedim flatten diff cummax cummin
    index_select tensor_split unflatten normalize logcumsumexp swapaxes swapdims moveaxis unfold glu"""
)(_ALONG)


@rule("max min")
def extreme(func, args, kwargs, level):
    """max and min: of all, along a dimension, or of two tensors."""
    if len(args) > 1 and isinstance(args[1], Tensor) or "other" in kwargs:
        return pointwise(func, args, kwargs, level)
    if len(args) == 1 and not kwargs:
        return _ALL(TABLE["amax" if func.__name__ == "max" else "amin"].call, args, {}, level)
    return _ALONG(func, args, kwargs, level)


def with_last(count: int) -> Rule:
    """Operators on a sample's last dimensions, the batch being one more in front; only for samples of at least `count` dimensions."""

    def run(func, args, kwargs, level):
        x = args[0] if args else None
        others = tree.flatten((args[1:], kwargs))
        if not is_of(x, level) or x.ndim < count or any(is_of(leaf, level) for leaf in others):
            return NotImplemented
        return wrapped(func(x.value, *args[1:], **kwargs), level)

    return run


rule("layer_norm rms_norm")(with_last(1))
rule("tril triu inv det slogdet cholesky inverse matrix_exp")(with_last(2))
rule("embedding pad_edges")(with_last(0))
