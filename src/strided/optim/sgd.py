"""Stochastic gradient descent with momentum."""
from .. import ops
from ..ops.many import fused_update
from .fused import operands
from .optimizer import Optimizer, check, check_kinds, check_lr, rate


class SGD(Optimizer):
    """p ← p − lr·d, where d is the gradient (plus weight_decay·p), averaged by momentum.

    With momentum: b ← momentum·b + (1 − dampening)·d (the first b is d), and d ← b, or d + momentum·b with `nesterov`.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        check_lr(lr)
        check("momentum value", momentum, momentum >= 0.0)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_kinds(foreach, fused, differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _update_all(self, group, members):
        momentum, maximize, decay = group["momentum"], group["maximize"], group["weight_decay"]
        numbers, choices = (rate(group), float(decay)), {"maximize": bool(maximize), "decays": decay != 0}
        if not momentum:
            sgd([(p, grad) for p, grad, _ in members], *numbers, **choices)
            return
        rule = sgd_nesterov if group["nesterov"] else sgd_momentum
        first, later = [], []
        for member in members:
            (first if member[2].get("momentum_buffer") is None else later).append(member)
        for these, keep, take in ((first, 0.0, 1.0), (later, momentum, 1.0 - group["dampening"])):  # the first buffer is the gradient
            if not these:
                continue
            if these is first:
                for p, grad, state in these:
                    if group["differentiable"]:  # PyTorch takes the first buffer out of the graph
                        keep, take = 1.0, 0.0
                        state["momentum_buffer"] = decayed(p, grad, decay, maximize, decay != 0).detach().clone()
                    else:
                        state["momentum_buffer"] = ops.zeros_like(p)
            rule(operands(these, "momentum_buffer"), *numbers, momentum, keep, take, **choices, damped=take != 1)


def decayed(p, g, decay, maximize, decays):
    """The gradient with its sign and (coupled) weight decay; without decay p is not touched, infinite or not."""
    g = -g if maximize else g
    return g + decay * p if decays else g


@fused_update("sgd_", 1, 2, 2)
def sgd(p, g, lr, decay, maximize, decays):
    return p - lr * decayed(p, g, decay, maximize, decays)


@fused_update("sgd_momentum_", 2, 3, 5)
def sgd_momentum(p, buffer, g, lr, decay, momentum, keep, take, maximize, decays, damped):
    g = decayed(p, g, decay, maximize, decays)
    buffer = buffer * keep + (g * take if damped else g)
    return p - lr * buffer, buffer


@fused_update("sgd_nesterov_", 2, 3, 5)
def sgd_nesterov(p, buffer, g, lr, decay, momentum, keep, take, maximize, decays, damped):
    g = decayed(p, g, decay, maximize, decays)
    buffer = buffer * keep + (g * take if damped else g)
    return p - lr * (g + momentum * buffer), buffer
