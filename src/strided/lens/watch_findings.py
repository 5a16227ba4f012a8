"""What is worth saying about a watched run: each finding says what happened, where, and what to do; there is none where all is well."""
from __future__ import annotations

import statistics
from typing import NamedTuple

from ..autograd import no_grad
from ..kernels.finite import NAN
from .watch import Special, Watch, _place_of, outermost

_VANISHED, _FAR = 1e-8, 1e5  # root mean square of a layer's gradient that counts as none, where another layer's is so many times as large
_EXPLODED, _ENORMOUS = 1e3, 1e6  # growth of the whole gradient's norm; a norm to begin with


class Finding(NamedTuple):
    """kind: a short name; text: what happened and where; fix: what to do about it."""

    kind: str
    text: str
    fix: str


def findings(watch: Watch) -> list[Finding]:
    """Everything worth saying, the gravest first."""
    return [*_not_finite(watch), *_kept(watch), *_exploding(watch), *_vanishing(watch), *_parameters(watch), *_broadcasts(watch), *_dead(watch)]


# ---- infinities and NaN -------------------------------------------------------------------------------------------------------------


def _not_finite(watch: Watch) -> list[Finding]:
    loss, gradient, parameter = watch.bad_loss, watch.bad_gradient, watch.bad_parameter
    if loss is not None and (gradient is None or loss[0] <= gradient[3]):
        origin = watch.loss_mark or watch.first
        text = f"The loss became {loss[1]} in backward pass {loss[0]}."
    elif gradient is not None:
        origin = gradient[2]
        text = f"The gradient of {gradient[1]} stopped being finite in step {gradient[0]}, though the loss was."
    elif parameter is not None:
        text = f"{parameter[1]} stopped being finite in step {parameter[0]}, though its gradient was."
        return [Finding("not finite", text, "Lower the learning rate, or raise the optimiser's eps.")]
    elif watch.first is not None and not watch.backwards:
        return [Finding("not finite", _story(watch.first), _advice(watch.first))]
    else:
        return []
    return [Finding("not finite", f"{text} {_story(origin)}", _advice(origin))]


def _story(origin: Special | None) -> str:
    if origin is None:
        return "No operator that was seen made it: a parameter may have grown until it overflowed."
    word = "NaN" if origin.kind == NAN else "An infinity"
    where = "" if origin.place is None else f" ({origin.place})"
    shape = list(origin.shape)
    if origin.phase == "data":
        return f"{word} came with the data: a tensor of shape {shape}{where} held it before any operator touched it."
    if origin.phase == "backward":
        text = f"{word} was first made in the backward pass by {origin.op}, of shape {shape}: the derivative of what that line computed{where}."
    else:
        text = f"{word} was first made by {origin.op}, of shape {shape}{where}."
    cause = origin.cause
    if cause is None or cause.kind == origin.kind:
        return text
    made = "which came with the data" if cause.phase == "data" else f"made by {cause.op} ({cause.place})"
    return f"{text} Its input held {'NaN' if cause.kind == NAN else 'an infinity'}, {made}."


_CURES = {
    "log": "Keep the argument away from 0: torch.log(x.clamp_min(eps)), or log_softmax and logsigmoid in place of log(softmax) and log(sigmoid).",
    "sqrt": "Add a small number before the root: its derivative at 0 is infinite.",
    "norm": "A norm has no derivative at 0: add eps inside, or use F.normalize with its eps.",
    "div": "Add a small number to the divisor, or mask where it is 0.",
    "exp": "exp overflows float32 above 88: subtract the maximum first, as softmax and logsumexp do.",
    "pow": "A power with this exponent overflows or has no derivative at 0: clamp its base.",
    "data": "Look at the data where it is loaded: torch.isnan(x).any(); drop or fill such rows.",
}


def _advice(origin: Special | None) -> str:
    if origin is None:
        return "Lower the learning rate, or look closer with torch.autograd.set_detect_anomaly(True)."
    name = "data" if origin.phase == "data" else (origin.cause or origin).op.lower()
    for word, cure in _CURES.items():
        if word in name:
            return cure
    return "Lower the learning rate or clip the gradient, if the values grew step by step; else look at that line's inputs."


# ---- gradients -----------------------------------------------------------------------------------------------------------------------


