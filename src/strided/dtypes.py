"""Number formats and devices: one table row a format, promotion between them, finfo and iinfo, the defaults.

Holds which formats there are (bits, kind, and for floats the `Encoding` that says what the bits mean), not how they are computed in: kernels refuse
the formats they do not know.
"""

import threading
from operator import index as as_index

from .encoding import Encoding

_RANKS = {"bool": 0, "uint": 1, "int": 1, "float": 2, "complex": 3}  # a lower rank gives way to a higher one


class DType:
    """A number format, one object each: compare with `is` or `==`.

    Attributes: `name`, `bits` (of one element), `itemsize` (bytes), `kind` ("bool" "uint" "int" "float" "complex"), `abbr`, `format` (the struct
    letter of the value in memory, or None), `is_floating_point`, `is_complex`, `is_signed`, `compute` (the format arithmetic runs in), `encoding` (what
    a float's bits mean, an `Encoding`; None for other kinds).

    Formats below eight bits are stored `packed`. Kernels compute with one code a byte: that is a format of its own, `unpacked` (itself for the others),
    and `stored` leads back.
    """

    __slots__ = (
        "name", "abbr", "bits", "itemsize", "kind", "format", "is_floating_point", "is_complex", "is_signed", "compute", "encoding", "code", "_numpy",
        "packed", "unpacked", "stored",
    )  # fmt: skip

    def __new__(cls, *args, **kwargs):
        raise TypeError("cannot create 'torch.dtype' instances")

    def __repr__(self):
        return f"torch.{self.stored.name}"

    def __reduce__(self):
        return _by_name, (self.name,)

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    @property
    def numpy(self):
        """The NumPy dtype of the same values (from ml_dtypes below 32 bits where NumPy has none)."""
        if self._numpy is None:
            self._numpy = _numpy_dtype(self)
        return self._numpy

    def to_real(self) -> "DType":
        """The format of a complex number's parts; itself for a real format."""
        return _REAL.get(self, self)

    def to_complex(self) -> "DType":
        """The complex format whose parts hold this one."""
        if self.is_complex:
            return self
        found = _COMPLEX.get(self)
        if found is None:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return found

    @property
    def limits(self) -> tuple[float, float, float, float] | None:
        """(largest, eps, smallest normal, decimal resolution) of a float."""
        e = self.encoding
        if e is None:
            return None
        found = _LIMITS.get(self)
        if found is None:
            found = _LIMITS[self] = e.largest, e.eps, e.smallest_normal, e.resolution
        return found

    @property
    def scalar_name(self) -> str:
        """PyTorch's internal name, as it stands in its error messages: Float, Long, BFloat16."""
        if self.stored is not self:
            return self.stored.scalar_name
        return _SCALAR_NAMES.get(self.name) or self.name[0].upper() + self.name[1:].replace("int", "Int")


DType.__name__ = DType.__qualname__ = "dtype"
dtype = DType  # its public name: pickles and documentation find the class under it

_ALL: dict[str, DType] = {}
_LIMITS: dict[DType, tuple[float, float, float, float]] = {}
# The native runtime's number for a format it can read element by element (kernels/runtime_ir.py).
CODES = {
    name: code
    for code, name in enumerate(
        "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 uint16 uint32 uint64 complex32 complex64 complex128".split()
    )
}  # floats of a byte or less follow as they are defined


def _define(name, abbr, bits, kind, format=None, encoding=None, compute=None):
    dtype = _new(name, abbr, bits, kind, format, encoding, compute)
    dtype.packed = bits < 8
    if dtype.packed:  # its elements one a byte: what kernels see
        dtype.unpacked = _new(f"{name}_bytes", abbr, bits, kind, None, encoding, compute)
        dtype.unpacked.stored = dtype
        if kind != "float":  # integers are kept sign-extended there: bytes like any
            dtype.unpacked.code = CODES[f"{kind}8"]
        dtype.code = dtype.unpacked.code
    _ALL[name] = dtype
    return dtype


