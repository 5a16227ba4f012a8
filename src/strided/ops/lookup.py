"""Looking things up: embedding tables, one-hot rows, flat positions (take, put), counts of values, positions in sorted sequences."""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, check_inplace, no_grad, record, record_inplace, tracking
from ..block_tensor import NotOfBlocks
from ..tensor import Tensor
from . import host, indexing
from .elementwise import check_overlap, self_copy
from .folding import plain
from .hostwise import converted_number
from .partviews import begun_gradient
from .table import TABLE, operator

# ---- embedding -------------------------------------------------------------------------------------------------------------------


def _check_indices(indices):
    if indices.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{indices.dtype.scalar_name}Tensor instead (while checking arguments for embedding)"
        )


def check_sparse(name, sparse, weight):
    """sparse=True only says of what kind the table's gradient is to be: without one it changes nothing."""
    if sparse and tracking(weight):
        raise NotImplementedError(f"{name}(sparse=True): sparse gradients are not supported; leave sparse=False")


@operator("embedding", method=False, moves=True, reason=lambda *_: "rows of the table are copied out")
def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of `weight` that `input` (int64 or int32, any shape) names. [*], [V, D] -> [*, D]

    Row `padding_idx` takes no gradient; max_norm: rows that are longer are scaled down in place first. torch.embedding's order (weight, indices) is
    understood too. Raises IndexError for an index out of range.
    """
    if isinstance(input, Tensor) and input.dtype.is_floating_point and isinstance(weight, Tensor) and not weight.dtype.is_floating_point:
        input, weight = weight, input
        padding_idx = None if padding_idx == -1 else padding_idx
    check_sparse("embedding", sparse, weight)
    _check_indices(input)
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    rows = weight.shape[0]
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx = padding_idx % rows
    if max_norm is not None:
        with no_grad():
            _renorm_rows(weight, input, float(max_norm), norm_type)
    try:
        out = indexing.get(weight, (0,), (input,), lambda *_: IndexError("index out of range in self"), wrap_negative=False)
    except NotOfBlocks:
        out = None
    if out is None:
        from .blocks.products import embedding_of_blocks

        return embedding_of_blocks(input, weight)
    if tracking(weight):
        record(EmbeddingBackward0, (weight, input), out, (input,), spec=weight.spec, padding_idx=padding_idx, by_frequency=scale_grad_by_freq)
    return out


def _renorm_rows(weight, indices, max_norm, norm_type):
    used = TABLE["unique"].call(TABLE["reshape"].call(indices, (-1,)))
    rows = TABLE["index_select"].call(weight, 0, used)
    norms = TABLE["norm"].call(rows, norm_type, 1, True)
    scale = TABLE["where"].call(norms > max_norm, max_norm / (norms + 1e-7), TABLE["ones_like"].call(norms))
    TABLE["index_copy_"].call(weight, 0, used, rows * scale)


@backward("Embedding", saved_names=("indices",))
def EmbeddingBackward0(node, g):
    (indices,) = node.saved
    spec = node.spec
    flat = TABLE["reshape"].call(indices, -1)
    rows = TABLE["reshape"].call(g, indices.spec.numel, spec.shape[1])  # [n, D]
    if node.by_frequency:
        counts = bincount(flat, minlength=spec.shape[0])
        rows = rows / TABLE["unsqueeze"].call(TABLE["index_select"].call(counts, 0, flat), 1)
    if node.padding_idx is not None:
        rows = TABLE["masked_fill"].call(rows, TABLE["unsqueeze"].call(TABLE["eq"].call(flat, node.padding_idx), 1), 0)
    begun = begun_gradient(node, spec.shape, g)  # of a table that is read several times
    total = TABLE["zeros"].call(*spec.shape, dtype=g.dtype, device=g.device) if begun is None else begun
    TABLE["index_add_"].call(total, 0, flat, rows)
    return total if begun is None else None, None


BLOCK = 1 << 17  # elements that are looked up before they are added: they stay in the cache


def row_sums(table, source, target, count):
    """`count` rows of sums: row source[i] of the table is added to row target[i], without a tensor of all rows. [V, D], [N], [N] -> [count, D]

    Its gradient is itself, source and target exchanged. Raises IndexError for a source out of range.
    """
    width = table.shape[1]
    step = max(BLOCK // max(width, 1), 1)
    with no_grad():
        out = TABLE["zeros"].call((count, width), dtype=table.dtype, device=table.device)
        for start in range(0, source.shape[0], step):
            n = min(step, source.shape[0] - start)
            TABLE["index_add_"].call(out, 0, target.narrow(0, start, n), embedding(source.narrow(0, start, n), table))
    if tracking(table):
        record(EmbeddingBagBackward0, (table, source, target), out, (source, target), count=table.shape[0])
    return out


@backward("EmbeddingBag", saved_names=("indices", "offset2bag"))
def EmbeddingBagBackward0(node, g):
    source, target = node.saved
    return row_sums(TABLE["contiguous"].call(g), target, source, node.count), None, None  # rows of an expanded gradient are slow to read


@operator("one_hot", method=False, namespace="nn.functional")
def one_hot(tensor, num_classes=-1):
    """For each class (int64) a row of `num_classes` zeros with a 1 at the class; -1: one more than the largest. [*] -> [*, C]"""
    if tensor.dtype is not dtypes.int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, but got {tensor.dtype.scalar_name}")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return TABLE["empty"].call((*tensor.shape, num_classes), dtype=dtypes.int64, device=tensor.device)
    if not tensor.is_meta:
        low, high = (int(t) for t in TABLE["aminmax"].call(tensor))
        if low < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = high + 1
        elif num_classes < 1:
            raise RuntimeError("num_classes should be positive")
        elif high >= num_classes:
            raise RuntimeError("Class values must be smaller than num_classes.")
    zeros = TABLE["zeros"].call((*tensor.shape, num_classes), dtype=dtypes.int64, device=tensor.device)
    return TABLE["scatter_"].call(zeros, -1, TABLE["unsqueeze"].call(tensor, -1), 1)


# ---- flat positions --------------------------------------------------------------------------------------------------------------


def _flat_bounds(x):
    return lambda _, bad: IndexError(f"out of range: tried to access index {bad} on a tensor of {x.numel()} elements.")


@operator("take", out=True, moves=True)
def take(input, index):
    """Elements at flat (row-major) positions; result of index's shape. Negative positions count from the end."""
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    flat = TABLE["reshape"].call(plain(input), (-1,))
    out = indexing.get(flat, (0,), (index,), _flat_bounds(input))
    if tracking(input):
        record(TakeBackward0, (input, index), out, (index,), spec=input.spec)
    return out


