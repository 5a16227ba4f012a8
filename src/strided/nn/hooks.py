"""Hooks of a module: registration, and the call that runs them.

Holds the handle that removes a hook, the registration methods that `Module` inherits and the slow path of `Module.__call__`. The fast path
(no hook anywhere) and everything else about a module is in module.py.
"""
import warnings
import weakref

from ..autograd.function import Function


class RemovableHandle:
    """Removes a hook from the dictionaries that hold it. Also a context manager."""

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra = () if extra_dict is None else extra_dict if isinstance(extra_dict, (list, tuple)) else (extra_dict,)
        self._tables = [weakref.ref(table) for table in (hooks_dict, *extra)]

    def remove(self):
        for reference in self._tables:
            table = reference()
            if table is not None:
                table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.remove()


class HookTable(dict):
    """An insertion-ordered dictionary that can be weakly referenced (a plain dict cannot)."""

    __slots__ = ("__weakref__",)

    def __reduce__(self):
        return (HookTable, (), None, None, iter(self.items()))


# Hooks that run for every module, and the registration hooks.
GLOBAL_FORWARD_PRE = HookTable()
GLOBAL_FORWARD = HookTable()
GLOBAL_BACKWARD_PRE = HookTable()
GLOBAL_BACKWARD = HookTable()
GLOBAL_WITH_KWARGS = HookTable()
GLOBAL_ALWAYS = HookTable()
ANY_GLOBAL = (GLOBAL_FORWARD_PRE, GLOBAL_FORWARD, GLOBAL_BACKWARD_PRE, GLOBAL_BACKWARD)

