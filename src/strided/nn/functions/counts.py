"""What functions of nn.functional cost in floating-point operations: count(result, arguments) for each, see entry.py.

A multiply and an add count 1 each, so do division, exp, log, power and square root; comparisons, selections, copies and index arithmetic count nothing. A sum or mean of n
elements counts n. Numbers that are one a channel (running statistics) are left out beside those that are one an element.
"""
from __future__ import annotations

import math

from ...layout import broadcast_shapes

LOGSIGMOID, XLOGY = 5, 2  # as the operators count them


def nothing(out, a):
    """Only compares, selects or moves."""
    return 0


# ---- windows ----------------------------------------------------------------------------------


def convolution(out, a):
    """Every output element: a product with C/groups · K weights, and the bias."""
    return 2 * out.numel() * math.prod(a.weight.shape[1:]) + (a.bias is not None) * out.numel()


def transposed_convolution(out, a):
    """Every input element meets F/groups · K weights; the bias is added to every output element."""
    return 2 * a.input.numel() * math.prod(a.weight.shape[1:]) + (a.bias is not None) * out.numel()


def _window(n, kernel):
    return kernel**n if isinstance(kernel, int) else math.prod(kernel) if len(kernel) == n else kernel[0] ** n


def average_pool(n):
    """The additions of a window, and the division: its number of elements."""
    return lambda out, a: out.numel() * _window(n, a.kernel_size)


def power_pool(n):
    """A power an element; of each window the mean, sign · |mean| · K, a power."""
    return lambda out, a: a.input.numel() + out.numel() * (_window(n, a.kernel_size) + 4)


