"""Adam and AdamW."""
import math

from .. import ops
from .optimizer import Optimizer, check
from .sgd import refuse_differentiable


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
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        if group["maximize"]:
            grad = -grad
        if decay and group["decoupled_weight_decay"]:
            p.mul_(1 - lr * decay)
        elif decay:
            grad = grad.add(p, alpha=decay)
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        if group["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            largest.copy_(ops.maximum(largest, square))
            square = largest
        denominator = square.sqrt().div_(math.sqrt(correction2)).add_(group["eps"])
        p.addcdiv_(mean, denominator, value=-(lr / correction1))


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