@backward("Take", saved_names=("index",))
def TakeBackward0(node, g):
    (index,) = node.saved
    zeros = TABLE["zeros"].call(node.spec.shape, dtype=g.dtype, device=g.device)
    return put(zeros, index, g, True), None


def _put(x, index, source, accumulate):
    if source.dtype is not x.dtype:
        raise RuntimeError(f"put_(): self and source expected to have the same dtype, but got self.dtype = {x.dtype.scalar_name} and source.dtype = {source.dtype.scalar_name}")
    if index.numel() != source.numel():
        raise IndexError(f"put_(): Expected source and index to have the same number of elements, but got source.numel() = {source.numel()}, index.numel() = {index.numel()}")
    flat = TABLE["reshape"].call(plain(source), index.shape)
    if flat.mem is x.mem:
        flat = self_copy(flat)
    whole = plain(x)
    rows = TABLE["view"].call(whole, (-1,)) if x.is_contiguous() else TABLE["reshape"].call(whole, (-1,))
    indexing.put("add" if accumulate else "set", rows, (0,), (index,), flat, _flat_bounds(x))
    if rows.mem is not x.mem:
        TABLE["copy_"].call(whole, TABLE["reshape"].call(rows, x.shape))
        x.mem.version -= 1  # counted once, by the caller


@operator("put")
def put(input, index, source, accumulate=False):
    """A copy of input with source's elements at flat (row-major) positions; accumulate: added."""
    out = self_copy(input)
    _put(out, index, source, accumulate)
    if tracking(input, source):
        record(PutBackward0, (input, index, source), out, (index,), accumulate=accumulate, source_shape=source.shape)
    return out


