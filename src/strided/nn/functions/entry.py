"""Functions of nn.functional as operators: each is one event to whoever listens, whatever it is made of.

Holds the decorator. What the functions cost is in counts.py; autocast for composites that are no operators is in autocast.py.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ... import dispatch
from ...ops.packed import SMALL, in_float32
from ...ops.table import TABLE, operator
from ...tensor import Tensor


def _mark_inference(given: Any, result: Any) -> None:
    """Dispatch marks fresh results; one that is a window of memory made inside the function is as fresh as they are."""
    known = {id(t.mem) for t in dispatch.tensors_in(given)}
    for t in dispatch.tensors_in(result):
        if id(t.mem) not in known:
            t._inference = True


def entry(
    count: Callable[[Any, SimpleNamespace], float], *, name: str | None = None, autocast: str | None = None, products: bool = False, writes: bool = False, node: str | None = None
) -> Callable[..., Any]:
    """Decorates a function of nn.functional; it keeps its signature.

    count(result, arguments) -> floating-point operations; `arguments` has every parameter by its name, defaults included. autocast: the table's rule.
    products: the operators inside have autocast rules of their own (products in 16 bits, the rest not). Dispatch applies rules only to the outermost
    operator, so inside an autocast region such a function is not one operator: its parts are seen.
    writes: it may write into its input (`inplace=True`).
    node: what the `grad_fn` of its result is called, for a function that PyTorch differentiates as a whole.

    Floats below 16 bits are computed with in float32, so that what is made of several kernels rounds once.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        label = name or function.__name__
        signature = inspect.signature(function)

        def flops(args: tuple, kwargs: dict, result: Any) -> int:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return int(count(result, SimpleNamespace(**bound.arguments)))

        @functools.wraps(function)
        def whole(*args: Any, **kwargs: Any) -> Any:
            first = args[0] if args else next(iter(kwargs.values()), None)
            if isinstance(first, Tensor) and first.spec.dtype in SMALL:
                result = in_float32(function, args, kwargs)
            else:
                result = function(*args, **kwargs)
            if node is not None and result._node is not None:
                result._node.shown = f"{node}Backward0"
            if dispatch.CONTEXT.inference:
                _mark_inference((args, kwargs), result)
            return result

        before = TABLE.get(label)
        call = operator(label, function=False, method=False, namespace="nn.functional", autocast=autocast, flops=flops, writes=writes)(whole)
        if before is not None:  # the top level's function of this name takes other arguments: the table keeps that one
            TABLE[label] = before
        if not products:
            return call

        @functools.wraps(function)
        def open_to_autocast(*args: Any, **kwargs: Any) -> Any:
            return (call if dispatch.CONTEXT.autocast_dtype is None else function)(*args, **kwargs)

        return open_to_autocast

    return decorate
