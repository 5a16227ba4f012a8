"""Orders of dimensions in memory by name (torch.contiguous_format, channels_last, …), and torch.strided, the only kind of storage here.

They are names that factories and copies take; the arithmetic behind them is layout.py's.
"""

from .layout import Layout, channels_last_strides, is_channels_last


class MemoryFormat:
    """An order of dimensions in memory by name: torch.contiguous_format, preserve_format, channels_last, channels_last_3d."""

    __slots__ = ("name", "ndim")

    def __init__(self, name, ndim=None):
        self.name, self.ndim = name, ndim

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return _by_name, (self.name,)

    def matches(self, layout) -> bool:
        """Whether a layout already has this order."""
        if self.ndim is None:
            return layout.is_contiguous or self is preserve_format
        return layout.ndim == self.ndim and is_channels_last(layout)

    def layout(self, shape) -> Layout:
        """The dense layout of `shape` in this order."""
        if self.ndim is None:
            return Layout.contiguous(shape)
        if len(shape) != self.ndim:
            raise RuntimeError(f"required rank {self.ndim} tensor to use {self.name} format")
        return Layout.of(shape, channels_last_strides(shape))


MemoryFormat.__name__ = MemoryFormat.__qualname__ = "memory_format"
memory_format = MemoryFormat
contiguous_format = legacy_contiguous_format = MemoryFormat("contiguous_format")
preserve_format = MemoryFormat("preserve_format")
channels_last = MemoryFormat("channels_last", 4)
channels_last_3d = MemoryFormat("channels_last_3d", 5)


def _by_name(name):
    return globals()[name]


class StorageLayout:
    """How a tensor's elements are stored at all: torch.strided is the only one that tensors have here."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return _by_name, (self.name,)


StorageLayout.__name__ = StorageLayout.__qualname__ = "layout"
strided = StorageLayout("strided")
# To compare with: no memory lies so. What to_sparse() gives says sparse_coo.
sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc = map(StorageLayout, ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"))


def suggested(layout) -> MemoryFormat:
    """The format that results for an operand of this layout get where they follow it: channels_last (or channels_last_3d) if its strides look like that, else contiguous.

    Gaps between elements do not matter (a window of a channels-last tensor is like one); where strides fit both, it is contiguous.
    """
    ndim = layout.ndim
    if ndim not in (4, 5) or layout.strides[1] == 0:
        return contiguous_format
    least = 0
    for d in (1, *range(ndim - 1, 1, -1), 0):
        size, stride = layout.shape[d], layout.strides[d]
        if size == 0 or stride < least or d == 0 and least == layout.strides[1]:
            return contiguous_format
        least = stride * max(size, 1)
    return channels_last if ndim == 4 else channels_last_3d
