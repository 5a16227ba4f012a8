"""Random numbers written into a tensor: `normal_`, `uniform_`, `bernoulli_`, `random_`, `exponential_`, `geometric_`, `cauchy_`, `log_normal_`.

Holds how a fill walks a tensor (in memory order, whatever the order of its dimensions). Fresh tensors and sampling are in random.py, the kernels in
kernels/random.py, the state in generator.py.
"""
from __future__ import annotations

import math
import struct
from typing import Any

from .. import dtypes
from ..autograd import backward, check_inplace, no_grad, record_inplace, tracking
from ..kernels import random as kernels
from ..layout import Layout, result_strides
from ..tensor import Spec, Tensor, empty, empty_of, wrap
from . import table
from .generator import Generator, default_generator
from .table import TABLE, operator

KIND = {dtypes.float32: "float", dtypes.float64: "double"}
SMALL = frozenset(d for d in dtypes.all_dtypes() if d.is_floating_point and d.bits <= 16 and d.encoding is not None)  # drawn in float32, then rounded
_C_NAMES = {
    "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long", "float32": "float", "float64": "double",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16",
}  # fmt: skip


# ---- filling a tensor ---------------------------------------------------------------------------------------------------

def memory_order(x: Tensor) -> Layout:
    """The layout of x with its dimensions in the order of memory (widest stride first): the order in which fills draw."""
    layout = x.spec.layout
    if layout.is_contiguous:
        return layout
    if any(stride == 0 and size > 1 for size, stride in zip(layout.shape, layout.strides)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before "
            "performing the operation."
        )
    return layout.permute(sorted(range(layout.ndim), key=lambda d: -layout.strides[d]))


def serial_fill(x: Tensor, generator: Generator | None, dtype: dtypes.DType, draw) -> Tensor:
    """Fills x in memory order: draw(state, address, n) writes n numbers of `dtype` at an address; other dtypes and gaps are copied to from a fresh block."""
    layout = memory_order(x)
    spec = x.spec
    if spec.is_meta or not spec.numel:
        return x
    generator = generator_of(generator)
    direct = dtype is spec.dtype and layout.is_contiguous
    target = x if direct else empty(layout.shape, dtype, dtypes.CPU)
    with generator.lock:
        draw(generator.address or generator.state(), target.ptr, spec.numel)
    if not direct:
        table.assign(wrap(spec.with_layout(layout), x.mem, x.ptr), target)
    return x


def generator_of(generator: Generator | None) -> Generator:
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return generator


@backward("Fill")
def RandomFillBackward0(node, g):
    """The values were replaced: nothing of the gradient reaches what was there."""
    return (TABLE["zeros_like"].call(g),)


def _in_place(x: Tensor, action, *args) -> Tensor:
    """x filled, its version bumped, its history cut."""
    check_inplace(x)
    action(x, *args)
    x.mem.version += 1
    if tracking(x):
        record_inplace(RandomFillBackward0, (x,), x)
    return x


def floating(x: Tensor, kernel: str) -> dtypes.DType:
    """The dtype that a floating fill of x is drawn in. Raises NotImplementedError as PyTorch does for other dtypes."""
    dtype = x.spec.dtype
    if dtype in KIND:
        return dtype
    if dtype in SMALL or dtype.stored in SMALL:
        return dtypes.float32
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{x.dtype.scalar_name}'\nFill a float tensor and convert it: torch.empty(...).to({x.dtype}).")


def by_kernel(name: str, x: Tensor, generator, dtype, *parameters) -> Tensor:
    kind, spec = KIND[dtype], x.spec
    if spec.dtype is dtype and spec.is_contiguous and spec.numel and not spec.is_meta:  # the usual case: straight into the tensor
        generator = generator_of(generator)
        with generator.lock:
            kernels.fill(name, kind, spec.numel, generator.address or generator.state(), x.ptr, spec.numel, *parameters)
        return x
    return serial_fill(x, generator, dtype, lambda state, at, n: kernels.fill(name, kind, n, state, at, n, *parameters))


