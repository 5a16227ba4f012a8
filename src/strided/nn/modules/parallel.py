"""DataParallel and DistributedDataParallel. There is one device and one process."""
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
    """Averages gradients over processes. Not supported: there is no process group."""

    def __init__(self, module, *args, **kwargs):
        raise NotImplementedError("DistributedDataParallel: there is no process group; call the module itself")


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """The module's result for these inputs."""
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
