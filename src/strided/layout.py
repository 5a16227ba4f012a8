"""Shape and stride arithmetic: the recipe for walking flat memory, as pure integer algebra.

Holds `Size`, `Layout` (immutable, interned by shape and strides; strides in elements) and the functions that combine shapes.
Knows nothing of dtypes, memory or tensors. The start offset is not part of a layout: operations that move it return it beside the layout.
"""

from math import prod
from operator import index

from . import errors

INT64_MAX = 2**63 - 1
_TABLE: dict[tuple, "Layout"] = {}
_TABLE_LIMIT = 20_000  # beyond this many the table is emptied: memory stays bounded, equality does not depend on identity


class Size(tuple):
    """A shape: a tuple of sizes that prints as PyTorch's does. Slices, sums and repetitions are sizes again."""

    __slots__ = ()

    def __new__(cls, sizes=()):
        if type(sizes) is Size:
            return sizes
        sizes = tuple(sizes)
        for position, size in enumerate(sizes):
            if type(size) is not int:
                return tuple.__new__(cls, _integers(sizes, position))
        return tuple.__new__(cls, sizes)

    def __repr__(self):
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        """Number of elements: the product of the sizes."""
        return prod(self)

    def __getitem__(self, key):
        item = tuple.__getitem__(self, key)
        return tuple.__new__(Size, item) if type(item) is tuple else item

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other))) if isinstance(other, (tuple, list)) else NotImplemented

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self)) if isinstance(other, (tuple, list)) else NotImplemented

    def __mul__(self, times):
        return Size(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self):
        return Size, (tuple(self),)


def _integers(sizes, position):
    for place in range(position, len(sizes)):
        try:
            index(sizes[place])
        except TypeError:
            raise TypeError(f"torch.Size() takes an iterable of 'int' (item {place} is '{type(sizes[place]).__name__}')") from None
    return map(index, sizes)


