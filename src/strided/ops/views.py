"""View operators that show all elements in another shape or order: view, transpose, permute, squeeze, expand, … No element is touched.

Holds their gradients, and what every view operator uses: the plan cached in the input's spec, the checks of arguments.
Views of a part are in partviews.py, copies (reshape's fallback, clone, repeat, …) in copies.py, combinations in shape.py.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from operator import index
from typing import Any

from .. import errors
from ..autograd import backward, methods
from ..autograd.graph import window
from ..dispatch import CONTEXT, HOOKS, NOT_TAKEN, hooked_call
from ..kernels.native_objects import new as _new
from ..layout import Layout, infer_size
from ..tensor import Spec, Tensor, place_of
from .overriding import refused
from .table import TABLE, Entry, operator

_CACHE_LIMIT = 16_384  # plans kept for all specs together; then every cache is emptied
_caches: list[dict] = []  # those that hold plans. A plan holds the spec of its result, which holds plans: a bound for each alone would bound nothing
_plans = 0


def hot_operator(name: str, **facts) -> Callable[[Callable[..., Any]], Any]:
    """`operator` without a wrapper: the function itself begins with the test for hooks, which keeps a call below a microsecond."""

    def register(function: Any) -> Any:
        entry = TABLE[name] = function.entry = Entry(name, doc=function.__doc__, module=function.__module__, **facts)
        entry.call = function
        function.__name__ = function.__qualname__ = name
        return function

    return register


def hooked(function: Any, *args) -> Any:
    """A call of a hot operator while hooks are on."""
    return hooked_call(function.entry, function, args, {})


def remember(spec: Spec, key: tuple, plan: Any) -> Any:
    """Keeps a plan in the cache of `spec`."""
    global _plans
    if _plans >= _CACHE_LIMIT:
        for cache in _caches:
            cache.clear()
        _caches.clear()
        _plans = 0
    if not spec.cache:
        _caches.append(spec.cache)
    spec.cache[key] = plan
    _plans += 1
    return plan


def plan_of(spec: Spec, key: tuple, layout: Layout | tuple[Layout, int]) -> tuple[Spec, int]:
    """Caches (result's spec, bytes by which the start moves) for a layout, or a layout and an offset in elements."""
    if isinstance(layout, tuple):
        layout, offset = layout
    else:
        offset = 0
    return remember(spec, key, (spec.with_layout(layout), offset * spec.itemsize))


def check_tensor(name: str, value: Any, argument: str = "input") -> Tensor:
    """Raises PyTorch's TypeError unless `value` is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}(): argument '{argument}' (position 1) must be Tensor, not {type(value).__name__}")
    return value


def no_tensor(function: Any, input: Any, *args: Any) -> Any:
    """What an `input` that is no tensor answers (`__torch_function__`), called where its spec was asked for. Raises PyTorch's TypeError where it has no answer."""
    if isinstance(input, Tensor):
        return input.spec  # raises, as it did
    if (answer := refused(function.entry, (input, *args))) is not NOT_TAKEN:
        return answer
    return check_tensor(function.entry.name, input)


def integer(name: str, argument: str, value: Any) -> int:
    """An int from an int-like value; TypeError with PyTorch's sentence otherwise."""
    if isinstance(value, bool):
        raise TypeError(f"{name}(): argument '{argument}' must be int, not bool")
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{name}(): argument '{argument}' must be int, not {type(value).__name__}") from None


def integers(name: str, argument: str, values: Any) -> tuple[int, ...]:
    """A tuple of ints from ints given one by one, or as one tuple or list: `(2, 3)` and `((2, 3),)` mean the same."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = values[0]
    result = []
    for position, value in enumerate(values):
        try:
            result.append(index(value))
            if not -(2**63) <= result[-1] < 2**63:
                raise OverflowError
        except OverflowError:
            raise TypeError(f"{name}(): argument '{argument}' failed to unpack the object at pos {position + 1} with error \"Overflow when unpacking long long\"") from None
        except TypeError:
            raise TypeError(
                f"{name}(): argument '{argument}' must be tuple of ints, but found element of type {type(value).__name__} at pos {position}"
            ) from None
    return tuple(result)


def one_of(name: str, dim: Any, axis: Any) -> Any:
    """What was given as `dim` or, by NumPy's name, as `axis`: one of them."""
    if dim is not None:
        raise TypeError(f"{name}() received an invalid combination of arguments - got both dim and axis, which are two names of one")
    return axis


# ---- another shape ----------------------------------------------------------------------------------------------------------


@backward("View", __slots__=("self_sym_sizes",))
def ViewBackward0(node, g):
    return (TABLE["reshape"].call(g, *node.self_sym_sizes),)


@hot_operator("view", function=False, view=True)
def view(input, *shape, size=None, dtype=None):
    """The same memory as another shape (one size may be -1), or another dtype: `x.view(2, -1)`, `x.view(torch.int32)`.

    Raises RuntimeError where no strides express the shape without a copy (use reshape), or the number of elements differs.
    """
    if HOOKS.active and not CONTEXT.depth:
        return hooked_call(view.entry, view, (input, *shape), {} if size is dtype is None else {"size": size, "dtype": dtype})
    try:
        spec = input.spec
    except AttributeError:
        return no_tensor(view, input, *shape)
    try:
        new, _ = spec.cache["view", shape]
    except (KeyError, TypeError):
        new = None  # planned outside: an error there has no KeyError behind it
    if new is None:
        if dtype is not None or shape and type(shape[0]).__name__ == "dtype":
            return _view_dtype(input, shape[0] if dtype is None else dtype)
        new, _ = _plan_view(spec, integers("view", "size", shape if size is None else (size,)))
    return window(input, new, input.ptr, ViewBackward0, self_sym_sizes=spec.shape)


def _plan_view(spec: Spec, shape: tuple) -> tuple[Spec, int]:
    key = "view", shape
    found = spec.cache.get(key)
    if found is None:
        target = infer_shape(spec, shape)
        layout = spec.layout.view(target)
        if layout is None:
            raise errors.view_incompatible(spec.shape, spec.strides, target)
        found = plan_of(spec, key, layout)
    return found


def infer_shape(spec: Spec, shape: tuple) -> tuple:
    """`shape` with its -1 replaced; the error names the input's own shape."""
    try:
        return infer_size(shape, spec.numel)
    except RuntimeError as error:
        if str(error).startswith("shape '"):
            raise errors.invalid_reshape(shape, spec.numel, spec.shape) from None
        raise


def _view_dtype(input, dtype):
    spec = input.spec
    if spec.dtype.packed or dtype.packed:
        return _view_packed(input, dtype)
    old, new = spec.itemsize, dtype.itemsize
    if old == new:
        if dtype is spec.dtype:
            return alias(input)
        layout = spec.layout
    else:
        names = f"to view {spec.dtype.scalar_name} as {dtype.scalar_name} (different element sizes)"
        if spec.ndim == 0:
            raise RuntimeError(f"self.dim() cannot be 0 {names}")
        if spec.strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {names}, but got {spec.strides[-1]}")
        *sizes, last = spec.shape
        *steps, _ = spec.strides
        if old > new:
            factor = old // new
            layout = Layout.of((*sizes, last * factor), (*(s * factor for s in steps), 1))
        else:
            factor = new // old
            if last % factor:
                raise RuntimeError(f"self.size(-1) must be divisible by {factor} {names}, but got {last}")
            if input.storage_offset() % factor:
                raise RuntimeError(f"self.storage_offset() must be divisible by {factor} {names}, but got {input.storage_offset()}")
            for d, step in enumerate(steps):
                if step % factor:
                    raise RuntimeError(f"self.stride({d}) must be divisible by {factor} {names}, but got {step}")
            layout = Layout.of((*sizes, last // factor), (*(s // factor for s in steps), 1))
    t = _new(Tensor)
    t.spec, t.mem, t.ptr = Spec.of(layout, dtype, spec.device), input.mem, input.ptr
    return t


def _view_packed(input, dtype):
    """The same bits as elements of another size, where one of the two is below eight bits: sizes, strides and the start must come out whole."""
    spec = input.spec
    old, new = (d.bits if d.packed else 8 * d.itemsize for d in (spec.dtype, dtype))
    if old == new:
        if dtype is spec.dtype:
            return alias(input)
        layout, offset = spec.layout, input.storage_offset()
    else:
        names = f"to view {spec.dtype.scalar_name} as {dtype.scalar_name} (different element sizes)"
        if spec.ndim == 0:
            raise RuntimeError(f"self.dim() cannot be 0 {names}")
        if spec.strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 {names}, but got {spec.strides[-1]}")
        counts = {"self.size(-1)": spec.shape[-1], "self.storage_offset()": input.storage_offset()}
        counts |= {f"self.stride({d})": step for d, step in enumerate(spec.strides[:-1])}
        for name, count in counts.items():
            if count * old % new:
                raise RuntimeError(f"{name} must be divisible by {new // gcd(old, new)} {names}, but got {count}")
        last, offset, *steps = (count * old // new for count in counts.values())
        layout = Layout.of((*spec.shape[:-1], last), (*steps, 1))
    t = _new(Tensor)
    t.spec = found = Spec.of(layout, dtype, spec.device)
    t.mem, t.ptr = input.mem, place_of(input.mem, found, offset)
    return t


@backward("Alias")
def AliasBackward0(node, g):
    return (g,)


@operator("alias", function=False, method=False, view=True)
def alias(input):
    """A new tensor over the same memory, with history."""
    return window(input, input.spec, input.ptr, AliasBackward0)


@operator("view_as", function=False, view=True)
def view_as(input, other):
    """`input.view(other.shape)`."""
    return view(input, tuple(check_tensor("view_as", other, "other").shape))


@operator("unflatten", view=True)
def unflatten(input, dim, sizes):
    """Dimension `dim` split into `sizes`, of which one may be -1."""
    spec = input.spec
    dim, sizes = integer("unflatten", "dim", dim), integers("unflatten", "sizes", (sizes,))
    key = "unflatten", dim, sizes
    new, _ = spec.cache.get(key) or plan_of(spec, key, spec.layout.split_dim(dim, sizes))
    return window(input, new, input.ptr, ViewBackward0, self_sym_sizes=spec.shape)


# ---- another order of dimensions ----------------------------------------------------------------------------------------------


@backward("Transpose")
def TransposeBackward0(node, g):
    return (transpose(g, node.dim0, node.dim1),)


@hot_operator("transpose", aliases=("swapdims",), view=True)
def transpose(input, dim0, dim1):
    """Dimensions `dim0` and `dim1` exchanged. [.., a, .., b, ..] -> [.., b, .., a, ..]"""
    if HOOKS.active and not CONTEXT.depth:
        return hooked(transpose, input, dim0, dim1)
    try:
        spec = input.spec
    except AttributeError:
        return no_tensor(transpose, input, dim0, dim1)
    try:
        new, _ = spec.cache["transpose", dim0, dim1]
    except KeyError:
        new = None
    if new is None:
        key = "transpose", integer("transpose", "dim0", dim0), integer("transpose", "dim1", dim1)
        new, _ = plan_of(spec, key, spec.layout.transpose(key[1], key[2]))
    return window(input, new, input.ptr, TransposeBackward0, dim0=dim0, dim1=dim1)


@backward("T")
def TBackward0(node, g):
    return (t(g),)


@hot_operator("t", view=True)
def t(input):
    """The transpose of a matrix; tensors of fewer dimensions as they are. [a, b] -> [b, a]"""
    if HOOKS.active and not CONTEXT.depth:
        return hooked(t, input)
    try:
        spec = input.spec
    except AttributeError:
        return no_tensor(t, input)
    try:
        new, _ = spec.cache["t"]
    except KeyError:
        new = None
    if new is None:
        if spec.ndim > 2:
            raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {spec.ndim}D")
        new, _ = plan_of(spec, "t", spec.layout.transpose(0, spec.ndim - 1) if spec.ndim else spec.layout)
    return window(input, new, input.ptr, TBackward0)


@backward("Permute")
def PermuteBackward0(node, g):
    ndim = len(node.dims)
    inverse = [0] * ndim
    for place, d in enumerate(node.dims):
        inverse[d % ndim] = place
    return (permute(g, tuple(inverse)),)


@hot_operator("permute", view=True)
def permute(input, *dims_given, dims=None):
    """Dimension i of the result is dimension `dims[i]` of the input."""
    if HOOKS.active and not CONTEXT.depth:
        return hooked(permute, input, *(dims_given if dims is None else (dims,)))
    try:
        spec = input.spec
    except AttributeError:
        return no_tensor(permute, input, *(dims_given if dims is None else (dims,)))
    try:
        new, known = spec.cache["permute", dims_given]
    except (KeyError, TypeError):
        new = None
    if new is not None:
        dims = known
    else:
        dims = integers("permute", "dims", dims_given if dims is None else (dims,))
        key = "permute", dims
        found = spec.cache.get(key) or remember(spec, key, (spec.with_layout(spec.layout.permute(dims)), dims))
        new, dims = found
    return window(input, new, input.ptr, PermuteBackward0, dims=dims)


# ---- more or fewer dimensions ---------------------------------------------------------------------------------------------------


@backward("Unsqueeze")
def UnsqueezeBackward0(node, g):
    return (squeeze(g, node.dim),)


@hot_operator("unsqueeze", view=True)
def unsqueeze(input, dim=None, axis=None):
    """A new dimension of size 1 at position `dim` (or `axis`) of the result."""
    if axis is not None:
        dim = one_of("unsqueeze", dim, axis)
    if HOOKS.active and not CONTEXT.depth:
        return hooked(unsqueeze, input, dim)
    try:
        spec = input.spec
    except AttributeError:
        return no_tensor(unsqueeze, input, dim)
    try:
        new, _ = spec.cache["unsqueeze", dim]
    except KeyError:
        new = None
    if new is None:
        if dim is None:
            raise TypeError('unsqueeze() missing 1 required positional arguments: "dim"')
        dim = integer("unsqueeze", "dim", dim)
        new, _ = plan_of(spec, ("unsqueeze", dim), spec.layout.unsqueeze(dim))
    return window(input, new, input.ptr, UnsqueezeBackward0, dim=dim)


def _unsqueeze_back(node, g):
    return (TABLE["reshape"].call(g, *node.self_sym_sizes),)


SqueezeBackward0 = backward("SqueezeBackward0")(_unsqueeze_back)
SqueezeBackward1 = backward("SqueezeBackward1")(_unsqueeze_back)
SqueezeBackward2 = backward("SqueezeBackward2")(_unsqueeze_back)


@hot_operator("squeeze", view=True)
def squeeze(input, dim=None, axis=None, *more):
    """Without its dimensions of size 1: all, or those named by `dim` (or `axis`; an int or several, also one by one)."""
    if axis is not None:
        dim = axis if dim is None else (dim, axis, *more)
    if HOOKS.active and not CONTEXT.depth:
        return hooked(squeeze, input, dim)
    try:
        spec = input.spec
    except AttributeError:
        return no_tensor(squeeze, input, dim)
    try:
        new, _ = spec.cache["squeeze", dim]
    except (KeyError, TypeError):
        new = None
    if new is None:
        if dim is not None:
            dim = integers("squeeze", "dim", (dim,)) if isinstance(dim, (tuple, list)) else integer("squeeze", "dim", dim)
        key = "squeeze", dim
        new, _ = spec.cache.get(key) or plan_of(spec, key, spec.layout.squeeze(dim))
    node = SqueezeBackward0 if dim is None else SqueezeBackward2 if isinstance(dim, (tuple, list)) else SqueezeBackward1
    return window(input, new, input.ptr, node, dim=dim, self_sym_sizes=spec.shape)


@backward("Expand")
def ExpandBackward0(node, g):
    from .elementwise import sum_to

    return (sum_to(g, node.self_sym_sizes),)


@hot_operator("expand", function=False, view=True)
def expand(input, *shape, size=None, implicit=False):
    """Broadcast to a shape without a copy (-1 keeps a size): expanded dimensions get stride 0."""
    if HOOKS.active and not CONTEXT.depth:
        return hooked(expand, input, *(shape if size is None else (size,)))
    try:
        spec = input.spec
    except AttributeError:
        return no_tensor(expand, input, *shape)
    try:
        new, _ = spec.cache["expand", shape]
    except (KeyError, TypeError):
        new = None
    if new is None:
        target = integers("expand", "size", shape if size is None else (size,))
        key = "expand", target
        new, _ = spec.cache.get(key) or plan_of(spec, key, spec.layout.expand(target))
    return window(input, new, input.ptr, ExpandBackward0, self_sym_sizes=spec.shape)


@operator("expand_as", function=False, view=True)
def expand_as(input, other):
    """`input.expand(other.shape)`."""
    return expand(input, tuple(check_tensor("expand_as", other, "other").shape))


@operator("broadcast_to", view=True)
def broadcast_to(input, *shape, size=None):
    """`input.expand(shape)`."""
    return expand(input, *shape, size=size)


@operator("detach", view=True)
def detach(input):
    """The same memory without history: a tensor that requires no grad. Not counted as a view when it comes to writes in place: they go unrecorded."""
    return methods.detach(check_tensor("detach", input))
