"""Questions about dtypes and devices: promotion, kinds, limits, conversion, and what the namespace can do."""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..dtypes import DType
from ..tensor import Tensor

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",), "signed integer": _SIGNED, "unsigned integer": _UNSIGNED, "integral": _SIGNED + _UNSIGNED, "real floating": _REAL,
    "complex floating": _COMPLEX, "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}  # fmt: skip


def _promote(a: DType, b: DType) -> DType:
    """The standard's table, which has rows for unsigned integers that torch refuses. Raises TypeError where the standard has none."""
    if a.kind == b.kind or "bool" not in (a.kind, b.kind) and not a.kind.endswith("int") and not b.kind.endswith("int"):
        return dtypes.promote(a, b) if a.kind != "uint" else a if a.bits >= b.bits else b
    if {a.kind, b.kind} != {"int", "uint"}:
        raise TypeError(f"{a} and {b} do not promote: the standard leaves mixed kinds undefined; convert one with astype()")
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    if unsigned.bits >= 64:
        raise TypeError(f"{a} and {b} do not promote: no integer dtype holds both; convert one with astype()")
    return signed if signed.bits > unsigned.bits else dtypes.names()[f"int{2 * unsigned.bits}"]


def of(*operands: Any) -> DType:
    """The standard's result dtype of tensors, dtypes and at least one of them beside Python numbers: dimensions play no part."""
    found: DType | None = None
    for operand in operands:
        if isinstance(operand, (Tensor, DType)):
            dtype = operand.dtype if isinstance(operand, Tensor) else operand
            found = dtype if found is None else _promote(found, dtype)
    if found is None:
        raise ValueError("at least one array or dtype is required")
    for operand in operands:
        if isinstance(operand, (Tensor, DType)):
            continue
        kind = type(operand)
        if kind not in (bool, int, float, complex):
            raise TypeError(f"expected arrays, dtypes or Python numbers, but got {kind.__name__}")
        if kind is complex and (found.is_floating_point or found.is_complex):
            found = found.to_complex()
        elif not (kind is bool and found is dtypes.bool_ or kind is int and found is not dtypes.bool_ or kind is float and (found.is_floating_point or found.is_complex)):
            raise TypeError(f"a Python {kind.__name__} does not combine with {found}: the standard leaves it undefined")
    return found


def result_type(*arrays_and_dtypes: Tensor | DType | bool | int | float | complex) -> DType:
    """The dtype that arrays, dtypes and Python numbers promote to together."""
    return of(*arrays_and_dtypes)


def can_cast(from_: DType | Tensor, to: DType, /) -> bool:
    """Whether promotion alone gets from one dtype to the other."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    if not isinstance(source, DType) or not isinstance(to, DType):
        raise TypeError(f"can_cast() takes an array or dtype and a dtype, not {type(from_).__name__} and {type(to).__name__}")
    order = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}
    if order[source.kind] != order[to.kind]:
        return (source, to) == (dtypes.bool_, to) and to is dtypes.bool_
    if source.kind == to.kind:
        return source.bits <= to.bits
    return source.kind == "uint" and source.bits < to.bits


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether a dtype is of a kind: "bool", "integral", "real floating", …, a dtype, or a tuple of those."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if kind not in KINDS:
        raise ValueError(f"unknown kind of dtype {kind!r}: choose from {', '.join(map(repr, KINDS))}")
    return dtype.name in KINDS[kind]


class Limits:
    """What finfo and iinfo return: the fields that the standard names."""

    def __init__(self, **fields: Any):
        self.__dict__.update(fields)

    def __repr__(self) -> str:
        return f"Limits({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


def finfo(type: DType | Tensor, /) -> Limits:
    """bits, eps, max, min, smallest_normal and dtype of a floating-point dtype."""
    found = dtypes.finfo(type.dtype if isinstance(type, Tensor) else type)
    return Limits(bits=found.bits, eps=found.eps, max=found.max, min=found.min, smallest_normal=found.smallest_normal, dtype=dtypes.names()[found.dtype])


def iinfo(type: DType | Tensor, /) -> Limits:
    """bits, max, min and dtype of an integer dtype."""
    found = dtypes.iinfo(type.dtype if isinstance(type, Tensor) else type)
    return Limits(bits=found.bits, max=found.max, min=found.min, dtype=dtypes.names()[found.dtype])


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """The array in another dtype; the array itself where nothing changes and copy is False."""
    if x.dtype.is_complex and not dtype.is_complex and dtype is not dtypes.bool_:
        raise TypeError(f"a complex array does not convert to {dtype}: take its real part")
    out = x.to(dtype) if device is None else x.to(device).to(dtype)
    return x.clone() if copy and out is x else out


class _Info:
    """What the namespace can do, as the standard asks."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        return dtypes.get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        floating = dtypes.get_default_dtype()
        return {"real floating": floating, "complex floating": floating.to_complex(), "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        if kind is None:
            names = [name for group in ("bool", "numeric") for name in KINDS[group]]
        else:
            for one in kind if isinstance(kind, tuple) else (kind,):
                if one not in KINDS:
                    raise ValueError(f"unknown kind of dtype {one!r}: choose from {', '.join(map(repr, KINDS))}")
            names = [name for one in (kind if isinstance(kind, tuple) else (kind,)) for name in KINDS[one]]
        return {name: dtypes.names()[name] for name in names}

    def devices(self) -> tuple[Any, ...]:
        return dtypes.CPU, dtypes.META


def __array_namespace_info__() -> _Info:
    """Capabilities, devices, default and available dtypes of the namespace."""
    return _Info()
