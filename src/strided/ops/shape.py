"""Shape operators made of others: movedim, meshgrid, atleast, combinations, and the properties T, mT, H, mH. Importing it loads the whole family.

The single views are in views.py and partviews.py, copies in copies.py and rearrange.py, writes in writes.py.
"""

from __future__ import annotations

import warnings
from itertools import combinations as _choose
from itertools import combinations_with_replacement as _choose_again
from typing import Any

from ..dtypes import int64
from ..formats import channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format
from ..layout import broadcast_shapes as _common_shape
from ..layout import wrap_dim
from ..tensor import Tensor
from . import copies, partviews, rearrange, twins, views, writes  # noqa: F401
from .complexlike import imag, real
from .table import TABLE, operator
from .views import check_tensor, expand, integers, permute, transpose, unsqueeze, view

# Plain functions and names that the package's top level takes from here, beside the operators.
__all__ = [
    "block_diag", "imag", "real", "broadcast_shapes", "cartesian_prod", "channels_last", "channels_last_3d", "combinations", "contiguous_format", "memory_format", "preserve_format",
]  # fmt: skip


def _dims(name: str, argument: str, value: Any) -> tuple[int, ...]:
    return integers(name, argument, (value,))


@operator("movedim", aliases=("moveaxis",), view=True)
def movedim(input, source, destination):
    """Dimensions `source` moved to the positions `destination`; the others keep their order."""
    source, destination = _dims("movedim", "source", source), _dims("movedim", "destination", destination)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims as destination "
            f"({list(destination)} dims)"
        )
    ndim = input.ndim
    places = []
    for name, given in (("source", source), ("destination", destination)):
        wrapped = [wrap_dim(d, ndim) for d in given]
        if len(set(wrapped)) != len(wrapped):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
        places.append(wrapped)
    if ndim == 0:
        return views.alias(input)
    order = [d for d in range(ndim) if d not in places[0]]
    for target, d in sorted(zip(places[1], places[0])):
        order.insert(target, d)
    return permute(input, tuple(order))


@operator("swapaxes", view=True)
def swapaxes(input, axis0, axis1):
    """`transpose`, by NumPy's name."""
    return transpose(input, axis0, axis1)


@operator("adjoint", view=True)
def adjoint(input):
    """The last two dimensions exchanged (and conjugated, for complex numbers)."""
    if input.ndim == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return TABLE["conj"].call(transpose(input, -2, -1) if input.ndim else input)


def _deprecated(name: str) -> None:
    warnings.warn(f"Tensor.{name} is deprecated on 0-D tensors. This function is the identity in these cases.", stacklevel=3)


def _T(self) -> Tensor:
    """All dimensions in reverse order. Deprecated for tensors that are not matrices."""
    if self.ndim not in (0, 2):
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an error in a future release. Consider "
            "`x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
            stacklevel=2,
        )
    elif self.ndim == 0:
        _deprecated("T")
    return permute(self, tuple(range(self.ndim - 1, -1, -1)))


def _mT(self) -> Tensor:
    """The last two dimensions exchanged. [.., a, b] -> [.., b, a]"""
    if self.ndim == 1:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
    if self.ndim == 0:
        _deprecated("mT")
        return self
    return transpose(self, -2, -1)


def _H(self) -> Tensor:
    """A matrix's conjugate transpose. [a, b] -> [b, a]"""
    if self.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor."
            + (" For batches of matrices, consider using tensor.mH" if self.ndim > 2 else "")
        )
    return TABLE["conj"].call(transpose(self, -2, -1) if self.ndim else self)


