"""Loss functions, with PyTorch's reductions ("none" | "mean" | "sum"). Cross entropy and NLL are row operators (ops/)."""
import math
import warnings

from ... import ops
from ...dtypes import bool_, int64
from ...kernels import expr as E
from ...kernels.native import read_flag
from ...ops.folding import Fold
from . import counts
from .autocast import under_autocast
from .distance import pairwise_distance
from .entry import entry


def _reduction(reduction, size_average=None, reduce=None):
    """The reduction, from today's argument or from the two boolean ones it replaced."""
    if size_average is not None or reduce is not None:
        size_average = True if size_average is None else size_average
        reduce = True if reduce is None else reduce
        modern = "none" if not reduce else "mean" if size_average else "sum"
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{modern}' instead.", stacklevel=5)
        return modern
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _reduce(loss, reduction):
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def _warn_broadcast(name, input, target):
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=5,
        )


def _weighted(loss, weight, reduction):
    """Reduction of a loss with element weights: the mean divides by the weights' sum."""
    if weight is None:
        return _reduce(loss, reduction)
    if weight.shape != loss.shape:
        raise ValueError("Inputs and weights must have the same size.")
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduce(loss, reduction)


@entry(counts.weighted_mean(2), autocast="float32", node="MseLoss")
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """(input − target)²."""
    reduction = _reduction(reduction, size_average, reduce)
    _warn_broadcast("mse_loss", input, target)
    difference = input - target
    return _weighted(difference * difference, weight, reduction)


@entry(counts.weighted_mean(2), autocast="float32")
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """|input − target|."""
    reduction = _reduction(reduction, size_average, reduce)
    _warn_broadcast("l1_loss", input, target)
    return _weighted((input - target).abs(), weight, reduction)


@entry(counts.loss(lambda a: 2 if a.beta == 0 else 6), autocast="float32", node="SmoothL1Loss")
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """½d²/beta where d = |input − target| < beta, else d − ½beta."""
    reduction = _reduction(reduction, size_average, reduce)
    _warn_broadcast("smooth_l1_loss", input, target)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    d = (input - target).abs()
    return _reduce(d if beta == 0 else ops.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta), reduction)


@entry(counts.weighted_mean(6), autocast="float32", node="HuberLoss")
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """½d² where d = |input − target| < delta, else delta·(d − ½delta)."""
    reduction = _reduction(reduction)
    _warn_broadcast("huber_loss", input, target)
    if not isinstance(delta, (int, float)):
        raise TypeError(f"delta must be a float or int, got: {type(delta)}")
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    d = (input - target).abs()
    return _weighted(ops.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta)), weight, reduction)


_outside = lambda x: (x < 0) | (x > 1) | E.isnan(x)
_improbable = Fold("binary_cross_entropy", lambda x, t: E.rany(_outside(x) | _outside(t)), 2)


def _check_probabilities(input, target):
    """Raises RuntimeError where an element lies outside [0, 1] or is NaN: both are read by one kernel; only then is it asked which."""
    if not input.is_floating_point() or input.is_meta:
        return
    found = _improbable((input, target), tuple(range(input.ndim)), (bool_,))
    if not read_flag(found.ptr):
        return
    if bool((~((input >= 0) & (input <= 1))).any()):
        raise RuntimeError("all elements of input should be between 0 and 1\n  For scores there is binary_cross_entropy_with_logits, which takes their sigmoid itself.")
    raise RuntimeError("all elements of target should be between 0 and 1")


@entry(counts.loss(8), autocast="float32", node="BinaryCrossEntropy")
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """−(t·log x + (1−t)·log(1−x)) of probabilities; both logarithms are clamped at −100. Raises RuntimeError outside [0, 1]."""
    reduction = _reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
            "Please ensure they have the same size."
        )
    for other in (target, weight):
        if other is not None and other.dtype is not input.dtype:
            raise RuntimeError(f"Found dtype {other.dtype.scalar_name} but expected {input.dtype.scalar_name}\n  Convert it: .to({input.dtype}).")
    _check_probabilities(input, target)
    loss = -(target * input.log().clamp(min=-100) + (1 - target) * (1 - input).log().clamp(min=-100))
    return _reduce(loss if weight is None else loss * weight, reduction)


