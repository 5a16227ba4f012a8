"""Stochastic gradient descent with momentum."""
from .optimizer import Optimizer, check


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
        check("learning rate", lr, lr >= 0.0)
        check("momentum value", momentum, momentum >= 0.0)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        refuse_differentiable(differentiable)
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

    def _update(self, group, p, grad, state):
        momentum, lr = group["momentum"], float(group["lr"])
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"]:
            grad = grad.add(p, alpha=float(group["weight_decay"]))
        if momentum:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.clone().detach()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        p.add_(grad, alpha=-lr)


def refuse_differentiable(differentiable):
    """Steps are taken outside the graph."""
    if differentiable:
        raise NotImplementedError("differentiable=True is not supported: write the update in tensor operations to differentiate through it")
