"""Tensors of formats below eight bits: what is stored several a byte, computed with one code a byte.

A packed tensor's storage is really packed, and kernels do not read it in place: an operator that meets one raises `PackedOperand` (from the border to
the kernels, before anything is written), and runs again on unpacked operands, whose dtype is `dtype.unpacked`; results of that dtype are packed. So
moving data moves codes exactly, and arithmetic rounds once, when a kernel stores its result. Holds that second call, and copies. Packing itself is
packing.py's; ordinary dtypes never come here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import dispatch
from ..autograd import backward, record, tracking
from ..dtypes import DType, all_dtypes, float32, promote
from ..errors import PackedOperand
from ..layout import Layout
from ..packing import pack_into, packed, unpacked
from ..tensor import Spec, Tensor, empty_of, wrap
from . import table

CHUNK = 1 << 18  # elements of a large copy that are converted at a time: whole bytes in every format


# ---- copies ------------------------------------------------------------------------------------------------------------------


def copy(x: Tensor, dtype: DType, layout: Any = None) -> Tensor:
    """`self_copy` where x or the result is packed."""
    spec = x.spec
    if dtype.packed and spec.is_plain and spec.numel > 2 * CHUNK and spec.is_contiguous and (layout is None or layout is spec.layout):
        return _packed_in_chunks(x, dtype)
    codes = unpacked(x) if x.spec.dtype.packed else x
    if codes.spec.dtype is not dtype.unpacked or layout is not None and not dtype.packed:
        codes = table.self_copy(codes, dtype.unpacked, layout)
    return packed(codes, layout) if dtype.packed else codes


def _packed_in_chunks(x: Tensor, dtype: DType) -> Tensor:
    """A large contiguous tensor packed some elements at a time, so that their codes stay in the cache between the two kernels."""
    out = empty_of(Spec.of(x.spec.layout, dtype, x.spec.device))
    for start in range(0, x.spec.numel, CHUNK):
        layout = Layout.contiguous((min(CHUNK, x.spec.numel - start),))
        source, target = (wrap(t.spec.with_layout(layout), t.mem, t.ptr + start * t.spec.itemsize) for t in (x, out))
        assign(target, source)
    return out


def assign(destination: Tensor, source: Tensor) -> None:
    """`assign` where the destination or the source is packed: broadcast, cast, not recorded."""
    if source.spec.dtype.packed:
        source = unpacked(source)
    if not destination.spec.dtype.packed:
        table.assign(destination, source)
        return
    codes = destination.spec.dtype.unpacked
    pack_into(destination, source if source.spec.dtype is codes else table.self_copy(source, codes))


# ---- as operators of the graph -------------------------------------------------------------------------------------------------


@backward("Unpack")
def UnpackBackward0(node, g):
    return (_packed(g) if g.dtype.unpacked is g.dtype and g.dtype.stored is not g.dtype else g,)


@backward("Pack")
def PackBackward0(node, g):
    return (_unpacked(g) if g.dtype.packed else g,)


def _unpacked(t: Tensor) -> Tensor:
    out = unpacked(t)
    if tracking(t):
        record(UnpackBackward0, (t,), out)
    return out


def _packed(t: Tensor) -> Tensor:
    out = packed(t)
    if tracking(t):
        record(PackBackward0, (t,), out)
    return out


# ---- an operator's second call ----------------------------------------------------------------------------------------------------


def call_unpacked(call: Callable[..., Any], args: tuple, kwargs: dict, error: Exception) -> Any:
    """`call` on unpacked operands, its results packed again; what it wrote into an operand is written back. Raises `error` where nothing is packed.

    Where an operator is not there for floats below 16 bits at all, it is computed in float32 and rounded to their format.
    """
    if not isinstance(error, PackedOperand):
        if not any(t.dtype in SMALL for t in dispatch.tensors_in((args, kwargs))):
            raise error
        try:
            return in_float32(call, args, kwargs)
        except Exception:
            raise error from None
    swap = _Swap()
    new_args, new_kwargs = swap.into(args), swap.into(kwargs)
    if not swap.found:
        raise error
    try:
        return swap.call(call, new_args, new_kwargs)
    except Exception as failure:
        failure.__suppress_context__ = True  # that the first call met packed elements is no part of what went wrong
        raise


dispatch.call_unpacked = call_unpacked


SMALL = frozenset(kind for d in all_dtypes() if d.encoding is not None and d.bits <= 8 for kind in (d, d.unpacked))  # floats below 16 bits


def in_float32(call: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """A function of several kernels on floats below 16 bits: computed in float32, and its float32 results rounded once. Raises PyTorch's RuntimeError where
    formats meet that do not promote."""
    formats = {t.spec.dtype for t in dispatch.tensors_in((args, kwargs)) if t.spec.dtype.is_floating_point}
    swap = _Widened(functools.reduce(promote, formats))
    return swap.call(call, swap.into(args), swap.into(kwargs))


# Operators of several kernels, and those that ask for float32 by another error than NotImplementedError.
_ROUND_ONCE = """addr cross linalg_cross trapezoid cumulative_trapezoid logit ldexp nanmean nanquantile cross_entropy logdet slogdet linalg_slogdet inverse
    linalg_inv linalg_inv_ex linalg_tensorinv pinverse linalg_pinv linalg_matrix_rank""".split()


def round_once() -> None:
    """Has the operators above computed in float32 for floats below 16 bits."""
    for name in _ROUND_ONCE:
        entry = table.TABLE[name]
        entry.call = _rounding_once(entry.call)


def _rounding_once(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def once(*args, **kwargs):
        if args and isinstance(args[0], Tensor) and args[0].spec.dtype in SMALL:
            return in_float32(call, args, kwargs)
        return call(*args, **kwargs)

    return once


class _Swap:
    """Replaces packed tensors and packed dtypes in nests of arguments by unpacked ones, and back in results; an operand met twice is unpacked once."""

    def __init__(self):
        self.tensors: dict[int, tuple[Tensor, Tensor]] = {}
        self.found = False

    def call(self, call: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        versions = {key: twin.mem.version for key, (_, twin) in self.tensors.items()}
        result = call(*args, **kwargs)
        for key, (original, twin) in self.tensors.items():
            if twin.mem.version != versions[key]:
                if original.shape != twin.shape:  # resized
                    table.TABLE["resize_"].call(original, tuple(twin.shape))
                table.adopt(original, self.narrow(twin, original.spec.dtype), "in-place operation")
        return self.back(result)

    def swaps(self, dtype: DType) -> bool:
        return dtype.packed

    def widen(self, t: Tensor) -> Tensor:
        return _unpacked(t)

    def narrow(self, t: Tensor, dtype: DType | None = None) -> Tensor:
        return t if t.spec.dtype.stored is t.spec.dtype else _packed(t)

    def into(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            if not self.swaps(value.spec.dtype):
                return value
            self.found = True
            kept = self.tensors.get(id(value))
            if kept is None:
                kept = self.tensors[id(value)] = value, self.widen(value)
            return kept[1]
        if isinstance(value, DType):
            self.found = self.found or value.packed
            return value.unpacked
        if isinstance(value, (tuple, list)) and value:
            return _rebuilt(value, [self.into(item) for item in value])
        if isinstance(value, dict) and value:
            return {key: self.into(item) for key, item in value.items()}
        return value

    def back(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            for original, twin in self.tensors.values():
                if value is twin:
                    return original
            return self.narrow(value)
        if isinstance(value, (tuple, list)):
            return _rebuilt(value, [self.back(item) for item in value])
        return value


class _Widened(_Swap):
    """The same with float32 in the place of small floats; results of float32 are rounded to `dtype`."""

    def __init__(self, dtype: DType):
        super().__init__()
        self.dtype = dtype

    def swaps(self, dtype: DType) -> bool:
        return dtype in SMALL

    def widen(self, t: Tensor) -> Tensor:
        return table.TABLE["to"].call(t, float32)

    def narrow(self, t: Tensor, dtype: DType | None = None) -> Tensor:
        return table.TABLE["to"].call(t, dtype or self.dtype) if t.spec.dtype is float32 else t


def _rebuilt(value: Any, items: list) -> Any:
    """`value` with other items; itself where none changed."""
    if all(new is old for new, old in zip(items, value)):
        return value
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
