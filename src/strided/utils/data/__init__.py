"""`utils.data`: the loader and its parts, from data/."""
from ... import data as _data
from ...data import *  # noqa: F403
from . import distributed

__all__ = ["distributed", *_data.__all__]
