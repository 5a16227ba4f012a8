"""`nn.parallel`, from modules/parallel.py."""
from ..refused import missing
from .modules.parallel import DataParallel, DistributedDataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
__getattr__ = missing("torch.nn.parallel")
