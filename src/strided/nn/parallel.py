"""`torch.nn.parallel` as single-process scripts import it. Nothing here distributes: building such a wrapper says so."""


class DistributedDataParallel:
    """Refused: there is one process and one device."""

    def __init__(self, module, *args, **kwargs):
        raise NotImplementedError("DistributedDataParallel needs torch.distributed, which strided has not: use the module itself, or set num_threads for more cores")


class DataParallel:
    """Refused: it splits batches over GPUs, and there are none."""

    def __init__(self, module, *args, **kwargs):
        raise NotImplementedError("DataParallel splits batches over several GPUs, and there are none: use the module itself")
