"""`nn.parallel`: the wrappers from modules/parallel.py, and `scatter` and `gather` for the one device there is."""
from ..refused import missing
from .modules.parallel import DataParallel, DistributedDataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "scatter"]


def scatter(inputs, target_gpus, dim=0):
    """The inputs of each device: a list of one entry. Raises NotImplementedError for more than one device."""
    if len(target_gpus) != 1:
        raise NotImplementedError(f"scatter(): {len(target_gpus)} devices were named, strided computes on one: call the module itself")
    return [inputs]


def gather(outputs, target_device, dim=0):
    """The outputs of all devices joined: of one device, its own. Raises NotImplementedError for more than one."""
    if len(outputs) != 1:
        raise NotImplementedError(f"gather(): there are outputs of {len(outputs)} devices, strided computes on one: use torch.cat")
    return outputs[0]


__getattr__ = missing("torch.nn.parallel")
