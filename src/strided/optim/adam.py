"""Adam and AdamW."""
import math

from .. import ops
from ..kernels import expr as E
from .fused import fused_update
from .optimizer import Optimizer, check
from .sgd import decayed, refuse_differentiable


class Adam(Optimizer):
    """p ← p − lr·m̂ / (√v̂ + eps), m and v running means of the gradient and of its square, m̂ and v̂ corrected for their start at zero.

    weight_decay adds to the gradient, or with `decoupled_weight_decay` shrinks p directly (AdamW). amsgrad uses the largest v so far.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        check("learning rate", lr, lr >= 0.0)
        check("epsilon value", eps, eps >= 0.0)
        check_betas(betas)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        refuse_differentiable(differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _update(self, group, p, grad, state):
        if not state:
            state["step"] = ops.tensor(0.0)
            state["exp_avg"] = ops.zeros_like(p)
            state["exp_avg_sq"] = ops.zeros_like(p)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = ops.zeros_like(p)
        state["step"] += 1
        step = state["step"].item()
        beta1, beta2 = (float(b) for b in group["betas"])
        lr, decay = float(group["lr"]), group["weight_decay"]
        decoupled = group["decoupled_weight_decay"]
        numbers = (
            decay,
            1 - lr * decay if decoupled else 1.0,
            1 - beta1,
            beta2,
            1 - beta2,
            lr / (1 - beta1**step),
            math.sqrt(1 - beta2**step),
            group["eps"],
        )
        tensors = (p, state["exp_avg"], state["exp_avg_sq"])
        maximize, decays = bool(group["maximize"]), bool(decay) and not decoupled
        shrinks = bool(decay) and decoupled
        if group["amsgrad"]:
            adam_amsgrad(*tensors, state["max_exp_avg_sq"], grad, *numbers, maximize=maximize, decays=decays, shrinks=shrinks)
        else:
            adam(*tensors, grad, *numbers, maximize=maximize, decays=decays, shrinks=shrinks)


def _moments(mean, square, g, new1, old2, new2):
    """Both running means after a gradient."""
    return mean + new1 * (g - mean), square * old2 + new2 * g * g


def _moved(p, mean, square, rate, correction, eps):
    return p - rate * (mean / (E.sqrt(square) / correction + eps))


@fused_update("adam_", 3, 4, 8)
def adam(p, mean, square, g, decay, keep, new1, old2, new2, rate, correction, eps, maximize, decays, shrinks):
    mean, square = _moments(mean, square, decayed(p, g, decay, maximize, decays), new1, old2, new2)
    return _moved(p * keep if shrinks else p, mean, square, rate, correction, eps), mean, square


@fused_update("adam_amsgrad_", 4, 5, 8)
def adam_amsgrad(p, mean, square, largest, g, decay, keep, new1, old2, new2, rate, correction, eps, maximize, decays, shrinks):
    mean, square = _moments(mean, square, decayed(p, g, decay, maximize, decays), new1, old2, new2)
    largest = E.maximum(largest, square)
    return _moved(p * keep if shrinks else p, mean, largest, rate, correction, eps), mean, square, largest


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )


def check_betas(betas):
    for i, beta in enumerate(betas):
        check(f"beta parameter at index {i}", beta, 0.0 <= beta < 1.0)