class Layout:
    """How a tensor of some shape lies in memory: `shape` and `strides` (in elements).

    Obtain one with `Layout.of` or `Layout.contiguous`. Attributes: `shape: Size`, `strides: tuple`, `ndim`, `numel`,
    `is_contiguous` (row-major; sizes of 1 are ignored, an empty layout is contiguous), `is_dense` (non-overlapping and dense in some order),
    `span` (elements from the first to the last, both counted; 0 if empty).
    """

    __slots__ = ("shape", "strides", "ndim", "numel", "is_contiguous", "is_dense", "span", "_hash", "__weakref__")

    @staticmethod
    def of(shape, strides) -> "Layout":
        """The layout of `shape` walked with `strides` (elements); both are sequences of ints of one length."""
        key = (tuple(shape), tuple(strides))
        found = _TABLE.get(key)
        return found if found is not None else _new_layout(key)

    @staticmethod
    def contiguous(shape) -> "Layout":
        """The row-major layout of `shape`."""
        found = _CONTIGUOUS.get(shape := tuple(shape))
        if found is None:
            found = Layout.of(shape, contiguous_strides(shape))
            if len(_CONTIGUOUS) >= _TABLE_LIMIT:
                _CONTIGUOUS.clear()
            _CONTIGUOUS[found.shape] = found
        return found

    def __eq__(self, other):
        if self is other:
            return True
        return isinstance(other, Layout) and self.shape == other.shape and self.strides == other.strides

    def __hash__(self):
        return self._hash

    def __repr__(self):
        return f"Layout({list(self.shape)}, strides={list(self.strides)})"

    def __reduce__(self):
        return Layout.of, (tuple(self.shape), self.strides)

    # ---- same elements, another recipe ----

    def view(self, shape) -> "Layout | None":
        """The same elements in row-major order as `shape` (no -1), or None when no strides can express it without a copy."""
        strides = view_strides(self.shape, self.strides, shape)
        return None if strides is None else Layout.of(shape, strides)

    def permute(self, dims) -> "Layout":
        """Dimension i of the result is dimension `dims[i]` of this."""
        if len(dims) != self.ndim:
            raise RuntimeError(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions "
                f"i.e. input.dim() = {self.ndim} is not equal to len(dims) = {len(dims)}"
            )
        found: list[int] = []
        for dim in dims:
            d = wrap_dim(dim, self.ndim)
            if d in found:
                raise RuntimeError("permute(): duplicate dims are not allowed.")
            found.append(d)
        dims = found
        return Layout.of([self.shape[d] for d in dims], [self.strides[d] for d in dims])

    def transpose(self, a, b) -> "Layout":
        """Dimensions `a` and `b` exchanged."""
        a, b = wrap_dim(a, self.ndim), wrap_dim(b, self.ndim)
        if a == b:
            return self
        dims = list(range(self.ndim))
        dims[a], dims[b] = b, a
        return self.permute(dims)

    def expand(self, shape) -> "Layout":
        """Broadcast to `shape` with stride 0; -1 keeps a size."""
        return Layout.of(*expand_geometry(self.shape, self.strides, shape))

    def squeeze(self, dims=None) -> "Layout":
        """Without the size-1 dimensions: all of them, or those among `dims` (an int or a sequence)."""
        if dims is None:
            chosen = set(range(self.ndim))
        else:
            chosen = set(wrap_dims(dims, self.ndim))
        kept = [d for d in range(self.ndim) if self.shape[d] != 1 or d not in chosen]
        return Layout.of([self.shape[d] for d in kept], [self.strides[d] for d in kept])

    def unsqueeze(self, dim) -> "Layout":
        """A new size-1 dimension at position `dim` of the result."""
        dim = wrap_dim(dim, self.ndim + 1)
        stride = self.shape[dim] * self.strides[dim] if dim < self.ndim else 1
        return Layout.of(self.shape[:dim] + (1,) + self.shape[dim:], self.strides[:dim] + (stride,) + self.strides[dim:])

    def flatten(self, start=0, end=-1) -> "Layout | None":
        """Dimensions `start` to `end` merged into one; None when they do not lie in one run."""
        if self.ndim == 0:
            wrap_dim(start, 0), wrap_dim(end, 0)
            return Layout.of((1,), (1,))
        start, end = wrap_dim(start, self.ndim), wrap_dim(end, self.ndim)
        if start > end:
            raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
        if start == end:
            return self
        merged = prod(self.shape[start : end + 1])
        return self.view(self.shape[:start] + (merged,) + self.shape[end + 1 :])

    def split_dim(self, dim, sizes) -> "Layout":
        """Dimension `dim` split into `sizes` (one may be -1); always a view."""
        sizes = tuple(sizes)
        if not sizes:
            raise RuntimeError("unflatten: sizes must be non-empty")
        dim = wrap_dim(dim, self.ndim)
        sizes = infer_split(self.shape[dim], sizes, dim)
        return self.view(self.shape[:dim] + sizes + self.shape[dim + 1 :])  # type: ignore[return-value]  # a split is always a view

    # ---- fewer elements: the start may move ----

    def narrow(self, dim, start, length) -> "tuple[Layout, int]":
        """Elements `start` to `start + length` of dimension `dim`, and the offset (elements) of the new start."""
        if self.ndim == 0:
            raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
        start, length = index(start), index(length)  # an address that is no int would be read as one
        if length < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        dim = wrap_dim(dim, self.ndim)
        size = self.shape[dim]
        if not -size <= start <= size:
            raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
        if start < 0:
            start += size
        if start + length > size:
            raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
        return self._replace(dim, length, self.strides[dim]), start * self.strides[dim]

    def slice(self, dim, start=None, stop=None, step=1) -> "tuple[Layout, int]":
        """Python's slice of dimension `dim` (clamped; `step` > 0), and the offset of the new start."""
        if self.ndim == 0:
            raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
        dim = wrap_dim(dim, self.ndim)
        step = 1 if step is None else step
        if step <= 0:
            raise ValueError("slice step cannot be zero" if step == 0 else "step must be greater than zero")
        start, stop, step = slice(start, stop, step).indices(self.shape[dim])
        length = max(0, (stop - start + step - 1) // step)
        return self._replace(dim, length, self.strides[dim] * step), start * self.strides[dim]

    def select(self, dim, position) -> "tuple[Layout, int]":
        """Entry `position` of dimension `dim`, which disappears, and the offset of the new start."""
        if self.ndim == 0:
            raise IndexError("select() cannot be applied to a 0-dim tensor.")
        position = index(position)
        dim = wrap_dim(dim, self.ndim)
        size = self.shape[dim]
        if not -size <= position < size:
            raise IndexError(f"select(): index {position} out of range for tensor of size {list(self.shape)} at dimension {dim}")
        if position < 0:
            position += size
        smaller = Layout.of(self.shape[:dim] + self.shape[dim + 1 :], self.strides[:dim] + self.strides[dim + 1 :])
        return smaller, position * self.strides[dim]

    def unfold(self, dim, size, step) -> "Layout":
        """Windows of `size` every `step` elements along `dim`; the window is a new last dimension. [.., n, ..] -> [.., windows, .., size]"""
        dim = wrap_dim(dim, self.ndim)
        extent, stride = (self.shape[dim], self.strides[dim]) if self.ndim else (1, 1)
        if size < 0:
            raise RuntimeError(f"size is {size} but must be >= 0")
        if size > extent:
            raise RuntimeError(f"maximum size for tensor at dimension {dim} is {extent} but size is {size}")
        if step <= 0:
            raise RuntimeError(f"step is {step} but must be > 0")
        if self.ndim == 0:
            return Layout.of((size,), (1,))
        windows = self._replace(dim, (extent - size) // step + 1, step * stride)
        return Layout.of(windows.shape + (size,), windows.strides + (stride,))

    def diagonal(self, offset=0, dim1=0, dim2=1) -> "tuple[Layout, int]":
        """The diagonal of `dim1` and `dim2` as a new last dimension, `offset` above the main one, and the offset of the new start."""
        a, b, offset = wrap_dim(dim1, self.ndim), wrap_dim(dim2, self.ndim), index(offset)
        if a == b:
            raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
        rows, columns = self.shape[a], self.shape[b]
        length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
        start = 0 if length == 0 else offset * self.strides[b] if offset >= 0 else -offset * self.strides[a]
        kept = [d for d in range(self.ndim) if d not in (a, b)]
        shape = [self.shape[d] for d in kept] + [length]
        return Layout.of(shape, [self.strides[d] for d in kept] + [self.strides[a] + self.strides[b]]), start

    def _replace(self, dim, size, stride):
        return Layout.of(self.shape[:dim] + (size,) + self.shape[dim + 1 :], self.strides[:dim] + (stride,) + self.strides[dim + 1 :])


_CONTIGUOUS: dict[tuple, Layout] = {}


def _new_layout(key) -> Layout:
    shape, strides = Size(key[0]), tuple(map(index, key[1]))
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    numel = prod(shape)
    if any(size < 0 for size in shape) or numel > INT64_MAX:
        raise RuntimeError("numel: integer multiplication overflow")
    if any(stride < 0 for stride in strides):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}")
    layout = object.__new__(Layout)
    layout.shape, layout.strides, layout.ndim, layout.numel = shape, strides, len(shape), numel
    layout.span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides)) if numel else 0
    if layout.span > INT64_MAX:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}")
    layout.is_contiguous = numel == 0 or _walks_in_order(shape, strides, range(len(shape) - 1, -1, -1))
    layout.is_dense = layout.is_contiguous or _is_dense(shape, strides)
    layout._hash = hash((tuple(shape), strides))
    if len(_TABLE) >= _TABLE_LIMIT:
        _TABLE.clear()
    return _TABLE.setdefault((tuple(shape), strides), layout)


