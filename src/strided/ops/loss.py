"""Cross entropy and negative log likelihood. From class indices, cross entropy is fused: one read of the logits forward, one read and one write backward.

Other losses are compositions in nn/functional.
"""
from __future__ import annotations

from .. import dtypes
from ..autograd import backward, record, tracking
from ..dispatch import PlanCache, launch_new, run
from ..kernels import expr as E
from ..kernels.fold import plan_fold
from ..kernels.map import build_map
from ..kernels.native import new_storage, read_flag
from ..layout import Layout
from ..tensor import Spec, empty_of, wrap
from .folding import Fold, plain
from .moments import _exponentials, _logsumexp
from .onlooking import seen_as
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
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {weight.dtype.scalar_name}\nThe weights must have the input's dtype: weight.to({input.dtype}).")
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
    if weight is None and not label_smoothing and (plan := _forward_plan(input, target, reduction)) is not None:
        return _unweighted(plan, input, target, int(ignore_index), reduction)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if target.dtype.is_floating_point and target.shape == input.shape:
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
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


class _Forward:
    """Unweighted cross entropy in two folds: over the classes of a row (log-sum-exp, loss), then over the rows (loss, how many count, is a class out of range)."""

    __slots__ = ("dim", "rows", "total", "rows_spec", "loss_spec", "count_spec", "classes")


_forward_plans = PlanCache()


def _forward_plan(input, target, reduction) -> _Forward | None:
    """The plan for operands of these kinds, whose shapes are checked; None where the general way must be taken (probabilities, meta, no floats)."""
    key = input.spec, target.spec, reduction
    plan = _forward_plans.get(key)
    if plan is None:
        if input.spec.is_meta or target.spec.is_meta or not input.dtype.is_floating_point or target.dtype.is_floating_point or not input.numel():
            return None
        plan = _Forward()
        plan.dim = dim = _check_classes("cross_entropy", input, target, None)
        plan.classes = input.shape[dim]
        compute = input.dtype.compute
        plan.rows_spec = Spec.of(Layout.contiguous(target.shape), compute, input.device)
        kept = Layout.contiguous(tuple([1 if d == dim else n for d, n in enumerate(input.shape)]))
        lines = target.spec.layout.unsqueeze(dim).expand(input.shape)  # [N, C, ..]
        plan.rows = plan_fold(_row_exprs, (dim,), [(compute, kept)] * 2, [(input.dtype, input.spec.layout), (target.dtype, lines), ("param", "i64")])
        plan.count_spec = Spec.of(Layout.contiguous(()), compute, input.device)
        plan.loss_spec = Spec.of(plan.rows_spec.layout if reduction == "none" else plan.count_spec.layout, input.dtype, input.device)
        one = Layout.contiguous((1,) * target.ndim)
        rows = [(compute, plan.rows_spec.layout), (target.dtype, target.spec.layout), ("param", "i64"), ("param", "i64")]
        outs = [(dtypes.float64 if reduction == "none" else input.dtype, one), (compute, one), (dtypes.bool_, one)]
        plan.total = plan_fold(_mean_exprs if reduction == "mean" else _total_exprs, tuple(range(target.ndim)), outs, rows)
        _forward_plans.put(key, plan)
    return plan


def _of_rows(loss, target, ignored, classes):
    """(loss added up, rows that count, whether one of them names no class)."""
    counts = target != ignored
    return E.rsum(E.where(counts, loss, 0.0)), E.rsum(E.where(counts, 1.0, 0.0)), E.rany(counts & ((target < 0) | (target >= classes)))


_row_exprs = E.trace(lambda x, t, i: (_exponentials(x), E.where(t == i, 0.0, _exponentials(x) - E.rsum(E.where(E.position() == t, x, 0.0)))), 3)
_total_exprs = E.trace(_of_rows, 4)
_mean_exprs = (_total_exprs[0] / _total_exprs[1], *_total_exprs[1:])


