"""Kinds of call: the key of everything about the arguments and the modes that a recording takes for granted, and the quick answer to whether a call is of the last kind.

Which recording serves, and what becomes of a call that none serves, is function.py's.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from .. import dtypes
from ..autograd.engine import BEFORE
from ..autograd.modes import STATE
from ..autograd.profiler import RUNNING
from ..block_tensor import BlockTensor
from ..dispatch import CONTEXT, HOOKS
from ..kernels import native, precision
from ..kernels.recipes import KEEP
from ..kernels.unchanged import Held, unchanged
from ..tensor import Tensor
from .guards import SIMPLE
from .updates import ask, constant

if TYPE_CHECKING:
    from .function import Entry

ARGUMENTS = 16  # so many tensors are compared with each other


def call_key(args, kwargs) -> tuple[tuple | None, list, list]:
    """A key of everything about the arguments and the modes that a recording takes for granted (None: not to be recorded); the tensors and the objects among them."""
    leaves: list = []
    objects: list = []
    try:
        key = _key_of((args, kwargs) if kwargs else args, leaves, objects), *_modes()
        hash(key)
    except TypeError:
        return None, leaves, objects
    return key, leaves, objects


def _modes() -> tuple:
    return STATE.grad_enabled, STATE.inference, STATE.saved_hooks, CONTEXT.autocast_dtype, dtypes.get_default_dtype(), native.get_num_threads(), precision.mode()


def _key_of(value, leaves, objects):
    if isinstance(value, Tensor):
        if isinstance(value, BlockTensor):
            raise TypeError(f"calls with a block tensor ({value.dtype}) are not recorded")
        for place, other in enumerate(leaves):
            if other is value:
                return "again", place
        leaves.append(value)
        return type(value), value.spec, value._tracked, value._inference, value._node is None
    if isinstance(value, (list, tuple)):
        return type(value), *[_key_of(item, leaves, objects) for item in value]
    if isinstance(value, dict):
        return type(value), *[(key, _key_of(item, leaves, objects)) for key, item in value.items()]
    if isinstance(value, SIMPLE):
        return type(value), value if value or not isinstance(value, (float, complex)) else repr(value)  # -0.0 == 0.0
    if hasattr(value, "__dict__"):  # a module, a configuration: the same one, in the same state
        objects.append(value)
        return type(value), id(value)
    raise TypeError("an argument that cannot be compared")


class Quick:
    """A recording's usual call: `fits(*args, **kwargs)`, one native call, says whether it serves, with all its guards (None: perhaps not); `run` is the generated call."""

    __slots__ = ("constant", "fits", "kept", "picked", "plain", "rules", "run", "updates")

    def __init__(self, entry: Entry, fits, picked, plain, kept):
        self.run, self.updates, self.rules = entry.quick, entry.updates, entry.rules
        self.fits, self.picked, self.plain, self.kept = fits, picked, plain, kept
        self.constant = constant(entry.updates, entry.rules) if entry.updates else None

    def leaves(self, args, kwargs):
        """The tensors among the arguments."""
        if self.plain:
            return args
        values = (*args, *kwargs.values())
        return [values[k] for k in self.picked]

    def numbers(self):
        """What the updates' rules are given now; None where that cannot be said."""
        if not self.updates:
            return ()
        if self.constant is not None and self.constant[0]():
            return self.constant[1]
        return ask(self.updates, self.rules)


def quick_call(entry: Entry, args, kwargs) -> Quick | None:
    """What calls like this one go through first; None where guards are not all native code's, or arguments hold others."""
    values, snapshot = (*args, *kwargs.values()), entry.snapshot
    picked = [k for k, value in enumerate(values) if isinstance(value, Tensor)]
    if entry.quick is None or entry.same or snapshot.beyond or len(picked) > ARGUMENTS or len(picked) != entry.leaves:
        return None
    if any(isinstance(value, (list, tuple, dict)) for value in values) or len({id(values[k]) for k in picked}) != len(picked):
        return None
    given, made = dict(entry.given), {place for place, _ in entry.made}

    def more(held: Held, place: int) -> Held:
        """With what a step's gradients ask of it."""
        return held._replace(has_grad=entry.had[place], quiet=place in made, grad_spec=given.get(place)) if entry.steps_too else held

    tensors = []
    for place, k in enumerate(picked):
        t = values[k]
        has_grad = None if entry.grads is None else not entry.grads[place]
        tensors.append(more(Held(k, t.spec, t._tracked, t._node is None, has_grad, t._inference), place))
    tensors += [more(held, place) for place, held in enumerate(snapshot.held(), len(picked))]
    places = snapshot.places()
    places["attributes"] = [
        *places["attributes"], *[(STATE, name, getattr(STATE, name)) for name in ("grad_enabled", "inference", "saved_hooks", "autocast_dtype")],
        (HOOKS, "listeners", ()), (HOOKS, "eager", 0),
    ]  # fmt: skip
    places["dicts"] = [
        *places["dicts"], (vars(dtypes), "_default", dtypes.get_default_dtype()), (vars(native), "_threads", native.get_num_threads()),
        (precision._state, "mode", precision.mode()),
    ]  # fmt: skip
    places["items"] = [*places["items"], (KEEP, 0, False)]
    places["sizes"] = [*places["sizes"], (RUNNING, 0), *([(BEFORE, 0)] if entry.steps_too else [])]
    arguments = [(type(value), None) if isinstance(value, Tensor) else (None, value) for value in values]
    fits = unchanged(**places, names=tuple(kwargs), arguments=arguments, tensors=tensors)
    return Quick(entry, fits, picked, not kwargs and len(picked) == len(values), (places, arguments, tensors, tuple(kwargs)))
