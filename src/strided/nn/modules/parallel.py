"""DataParallel and DistributedDataParallel: wrappers around a module. There is one device and one process, so that calling the module is all they do."""
import contextlib

from ... import distributed
from ..module import Module


class DataParallel(Module):
    """Calls the module it wraps: on a machine without accelerators PyTorch's does the same. Its state dict's names begin with `module.`."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module
        self.device_ids = []
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


class DistributedDataParallel(Module):
    """Calls the module it wraps; gradients averaged over the one process of the group are its own. Its state dict's names begin with `module.`.

    Options of PyTorch's that say how gradients travel are accepted. Raises ValueError without a process group (`torch.distributed.init_process_group`) and for
    device_ids, RuntimeError for a module without parameters that require grad.
    """

    def __init__(
        self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True, process_group=None, bucket_cap_mb=None, find_unused_parameters=False,
        check_reduction=False, gradient_as_bucket_view=False, static_graph=False, delay_all_reduce_named_params=None, param_to_hook_all_reduce=None, mixed_precision=None,
        device_mesh=None, skip_all_reduce_unused_params=False,
    ):  # fmt: skip
        super().__init__()
        self.process_group = process_group or distributed._get_default_group()
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient.")
        if device_ids or output_device is not None:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                f"{device_ids}, output_device {output_device}\n  This module is on the CPU: leave both out."
            )
        self.module = module
        self.dim = dim
        self.device_ids = self.output_device = None
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """Inside, gradients of the processes are not averaged: they add up in `.grad` as ever."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """For processes with unequal numbers of batches: there is one."""
        yield

    def register_comm_hook(self, state, hook):
        """Not supported: no gradients travel."""
        raise NotImplementedError("DistributedDataParallel.register_comm_hook: no gradients travel between processes here; leave the hook out")


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """The module's result for these inputs."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
