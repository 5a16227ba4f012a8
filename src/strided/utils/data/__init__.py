"""`utils.data`: the loader and its parts, from data/."""
from ... import data as _data
from ...data import *  # noqa: F403
from ...refused import missing as _missing
from . import _utils, dataloader, dataset, distributed, sampler

__all__ = ["dataloader", "dataset", "distributed", "sampler", *_data.__all__]
_absent = _missing("torch.utils.data")


def __getattr__(name):
    return _absent(name)