def real_parts(x: Tensor) -> Tensor:
    """The real and imaginary parts of a complex tensor in its own memory, shape [*, 2]."""
    layout = x.spec.layout
    parts = Layout.of((*layout.shape, 2), (*(2 * stride for stride in layout.strides), 1))
    return wrap(Spec.of(parts, x.dtype.to_real(), x.device), x.mem, x.ptr)


def fill_normal(x: Tensor, mean: float, std: float, generator) -> Tensor:
    if x.spec.dtype.is_complex:
        fill_normal(real_parts(x), mean, std / math.sqrt(2.0), generator)
        return x
    dtype, spec = floating(x, "normal_kernel_cpu"), x.spec
    if not spec.is_contiguous or spec.numel < 16:
        return by_kernel("normal_scalar", x, generator, dtype, mean, std)
    if dtype is spec.dtype:
        return by_kernel("normal_blocks", x, generator, dtype, mean, std)

    def draw(state, at, n):
        whole = n - n % 16  # 16-bit floats draw block by block: no words for the rest, which the last block redoes
        kernels.fill("normal_blocks", "float", whole, state, at, whole, mean, std)
        if whole < n:
            kernels.fill("normal_blocks", "float", 16, state, at + (n - 16) * 4, 16, mean, std)

    return serial_fill(x, generator, dtype, draw)


def fill_uniform(x: Tensor, low: float, high: float, generator) -> Tensor:
    if x.spec.dtype.is_complex:
        fill_uniform(real_parts(x), low, high, generator)
        return x
    dtype = floating(x, "check_uniform_bounds")
    by_kernel("uniform", x, generator, dtype, low, high)
    if dtype is not x.spec.dtype and not x.spec.is_meta:  # what rounds to the upper bound in 16 bits becomes the lower one
        low, high = _rounded(low, x.dtype), _rounded(high, x.dtype)
        with no_grad():
            table.assign(x, TABLE["masked_fill"].call(x, TABLE["eq"].call(x, high), low))
    return x


def _rounded(value: float, dtype: dtypes.DType) -> float:
    """value as dtype holds it."""
    t = empty((), dtype, dtypes.CPU)
    source = empty((), dtypes.float32, dtypes.CPU)
    memoryview(source.mem)[:4] = struct.pack("<f", value)
    table.assign(t, source)
    return t.item()


def fill_bernoulli(x: Tensor, p: float, generator, one: float = 1.0) -> Tensor:
    if x.dtype in KIND:
        return by_kernel("bernoulli", x, generator, x.dtype, p, one)
    if one != 1.0:
        return by_kernel("bernoulli", x, generator, dtypes.float32, p, one)
    drawn = x.dtype if x.dtype.bits == 8 and not x.dtype.is_floating_point else dtypes.uint8
    return serial_fill(x, generator, drawn, lambda state, at, n: kernels.fill("bernoulli", "i8", n, state, at, n, p, 1.0))


def fill_integers(x: Tensor, low: int, extent: int, generator) -> Tensor:
    """Integers low + draw mod extent; extent 2^64 stands for every int64."""
    if extent == 1 << 64:
        return _fill_bits(x, "i64", -1, generator)
    kind = "i64" if extent >= 1 << 28 else "i32"
    return serial_fill(x, generator, dtypes.int64, lambda state, at, n: kernels.fill("integers", kind, n, state, at, n, _signed(extent), low))


def _fill_bits(x: Tensor, kind: str, mask: int, generator) -> Tensor:
    """The draws themselves (32 or 64 bits), masked."""
    return serial_fill(x, generator, dtypes.int64, lambda state, at, n: kernels.fill("bits", kind, n, state, at, n, mask))


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


# ---- in-place fills: tensor methods -------------------------------------------------------------------------------------