def _new(name, abbr, bits, kind, format, encoding, compute):
    dtype = object.__new__(DType)
    dtype.name, dtype.abbr, dtype.bits, dtype.kind, dtype.format = name, abbr, bits, kind, format
    dtype.itemsize = (bits + 7) // 8
    dtype.is_floating_point, dtype.is_complex = kind == "float", kind == "complex"
    dtype.is_signed = kind in ("int", "float", "complex") and (encoding is None or encoding.sign == 1)
    dtype.encoding, dtype._numpy = encoding, None
    dtype.compute = compute or dtype
    if encoding is not None and bits <= 8 and dtype.itemsize == 1 and (bits == 8 or name.endswith("_bytes")):
        CODES[name] = len(CODES)
    dtype.code = CODES.get(name, -1)
    dtype.packed, dtype.unpacked, dtype.stored = False, dtype, dtype
    return dtype


# fmt: off
# Encodings: sign, exponent and mantissa bits, bias, special codes, what a cast does with numbers that are too large.
bool_ = _define("bool", "b8", 8, "bool", "?")
uint8 = _define("uint8", "u8", 8, "uint", "B")
int8 = _define("int8", "i8", 8, "int", "b")
int16 = _define("int16", "i16", 16, "int", "h")
int32 = _define("int32", "i32", 32, "int", "i")
int64 = _define("int64", "i64", 64, "int", "q")
float32 = _define("float32", "f32", 32, "float", "f", Encoding(1, 8, 23, 127))
float64 = _define("float64", "f64", 64, "float", "d", Encoding(1, 11, 52, 1023))
float16 = _define("float16", "f16", 16, "float", "e", Encoding(1, 5, 10, 15), compute=float32)
bfloat16 = _define("bfloat16", "bf16", 16, "float", None, Encoding(1, 8, 7, 127), compute=float32)
uint16 = _define("uint16", "u16", 16, "uint", "H")
uint32 = _define("uint32", "u32", 32, "uint", "I")
uint64 = _define("uint64", "u64", 64, "uint", "Q")
complex32 = _define("complex32", "c32", 32, "complex")
complex64 = _define("complex64", "c64", 64, "complex")
complex128 = _define("complex128", "c128", 128, "complex")
float8_e4m3fn = _define("float8_e4m3fn", "f8e4m3fn", 8, "float", None, Encoding(1, 4, 3, 7, "nan", "saturate"), compute=float32)
float8_e4m3fnuz = _define("float8_e4m3fnuz", "f8e4m3fnuz", 8, "float", None, Encoding(1, 4, 3, 8, "negative zero", "nan"), compute=float32)
float8_e5m2 = _define("float8_e5m2", "f8e5m2", 8, "float", None, Encoding(1, 5, 2, 15), compute=float32)
float8_e5m2fnuz = _define("float8_e5m2fnuz", "f8e5m2fnuz", 8, "float", None, Encoding(1, 5, 2, 16, "negative zero", "nan"), compute=float32)
float8_e8m0fnu = _define("float8_e8m0fnu", "f8e8m0fnu", 8, "float", None, Encoding(0, 8, 0, 127, "scale", "nan"), compute=float32)
float6_e2m3fn = _define("float6_e2m3fn", "f6e2m3fn", 6, "float", None, Encoding(1, 2, 3, 1, "none", "saturate"), compute=float32)
float6_e3m2fn = _define("float6_e3m2fn", "f6e3m2fn", 6, "float", None, Encoding(1, 3, 2, 3, "none", "saturate"), compute=float32)
float4_e2m1fn = _define("float4_e2m1fn", "f4e2m1fn", 4, "float", None, Encoding(1, 2, 1, 1, "none", "saturate"), compute=float32)
float4_e2m1fn_x2 = _define("float4_e2m1fn_x2", "f4e2m1fnx2", 8, "float", compute=float32)  # two values a byte, opaque; PyTorch gives it no finfo
int1, int2, int3, int4, int5, int6, int7 = (_define(f"int{b}", f"int{b}", b, "int") for b in range(1, 8))
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (_define(f"uint{b}", f"uint{b}", b, "uint") for b in range(1, 8))
# fmt: on

ALIASES = {
    "float": float32, "double": float64, "half": float16, "short": int16, "int": int32, "long": int64, "bool": bool_,
    "chalf": complex32, "cfloat": complex64, "cdouble": complex128, "bit": uint1,
}  # fmt: skip
_REAL = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX = {float16: complex32, float32: complex64, float64: complex128, bfloat16: complex64}
_SCALAR_NAMES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half", "bfloat16": "BFloat16",
    "float32": "Float", "float64": "Double", "complex32": "ComplexHalf", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
}  # fmt: skip
_STANDARD = {bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex32, complex64, complex128}


