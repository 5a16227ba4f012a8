"""What a module's parameters and buffers are turned into: other dtypes, devices and memory formats, in place. Part of `Module`."""
from ..autograd.modes import no_grad
from ..tensor import Tensor
from .parameter import Parameter


class Conversion:
    """The conversions of `Module`."""

    def _apply(self, fn, recurse=True):
        """Replaces every parameter's and buffer's data by `fn` of it; the parameter objects stay the same."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            with no_grad():
                converted = fn(parameter)
                grad = None if parameter.grad is None else fn(parameter.grad)
            if converted.device == parameter.device:
                parameter.data = converted
            else:  # another device: a new object, as PyTorch makes one
                parameter = self._parameters[name] = Parameter(converted, parameter.requires_grad)
            if grad is not None:
                parameter.grad = None
                parameter.grad = grad.detach().requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """`to(device)`, `to(dtype)`, `to(tensor)`, `to(device, dtype)`: in place; a dtype reaches floating-point members only, a `memory_format` those
        of four and five dimensions."""
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)

        def convert(t):
            target = dtype if dtype is not None and (t.is_floating_point() or t.is_complex()) else None
            form = {"memory_format": memory_format} if memory_format is not None and t.ndim in (4, 5) else {}
            try:
                return t.to(device=device, dtype=target, non_blocking=non_blocking, **form)
            except NotImplementedError as error:
                if not (told := str(error)).startswith("Cannot copy out of meta tensor; no data!"):
                    raise
                told = told.splitlines()[0]
                raise NotImplementedError(
                    f"{told} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Moves to a device without copying: the values are uninitialised."""
        from ..ops import empty_like

        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def _cast(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def half(self):
        from ..dtypes import float16

        return self._cast(float16)

    def float(self):
        from ..dtypes import float32

        return self._cast(float32)

    def double(self):
        from ..dtypes import float64

        return self._cast(float64)

    def bfloat16(self):
        from ..dtypes import bfloat16

        return self._cast(bfloat16)

    def type(self, dst_type):
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self):
        return self.to("cpu")

    def cuda(self, device=None):
        return self.to("cuda" if device is None else device if isinstance(device, str) else f"cuda:{device}")

    def share_memory(self):
        return self._apply(lambda t: t.share_memory_())


def _parse_to(*args, device=None, dtype=None, tensor=None, non_blocking=False, copy=False, memory_format=None):
    """(device, dtype, non_blocking, memory_format) of any form of `Module.to`."""
    from ..dtypes import DType

    if args and isinstance(args[0], Tensor):
        tensor, args = args[0], args[1:]
    elif args and isinstance(args[0], DType):
        dtype, args = args[0], args[1:]
    elif args:
        device, args = args[0], args[1:]
        if args and (args[0] is None or isinstance(args[0], DType)):
            dtype, args = args[0], args[1:]
    if args:
        non_blocking = args[0]
    if tensor is not None:
        device, dtype = tensor.device, tensor.dtype
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
    return device, dtype, non_blocking, memory_format
