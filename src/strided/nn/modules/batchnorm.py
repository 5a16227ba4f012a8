"""BatchNorm and InstanceNorm with their running statistics."""
from ... import ops
from ...dtypes import int64
from .. import functional as F
from .. import init
from ..module import Module
from ..parameter import Parameter


class _NormBase(Module):
    _version = 2
    dims: tuple = ()  # accepted input dimensions

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            value = Parameter(ops.empty(num_features, device=device, dtype=dtype)) if wanted else None
            self.register_parameter(name, value)
        track = track_running_stats
        self.register_buffer("running_mean", ops.zeros(num_features, device=device, dtype=dtype) if track else None)
        self.register_buffer("running_var", ops.ones(num_features, device=device, dtype=dtype) if track else None)
        self.register_buffer("num_batches_tracked", ops.tensor(0, dtype=int64, device=device) if track else None)
        self.reset_parameters()

    def reset_running_stats(self):
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        if self.dims and input.dim() not in self.dims:
            wanted = " or ".join(f"{d}D" for d in self.dims)
            raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        """State dicts of version 1 (and plain dictionaries) may lack the count of batches: it stays as it is."""
        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 0) < 2 and self.track_running_stats and key not in state_dict:
            count = self.num_batches_tracked
            state_dict[key] = ops.tensor(0, dtype=int64) if count is None or count.is_meta else count
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    """(x − mean) / sqrt(var + eps)·weight + bias a channel, over the batch and the positions."""

    def forward(self, input):
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # a plain average over all batches so far
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if keep else None,
            self.running_var if keep else None,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch norm of [N, C] or [N, C, L]."""

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of [N, C, H, W]."""

    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm of [N, C, D, H, W]."""

    dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch norm over all processes; with one process, batch norm."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """`module` with each batch norm below it replaced, in place, by a SyncBatchNorm on the same parameters and buffers; a batch norm itself: its replacement."""
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats, process_group, bias=module.bias is not None)
            if module.affine:
                result.weight, result.bias = module.weight, module.bias
            result.running_mean, result.running_var, result.num_batches_tracked = module.running_mean, module.running_var, module.num_batches_tracked
            result.training = module.training
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _InstanceNorm(_NormBase):
    """Normalises every channel of every sample by its own statistics."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input):
        self._check_input_dim(input)
        unbatched = input.dim() == self.dims[0]
        x = input.unsqueeze(0) if unbatched else input  # [N, C, ..]
        if x.size(1) != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim=1 to match num_features ({self.num_features}), but got: {x.size(1)}."
            )
        out = F.instance_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out.squeeze(0) if unbatched else out


class InstanceNorm1d(_InstanceNorm):
    """Instance norm of [N, C, L] or [C, L]."""

    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance norm of [N, C, H, W] or [C, H, W]."""

    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance norm of [N, C, D, H, W] or [C, D, H, W]."""

    dims = (4, 5)
