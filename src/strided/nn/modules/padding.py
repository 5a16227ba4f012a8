"""Padding as modules: Constant, Zero, Reflection, Replication and Circular, one to three dimensions."""
from .. import functional as F
from ..functions.conv import tuple_of
from ..module import Module


class _Pad(Module):
    n = 0
    mode = ""

    def __init__(self, padding):
        super().__init__()
        self.padding = tuple_of(padding, 2 * self.n)

    def forward(self, input):
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _CircularPad(_Pad):
    def forward(self, input):
        if input.dim() not in (self.n + 1, self.n + 2):
            raise ValueError(f"expected {self.n + 1}D or {self.n + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


def _family(base, name, mode, text):
    """The 1-, 2- and 3-dimensional class of a kind of padding."""
    made = []
    for n in (1, 2, 3):
        body = {"n": n, "mode": mode, "__doc__": f"{text} the last {n} dimension{'s' if n > 1 else ''}.", "__module__": __name__}
        made.append(type(f"{name}Pad{n}d", (base,), body))
    return made


ConstantPad1d, ConstantPad2d, ConstantPad3d = _family(_ConstantPad, "Constant", "constant", "A constant around")
ZeroPad1d, ZeroPad2d, ZeroPad3d = _family(_ZeroPad, "Zero", "constant", "Zeros around")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _family(_Pad, "Reflection", "reflect", "Mirrors the edges of")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _family(_Pad, "Replication", "replicate", "Repeats the edges of")
CircularPad1d, CircularPad2d, CircularPad3d = _family(_CircularPad, "Circular", "circular", "Continues periodically")
