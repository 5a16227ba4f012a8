"""Rprop, whose steps follow the gradient's sign alone, and averaged SGD."""
from .. import ops
from ..ops.many import fused_update
from .fused import clamp, counted, operands, sign, where
from .optimizer import Optimizer, check, check_lr, rate
from .sgd import decayed


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
        check_lr(lr)
        check("eta values", f"{etas[0]}, {etas[1]}", 0.0 < etas[0] < 1.0 < etas[1])
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

    def _update_all(self, group, members):
        for p, grad, state in members:
            if not state:
                state.update(step=ops.tensor(0.0), prev=ops.zeros_like(p), step_size=ops.full_like(grad, float(group["lr"])))
        counted(members)
        rprop(operands(members, "prev", "step_size"), *group["etas"], *group["step_sizes"], maximize=bool(group["maximize"]))


@fused_update("rprop_", 3, 4, 4)
def rprop(p, before, size, g, down, up, smallest, largest, maximize):
    g = -g if maximize else g
    turn = g * before
    size = clamp(size * where(turn > 0, up, where(turn < 0, down, where(turn == 0, 1.0, turn))), smallest, largest)
    g = where(turn < 0, 0.0, g)
    return p - sign(g) * size, g, size


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
        check_lr(lr)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
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
        lr, lambd = rate(group), group["lambd"]
        if not state:
            state["step"] = ops.tensor(0.0)
            state["eta"] = ops.tensor(float(lr))
            state["mu"] = ops.tensor(1.0)
            state["ax"] = ops.zeros_like(p)
        state["step"] += 1
        step, eta, mu = (state[name].item() for name in ("step", "eta", "mu"))
        numbers = group["weight_decay"], 1 - lambd * eta, eta, mu
        asgd([(p, state["ax"], grad)], *numbers, maximize=bool(group["maximize"]), decays=bool(group["weight_decay"]), follows=mu == 1)
        state["eta"] = ops.tensor(lr / (1 + lambd * lr * step) ** group["alpha"])
        state["mu"] = ops.tensor(1 / max(1, step - group["t0"]))


@fused_update("asgd_", 2, 3, 4)
def asgd(p, average, g, decay, keep, eta, mu, maximize, decays, follows):
    g = decayed(p, g, decay, maximize, decays)
    p = p * keep - eta * g
    return p, p if follows else average + (p - average) * mu