@operator("normal_", function=False)
def normal_(input, mean=0.0, std=1.0, *, generator=None):
    """Fills with normal numbers of the given mean and standard deviation."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {plain(std)}")
    return _in_place(input, fill_normal, float(mean), float(std), generator)


@operator("uniform_", function=False)
def uniform_(input, *args, generator=None, **bounds):
    """`uniform_(from=0, to=1)`: fills with numbers from [from, to)."""
    low, high = _from_to(args, bounds, 0.0, 1.0)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={plain(low)} > to={plain(high)}")
    if input.dtype.is_floating_point:
        limits = dtypes.finfo(input.dtype)
        for name, bound in (("from", low), ("to", high)):
            if not limits.min <= bound <= limits.max:
                raise RuntimeError(f"{name} is out of bounds for {_C_NAMES.get(input.dtype.name, input.dtype.name)}")
        if high - low > limits.max:
            raise RuntimeError(
                f"uniform_ expects to-from <= std::numeric_limits<{input.dtype.scalar_name}>::max(), but found to={plain(high)} and from={plain(low)} "
                "which result in to-from to exceed the limit"
            )
    return _in_place(input, fill_uniform, float(low), float(high), generator)


def _from_to(args: tuple, named: dict, low: Any, high: Any) -> tuple:
    """The arguments `from` and `to`: the first is a keyword of Python, so it can only be spelt in a dictionary."""
    values = {"from": low, "to": high, **dict(zip(("from", "to"), args)), **named}
    if len(values) > 2 or len(args) > 2:
        raise TypeError(f"expected from and to, but got {[*args, *named]}")
    return values["from"], values["to"]


def plain(value: float) -> str:
    return f"{value:g}"


@operator("bernoulli_", function=False)
def bernoulli_(input, p=0.5, *, generator=None):
    """Fills with 1 with probability p (a number, or a tensor that broadcasts to the input), else 0."""
    if input.dtype.is_complex:
        kernel = "tensor_cpu_self" if isinstance(p, Tensor) else "scalar_cpu"
        raise NotImplementedError(f"\"bernoulli_{kernel}_\" not implemented for '{input.dtype.scalar_name}': fill a real tensor and convert it")
    if isinstance(p, Tensor):
        return _in_place(input, fill_bernoulli_by, p, generator)
    check_probability(p)
    return _in_place(input, fill_bernoulli, float(p), generator)


def check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={plain(p)}")


def fill_bernoulli_by(out: Tensor, p: Tensor, generator) -> Tensor:
    """1 where a uniform number (24 bits, 53 for float64 p) is below the element of p."""
    if not p.dtype.is_floating_point:
        raise NotImplementedError(f"\"bernoulli_tensor_cpu_p_\" not implemented for '{p.dtype.scalar_name}'\nProbabilities are floating-point: p.float().")
    p = TABLE["expand"].call(p.detach(), out.shape)
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
        fill_uniform(u, 0.0, 1.0, generator)
        table.assign(out, TABLE["lt"].call(u, p))
    return out


def _continuous(x: Tensor, name: str) -> dtypes.DType:
    if not x.dtype.is_floating_point:
        raise RuntimeError(f"{name} distribution is a continuous probability distribution. dtype must be a floating point but you specified {_spelt(x.dtype, name)}")
    return floating(x, f"{name.lower()}_cpu")


def _spelt(dtype: dtypes.DType, name: str) -> str:
    return str(_C_NAMES.get(dtype.name, dtype.name)) if name == "Cauchy" else str(dtype.scalar_name)  # PyTorch's two messages differ in this


@operator("exponential_", function=False)
def exponential_(input, lambd=1.0, *, generator=None):
    """Fills with exponential numbers of rate lambd."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={plain(lambd)}")
    return _in_place(input, lambda x: by_kernel("exponential", x, generator, _continuous(x, "Exponential"), -1.0 / float(lambd), 0.0))