def names() -> dict[str, DType]:
    """Every public name (with aliases) and its format, for the package's namespace."""
    return {**_ALL, **ALIASES}


def all_dtypes() -> tuple[DType, ...]:
    """Every format once."""
    return tuple(_ALL.values())


def _by_name(name):
    return _ALL[name]


def _numpy_dtype(dtype):
    import numpy

    if dtype.bits < 8 and dtype.kind != "float" and (dtype.stored is not dtype or dtype.bits not in (2, 4)):
        return numpy.dtype(f"{dtype.kind}8")  # one element a byte, as kernels see them, or without a type of their own
    if dtype in (complex32, float4_e2m1fn_x2):
        raise TypeError(f"NumPy has no type for {dtype}: convert the tensor first, as in x.to(torch.float32)")
    if dtype.name == "bfloat16" or dtype.bits < 8 or dtype.name.startswith("float8"):
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, dtype.stored.name))
    return numpy.dtype(dtype.name)


def from_numpy_dtype(numpy_dtype) -> DType:
    """The format of a NumPy dtype in native byte order; TypeError with PyTorch's sentence when there is none."""
    found = _ALL.get(numpy_dtype.name)
    if found is None or found.bits < 8:
        raise TypeError(
            f"can't convert np.ndarray of type {numpy_dtype.type.__module__}.{numpy_dtype.type.__name__}. The only supported types are: float64, float32, "
            "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    if not numpy_dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between byte orders is currently not supported.")
    return found


# ---- promotion ----

_PROMOTED: dict[tuple[DType, DType], DType] = {}


def promote(a: DType, b: DType) -> DType:
    """The smallest format both convert to, by PyTorch's table: bool < integers < floats < complex; float16 with bfloat16 gives float32."""
    if a is b:
        return a
    found = _PROMOTED.get((a, b))
    if found is None:
        found = _PROMOTED[a, b] = _PROMOTED[b, a] = _promote(a, b)
    return found


def promote_types(type1, type2) -> DType:
    """`promote`, with PyTorch's argument check."""
    for position, value in enumerate((type1, type2), 1):
        if not isinstance(value, DType):
            raise TypeError(f"promote_types(): argument 'type{position}' (position {position}) must be torch.dtype, not {type(value).__name__}")
    return promote(type1, type2)


def _promote(a, b):
    if a not in _STANDARD or b not in _STANDARD:
        return _promote_rare(a, b)
    low, high = sorted((a, b), key=lambda d: (_rank(d), d.bits))
    if high.is_complex:
        parts = promote(high.to_real(), low.to_real()) if low.is_complex or low.is_floating_point else high.to_real()
        return parts.to_complex()
    if _rank(low) != _rank(high):
        return high
    if high.is_floating_point:
        return float32 if {a, b} == {float16, bfloat16} else high
    if low.kind == high.kind:
        return high
    signed = low if low.kind == "int" else high  # the other is uint8
    return int16 if signed is int8 else signed


def _promote_rare(a, b):
    if any(d.is_floating_point and d.bits < 16 or d is float4_e2m1fn_x2 for d in (a, b)):
        raise RuntimeError(f"Promotion for Float8 Types is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}")
    for wide, other in ((a, b), (b, a)):
        if (other in (uint16, uint32, uint64) or other.bits < 8) and wide.is_floating_point:
            return wide
    if uint16 in (a, b) or uint32 in (a, b) or uint64 in (a, b):
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}. "
            "Convert one of them first, as in x.to(torch.int64)."
        )
    raise RuntimeError(f"Promotion for {a} and {b} is not supported: convert one of them first, as in x.to(torch.int8)")


def _rank(dtype):
    return _RANKS[dtype.kind]


def scalar_dtype(value) -> DType:
    """The format a Python number counts as: bool, int64, the default float, the default complex."""
    kind = type(value)
    if kind is float:
        return _default
    if kind is bool:
        return bool_
    if kind is int:
        return int64
    if isinstance(value, (complex, float, int)):
        return _default.to_complex() if isinstance(value, complex) else _default if isinstance(value, float) else int64
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:  # a NumPy scalar
        return from_numpy_dtype(value.dtype)
    raise TypeError(f"a tensor or a number is needed here, not {type(value).__name__}")