def _mH(self) -> Tensor:
    """The last two dimensions exchanged and conjugated. [.., a, b] -> [.., b, a]"""
    if self.ndim == 1:
        raise RuntimeError("tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return TABLE["conj"].call(transpose(self, -2, -1) if self.ndim else self)


for _name, _getter in (("T", _T), ("mT", _mT), ("H", _H), ("mH", _mH)):
    setattr(Tensor, _name, property(_getter, doc=_getter.__doc__))


def _many(tensors: tuple) -> tuple:
    """Tensors given one by one or as one list."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple(tensors[0])
    return tensors


@operator("broadcast_tensors", method=False, view=True)
def broadcast_tensors(*tensors):
    """Every tensor expanded to the shape they broadcast to together; a list of views."""
    tensors = _many(tensors)
    shape = tuple(_common_shape(*[check_tensor("broadcast_tensors", t, "tensors").shape for t in tensors]))
    return tuple(t if t.shape == shape else expand(t, shape) for t in tensors)


def broadcast_shapes(*shapes):
    """The shape that `shapes` (tuples, or ints for one dimension) broadcast to."""
    return _common_shape(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes])


def _atleast(name: str, grow):
    @operator(name, method=False, view=True)
    def at_least(*tensors):
        several = len(tensors) != 1 or isinstance(tensors[0], (tuple, list))
        result = tuple(grow(check_tensor(name, t, "tensors")) for t in _many(tensors))
        return result if several else result[0]

    at_least.__doc__ = f"Views with at least {name[8]} dimension(s): of one tensor, or of each of several."
    return at_least


def _to_2d(t):
    return view(t, (1, 1)) if t.ndim == 0 else unsqueeze(t, 0) if t.ndim == 1 else t


def _to_3d(t):
    return view(t, (1, 1, 1)) if t.ndim == 0 else unsqueeze(unsqueeze(t, 0), -1) if t.ndim == 1 else unsqueeze(t, -1) if t.ndim == 2 else t


atleast_1d = _atleast("atleast_1d", lambda t: view(t, (1,)) if t.ndim == 0 else t)
atleast_2d = _atleast("atleast_2d", _to_2d)
atleast_3d = _atleast("atleast_3d", _to_3d)


@operator("meshgrid", method=False, view=True)
def meshgrid(*tensors, indexing=None):
    """Coordinate grids of vectors: result i holds tensor i's values along dimension i, expanded. indexing: "ij" (default) or "xy" (first two exchanged)."""
    tensors = _many(tensors)
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        indexing = "ij"
        warnings.warn("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.", stacklevel=4)
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for tensor in tensors:
        if check_tensor("meshgrid", tensor, "tensors").ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(tensor.shape)}")
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple(tensor.numel() for tensor in tensors)
    grids = [expand(view(tensor, (1,) * i + (-1,) + (1,) * (len(shape) - i - 1)), shape) for i, tensor in enumerate(tensors)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def block_diag(*tensors):
    """A matrix with the given matrices (vectors count as rows) along its diagonal, zero elsewhere."""
    from ..dtypes import promote

    blocks = [_to_2d(check_tensor("block_diag", t, "tensors")) for t in _many(tensors)]
    for block in blocks:
        if block.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input has {block.ndim} dimensions")
    dtype, width, left, rows = blocks[0].dtype, sum(block.shape[1] for block in blocks), 0, []
    for block in blocks[1:]:
        dtype = promote(dtype, block.dtype)
    for block in blocks:
        height, own = block.shape
        gap = [TABLE["zeros"].call(height, n, dtype=dtype, device=block.device) for n in (left, width - left - own)]
        rows.append(TABLE["cat"].call([gap[0], block.to(dtype), gap[1]], 1))  # [height, width]
        left += own
    return TABLE["cat"].call(rows, 0)


def cartesian_prod(*tensors):
    """Every combination of one entry from each vector, a row each. [a], [b] -> [a*b, 2]"""
    tensors = _many(tensors)
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected Tensor as element {place} in argument 0, but got {type(tensor).__name__}")
        if tensor.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return TABLE["stack"].call([copies.flatten(grid) for grid in meshgrid(*tensors, indexing="ij")], dim=1)


def combinations(input, r=2, with_replacement=False):
    """Every choice of r entries of a vector, in order, a row each. [n] -> [n over r, r]"""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return TABLE["empty"].call(0, dtype=input.dtype, device=input.device)
    rows = list((_choose_again if with_replacement else _choose)(range(input.shape[0]), r))
    index = view(TABLE["tensor"].call([i for row in rows for i in row], dtype=int64, device=input.device), (-1,))
    return copies.reshape(TABLE["index_select"].call(input, 0, index), (len(rows), r))

