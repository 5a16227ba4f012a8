"""Operators that draw random numbers: creation (`rand`, `randn`, `randint`, …), in-place fills (`normal_`, `uniform_`, …), sampling, dropout's mask.

Every result equals PyTorch's for the same seed, bit for bit: fills are serial and in memory order. The kernels are in kernels/random.py, the state is in
generator.py. Holds no distributions as objects.
"""
from __future__ import annotations

import math
import struct
from typing import Any

from .. import dtypes
from ..autograd import backward, check_inplace, no_grad, record, record_inplace, tracking
from ..kernels import random as kernels
from ..layout import Layout, broadcast_shapes, result_strides
from ..tensor import Spec, Tensor, empty, empty_of, wrap
from . import table
from .generator import Generator, default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .table import TABLE, operator

__all__ = ["Generator", "default_generator", "dropout_mask", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

_KIND = {dtypes.float32: "float", dtypes.float64: "double"}
_HALF = (dtypes.float16, dtypes.bfloat16)
_C_NAMES = {"uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long", "bool": "bool"}


# ---- filling a tensor ---------------------------------------------------------------------------------------------------

def _memory_order(x: Tensor) -> Layout:
    """The layout of x with its dimensions in the order of memory (widest stride first): the order in which fills draw."""
    layout = x.spec.layout
    if any(stride == 0 and size > 1 for size, stride in zip(layout.shape, layout.strides)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before "
            "performing the operation."
        )
    if layout.is_contiguous:
        return layout
    return layout.permute(sorted(range(layout.ndim), key=lambda d: -layout.strides[d]))


def _fill(x: Tensor, generator: Generator | None, dtype: dtypes.DType, draw) -> Tensor:
    """Fills x in memory order: draw(state, address, n) writes n numbers of `dtype` at an address; other dtypes and gaps are copied to from a fresh block."""
    layout = _memory_order(x)
    spec = x.spec
    if spec.is_meta or not spec.numel:
        return x
    generator = _generator(generator)
    direct = dtype is spec.dtype and layout.is_contiguous
    target = x if direct else empty(layout.shape, dtype, dtypes.CPU)
    with generator.lock:
        draw(generator.state, target.ptr, spec.numel)
    if not direct:
        table.assign(wrap(spec.with_layout(layout), x.mem, x.ptr), target)
    return x


def _generator(generator: Generator | None) -> Generator:
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator


@backward("Fill")
def RandomFillBackward0(node, g):
    """The values were replaced: nothing of the gradient reaches what was there."""
    return (TABLE["zeros_like"].call(g),)


def _in_place(x: Tensor, fill, *args) -> Tensor:
    """x filled, its version bumped, its history cut."""
    check_inplace(x)
    fill(x, *args)
    x.mem.version += 1
    if tracking(x):
        record_inplace(RandomFillBackward0, (x,), x)
    return x


def _floating(x: Tensor, kernel: str) -> dtypes.DType:
    """The dtype that a floating fill of x is drawn in. Raises NotImplementedError as PyTorch does for other dtypes."""
    if x.dtype in _KIND:
        return x.dtype
    if x.dtype in _HALF:
        return dtypes.float32
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{x.dtype.scalar_name}'\nFill a float tensor and convert it: torch.empty(...).to({x.dtype}).")


def _by_kernel(name: str, x: Tensor, generator, dtype, *parameters) -> Tensor:
    kind = _KIND[dtype]
    return _fill(x, generator, dtype, lambda state, at, n: kernels.fill(name, kind, n, state, at, n, *parameters))


def _normal(x: Tensor, mean: float, std: float, generator) -> Tensor:
    dtype = _floating(x, "normal_kernel_cpu")
    if not x.spec.is_contiguous or x.spec.numel < 16:
        return _by_kernel("normal_scalar", x, generator, dtype, mean, std)
    kind, half = _KIND[dtype], x.dtype in _HALF

    def draw(state, at, n):
        whole = n - n % 16 if half else n  # 16-bit floats draw block by block: no words for the rest, which the last block redoes
        kernels.fill("normal_blocks", kind, whole, state, at, whole, mean, std)
        if whole < n:
            kernels.fill("normal_blocks", kind, 16, state, at + (n - 16) * 4, 16, mean, std)

    return _fill(x, generator, dtype, draw)


def _uniform(x: Tensor, low: float, high: float, generator) -> Tensor:
    dtype = _floating(x, "check_uniform_bounds")
    if x.dtype not in _HALF:
        return _by_kernel("uniform", x, generator, dtype, low, high)
    _by_kernel("uniform", x, generator, dtype, low, high)
    if not x.spec.is_meta:
        low, high = _rounded(low, x.dtype), _rounded(high, x.dtype)
        with no_grad():  # what rounds to the upper bound in 16 bits becomes the lower one
            TABLE["masked_fill_"].call(wrap(x.spec, x.mem, x.ptr), TABLE["eq"].call(x, high), low)
    return x


def _rounded(value: float, dtype: dtypes.DType) -> float:
    """value as dtype holds it."""
    t = empty((), dtype, dtypes.CPU)
    source = empty((), dtypes.float32, dtypes.CPU)
    memoryview(source.mem)[:4] = struct.pack("<f", value)
    table.assign(t, source)
    return t.item()


def _bernoulli(x: Tensor, p: float, generator, one: float = 1.0) -> Tensor:
    if x.dtype in _KIND:
        return _by_kernel("bernoulli", x, generator, x.dtype, p, one)
    if one != 1.0:
        return _by_kernel("bernoulli", x, generator, dtypes.float32, p, one)
    drawn = x.dtype if x.dtype.itemsize == 1 and not x.dtype.is_floating_point else dtypes.uint8
    return _fill(x, generator, drawn, lambda state, at, n: kernels.fill("bernoulli", "i8", n, state, at, n, p, 1.0))


def _integers(x: Tensor, low: int, extent: int, generator) -> Tensor:
    """Integers low + draw mod extent."""
    kind = "i64" if extent >= 1 << 28 else "i32"
    return _fill(x, generator, dtypes.int64, lambda state, at, n: kernels.fill("integers", kind, n, state, at, n, _signed(extent), low))


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


# ---- in-place fills: tensor methods -------------------------------------------------------------------------------------

@operator("normal_", function=False)
def normal_(input, mean=0.0, std=1.0, *, generator=None):
    """Fills with normal numbers of the given mean and standard deviation."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {_plain(std)}")
    return _in_place(input, _normal, float(mean), float(std), generator)


@operator("uniform_", function=False)
def uniform_(input, *args, generator=None, **bounds):
    """`uniform_(from=0, to=1)`: fills with numbers from [from, to)."""
    low, high = _from_to(args, bounds, 0.0, 1.0)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={_plain(low)} > to={_plain(high)}")
    if input.dtype.is_floating_point:
        limits = dtypes.finfo(input.dtype)
        if not (limits.min <= low <= limits.max and limits.min <= high <= limits.max):
            raise RuntimeError("from and to are out of bounds for " + input.dtype.scalar_name)
        if high - low > limits.max:
            raise RuntimeError(
                f"uniform_ expects to-from <= std::numeric_limits<{input.dtype.scalar_name}>::max(), but found to={_plain(high)} and from={_plain(low)} "
                "which result in to-from to exceed the limit"
            )
    return _in_place(input, _uniform, float(low), float(high), generator)


def _from_to(args: tuple, named: dict, low: Any, high: Any) -> tuple:
    """The arguments `from` and `to`: the first is a keyword of Python, so it can only be spelt in a dictionary."""
    values = {"from": low, "to": high, **dict(zip(("from", "to"), args)), **named}
    if len(values) > 2 or len(args) > 2:
        raise TypeError(f"expected from and to, but got {[*args, *named]}")
    return values["from"], values["to"]


def _plain(value: float) -> str:
    return f"{value:g}"


@operator("bernoulli_", function=False)
def bernoulli_(input, p=0.5, *, generator=None):
    """Fills with 1 with probability p (a number, or a tensor that broadcasts to the input), else 0."""
    if isinstance(p, Tensor):
        return _in_place(input, _bernoulli_tensor, p, generator)
    _check_probability(p)
    return _in_place(input, _bernoulli, float(p), generator)


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={_plain(p)}")


def _bernoulli_tensor(out: Tensor, p: Tensor, generator) -> Tensor:
    """1 where a uniform number (24 bits, 53 for float64 p) is below the element of p."""
    if not p.dtype.is_floating_point:
        raise NotImplementedError(f"\"bernoulli_tensor_cpu_p_\" not implemented for '{p.dtype.scalar_name}'\nProbabilities are floating-point: p.float().")
    if out.spec.is_meta:
        return out
    with no_grad():
        if p.numel() and not 0 <= p.min().item() <= p.max().item() <= 1:
            raise RuntimeError(
                "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement "
                "request to PyTorch.)"
            )
        drawn = p.dtype if p.dtype is dtypes.float64 else dtypes.float32
        u = empty_of(Spec.of(result_strides(out.shape, out.spec.layout), drawn, dtypes.CPU))
        _uniform(u, 0.0, 1.0, generator)
        table.assign(out, TABLE["lt"].call(u, p))
    return out


@operator("exponential_", function=False)
def exponential_(input, lambd=1.0, *, generator=None):
    """Fills with exponential numbers of rate lambd."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={_plain(lambd)}")
    return _in_place(input, lambda x: _by_kernel("exponential", x, generator, _floating(x, "exponential_cpu"), -1.0 / lambd, 0.0))