def _walks_in_order(shape, strides, order) -> bool:
    """Whether the dimensions of `order`, fastest first, follow each other without a gap (size-1 dimensions do not count)."""
    expected = 1
    for d in order:
        if shape[d] != 1:
            if strides[d] != expected:
                return False
            expected *= shape[d]
    return True


def _is_dense(shape, strides) -> bool:
    order = sorted((d for d in range(len(shape)) if shape[d] > 1), key=lambda d: strides[d])
    return _walks_in_order(shape, strides, order)


# ---- functions over shapes ----


def contiguous_strides(shape) -> tuple:
    """Row-major strides in elements (sizes of 0 count as 1, as in PyTorch)."""
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= size or 1
    return tuple(reversed(strides))


def wrap_dim(dim, ndim) -> int:
    """`dim` counted from the front; a 0-d tensor counts as one dimension. IndexError when out of range."""
    extent = ndim or 1
    if not -extent <= dim < extent:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-extent}, {extent - 1}], but got {dim})")
    return index(dim % extent)


def wrap_dims(dims, ndim) -> list[int]:
    """A dimension or several, counted from the front; RuntimeError when one is named twice. The first one that is wrong is told."""
    found: list[int] = []
    for dim in dims if isinstance(dims, (tuple, list)) else (dims,):
        d = wrap_dim(dim, ndim)
        if d in found:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        found.append(d)
    return found


