"""The array API standard on tensors: `x.__array_namespace__()` is this package.

    xp = strided.array_api
    xp.sum(xp.asarray([1.0, 2.0]), axis=0)

Functions take and return tensors with the standard's names, arguments, promotion and errors, where torch's own differ, and its extensions `linalg`
and `fft`. What cannot be followed raises NotImplementedError.
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import Any

from .. import dtypes as _dtypes
from . import fft, linalg
from .creation import arange, asarray, empty, empty_like, eye, from_dlpack, full, full_like, linspace, meshgrid, ones, ones_like, tril, triu, zeros, zeros_like
from .elementwise import *  # noqa: F403
from .elementwise import __all__ as _elementwise
from .info import __array_namespace_info__, astype, can_cast, finfo, iinfo, isdtype, result_type
from .linalg import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import broadcast_arrays, broadcast_shapes, broadcast_to, concat, expand_dims, flip, moveaxis, permute_dims, repeat, reshape, roll, squeeze, stack, tile, unstack
from .searching import (
    argmax,
    argmin,
    argsort,
    count_nonzero,
    isin,
    nonzero,
    searchsorted,
    sort,
    take,
    take_along_axis,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)
from .statistical import all, any, cumulative_prod, cumulative_sum, diff, max, mean, min, prod, std, sum, var

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
__array_api_version__ = VERSIONS[-1]
newaxis = None

_NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
globals().update({_name: _dtypes.names()[_name] for _name in _NAMES.split()})

__all__ = [
    *_NAMES.split(), *_elementwise, "__array_api_version__", "__array_namespace_info__", "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "astype",
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast", "concat", "count_nonzero", "cumulative_prod", "cumulative_sum", "diff", "e", "empty", "empty_like", "expand_dims",
    "eye", "fft", "finfo", "flip", "from_dlpack", "full", "full_like", "iinfo", "inf", "isdtype", "isin", "linalg", "linspace", "matmul", "matrix_transpose", "max", "mean", "meshgrid",
    "min", "moveaxis", "nan", "newaxis", "nonzero", "ones", "ones_like", "permute_dims", "pi", "prod", "repeat", "reshape", "result_type", "roll", "searchsorted", "sort",
    "squeeze", "stack", "std", "sum", "take", "take_along_axis", "tensordot", "tile", "tril", "triu", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "unstack", "var", "vecdot", "where", "zeros", "zeros_like",
]  # fmt: skip


def __dir__() -> Any:
    return __all__
