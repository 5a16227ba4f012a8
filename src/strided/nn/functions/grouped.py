"""`grouped_mm`: products of several matrices that lie one behind the other in one tensor."""
from ... import ops


def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Products of G pairs of matrices; `offs` [G] (int32) says where in the dimension that the groups share each of them ends.

    [M, K] and [G, K, N], groups of rows: [M, N]. [G, M, K] and [K, N], groups of columns: [M, N]. [M, K] and [K, N], groups of the summed dimension:
    [G, M, N]. [G, M, K] and [G, K, N], without offs: [G, M, N].
    """
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        raise RuntimeError(f"grouped_mm: mat_a and mat_b have to be 2 or 3 dimensional, got {mat_a.dim()}D and {mat_b.dim()}D")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if (offs is None) is not (mat_a.dim() == mat_b.dim() == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if mat_a.size(-1) != mat_b.size(-2):
        raise RuntimeError(f"contraction dimension of mat_a and mat_b must match: {list(mat_a.shape)} and {list(mat_b.shape)}")
    if offs is None:
        out = ops.bmm(mat_a, mat_b)
    else:
        ends = offs.tolist()
        spans = list(zip([0, *ends], ends))
        if mat_a.dim() == 2 and mat_b.dim() == 3:
            parts = [mat_a[start:end] @ b for (start, end), b in zip(spans, mat_b)]
            out = ops.cat([*parts, ops.zeros(mat_a.size(0) - ends[-1], mat_b.size(2), dtype=mat_a.dtype)])
        elif mat_a.dim() == 3:
            parts = [a @ mat_b[:, start:end] for (start, end), a in zip(spans, mat_a)]
            out = ops.cat([*parts, ops.zeros(mat_a.size(1), mat_b.size(1) - ends[-1], dtype=mat_a.dtype)], 1)
        else:
            out = ops.stack([mat_a[:, start:end] @ mat_b[start:end] for start, end in spans])
    return out if out_dtype is None else out.to(out_dtype)