# The dictionaries every module instance has, by attribute name.
TABLES = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _add(table, hook, *, prepend=False, flags=()):
    """Stores `hook` in `table`, marks its id in each of `flags`, and returns the handle."""
    handle = RemovableHandle(table, extra_dict=list(flags))
    table[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        first = {handle.id: table.pop(handle.id)}
        rest = dict(table)
        table.clear()
        table.update(first)
        table.update(rest)
    return handle


def register_module_forward_pre_hook(hook):
    """`hook(module, args)` before every module's forward."""
    return _add(GLOBAL_FORWARD_PRE, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """`hook(module, args, output)` after every module's forward."""
    flags = ([GLOBAL_WITH_KWARGS] if with_kwargs else []) + ([GLOBAL_ALWAYS] if always_call else [])
    return _add(GLOBAL_FORWARD, hook, flags=flags)


def register_module_full_backward_pre_hook(hook):
    """`hook(module, grad_output)` when the gradient of any module's output is complete."""
    return _add(GLOBAL_BACKWARD_PRE, hook)


def register_module_full_backward_hook(hook):
    """`hook(module, grad_input, grad_output)` when the gradients of any module's inputs are complete."""
    return _add(GLOBAL_BACKWARD, hook)


class Hooks:
    """The registration methods of `Module`. Each returns a handle whose `remove()` takes the hook away."""

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """`hook(module, args)` runs before forward and may return new arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)` and may return `(args, kwargs)`.
        """
        flags = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _add(self._forward_pre_hooks, hook, prepend=prepend, flags=flags)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """`hook(module, args, output)` runs after forward and may return a new output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`. With `always_call` it also runs when forward raises.
        """
        flags = ([self._forward_hooks_with_kwargs] if with_kwargs else []) + (
            [self._forward_hooks_always_called] if always_call else []
        )
        return _add(self._forward_hooks, hook, prepend=prepend, flags=flags)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """`hook(module, grad_output)` runs when the output's gradient is complete and may return a new one."""
        return _add(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """`hook(module, grad_input, grad_output)` runs when the inputs' gradients are complete and may return a new grad_input."""
        return _add(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """The older name of `register_full_backward_hook`; here both do the same."""
        return self.register_full_backward_hook(hook)

    def register_state_dict_pre_hook(self, hook):
        """`hook(module, prefix, keep_vars)` runs before the module's own entries are written into a state dict."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """`hook(module, state_dict, prefix, local_metadata)` runs after state_dict() and changes the dictionary in place."""
        hook._from_public_api = True
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        return _add(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook):
        """`hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return _add(self._load_state_dict_pre_hooks, _LoadHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook):
        """`hook(module, incompatible_keys)` after loading; it may change the two lists in place."""
        return _add(self._load_state_dict_post_hooks, hook)


class _LoadHook:
    """A load_state_dict pre-hook, with the module it wants as its first argument (weakly held) or without."""

    def __init__(self, hook, module):
        self.hook = hook
        self.module = None if module is None else weakref.ref(module)

    def __call__(self, *args):
        return self.hook(*args) if self.module is None else self.hook(self.module(), *args)

    def __getstate__(self):
        return {"hook": self.hook, "module": None if self.module is None else self.module()}

    def __setstate__(self, state):
        self.__init__(state["hook"], state["module"])


# ---- the call ---------------------------------------------------------------------------------


def call_with_hooks(module, args, kwargs):
    """`module.forward` with every hook of the module and every global one."""
    called = set()
    try:
        return _run(module, args, kwargs, called)
    except Exception:
        _run_always(module, args, kwargs, called)
        raise


def _run(module, args, kwargs, called):
    args, kwargs = _before(module, args, kwargs)
    backward = _BackwardHooks.of(module)
    if backward is not None:
        args = backward.tap_inputs(args)
    result = module.forward(*args, **kwargs)
    for identity, hook, with_kwargs in _after_hooks(module):
        called.add(identity)
        changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        if changed is not None:
            result = changed
    return result if backward is None else backward.tap_outputs(result)


def _before(module, args, kwargs):
    for identity, hook in [*GLOBAL_FORWARD_PRE.items(), *module._forward_pre_hooks.items()]:
        if identity in module._forward_pre_hooks_with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
    return args, kwargs


def _after_hooks(module):
    own = [(i, h, i in module._forward_hooks_with_kwargs) for i, h in module._forward_hooks.items()]
    return [(i, h, i in GLOBAL_WITH_KWARGS) for i, h in GLOBAL_FORWARD.items()] + own


def _run_always(module, args, kwargs, called):
    """After an exception: the hooks registered with always_call that have not run yet, with no result."""
    for identity, hook, with_kwargs in _after_hooks(module):
        always = identity in GLOBAL_ALWAYS or identity in module._forward_hooks_always_called
        if always and identity not in called:
            hook(module, args, kwargs, None) if with_kwargs else hook(module, args, None)


class _BackwardHooks:
    """One call's backward hooks: taps on its inputs and outputs that see the gradients pass."""

    def __init__(self, module, pre, full):
        self.module, self.pre, self.full = module, pre, full
        self.grad_output = None
        self.input_count = 0
        self.input_places = []

    @staticmethod
    def of(module):
        pre = [*GLOBAL_BACKWARD_PRE.values(), *module._backward_pre_hooks.values()]
        full = [*GLOBAL_BACKWARD.values(), *module._backward_hooks.values()]
        return _BackwardHooks(module, pre, full) if pre or full else None

    def tap_inputs(self, args):
        self.input_count = len(args)
        self.input_places = [i for i, a in enumerate(args) if _differentiable(a)]
        if not self.input_places or not self.full:
            self.input_places = []
            return args
        tapped = list(args)
        for i, t in zip(self.input_places, _Tap.apply(self.input_grads, *[args[i] for i in self.input_places])):
            tapped[i] = t
        return tuple(tapped)

    def tap_outputs(self, result):
        outputs = result if isinstance(result, tuple) else (result,)
        places = [i for i, o in enumerate(outputs) if _differentiable(o)]
        if not places:
            return result
        tapped = list(outputs)
        for i, t in zip(places, _Tap.apply(_OutputGrads(self, len(outputs), places), *[outputs[i] for i in places])):
            tapped[i] = t
        return tuple(tapped) if isinstance(result, tuple) else tapped[0]

    def output_grads(self, count, places, grads):
        full = [None] * count
        for i, g in zip(places, grads):
            full[i] = g
        full = tuple(full)
        for hook in self.pre:
            changed = hook(self.module, full)
            if changed is not None:
                full = changed if isinstance(changed, tuple) else (changed,)
        self.grad_output = full
        if self.full and not self.input_places:  # no input takes a gradient: there will be no later moment
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require gradients.",
                stacklevel=2,
            )
            self.run_full((None,) * self.input_count)
        return [full[i] for i in places]

    def input_grads(self, grads):
        full = [None] * self.input_count
        for i, g in zip(self.input_places, grads):
            full[i] = g
        full = self.run_full(tuple(full))
        return [full[i] for i in self.input_places]

    def run_full(self, grad_input):
        for hook in self.full:
            changed = hook(self.module, grad_input, self.grad_output)
            if changed is not None:
                grad_input = changed if isinstance(changed, tuple) else (changed,)
        return grad_input


class _OutputGrads:
    def __init__(self, hooks, count, places):
        self.hooks, self.count, self.places = hooks, count, places

    def __call__(self, grads):
        return self.hooks.output_grads(self.count, self.places, grads)


def _differentiable(x):
    return getattr(x, "requires_grad", False) and hasattr(x, "grad_fn")


class _Tap(Function):
    """Identity; on the way back the gradients go through `callback`."""

    @staticmethod
    def forward(ctx, callback, *tensors):
        ctx.callback = callback
        ctx.set_materialize_grads(False)
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.callback(grads))
