"""`nn.parallel`, from modules/parallel.py."""
from .modules.parallel import DataParallel, DistributedDataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