@operator("geometric_", function=False)
def geometric_(input, p, *, generator=None):
    """Fills with the number of trials until the first success of probability p."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={plain(p)}")
    dtype = input.dtype if input.dtype in KIND else dtypes.float64
    return _in_place(input, lambda x: by_kernel("geometric", x, generator, dtype, float(p), 0.0))


@operator("cauchy_", function=False)
def cauchy_(input, median=0.0, sigma=1.0, *, generator=None):
    """Fills with Cauchy numbers."""
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={plain(sigma)}")
    return _in_place(input, lambda x: by_kernel("cauchy", x, generator, _continuous(x, "Cauchy"), float(median), float(sigma)))


@operator("log_normal_", function=False)
def log_normal_(input, mean=1.0, std=2.0, *, generator=None):
    """Fills with exp of normal numbers of the given mean and standard deviation."""
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={plain(std)}")
    return _in_place(input, lambda x: by_kernel("log_normal", x, generator, floating(x, "log_normal_cpu"), float(mean), float(std)))


@operator("random_", function=False)
def random_(input, *args, generator=None, **bounds):
    """`random_()`, `random_(to)`, `random_(from, to)`: fills with integers from [from, to); without bounds, from all non-negative ones of the dtype."""
    if len(args) == 1 and not bounds:
        args = (0, args[0])
    low, high = _from_to(args, bounds, None, None)
    dtype = input.dtype
    if dtype.itemsize == 8 and dtype.kind == "uint" or dtype.is_complex:
        raise NotImplementedError(f"\"random_kernel_cpu\" not implemented for '{dtype.scalar_name}'\nFill an int64 tensor and convert it.")
    if low is None and high is None:
        if dtype.is_floating_point:
            return _in_place(input, _integers_mod, (1 << significand_bits(dtype)) + 1, dtype is dtypes.float64, generator)
        mask = 1 if dtype is dtypes.bool_ else dtypes.iinfo(dtype).max
        return _in_place(input, _fill_bits, "i64" if dtype.itemsize == 8 else "i32", mask, generator)
    low = 0 if low is None else integer("random_", low)
    if high is None:
        high = (1 << significand_bits(dtype)) + 1 if dtype.is_floating_point else 2 if dtype is dtypes.bool_ else dtypes.iinfo(dtype).max + 1
    else:
        high = integer("random_", high)
    check_range(low, high, dtype)
    return _in_place(input, fill_integers, low, high - low, generator)


def integer(name: str, value: Any) -> int:
    """A bound given as an int (or as something that counts as one). Raises TypeError for others, ValueError beyond 64 bits."""
    try:
        value = value.__index__()
    except AttributeError:
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({type(value).__name__}), but expected int bounds") from None
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    return value


def _integers_mod(x: Tensor, extent: int, wide: bool, generator) -> Tensor:
    kind = "i64" if wide else "i32"
    return serial_fill(x, generator, dtypes.int64, lambda state, at, n: kernels.fill("integers", kind, n, state, at, n, extent, 0))


def significand_bits(dtype: dtypes.DType) -> int:
    """Bits of the significand, the implicit one included: integers up to 2^digits are exact."""
    return 1 - round(math.log2(dtypes.finfo(dtype).eps))


def check_range(low: int, high: int, dtype: dtypes.DType) -> None:
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype is dtypes.int64 and -(1 << 63) <= low and high <= 1 << 63:
        return
    if dtype.is_floating_point:
        most = dtypes.finfo(dtype).max
        least = -most if dtype.is_signed else 0  # 0 is rounded to the smallest power of two, as in every conversion
    else:
        least, most = (0, 1) if dtype is dtypes.bool_ else (dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max)
    name = _C_NAMES.get(dtype.name, dtype.name)
    if not least <= low <= most:
        raise RuntimeError(f"from is out of bounds for {name}")
    if not least <= high - 1 <= most:
        raise RuntimeError(f"to - 1 is out of bounds for {name}")
