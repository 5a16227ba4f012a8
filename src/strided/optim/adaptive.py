"""The other adaptive rules: RMSprop, Adagrad, Adadelta, Adamax, NAdam, RAdam."""
import functools
import math

from .. import ops
from ..autograd.modes import no_grad
from ..ops.many import fused_update, scale_all
from .adam import check_betas
from .fused import absolute, by_value, counted, maximum, operands, sqrt, start
from .optimizer import Optimizer, check, check_kinds, check_lr, rate
from .sgd import decayed


def _common(lr, eps, weight_decay):
    check_lr(lr)
    check("epsilon value", eps, eps >= 0.0)
    check("weight_decay value", weight_decay, weight_decay >= 0.0)


def _choices(group):
    """Which parts of a formula a group asks for."""
    decay, decoupled = bool(group["weight_decay"]), bool(group.get("decoupled_weight_decay"))
    return {"maximize": bool(group["maximize"]), "decays": decay and not decoupled}


def _kept(group, lr):
    """What decoupled weight decay leaves of a parameter."""
    return 1 - lr * group["weight_decay"] if group["decoupled_weight_decay"] and group["weight_decay"] else 1.0


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
        _common(lr, eps, weight_decay)
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

    def _update_all(self, group, members):
        momentum, centered = group["momentum"], bool(group["centered"])
        kept = "square_avg", *["grad_avg"] * centered, *["momentum_buffer"] * (momentum > 0)
        start(members, *sorted(kept, reverse=True))  # in PyTorch's order
        counted(members)
        numbers = group["weight_decay"], rate(group), group["alpha"], 1 - group["alpha"], group["eps"], momentum
        _RMSPROP[centered, momentum > 0](operands(members, *kept), *numbers, **_choices(group))


def _rmsprop(centered, buffered, p, square, *rest, maximize, decays):
    *means, g, decay, lr, old, new, eps, momentum = rest
    g = decayed(p, g, decay, maximize, decays)
    square = square * old + new * g * g
    written, variance = [square], square
    if centered:
        mean = means[0] + new * (g - means[0])
        written.append(mean)
        variance = square - mean * mean
    step = g / (sqrt(variance) + eps)
    if buffered:
        step = means[-1] * momentum + step
        written.append(step)
    return p - lr * step, *written


_RMSPROP = {
    (centered, buffered): fused_update(
        "rmsprop_" + "centered_" * centered + "momentum_" * buffered, 2 + centered + buffered, 3 + centered + buffered, 6
    )(functools.partial(_rmsprop, centered, buffered))
    for centered in (False, True)
    for buffered in (False, True)
}


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
        check_kinds(foreach, fused, differentiable)
        _common(lr, eps, weight_decay)
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

    def _update_all(self, group, members):
        for step, those in counted(members):
            lr = rate(group) / (1 + (step - 1) * group["lr_decay"])
            sums = [ops.view_as_real(total) if total.is_complex() else total for total in (state["sum"] for *_, state in those)]
            moved = [(p, total, grad) for (p, grad, _), total in zip(those, sums)]
            adagrad(moved, group["weight_decay"], lr, group["eps"], **_choices(group))


@fused_update("adagrad_", 2, 3, 3)
def adagrad(p, total, g, decay, lr, eps, maximize, decays):
    g = decayed(p, g, decay, maximize, decays)
    total = total + g * g
    return p - lr * (g / (sqrt(total) + eps)), total


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
        _common(lr, eps, weight_decay)
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

    def _update_all(self, group, members):
        start(members, "square_avg", "acc_delta")
        counted(members)
        numbers = group["weight_decay"], rate(group), group["rho"], 1 - group["rho"], group["eps"]
        adadelta(operands(members, "square_avg", "acc_delta"), *numbers, **_choices(group))


