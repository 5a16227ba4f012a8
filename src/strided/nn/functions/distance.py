"""Distances and normalisation of vectors."""
from ... import ops
from . import counts
from .entry import entry


@entry(counts.cosine_similarity)
def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """x1·x2 / (max(‖x1‖, eps)·max(‖x2‖, eps)) along `dim`, after broadcasting."""
    x1, x2 = ops.broadcast_tensors(x1, x2)
    n1, n2 = (vector_norm(x, 2, dim, True).clamp(min=eps) for x in (x1, x2))
    return ((x1 / n1) * (x2 / n2)).sum(dim)


@entry(counts.pairwise_distance)
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 − x2 + eps along the last dimension."""
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


@entry(counts.pdist)
def pdist(input, p=2):
    """Distances of all pairs of the rows of [N, M]: N(N−1)/2 of them."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    first, second = ops.triu_indices(input.size(0), input.size(0), 1)
    return vector_norm(input[first] - input[second], p, 1, False)


@entry(counts.normalize, writes=True)
def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input / max(‖input‖_p, eps) along `dim`."""
    norm = vector_norm(input, p, dim, True).clamp(min=eps)  # [.., 1, ..]
    return ops.div(input, norm.expand_as(input), out=out) if out is not None else input / norm


def vector_norm(x, p, dim, keepdim):
    """(Σ|x|^p)^(1/p) along `dim`."""
    return x.norm(p, dim, keepdim)