@entry(counts.loss(counts.with_logits), autocast="float32", node="BinaryCrossEntropyWithLogits")
def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """binary_cross_entropy of sigmoid(input), computed without overflow."""
    reduction = _reduction(reduction, size_average, reduce)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    if input.dtype.kind not in ("float", "complex"):
        raise NotImplementedError(f'"log_sigmoid_cpu" not implemented for \'{input.dtype.scalar_name}\'\n  Convert the input to float32 first.')
    if target.dtype.kind not in ("float", "complex"):
        if target.dtype is bool_:
            problem = "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        else:
            problem = f"result type {input.dtype.scalar_name} can't be cast to the desired output type {target.dtype.scalar_name}"
        raise RuntimeError(f"{problem}\n  The target is to be of floating point: target.to({input.dtype}).")
    if pos_weight is None:
        loss = (1 - target) * input - ops.logsigmoid(input)
    else:
        loss = (1 - target) * input - (1 + (pos_weight - 1) * target) * ops.logsigmoid(input)
    return _reduce(loss if weight is None else loss * weight, reduction)


@entry(counts.loss(counts.divergence), autocast="float32")
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target·(log target − input), the input being log-probabilities; "batchmean" divides the sum by the batch."""
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. "
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
            stacklevel=4,
        )
    batchmean = reduction == "batchmean"
    reduction = "sum" if batchmean else _reduction(reduction, size_average, reduce)
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = ops.xlogy(target, target) - target * input
    reduced = _reduce(loss, reduction)
    return reduced / input.size(0) if batchmean and input.dim() else reduced


@entry(counts.loss(counts.poisson), autocast="float32")
def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """exp(x) − t·x (or x − t·log(x+eps) unless `log_input`), with `full` plus Stirling's term where t > 1."""
    reduction = _reduction(reduction, size_average, reduce)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + ops.where(target <= 1, ops.zeros_like(stirling), stirling)
    return _reduce(loss, reduction)


@entry(counts.loss(lambda a: 6 + a.full))
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """½(log var + (input − target)²/var), with `full` plus ½log 2π; var is a tensor or a number, clamped at eps."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = ops.full_like(input, var)
    elif (var < 0).any():
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif input.dim() != var.dim() or sum(b for a, b in zip(input.shape, var.shape) if a != b) != 1:  # one size differs, and is 1
            raise ValueError("var is of incorrect size")
    clamped = ops.where(var.detach() < eps, ops.full_like(var, eps), var) if var.requires_grad else var.clamp(min=eps)
    loss = 0.5 * (clamped.log() + (input - target) ** 2 / clamped)
    return _reduce(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


@entry(counts.cosine_embedding, autocast="float32")
def cosine_embedding_loss(input1, input2, target, margin=0.0, size_average=None, reduce=None, reduction="mean"):
    """1 − cos where target is 1; max(0, cos − margin) where it is −1."""
    reduction = _reduction(reduction, size_average, reduce)
    epsilon = 1e-12
    dot = (input1 * input2).sum(-1)
    squares = ((input1 * input1).sum(-1) + epsilon) * ((input2 * input2).sum(-1) + epsilon)
    cosine = dot / squares.sqrt()
    zeros = ops.zeros_like(cosine)
    loss = ops.where(target == 1, 1 - cosine, zeros) + ops.where(target == -1, (cosine - margin).clamp(min=0), zeros)
    return _reduce(loss, reduction)


@entry(counts.margin_ranking, autocast="float32")
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, −t·(x1 − x2) + margin)."""
    reduction = _reduction(reduction, size_average, reduce)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape!r}, input2: {input2.shape!r}, target: {target.shape!r}"
        )
    return _reduce((-target * (input1 - input2) + margin).clamp(min=0), reduction)


@entry(counts.loss(2), autocast="float32")
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """x where t is 1, max(0, margin − x) where it is −1."""
    reduction = _reduction(reduction, size_average, reduce)
    zeros = ops.zeros_like(input)
    loss = ops.where(target != 1, (margin - input).clamp(min=0), zeros) + ops.where(target != -1, input, zeros)
    return _reduce(loss, reduction)


@entry(counts.loss(5), autocast="float32", node="SoftMarginLoss")
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(−t·x))."""
    return _reduce((1 + (input * -target).exp()).log(), _reduction(reduction, size_average, reduce))


@entry(counts.multilabel_soft_margin)
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Mean over the classes (last dimension) of the binary cross entropy with logits."""
    reduction = _reduction(reduction, size_average, reduce)
    loss = -(target * ops.logsigmoid(input) + (1 - target) * ops.logsigmoid(-input))
    loss = loss if weight is None else loss * weight
    return _reduce(loss.sum(-1) / input.size(-1), reduction)


def _check_classes(input):
    if input.dim() > 2 or (input.dim() and not input.size(-1)):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")


