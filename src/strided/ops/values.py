"""Values out of tensors: item, tolist, numpy, Python's protocols (bool, int, len, iteration, deepcopy), and comparisons of whole tensors.

Tensors from data are made in data.py; pickling and other libraries' protocols are in interop.py.
"""

from __future__ import annotations

from typing import Any

from .. import dtypes
from ..arrays import array_of, copied_array, read_rows
from ..autograd import no_grad
from ..kernels.native import new_storage, read_scalar, wrap_storage
from ..printing import tensor_format, tensor_repr
from ..tensor import Tensor, wrap
from .partviews import select
from .table import TABLE, operator
from .views import check_tensor
from .writes import number_for

# ---- out of a tensor ------------------------------------------------------------------------------------------------------------


def item(self):
    """The one element as a Python number. Raises RuntimeError for any other number of elements."""
    spec = self.spec
    if spec.numel != 1:
        raise RuntimeError(f"a Tensor with {spec.numel} elements cannot be converted to Scalar")
    if spec.is_meta:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")
    if spec.dtype.packed or spec.dtype.code < 0:
        return read_rows(self.reshape(()))
    return read_scalar(spec.dtype.code, self.ptr)


def tolist(self):
    """The elements as nested lists of Python numbers; a number for a 0-d tensor."""
    return read_rows(self)


def _bool(self) -> bool:
    numel = self.spec.numel
    if numel != 1:
        kind = "no values" if numel == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {kind} is ambiguous")
    return bool(item(self))


def _convert(kind: Any):
    def convert(self):
        if self.spec.numel != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        value = item(self)
        if type(value) is complex and kind is not complex:
            value = number_for(dtypes.float64 if kind is float else dtypes.int64, value, {"float64": "double", "int64": "int64_t"})
        return kind(value)

    return convert


def _index(self) -> int:
    spec = self.spec
    if spec.numel != 1 or spec.dtype.is_floating_point or spec.dtype.is_complex:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


def _len(self) -> int:
    if self.spec.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self.spec.shape[0]


def _iter(self):
    if self.spec.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    unbind = TABLE.get("unbind")
    return iter(unbind.call(self, 0) if unbind else [select(self, 0, i) for i in range(self.spec.shape[0])])


def _contains(self, element) -> bool:
    if not isinstance(element, (Tensor, bool, int, float, complex)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return bool(TABLE["any"].call(TABLE["eq"].call(self, element)))


def numpy(self, *, force=False):
    """A NumPy array over the same memory (below eight bits a copy; types that NumPy lacks are those of ml_dtypes). Raises RuntimeError for a tensor that requires grad, unless `force` is True."""
    if self.is_meta:
        raise TypeError("can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
    if self._tracked and not force:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self.dtype.code < 0:
        raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")
    return copied_array(self) if self.dtype.packed else array_of(self)


def _deepcopy(self, memo):
    if self._node is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were attempting to deepcopy a "
            "module, this may be because of a torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    with no_grad():
        copied = _copy_storage(self, memo)
    copied.__class__ = type(self)
    copied._tracked = self._tracked
    memo[id(self)] = copied
    if self._grad is not None:
        copied._grad = _deepcopy(self._grad, memo)
    for name, value in vars(self).items():
        if name not in vars(copied) and not name.startswith("_"):
            import copy

            setattr(copied, name, copy.deepcopy(value, memo))
    return copied


def _copy_storage(t: Tensor, memo: dict) -> Tensor:
    """t over a copy of its whole storage, which other tensors copied with the same memo share."""
    key = ("storage", id(t.mem))
    mem = memo.get(key)
    if mem is None:
        if t.is_meta:
            mem = wrap_storage(0, t.mem.nbytes, None)
        else:
            mem = new_storage(t.mem.nbytes)
            if t.mem.nbytes:
                memoryview(mem)[: t.mem.nbytes] = memoryview(t.mem)[: t.mem.nbytes]
        memo[key] = mem
    return wrap(t.spec, mem, mem.data + t.ptr - t.mem.data if t.spec.is_plain else t.ptr)


_METHODS = {
    "item": item, "tolist": tolist, "numpy": numpy, "__bool__": _bool, "__int__": _convert(int), "__float__": _convert(float), "__complex__": _convert(complex),
    "__index__": _index, "__len__": _len, "__iter__": _iter, "__contains__": _contains, "__deepcopy__": _deepcopy,
    "layout": property(lambda self: _strided(), doc="torch.strided: elements lie in memory by strides."),
    "__repr__": tensor_repr, "__format__": tensor_format,
    "is_same_size": lambda self, other: self.shape == other.shape,
    "__reversed__": lambda self: TABLE["flip"].call(self, (0,)) if self.ndim else self,
}  # fmt: skip
for _name, _method in _METHODS.items():
    setattr(Tensor, _name, _method)


def _strided():
    from ..formats import strided

    return strided


# ---- comparisons of whole tensors -------------------------------------------------------------------------------------------------


@operator("equal")
def equal(input, other):
    """Whether two tensors have the same shape and elements."""
    check_tensor("equal", other, "other")
    if input.shape != other.shape:
        return False
    return bool(TABLE["all"].call(TABLE["eq"].call(input.detach(), other.detach())))


@operator("isclose")
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Elementwise |input - other| <= atol + rtol * |other|; equal infinities are close, and NaNs with `equal_nan`."""
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.scalar_name} did not match {other.dtype.scalar_name}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    call = lambda name, *args: TABLE[name].call(*args)
    close = call("eq", input, other)
    if equal_nan and (input.dtype.is_floating_point or input.dtype.is_complex):
        close = call("logical_or", close, call("logical_and", call("isnan", input), call("isnan", other)))
    if rtol == 0 and atol == 0:
        return close
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        input, other = input.to(dtypes.float64), other.to(dtypes.float64)
    error = call("abs", call("sub", input, other))
    allowed = call("add", call("abs", call("mul", other, rtol)), atol)
    finite = call("logical_and", call("isfinite", error), call("le", error, allowed))
    return call("logical_or", close, finite)


@operator("allclose")
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close in the sense of `isclose`."""
    return bool(TABLE["all"].call(isclose(input.detach(), other.detach(), rtol, atol, equal_nan)))