def ranges(sizes, outs):
    """Elements in the ranges by which adaptive pooling covers dimensions of `sizes` with `outs` ranges, overlaps counted."""
    return math.prod(sum(-(-(i + 1) * size // out) - i * size // out for i in range(out)) for size, out in zip(sizes, outs))


def adaptive_average(n):
    return lambda out, a: math.prod(out.shape[:-n]) * ranges(a.input.shape[-n:], out.shape[-n:])


# ---- normalisation, dropout, resampling -------------------------------------------------------


def normalized(out, a):
    """As layer_norm: add up, subtract the mean, square, add up, scale; one more each for weight and bias."""
    return (5 + (a.weight is not None) + (a.bias is not None)) * out.numel()


def batch_norm(out, a):
    """By the batch's statistics as `normalized`; by the running ones a scale and a shift an element."""
    return normalized(out, a) if a.training else 2 * out.numel()


def instance_norm(out, a):
    return normalized(out, a) if a.use_input_stats else 2 * out.numel()


def local_response(out, a):
    """A square, the mean of `size` of them, · alpha, + k, a power, a division."""
    return (a.size + 5) * out.numel()


def scaled(out, a):
    """Times a mask of 0 and 1/(1 − p)."""
    return out.numel()


def scaled_and_moved(out, a):
    """input · noise + shift; both from the noise by four operations."""
    return out.numel() if a.p == 1 else 2 * out.numel() + 4 * math.prod(a.noise_shape)


def interpolate(out, a):
    """A dimension after the other: two taps (cubic: four), each multiplied, then added; nearest copies; area averages."""
    sizes, shape, total = out.shape[2:], list(a.input.shape), 0
    if a.mode == "area":
        return math.prod(shape[:2]) * ranges(shape[2:], sizes)
    each = 0 if a.mode.startswith("nearest") else 7 if a.mode == "bicubic" else 3
    for d, size in enumerate(sizes, 2):
        if shape[d] != size:
            shape[d] = size
            total += each * math.prod(shape)
    return total


def grid_sample(out, a):
    """A place: its pixel, then the taps' weights a dimension; a tap: the weights' product, and a multiplication and an addition a channel."""
    n, channels = a.input.ndim - 2, a.input.shape[1]
    places = out.numel() // max(channels, 1)
    taps, weights = {"nearest": (1, 3), "bilinear": (2, 5), "bicubic": (4, 31)}[a.mode]
    moved = 9 * (taps if a.mode == "bicubic" else 1) if a.padding_mode == "reflection" else 0
    pixel = 3 if a.align_corners else 4
    return places * (n * (pixel + moved + weights) + taps**n * (n - 1 + 2 * channels))


# ---- distances, bags --------------------------------------------------------------------------


def cosine_similarity(out, a):
    """Two norms, two divisions, an inner product."""
    return 8 * math.prod(broadcast_shapes(a.x1.shape, a.x2.shape))


def pairwise_distance(out, a):
    """Subtract, + eps, the norm (2)."""
    return 4 * math.prod(broadcast_shapes(a.x1.shape, a.x2.shape))


def pdist(out, a):
    return 3 * out.numel() * a.input.shape[-1]


def normalize(out, a):
    """The norm (2), a division."""
    return 3 * out.numel()


def embedding_bag(out, a):
    """Rows added up, [scaled first]; a mean divides the sums."""
    if a.mode == "max":
        return 0
    width = out.shape[-1]
    rows = a.input if a.weight.is_floating_point() else a.weight  # the two may be given the other way round
    return rows.numel() * width * (1 + (a.per_sample_weights is not None)) + (a.mode == "mean") * out.numel()


# ---- losses -----------------------------------------------------------------------------------


def _reduces(a):
    """Whether the losses are added up."""
    if a.__dict__.get("size_average") is not None or a.__dict__.get("reduce") is not None:
        return a.reduce is None or bool(a.reduce)
    return a.reduction != "none"


def _elements(a):
    return math.prod(broadcast_shapes(a.input.shape, a.target.shape))


def loss(each):
    """A loss an element, so many operations each (a number, or a function of the arguments); one more for a weight; then the reduction."""

    def count(out, a):
        n, weight = _elements(a), a.__dict__.get("weight") is not None
        return n * ((each(a) if callable(each) else each) + weight + _reduces(a))

    return count


def weighted_mean(each):
    """A `loss` whose mean is divided by the sum of its weights."""
    plain = loss(each)
    return lambda out, a: plain(out, a) + (a.weight is not None and _reduces(a) and a.reduction == "mean") * _elements(a)


def poisson(a):
    return (3 if a.log_input else 4) + 8 * a.full


def with_logits(a):
    """(1 − t)·x − logsigmoid(x); pos_weight: times 1 + (w − 1)·t."""
    return 3 + LOGSIGMOID + 4 * (a.pos_weight is not None)


def divergence(a):
    return 3 if a.log_target else 2 + XLOGY


def cosine_embedding(out, a):
    """Three inner products a row, then the cosine and its loss."""
    n = math.prod(broadcast_shapes(a.input1.shape, a.input2.shape))
    rows = n // max(a.input1.shape[-1], 1)
    return 6 * n + (8 + _reduces(a)) * rows


def margin_ranking(out, a):
    return (4 + _reduces(a)) * math.prod(broadcast_shapes(a.input1.shape, a.input2.shape, a.target.shape))


def multilabel_soft_margin(out, a):
    n = _elements(a)
    return n * (7 + 2 * LOGSIGMOID + (a.weight is not None)) + n // max(a.input.shape[-1], 1) * (1 + _reduces(a))


def multi_margin(out, a):
    """margin − x_target a row; + x, a power, [weight,] a sum a class; the division."""
    n = a.input.numel()
    rows = n // max(a.input.shape[-1], 1) if a.input.ndim else 1
    return n * (3 + (a.weight is not None)) + rows * (2 + _reduces(a))


def multilabel_margin(out, a):
    """1 − x_j a class; + x_i and the sum a pair of classes; the division."""
    n, classes = a.input.numel(), a.input.shape[-1] if a.input.ndim else 1
    return n + 2 * n * classes + n // max(classes, 1) * (1 + _reduces(a))


def triplet_margin(out, a):
    """Two distances (three with `swap`): subtract, + eps, the norm; margin + near − far."""
    n = math.prod(broadcast_shapes(a.anchor.shape, a.positive.shape, a.negative.shape))
    return (3 if a.swap else 2) * 4 * n + n // max(a.anchor.shape[-1], 1) * (2 + _reduces(a))


def ctc(out, a):
    """For each step, sample and state of the alignment: log-sum-exp of three (11) and what is emitted (1); the ends."""
    steps = a.log_probs.shape[0]
    batch = a.log_probs.shape[1] if a.log_probs.ndim == 3 else 1
    lengths = a.target_lengths.reshape(-1).tolist() if hasattr(a.target_lengths, "tolist") else a.target_lengths
    longest = lengths if isinstance(lengths, int) else max(lengths, default=0)
    return batch * (12 * max(steps - 1, 0) * (2 * longest + 1) + 9)


# ---- attention --------------------------------------------------------------------------------


def multi_head_attention(out, a):
    """Four projections and the attention between them, counted as scaled_dot_product_attention; averaging the weights adds one a weight."""
    result, weights = out
    embed = a.query.shape[-1]
    rows, source = a.query.numel() // max(embed, 1), a.key.shape[0]
    batch = a.query.shape[1] if a.query.ndim == 3 else 1
    keys = (a.key if a.static_k is None else a.static_k).shape[0 if a.static_k is None else 1]
    keys += (a.bias_k is not None) + a.add_zero_attn
    projected = rows * embed + 2 * source * batch * embed
    inward = 2 * embed * (rows * embed + source * batch * (a.key.shape[-1] + a.value.shape[-1]))
    outward = 2 * rows * embed * embed + (a.out_proj_bias is not None) * result.numel()
    scores = rows * keys * a.num_heads
    each = 5 + (a.attn_mask is not None or a.key_padding_mask is not None) + (a.training and a.dropout_p > 0)
    averaged = scores if weights is not None and a.average_attn_weights else 0
    return inward + (a.in_proj_bias is not None) * projected + 4 * rows * keys * embed + each * scores + outward + averaged
