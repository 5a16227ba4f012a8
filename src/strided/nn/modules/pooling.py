"""Pooling as modules."""
from .. import functional as F
from ..functions.conv import tuple_of
from ..module import Module


class _MaxPoolNd(Module):
    n = 0

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input):
        function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self.n - 1]
        return function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window of [N, C, L]."""

    n = 1


class MaxPool2d(_MaxPoolNd):
    """The largest element of each window of [N, C, H, W]."""

    n = 2


class MaxPool3d(_MaxPoolNd):
    """The largest element of each window of [N, C, D, H, W]."""

    n = 3


class AvgPool1d(Module):
    """The mean of each window of [N, C, L]."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = tuple_of(kernel_size, 1)
        self.stride = tuple_of(kernel_size if stride is None else stride, 1)
        self.padding = tuple_of(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """The mean of each window of [N, C, H, W]."""

    function = staticmethod(F.avg_pool2d)

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input):
        return self.function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool3d(AvgPool2d):
    """The mean of each window of [N, C, D, H, W]."""

    function = staticmethod(F.avg_pool3d)


class _LPPool(Module):
    n = 0

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input):
        function = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[self.n - 1]
        return function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self):
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The p-norm of each window of [N, C, L]."""

    n = 1


class LPPool2d(_LPPool):
    """The p-norm of each window of [N, C, H, W]."""

    n = 2


class LPPool3d(_LPPool):
    """The p-norm of each window of [N, C, D, H, W]."""

    n = 3


class _MaxUnpool(Module):
    n = 0

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = tuple_of(kernel_size, self.n)
        self.stride = tuple_of(kernel_size if stride is None else stride, self.n)
        self.padding = tuple_of(padding, self.n)

    def forward(self, input, indices, output_size=None):
        function = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self.n - 1]
        return function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """The partial inverse of MaxPool1d."""

    n = 1


class MaxUnpool2d(_MaxUnpool):
    """The partial inverse of MaxPool2d."""

    n = 2


class MaxUnpool3d(_MaxUnpool):
    """The partial inverse of MaxPool3d."""

    n = 3


class _AdaptiveAvgPool(Module):
    n = 0

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)[self.n - 1](input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Means over `output_size` ranges of the last dimension."""

    n = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Means over ranges of the last two dimensions."""

    n = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Means over ranges of the last three dimensions."""

    n = 3


class _AdaptiveMaxPool(_AdaptiveAvgPool):
    def __init__(self, output_size, return_indices=False):
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input):
        function = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)[self.n - 1]
        return function(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Maxima over `output_size` ranges of the last dimension."""

    n = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Maxima over ranges of the last two dimensions."""

    n = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Maxima over ranges of the last three dimensions."""

    n = 3


class _FractionalMaxPool(Module):
    n = 0

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        name = type(self).__name__
        if self.n == 3 and not all(k > 0 for k in (kernel_size if isinstance(kernel_size, (tuple, list)) else (kernel_size,))):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.kernel_size = tuple_of(kernel_size, self.n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else tuple_of(output_size, self.n)
        self.output_ratio = None if output_ratio is None else tuple_of(output_ratio, self.n)
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):
        function = F.fractional_max_pool2d if self.n == 2 else F.fractional_max_pool3d
        return function(input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """Maxima of windows of [N, C, H, W] whose starts are drawn."""

    n = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maxima of windows of [N, C, T, H, W] whose starts are drawn."""

    n = 3