def combine_categories(tensors: DType | None, zero_dim: DType | None, scalars: DType | None) -> DType:
    """The result format from the promoted formats of each category: tensors with dimensions, 0-d tensors, Python numbers.

    A lower category counts only where its kind is higher (a float beside integers, a complex beside floats).
    """
    return _prefer(tensors, _prefer(zero_dim, scalars))


def _prefer(higher, lower):
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return higher.to_complex() if lower.is_complex else higher
    if lower.is_complex:  # beside unsigned integers, too, which promote with it in no other way
        return lower
    if higher is bool_ or lower.is_floating_point:
        return promote(higher, lower)
    return higher


def result_type(*operands) -> DType:
    """The format an operator computes `operands` in: tensors, 0-d tensors and Python numbers by PyTorch's category rules."""
    categories: list[DType | None] = [None, None, None]
    for operand in operands:
        spec = getattr(operand, "spec", None)
        if spec is not None:
            place, dtype = (0 if spec.ndim else 1), spec.dtype
        elif isinstance(operand, (bool, int, float, complex)):
            place, dtype = 2, scalar_dtype(operand)
        elif isinstance(operand, DType):
            raise TypeError("result_type() takes tensors and numbers, not dtypes: use torch.promote_types(a, b)")
        else:
            place, dtype = 2, scalar_dtype(operand)
        so_far = categories[place]
        categories[place] = dtype if so_far is None else promote(so_far, dtype)
    found = combine_categories(*categories)
    if found is None:
        raise ValueError("result_type() needs at least one operand")
    return found


def can_cast(from_: DType, to: DType) -> bool:
    """Whether a result of format `from_` may be stored in `to`: not complex into real, float into integer, or anything but bool into bool."""
    if from_.is_complex and not to.is_complex:
        return False
    if from_.is_floating_point and not (to.is_floating_point or to.is_complex):
        return False
    return not (from_ is not bool_ and to is bool_)


# ---- defaults ----

_default = float32


def get_default_dtype() -> DType:
    """The format of floats made from Python numbers (float32 unless set otherwise)."""
    return _default


def set_default_dtype(d: DType) -> None:
    """Sets the format of floats made from Python numbers: float16, bfloat16, float32 or float64."""
    global _default
    if not isinstance(d, DType):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d not in _STANDARD:
        raise TypeError(f"couldn't find storage object {d.scalar_name}Storage")
    if d is not _default:
        _default = d
        for forget in on_default_change:
            forget()


on_default_change: list = []  # called when the default changes: plans were made for the old one


# ---- ranges ----


class finfo:
    """Limits of a floating-point format: bits, eps, max, min, tiny, smallest_normal, resolution, dtype (complex formats: their parts')."""

    __slots__ = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")

    def __init__(self, type=None):
        dtype = _default if type is None else type
        if not isinstance(dtype, DType):
            raise TypeError(f"finfo() takes a torch.dtype, not {dtype!r}")
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'")
        dtype = dtype.to_real()
        if dtype.limits is None:
            raise TypeError(f"{dtype} holds two values a byte and has no finfo: use torch.finfo(torch.float4_e2m1fn)")
        self.bits, self.dtype = dtype.bits, dtype.name
        self.max, self.eps, self.smallest_normal, self.resolution = dtype.limits
        if dtype is float8_e5m2fnuz:
            self.eps = 0.125  # as PyTorch reports it: half of what its two mantissa bits give
        self.tiny = self.smallest_normal
        self.min = -self.max if dtype.is_signed else self.smallest_normal

    def __repr__(self):
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )

    def __eq__(self, other):
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(("finfo", self.dtype))


