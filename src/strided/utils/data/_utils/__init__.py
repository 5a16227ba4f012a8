"""`utils.data._utils`: where public code finds the collate function."""
from . import collate

__all__ = ["collate"]
