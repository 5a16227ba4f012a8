"""`seen_as`: a node's gradient that is computed by kernels of its own is one operator to a lens, as PyTorch's is.

Gradients that are written in operators need none of it: these are seen one by one.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..autograd.modes import STATE
from ..dispatch import CONTEXT, HOOKS, hooked_call
from .table import Entry


def seen_as(name: str, flops: Callable[..., float] | None = None, moves: bool = False) -> Callable[[Callable[..., tuple]], Callable[..., tuple]]:
    """Decorates a backward function (below `@backward`). flops(node, *grads) -> floating-point operations; moves: as an operator's.

    A gradient that is to be differentiated again is made of operators (`create_graph=True`), which are seen instead.
    """

    def decorate(function: Callable[..., tuple]) -> Callable[..., tuple]:
        entry = Entry(name, function=False, method=False, moves=moves, flops=flops and (lambda args, kwargs, result: flops(*args)), module=function.__module__)

        @functools.wraps(function)
        def gradient(node: Any, *grads: Any) -> tuple:
            if HOOKS.active and not CONTEXT.depth and not STATE.grad_enabled:
                return hooked_call(entry, function, (node, *grads), {})
            return function(node, *grads)

        return gradient

    return decorate
