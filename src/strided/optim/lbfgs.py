"""L-BFGS: a quasi-Newton method whose closure recomputes loss and gradients as often as it needs. The line search is in line_search.py."""
from .. import ops
from ..autograd.modes import enable_grad, no_grad
from .line_search import strong_wolfe
from .optimizer import Optimizer, check_lr


class LBFGS(Optimizer):
    """x ← x + t·d: d = −H·g, H the inverse Hessian estimated from the last `history_size` steps; t is lr, or found by line_search_fn="strong_wolfe".

    `step(closure)` takes up to `max_iter` such steps with at most `max_eval` calls of the closure (1.25·max_iter), and ends early when the largest
    gradient is at most tolerance_grad, or the step or the change of the loss is below tolerance_change. One parameter group.
    """

    def __init__(
        self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9, history_size=100, line_search_fn=None
    ):
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _flat_gradient(self):
        """All gradients as one vector [n]; zeros where there is none. Complex numbers count as two."""
        parts = []
        for p in self._params:
            part = ops.zeros_like(p) if p.grad is None else p.grad
            parts.append((ops.view_as_real(part) if part.is_complex() else part).reshape(-1))
        return ops.cat(parts)

    def _move(self, step, direction):
        """Adds step·direction [n] to the parameters."""
        start = 0
        for p in self._params:
            p = ops.view_as_real(p) if p.is_complex() else p
            p.add_(direction[start : start + p.numel()].view_as(p), alpha=step)
            start += p.numel()

    def _evaluate(self, closure, origin, step, direction):
        """(loss, gradient) at a step along the direction; the parameters are back at `origin` afterwards."""
        self._move(step, direction)
        loss = float(closure())
        gradient = self._flat_gradient()
        for p, before in zip(self._params, origin):
            p.copy_(before)
        return loss, gradient

    def step(self, closure):
        """Calls `closure` (clear the gradients, compute the loss, backward, return the loss) several times. Returns the first loss."""
        with no_grad():
            return self._step(enable_grad()(closure))

    def _step(self, closure):
        group = self.param_groups[0]
        lr, tolerance = float(group["lr"]), group["tolerance_change"]
        state = self.state[self._params[0]]  # one for all parameters, kept under the first
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, gradient = float(first_loss), self._flat_gradient()
        evaluations = 1
        state["func_evals"] += 1
        flat_enough = gradient.abs().max().item() <= group["tolerance_grad"]
        if flat_enough:
            return first_loss
        direction, t = state.get("d"), state.get("t")
        memory = tuple(state.get(name) for name in ("old_dirs", "old_stps", "ro"))
        scale, before = state.get("H_diag"), state.get("prev_flat_grad")
        loss_before = state.get("prev_loss")
        iteration = 0
        while iteration < group["max_iter"]:
            iteration += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction, memory, scale = gradient.neg(), ([], [], []), 1
            else:
                scale = _remember(memory, gradient.sub(before), direction.mul(t), scale, group["history_size"])
                direction = _direction(memory, gradient, scale)
                state.setdefault("al", [None] * group["history_size"])
            before = gradient.clone() if before is None else before.copy_(gradient)
            loss_before = loss
            t = min(1.0, 1.0 / gradient.abs().sum().item()) * lr if state["n_iter"] == 1 else lr
            slope = gradient.dot(direction).item()
            if slope > -tolerance:
                break
            calls = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                origin = [p.clone() for p in self._params]

                def evaluate(step, direction=direction, origin=origin):
                    return self._evaluate(closure, origin, step, direction)

                loss, gradient, t, calls = strong_wolfe(evaluate, t, direction, loss, gradient, slope, group["max_eval"] - evaluations)
                self._move(t, direction)
                flat_enough = gradient.abs().max().item() <= group["tolerance_grad"]
            else:
                self._move(t, direction)
                if iteration != group["max_iter"]:  # after the last step nobody needs the gradient
                    loss, gradient, calls = float(closure()), self._flat_gradient(), 1
                    flat_enough = gradient.abs().max().item() <= group["tolerance_grad"]
            evaluations += calls
            state["func_evals"] += calls
            if iteration == group["max_iter"] or evaluations >= group["max_eval"] or flat_enough:
                break
            if direction.mul(t).abs().max().item() <= tolerance or abs(loss - loss_before) < tolerance:
                break
        state["d"], state["t"] = direction, t
        state["old_dirs"], state["old_stps"], state["ro"] = memory
        state["H_diag"], state["prev_flat_grad"], state["prev_loss"] = scale, before, loss_before
        return first_loss


def _remember(memory, change, step, scale, size):
    """Adds a step and the gradient's change along it to the memory, unless the curvature is not positive. Returns the initial Hessian's scale."""
    changes, steps, inverses = memory
    curvature = change.dot(step)
    if curvature <= 1e-10:
        return scale
    if len(changes) == size:
        for kept in memory:
            kept.pop(0)
    changes.append(change)
    steps.append(step)
    inverses.append(1.0 / curvature)
    return curvature / change.dot(change)


def _direction(memory, gradient, scale):
    """−H·gradient by the two loops over the memory, newest first and then oldest first."""
    changes, steps, inverses = memory
    q = gradient.neg()
    factors = [None] * len(steps)
    for i in reversed(range(len(steps))):
        factors[i] = steps[i].dot(q) * inverses[i]
        q.add_(changes[i] * -factors[i])
    q = q.mul(scale)
    for i in range(len(steps)):
        q.add_(steps[i] * (factors[i] - changes[i].dot(q) * inverses[i]))
    return q