@operator("put_")
def put_(input, index, source, accumulate=False):
    """In-place form of `put`."""
    check_inplace(input, source)
    check_overlap(input)
    _put(input, index, source, accumulate)
    input.mem.version += 1
    if tracking(input, source):
        record_inplace(PutBackward0, (input, index, source), input, (index,), accumulate=accumulate, source_shape=source.shape)
    return input


@backward("Put", saved_names=("index",))
def PutBackward0(node, g):
    (index,) = node.saved
    gx = g
    if node.needs[0] and not node.accumulate:
        gx = put(g, index, TABLE["zeros"].call(index.shape, dtype=g.dtype, device=g.device))
    gs = TABLE["reshape"].call(take(g, index), node.source_shape) if node.needs[2] else None
    return gx if node.needs[0] else None, None, gs


# ---- counts and sorted sequences -----------------------------------------------------------------------------------------------------


@operator("bincount")
def bincount(input, weights=None, minlength=0):
    """How often each of 0, 1, 2, … occurs in a 1-d tensor of non-negative ints, at least `minlength` numbers; or the sums of `weights`."""
    if input.dtype.kind not in ("int", "uint"):
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{input.dtype.scalar_name}'\n  It counts non-negative integers: convert first, as in x.long().")
    if input.ndim != 1 or input.numel() and int(TABLE["min"].call(input)) < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    size = max(int(TABLE["max"].call(input)) + 1 if input.numel() else 0, minlength)
    if weights is None:
        source = TABLE["ones"].call(input.shape, dtype=dtypes.int64, device=input.device)
    elif weights.dtype is dtypes.float32:
        source = weights
    else:
        source = TABLE["to"].call(weights, dtypes.float64)
    zeros = TABLE["zeros"].call((size,), dtype=source.dtype, device=input.device)
    return TABLE["index_add"].call(zeros, 0, TABLE["to"].call(input, dtypes.int64), source)


@operator("searchsorted", method=False, out=True)
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    """Where each value would be inserted into the last dimension of `sorted_sequence`: before its equals, or with right=True (side="right") behind them.

    A 1-d sequence serves values of any shape; else all dimensions but the last must agree. Returns int64 (or int32).
    """
    import numpy

    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
        right = side == "right"
    dtype = dtypes.int32 if out_int32 else dtypes.int64
    if not isinstance(input, Tensor):
        common = dtypes.result_type(sorted_sequence, input)  # 1.5 among integers is compared as a float
        input, sorted_sequence = converted_number(input, common), TABLE["to"].call(sorted_sequence, common)
    if not input.ndim and sorted_sequence.ndim != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor "
            f"dim({sorted_sequence.ndim}) and input value's dim(0) numel(1)"
        )
    if sorted_sequence.ndim != 1 and sorted_sequence.shape[:-1] != input.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must "
            f"match, but we got boundaries tensor {list(sorted_sequence.shape)} and input value tensor {list(input.shape)}"
        )
    if input.is_meta:
        return host.like(input.spec, dtype=dtype)
    if sorter is not None:
        sorted_sequence = TABLE["gather"].call(sorted_sequence, -1, sorter)
    edges, values = host.wide(sorted_sequence), host.wide(input)
    mode = "right" if right else "left"
    if not values.size:
        found = numpy.zeros(values.shape, "int64")
    elif edges.ndim == 1:
        found = numpy.searchsorted(edges, values, mode)
    else:
        rows, wanted = edges.reshape(-1, edges.shape[-1]), values.reshape(-1, values.shape[-1])
        found = numpy.stack([numpy.searchsorted(r, w, mode) for r, w in zip(rows, wanted)]).reshape(values.shape)
    return host.tensor(numpy.asarray(found), dtype, input.device)


@operator("bucketize", method=False, out=True)
def bucketize(input, boundaries, *, out_int32=False, right=False):
    """The bucket of each value between 1-d sorted `boundaries`: the number of boundaries below it (right=True: not above it)."""
    if boundaries.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
