"""Cross entropy and negative log likelihood. From class indices, cross entropy is fused: one read of the logits forward, one read and one write backward.

Other losses are compositions in nn/functional.
"""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, record, tracking
from ..dispatch import PlanCache, launch_new
from ..kernels import expr as E
from ..kernels.map import build_map
from ..layout import Layout
from ..tensor import Spec, wrap
from .folding import Fold, plain
from .moments import _logsumexp
from .rowwise import log_softmax
from .table import TABLE, operator

_REDUCTIONS = ("none", "mean", "sum")
_nn = {"method": False, "namespace": "nn.functional"}


def _legacy(size_average, reduce, reduction):
    """The reduction that PyTorch's two old flags mean."""
    if size_average is None and reduce is None:
        if reduction not in _REDUCTIONS:
            raise ValueError(f"{reduction} is not a valid value for reduction")
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _class_dim(ndim):
    return 0 if ndim == 1 else 1


def _check_classes(name, input, target, weight):
    dim = _class_dim(input.ndim)
    if input.ndim == 0:
        raise ValueError("Expected input to have 1 or more dimensions, got 0")
    expected = tuple(n for d, n in enumerate(input.shape) if d != dim)
    if tuple(target.shape) != expected:
        if input.ndim > 1 and target.ndim and input.shape[0] != target.shape[0]:
            raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({target.shape[0]}).")
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(target.shape)}")
    if target.dtype not in (dtypes.int64, dtypes.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}")
    if weight is not None and tuple(weight.shape) != (input.shape[dim],):
        raise RuntimeError(f"weight tensor should be defined either for all {input.shape[dim]} classes or no classes but got weight tensor of shape: {list(weight.shape)}")
    return dim


def _picked(input, dim, target, ignore_index):
    """(the class of each row, 0 where ignored; input there). Raises IndexError for a class that does not exist."""
    from .scatter import gather_checked

    safe = TABLE["masked_fill"].call(target, TABLE["eq"].call(target, ignore_index), 0)
    lines = TABLE["unsqueeze"].call(safe, dim)  # [N, 1, ..]
    return safe, TABLE["squeeze"].call(gather_checked(input, dim, lines, lambda bad: IndexError(f"Target {bad} is out of bounds.")), dim)


# Over all rows: (loss, total weight) from -log p, the class weights and the classes; ignored rows count nothing.
_mean = Fold("nll_loss", lambda l, w, t, i: (E.rsum(E.where(t == i, 0.0, l * w)) / E.rsum(E.where(t == i, 0.0, w)), E.rsum(E.where(t == i, 0.0, w))), 4, ("row", "row"))
_total = Fold("nll_loss", lambda l, w, t, i: (E.rsum(E.where(t == i, 0.0, l * w)), E.rsum(E.where(t == i, 0.0, w))), 4, ("row", "row"))
_mean_plain = Fold("nll_loss", lambda l, t, i: (E.rsum(E.where(t == i, 0.0, l)) / E.rsum(t != i), E.rsum(E.where(t == i, 0.0, 1.0))), 3, ("row", "row"))
_total_plain = Fold("nll_loss", lambda l, t, i: (E.rsum(E.where(t == i, 0.0, l)), E.rsum(E.where(t == i, 0.0, 1.0))), 3, ("row", "row"))


def _reduced(loss, weights, target, ignore_index, reduction):
    """(the loss reduced, the total weight or None); `loss` and `weights` (or None): one number a row, unrecorded."""
    if reduction == "none":
        if weights is not None:
            loss = loss * weights
        return TABLE["masked_fill"].call(loss, TABLE["eq"].call(target, ignore_index), 0), None
    dims, kinds = tuple(range(loss.ndim)), (loss.dtype, dtypes.float32 if loss.dtype.itemsize < 4 else loss.dtype)
    if weights is None:
        return (_mean_plain if reduction == "mean" else _total_plain)((loss, target, int(ignore_index)), dims, kinds)
    return (_mean if reduction == "mean" else _total)((loss, weights, target, int(ignore_index)), dims, kinds)