@operator("geometric_", function=False)
def geometric_(input, p, *, generator=None):
    """Fills with the number of trials until the first success of probability p."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={_plain(p)}")
    dtype = input.dtype if input.dtype in _KIND else dtypes.float64
    return _in_place(input, lambda x: _by_kernel("geometric", x, generator, dtype, float(p), 0.0))


@operator("cauchy_", function=False)
def cauchy_(input, median=0.0, sigma=1.0, *, generator=None):
    """Fills with Cauchy numbers."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={_plain(sigma)}")
    return _in_place(input, lambda x: _by_kernel("cauchy", x, generator, _floating(x, "cauchy_cpu"), float(median), float(sigma)))


@operator("log_normal_", function=False)
def log_normal_(input, mean=1.0, std=2.0, *, generator=None):
    """Fills with exp of normal numbers of the given mean and standard deviation."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={_plain(std)}")
    return _in_place(input, lambda x: _by_kernel("log_normal", x, generator, _floating(x, "log_normal_cpu"), float(mean), float(std)))


@operator("random_", function=False)
def random_(input, *args, generator=None, **bounds):
    """`random_()`, `random_(to)`, `random_(from, to)`: fills with integers from [from, to); without bounds, from all non-negative ones of the dtype."""
    if len(args) == 1 and not bounds:
        args = (0, args[0])
    low, high = _from_to(args, bounds, None, None)
    dtype = input.dtype
    if low is None and high is None:
        if dtype is dtypes.bool_:
            mask, wide = 1, False
        elif dtype.is_floating_point:
            wide = dtype is dtypes.float64
            return _in_place(input, _integers_mod, (1 << _digits(dtype)) + 1, wide, generator)
        else:
            mask, wide = dtypes.iinfo(dtype).max, dtype.itemsize == 8
        kind = "i64" if wide else "i32"
        fill = lambda x: _fill(x, generator, dtypes.int64, lambda state, at, n: kernels.fill("bits", kind, n, state, at, n, mask))
        return _in_place(input, fill)
    low = 0 if low is None else int(low)
    if high is None:
        high = (1 << _digits(dtype)) + 1 if dtype.is_floating_point else 2 if dtype is dtypes.bool_ else dtypes.iinfo(dtype).max + 1
    high = int(high)
    _check_range(low, high, dtype)
    return _in_place(input, _integers, low, high - low, generator)


def _integers_mod(x: Tensor, extent: int, wide: bool, generator) -> Tensor:
    kind = "i64" if wide else "i32"
    return _fill(x, generator, dtypes.int64, lambda state, at, n: kernels.fill("integers", kind, n, state, at, n, extent, 0))


def _digits(dtype: dtypes.DType) -> int:
    """Bits of the significand, the implicit one included: integers up to 2^digits are exact."""
    return 1 - round(math.log2(dtypes.finfo(dtype).eps))


def _check_range(low: int, high: int, dtype: dtypes.DType) -> None:
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype.is_floating_point:
        least, most, name = dtypes.finfo(dtype).min, dtypes.finfo(dtype).max, dtype.scalar_name
    else:
        least, most = (0, 1) if dtype is dtypes.bool_ else (dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max)
        name = _C_NAMES.get(dtype.name, dtype.name)
    if not least <= low <= most:
        raise RuntimeError(f"from is out of bounds for {name}")
    if not least <= high - 1 <= most:
        raise RuntimeError(f"to - 1 is out of bounds for {name}")


# ---- creation -----------------------------------------------------------------------------------------------------------

def _size(size: tuple, named: Any = None) -> tuple[int, ...]:
    """rand(2, 3), rand((2, 3)), rand(size=(2, 3))."""
    if named is not None:
        size = named
    elif len(size) == 1 and not hasattr(size[0], "__index__"):
        size = size[0]
    shape = tuple(int(s.__index__()) for s in size)
    if any(s < 0 for s in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    return shape


def _fresh(shape, dtype, device) -> Tensor:
    return empty(shape, dtype or dtypes.get_default_dtype(), dtypes.resolve_device(device))


def _leaf(t: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        if not (t.dtype.is_floating_point or t.dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        t._tracked = True
    return t


@operator("rand", method=False, out=True)
def rand(*size, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **named):
    """Uniform numbers from [0, 1), shape `size`."""
    x = _fresh(_size(size, **_named(named)), dtype, device)
    return _leaf(_uniform(x, 0.0, 1.0, generator), requires_grad)


@operator("randn", method=False, out=True)
def randn(*size, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, **named):
    """Standard normal numbers, shape `size`."""
    x = _fresh(_size(size, **_named(named)), dtype, device)
    return _leaf(_normal(x, 0.0, 1.0, generator), requires_grad)


def _named(named: dict) -> dict:
    unknown = set(named) - {"size", "names"}
    if unknown:
        raise TypeError(f"unexpected keyword argument '{min(unknown)}'")
    if named.get("names") is not None:
        raise NotImplementedError("named dimensions are not supported: drop names=")
    return {"named": named.get("size")}


@operator("randint", method=False, out=True)
def randint(*args, low=None, high=None, size=None, generator=None, dtype=dtypes.int64, layout=None, device=None, requires_grad=False, pin_memory=False):
    """`randint(low=0, high, size)`: integers from [low, high), shape `size`."""
    low, high, shape = _bounds_and_size("randint", args, low, high, size)
    dtype = dtype or dtypes.int64
    _check_range(low, high, dtype)
    return _leaf(_integers(_fresh(shape, dtype, device), low, high - low, generator), requires_grad)


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
    return low, high, _size((), size)


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
    return int(low or 0), int(high)


@operator("randperm", method=False, out=True)
def randperm(n, *, generator=None, dtype=dtypes.int64, layout=None, device=None, requires_grad=False, pin_memory=False):
    """The integers 0 … n − 1 in random order, shape [n]."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    dtype = dtype or dtypes.int64
    if n > _exact_up_to(dtype):
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
    x = _fresh((n,), dtype, device)
    kind = "short" if n < 0xFFFFFFFF // 20 else "long"
    return _leaf(_fill(x, generator, dtypes.int64, lambda state, at, count: kernels.fill("permutation", kind, count, state, at, count)), requires_grad)


