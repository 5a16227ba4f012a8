"""Block formats: low-precision elements that share a scale, one description a format; names, sizes, printing and kernels are derived from it.

Holds what the bytes mean and where they lie. Quantising and computing are operators (ops/blocks/) over kernels (kernels/block_text.py); the elements
themselves are number formats of dtypes.py.
"""

from __future__ import annotations

import difflib
from typing import NamedTuple

from .dtypes import DType, names

_D = names()


class NotOfBlocks(AttributeError, NotImplementedError):
    """Something was asked of a block format that only formats of single elements have."""


class Part(NamedTuple):
    """One of the tensors of bytes that a block tensor consists of: [*, blocks of a row, `nbytes`]."""

    name: str
    nbytes: int


class BlockFormat:
    """A block format: `block` elements along the last dimension lie together, each `group` of them under one scale. Formats of one name are equal.

    name; element: the DType of one element; block, group; scale: the DType of a group's scale; zero: what is taken off before scaling ("" nothing, "zero" a
    zero point a group, "min" a minimum a group that is added after scaling); bias: a constant zero point; unit: elements are multiples of 2**unit (integers
    under a power-of-two scale); tensor_scale: one float32 more for the whole tensor; order: how codes lie in their bytes (kernels/block_text.py);
    parts: the tensors of bytes; fields: (part, offset) of each field in them; emax: exponent of the largest element.

    Derived: `nbytes` of a block, `bits` a value, `values` of a group's scale.
    """

    is_floating_point, is_complex, is_signed, kind = True, False, True, "block"  # what a block tensor stands for: real numbers
    encoding = None  # its bits do not mean one number each

    def __init__(self, name: str, element: str, block: int, group: int, scale: str, order: str, parts, fields, *, zero="", bias=0, unit=0, tensor_scale=False, writable=True, doc=""):
        self.name, self.block, self.group, self.order = name, block, group, order
        self.element: DType = _D[element]
        self.scale: DType = _D[scale]
        self.parts: tuple[Part, ...] = tuple(Part(*p) for p in parts)
        self.fields: dict[str, tuple[int, int]] = fields
        self.zero, self.bias, self.unit, self.tensor_scale, self.writable, self.doc = zero, bias, unit, tensor_scale, writable, doc

    def __repr__(self):
        return f"torch.{self.name}"

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotOfBlocks(f"{self} is a format of blocks, whose elements have no place of their own ({name}): write x.dequantize() for a tensor of float32")

    def __eq__(self, other):
        return isinstance(other, BlockFormat) and other.name == self.name

    def __hash__(self):
        return hash(self.name)

    def __reduce__(self):
        return parse, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @property
    def scalar_name(self) -> str:
        """Its name in PyTorch's error messages."""
        return self.name

    @property
    def nbytes(self) -> int:
        """Bytes of one block, in all parts."""
        return sum(part.nbytes for part in self.parts)

    @property
    def bits(self) -> float:
        """Bits a value, scales included (a scale of the whole tensor is not)."""
        return 8 * self.nbytes / self.block

    @property
    def largest(self) -> float:
        """The largest element under a scale of 1."""
        e = self.element
        return e.limits[0] if e.kind == "float" else (2 ** (e.bits - 1) - 1) * 2.0**self.unit

    @property
    def emax(self) -> int:
        """Exponent of the largest element under a scale of 1."""
        import math

        return math.frexp(self.largest)[1] - 1

    def blocks(self, columns: int) -> int:
        """Blocks of a row of so many elements; the last one may be padded."""
        return -(-columns // self.block)

    @property
    def kernel(self) -> tuple:
        """What kernels are specialised on. `size` is the length of a block where it is short or fixed; else (0) it is data."""
        size = self.block if self.order in FIXED or self.block in (16, 32) else 0
        return self.order, self.element.name, self.scale.name, self.zero, self.bias, self.unit, self.tensor_scale, size, tuple(self.fields.items())


FIXED = ("k4", "k5", "k6", "halves", "halves+bits")  # orders of codes that are tied to a length of block


# ---- the formats ----------------------------------------------------------------------------------------------------------------


def _mx(name: str, element: str, doc: str, unit: int = 0) -> BlockFormat:
    """OCP microscaling: 32 elements under a power of two."""
    bits = _D[element].bits
    order = {4: "pairs", 6: "sixes", 8: "bytes"}[bits]
    return BlockFormat(name, element, 32, 32, "float8_e8m0fnu", order, (("elements", 4 * bits), ("scales", 1)), {"codes": (0, 0), "scale": (1, 0)}, unit=unit, doc=doc)


def _file(name: str, element: str, block: int, group: int, nbytes: int, order: str, fields: dict[str, int], **more) -> BlockFormat:
    """A block of GGUF files: all fields interleaved in one part."""
    return BlockFormat(name, element, block, group, more.pop("scale", "float16"), order, (("blocks", nbytes),), {key: (0, at) for key, at in fields.items()}, writable=False, **more)


_ALL: dict[str, BlockFormat] = {}
for _format in (
    _mx("mxfp4", "float4_e2m1fn", "OCP MXFP4; the layout of gpt-oss checkpoints"),
    _mx("mxfp6_e2m3", "float6_e2m3fn", "OCP MXFP6, more mantissa"),
    _mx("mxfp6_e3m2", "float6_e3m2fn", "OCP MXFP6, more range"),
    _mx("mxfp8_e4m3", "float8_e4m3fn", "OCP MXFP8, more mantissa"),
    _mx("mxfp8_e5m2", "float8_e5m2", "OCP MXFP8, more range"),
    _mx("mxint8", "int8", "OCP MXINT8: fixed point with six bits behind the point", unit=-6),
    BlockFormat(
        "nvfp4", "float4_e2m1fn", 16, 16, "float8_e4m3fn", "pairs", (("elements", 8), ("scales", 1)), {"codes": (0, 0), "scale": (1, 0)}, tensor_scale=True,
        doc="NVIDIA's: blocks of 16 under an E4M3 scale, and one float32 for the tensor",
    ),
    _file("q4_0", "uint4", 32, 32, 18, "halves", {"scale": 0, "codes": 2}, bias=8, doc="GGUF Q4_0"),
    _file("q4_1", "uint4", 32, 32, 20, "halves", {"scale": 0, "min": 2, "codes": 4}, zero="min", doc="GGUF Q4_1"),
    _file("q5_0", "uint5", 32, 32, 22, "halves+bits", {"scale": 0, "high": 2, "codes": 6}, bias=16, doc="GGUF Q5_0"),
    _file("q5_1", "uint5", 32, 32, 24, "halves+bits", {"scale": 0, "min": 2, "high": 4, "codes": 8}, zero="min", doc="GGUF Q5_1"),
    _file("q8_0", "int8", 32, 32, 34, "bytes", {"scale": 0, "codes": 2}, doc="GGUF Q8_0"),
    _file("q4_k", "uint4", 256, 32, 144, "k4", {"scale": 0, "min": 2, "scales": 4, "codes": 16}, zero="min", doc="GGUF Q4_K: eight groups of 32, their scales and minima in six bits"),
    _file("q5_k", "uint5", 256, 32, 176, "k5", {"scale": 0, "min": 2, "scales": 4, "high": 16, "codes": 48}, zero="min", doc="GGUF Q5_K: Q4_K with a fifth bit"),
    _file("q6_k", "uint6", 256, 16, 210, "k6", {"codes": 0, "high": 128, "scales": 192, "scale": 208}, bias=32, doc="GGUF Q6_K: sixteen groups of 16, their scales in int8"),
):  # fmt: skip
    _ALL[_format.name] = _format


def grouped_int(bits: int, group: int = 128, scale: DType | str = "float16", zero_point: bool = False) -> BlockFormat:
    """The format of `bits`-bit integers (4 or 8) in groups of `group` elements along the last dimension, or of one group a row (as many as it has).

    scale: float16, bfloat16 or float32. zero_point: integers are unsigned and a uint8 a group says which of them is zero; otherwise they are symmetric.
    """
    chosen: DType | None = _D.get(scale) if isinstance(scale, str) else scale
    if bits not in (4, 8):
        raise ValueError(f"grouped integers have 4 or 8 bits, not {bits!r}")
    if not isinstance(group, int) or isinstance(group, bool) or group < 1:
        raise ValueError(f"a group is a positive number of elements, not {group!r}")
    if chosen is None or chosen not in (_D["float16"], _D["bfloat16"], _D["float32"]):
        raise ValueError(f"the scale of grouped integers is float16, bfloat16 or float32, not {scale!r}")
    name = f"int{bits}_g{group}" + ("" if chosen.name == "float16" else f"_{chosen.name}") + ("_zero" if zero_point else "")
    found = _ALL.get(name)
    if found is None:
        if len(_ALL) > 4096:  # rows of many lengths, a channel a group: formats are cheap to describe again
            for key in [key for key in _ALL if key not in NAMES]:
                del _ALL[key]
        parts = [("elements", -(-group * bits // 8)), ("scales", chosen.itemsize)] + ([("zeros", 1)] if zero_point else [])
        fields = {"codes": (0, 0), "scale": (1, 0)} | ({"zero": (2, 0)} if zero_point else {})
        found = _ALL[name] = BlockFormat(
            name, f"{'u' if zero_point else ''}int{bits}", group, group, chosen.name, "pairs" if bits == 4 else "bytes", parts, fields, zero="zero" if zero_point else "",
            doc=f"integers in groups of {group} under a {chosen.name} scale" + (" and a zero point" if zero_point else ""),
        )  # fmt: skip
    return found


def parse(name: str | BlockFormat) -> BlockFormat:
    """The format of a name, as "mxfp4" or "int4_g128_bfloat16_zero". ValueError lists the near names."""
    if isinstance(name, BlockFormat):
        return name
    if not isinstance(name, str):
        raise TypeError(f"a block format is named by text, as 'mxfp4', not by {type(name).__name__}")
    found = _ALL.get(name.lower().removeprefix("torch."))
    if found is None:
        found = _parse_grouped(name.lower().removeprefix("torch."))
    if found is None:
        near = [known for known in NAMES if known.startswith(name.lower())] or difflib.get_close_matches(name.lower(), NAMES, 4, 0.4)
        raise ValueError(
            f"there is no block format {name[:80]!r}{'; did you mean ' + ' or '.join(near) + '?' if near else ''}\n"
            f"  There are {', '.join(NAMES)}, and grouped integers such as int4_g128, int8_g64_bfloat16 or int4_g32_zero."
        )
    return found


NAMES = tuple(_ALL)


def _parse_grouped(name: str) -> BlockFormat | None:
    kind, *words = name.split("_")
    if kind not in ("int4", "int8") or not words or not words[0].startswith("g") or not words[0][1:].isdecimal() or len(words[0]) > 16:
        return None
    zero = words[-1] == "zero"
    scale = words[1:-1] if zero else words[1:]
    if len(scale) > 1 or scale and scale[0] not in ("float16", "bfloat16", "float32") or int(words[0][1:]) < 1:
        return None
    return grouped_int(int(kind[3:]), int(words[0][1:]), scale[0] if scale else "float16", zero)


def all_formats() -> tuple[BlockFormat, ...]:
    """Every named format once, and one of grouped integers each way."""
    return (*(_ALL[name] for name in NAMES), grouped_int(4), grouped_int(4, zero_point=True), grouped_int(8), grouped_int(8, zero_point=True))


def __getattr__(name: str) -> BlockFormat:
    if name in _ALL:
        return _ALL[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
