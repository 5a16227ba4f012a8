"""Convolutions and their transposes as modules, one to three dimensions. Each spells its arguments out: Python's errors of a call name its class."""
import math

from ... import ops
from .. import functional as F
from .. import init
from ..functions.conv import both_sides, tuple_of
from ..module import Module
from ..parameter import Parameter


class _ConvNd(Module):
    """Weight [out, in/groups, K..] (transposed: [in, out/groups, K..]), both uniform in ±1/sqrt(fan_in) at first."""

    n = 0
    transposed = False

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.output_padding = (0,) * self.n
        self._setup(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode)
        self._make_parameters(bias, device, dtype)

    def _setup(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode):
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(s != 1 for s in tuple_of(stride, self.n)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = {"zeros", "reflect", "replicate", "circular"}
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {modes}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = tuple_of(kernel_size, self.n)
        self.stride = tuple_of(stride, self.n)
        self.padding = padding if isinstance(padding, str) else tuple_of(padding, self.n)
        self.dilation = tuple_of(dilation, self.n)
        self.groups = groups
        self.padding_mode = padding_mode

    def _make_parameters(self, bias, device, dtype):
        first, second = (self.in_channels, self.out_channels) if self.transposed else (self.out_channels, self.in_channels)
        shape = (first, second // self.groups, *self.kernel_size)
        self.weight = Parameter(ops.empty(shape, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(ops.empty(self.out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def forward(self, input):
        function = (F.conv1d, F.conv2d, F.conv3d)[self.n - 1]
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._amounts(), mode=self.padding_mode)
            padding = 0
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _amounts(self):
        """The argument of F.pad for a padding mode other than zeros."""
        if self.padding == "valid":
            return [0] * (2 * self.n)
        if self.padding == "same":
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size)]
            return [p for t in reversed(total) for p in (t // 2, t - t // 2)]
        return both_sides(self.padding)

    def extra_repr(self):
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        parts += [f"padding={self.padding}"] * (self.padding != (0,) * len(self.padding))
        parts += [f"dilation={self.dilation}"] * (self.dilation != (1,) * self.n)
        parts += [f"output_padding={self.output_padding}"] * (self.output_padding != (0,) * self.n)
        parts += [f"groups={self.groups}"] * (self.groups != 1)
        parts += ["bias=False"] * (self.bias is None)
        parts += [f"padding_mode={self.padding_mode}"] * (self.padding_mode != "zeros")
        return ", ".join(parts)


class Conv1d(_ConvNd):
    """Cross-correlation of [N, C, L]."""

    n = 1

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", device=None, dtype=None
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)


class Conv2d(_ConvNd):
    """Cross-correlation of [N, C, H, W]."""

    n = 2

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", device=None, dtype=None
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)


class Conv3d(_ConvNd):
    """Cross-correlation of [N, C, D, H, W]."""

    n = 3

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros", device=None, dtype=None
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)


class _ConvTransposeNd(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        Module.__init__(self)
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self.output_padding = tuple_of(output_padding, self.n)
        self._setup(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode)
        self._make_parameters(bias, device, dtype)

    def forward(self, input, output_size=None):
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.n - 1]
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        return function(input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation)

    def _extra(self, input, output_size):
        """The output padding that gives `output_size`."""
        wanted = list(output_size)[-self.n :]
        smallest = [
            (size - 1) * s - 2 * p + d * (k - 1) + 1
            for size, s, p, d, k in zip(input.shape[-self.n :], self.stride, self.padding, self.dilation, self.kernel_size)
        ]
        largest = [low + s - 1 for low, s in zip(smallest, self.stride)]
        if any(not low <= w <= high for low, w, high in zip(smallest, wanted, largest)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {list(input.shape[-self.n :])})"
            )
        return tuple(w - low for w, low in zip(wanted, smallest))


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of Conv1d."""

    n = 1

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode, device, dtype)


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of Conv2d."""

    n = 2

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode, device, dtype)


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of Conv3d."""

    n = 3

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode, device, dtype)
