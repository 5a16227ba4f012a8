"""The collate rules, from data/collate.py."""
from ....data.collate import _collate_floats as collate_float_fn
from ....data.collate import _collate_ints as collate_int_fn
from ....data.collate import _collate_tensors as collate_tensor_fn
from ....data.collate import _collate_texts as collate_str_fn
from ....data.collate import collate, default_collate, default_collate_fn_map, default_convert

__all__ = ["collate", "collate_float_fn", "collate_int_fn", "collate_str_fn", "collate_tensor_fn", "default_collate", "default_collate_fn_map", "default_convert"]
