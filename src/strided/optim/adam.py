"""Adam and AdamW."""
from ..ops.many import fused_update
from ..tensor import Tensor
from .fused import counted, maximum, operands, sqrt, start
from .optimizer import Optimizer, check, check_kinds, check_lr, rate
from .sgd import decayed


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
        check_lr(lr, foreach, capturable)
        check("epsilon value", eps, eps >= 0.0)
        check_betas(betas)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        betas = _plain_betas(betas, foreach, capturable)
        check_kinds(foreach, fused, differentiable)
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

    def _update_all(self, group, members):
        kept = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")
        start(members, *kept)
        if not group["differentiable"]:
            for step, those in counted(members):
                self._move(group, operands(those, *kept), step)
            return
        for member in members:
            step = member[2]["step"]
            step += 1
            # PyTorch computes a recorded step's corrections in the count's own dtype, float32, and its results show it.
            self._move(group, operands([member], *kept), step.clone())

    def _move(self, group, those, step):
        beta1, beta2 = (float(b) for b in group["betas"])
        lr, decay = rate(group), group["weight_decay"]
        decoupled = group["decoupled_weight_decay"]
        numbers = (
            decay,
            1 - lr * decay if decoupled else 1.0,
            1 - beta1,
            beta2,
            1 - beta2,
            lr / (1 - beta1**step),
            (1 - beta2**step) ** -0.5,
            group["eps"],
        )
        rule, decays = adam_amsgrad if group["amsgrad"] else adam, bool(decay)
        rule(those, *numbers, maximize=bool(group["maximize"]), decays=decays and not decoupled, shrinks=decays and decoupled)


def _moments(mean, square, g, new1, old2, new2):
    """Both running means after a gradient."""
    return mean + new1 * (g - mean), square * old2 + new2 * g * g


def _moved(p, mean, square, rate, correction, eps):
    return p - rate * (mean / (sqrt(square) * correction + eps))


@fused_update("adam_", 3, 4, 8)
def adam(p, mean, square, g, decay, keep, new1, old2, new2, rate, correction, eps, maximize, decays, shrinks):
    mean, square = _moments(mean, square, decayed(p, g, decay, maximize, decays), new1, old2, new2)
    return _moved(p * keep if shrinks else p, mean, square, rate, correction, eps), mean, square


@fused_update("adam_amsgrad_", 4, 5, 8)
def adam_amsgrad(p, mean, square, largest, g, decay, keep, new1, old2, new2, rate, correction, eps, maximize, decays, shrinks):
    mean, square = _moments(mean, square, decayed(p, g, decay, maximize, decays), new1, old2, new2)
    largest = maximum(largest, square)
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


def _plain_betas(betas, foreach, capturable):
    """Both betas, which may be tensors of one element, as they were given."""
    kinds = [isinstance(b, Tensor) for b in betas]
    if not (all(kinds) or all(isinstance(b, float) for b in betas)):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, b in enumerate(betas):
        if isinstance(b, Tensor):
            if foreach and not capturable:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
            check("beta", b, b.numel() == 1, f"Tensor betas[{i}] must be 1-element")
    return tuple(b.item() if isinstance(b, Tensor) else b for b in betas)
