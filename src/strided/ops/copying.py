"""What a write must look at first, and copies without history: places that several elements share, `assign`, `self_copy`.

Nothing here is recorded or counted as a version. The kernels of copies are kernels/index.py's (as they are) and kernels/map.py's (converted).
"""
from __future__ import annotations

import warnings
from typing import Any

from ..dispatch import PlanCache, launch, run
from ..kernels import expr as E
from ..kernels.index import build_copy
from ..kernels.map import build_map
from ..layout import result_strides
from ..tensor import Spec, Tensor
from . import packed, table


def shared_dims(x: Tensor) -> list[int]:
    """The dimensions of x along which several elements share a place (it was expanded there)."""
    return [] if x.spec.layout.is_dense else [d for d, (size, stride) in enumerate(zip(x.shape, x.stride())) if stride == 0 and size > 1]


def check_overlap(x: Tensor) -> None:
    """Raises where several elements of x share a place (an expanded tensor cannot be written)."""
    if shared_dims(x):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation."
            f"\n  shape {list(x.shape)}, strides {list(x.stride())}: a stride of 0 repeats one element (expand). Write to x.clone()."
        )


def warn_of_overlap(name: str, x: Tensor) -> list[int]:
    """`check_overlap` of the few operators that PyTorch lets write into expanded tensors: a warning. Gives the expanded dimensions."""
    shared = shared_dims(x)
    if shared:
        warnings.warn(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This also applies to advanced "
            f"indexing e.g. {'tensor[indices] = tensor' if name == 'index_put_' else 'tensor[mask] = scalar'}",
            UserWarning,
            stacklevel=5,
        )
    return shared


# ---- copies without history ---------------------------------------------------------------------------------------------------------------------

_identity = E.param(0)
_assign_plans = PlanCache()


def meet(source: Tensor, target: Tensor) -> bool:
    """Whether two tensors' stretches of memory meet. Told by address: `x.data` and borrowed memory have storages of their own."""
    a, b, gap = source.spec, target.spec, source.ptr - target.ptr
    return gap < b.layout.span * b.itemsize and -gap < a.layout.span * a.itemsize


def clash(source: Tensor, target: Tensor) -> bool:
    """Whether writing `target` could change elements of `source` that are still to be read: their memory meets, and not element by element."""
    a, b = source.spec, target.spec
    return (source.ptr != target.ptr or a.layout is not b.layout and a.layout != b.layout or a.itemsize != b.itemsize) and meet(source, target)


def assign(destination: Tensor, source: Tensor) -> None:
    """Copies values, broadcast and cast to the destination; neither recorded nor counted as a version."""
    if destination.spec.is_meta:
        return
    if source.spec.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if clash(source, destination):
        source = self_copy(source)
    key = destination.spec, source.spec
    desc = _assign_plans.get(key)
    if desc is None:
        if destination.spec.dtype.packed or source.spec.dtype.packed:
            return packed.assign(destination, source)
        shape = destination.shape
        desc = _copy_descriptor(destination.spec, source.spec, source.spec.layout.expand(shape))
        _assign_plans.put(key, desc)
    launch(desc, destination.ptr, source.ptr)


def assign_plan(destination: Tensor, source: Tensor) -> Any:
    """The plan that `assign` had for two tensors of these specs, None where it keeps none (packed and meta tensors)."""
    return _assign_plans.get((destination.spec, source.spec))


def _copy_descriptor(target: Spec, source: Spec, layout: Any, result_bytes: int = 0) -> bytes:
    """The plan of a copy: elements moved as they are where the dtype stays, else converted one by one. layout: the source's, broadcast."""
    if target.dtype is source.dtype:
        return build_copy(target.itemsize, target.shape, target.strides, layout.strides, result_bytes=result_bytes)
    return build_map(_identity, [(target.dtype, target.layout)], [(source.dtype, layout)], result_bytes=result_bytes)


table.assign = assign
table.check_overlap = check_overlap
_copy_plans = PlanCache()


def self_copy(x: Tensor, dtype: Any = None, layout: Any = None) -> Tensor:
    """A fresh tensor of x's values (dense, x's order of dimensions unless a layout is given), not recorded."""
    dtype = dtype or x.dtype
    key = x.spec, dtype, layout
    plan = _copy_plans.get(key)
    if plan is None:
        if dtype.packed or x.spec.dtype.packed:
            return packed.copy(x, dtype, layout)
        target = layout or result_strides(x.shape, x.spec.layout)
        spec = Spec.of(target, dtype, x.device)
        desc = None if spec.is_meta else _copy_descriptor(spec, x.spec, x.spec.layout, spec.nbytes)
        plan = _copy_plans.put(key, (desc, spec))
    return run(plan[0], plan[1], x.ptr)


table.self_copy = self_copy
