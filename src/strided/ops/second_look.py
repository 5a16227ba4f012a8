"""What a call of an operator that failed is looked at again for: packed operands, arguments that are no tensors, names that NumPy has for them, whole numbers that
are too large. Nothing here runs on a call that works.

Holds no operator. Which operands must be tensors is in signatures.py.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dispatch
from ..dispatch import NOT_TAKEN
from ..dtypes import DType
from ..errors import PackedOperand
from ..tensor import Tensor
from .overriding import refused

# Names that PyTorch takes beside its own: NumPy's for `dim`, `keepdim`, `other`, and several for the first operand.
_ALSO = {"axis": "dim", "keepdims": "keepdim", "x2": "other"}
_FIRST = frozenset(("input", "x", "a", "x1", "A"))
_SCALARS = frozenset("input other value fill_value s min max exponent alpha beta weight element test_element test_elements src p".split())  # any number, not only an int
_INTS = frozenset("dim dim0 dim1 dims k n diagonal offset chunks length start_dim end_dim dimension size shifts split_size num_samples".split())


def second_look(entry: Any, fn: Callable[..., Any], args: tuple, kwargs: dict, error: Exception) -> Any:
    """The result of a call that failed with `error` after all, or what it is to fail with."""
    try:
        if (answer := refused(entry, args, kwargs)) is not NOT_TAKEN:
            return answer
        if isinstance(error, PackedOperand):
            return dispatch.call_unpacked(fn, args, kwargs, error)
        told = str(error)
        # Whether the error names what is wrong itself.
        says = told.startswith(("can't assign", "Overflow when")) or entry.name == "__setitem__" and "cannot be converted" in told
        says = says or isinstance(error, TypeError) and ("argument '" in told or "invalid combination" in told)
        if not says and (wrong := wrong_argument(entry.name, fn, args, kwargs)) is not None:
            raise wrong from None
        if isinstance(error, TypeError) and told.startswith(_NO_NUMBER) and (wrong := no_number(entry.name, fn, args, kwargs, told)) is not None:
            raise wrong from None
        if isinstance(error, NotImplementedError):
            return dispatch.call_unpacked(fn, args, kwargs, error)
        if isinstance(error, AttributeError):
            raise wrong_kind(entry.name, fn, args, kwargs, error) from None
        if kwargs and isinstance(error, TypeError) and (named := own_names(entry, fn, args, kwargs)) is not kwargs:
            return entry.call(*args, **named)
        if not says and (wrong := too_large(entry.name, fn, args, kwargs) or no_int(entry.name, fn, args, kwargs, told)) is not None:
            raise wrong from None
        raise error
    finally:
        del error  # its traceback holds this frame: a cycle, in which the call's tensors would live until the garbage collector comes


def _parameters(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names that a function's arguments may be given by; `prepare`: the function that it hands all but the first to."""
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    inner = getattr(fn, "prepare", None)
    return names if inner is None else (*names, *_parameters(inner)[1:])


def own_names(entry: Any, fn: Callable[..., Any], args: tuple, kwargs: dict) -> dict:
    """The keyword arguments under the function's own names; `kwargs` itself where nothing is to be renamed, or a name is known to nobody."""
    names = _parameters(fn)
    found: dict[str, Any] = {}
    for key, value in kwargs.items():
        if key not in names:
            own = entry.names.get(key) or (names[0] if key in _FIRST and names else _ALSO.get(key))
            if own not in names or own in kwargs or own in found or own in names[: len(args)]:
                return kwargs
            key = own
        found[key] = value
    return kwargs if found.keys() == kwargs.keys() else found


def _named(fn: Callable[..., Any], args: tuple, kwargs: dict) -> list[tuple[str, Any]]:
    """(name, value) for every argument; those of a `*sizes` as one tuple, those of an `*args` one by one."""
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount]
    inner = getattr(fn, "prepare", None)
    if inner is not None:
        names = inner.__code__.co_varnames[: inner.__code__.co_argcount]
    found = [*zip(names, args), *kwargs.items()]
    if len(args) > len(names):
        rest = args[len(names) :]
        if code.co_varnames[code.co_argcount + code.co_kwonlyargcount] == "args":  # arguments of their own, which the function names itself
            return found + [("args", value) for value in rest]
        rest_of = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        found.append(("size" if rest_of in ("given", "size_given") else rest_of, rest[0] if len(rest) == 1 and isinstance(rest[0], (tuple, list)) else rest))
    return found


_TAKE_FLAGS = frozenset("var std var_mean std_mean squeeze".split())  # whose `dim` may be a flag that stands for another argument


