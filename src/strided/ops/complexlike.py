"""Operators about complex numbers, as they act on real tensors (angle, isreal, …); what would have to make a complex tensor is refused."""
from __future__ import annotations

import math

from .. import dtypes
from ..kernels import expr as E
from ..tensor import Tensor
from .elementwise import pointwise
from .table import TABLE, operator

_WAY_OUT = "complex numbers are not supported yet: keep real and imaginary parts in two tensors, or in a last dimension of size 2"


Tensor.conj_physical_ = lambda self: self  # type: ignore[attr-defined]
Tensor.is_conj = lambda self: False  # type: ignore[attr-defined]
Tensor.is_neg = lambda self: False  # type: ignore[attr-defined]

pointwise("angle", lambda x: E.where(E.isnan(x), x, E.where(x < 0, math.pi, 0.0)), kind="float", inplace=False, gradient=(None,))


@operator("isreal")
def isreal(input):
    """Whether each element has no imaginary part: true everywhere, for a real tensor."""
    return TABLE["ones_like"].call(input, dtype=dtypes.bool_)


@operator("view_as_real", method=False)
def view_as_real(input):
    """Real and imaginary parts in a last dimension of size 2. Raises RuntimeError for a real tensor."""
    raise RuntimeError("view_as_real is only supported for complex tensors")


def _refused(name: str, doc: str):
    def call(*args, **kwargs):
        raise NotImplementedError(f"{name}(): {_WAY_OUT}")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc + " Not supported: NotImplementedError."
    return call


for _name, _doc in {
    "complex": "A complex tensor from its real and imaginary parts.",
    "polar": "A complex tensor from magnitudes and angles.",
    "view_as_complex": "A last dimension of size 2 as complex numbers.",
}.items():
    operator(_name, method=False)(_refused(_name, _doc))
for _name in ("cfloat", "cdouble", "chalf"):
    setattr(Tensor, _name, _refused(_name, f"The tensor in the dtype torch.{_name}."))
