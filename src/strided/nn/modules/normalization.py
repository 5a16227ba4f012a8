"""Normalisation over a sample's own values: LayerNorm, RMSNorm, GroupNorm, LocalResponseNorm."""
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


class LocalResponseNorm(Module):
    """Divides by the power of neighbouring channels."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
