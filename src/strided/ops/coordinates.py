"""`to_sparse()`: a tensor that answers for the coordinates of what is not 0 in it, `indices()` and `values()`.

It lies in memory as a dense tensor does, and operators compute with it as with one: results are dense. Tensors made of coordinates (sparse_coo_tensor), which would
be larger than what was given, and the compressed layouts are not here.
"""
from __future__ import annotations

from typing import Any

from .. import dtypes, formats
from ..printing import elements_text
from ..tensor import Tensor
from .overriding import disabled
from .table import TABLE


class CoordinateTensor(Tensor):
    """What `x.to_sparse()` gives: x's values, and on request where they are not 0. Conversions and copies of it stay such tensors; `to_dense()` is the plain tensor."""

    __torch_function__ = staticmethod(disabled)  # type: ignore[assignment]
    is_sparse = True
    layout = property(lambda self: formats.sparse_coo)

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
        """The plain tensor, of `dtype` where one is given."""
        dense = self.as_subclass(Tensor)  # type: ignore[attr-defined]
        return dense.clone() if dtype is None else dense.to(dtype, copy=True)

    def indices(self) -> Tensor:
        """Where values are not 0, in row-major order: int64 [ndim, count]."""
        return self.as_subclass(Tensor).nonzero().t()  # type: ignore[attr-defined]

    def values(self) -> Tensor:
        """The values there: [count]."""
        dense = self.as_subclass(Tensor)  # type: ignore[attr-defined]
        return dense[tuple(self.indices())] if self.ndim else dense.reshape(1)[: self._nnz()]

    _indices, _values = indices, values

    def _nnz(self) -> int:
        return int(self.as_subclass(Tensor).count_nonzero().item())  # type: ignore[attr-defined]

    def coalesce(self) -> Tensor:
        """The tensor itself: each coordinate is there once."""
        return self

    def is_coalesced(self) -> bool:
        return True

    def sparse_dim(self) -> int:
        return self.ndim

    def dense_dim(self) -> int:
        return 0

    def numpy(self, *, force: bool = False):
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def __reduce_ex__(self, protocol):
        raise NotImplementedError("a tensor that to_sparse() gave is not saved: save x.to_dense(), and call to_sparse() after loading")

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), _coordinates(self.to_dense()))

    def __repr__(self, *, tensor_contents=None) -> str:  # type: ignore[override]
        notes = [f"size={tuple(self.shape)}", f"nnz={self._nnz()}"]
        if self.dtype not in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_):
            notes.append(f"dtype={self.dtype}")
        notes.append("layout=torch.sparse_coo")
        node = self.grad_fn  # type: ignore[attr-defined]
        if node is not None:
            notes.append(f"grad_fn=<{node.name()}>")
        lines = [_shown("indices", self.indices()), _shown("values", self.values().detach()), ", ".join(notes)]  # type: ignore[attr-defined]
        return "tensor(" + (",\n" + " " * len("tensor(")).join(lines) + ")"


def _shown(what: str, t: Tensor) -> str:
    if not t.numel():
        return f"{what}=tensor([], size={tuple(t.shape)})"
    return f"{what}=tensor({elements_text(t, len(f'tensor({what}=tensor('))})"


def _coordinates(dense: Tensor) -> CoordinateTensor:
    return dense.as_subclass(CoordinateTensor)  # type: ignore[attr-defined]


def _kept(name: str):
    """A conversion or copy whose result is such a tensor again."""

    def method(self, *args, **kwargs):
        dense = self.as_subclass(Tensor)
        result = getattr(Tensor, name)(dense, *args, **kwargs)
        return self if result is dense else _coordinates(result)

    return method


for _name in "to cpu half float double bfloat16 bool int long clone detach".split():
    setattr(CoordinateTensor, _name, _kept(_name))


def to_sparse(self: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Tensor:
    """A copy that also tells where its values are not 0, by `indices()` and `values()`; in memory it is as dense as the tensor.

    Raises NotImplementedError for coordinates of some dimensions only, and for compressed layouts.
    """
    if layout not in (None, formats.sparse_coo) or blocksize is not None:
        raise NotImplementedError(f"to_sparse: layout {layout} is not here; coordinates (torch.sparse_coo) are")
    if dense_dim or sparse_dim not in (None, self.ndim):
        raise NotImplementedError("to_sparse: coordinates are those of all dimensions; leave sparse_dim and dense_dim out")
    return self if isinstance(self, CoordinateTensor) else _coordinates(TABLE["clone"].call(self))


Tensor.to_sparse = Tensor.to_sparse_coo = to_sparse  # type: ignore[attr-defined]
