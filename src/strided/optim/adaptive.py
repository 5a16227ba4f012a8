"""The other adaptive rules: RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam."""
import math

from .. import ops
from .adam import check_betas
from .optimizer import Optimizer, check
from .sgd import refuse_differentiable


def _common(lr, eps, weight_decay, differentiable):
    check("learning rate", lr, lr >= 0.0)
    check("epsilon value", eps, eps >= 0.0)
    check("weight_decay value", weight_decay, weight_decay >= 0.0)
    refuse_differentiable(differentiable)


def _decayed(group, p, grad):
    """The gradient after `maximize` and (coupled) weight decay."""
    if group["maximize"]:
        grad = -grad
    decay = group["weight_decay"]
    if decay and not group.get("decoupled_weight_decay"):
        grad = grad.add(p, alpha=decay)
    return grad


def _count(state):
    """The number of this step, from 1."""
    state["step"] += 1
    return state["step"].item()


class RMSprop(Optimizer):
    """p ← p − lr·g / (√v + eps), v a running mean of g² (less its mean squared, if `centered`), with optional momentum."""

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        _common(lr, eps, weight_decay, differentiable)
        check("momentum value", momentum, momentum >= 0.0)
        check("alpha value", alpha, alpha >= 0.0)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, group, p, grad, state):
        alpha, lr = group["alpha"], float(group["lr"])
        if not state:
            state["step"] = ops.tensor(0.0)
            state["square_avg"] = ops.zeros_like(p)
            if group["momentum"] > 0:
                state["momentum_buffer"] = ops.zeros_like(p)
            if group["centered"]:
                state["grad_avg"] = ops.zeros_like(p)
        state["step"] += 1
        grad = _decayed(group, p, grad)
        square = state["square_avg"].mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            square = square.addcmul(mean, mean, value=-1)
        denominator = square.sqrt().add_(group["eps"])
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, denominator)
            p.add_(buffer, alpha=-lr)
        else:
            p.addcdiv_(grad, denominator, value=-lr)


class Adagrad(Optimizer):
    """p ← p − lr·g / (√Σg² + eps); lr shrinks as lr / (1 + (step − 1)·lr_decay)."""

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        _common(lr, eps, weight_decay, differentiable)
        check("lr_decay value", lr_decay, lr_decay >= 0.0)
        check("initial_accumulator_value value", initial_accumulator_value, initial_accumulator_value >= 0.0)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] = ops.tensor(0.0)
                state["sum"] = ops.full_like(p, group["initial_accumulator_value"]).detach()

    def share_memory(self):
        """Nothing to do: state is shared where processes fork."""

    def _update(self, group, p, grad, state):
        step = _count(state)
        grad = _decayed(group, p, grad)
        lr = float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        total = state["sum"].addcmul_(grad, grad, value=1)
        p.addcdiv_(grad, total.sqrt().add_(group["eps"]), value=-lr)


class Adadelta(Optimizer):
    """p ← p − lr·g·√(u + eps)/√(v + eps): v and u running means of g² and of the updates' squares."""

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        _common(lr, eps, weight_decay, differentiable)
        check("rho value", rho, 0.0 <= rho <= 1.0)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, group, p, grad, state):
        rho, eps = group["rho"], group["eps"]
        if not state:
            state["step"] = ops.tensor(0.0)
            state["square_avg"] = ops.zeros_like(p)
            state["acc_delta"] = ops.zeros_like(p)
        state["step"] += 1
        grad = _decayed(group, p, grad)
        square = state["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = state["acc_delta"].add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
        state["acc_delta"].mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-float(group["lr"]))


class Adamax(Optimizer):
    """Adam with the running maximum of |g| instead of the root of a mean square."""

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        _common(lr, eps, weight_decay, differentiable)
        check_betas(betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _update(self, group, p, grad, state):
        beta1, beta2 = group["betas"]
        if not state:
            state["step"] = ops.tensor(0.0)
            state["exp_avg"] = ops.zeros_like(p)
            state["exp_inf"] = ops.zeros_like(p)
        step = _count(state)
        grad = _decayed(group, p, grad)
        state["exp_avg"].lerp_(grad, 1 - beta1)
        largest = state["exp_inf"]
        largest.copy_(ops.maximum(largest.mul_(beta2), grad.abs().add_(group["eps"])))
        p.addcdiv_(state["exp_avg"], largest, value=-float(group["lr"]) / (1 - beta1**step))


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, whose strength follows a schedule."""

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        _common(lr, eps, weight_decay, differentiable)
        check_betas(betas)
        check("momentum_decay value", momentum_decay, momentum_decay >= 0.0)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, group, p, grad, state):
        beta1, beta2 = group["betas"]
        lr = float(group["lr"])
        if not state:
            state["step"] = ops.tensor(0.0)
            state["mu_product"] = ops.tensor(1.0)
            state["exp_avg"] = ops.zeros_like(p)
            state["exp_avg_sq"] = ops.zeros_like(p)
        step = _count(state)
        grad = _decayed(group, p, grad)
        if group["decoupled_weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * group["momentum_decay"]))
        state["mu_product"] *= mu
        product = state["mu_product"].item()
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = state["exp_avg_sq"].div(1 - beta2**step).sqrt_().add_(group["eps"])
        p.addcdiv_(grad, denominator, value=-lr * (1.0 - mu) / (1.0 - product))
        p.addcdiv_(state["exp_avg"], denominator, value=-lr * mu_next / (1.0 - product * mu_next))


class RAdam(Optimizer):
    """Adam whose adaptive part is switched on, rectified, only once its variance is known well enough."""

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        _common(lr, eps, weight_decay, differentiable)
        check_betas(betas)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _update(self, group, p, grad, state):
        beta1, beta2 = group["betas"]
        lr = float(group["lr"])
        if not state:
            state["step"] = ops.tensor(0.0)
            state["exp_avg"] = ops.zeros_like(p)
            state["exp_avg_sq"] = ops.zeros_like(p)
        step = _count(state)
        grad = _decayed(group, p, grad)
        if group["decoupled_weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        state["exp_avg"].lerp_(grad, 1 - beta1)
        state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        mean = state["exp_avg"] / correction1
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / correction2
        if length > 5.0:
            top = (length - 4) * (length - 2) * longest
            rectified = math.sqrt(top / ((longest - 4) * (longest - 2) * length))
            adaptive = math.sqrt(correction2) / state["exp_avg_sq"].sqrt().add_(group["eps"])
            p.add_(mean * lr * adaptive * rectified, alpha=-1.0)
        else:
            p.add_(mean * lr, alpha=-1.0)
