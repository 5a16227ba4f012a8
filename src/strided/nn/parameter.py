"""Parameters and buffers: tensors that a module registers when they are assigned to it."""
from ..tensor import Tensor


def typename(value):
    """The name PyTorch uses for a value's type in messages: torch.FloatTensor, int, package.Class."""
    if isinstance(value, Tensor):
        return value.type()
    kind = value if isinstance(value, type) else type(value)
    return kind.__name__ if kind.__module__ in ("builtins", None) else f"{kind.__module__}.{kind.__qualname__}"


class Parameter(Tensor):
    """A tensor that is a module's parameter: it shares the data given and requires grad unless told otherwise."""

    _prints_as_tensor = True

    def __new__(cls, data=None, requires_grad=True):
        return _make(cls, data, requires_grad)

    def __init__(self, data=None, requires_grad=True):
        pass

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return result

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (self.detach(), self.requires_grad)


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned."""

    _prints_as_tensor = True
    persistent = True

    def __new__(cls, data=None, *, persistent=True):
        result = _make(cls, data, False if data is None else data.requires_grad)
        result.persistent = persistent
        return result

    def __init__(self, data=None, *, persistent=True):
        pass

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = memo[id(self)] = type(self)(self.detach().clone(), persistent=self.persistent)
        return result

    def __reduce_ex__(self, protocol):
        return _rebuild_buffer, (self.detach(), self.persistent)


def _make(cls, data, requires_grad):
    if data is None:
        from ..ops import empty

        data = empty(0)
    if requires_grad and not (data.is_floating_point() or data.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    result = share(cls, data)
    return result.requires_grad_(requires_grad) if requires_grad else result


def share(cls, data):
    """A tensor of class `cls` over the memory of `data`, outside any graph."""
    result = object.__new__(cls)
    result.spec, result.mem, result.ptr = data.spec, data.mem, data.ptr
    return result


def _rebuild_parameter(data, requires_grad):
    return Parameter(data, requires_grad)


def _rebuild_buffer(data, persistent):
    return Buffer(data, persistent=persistent)


class UninitializedParameter:
    """Stands for a parameter whose shape is inferred at the first call. Lazy modules are not supported."""

    def __new__(cls, *args, **kwargs):
        raise NotImplementedError("UninitializedParameter: lazy modules are not supported; give the sizes when building the module")
