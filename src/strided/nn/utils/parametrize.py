"""Parametrizations: a parameter or buffer that is computed, each time it is read, by modules from what is stored in its place."""
import collections.abc
import copy
from contextlib import contextmanager

from ...autograd.modes import no_grad
from ...tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_depth = 0  # of nested `cached()` blocks
_cache: dict = {}  # (module, name) → its tensor, while a block is active


@contextmanager
def cached():
    """Inside, each parametrized tensor is computed once, when it is first read."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if not _depth:
            _cache.clear()


def _hold(module, name, tensor):
    """Registers a tensor as what it is: a parameter or a buffer."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _same_kind(given, wanted, what, names):
    """Raises unless a tensor has another's dtype and shape; `names` are how the message calls the wanted one and the given one."""
    for attribute in ("dtype", "shape"):
        a, b = getattr(wanted, attribute), getattr(given, attribute)
        if a != b:
            raise ValueError(f"{what.format(attribute=attribute)}\n{names[0].format(attribute=attribute)}: {a}\n{names[1].format(attribute=attribute)}: {b}")


_REGISTERING = "Registering a parametrization may not change the {attribute} of the tensor, unless"


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor and what they start from: `original`, or `original0`, `original1`, … where right_inverse gave several.

    `unsafe`: nothing is checked when a parametrization is added.
    """

    def __init__(self, modules, original, unsafe=False):
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = original.detach()
        new = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:  # it cannot be inverted: it starts from the tensor as it is
                        pass
        if not isinstance(new, (Tensor, collections.abc.Sequence)):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for attribute in ("dtype", "device"):
                a, b = getattr(original, attribute), getattr(new, attribute)
                if a != b:
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {attribute}.\n"
                        f"original.{attribute}: {a}\nright_inverse(original).{attribute}: {b}"
                    )
            with no_grad():
                original.set_(new)
            _hold(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                _hold(self, f"original{i}", part.requires_grad_(original.requires_grad))
        if not unsafe:
            value = self()
            if not isinstance(value, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
            _same_kind(value, before, _REGISTERING + " `unsafe` flag is enabled.", ("unparametrized {attribute}", "parametrized {attribute}"))

    def _originals(self):
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value):
        """Changes what is stored so that the parametrized tensor becomes `value`, by the parametrizations' own right_inverse, last one first."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype {self.original.dtype}")
                self.original.set_(value)
                return
            if not isinstance(value, collections.abc.Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(value)}.")
            for i, (own, part) in enumerate(zip(self._originals(), value)):
                if not isinstance(part, Tensor):
                    raise ValueError(f"'right_inverse' must return a sequence of tensors. Got element {i} of type {type(part).__name__}")
                if part.dtype != own.dtype:
                    raise ValueError(f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while `original{i}` has dtype {own.dtype}")
                own.set_(part)

    def forward(self):
        first, *rest = self
        x = first(*self._originals())
        for module in rest:
            x = module(x)
        return x


def _derive(module):
    """Gives a module a class of its own below its present one: the place of the properties."""
    cls = type(module)

    def deepcopied(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        replica = memo[id(self)] = type(self).__new__(type(self))
        replica.__dict__ = copy.deepcopy(self.__dict__, memo)
        return replica

    def refused(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    members = {"__getstate__": refused} | ({} if hasattr(cls, "__deepcopy__") else {"__deepcopy__": deepcopied})
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _add_property(module, name):
    if hasattr(module, name):
        raise AssertionError(f"Module already has an attribute named '{name}'")

    def read(self):
        made = self.parametrizations[name]
        if not _depth:
            return made()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = made()
        return _cache[key]

    def write(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """From now on `module.tensor_name` is `parametrization` of what it was (of its last parametrization, if it has some). Returns the module.

    A parametrization with `right_inverse` can be assigned through; it may return several tensors, which are then kept instead of one.
    Unless `unsafe`, shape and dtype must stay. Raises ValueError where the module has no such tensor.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(module, tensor_name, parametrization)
        made = module.parametrizations[tensor_name]
        made.append(parametrization)
        made.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _derive(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    return module


def _check_next(module, name, parametrization):
    """A further parametrization must keep shape and dtype, and so must its right_inverse."""
    before = getattr(module, name)
    value = parametrization(before)
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    names = (f"module.{name}.{{attribute}}", f"parametrization(module.{name}).{{attribute}}")
    _same_kind(value, before, _REGISTERING + " the `unsafe` flag is enabled.", names)
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(value)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    what = f"The tensor returned by parametrization.right_inverse must have the same {{attribute}} as module.{name}, unless the `unsafe` flag is enabled."
    _same_kind(back, before, what, (f"module.{name}.{{attribute}}", "returned {attribute}"))


def is_parametrized(module, tensor_name=None):
    """Whether a module has parametrizations (of that tensor)."""
    made = getattr(module, "parametrizations", None)
    if not isinstance(made, ModuleDict):
        return False
    return len(made) > 0 if tensor_name is None else tensor_name in made


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Makes a tensor an ordinary one again, with its parametrized value or, with leave_parametrized=False, with what was stored. Returns the module."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    made = module.parametrizations[tensor_name]
    if made.is_tensor:
        original = made.original
        if leave_parametrized:
            with no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _hold(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class a module has, or had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Gives another module the parametrizations (of one tensor, or all) and what they start from. Returns that module."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        made = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        for parametrization in made:
            register_parametrization(to_module, name, parametrization)
        for key in ["original"] if made.is_tensor else [f"original{i}" for i in range(made.ntensors)]:
            setattr(to_module.parametrizations[name], key, getattr(made, key))
    return to_module
