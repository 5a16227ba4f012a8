"""What modules written for PyTorch import from here: a number, or a tuple, as a tuple of n."""
from ..functions.conv import tuple_of


def _ntuple(n, name="parse"):
    def parse(value):
        return tuple_of(value, n) if not isinstance(value, (tuple, list)) else tuple(value)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")
