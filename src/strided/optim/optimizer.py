"""`Optimizer`: parameter groups, state, hooks and state dicts. The update rules are in their own files."""
import collections
import copy
import functools
import itertools
import warnings
from threading import get_ident

from ..autograd.modes import enable_grad, set_grad_enabled
from ..autograd.profiler import RUNNING, record_function
from ..kernels.recipes import LISTENERS
from ..nn.hooks import HookTable, _add
from ..nn.parameter import typename
from ..tensor import Tensor

_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)
GLOBAL_STEP_PRE, GLOBAL_STEP_POST = HookTable(), HookTable()


class _Required:
    """Marks an option that every group must give."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()


def _with_hooks(step):
    """step() between the hooks that watch it."""

    def hooked(self, *args, **kwargs):
        if "_optimizer_step_pre_hooks" not in self.__dict__:  # it stands for another optimiser, and was never made one itself
            return step(self, *args, **kwargs)
        for hook in (*GLOBAL_STEP_PRE.values(), *self._optimizer_step_pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(f"{step.__qualname__} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *GLOBAL_STEP_POST.values()):
            hook(self, args, kwargs)
        return result

    @functools.wraps(step)
    def wrapped(self, *args, **kwargs):
        if RUNNING:  # a profile is open: the step is a row of it
            with record_function(f"Optimizer.step#{type(self).__name__}.step"):
                return hooked(self, *args, **kwargs)
        return hooked(self, *args, **kwargs)

    wrapped.hooked = True
    return wrapped


class Optimizer:
    """Base of all optimisers. `params`: tensors, (name, tensor) pairs, or dicts with "params" and that group's own options.

    A subclass that only has an update rule defines `_update(group, parameter, grad, state)`; `step` calls it for every parameter with a gradient. A rule
    that moves many parameters by one launch defines `_update_all(group, members)` instead, with a list of such (parameter, grad, state).
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("step")
        if own is not None and not getattr(own, "hooked", False):
            cls.step = _with_hooks(own)

    def __init__(self, params, defaults):
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, HookTable())
        if isinstance(params, Tensor):
            raise TypeError(f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {typename(params)}")
        self.state = collections.defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def add_param_group(self, param_group):
        """Adds a group; what it does not say is taken from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
                "between runs. Please use a list instead."
            )
        params = list(params)
        named = [p for p in params if isinstance(p, tuple)]
        if named and len(named) != len(params):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        if named:
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        param_group["params"] = params
        if self.param_groups:
            have = "param_names" in self.param_groups[0]
            if have != bool(named):
                what = "without names to the optimizer" if have else "with names to the optimizer"
                raise ValueError(f"all optimizer param groups should be with/without names. cannot add param group {what}")
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(p)}")
            if not self.defaults.get("differentiable") and p.grad_fn is not None:
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        seen = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in seen for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none=True):
        """Drops (or with `set_to_none=False` zeroes) the gradients of all parameters."""
        if RUNNING:
            with record_function(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"):
                return self._zero_grad(set_to_none)
        self._zero_grad(set_to_none)

    def _zero_grad(self, set_to_none):
        for p in self._parameters():
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            else:
                p.grad = p.grad.detach()
                p.grad.zero_()

    def _parameters(self):
        return itertools.chain.from_iterable(group["params"] for group in self.param_groups)

    def step(self, closure=None):
        """One update. `closure`, if given, recomputes the loss, which is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            for group in self.param_groups:
                members, empty = [], []
                for p in group["params"]:
                    grad = p.grad
                    if grad is not None:
                        state = self.state[p]
                        if not state:
                            empty.append(p)
                        members.append((*_as_real(p, grad), state) if p.dtype.is_complex else (p, grad, state))
                if members:
                    listener = LISTENERS.get(get_ident()) if LISTENERS else None
                    if listener is None:
                        self._update_all(group, members)
                    else:
                        listener.update(self, group, members)
                for p in empty:
                    if not self.state[p]:  # a rule that keeps nothing leaves no empty entry behind
                        del self.state[p]
        return loss

    step = _with_hooks(step)

    def _update_all(self, group, members):
        for p, grad, state in members:
            self._update(group, p, grad, state)

    def _update(self, group, p, grad, state):
        raise NotImplementedError

    # ---- state dicts ---------------------------------------------------------------------------

    def state_dict(self):
        """{"state": parameter number → its state, "param_groups": groups with parameter numbers}."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        number = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                number.setdefault(id(p), len(number))
            packed["params"] = [number[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(number[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict):
        """Takes over a `state_dict()`: groups must match in number and size; state is cast to its parameter's dtype."""
        state_dict = dict(state_dict)
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved = copy.deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(ours["params"]) != len(theirs["params"]) for ours, theirs in zip(self.param_groups, saved)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        numbers = itertools.chain.from_iterable(group["params"] for group in saved)
        by_number = dict(zip(numbers, self._parameters()))
        state = collections.defaultdict(dict)
        for key, value in state_dict["state"].items():
            p = by_number.get(key)
            state[key if p is None else p] = value if p is None else {k: _cast(k, v, p) for k, v in value.items()}
        for ours, theirs in zip(self.param_groups, saved):
            theirs["params"] = ours["params"]
            if "param_names" in ours:
                theirs["param_names"] = ours["param_names"]
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _HOOKS:
            self.__dict__.setdefault(name, HookTable())
        for group in self.param_groups:  # options that a state saved by an older version lacks
            for name, default in self.__dict__.get("defaults", {}).items():
                group.setdefault(name, default)
        for kept in self.state.values():  # older versions counted steps by a number
            if isinstance(kept, dict) and isinstance(kept.get("step"), (int, float)):
                from ..ops import tensor

                kept["step"] = tensor(float(kept["step"]))

    # ---- hooks ---------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook):
        """`hook(optimizer, args, kwargs)` before every step."""
        return _add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """`hook(optimizer, args, kwargs)` after every step."""
        return _add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)

    def __repr__(self):
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def register_optimizer_step_pre_hook(hook):
    """`hook(optimizer, args, kwargs)` before every step of every optimiser. Returns a handle with `.remove()`."""
    return _add(GLOBAL_STEP_PRE, hook)