def too_large(name: str, fn: Callable[..., Any], args: tuple, kwargs: dict) -> Exception | None:
    """PyTorch's error for an int of more than 64 bits among the arguments."""
    for argument, value in _named(fn, args, kwargs):
        if isinstance(value, (tuple, list)):
            for place, item in enumerate(value, 1):
                if isinstance(item, int) and not -(2**63) <= item < 2**63:
                    return TypeError(f"{name}(): argument '{argument}' failed to unpack the object at pos {place} with error \"Overflow when unpacking long long\"")
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            return OverflowError("int too big to convert") if argument in _SCALARS else ValueError(f"Overflow when unpacking long long\n  {name}(): {argument} = {value}")
    return None


def no_int(name: str, fn: Callable[..., Any], args: tuple, kwargs: dict, told: str) -> TypeError | None:
    """The TypeError for the first argument that must be an int (or several) and is not; None where all are. A None or a list may be one, unless Python `told` that its type does not do."""
    for place, (argument, value) in enumerate(_named(fn, args, kwargs), 1):
        if argument not in _INTS or value is None and "NoneType" not in told:
            continue
        several = isinstance(value, Tensor) and (value.ndim or value.dtype.kind not in ("int", "uint")) or value is True and name not in _TAKE_FLAGS
        if hasattr(value, "__index__") and not several:
            continue
        for at, item in enumerate(value if isinstance(value, (tuple, list)) else ()):
            if not hasattr(item, "__index__") and not isinstance(item, (tuple, list)):  # lists of dimensions, as tensordot's, are checked by who takes them
                return TypeError(f"{name}(): argument '{argument}' (position {place}) must be tuple of ints, but found element of type {type(item).__name__} at pos {at}")
        if not isinstance(value, (tuple, list)) or f"'{type(value).__name__}'" in told:
            return TypeError(f"{name}(): argument '{argument}' (position {place}) must be int, not {type(value).__name__}")
    return None


# What PyTorch's signatures ask of arguments by these names, in every operator that has them.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys("input tensor1 tensor2 mat mat1 mat2 vec vec1 vec2 batch1 batch2 mask".split(), ("Tensor", lambda v: v is None or hasattr(v, "data_ptr"))),  # None: see wrong_kind
    **dict.fromkeys("keepdim largest sorted descending upper unbiased invert".split(), ("bool", lambda v: v is None or isinstance(v, (bool, int)))),
    **dict.fromkeys("alpha beta eps rtol atol".split(), ("Number", lambda v: not isinstance(v, (str, bytes)) and not (isinstance(v, Tensor) and v.ndim))),
    "dtype": ("torch.dtype", lambda v: v is None or isinstance(v, DType) or v in (bool, int, float, complex)),
}
_NUMBERS_TOO = frozenset("float_power isin where result_type rsub searchsorted bucketize".split())  # their first operand may be a number


def wrong_argument(name: str, fn: Callable[..., Any], args: tuple, kwargs: dict) -> TypeError | None:
    """The TypeError for the first argument of a kind that no operator takes under its name; None where all may be what they are."""
    for place, (argument, value) in enumerate(_named(fn, args, kwargs), 1):
        kind, fits = _KINDS.get(argument, (None, None))
        if fits is not None and not (argument == "input" and name in _NUMBERS_TOO) and not fits(value):
            return TypeError(f"{name}(): argument '{argument}' (position {place}) must be {kind}, not {type(value).__name__}")
    return None


_NO_NUMBER = ("expected a tensor or a number, but got ", "a number is needed here, not ")  # what helpers say, who know no names


def no_number(name: str, fn: Callable[..., Any], args: tuple, kwargs: dict, told: str) -> TypeError | None:
    """The TypeError that names the argument which a helper took for a number, by the type that it `told`; None where no argument is of that type."""
    kind = told.rpartition(" ")[2]
    for place, (argument, value) in enumerate(_named(fn, args, kwargs), 1):
        if type(value).__name__ == kind and not isinstance(value, Tensor):
            return TypeError(f"{name}(): argument '{argument}' (position {place}) must be Number, not {kind}")
    return None


def wrong_kind(name: str, fn: Callable[..., Any], args: tuple, kwargs: dict, error: AttributeError) -> Exception:
    """The TypeError for an argument that was taken for a tensor and is none; the AttributeError itself where it comes from elsewhere."""
    for place, (argument, value) in enumerate(_named(fn, args, kwargs), 1):
        if value is error.obj and not isinstance(value, Tensor):
            return TypeError(f"{name}(): argument '{argument}' (position {place}) must be Tensor, not {type(value).__name__}")
        if isinstance(value, (tuple, list)) and any(item is error.obj and not isinstance(item, Tensor) for item in value):
            found = next(number for number, item in enumerate(value) if item is error.obj)
            return TypeError(f"expected Tensor as element {found} in argument {place - 1}, but got {type(error.obj).__name__}")
    return error