def infer_size(shape, numel) -> Size:
    """`shape` with its one -1 replaced, so that it holds `numel` elements."""
    unknown, known = None, 1
    for position, size in enumerate(shape):
        if size == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = position
        elif size < 0:
            raise RuntimeError(f"invalid shape dimension {size} at index {position} of shape {list(shape)}")
        else:
            known *= size
    if unknown is None:
        if known != numel:
            raise errors.invalid_reshape(shape, numel)
        return Size(shape)
    if known == 0 and numel == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 can be any value and is ambiguous"
        )
    if known == 0 or numel % known:
        raise errors.invalid_reshape(shape, numel)
    return Size(tuple(shape[:unknown]) + (numel // known,) + tuple(shape[unknown + 1 :]))


def infer_split(extent, sizes, dim) -> tuple:
    """`sizes` of `unflatten`, whose product must be `extent`; one may be -1."""
    sizes = tuple(sizes)
    if sizes.count(-1) > 1:
        raise RuntimeError("unflatten got an unexpected error:\nonly one dimension can be inferred")
    if -1 in sizes and 0 in sizes and extent == 0:
        raise RuntimeError(
            f"unflatten got an unexpected error:\ncannot reshape tensor of 0 elements into shape {list(sizes)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    known = prod(size for size in sizes if size != -1)
    if any(size < -1 for size in sizes) or (known != extent if -1 not in sizes else known == 0 or extent % known):
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({extent}) in the input tensor")
    return tuple(extent // known if size == -1 else size for size in sizes)


def view_strides(shape, strides, target):
    """Strides that show `shape` walked with `strides` as `target` (same number of elements), or None.

    The dimensions of `shape` fall into runs that memory joins without a gap; each run must be made of whole target dimensions.
    """
    numel = prod(shape)
    if numel == 0:
        return tuple(strides) if tuple(shape) == tuple(target) else contiguous_strides(target)
    if not shape:
        return (1,) * len(target)
    result = [0] * len(target)
    t = len(target) - 1
    base = strides[-1]  # stride of the run's innermost dimension
    run = seen = 1  # elements of the run so far in the source, in the target
    for d in range(len(shape) - 1, -1, -1):
        run *= shape[d]
        if d > 0 and (shape[d - 1] == 1 or strides[d - 1] == run * base):
            continue  # the next dimension out belongs to the same run
        while t >= 0 and (seen < run or target[t] == 1):
            result[t] = seen * base
            seen *= target[t]
            t -= 1
        if seen != run:
            return None
        if d > 0:
            base, run, seen = strides[d - 1], 1, 1
    return tuple(result) if t < 0 else None


def expand_geometry(shape, strides, target):
    """(shape, strides) of a broadcast to `target`; -1 in it keeps a size."""
    added = len(target) - len(shape)
    if added < 0:
        raise errors.expand_too_short(shape, target)
    sizes, steps = [0] * len(target), [0] * len(target)
    for position in range(len(target) - 1, -1, -1):
        own, size = position - added, target[position]
        if own >= 0:
            extent, step = shape[own], strides[own]
        elif not shape:
            extent, step = 1, 0
        else:  # a new leading dimension: the stride it would have if the tensor below it were repeated
            extent, step = 1, sizes[position + 1] * steps[position + 1]
        if size == -1:
            if own < 0:
                raise RuntimeError(f"The expanded size of the tensor ({size}) isn't allowed in a leading, non-existing dimension {position}")
            size = extent
        if size != extent:
            if extent != 1:
                raise errors.expand_mismatch(shape, target, position)
            step = 0
        sizes[position], steps[position] = size, step
    return sizes, steps


def broadcast_shapes(*shapes) -> Size:
    """The shape all `shapes` broadcast to: aligned at the right, sizes of 1 stretch."""
    result = tuple(shapes[0]) if shapes else ()
    for shape in shapes[1:]:
        if tuple(shape) != result:
            result = _broadcast(result, tuple(shape))
    return Size(result)


def _broadcast(a, b):
    ndim = max(len(a), len(b))
    left, right = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    sizes = []
    for d in range(ndim - 1, -1, -1):
        if left[d] != right[d] and left[d] != 1 and right[d] != 1:
            raise errors.broadcast_mismatch(a, b, d)
        sizes.append(right[d] if left[d] == 1 else left[d])
    return tuple(reversed(sizes))


def collapse(shape, *strides_lists):
    """`shape` and each operand's strides with size-1 dimensions dropped and neighbours merged wherever every operand walks both as one.

    Returns (shape, [strides, ...]), outermost first; () when one element remains.
    """
    sizes, columns = [], []
    for d, size in enumerate(shape):
        if size == 1:
            continue
        column = [strides[d] for strides in strides_lists]
        if sizes and all(outer == inner * size for outer, inner in zip(columns[-1], column)):
            sizes[-1] *= size
            columns[-1] = column
        else:
            sizes.append(size)
            columns.append(column)
    return tuple(sizes), [tuple(column[k] for column in columns) for k in range(len(strides_lists))]


def channels_last_strides(shape) -> tuple:
    """Strides in elements of a [N, C, H, W] (or [N, C, D, H, W]) tensor whose channels lie innermost."""
    n, c, *space = shape
    strides, stride = [], c
    for size in reversed(space):
        strides.append(stride)
        stride *= size
    return (stride, 1, *reversed(strides))


def is_channels_last(layout) -> bool:
    """Whether a 4-d or 5-d layout is dense with its channels innermost (size-1 dimensions do not count)."""
    return layout.ndim in (4, 5) and _walks_in_order(layout.shape, layout.strides, (1, *range(layout.ndim - 1, 1, -1), 0))


def result_strides(shape, *layouts) -> Layout:
    """Layout of the fresh result of a pointwise operator over `layouts` (not yet broadcast): their order of dimensions, made dense."""
    shape = tuple(shape)
    if all(layout.shape == shape for layout in layouts):
        if all(layout.is_contiguous for layout in layouts):
            return Layout.contiguous(shape)
        if len(shape) == 4 and all(is_channels_last(layout) for layout in layouts):
            return Layout.of(shape, channels_last_strides(shape))
        if all(layout.is_dense and layout.strides == layouts[0].strides for layout in layouts):
            return layouts[0]
    ndim = len(shape)
    walks = [_broadcast_strides(shape, layout) for layout in layouts]
    order = list(range(ndim - 1, -1, -1))  # fastest dimension first
    for i in range(1, ndim):
        place = i
        for j in range(i - 1, -1, -1):
            verdict = _slower(shape, walks, order[j], order[place])
            if verdict > 0:
                order[j], order[place] = order[place], order[j]
                place = j
            elif verdict < 0:
                break
    if order == list(range(ndim - 1, -1, -1)):
        return Layout.contiguous(shape)
    strides, stride = [0] * ndim, 1
    for d in order:
        strides[d] = stride
        stride *= shape[d]
    return Layout.of(shape, strides)


def _broadcast_strides(shape, layout):
    added = len(shape) - layout.ndim
    own = (0 if size == 1 and shape[added + d] != 1 else stride for d, (size, stride) in enumerate(zip(layout.shape, layout.strides)))
    return (0,) * added + tuple(own)


def _slower(shape, walks, a, b) -> int:
    """1 when dimension `a` should lie outside `b`, -1 when inside, 0 when no operand tells; the first operand that tells decides."""
    for strides in walks:
        if strides[a] == 0 or strides[b] == 0:
            continue
        if strides[a] != strides[b]:
            return 1 if strides[a] > strides[b] else -1
        if shape[a] > shape[b]:
            return 1
    return 0
