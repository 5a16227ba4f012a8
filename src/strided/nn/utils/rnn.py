"""Batches of sequences of different lengths: padded, packed, and back."""
import collections

from ... import ops
from ...dtypes import int64

_Packed = collections.namedtuple("_Packed", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])


class PackedSequence(_Packed):
    """Sequences, longest first, laid time step after time step: data [Σ lengths, ..], batch_sizes [L] (how many are alive at each step)."""

    __slots__ = ()

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data):
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def to(self, *args, **kwargs):
        return self._with(self.data.to(*args, **kwargs))

    def cpu(self):
        return self.to("cpu")

    def float(self):
        return self._with(self.data.float())

    def double(self):
        return self._with(self.data.double())

    def half(self):
        return self._with(self.data.half())

    def long(self):
        return self._with(self.data.long())

    def pin_memory(self):
        return self

    @property
    def is_cuda(self):
        return False

    def is_pinned(self):
        return False


def invert_permutation(permutation):
    """The permutation that undoes one; None stays None."""
    if permutation is None:
        return None
    return ops.empty_like(permutation).scatter_(0, permutation, ops.arange(permutation.numel(), device=permutation.device))


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Sequences [L_i, ..] → one tensor [L, N, ..] (batch_first: [N, L, ..]), filled up with `padding_value`."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    sequences = list(sequences.unbind(0)) if hasattr(sequences, "unbind") else list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(s.size(0) for s in sequences)
    rows = []
    for s in sequences:
        missing = longest - s.size(0)
        if missing:
            filler = ops.full((missing, *s.shape[1:]), padding_value, dtype=s.dtype, device=s.device)
            s = ops.cat([s, filler] if padding_side == "right" else [filler, s])
        rows.append(s)
    return ops.stack(rows, 0 if batch_first else 1)  # [N, L, ..] or [L, N, ..]


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The list of sequences that `pad_sequence` was given."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[:length] for sequence, length in zip(padded_sequences, _ints(lengths))]


def _ints(lengths):
    return [int(n) for n in (lengths.tolist() if hasattr(lengths, "tolist") else lengths)]


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """[L, N, ..] (batch_first: [N, L, ..]) and the lengths [N] → PackedSequence."""
    lengths = _ints(lengths)
    if batch_first:
        input = input.transpose(0, 1)  # [L, N, ..]
    if len(lengths) != input.size(1):
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={input.size(1)})")
    if min(lengths) <= 0:
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    order = None
    if enforce_sorted:
        if any(a < b for a, b in zip(lengths, lengths[1:])):
            raise RuntimeError(
                "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
                "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not "
                "need ONNX exportability."
            )
    else:
        places = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        order = ops.tensor(places, dtype=int64, device=input.device)
        lengths = [lengths[i] for i in places]
        input = input.index_select(1, order)
    sizes = [sum(length > t for length in lengths) for t in range(lengths[0])]
    data = ops.cat([input[t, :size] for t, size in enumerate(sizes)])  # [Σ lengths, ..]
    return PackedSequence(data, ops.tensor(sizes, dtype=int64), order, None)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """PackedSequence → (padded [L, N, ..] or [N, L, ..], lengths [N]), in the order before packing."""
    data, sizes = sequence.data, _ints(sequence.batch_sizes)
    longest, batch = len(sizes), sizes[0]
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {longest}"
            )
        sizes = sizes + [0] * (total_length - longest)
    steps, start = [], 0
    for size in sizes:
        step = data[start : start + size]
        if size < batch:
            filler = ops.full((batch - size, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
            step = ops.cat([step, filler])
        steps.append(step)
        start += size
    padded = ops.stack(steps)  # [L, N, ..]
    lengths = ops.tensor([sum(size > i for size in sizes) for i in range(batch)], dtype=int64)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pack_sequence(sequences, enforce_sorted=True):
    """Sequences [L_i, ..] → PackedSequence."""
    lengths = [s.size(0) for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """PackedSequence → the list of sequences."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
