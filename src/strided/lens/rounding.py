"""What an operator's rounding did to its results, by running it again in float64 on the same operands (`strided annotate --rounding`).

Holds the definition and the counting; lines and rows are trace.py's, the words wording.py's. Elements are counted as

- overflowed: infinite or NaN, where the float64 result is finite
- saturated: the format's largest number, where the float64 result lies half a step or more beyond it
- flushed: 0, where the float64 result is not, but smaller than the smallest normal number of the format
- subnormal: below the smallest normal number and not what float64 gives: fewer digits than the format has
- lost: fewer than half of the digits are right: the relative error is above 2^(-p/2), p being the bits of mantissa (the leading one counted) of the most
  precise operand: 24 for float32, 11 for float16, 8 for bfloat16. A cast is measured by the digits of what was cast
- cancelled: a sum smaller than 2^(-p/2) of what the magnitudes of its terms add up to: the rounding that its terms had before is more than half of
  its digits, however exact the sum itself is. Equal numbers whose difference is exactly 0 do not count
- absorbed: a term of a + b or a - b that is not 0 and changed nothing

An element is in one of the first five at most; the last two are facts about sums beside them. Float64 results have no reference and are not checked, nor
are views, plain copies, integers, complex numbers, and operators that draw random numbers.
"""
from __future__ import annotations

import math
import threading
from collections import Counter
from typing import Any

from ..autograd.modes import no_grad
from ..block_tensor import BlockTensor
from ..dispatch import Event, tensors_in
from ..dtypes import DType, float64
from ..ops import tensor
from ..ops.generator import Generator, default_generator
from ..tensor import Tensor

KINDS = ("overflowed", "saturated", "flushed", "subnormal", "lost", "cancelled", "absorbed")

_CASTS = frozenset("to half bfloat16 float double type type_as round_to stochastic_round".split())
_ADDS = {"add": 1, "sub": -1, "subtract": -1, "rsub": -1, "add_": 1, "sub_": -1, "subtract_": -1}  # sign of the second term beside the first's
_SUMS = frozenset("sum mean matmul mm bmm mv dot vdot inner linear addmm addmv baddbmm addbmm einsum tensordot conv1d conv2d conv3d cumsum".split())


class Rounding:
    """Looks at each operator before and after it runs; `after` returns what it counted, or None where there was nothing to compare."""

    def __init__(self) -> None:
        self.unchecked: Counter[str] = Counter()  # operators that could not be run again, by name
        self._seen = threading.local()  # `kept` and `drawn` of the operator that this thread is about to run

    def before(self, entry: Any, args: tuple, kwargs: dict) -> None:
        """Keeps what the operator is about to write over, and where the generator stands."""
        self._seen.drawn, self._seen.kept = _generator_state(), {}
        if entry.inplace_form or entry.writes or "out" in kwargs:
            with no_grad():
                self._seen.kept = {id(t): _wide(t) for t in tensors_in((args, kwargs)) if _is_real(t) and not t.is_meta}

    def after(self, event: Event) -> Counter[str] | None:
        """How many elements of one operator's results are of each of KINDS, and how many were "checked"."""
        wide, drawn = self._seen.kept, self._seen.drawn
        self._seen.kept = {}
        if event.kind in ("view", "create") or event.entry.moves and event.op not in _CASTS and event.op != "copy_":
            return None
        given = [t for t in tensors_in((event.args, event.kwargs)) if _is_real(t)]
        results = tensors_in(event.result) or given  # what returns nothing wrote into its operands
        checked = [t for t in results if _is_real(t) and not isinstance(t, BlockTensor) and t.dtype is not float64 and t.numel()]
        draws = drawn != _generator_state() or any(isinstance(a, Generator) for a in (*event.args, *event.kwargs.values()))
        if not given or not checked or draws or any(t.is_meta for t in given) or all(t.dtype is float64 for t in given):
            return None
        try:
            with no_grad():
                return _compared(event, given, wide)
        except Exception:  # the operator has no float64 form: that is said, and never fails the script
            self.unchecked[event.op] += 1
            return None


