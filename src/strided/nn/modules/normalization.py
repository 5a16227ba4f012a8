"""Normalisation over a sample's own values: LayerNorm, RMSNorm, GroupNorm, LocalResponseNorm, CrossMapLRN2d."""
from ... import ops
from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter


class _OverShape(Module):
    """Normalises the last dimensions, `normalized_shape`, with an elementwise weight."""

    def _set_shape(self, normalized_shape, eps, elementwise_affine):
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine

    def _add(self, name, wanted, device, dtype):
        parameter = Parameter(ops.empty(self.normalized_shape, device=device, dtype=dtype)) if wanted else None
        self.register_parameter(name, parameter)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LayerNorm(_OverShape):
    """(x − mean) / sqrt(var + eps)·weight + bias over the last dimensions."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self._set_shape(normalized_shape, eps, elementwise_affine)
        self._add("weight", elementwise_affine, device, dtype)
        self._add("bias", elementwise_affine and bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self):
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{super().extra_repr()}, bias={self.bias is not None}"


class RMSNorm(_OverShape):
    """x / sqrt(mean(x²) + eps)·weight over the last dimensions; eps None is the dtype's machine epsilon."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self._set_shape(normalized_shape, eps, elementwise_affine)
        self._add("weight", elementwise_affine, device, dtype)
        self.reset_parameters()

    def reset_parameters(self):
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class GroupNorm(Module):
    """Normalises groups of channels of [N, C, ..]; weight and bias are one a channel."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(ops.empty(num_channels, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self):
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class _OverChannels(Module):
    """Divides by the power of neighbouring channels' squares."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_OverChannels):
    """Divides by the power of neighbouring channels."""

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_OverChannels):
    """x / (k + alpha/size·sum of squares over neighbouring channels)^beta, [N, C, H, W], as Lua Torch had it.

    The window reaches (size − 1) // 2 channels to both sides, and PyTorch's running sum never lets go of channel 0: its square is in every window. The
    gradient is that of this result (PyTorch's own takes the windows of other channels, and fails for size 1). Prefer LocalResponseNorm.
    """

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input):
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channel = ops.arange(input.size(1), device=input.device)
        near = ((channel[:, None] - channel).abs() <= (self.size - 1) // 2).to(input.dtype)  # [C, C]
        near[:, 0] = 1
        sums = ops.einsum("dc,nchw->ndhw", near, input * input)
        return input * (sums * (self.alpha / self.size) + self.k).pow(-self.beta)
