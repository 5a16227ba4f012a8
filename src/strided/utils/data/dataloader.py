"""`utils.data.dataloader`: PyTorch's place of the loader, which is in data/loader.py."""
from ...data import DataLoader, default_collate, default_convert, get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