@entry(counts.multi_margin, autocast="float32", node="MultiMarginLoss")
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Σ_j max(0, margin − x_target + x_j)^p / classes over j ≠ target; input [N, C] or [C]."""
    reduction = _reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    _check_classes(input)
    if input.dim() == 2 and target.shape != input.shape[:1]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size {list(input.shape[:1])}, but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    if weight is not None and weight.shape != input.shape[-1:]:
        raise RuntimeError(f"inconsistent weight size, expected {input.size(-1)} but got {list(weight.shape)}")
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}\n  Class numbers are int64: target.long().")
    batched = input.dim() == 2
    x, t = (input, target) if batched else (input.reshape(1, -1), target.reshape(1))
    own = x.gather(1, t.unsqueeze(1))  # [N, 1]
    loss = (margin - own + x).clamp(min=0) ** p  # [N, C]
    if weight is not None:
        loss = loss * weight[t].unsqueeze(1)
    loss = loss.masked_fill(ops.arange(x.size(1)) == t.unsqueeze(1), 0).sum(1) / x.size(1)  # [N]
    return _reduce(loss if batched else loss[0], reduction)


@entry(counts.multilabel_margin, autocast="float32", node="MultilabelMarginLoss")
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Σ over targets j and non-targets i of max(0, 1 − x_j + x_i) / classes; a sample's targets end at its first −1. input [N, C] or [C]."""
    reduction = _reduction(reduction, size_average, reduce)
    _check_classes(input)
    if target.shape != input.shape:
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    batched = input.dim() == 2
    x, t = (input, target) if batched else (input.reshape(1, -1), target.reshape(1, -1))
    valid = (t >= 0).cumprod(1).bool()  # [N, C]: before the first −1
    places = t.masked_fill(~valid, 0)
    is_target = ops.zeros_like(t).scatter_add(1, places, valid.to(t.dtype)) > 0
    own = x.gather(1, places)  # [N, C_j]
    loss = (1 - own.unsqueeze(2) + x.unsqueeze(1)).clamp(min=0)  # [N, C_j, C_i]
    loss = loss.masked_fill(~valid.unsqueeze(2) | is_target.unsqueeze(1), 0).sum((1, 2)) / x.size(1)  # [N]
    return _reduce(loss if batched else loss[0], reduction)


def _check_linear(input, linear_weight, target, linear_bias, ignore_index):
    shape = lambda t: f"({', '.join(map(str, t))}{',' if len(t) == 1 else ''})"
    sizes, wanted = linear_weight.shape, linear_weight.shape[:-1]
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    if input.size(-1) != sizes[-1]:
        raise RuntimeError(f"expected equal input and linear_weight last dimensions (in_features), got {input.size(-1)} and {sizes[-1]}, respectively")
    if linear_weight.dim() > 2 and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {shape(sizes)} requires batched input, (N, {sizes[-1]}), got unbatched input with shape {shape(input.shape)}"
        )
    if linear_bias is not None and linear_bias.shape != wanted:
        raise RuntimeError(f"expected linear_bias shape {shape(wanted)}, got {shape(linear_bias.shape)}")
    if ignore_index is not None and target.is_floating_point():
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")


@under_autocast("float32")
def linear_cross_entropy(
    input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None, label_smoothing=0.0, options=None
):
    """cross_entropy(linear(input, linear_weight, linear_bias), target). `options` (how PyTorch cuts the work into chunks) changes nothing here."""
    _check_linear(input, linear_weight, target, linear_bias, ignore_index)
    features = linear_weight.shape[:-1]  # [C] or [C, d_1, …]
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = ops.linear(input, linear_weight.reshape(-1, linear_weight.size(-1)), bias)  # [N, C·d]
    logits = logits if len(features) == 1 else logits.unflatten(-1, features)  # [N, C, d_1, …]
    ignored = {} if ignore_index is None else {"ignore_index": ignore_index}
    return ops.cross_entropy(logits, target, weight, reduction=reduction, label_smoothing=label_smoothing, **ignored)


@entry(counts.triplet_margin, autocast="float32")
def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    """max(0, d(anchor, positive) − d(anchor, negative) + margin), d the p-norm distance along the last dimension."""
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda a, b: pairwise_distance(a, b, p, eps),
        margin=margin,
        swap=swap,
        reduction=_reduction(reduction, size_average, reduce),
    )


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """triplet_margin_loss with a distance of one's own."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    dims = anchor.dim(), positive.dim(), negative.dim()
    if len(set(dims)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {dims[0]}D, positive {dims[1]}D, and negative {dims[2]}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return _reduce((margin + near - far).clamp(min=0), reduction)