def _kept(watch: Watch) -> list[Finding]:
    if watch.uncleared is None:
        return []
    text = f"A backward pass began with the gradients of the step before still there ({watch.uncleared}): they add up."
    return [Finding("gradients kept", text, "Call optimizer.zero_grad() before each backward pass, or after each step.")]


def _exploding(watch: Watch) -> list[Finding]:
    early = [norm for _, norm in watch.totals[:10]]
    if not early or watch.bad_loss is not None:
        return []
    usual = statistics.median(early)
    step, worst = max(watch.totals, key=lambda pair: pair[1])

    def largest(step):
        return max(watch.norms, key=lambda name: max((norm for at, norm in watch.norms[name] if at == step), default=0.0))

    if len(early) >= 3 and usual > 0 and worst > _EXPLODED * usual:
        text = f"The gradient's norm was {worst:.3g} in step {step}, {worst / usual:.0f} times what it was at first ({usual:.3g}); most of it in {largest(step)}."
        return [Finding("exploding gradient", text, "Clip it (torch.nn.utils.clip_grad_norm_), lower the learning rate, or warm it up.")]
    if max(early) > _ENORMOUS:
        text = f"The gradient's norm is {max(early):.3g} from the start; most of it in {largest(watch.totals[0][0])}."
        return [Finding("exploding gradient", text, "Scale the initial weights down or normalise the layers' inputs.")]
    return []


def _vanishing(watch: Watch) -> list[Finding]:
    middle = {name: statistics.median(values) for name, values in watch.rms.items() if len(values) >= 3}
    if len(middle) < 2 or watch.bad_loss is not None:
        return []
    most = max(middle, key=middle.__getitem__)
    small = [name for name, value in middle.items() if value < _VANISHED and middle[most] > _FAR * value]
    if not small:
        return []
    lowest = min(small, key=middle.__getitem__)
    others = f", and of {len(small) - 1} more" if len(small) > 1 else ""
    text = f"The gradient of {lowest}{others} is {middle[lowest]:.2g} a weight, where that of {most} is {middle[most]:.2g}: these layers hardly learn."
    return [Finding("vanishing gradient", text, "Use residual connections, normalisation, or an activation that does not saturate.")]


# ---- parameters, shapes, activations ---------------------------------------------------------------------------------------------------


def _parameters(watch: Watch) -> list[Finding]:
    if watch.steps < 2:
        return []
    watch.name_parameters()
    found = []
    held = {id(p): p for group in watch.groups() for p in group["params"]}
    never = [watch.name(p) for key, p in held.items() if p.requires_grad and key not in watch.received]
    if never:
        text = f"{_list(never)} never received a gradient in {watch.steps} steps."
        fix = "Is its output used in the loss, and not behind detach() or no_grad()? If it is meant to stand still, set requires_grad=False."
        found.append(Finding("no gradient", text, fix))
    missing = []
    for module in outermost():
        parameters = dict(module.named_parameters())
        if any(id(p) in held for p in parameters.values()):
            missing += [name for name, p in parameters.items() if id(p) not in held and p.requires_grad]
    if missing:
        text = f"{_list(missing)} requires grad and is in no optimiser: it never changes."
        fix = "Make the optimiser after the module is complete, over model.parameters(), or set requires_grad=False."
        found.append(Finding("not in the optimiser", text, fix))
    return found


def _list(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _broadcasts(watch: Watch) -> list[Finding]:
    found = []
    for place, (op, a, b, full) in watch.broadcasts.items():
        text = f"{op} met {a} and {b} ({place}): both grew to {full}, so that everything was compared with everything."
        found.append(Finding("broadcast", text, "Give them one shape, as in x.squeeze(-1) or y.unsqueeze(-1)."))
    return found


def _dead(watch: Watch) -> list[Finding]:
    found = []
    for place, states in watch.relus.items():
        for units, _, looks, fired in states:
            if fired is None or looks < 5 or units < 4:
                continue
            with no_grad():
                dead = units - int(fired.sum())
            if dead > units / 2:
                text = f"{dead} of {units} units behind the ReLU of {_place_of(place)} fired for no input in {looks} looks."
                found.append(Finding("dead units", text, "Lower the learning rate, check the bias and the scale of the inputs, or use leaky_relu or gelu."))
    return found
