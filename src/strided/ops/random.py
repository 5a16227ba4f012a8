"""Operators that draw random numbers: creation (`rand`, `randn`, `randint`, …), sampling (`normal`, `bernoulli`, `multinomial`), dropout's mask.

Every result equals PyTorch's for the same seed, bit for bit. The in-place fills are in fills.py, the kernels in kernels/random.py, the state in
generator.py. Holds no distributions as objects.
"""
from __future__ import annotations

import math
import struct
from operator import index
from typing import Any

from .. import dtypes
from ..autograd import backward, no_grad, record, tracking
from ..kernels import random as kernels
from ..layout import Layout, broadcast_shapes, result_strides
from ..tensor import Spec, Tensor, empty, empty_of
from . import table
from .create import quick_spec, sizes_of, spec_of
from .fills import (
    KIND,
    by_kernel,
    check_probability,
    check_range,
    fill_bernoulli,
    fill_bernoulli_by,
    fill_integers,
    fill_normal,
    fill_uniform,
    floating,
    generator_of,
    integer,
    plain,
    real_parts,
    serial_fill,
    significand_bits,
)  # fmt: skip
from .generator import Generator, default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .table import TABLE, operator

__all__ = ["Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


# ---- creation -----------------------------------------------------------------------------------------------------------

def _size(size: Any) -> tuple[int, ...]:
    """The sizes in (2, 3) or in ((2, 3),)."""
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = size[0]
    for place, s in enumerate(size):
        if isinstance(s, bool) or not hasattr(s, "__index__"):
            raise TypeError(f"rand(): argument 'size' (position {place + 1}) must be tuple of ints, not {type(s).__name__}")
    shape = tuple(s.__index__() for s in size)
    if any(s < 0 for s in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    return shape




def _fresh(size: tuple, dtype, device, name: str = "rand", named: dict | None = None) -> Tensor:
    """An uninitialised tensor for rand(*size, **named); the specs of sizes met before are remembered."""
    if not named:
        spec = quick_spec(size, dtype, device)
        if spec is not None:
            return empty_of(spec)
    else:
        size = _named(name, size, named)
    return empty_of(spec_of(sizes_of(name, size), dtype or dtypes.get_default_dtype(), dtypes.resolve_device(device)))


def _named(name: str, size: tuple, named: dict) -> tuple:
    """The size out of `size=` (PyTorch also takes `names=`, for named dimensions)."""
    unknown = set(named) - {"size", "names"}
    if unknown or size and "size" in named:
        got = ", ".join([*(type(s).__name__ for s in size), *(f"{key}={type(value).__name__}" for key, value in named.items())])
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({got}), but expected sizes and generator, dtype, device, …")
    if named.get("names") is not None:
        raise NotImplementedError("named dimensions are not supported: drop names=")
    return (tuple(named["size"]),) if "size" in named else size


def _leaf(t: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        if not (t.dtype.is_floating_point or t.dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t._tracked = True
    return t


def _unit_interval(x: Tensor, generator) -> Tensor:
    fill_uniform(real_parts(x) if x.spec.dtype.is_complex else x, 0.0, 1.0, generator)
    return x


@operator("rand", method=False, out=True)
def rand(*size, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **named):
    """Uniform numbers from [0, 1), shape `size`."""
    x = _unit_interval(_fresh(size, dtype, device, "rand", named), generator)
    return _leaf(x, True) if requires_grad else x


@operator("randn", method=False, out=True)
def randn(*size, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **named):
    """Standard normal numbers, shape `size`."""
    x = fill_normal(_fresh(size, dtype, device, "randn", named), 0.0, 1.0, generator)
    return _leaf(x, True) if requires_grad else x


@operator("randint", method=False, out=True)
def randint(*args, low=None, high=None, size=None, generator=None, dtype=dtypes.int64, layout=None, device=None, requires_grad=False, pin_memory=False):
    """`randint(low=0, high, size)`: integers from [low, high), shape `size`."""
    low, high, shape = _bounds_and_size("randint", args, low, high, size)
    dtype = dtype or dtypes.int64
    check_range(low, high, dtype)
    return _leaf(fill_integers(_fresh(shape or ((),), dtype, device), low, high - low, generator), requires_grad)


def _bounds_and_size(name: str, args: tuple, low, high, size):
    args = list(args)
    if size is None:
        if not args or hasattr(args[-1], "__index__"):
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got ({', '.join(type(a).__name__ for a in args)}), but expected one of:\n"
                " * (int high, tuple of ints size, *, ...)\n * (int low, int high, tuple of ints size, *, ...)"
            )
        size = args.pop()
    low, high = _bounds(name, args, low, high)
    return low, high, _size(size)


def _bounds(name: str, args: list, low, high) -> tuple[int, int]:
    """[high], [low, high], or either by name."""
    if len(args) == 2:
        low, high = args
    elif len(args) == 1 and high is None:
        high = args[0]
    elif len(args) == 1 and low is None:
        low = args[0]
    elif args or high is None:
        raise TypeError(f"{name}() received an invalid combination of arguments: give high, or low and high")
    return integer(name, low or 0), integer(name, high)


@operator("randperm", method=False, out=True)
def randperm(n, *, generator=None, dtype=dtypes.int64, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The integers 0 … n − 1 in random order, shape [n]."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    dtype = dtype or dtypes.int64
    if dtype.is_floating_point and n > (1 << significand_bits(dtype)) + 1:
        raise RuntimeError(f"n cannot be greater than {(1 << significand_bits(dtype)) + 1} for {dtype.scalar_name} type.")
    if not dtype.is_floating_point and n > dtypes.iinfo(dtype).max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    x = _fresh((n,), dtype, device)
    kind = "short" if n < 0xFFFFFFFF // 20 else "long"
    return _leaf(serial_fill(x, generator, dtypes.int64, lambda state, at, count: kernels.fill("permutation", kind, count, state, at, count)), requires_grad)


def _like(input: Tensor, dtype, device, memory_format) -> Tensor:
    """A fresh tensor shaped as input, keeping the order of its dimensions in memory unless a format is asked for."""
    name = getattr(memory_format, "name", None)
    if name not in (None, "preserve_format", "contiguous_format"):
        return TABLE["empty_like"].call(input, dtype=dtype, device=device, memory_format=memory_format)
    layout = Layout.contiguous(input.shape) if name == "contiguous_format" else result_strides(input.shape, input.spec.layout)
    return empty_of(Spec.of(layout, dtype or input.dtype, input.device if device is None else dtypes.resolve_device(device)))


@operator("rand_like", method=False)
def rand_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """Uniform numbers from [0, 1), shaped as input."""
    return _leaf(_unit_interval(_like(input, dtype, device, memory_format), generator), requires_grad)


@operator("randn_like", method=False)
def randn_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """Standard normal numbers, shaped as input."""
    return _leaf(fill_normal(_like(input, dtype, device, memory_format), 0.0, 1.0, generator), requires_grad)


@operator("randint_like", method=False)
def randint_like(input, *args, low=None, high=None, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """`randint_like(input, low=0, high)`: integers from [low, high), shaped as input."""
    low, high = _bounds("randint_like", list(args), low, high)
    x = _like(input, dtype, device, memory_format)
    check_range(low, high, x.dtype)
    return _leaf(fill_integers(x, low, high - low, generator), requires_grad)


# ---- sampling -----------------------------------------------------------------------------------------------------------

@operator("normal", method=False, out=True)
def normal(mean=0.0, std=1.0, size=None, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Normal numbers: mean and std are numbers or tensors; for two numbers give the size."""
    if isinstance(std, Tensor):
        if std.numel() and not std.spec.is_meta and not TABLE["ge"].call(std, 0).all().item():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {plain(std)}")
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise TypeError("normal() received an invalid combination of arguments: two numbers need a size")
        return _leaf(fill_normal(_fresh(tuple(size) or ((),), dtype, device), float(mean), float(std), generator), requires_grad)
    with no_grad():  # the draw is standard normal, row by row, then scaled and moved; only a number as std goes into the draw itself
        if not isinstance(std, Tensor):
            out = TABLE["add"].call(fill_normal(empty(mean.shape, mean.dtype, mean.device), 0.0, float(std), generator), mean)
        else:
            like = std if not isinstance(mean, Tensor) else mean
            shape = broadcast_shapes(std.shape, like.shape)
            out = TABLE["add"].call(TABLE["mul"].call(fill_normal(empty(shape, like.dtype, like.device), 0.0, 1.0, generator), std), mean)
    if tracking(mean, std):
        record(NormalBackward0, (mean, std), out, outlines=[(t.shape, t.dtype, t.device) if isinstance(t, Tensor) else None for t in (mean, std)])
    return out


@backward("Normal")
def NormalBackward0(node, g):
    """As PyTorch has it, no gradient flows into a mean or a standard deviation that a draw was made with (use mean + std * randn)."""
    return tuple(None if o is None else TABLE["zeros"].call(o[0], dtype=o[1], device=o[2]) for o in node.outlines)


@backward("Bernoulli")
def BernoulliBackward0(node, g):
    """A draw does not move with its probability."""
    return (TABLE["zeros_like"].call(g),)


@operator("bernoulli", out=True)
def bernoulli(input, p=None, *, generator=None):
    """1 with the probability that the input's element gives (or p), else 0; shaped and typed as the input, drawn row by row."""
    out = empty(input.shape, input.dtype, input.device)
    if p is None:
        fill_bernoulli_by(out, input, generator)
    else:
        check_probability(p)
        fill_bernoulli(out, float(p), generator)
    if tracking(input):
        record(BernoulliBackward0, (input,), out)
    return out


@operator("multinomial", out=True)
def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices drawn with the probabilities that the rows of input [columns] or [rows, columns] give (not necessarily summing to 1): int64 [..., num_samples]."""
    if not input.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.dtype.scalar_name}")
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    num_samples = index(num_samples)  # a kernel takes it as it is
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    columns = input.shape[-1]
    if not replacement and num_samples > columns:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if columns > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")
    shape = (*input.shape[:-1], num_samples)
    if input.spec.is_meta or not input.numel():
        return empty(shape, dtypes.int64, input.device)
    with no_grad():
        _check_weights(input)
        if not replacement or num_samples == 1:
            q = _like(input, None, None, None)
            by_kernel("exponential", q, generator, floating(q, "exponential_cpu"), -1.0, 0.0)
            keys = TABLE["div"].call(input, q)
            if num_samples == 1:
                return keys.argmax(-1, keepdim=True)
            return keys.topk(num_samples, -1)[1]
        return _with_replacement(input, num_samples, shape, generator_of(generator))


def _check_weights(w: Tensor) -> None:
    least, most = w.min().item(), w.max().item()
    if not (least >= 0 and most < math.inf):  # NaN fails both
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if w.sum(-1).min().item() <= 0:
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _with_replacement(w: Tensor, samples: int, shape, generator: Generator) -> Tensor:
    dtype = dtypes.float64 if w.dtype is dtypes.float64 else dtypes.float32
    weights = empty(w.shape, dtype, dtypes.CPU)
    table.assign(weights, w)
    columns = w.shape[-1]
    sums, out = empty((columns,), dtype, dtypes.CPU), empty(shape, dtypes.int64, dtypes.CPU)
    rows = w.numel() // columns
    with generator.lock:
        kernels.fill("multinomial", KIND[dtype], rows * samples, generator.address or generator.state(), weights.ptr, sums.ptr, out.ptr, rows, columns, samples)
    return out


# ---- dropout ------------------------------------------------------------------------------------------------------------

@operator("dropout", method=False, flops=lambda args, kwargs, result: result.numel())
def dropout(input, p, train):
    """input with elements zeroed with probability p and the others scaled by 1/(1 − p), while `train`; else input itself."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    return TABLE["mul"].call(input, dropout_mask(input, p)) if train and p and input.numel() else input


def dropout_mask(input: Tensor, p: float, shape=None, generator: Generator | None = None) -> Tensor:
    """What `input` is multiplied by in dropout: 0 with probability p, else 1/(1 − p), in input's dtype; shaped as input, or `shape` (dropout of whole features)."""
    out = _like(input, None, None, None) if shape is None else empty(shape, input.dtype, input.device)
    if p == 1:
        return TABLE["zero_"].call(out)
    keep = 1.0 - p
    if input.dtype is dtypes.float64:
        one = 1.0 / keep
    else:  # PyTorch divides in float32: rounding a float64 quotient of float32 numbers gives the same
        (keep32,) = struct.unpack("<f", struct.pack("<f", keep))
        one = 1.0 / keep32
    return fill_bernoulli(out, keep, generator, one)