def _compared(event: Event, given: list[Tensor], wide: dict[int, Tensor]) -> Counter[str]:
    """Runs the operator again. `wide`: operands in float64 by the identity of the tensor, those that were written as they were before."""
    digits = max(_digits(t) for t in given)
    if event.op in _CASTS:
        results, references = tensors_in(event.result), [_widened(given[0], wide)]
    else:
        again = {key: t.clone() for key, t in wide.items()}  # it writes into them
        args, kwargs = _replaced((event.args, event.kwargs), again)
        references = tensors_in(event.function(*args, **kwargs))
        results = tensors_in(event.result)
        if not results:
            results, references = given, [again[id(t)] for t in given]
    if len(results) != len(references):
        raise ValueError("another number of results")
    found: Counter[str] = Counter()
    pairs = [(y, r) for y, r in zip(results, references) if _is_real(y) and y.dtype is not float64 and y.numel()]
    for y, r in pairs:
        found.update(compare(y, r, digits))
    if len(pairs) == 1:
        y, r = pairs[0]
        if event.op in _ADDS:
            one, two = _terms(event, wide)
            found["cancelled"] = _small(r, one.abs() + two.abs(), digits)
            value = y.detach().double()
            found["absorbed"] = _count(((two != 0) & (value == one) | (one != 0) & (value == two)) & (value.abs() < math.inf))
        elif event.op in _SUMS:
            args, kwargs = _replaced((event.args, event.kwargs), wide, magnitudes=True)
            found["cancelled"] = _small(r, tensors_in(event.function(*args, **kwargs))[0], digits)
    return found


def _small(r: Tensor, magnitudes: Tensor, digits: int) -> int:
    """Elements of a sum that are small against its terms, exact zeros left out."""
    return _count((r.abs() * 2.0 ** (digits / 2) < magnitudes) & (r != 0) & (magnitudes < math.inf))


def _terms(event: Event, wide: dict[int, Tensor]) -> tuple[Tensor, Tensor]:
    """The two terms of a + alpha·b or a - alpha·b, in float64."""
    (first, second, *rest), kwargs = _replaced((event.args, event.kwargs), wide)
    one, two = (t.double() if isinstance(t, Tensor) else tensor(float(t), dtype=float64) for t in (first, second))
    alpha = kwargs.get("alpha", rest[0] if rest else 1)
    return (one * alpha, -two) if event.op == "rsub" else (one, two * (alpha * _ADDS[event.op]))


def compare(y: Tensor, r: Tensor, digits: int) -> Counter[str]:
    """Counts a result y against its float64 reference r of the same shape. digits: p of the definition above."""
    found: Counter[str] = Counter()
    largest, eps, normal, _ = y.dtype.limits  # type: ignore[misc]
    value, r = y.detach().double(), r.double()
    if value.shape != r.shape:
        raise ValueError("another shape")
    size, off = r.abs(), (value - r).abs()
    real, there = size < math.inf, value.abs() < math.inf
    step = 2.0 ** math.floor(math.log2(largest)) * eps
    overflowed = real & there.logical_not()
    saturated = real & there & (size >= largest + step / 2) if y.dtype.encoding.overflow == "saturate" else None
    flushed = real & (value == 0) & (r != 0) & (size < normal)
    subnormal = real & (value != 0) & (value.abs() < normal) & (off != 0)
    lost = real & there & (off > size * 2.0 ** (-digits / 2)) & (flushed | subnormal).logical_not()
    if saturated is not None:
        lost = lost & saturated.logical_not()
        found["saturated"] = _count(saturated)
    found["checked"] = y.numel()
    found["overflowed"], found["flushed"], found["subnormal"], found["lost"] = map(_count, (overflowed, flushed, subnormal, lost))
    return found


# ---- operands in float64 ---------------------------------------------------------------------------------------------------------


def _is_real(t: Tensor) -> bool:
    return isinstance(t, BlockTensor) or t.dtype.is_floating_point


def _digits(t: Tensor) -> int:
    """Bits of mantissa, the leading one counted."""
    return 11 if isinstance(t, BlockTensor) else t.dtype.encoding.mantissa + 1


def _wide(t: Tensor) -> Tensor:
    if isinstance(t, BlockTensor):
        return t.dequantize().double()
    t = t.detach()
    return t.clone() if t.dtype is float64 else t.double()


def _widened(t: Tensor, wide: dict[int, Tensor]) -> Tensor:
    found = wide.get(id(t))
    if found is None:
        found = wide[id(t)] = _wide(t)
    return found


def _replaced(value: Any, wide: dict[int, Tensor], magnitudes: bool = False) -> Any:
    """A nest of arguments with its floating-point tensors in float64 (their magnitudes, and those of numbers, where asked), and dtypes for results likewise."""
    if isinstance(value, Tensor):
        if not _is_real(value):
            return value
        t = _widened(value, wide)
        return t.abs() if magnitudes else t
    if isinstance(value, DType):
        return float64 if value.is_floating_point else value
    if isinstance(value, (tuple, list)):
        items = [_replaced(item, wide, magnitudes) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: _replaced(item, wide, magnitudes) for key, item in value.items()}
    if magnitudes and isinstance(value, float):
        return abs(value)
    return value


def _count(mask: Tensor) -> int:
    return int(mask.sum().item())


def _generator_state() -> bytes | None:
    """Every word of the default generator: whether an operator drew from it is whether they differ."""
    return None if default_generator._memory is None else bytes(default_generator._memory)
