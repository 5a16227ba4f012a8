"""Functions of `torch.<name>` whose arguments are in another order than those of `nn.functional.<name>`: the core's own signatures, with numbers for modes
and reductions. What they compute is in the files next to this one.
"""
import functools

from ... import ops
from ...dtypes import bool_ as _bool
from . import counts as _counts
from . import ctc as _ctc
from . import dropout as _dropout
from . import embedding_bag as _embedding_bag
from . import loss as _loss
from . import normalization as _norm
from . import vision as _vision
from .entry import entry as _entry

# ---- normalisation ----------------------------------------------------------------------------


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False):
    """`nn.functional.batch_norm` in the core's order, and without its check that a channel has more than one value."""
    return native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def _batch_norm_count(results, arguments):
    return _counts.batch_norm(results[0], arguments)


@_entry(_batch_norm_count)
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """(batch_norm, mean [C], 1 / sqrt(var + eps) [C]): statistics of the batch while training (they also move the running ones), empty ones otherwise.

    Only the first result is differentiable. input [N, C, ..].
    """
    statistic = input.dtype if weight is None else weight.dtype
    if not training or not input.numel():
        out = _norm.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
        return out, *(ops.empty(0, dtype=statistic, device=input.device) for _ in range(2))
    out, mean, rstd = _norm.over_batch(input, running_mean, running_var, weight, bias, momentum, float(eps))
    return out, mean.to(statistic), rstd.to(statistic)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=False):
    """`nn.functional.instance_norm` in the core's order."""
    return _norm.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True):
    """`nn.functional.group_norm`."""
    return _norm.group_norm(input, num_groups, weight, bias, eps)


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """(group_norm, mean [N, group], 1 / sqrt(var + eps) [N, group]), all differentiable. input [N, C, ..] of N·C·HxW elements."""
    if C % group:
        raise RuntimeError(f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(input.shape)} and num_groups={group}")
    if input.numel() != N * C * HxW:
        raise RuntimeError(f"Expected X.numel() == N * C * HxW to be true, but got false.\n  input has {input.numel()} elements, and {N}·{C}·{HxW} = {N * C * HxW}")
    out = _norm.group_norm(input.reshape(N, C, HxW), group, weight, bias, eps).reshape(input.shape)
    rows = input.reshape(N, group, C // group * HxW).to(input.dtype.compute)  # [N, G, C/G·S]
    mean = rows.mean(-1)  # [N, G]
    rstd = (rows.var(-1, correction=0) + eps).rsqrt()
    statistic = input.dtype if weight is None else weight.dtype
    return out, mean.to(statistic), rstd.to(statistic)


# ---- images -----------------------------------------------------------------------------------

_SAMPLING, _PADDING = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """`nn.functional.grid_sample`; interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic; padding_mode: 0 zeros, 1 border, 2 reflection."""
    for label, number in (("interpolation_mode", interpolation_mode), ("padding_mode", padding_mode)):
        if number not in (0, 1, 2):
            raise ValueError(f"grid_sampler(): {label} must be 0, 1 or 2, but got {number}")
    return _vision.grid_sample(input, grid, _SAMPLING[interpolation_mode], _PADDING[padding_mode], align_corners)


def _of_dimensions(name, n):
    def sampler(input, grid, interpolation_mode, padding_mode, align_corners):
        if input.dim() != n + 2:
            raise RuntimeError(f"grid_sampler_{n}d(): expected input to have {n + 2} dimensions, but got input with sizes {list(input.shape)}")
        return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)

    sampler.__name__ = sampler.__qualname__ = name
    sampler.__doc__ = f"`grid_sampler` for {n}-d images: [N, C, {'D, ' * (n - 2)}H, W]."
    return sampler


grid_sampler_2d, grid_sampler_3d = (_of_dimensions(f"grid_sampler_{n}d", n) for n in (2, 3))


def affine_grid_generator(theta, size, align_corners):
    """`nn.functional.affine_grid`."""
    return _vision.affine_grid(theta, size, align_corners)


# ---- bags of embeddings -------------------------------------------------------------------------


def embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None):
    """(`nn.functional.embedding_bag` [B, D], the bag of each index, the bags' sizes, for mode 2 the row of each maximum [B, D]); mode: 0 sum, 1 mean, 2 max."""
    mode = ("sum", "mean", "max")[mode]
    if indices.dim() != 1:
        raise RuntimeError(f"input has to be a 1D Tensor, but got Tensor of dimension {indices.dim()}")
    out = _embedding_bag.embedding_bag(indices, weight, offsets, None, 2, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx)
    return out, *_embedding_bag.bookkeeping(indices, weight, offsets, mode, include_last_offset, padding_idx)


# ---- dropout ------------------------------------------------------------------------------------


def _in_place(name):
    form = getattr(_dropout, name)

    def dropout(input, p, train):
        return form(input, p, train, True)

    dropout.__name__ = dropout.__qualname__ = name + "_"
    dropout.__doc__ = f"In-place form of `{name}`."
    return dropout


dropout_, alpha_dropout_, feature_alpha_dropout_ = (_in_place(name) for name in ("dropout", "alpha_dropout", "feature_alpha_dropout"))


def feature_dropout(input, p, train):
    """Dropout of whole channels of [N, C, ..]."""
    return _dropout.channels(input, p, train, False)


def feature_dropout_(input, p, train):
    """In-place form of `feature_dropout`."""
    return _dropout.channels(input, p, train, True)


def feature_alpha_dropout(input, p, train):
    """`nn.functional.feature_alpha_dropout`."""
    return _dropout.feature_alpha_dropout(input, p, train)


def native_dropout(input, p, train):
    """(dropout, the mask of what was kept): the mask is bool, and all True outside training."""
    if train is False or p == 0 or not input.numel():
        return input.clone(), ops.ones(input.shape, dtype=_bool, device=input.device)
    _dropout.check_probability(p)
    kept = ops.empty(input.shape, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return input * kept * scale, kept.to(_bool)


# ---- losses, with a number for the reduction ----------------------------------------------------

_REDUCTIONS = ("none", "mean", "sum")


def _counted(name, parameters, home=_loss):
    """torch.<name>: the same loss with `parameters` in the core's order, ended by `reduction` (0 none, 1 mean, 2 sum, or the word)."""
    form = getattr(home, name)
    order = parameters.split()

    @functools.wraps(form, assigned=("__doc__",))
    def loss(*args, **kwargs):
        if len(args) > len(order):
            raise TypeError(f"{name}() takes {len(order)} positional arguments but {len(args)} were given")
        kwargs.update(zip(order, args))
        reduction = kwargs.pop("reduction", 1)
        return form(**kwargs, reduction=reduction if isinstance(reduction, str) else _REDUCTIONS[reduction])

    loss.__name__ = loss.__qualname__ = name
    return loss


binary_cross_entropy_with_logits = _counted("binary_cross_entropy_with_logits", "input target weight pos_weight reduction")
cosine_embedding_loss = _counted("cosine_embedding_loss", "input1 input2 target margin reduction")
ctc_loss = _counted("ctc_loss", "log_probs targets input_lengths target_lengths blank reduction zero_infinity", _ctc)
hinge_embedding_loss = _counted("hinge_embedding_loss", "input target margin reduction")
kl_div = _counted("kl_div", "input target reduction")
margin_ranking_loss = _counted("margin_ranking_loss", "input1 input2 target margin reduction")
poisson_nll_loss = _counted("poisson_nll_loss", "input target log_input full eps reduction")
triplet_margin_loss = _counted("triplet_margin_loss", "anchor positive negative margin p eps swap reduction")
