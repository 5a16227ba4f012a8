"""Rules that look at a matrix as a whole: Muon (orthogonal updates) and Adafactor (second moments by rows and columns)."""
import math

from .. import ops
from ..dtypes import bfloat16, finfo
from .optimizer import Optimizer, check, one_rate, refuse_complex


class Muon(Optimizer):
    """p ← p − lr'·O: O the momentum's nearest (semi-)orthogonal matrix by Newton–Schulz steps in bfloat16. For 2-D parameters only.

    adjust_lr_fn: "original" scales lr by sqrt(max(1, rows/columns)), "match_rms_adamw" by 0.2·sqrt(max(rows, columns)).
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.775, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        one_rate(lr)
        check("learning rate", lr, lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        check("momentum", momentum, momentum >= 0.0, f"momentum should be >= 0 but is: {momentum}")
        check("weight decay", weight_decay, weight_decay >= 0.0, f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for p in self._parameters():
            if p.ndim != 2:
                raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _update(self, group, p, grad, state):
        refuse_complex(self, group)
        lr, momentum = float(group["lr"]), group["momentum"]
        if not state:
            state["momentum_buffer"] = ops.zeros_like(grad)
        buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        step = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        step = _orthogonal(step, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        else:
            scale = math.sqrt(max(1, rows / columns))
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(step.to(p.dtype), alpha=-lr * scale)


def _orthogonal(x, coefficients, steps, eps):
    """The orthogonal factor of x, roughly: singular values go to about one, directions stay. [R, C] → [R, C] in bfloat16."""
    a, b, c = coefficients
    tall = x.size(0) > x.size(1)
    x = x.to(bfloat16)
    x = x.t() if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.t()
        x = ops.addmm(x, ops.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)  # a·x + (b·G + c·G²)·x
    return x.t() if tall else x


class Adafactor(Optimizer):
    """Adam without a first moment whose second moment of a matrix is kept as a row and a column of means.

    The step is relative to the parameter's own size: lr' = min(lr, 1/√step)·max(eps2, RMS(p)); updates are clipped to RMS d.
    """

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        one_rate(lr)
        check("learning rate", lr, lr >= 0.0, f"Learning rate should be >= 0 but is: {lr}")
        check("beta2_decay", beta2_decay, beta2_decay <= 0.0, f"beta2_decay should be <= 0 but is: {beta2_decay}")
        check("eps", eps, eps[0] is None or eps[0] >= 0.0, f"epsilon1 should be >= 0 but is: {eps[0]}")
        check("eps", eps, eps[1] >= 0.0, f"epsilon2 should be >= 0 but is: {eps[1]}")
        check("d", d, d >= 1.0, f"Clipping threshold d should be >= 1 but is: {d}")
        check("weight_decay", weight_decay, weight_decay >= 0.0, f"weight_decay should be >= 0 but is: {weight_decay}")
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _update(self, group, p, grad, state):
        refuse_complex(self, group)
        if group["maximize"]:
            grad = -grad
        if not state:
            state["step"] = ops.tensor(0.0)
            if grad.dim() > 1:
                state["row_var"] = ops.zeros_like(grad[..., :1])  # [.., R, 1]
                state["col_var"] = ops.zeros_like(grad[..., :1, :])  # [.., 1, C]
            else:
                state["variance"] = ops.zeros_like(grad)
        state["step"] += 1
        step = state["step"].item()
        lr, (eps1, eps2) = float(group["lr"]), group["eps"]
        eps1 = finfo(p.dtype).eps if eps1 is None else eps1
        root = math.sqrt(p.numel())
        alpha = max(eps2, p.norm().item() / root) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        new = step ** group["beta2_decay"]  # the share of this step's squares
        squares = grad * grad
        if grad.dim() > 1:
            rows = state["row_var"].lerp_(squares.mean(-1, keepdim=True), new)
            columns = state["col_var"].lerp_(squares.mean(-2, keepdim=True), new)
            variance = rows @ columns / rows.mean(-2, keepdim=True).clamp(min=eps1)
        else:
            variance = state["variance"].lerp_(squares, new)
        update = variance.clamp(min=eps1 * eps1).rsqrt() * grad
        p.add_(update, alpha=-alpha / max(1.0, update.norm().item() / (root * group["d"])))
