"""`utils.data.distributed`: the sampler that gives each process its share."""
from ...data.sampler import DistributedSampler

__all__ = ["DistributedSampler"]
