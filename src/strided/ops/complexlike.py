"""Operators about complex numbers: parts, conjugates, angles, and tensors of parts seen as complex ones and back.

What they do to real tensors is here, too. Arithmetic on complex tensors is pointwise.py's, by the rules of kernels/complex.py. A conjugate is computed at
once here (PyTorch sets a bit and waits), so `is_conj()` and `is_neg()` are always False.
"""
from __future__ import annotations

import math

from .. import dtypes
from ..autograd import backward
from ..autograd.graph import window
from ..dispatch import CONTEXT, HOOKS
from ..kernels import expr as E
from ..layout import Layout
from ..tensor import Spec, Tensor
from .eager import pointwise
from .elementwise import Pointwise, with_flops
from .table import TABLE, operator
from .views import check_tensor, hooked, hot_operator, remember

# ---- parts as real tensors, in the same memory -------------------------------------------------------------------------------


@backward("ViewAsReal")
def ViewAsRealBackward0(node, g):
    return (view_as_complex(TABLE["contiguous"].call(g)),)


@operator("view_as_real", method=False, view=True)
def view_as_real(input):
    """Real and imaginary parts in a last dimension of size 2, in the same memory. [..] -> [.., 2]. Raises RuntimeError for a real tensor."""
    spec = check_tensor("view_as_real", input).spec
    if not spec.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    layout = Layout.of((*spec.shape, 2), (*(2 * stride for stride in spec.strides), 1))
    return window(input, Spec.of(layout, spec.dtype.to_real(), spec.device), input.ptr, ViewAsRealBackward0)


@backward("ViewAsComplex")
def ViewAsComplexBackward0(node, g):
    return (view_as_real(g),)


@operator("view_as_complex", method=False, view=True, autocast="float32")
def view_as_complex(input):
    """A last dimension of size 2 as complex numbers, in the same memory. [.., 2] -> [..]

    Raises RuntimeError for other dtypes than float16, float32 and float64, and where the pairs do not lie together at even places.
    """
    spec = check_tensor("view_as_complex", input).spec
    if spec.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
        raise RuntimeError(f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {spec.dtype.scalar_name}")
    if not spec.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if spec.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if spec.strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(stride % 2 for stride in spec.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if input.storage_offset() % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    layout = Layout.of(spec.shape[:-1], [stride // 2 for stride in spec.strides[:-1]])
    return window(input, Spec.of(layout, spec.dtype.to_complex(), spec.device), input.ptr, ViewAsComplexBackward0)


Tensor._view_as_real, Tensor._view_as_complex = view_as_real, view_as_complex  # type: ignore[attr-defined]


def _part(name: str, place: int, doc: str):
    """`real` or `imag`: every second number of the memory, from number `place` on."""

    @backward("SelectBackward0")  # PyTorch's parts are selections from view_as_real
    def PartBackward0(node, g):
        return (TABLE["mul"].call(g, 1j) if place else TABLE["to"].call(g, node.dtype),)

    def part(input):
        if HOOKS.active and not CONTEXT.depth:
            return hooked(part, input)
        spec = check_tensor(name, input).spec
        new = spec.cache.get(name)
        if new is None:
            if not spec.dtype.is_complex:
                if place:
                    raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
                return input
            layout = Layout.of(spec.shape, [2 * stride for stride in spec.strides])
            new = remember(spec, name, Spec.of(layout, spec.dtype.to_real(), spec.device))
        return window(input, new, input.ptr + place * new.itemsize, PartBackward0, dtype=spec.dtype)

    part.__doc__ = doc
    return hot_operator(name, method=False, view=True)(part)


real = _part("real", 0, "The real part, a view; a real tensor itself.")
imag = _part("imag", 1, "The imaginary part of a complex tensor, a view. Raises RuntimeError for a real tensor.")
Tensor.real, Tensor.imag = (  # type: ignore[attr-defined]
    property(get, lambda self, value, get=get: _assign(get(self), value), doc=get.__doc__) for get in (real, imag)
)


def _assign(part: Tensor, value) -> None:
    (TABLE["copy_"] if isinstance(value, Tensor) else TABLE["fill_"]).call(part, value)


# ---- conjugates ------------------------------------------------------------------------------------------------------------

_conj = Pointwise("conj", lambda z: E.conj(z), 1, node="Conj")
_physical = Pointwise("conj_physical", lambda z: E.conj(z), 1, node="ConjPhysical")


@operator("conj", flops=with_flops(_conj))
def conj(input):
    """The complex conjugate; a real tensor itself."""
    return _conj(input) if check_tensor("conj", input).spec.dtype.is_complex else input


@operator("conj_physical", flops=with_flops(_physical), out=True)
def conj_physical(input):
    """The complex conjugate; a real tensor itself."""
    return _physical(input) if check_tensor("conj_physical", input).spec.dtype.is_complex else input


@operator("conj_physical_", function=True)
def conj_physical_(input):
    """In-place form of `conj_physical`."""
    return _physical.into(input) if input.spec.dtype.is_complex else input


for _name, _doc in {
    "resolve_conj": "The tensor with a pending conjugation carried out: itself, since none is ever pending.",
    "resolve_neg": "The tensor with a pending negation carried out: itself, since none is ever pending.",
}.items():

    def _itself(input):
        return check_tensor("resolve_conj", input)

    _itself.__doc__ = _doc
    operator(_name, view=True)(_itself)


def is_conj(input):
    """Whether a conjugation is pending: never, conjugates are computed at once."""
    check_tensor("is_conj", input)
    return False


def is_neg(input):
    """Whether a negation is pending: never."""
    check_tensor("is_neg", input)
    return False


Tensor.is_conj, Tensor.is_neg = is_conj, is_neg  # type: ignore[attr-defined]  # (namespace.py makes functions of them, too)

# ---- from parts, from magnitude and angle ------------------------------------------------------------------------------------------

_complex = Pointwise("complex", lambda x, y: E.pair(x, y), 2, node="Complex")
_polar = Pointwise("polar", lambda r, angle: E.pair(r * E.cos(angle), r * E.sin(angle)), 2, node="Polar")


def _check_parts(a, b):
    allowed = (dtypes.float16, dtypes.float32, dtypes.float64)
    if a.dtype not in allowed or b.dtype not in allowed:
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {a.dtype.scalar_name} and {b.dtype.scalar_name}")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"Expected object of scalar type {a.dtype.scalar_name} but got scalar type {b.dtype.scalar_name} for second argument")


@operator("complex", method=False, out=True, flops=with_flops(_complex))
def complex(real, imag):
    """The complex tensor with these real and imaginary parts (float16, float32 or float64, of one dtype; they broadcast)."""
    _check_parts(real, imag)
    return _complex(real, imag)


@operator("polar", method=False, out=True, autocast="float32", flops=with_flops(_polar))
def polar(abs, angle):
    """The complex tensor with these magnitudes and angles (radians): abs · (cos angle + i sin angle)."""
    _check_parts(abs, angle)
    return _polar(abs, angle)


pointwise("angle", lambda x: E.where(E.isnan(x), x, E.where(x < 0, math.pi, 0.0)), kind="float", inplace=False, gradient=(None,), complex_function=lambda z: E.angle(z))
pointwise("sgn", lambda x: E.sgn(x))


@operator("isreal")
def isreal(input):
    """Whether each element has no imaginary part: true everywhere, for a real tensor."""
    if input.spec.dtype.is_complex:
        return TABLE["eq"].call(imag(input), 0)
    return TABLE["ones_like"].call(input, dtype=dtypes.bool_)
