"""Modules as functions of their parameters and buffers."""
from __future__ import annotations

from typing import Any


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict | None = None, *, tie_weights: bool = True, strict: bool = False) -> Any:
    """module(*args, **kwargs) with other parameters and buffers, given by their full names in a dict or several; the module's own are back in place afterwards.

    tie_weights: names that share one tensor in the module take the given one together. strict: every name must be given, and no other.
    """
    given = dict(parameter_and_buffer_dicts) if isinstance(parameter_and_buffer_dicts, dict) else {k: v for d in parameter_and_buffer_dicts for k, v in d.items()}
    slots = {}  # full name → (the dict that holds it, its key there)
    for prefix, part in module.named_modules(remove_duplicate=False):
        for held in (part._parameters, part._buffers):
            slots.update({f"{prefix}.{key}" if prefix else key: (held, key) for key, value in held.items() if value is not None})
    unknown, absent = [name for name in given if name not in slots], [name for name in slots if name not in given]
    if strict and (unknown or absent):
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\tUnexpected key(s): {', '.join(unknown) or 'none'}.\n\tMissing key(s): {', '.join(absent) or 'none'}.")
    if tie_weights:
        shared = {id(slots[name][0][slots[name][1]]): value for name, value in given.items() if name in slots}
        given.update({name: shared[id(held[key])] for name, (held, key) in slots.items() if name not in given and id(held[key]) in shared})
    before = [(held, key, held[key]) for name, (held, key) in slots.items() if name in given]
    try:
        for name, value in given.items():
            if name in slots:
                held, key = slots[name]
                held[key] = value
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    finally:
        for held, key, value in before:
            held[key] = value