def _exact_up_to(dtype: dtypes.DType) -> int:
    return 1 << _digits(dtype) if dtype.is_floating_point else dtypes.iinfo(dtype).max


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
    return _leaf(_uniform(_like(input, dtype, device, memory_format), 0.0, 1.0, generator), requires_grad)


@operator("randn_like", method=False)
def randn_like(input, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """Standard normal numbers, shaped as input."""
    return _leaf(_normal(_like(input, dtype, device, memory_format), 0.0, 1.0, generator), requires_grad)


@operator("randint_like", method=False)
def randint_like(input, *args, low=None, high=None, generator=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False):
    """`randint_like(input, low=0, high)`: integers from [low, high), shaped as input."""
    low, high = _bounds("randint_like", list(args), low, high)
    x = _like(input, dtype, device, memory_format)
    _check_range(low, high, x.dtype)
    return _leaf(_integers(x, low, high - low, generator), requires_grad)


# ---- sampling -----------------------------------------------------------------------------------------------------------

@operator("normal", method=False, out=True)
def normal(mean=0.0, std=1.0, size=None, *, generator=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Normal numbers: mean and std are numbers or tensors; for two numbers give the size."""
    if isinstance(std, Tensor):
        if std.numel() and not std.spec.is_meta and not TABLE["ge"].call(std, 0).all().item():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    elif std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {_plain(std)}")
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise TypeError("normal() received an invalid combination of arguments: two numbers need a size")
        return _leaf(_normal(_fresh(_size((), size), dtype, device), float(mean), float(std), generator), requires_grad)
    with no_grad():  # the draw is standard normal, then scaled and moved; only a number as std goes into the draw itself
        if not isinstance(std, Tensor):
            out = TABLE["add"].call(_normal(_like(mean, None, None, None), 0.0, float(std), generator), mean)
        else:
            like = std if not isinstance(mean, Tensor) else mean
            shape = broadcast_shapes(std.shape, like.shape)
            x = _like(like, None, None, None) if shape == like.shape else empty(shape, like.dtype, like.device)
            out = TABLE["add"].call(TABLE["mul"].call(_normal(x, 0.0, 1.0, generator), std), mean)
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
    """1 with the probability that the input's element gives (or p), else 0; shaped and typed as the input."""
    out = _like(input, None, None, None)
    if p is None:
        _bernoulli_tensor(out, input, generator)
    else:
        _check_probability(p)
        _bernoulli(out, float(p), generator)
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
            _by_kernel("exponential", q, generator, _floating(q, "exponential_cpu"), -1.0, 0.0)
            keys = TABLE["div"].call(input, q)
            if num_samples == 1:
                return keys.argmax(-1, keepdim=True)
            return keys.topk(num_samples, -1)[1]
        return _with_replacement(input, num_samples, shape, _generator(generator))


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
        kernels.fill("multinomial", _KIND[dtype], rows * samples, generator.state, weights.ptr, sums.ptr, out.ptr, rows, columns, samples)
    return out


# ---- dropout ------------------------------------------------------------------------------------------------------------

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
    return _bernoulli(out, keep, generator, one)
