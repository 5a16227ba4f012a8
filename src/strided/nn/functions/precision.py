"""16-bit inputs of composites: computed in float32 from the first step to the last, rounded once."""
import functools

from ...dtypes import bfloat16, float16
from ...tensor import Tensor

_HALF = (float16, bfloat16)


def in_float32(function):
    """Decorates a composite whose first argument decides the dtype: 16-bit tensors among the arguments go in as float32, the result comes back in the input's dtype."""

    @functools.wraps(function)
    def inside(input, *args, **kwargs):
        if input.dtype not in _HALF:
            return function(input, *args, **kwargs)
        result = function(_widened(input), *map(_widened, args), **{key: _widened(value) for key, value in kwargs.items()})
        return result.to(input.dtype)

    return inside


def _widened(value):
    return value.float() if isinstance(value, Tensor) and value.dtype in _HALF else value
