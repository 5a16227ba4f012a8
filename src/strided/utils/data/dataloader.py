"""`utils.data.dataloader`: PyTorch's place of the loader, which is in data/loader.py."""
from collections.abc import Callable
from typing import Any

from ...data import DataLoader, default_collate, default_convert, get_worker_info
from ...data.loader import _Iterator as _BaseDataLoaderIter  # noqa: F401
from ...data.loader import _LocalIterator as _SingleProcessDataLoaderIter  # noqa: F401
from ...data.loader import _WorkersIterator as _MultiProcessingDataLoaderIter  # noqa: F401

_collate_fn_t = Callable[[list[Any]], Any]  # names of types that signatures mention
_worker_init_fn_t = Callable[[int], None]

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