@fused_update("adadelta_", 3, 4, 5)
def adadelta(p, square, moved, g, decay, lr, old, new, eps, maximize, decays):
    g = decayed(p, g, decay, maximize, decays)
    square = square * old + new * g * g
    delta = sqrt(moved + eps) / sqrt(square + eps) * g
    return p - lr * delta, square, moved * old + new * delta * delta


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
        _common(lr, eps, weight_decay)
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

    def _update_all(self, group, members):
        beta1, beta2 = group["betas"]
        start(members, "exp_avg", "exp_inf")
        for step, those in counted(members):
            numbers = group["weight_decay"], rate(group) / (1 - beta1**step), 1 - beta1, beta2, group["eps"]
            adamax(operands(those, "exp_avg", "exp_inf"), *numbers, **_choices(group))


@fused_update("adamax_", 3, 4, 5)
def adamax(p, mean, largest, g, decay, lr, new1, old2, eps, maximize, decays):
    g = decayed(p, g, decay, maximize, decays)
    mean = mean + new1 * (g - mean)
    largest = maximum(largest * old2, absolute(g) + eps)
    return p - lr * (mean / largest), mean, largest


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
        _common(lr, eps, weight_decay)
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

    def _update_all(self, group, members):
        beta1, beta2 = group["betas"]
        lr = rate(group)
        for p, _, state in members:
            if not state:
                state.update(step=ops.tensor(0.0), mu_product=ops.tensor(1.0), exp_avg=ops.zeros_like(p), exp_avg_sq=ops.zeros_like(p))
        for step, these in counted(members):
            mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
            mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * group["momentum_decay"]))
            with no_grad():
                scale_all([(state["mu_product"],) for *_, state in these], mu)
            for product, those in by_value(these, "mu_product"):
                rates = lr * (1.0 - mu) / (1.0 - product), lr * mu_next / (1.0 - product * mu_next)  # of the gradient and of its mean
                numbers = group["weight_decay"], _kept(group, lr), 1 - beta1, beta2, 1 - beta2, *rates, 1 - beta2**step, group["eps"]
                nadam(operands(those, "exp_avg", "exp_avg_sq"), *numbers, **_choices(group))


@fused_update("nadam_", 3, 4, 9)
def nadam(p, mean, square, g, decay, keep, new1, old2, new2, rate_now, rate_mean, correction, eps, maximize, decays):
    g = decayed(p, g, decay, maximize, decays)
    mean, square = mean + new1 * (g - mean), square * old2 + new2 * g * g
    scale = sqrt(square / correction) + eps
    return p * keep - rate_now * (g / scale) - rate_mean * (mean / scale), mean, square


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
        _common(lr, eps, weight_decay)
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

    def _update_all(self, group, members):
        beta1, beta2 = group["betas"]
        lr = rate(group)
        start(members, "exp_avg", "exp_avg_sq")
        for step, those in counted(members):
            correction1, correction2 = 1 - beta1**step, 1 - beta2**step
            longest = 2 / (1 - beta2) - 1
            length = longest - 2 * step * beta2**step / correction2
            speed, adapts = lr / correction1, length > 5.0
            if adapts:
                top = (length - 4) * (length - 2) * longest
                speed = speed * math.sqrt(correction2) * math.sqrt(top / ((longest - 4) * (longest - 2) * length))
            numbers = group["weight_decay"], _kept(group, lr), 1 - beta1, beta2, 1 - beta2, speed, group["eps"]
            radam(operands(those, "exp_avg", "exp_avg_sq"), *numbers, **_choices(group), adapts=adapts)


@fused_update("radam_", 3, 4, 7)
def radam(p, mean, square, g, decay, keep, new1, old2, new2, speed, eps, maximize, decays, adapts):
    g = decayed(p, g, decay, maximize, decays)
    mean, square = mean + new1 * (g - mean), square * old2 + new2 * g * g
    return p * keep - speed * (mean / (sqrt(square) + eps) if adapts else mean), mean, square
