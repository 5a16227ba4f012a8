"""Parameters and buffers: tensors that a module registers when they are assigned to it."""
from ..block_tensor import BlockTensor
from ..kernels.native_objects import new
from ..ops.overriding import disabled
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
    __torch_function__ = staticmethod(disabled)  # what is computed from a parameter is a tensor

    def __new__(cls, data=None, requires_grad=True):
        return _make(cls, data, requires_grad)

    def __init__(self, *args, **kwargs):  # subclasses have a __new__ of their own, with arguments of their own
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


class BlockParameter(BlockTensor, Parameter):
    """A module's parameter that is held in blocks: what `Parameter(block_tensor, requires_grad=False)` makes. It is never trained."""

    def __repr__(self):
        return "Parameter containing:\n" + BlockTensor.__repr__(self)

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (self.detach(), False)


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned."""

    _prints_as_tensor = True
    persistent = True
    __torch_function__ = staticmethod(disabled)

    def __new__(cls, data=None, *, persistent=True):
        result = _make(cls, data, False if data is None else data.requires_grad)
        result.persistent = persistent
        return result

    def __init__(self, *args, **kwargs):
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
    if isinstance(data, BlockTensor) and issubclass(cls, Parameter):
        data.requires_grad_(requires_grad)  # raises where a gradient is asked for
        result = new(BlockParameter)
        result._take(data)
        return result
    if requires_grad and not (data.is_floating_point() or data.is_complex()):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    result = share(cls, data)
    return result.requires_grad_(requires_grad) if requires_grad else result


def share(cls, data):
    """A tensor of class `cls` over the memory of `data`, outside any graph."""
    result = new(cls)
    result.spec, result.mem, result.ptr = data.spec, data.mem, data.ptr
    return result


def _rebuild_parameter(data, requires_grad):
    return Parameter(data, requires_grad)


def _rebuild_buffer(data, persistent):
    return Buffer(data, persistent=persistent)


class UninitializedTensorMixin:
    """A tensor without a shape yet: it knows its dtype and device only. `materialize` gives it memory, and makes it an ordinary one.

    It has no spec, so that every operator that is handed one ends in `__getattr__` below; the few attributes that need no shape are here.
    """

    cls_to_become: type = Tensor

    def __init__(self, *args, **kwargs):
        pass

    def materialize(self, shape, device=None, dtype=None):
        """Uninitialised memory of this shape, on this tensor's own device and in its own dtype unless others are given."""
        from ..ops import empty

        data = empty(shape, device=device or self.device, dtype=dtype or self.dtype)
        self.spec, self.mem, self.ptr = data.spec, data.mem, data.ptr
        del self._empty
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when trying to load an "
            "uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling `module.share_memory()`."
        )

    def __getattr__(self, name):
        if name in ("spec", "mem", "ptr"):
            raise ValueError(
                "Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule` or explicitly manipulating "
                f"`torch.nn.parameter.{type(self).__name__}` objects. When using LazyModules Call `forward` with a dummy batch "
                "to initialize the parameters before calling torch functions"
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def data(self):
        return self._empty

    @data.setter
    def data(self, value):
        self._empty = value.data if isinstance(value, UninitializedTensorMixin) else value

    @property
    def dtype(self):
        return self._empty.dtype

    @property
    def device(self):
        return self._empty.device

    def is_floating_point(self):
        return self.dtype.is_floating_point

    def is_complex(self):
        return self.dtype.is_complex

    def detach(self):
        return self._like(self._empty)

    def to(self, *args, **kwargs):
        return self._like(self._empty.to(*args, **kwargs))

    def cpu(self):
        return self.to("cpu")

    def half(self):
        return self._like(self._empty.half())

    def float(self):
        return self._like(self._empty.float())

    def double(self):
        return self._like(self._empty.double())

    def bfloat16(self):
        return self._like(self._empty.bfloat16())

    def requires_grad_(self, requires_grad=True):
        self._tracked = requires_grad
        return self

    def _like(self, data):
        return type(self)(self._tracked, device=data.device, dtype=data.dtype)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self._like(self._empty)
        return memo[id(self)]

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol):
        return type(self), (self._tracked, self.device, self.dtype)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is inferred at the first call of a lazy module."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return _uninitialised(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is inferred at the first call of a lazy module."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        result = _uninitialised(cls, requires_grad, device, dtype)
        result.persistent = persistent
        return result


def _uninitialised(cls, requires_grad, device, dtype):
    from ..ops import empty

    result = new(cls)
    result._empty = empty(0, device=device, dtype=dtype)
    return result.requires_grad_(requires_grad)


def is_lazy(param):
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
