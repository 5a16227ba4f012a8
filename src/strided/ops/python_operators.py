"""Python's operators on tensors: + - * / // % ** & | ^ << >> ~, comparisons, their reflected and in-place forms."""
from __future__ import annotations

from ..tensor import Tensor
from . import choices  # noqa: F401 (with it everything pointwise is registered)
from .table import TABLE


def _dunder(name: str, target, reflected=None):
    def forward(self, other):
        try:
            return target(self, other)
        except TypeError:
            if _computable(other):
                raise
            return NotImplemented

    setattr(Tensor, f"__{name}__", forward)
    if reflected is not None:

        def backward(self, other):
            if not _computable(other):
                return NotImplemented
            return reflected(other, self)

        setattr(Tensor, f"__r{name}__", backward)


def _computable(value) -> bool:
    return isinstance(value, Tensor | bool | int | float | complex) or getattr(value, "ndim", None) == 0 or hasattr(value, "__array_interface__")


def _install_dunders() -> None:
    call = {name: entry.call for name, entry in TABLE.items()}
    for name, op, fast in (("add", "add", Tensor.__add__), ("sub", "sub", Tensor.__sub__), ("mul", "mul", call["mul"]), ("truediv", "true_divide", call["true_divide"])):
        _fast_dunder(name, fast, call[op], op in ("add", "mul"))
        setattr(Tensor, f"__i{name}__", _inplace_dunder(call["div_" if name == "truediv" else op + "_"]))
    plain = "floordiv:floor_divide mod:remainder pow:pow and:bitwise_and or:bitwise_or xor:bitwise_xor lshift:bitwise_left_shift rshift:bitwise_right_shift"
    for name, op in (pair.split(":") for pair in plain.split()):
        _dunder(name, call[op], call[op])
        setattr(Tensor, f"__i{name}__", _inplace_dunder(call[op + "_"]))
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        _dunder(name, call[name])
    Tensor.__hash__ = object.__hash__  # type: ignore[method-assign]
    for dunder, op in (("__neg__", "neg"), ("__abs__", "abs"), ("__invert__", "bitwise_not"), ("__pos__", "positive")):
        setattr(Tensor, dunder, lambda self, f=call[op]: f(self))


def _fast_dunder(name, fast, call, commutes):
    """`a + b` goes straight to the eager function; only what it does not know is looked at again. Where the order is free, `2 * a` is a * 2, in the graph as well."""

    def backward(self, other):
        if not _computable(other):
            return NotImplemented
        return call(self, other) if commutes else call(other, self)

    # The eager function itself is the method: one Python call less. It raises TypeError for what it cannot take, where Python would try the
    # other operand's reflected method.
    setattr(Tensor, f"__{name}__", fast)
    setattr(Tensor, f"__r{name}__", backward)


def _inplace_dunder(call):
    def inplace(self, other):
        try:
            return call(self, other)
        except TypeError:
            if _computable(other):
                raise
            return NotImplemented  # Python then asks `a + b`, and with it the other operand

    return inplace


_install_dunders()


def _divide_number(self, other):
    """`number / tensor` is the tensor's reciprocal times the number, as PyTorch rounds it."""
    return TABLE["mul"].call(TABLE["reciprocal"].call(self), other) if _computable(other) else NotImplemented


Tensor.__rtruediv__ = Tensor.__rdiv__ = _divide_number  # type: ignore[attr-defined, method-assign]
