"""`Module`: a tree of parameters, buffers and child modules with a forward function.

Holds registration, traversal and the call. Its hooks are in hooks.py, state dicts in state.py, conversions in conversion.py, and the
ready-made modules in modules/.
"""
from ..tensor import Tensor
from .conversion import Conversion
from .hooks import ANY_GLOBAL, TABLES, Hooks, HookTable, _add, call_with_hooks
from .parameter import Buffer, Parameter, typename
from .state import StateDict

REGISTRATION_HOOKS = {"parameter": HookTable(), "buffer": HookTable(), "module": HookTable()}

_global_forward_pre, _global_forward, _global_backward_pre, _global_backward = ANY_GLOBAL


class Module(Hooks, StateDict, Conversion):
    """Base class of all neural network modules: subclass it, assign parameters and modules in `__init__`, compute in `forward`."""

    dump_patches = False
    call_super_init = False
    _version = 1
    _compiled_call_impl = None

    def __init__(self, *args, **kwargs):
        if kwargs and not self.call_super_init:
            name = next(iter(kwargs))
            raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
        if args and not self.call_super_init:
            raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        # Straight into __dict__: __setattr__ below needs these dictionaries to exist already.
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_modules"] = {}
        for name in TABLES:
            own[name] = HookTable()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *input):
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def _call_impl(self, *args, **kwargs):
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_forward
            or _global_forward_pre
            or _global_backward
            or _global_backward_pre
        ):
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def _wrapped_call_impl(self, *args, **kwargs):
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    # The common case in one frame: no compiled form, no hook of any kind.
    def __call__(self, *args, **kwargs):
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or self._compiled_call_impl is not None
            or _global_forward
            or _global_forward_pre
            or _global_backward
            or _global_backward_pre
        ):
            return self._wrapped_call_impl(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def compile(self, *args, **kwargs):
        """Compiles this module's call in place, with `compile`'s arguments."""
        from ..compile import compile as compile_function

        self._compiled_call_impl = compile_function(self._call_impl, *args, **kwargs)

    # ---- attributes ----------------------------------------------------------------------------

    def __setattr__(self, name, value):
        own = self.__dict__
        parameters = own.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            _forget(self, name, "_parameters")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            if own.get("_modules") is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            _forget(self, name, "_modules")
            self._modules[name] = _registered("module", self, name, value)
        elif parameters is not None and name in own["_modules"]:
            if value is not None:
                raise TypeError(f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)")
            self._modules[name] = _registered("module", self, name, None)
        elif isinstance(value, Buffer) or (parameters is not None and name in own["_buffers"]):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_buffer(self, name, value):
        if self.__dict__.get("_buffers") is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            _forget(self, name, "_buffers")
            self._buffers.pop(name, None)
            self.register_buffer(name, value, value.persistent)
        else:
            self._buffers[name] = _registered("buffer", self, name, value)

    def __getattr__(self, name):
        own = self.__dict__
        if (found := own.get("_parameters")) is not None and name in found:  # written out: every use of a weight passes it
            return found[name]
        if (found := own.get("_modules")) is not None and name in found:
            return found[name]
        if (found := own.get("_buffers")) is not None and name in found:
            return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if name and not name[0].isdigit())

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in TABLES:  # hook tables that the pickling version did not have
            self.__dict__.setdefault(name, HookTable())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())

    def __getstate__(self):
        state = dict(self.__dict__)
        state.pop("_compiled_call_impl", None)  # a compiled function is not data
        return state

    def _check_name(self, kind, name, taken):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in taken:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name, param):
        """Adds a parameter (or None, a place for one). Reachable as an attribute."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                    f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
        self._parameters[name] = _registered("parameter", self, name, param)

    def register_buffer(self, name, tensor, persistent=True):
        """Adds a tensor that is state but no parameter. A non-persistent one stays out of the state dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        self._buffers[name] = _registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        """Adds a child module (or None). Reachable as an attribute."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = _registered("module", self, name, module)

    def register_module(self, name, module):
        """The same as `add_module`."""
        self.add_module(name, module)

    # ---- traversal -----------------------------------------------------------------------------

    def _named_members(self, members, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, value in members(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield module_prefix + ("." if module_prefix else "") + name, value

    def parameters(self, recurse=True):
        """The parameters of this module and, with `recurse`, of all below it; a shared one once."""
        modules = _plain_tree(self) if recurse else None
        if modules is None:
            for _, parameter in self.named_parameters(recurse=recurse):
                yield parameter
            return
        seen = set()
        for module in modules:
            for parameter in module._parameters.values():
                if parameter is not None and parameter not in seen:
                    seen.add(parameter)
                    yield parameter

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """(dotted name, parameter) of this module and, with `recurse`, of all below it; a shared one once."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """(dotted name, buffer), as `named_parameters`."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self):
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """(name, module) of the immediate children, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """(dotted name, module) of this module and all below it, parents first; a shared one once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def get_submodule(self, target):
        """The module under a dotted name; "" is this one."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Replaces (or, unless `strict`, adds) the module under a dotted name."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """The parameter under a dotted name."""
        return self._get_member(target, lambda m, name: name in m._parameters, "nn.Parameter")

    def get_buffer(self, target):
        """The buffer under a dotted name."""
        return self._get_member(target, lambda m, name: name in m._buffers, "buffer")

    def _get_member(self, target, is_member, kind):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if not is_member(module, name):
            raise AttributeError(f"`{name}` is not a{'n' if kind[0] == 'n' else ''} {kind}")
        return getattr(module, name)

    def apply(self, fn):
        """Calls `fn(module)` on every module, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # ---- modes ---------------------------------------------------------------------------------

    def train(self, mode=True):
        """Sets training mode here and below (dropout and batch norm behave by it)."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drops (or with `set_to_none=False` zeroes) the gradients of all parameters."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach()  # [same shape], out of any graph
                parameter.grad.zero_()

    # ---- printing ------------------------------------------------------------------------------

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """The part of the repr between the brackets; override it."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indent(repr(module))}" for name, module in self._modules.items()]
        lines = extra_lines + children
        if not lines:
            return self._get_name() + "()"
        if len(extra_lines) == 1 and not children:
            return f"{self._get_name()}({extra_lines[0]})"
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"


