"""Operands of every number format and the operations that promote them, as programs for either library. Run by test_promotion.py (against stored dtypes) and
torch_compare/promotion_cases.py (against PyTorch)."""

from __future__ import annotations

import base64
import json
import warnings
import zlib
from itertools import product
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden" / "promotion.json"

DTYPES = """bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128
float8_e4m3fn float8_e5m2 float8_e8m0fnu""".split()
NUMBERS = ("bool", "int", "float", "complex")
# An operand: a tensor of three elements, a 0-d tensor, a Python number.
KINDS = [("tensor", dtype) for dtype in DTYPES] + [("0-d", dtype) for dtype in DTYPES] + [("number", kind) for kind in NUMBERS]


def values(dtype, side):
    """Three numbers that the format holds exactly; no zero on the right, by which is divided."""
    if dtype == "bool":
        return [True, False, True] if side == 0 else [True, True, True]
    if dtype.startswith("uint"):
        return [[5, 0, 3], [2, 1, 3]][side]
    if dtype.startswith("int"):
        return [[5, 0, -3], [2, -1, 3]][side]
    if dtype == "float8_e8m0fnu":
        return [[4.0, 0.5, 2.0], [2.0, 1.0, 4.0]][side]
    if dtype.startswith("complex"):
        return [[1.5 + 2j, -1j, 3 + 0j], [2 - 1j, 1 + 0j, 0.5j]][side]
    return [[3.5, 0.0, -2.5], [2.0, -1.0, 1.5]][side]


def operand(library, kind, side):
    form, dtype = kind
    if form == "number":
        return {"bool": True, "int": [5, 3][side], "float": [3.5, 1.5][side], "complex": [1.5 + 2j, 2 - 1j][side]}[dtype]
    given = values(dtype, side)
    given = given if form == "tensor" else given[0]
    if dtype.startswith("float8"):
        return library.tensor(given).to(getattr(library, dtype))
    return library.tensor(given, dtype=getattr(library, dtype))


def _written(program):
    """A program that writes into its first operand: what is there afterwards belongs to the outcome, failing or not."""

    def run(library, x, y):
        program(library, x, y)
        return x

    return run


def _set(library, x, y):
    x[library.tensor([0, 2])] = y


def _set_mask(library, x, y):
    x[library.tensor([True, False, True])] = y


def _add(library, x, y):
    x += y


def _dtypes(name):
    def run(library, x, y):
        return getattr(library, name)(x.dtype, y.dtype)

    return run


def _function(name):
    return lambda library, x, y: getattr(library, name)(x, y)


def _condition(library):
    return library.tensor([True, False, True])


OPERATIONS = {
    "add": lambda library, x, y: x + y,
    "sub": lambda library, x, y: x - y,
    "mul": lambda library, x, y: x * y,
    "div": lambda library, x, y: x / y,
    "floor_divide": lambda library, x, y: x // y,
    "remainder": lambda library, x, y: x % y,
    "pow": lambda library, x, y: x**y,
    "eq": lambda library, x, y: x == y,
    "lt": lambda library, x, y: x < y,
    "and": lambda library, x, y: x & y,
    "or": lambda library, x, y: x | y,
    "xor": lambda library, x, y: x ^ y,
    "lshift": lambda library, x, y: x << y,
    "where": lambda library, x, y: library.where(_condition(library), x, y),
    "cat": lambda library, x, y: library.cat([x, y]),
    "stack": lambda library, x, y: library.stack([x, y]),
    **{name: _function(name) for name in "maximum fmin fmod atan2 copysign logical_and hypot true_divide xlogy rsub ge ne heaviside gcd nextafter result_type".split()},
    "div trunc": lambda library, x, y: library.div(x, y, rounding_mode="trunc"),
    "div floor": lambda library, x, y: library.div(x, y, rounding_mode="floor"),
    "add alpha": lambda library, x, y: library.add(x, y, alpha=2),
    "addcmul": lambda library, x, y: library.addcmul(x, y, y),
    "lerp": lambda library, x, y: library.lerp(x, y, 0.5),
    "clamp": lambda library, x, y: library.clamp(x, min=y),
    "masked_fill": lambda library, x, y: x.masked_fill(_condition(library), y),
    "index_put": lambda library, x, y: x.index_put((library.tensor([0]),), y),
    "full_like": lambda library, x, y: library.full_like(x, y),
    "dot": lambda library, x, y: x @ y,
    "isclose": lambda library, x, y: library.isclose(x, y),
    "add out": lambda library, x, y: library.add(y, y, out=x) if isinstance(x, library.Tensor) and isinstance(y, library.Tensor) else None,
    **{
        name: _written(program)
        for name, program in {
            "copy_": lambda library, x, y: x.copy_(y),
            "add_": _add,
            "sub_": lambda library, x, y: x.sub_(y),
            "mul_": lambda library, x, y: x.mul_(y),
            "div_": lambda library, x, y: x.div_(y),
            "pow_": lambda library, x, y: x.pow_(y),
            "floor_divide_": lambda library, x, y: x.floor_divide_(y),
            "remainder_": lambda library, x, y: x.remainder_(y),
            "eq_": lambda library, x, y: x.eq_(y),
            "bitwise_and_": lambda library, x, y: x.bitwise_and_(y),
            "fill_": lambda library, x, y: x.fill_(y),
            "masked_fill_": lambda library, x, y: x.masked_fill_(_condition(library), y),
            "setitem": _set,
            "setitem mask": _set_mask,
            "index_put_": lambda library, x, y: x.index_put_((library.tensor([0]),), y, accumulate=True),
            "index_add_": lambda library, x, y: x.index_add_(0, library.tensor([0, 0, 1]), y),
            "scatter_": lambda library, x, y: x.scatter_(0, library.tensor([2, 0]), y),
        }.items()
    },
    "promote_types": _dtypes("promote_types"),
    "can_cast": _dtypes("can_cast"),
    "to": lambda library, x, y: x.to(y.dtype),
    "type_as": lambda library, x, y: x.type_as(y),
}


def told(value):
    """A result as plain data: (dtype, values), or the value itself."""
    if hasattr(value, "tolist"):
        return str(value.dtype), value.tolist()
    return str(value), None


def outcome(library, operation, left, right):
    """(dtype, values) of the result, or the exception's name and the first operand's values after it. None where both operands are numbers.

    An exception that only says that a kernel lacks the format is "absent".
    """
    if left[0] == right[0] == "number":
        return None
    x = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            x, y = operand(library, left, 0), operand(library, right, 1)
            return told(OPERATIONS[operation](library, x, y))
        except Exception as error:
            return "absent" if isinstance(error, NotImplementedError) and "not implemented for" in str(error) else type(error).__name__, told(x)


_CODES = {"None": "-", "True": "+", "False": "!", "RuntimeError": "R", "TypeError": "T", "NotImplementedError": "N", "absent": "*", "IndexError": "I", "ValueError": "V", "AttributeError": "A"}
_CODES |= {f"torch.{dtype}": chr(ord("a") + place) for place, dtype in enumerate([*DTYPES, "complex32"])}  # one letter an outcome


def codes_of(outcomes):
    """The dtypes and exception names of outcomes, packed into a short text."""
    text = "".join(map(letter, outcomes))
    return base64.b85encode(zlib.compress(text.encode(), 9)).decode()


def stored():
    """{operation: {(left, right): the letter of its outcome}}"""
    return {name: dict(zip(product(KINDS, KINDS), zlib.decompress(base64.b85decode(text)).decode())) for name, text in json.loads(GOLDEN.read_text()).items()}


def letter(found):
    return _CODES.get(str(None if found is None else found[0]), "?")