def register_optimizer_step_post_hook(hook):
    """`hook(optimizer, args, kwargs)` after every step of every optimiser."""
    return _add(GLOBAL_STEP_POST, hook)


def _as_real(p, grad):
    """A complex parameter and its gradient as pairs of their parts, which rules then treat as any other numbers."""
    from ..ops import view_as_real

    return view_as_real(p), view_as_real(grad)


def _cast(key, value, p):
    """A saved state value for parameter p: tensors take its dtype and device, except the step count."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.clone()
        value = value.to(dtype=p.dtype, device=p.device) if p.is_floating_point() else value.to(device=p.device)
        return value.clone()
    return value


def check(name, value, good, text=None):
    """Raises PyTorch's ValueError for an option out of its range."""
    if not good:
        raise ValueError(f"Invalid {name}: {value}" if text is None else text)


def check_lr(lr, foreach=None, capturable=False):
    """Raises PyTorch's ValueError for a learning rate that is negative, or a tensor that cannot be one."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    one_rate(lr)
    check("learning rate", lr, lr >= 0.0)


def one_rate(lr):
    check("learning rate", lr, not isinstance(lr, Tensor) or lr.numel() == 1, "Tensor lr must be 1-element")


def refuse_complex(optimizer, group):
    """For rules that have no meaning for complex numbers."""
    if any(p.is_complex() for p in group["params"]):
        raise RuntimeError(f"{type(optimizer).__name__} does not support complex parameters")


def check_kinds(foreach, fused, differentiable):
    """Raises PyTorch's RuntimeError for ways of stepping that exclude each other. (Here every rule is one kernel a parameter whichever is asked for.)"""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def rate(group):
    """A group's learning rate: a number, or the tensor itself where a step is differentiated through."""
    lr = group["lr"]
    return lr if group.get("differentiable") and isinstance(lr, Tensor) else float(lr)