def _registered(kind, module, name, value):
    """The value after the global registration hooks, each of which may replace it."""
    for hook in REGISTRATION_HOOKS[kind].values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def register_module_parameter_registration_hook(hook):
    """`hook(module, name, parameter)` before any module registers a parameter; what it returns, unless None, is registered instead."""
    return _add(REGISTRATION_HOOKS["parameter"], hook)


def register_module_buffer_registration_hook(hook):
    """The same for buffers."""
    return _add(REGISTRATION_HOOKS["buffer"], hook)


def register_module_module_registration_hook(hook):
    """The same for modules inside modules."""
    return _add(REGISTRATION_HOOKS["module"], hook)


def _plain_tree(root):
    """All modules from `root` on, parents first, each once; None where a class names its modules or parameters in a way of its own."""
    modules, parameters, members = Module.named_modules, Module.named_parameters, Module._named_members
    found, seen, stack = [], set(), [root]
    while stack:
        module = stack.pop()
        if module in seen:
            continue
        cls = type(module)
        if cls.named_modules is not modules or cls.named_parameters is not parameters or cls._named_members is not members:
            return None
        seen.add(module)
        found.append(module)
        children = module._modules
        if children:
            stack.extend([child for child in reversed(children.values()) if child is not None])
    return found


def _forget(module, name, keep):
    """Takes `name` out of every table but `keep`, since a name means one thing only."""
    own = module.__dict__
    own.pop(name, None)
    for table in ("_parameters", "_buffers", "_modules"):
        if table != keep:
            own[table].pop(name, None)
    own["_non_persistent_buffers_set"].discard(name)


def _indent(text):
    return text.replace("\n", "\n  ")