class iinfo:
    """Limits of an integer format: bits, min, max, dtype."""

    __slots__ = ("bits", "min", "max", "dtype")

    def __init__(self, type):
        if not isinstance(type, DType):
            raise TypeError(f"iinfo() takes a torch.dtype, not {type!r}")
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type.kind not in ("uint", "int"):
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        self.bits, self.dtype = type.bits, type.name
        self.min = -(2 ** (type.bits - 1)) if type.is_signed else 0
        self.max = 2 ** (type.bits - type.is_signed) - 1

    def __repr__(self):
        return f"iinfo(min={float(self.min):g}, max={float(self.max):g}, dtype={self.dtype})"

    def __eq__(self, other):
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __hash__(self):
        return hash(("iinfo", self.dtype))


# ---- devices ----

_DEVICE_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia",
    "privateuseone",
)  # fmt: skip
_DEVICES: dict[tuple, "Device"] = {}


class _Entered(threading.local):
    stack: "tuple[Device, ...]" = ()  # devices entered with `with` in this thread; the process-wide default is _default_device


_STATE = _Entered()
_default_device = None


class Device:
    """Where a tensor lives: `type` ("cpu" or "meta"; others can be named, not used) and `index` (None when not given).

    `torch.device("cuda:1")`, `torch.device("cuda", 1)`. As a context manager it is the device of tensors created inside.
    """

    __slots__ = ("type", "index", "_hash")

    def __new__(cls, type, index=None):
        if isinstance(type, Device) and index is None:
            return type
        found = _DEVICES.get((type, index)) if isinstance(type, str) and index.__class__ is not bool else None
        return found if found is not None else _new_device(type, index)

    def __repr__(self):
        return f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other):
        if self is other:
            return True
        return isinstance(other, Device) and self.type == other.type and self.index == other.index

    def __hash__(self):
        return self._hash

    def __reduce__(self):
        return Device, (self.type, self.index)

    def __enter__(self):
        _STATE.stack = (*_STATE.stack, self)
        return self

    def __exit__(self, *exception):
        _STATE.stack = _STATE.stack[:-1]


Device.__name__ = Device.__qualname__ = "device"
device = Device


def _new_device(kind, index):
    if isinstance(kind, int) and not isinstance(kind, bool):
        raise RuntimeError('Cannot access accelerator device when none is available.\nName the device instead: torch.device("cpu").')
    if not isinstance(kind, str):
        raise TypeError(f"device() received an invalid combination of arguments - got ({type(kind).__name__}), but expected a string such as 'cpu' or 'cuda:0'")
    name, colon, number = kind.partition(":")
    if not name.isalpha():
        raise RuntimeError(f"Invalid device string: '{kind}'")
    if name not in _DEVICE_TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_DEVICE_TYPES)} device type at start of device string: {name}")
    if colon and not (number.isascii() and number.isdigit() and (number == "0" or number[0] != "0")):
        raise RuntimeError(f"Invalid device string: '{kind}'")
    if colon and index is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {kind}")
    index = int(number) if colon else None if index is None else as_index(index)
    if index is not None and index < 0:
        raise RuntimeError("Device index must not be negative")
    device = object.__new__(Device)
    device.type, device.index, device._hash = name, index, hash((name, index))
    device = _DEVICES.setdefault((name, index), device)
    if colon:
        _DEVICES[kind, None] = device
    return device


CPU = Device("cpu")
META = Device("meta")


def resolve_device(device=None) -> Device:
    """The device to create a tensor on: CPU or META, from a name, a Device or None (the default). Others are refused with the way out."""
    if device is None:
        device = get_default_device()
    if device is CPU or device is META:
        return device
    device = Device(device)
    if device.type in ("cpu", "meta"):
        return CPU if device.type == "cpu" else META
    if device.type == "cuda":
        raise AssertionError(
            "Torch not compiled with CUDA enabled\nstrided computes on the CPU: drop device='cuda' and .cuda(), or choose the device with "
            "'cuda' if torch.cuda.is_available() else 'cpu'."
        )
    raise NotImplementedError(
        f"Could not run 'aten::empty.memory_format' with arguments from the '{device.type.upper()}' backend.\n"
        "strided has the devices 'cpu' and 'meta': use device='cpu'."
    )


def get_default_device() -> Device:
    """The device of tensors created without `device=`."""
    stack = _STATE.stack
    return stack[-1] if stack else _default_device or CPU


def set_default_device(device) -> None:
    """Sets the device of tensors created without `device=`; None: the CPU again."""
    global _default_device
    _default_device = None if device is None else Device(device)