def _unweighted(plan: _Forward, input, target, ignored: int, reduction: str):
    lse, each = empty_of(plan.rows_spec), empty_of(plan.rows_spec)
    plan.rows.launch(lse.ptr, each.ptr, input.ptr, target.ptr, ignored)
    sums = new_storage(24)  # the loss summed up where nobody asked for it, the count, the flag
    loss = empty_of(plan.loss_spec)
    plan.total.launch(sums.data if reduction == "none" else loss.ptr, sums.data + 8, sums.data + 16, each.ptr, target.ptr, ignored, plan.classes)
    if read_flag(sums.data + 16):
        _picked(plain(input), plan.dim, target, ignored)  # raises
    if reduction == "none":
        loss = each if input.dtype is each.dtype else TABLE["to"].call(each, input.dtype)
    if tracking(input):
        cls = NllLossBackward0 if input.ndim <= 2 else NllLoss2DBackward0
        total = wrap(plan.count_spec, sums, sums.data + 8) if reduction == "mean" else None
        record(cls, (input,), loss, (input, lse, target, None, None, total), dim=plan.dim, ignore_index=ignored, reduction=reduction)
    return loss


@seen_as("cross_entropy_backward", lambda node, g: E.flops(_gradient_of_mean if node.reduction == "mean" else _gradient_of_sum) * node.saved[0].numel())
def _cross_entropy_backward(node, g):
    x, lse, target, safe, weights, total = node.saved
    if safe is None:
        if not tracking(g, x):
            return (_unweighted_gradient(x, lse, target, node.ignore_index, g, total, node.dim),)
        safe = TABLE["masked_fill"].call(target, TABLE["eq"].call(target, node.ignore_index), 0)
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
_minus_one_hot = lambda x, lse, target, position: E.exp(x - lse) - E.where(position == target, 1.0, 0.0)
_gradient_of_mean = E.trace(lambda x, l, t, i, g, n, p: _minus_one_hot(x, l, t, p) * E.where(t == i, 0.0, g / n), 7)
_gradient_of_sum = E.trace(lambda x, l, t, i, g, p: _minus_one_hot(x, l, t, p) * E.where(t == i, 0.0, g), 6)
_gradient_plans = PlanCache()


def _unweighted_gradient(x, lse, target, ignored, g, total, dim):
    """(softmax(x) - one_hot(target)) * g, over the number of rows that count if `total` says how many: one read of x, one write."""
    key = x.spec, target.spec, g.spec, total is None
    plan = _gradient_plans.get(key)
    if plan is None:
        spec = Spec.of(Layout.contiguous(x.shape), x.dtype, x.device)
        lines = lambda t: (t.dtype, (t.spec.layout.unsqueeze(dim) if t.ndim else t.spec.layout).expand(x.shape))
        ins = [(x.dtype, x.spec.layout), lines(lse), lines(target), ("param", "i64"), lines(g), *([] if total is None else [lines(total)]), ("index", dim)]
        desc = build_map(_gradient_of_sum if total is None else _gradient_of_mean, [(x.dtype, spec.layout)], ins, result_bytes=spec.nbytes)
        plan = _gradient_plans.put(key, (desc, spec))
    return run(plan[0], plan[1], x.ptr, lse.ptr, target.ptr, ignored, g.ptr, *(() if total is None else (total.ptr,)))


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


def _nll_flops(args, kwargs, result):
    """A row: negate, add up; with class weights one product more, and for the mean their sum."""
    names = dict(zip(("input", "target", "weight", "size_average", "ignore_index", "reduce", "reduction"), args)) | kwargs
    reduction = "none" if names.get("reduce") is False else "sum" if names.get("size_average") is False else names.get("reduction", "mean")
    weighted = names.get("weight") is not None
    return names["target"].numel() * (1 + weighted + (reduction != "none") + (weighted and reduction == "mean"))


@operator("nll_loss", autocast="float32", flops=_nll_flops, **_nn)
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