def _coefficients(node, g, weights, target, total):
    """What each row's -log p counts in the loss, times the incoming gradient."""
    if node.reduction == "mean":
        g = g / total
    if weights is not None:
        g = g * weights
    if g.shape != target.shape:
        g = TABLE["expand"].call(g, target.shape)
    return TABLE["masked_fill"].call(g, TABLE["eq"].call(target, node.ignore_index), 0)


def _class_weights(weight, safe):
    if weight is None:
        return None
    flat = TABLE["reshape"].call(safe, (-1,))
    return TABLE["reshape"].call(TABLE["index_select"].call(weight, 0, flat), safe.shape)


# ---- cross entropy -----------------------------------------------------------------------------------------------------------------


@operator("cross_entropy", flops=lambda args, kwargs, result: 5 * args[0].numel(), autocast="float32", **_nn)
def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """-log softmax(input)[target], averaged over rows (reduction "mean": by class weight; or "sum", "none").

    input: logits [C], [N, C] or [N, C, d1, …]; target: classes (int64) without the class dimension, or probabilities of input's shape.
    Raises IndexError for a class out of range, ValueError or RuntimeError where shapes do not fit.
    """
    reduction = _legacy(size_average, reduce, reduction)
    if target.dtype.is_floating_point and target.shape == input.shape:
        return _soft_targets(input, target, weight, reduction, label_smoothing)
    dim = _check_classes("cross_entropy", input, target, weight)
    if label_smoothing:
        return _smoothed(input, target, dim, weight, ignore_index, reduction, label_smoothing)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f'"log_softmax_lastdim_kernel_impl" not implemented for \'{input.dtype.scalar_name}\'')
    x = plain(input)
    lse = _logsumexp((x,), (dim,), (x.dtype.compute,))  # [N, ..]
    safe, picked = _picked(x, dim, target, ignore_index)
    weights = _class_weights(None if weight is None else plain(weight), safe)
    loss, total = _reduced(lse - picked, weights, target, ignore_index, reduction)
    if loss.dtype is not input.dtype:
        loss = TABLE["to"].call(loss, input.dtype)
    if tracking(input):
        cls = NllLossBackward0 if input.ndim <= 2 else NllLoss2DBackward0
        record(cls, (input,), loss, (input, lse, target, safe, weights, total), dim=dim, ignore_index=ignore_index, reduction=reduction)
    return loss


def _cross_entropy_backward(node, g):
    x, lse, target, safe, weights, total = node.saved
    c = _coefficients(node, g, weights, target, total)
    dim = node.dim
    if tracking(g, x):
        # softmax - one-hot, in operators
        p = TABLE["softmax"].call(x, dim)
        rows = TABLE["unsqueeze"].call(c, dim)
        return (p * rows - TABLE["scatter"].call(TABLE["zeros_like"].call(p), dim, TABLE["unsqueeze"].call(safe, dim), rows),)
    return (_subtract_one_hot(x, lse, safe, c, dim),)


NllLossBackward0 = backward("NllLoss", saved_names=("self",))(_cross_entropy_backward)
NllLoss2DBackward0 = backward("NllLoss2D", saved_names=("self",))(_cross_entropy_backward)
_x, _lse, _class, _c, _position = (E.param(i) for i in range(5))
_softmax_minus_one_hot = E.where(_position == _class, E.exp(_x - _lse) - 1.0, E.exp(_x - _lse)) * _c
_plans = PlanCache()


