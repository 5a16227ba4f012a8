"""Rprop, whose steps follow the gradient's sign alone, and averaged SGD."""
from .. import ops
from .optimizer import Optimizer, check
from .sgd import refuse_differentiable


class Rprop(Optimizer):
    """Every element has its own step size: it grows while the gradient keeps its sign and shrinks when the sign turns (then nothing moves)."""

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check("learning rate", lr, lr >= 0.0)
        check("eta values", f"{etas[0]}, {etas[1]}", 0.0 < etas[0] < 1.0 < etas[1])
        refuse_differentiable(differentiable)
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _update(self, group, p, grad, state):
        if group["maximize"]:
            grad = -grad
        if not state:
            state["step"] = ops.tensor(0.0)
            state["prev"] = ops.zeros_like(p)
            state["step_size"] = ops.full_like(grad, float(group["lr"]))
        state["step"] += 1
        down, up = group["etas"]
        turn = grad * state["prev"]
        factor = ops.where(turn > 0, up, ops.where(turn < 0, down, 1.0))
        size = state["step_size"].mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(turn < 0, 0)
        p.addcmul_(grad.sign(), size, value=-1)
        state["prev"].copy_(grad)


class ASGD(Optimizer):
    """SGD with a shrinking rate eta, and beside it the average `ax` of the parameter from step t0 on."""

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check("learning rate", lr, lr >= 0.0)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        refuse_differentiable(differentiable)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _update(self, group, p, grad, state):
        lr, lambd = float(group["lr"]), group["lambd"]
        if not state:
            state["step"] = ops.tensor(0.0)
            state["eta"] = ops.tensor(lr)
            state["mu"] = ops.tensor(1.0)
            state["ax"] = ops.zeros_like(p)
        state["step"] += 1
        step, eta, mu = (state[name].item() for name in ("step", "eta", "mu"))
        if group["maximize"]:
            grad = -grad
        if group["weight_decay"]:
            grad = grad.add(p, alpha=group["weight_decay"])
        p.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
        average = state["ax"]
        if mu == 1:
            average.copy_(p)
        else:
            average.add_(p - average, alpha=mu)
        state["eta"].fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))