def _subtract_one_hot(x, lse, target, c, dim):
    """(softmax(x) - one_hot(target)) * c, from log-sum-exp: one read of x, one write."""
    key = x.spec, lse.spec, target.spec, c.spec
    plan = _plans.get(key)
    if plan is None:
        spec = Spec.of(Layout.contiguous(x.shape), x.dtype, x.device)
        if spec.is_meta:
            desc = None
        else:
            rows = [(t.dtype, t.spec.layout.unsqueeze(dim).expand(x.shape)) for t in (lse, target, c)]
            desc = build_map(_softmax_minus_one_hot, [(x.dtype, spec.layout)], [(x.dtype, x.spec.layout), *rows, ("index", dim)], result_bytes=spec.nbytes)
        plan = _plans.put(key, (desc, spec))
    desc, spec = plan
    if desc is None:
        return TABLE["empty_like"].call(x)
    memory = launch_new(desc, x.ptr, lse.ptr, target.ptr, c.ptr)
    return wrap(spec, memory, memory.data)


def _smoothed(input, target, dim, weight, ignore_index, reduction, smoothing):
    """(1 - s) * nll + s / C * sum over classes of -log p."""
    logp = log_softmax(input, dim)
    nll = nll_loss(logp, target, weight, ignore_index=ignore_index, reduction=reduction)
    if weight is not None:
        shape = [1] * input.ndim
        shape[dim] = -1
        logp = logp * TABLE["reshape"].call(weight, shape)
    every = TABLE["masked_fill"].call(-TABLE["sum"].call(logp, dim), TABLE["eq"].call(target, ignore_index), 0)  # [N, ..]
    if reduction == "mean":
        valid = TABLE["ne"].call(target, ignore_index)
        if weight is None:
            every = TABLE["sum"].call(every) / TABLE["sum"].call(valid)
        else:
            safe = TABLE["masked_fill"].call(target, ~valid, 0)
            every = TABLE["sum"].call(every) / TABLE["sum"].call(_class_weights(weight, safe) * valid)
    elif reduction == "sum":
        every = TABLE["sum"].call(every)
    return nll * (1 - smoothing) + every * (smoothing / input.shape[dim])


def _soft_targets(input, target, weight, reduction, smoothing):
    """Cross entropy with a probability a class."""
    dim = _class_dim(input.ndim)
    classes = input.shape[dim]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    loss = log_softmax(input, dim) * target
    if weight is not None:
        shape = [1] * input.ndim
        shape[dim] = -1
        loss = loss * TABLE["reshape"].call(weight, shape)
    if reduction == "none":
        return -TABLE["sum"].call(loss, dim)
    total = -TABLE["sum"].call(loss)
    return total / (input.numel() / classes) if reduction == "mean" else total


# ---- nll_loss ----------------------------------------------------------------------------------------------------------------------


@operator("nll_loss", autocast="float32", **_nn)
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """-input[target], for log-probabilities [C], [N, C] or [N, C, d1, …], averaged by class weight (reduction "mean"; or "sum", "none")."""
    reduction = _legacy(size_average, reduce, reduction)
    dim = _check_classes("nll_loss", input, target, weight)
    x = plain(input)
    safe, picked = _picked(x, dim, target, ignore_index)
    weights = _class_weights(None if weight is None else plain(weight), safe)
    loss, total = _reduced(-picked, weights, target, ignore_index, reduction)
    if tracking(input):
        cls = NllLossOnlyBackward0 if input.ndim <= 2 else NllLoss2DOnlyBackward0
        record(cls, (input,), loss, (target, safe, weights, total), dim=dim, ignore_index=ignore_index, reduction=reduction, spec=input.spec)
    return loss


def _nll_backward(node, g):
    target, safe, weights, total = node.saved
    c = TABLE["unsqueeze"].call(-_coefficients(node, g, weights, target, total), node.dim)
    zeros = TABLE["zeros"].call(node.spec.shape, dtype=node.spec.dtype, device=node.spec.device)
    if c.dtype is not zeros.dtype:
        c = TABLE["to"].call(c, zeros.dtype)
    return (TABLE["scatter"].call(zeros, node.dim, TABLE["unsqueeze"].call(safe, node.dim), c),)


NllLossOnlyBackward0 = backward("NllLoss")(_nll_backward)
NllLoss2DOnlyBackward0 = backward("NllLoss2D")(_nll_backward)
