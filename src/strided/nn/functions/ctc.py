"""Connectionist temporal classification: the loss by the forward recursion over alignments, its gradient by the backward one, as PyTorch orders them."""
from __future__ import annotations

import math
from typing import Any

from ... import ops
from ...autograd import backward, no_grad, record, tracking
from ...dispatch import PlanCache, launch
from ...dtypes import bool_, int64
from ...kernels import alignments
from ...kernels.native import new_storage
from ...ops.folding import plain
from ...ops.onlooking import seen_as
from . import counts
from .entry import entry
from .padding import pad


@entry(counts.ctc, autocast="float32")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    """−log of the probability of all alignments of a target with the input.

    log_probs [T, N, C] (or [T, C]), targets [N, S] padded or joined in one dimension. reduction "mean" divides each loss by its target's length first.
    The gradient is that of the logits before log_softmax, as in PyTorch, and cannot be differentiated again.
    """
    batched = log_probs.dim() == 3
    x = log_probs if batched else log_probs.unsqueeze(1)  # [T, N, C]
    steps, lengths = _lengths(input_lengths), _lengths(target_lengths)
    if len(steps) != x.size(1) or len(lengths) != x.size(1):
        raise RuntimeError(f"input_lengths must be of size batch_size, got {len(steps)} and {len(lengths)} lengths for a batch of {x.size(1)}")
    if max(steps, default=0) > x.size(0):
        raise RuntimeError(f"Expected input_lengths to have value at most {x.size(0)}, but got value {max(steps)}")
    if x.dtype.name in alignments.DTYPES and not x.is_meta and x.numel() and min(steps) >= 0:
        loss = _by_kernel(x, targets, steps, lengths, blank, zero_infinity)  # [N]
    else:
        states, follows = _alignment(targets, lengths, blank, x.size(1))  # [N, 2S + 1]: blank, t1, blank, t2, …, blank; where a blank may be left out
        loss = _losses(x, states, follows, steps, lengths, zero_infinity)
    if zero_infinity:
        loss = ops.where(loss == math.inf, ops.zeros_like(loss), loss)
    if reduction == "mean":
        return (loss / ops.tensor([max(length, 1) for length in lengths], dtype=loss.dtype)).mean()
    return loss.sum() if reduction == "sum" else loss if batched else loss[0]


def _lengths(value: Any) -> list[int]:
    value = value.tolist() if hasattr(value, "tolist") else value
    return [value] if isinstance(value, int) else [int(v) for v in value]


def _alignment(targets, lengths, blank, batch):
    """(classes of the states, whether a state may follow the one two before it)."""
    longest = max(lengths, default=0)
    rows, start = [], 0
    flat = targets.reshape(-1).tolist()
    for n, length in enumerate(lengths):
        start = n * targets.size(1) if targets.dim() == 2 else start
        rows.append(flat[start : start + length] + [blank] * (longest - length))
        start += length
    states = [[blank] + [c for target in row for c in (target, blank)] for row in rows]
    follows = [[i >= 2 and row[i] != blank and row[i] != row[i - 2] for i in range(len(row))] for row in states]
    return ops.tensor(states, dtype=int64).reshape(batch, -1), ops.tensor(follows, dtype=bool_).reshape(batch, -1)


# ---- by a kernel ----------------------------------------------------------------------------------

_plans = PlanCache()


def _by_kernel(x, targets, steps, lengths, blank, zero_infinity):
    """[T, N, C] → [N]."""
    targets = targets.detach().long().contiguous()
    if targets.dim() == 2:
        starts = [n * targets.size(1) for n in range(len(lengths))]
    else:
        starts = [sum(lengths[:n]) for n in range(len(lengths))]
    _check_targets(x, targets, starts, lengths, blank)
    places = [ops.tensor(values, dtype=int64) for values in (starts, steps, lengths)]
    given = plain(x).contiguous()
    longest = max(lengths)
    loss, alphas = ops.empty(x.size(1), dtype=x.dtype), ops.empty(x.size(0), x.size(1), 2 * longest + 1, dtype=x.dtype)
    _launch("loss", given, longest, blank, False, (loss, alphas, given, targets, *places))
    if tracking(x):
        record(CtcLossKernelBackward0, (x,), loss, (x, alphas, loss), given=(targets, *places), longest=longest, blank=blank, zero_infinity=zero_infinity)
    return loss


def _check_targets(x, targets, starts, lengths, blank):
    classes = x.size(2)
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if min(lengths) < 0:
        raise RuntimeError(f"Expected target_lengths to have value at least 0, but got value {min(lengths)} (while checking arguments for ctc_loss_cpu)")
    if targets.numel() and (targets.numel() < max(s + n for s, n in zip(starts, lengths)) or not 0 <= int(targets.min()) <= int(targets.max()) < classes):
        flat = targets.flatten().tolist()
        for start, length in zip(starts, lengths):
            if start + length > len(flat) or targets.dim() == 2 and length > targets.size(1):
                raise _too_short(targets, length)
            if any(not 0 <= c < classes for c in flat[start : start + length]):
                raise IndexError(f"ctc_loss: a target is out of range: classes are 0 to {classes - 1}")
    elif targets.dim() == 2 and max(lengths) > targets.size(1) or not targets.numel() and max(lengths):
        raise _too_short(targets, max(lengths))


def _too_short(targets, length):
    return RuntimeError(
        f"Expected tensor to have size at least {length} at dimension 1, but got size {list(targets.shape)} for argument #2 'targets' (while checking arguments for ctc_loss_cpu)"
    )


def _launch(kind, x, longest, blank, flag, operands):
    key = kind, x.spec, longest, blank, flag
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.put(key, alignments.build(kind, x.dtype, *x.shape, longest, blank, flag))
    descriptor, scratch = plan
    room = new_storage(scratch)
    launch(descriptor, *[t.ptr for t in operands], room.data)


@backward("CtcLoss", saved_names=("log_probs", "result1", "result0"))
@seen_as("ctc_loss_backward", lambda node, g: 4 * node.saved[0].numel())
def CtcLossKernelBackward0(node, g):
    """exp(x) − the probability that an alignment is in a state of a class, for each step and class."""
    x, alphas, loss = node.saved
    if tracking(g, x):
        raise NotImplementedError("the derivative for '_ctc_loss_backward' is not implemented.\n  Leave create_graph=False.")
    given = plain(x).contiguous()
    out = ops.empty(x.shape, dtype=x.dtype)
    _launch("gradient", given, node.longest, node.blank, bool(node.zero_infinity), (out, plain(g).contiguous(), loss, alphas, given, *node.given))
    return (out,)


# ---- the two recursions, for what the kernel does not take --------------------------------------


def _losses(x, states, follows, steps, lengths, zero_infinity):
    """[T, N, C] → [N]."""
    with no_grad():
        emitted = _emitted(x, states)  # [T, N, K]
        nowhere = ops.full_like(emitted[0], -math.inf)
        forward = ops.where(ops.arange(states.size(1)) < 2, emitted[0], nowhere)
        alphas = [forward]
        for t in range(1, x.size(0)):
            before = [forward, _shifted(forward, 1), ops.where(follows, _shifted(forward, 2), nowhere)]
            forward = _logsumexp(before) + emitted[t]
            alphas.append(forward)
        alphas = ops.stack(alphas)  # [T, N, K]
        losses = []
        for n, (step, length) in enumerate(zip(steps, lengths)):
            ends = alphas[max(step - 1, 0), n, max(2 * length - 1, 0) : 2 * length + 1]
            losses.append(-_logsumexp(list(ends.flip(0))) if step else (ends[0] * 0 if not length else -nowhere[n, 0]))
        loss = ops.stack(losses)
    if tracking(x):
        where = {"states": states, "follows": follows, "steps": steps, "lengths": lengths, "zero_infinity": zero_infinity}
        record(CtcLossBackward0, (x,), loss, (x, alphas, loss), **where)
    return loss


@backward("CtcLoss", saved_names=("log_probs", "result1", "result0"))
def CtcLossBackward0(node, g):
    """exp(x) − exp(log of the sum over a class's states of forward · backward, − loss − x), for each step and class."""
    x, alphas, loss = node.saved
    if tracking(g, x):
        raise NotImplementedError("the derivative for '_ctc_loss_backward' is not implemented.\n  Leave create_graph=False.")
    total = alphas + _betas(_emitted(x, node.states), node.follows, node.steps, node.lengths)  # [T, N, K]
    occupied = ops.full_like(x, -math.inf)  # [T, N, C]
    for k in range(total.size(2) - 1, -1, -1):  # one state after the other: those of one class add up in PyTorch's order
        index = node.states[:, k].reshape(1, -1, 1).expand(x.size(0), -1, 1)  # [T, N, 1]
        occupied.scatter_(2, index, _logsumexp([occupied.gather(2, index), total[:, :, k : k + 1]]))
    gradient = (x.exp() - (occupied + loss.reshape(1, -1, 1) - x).exp()) * g.reshape(1, -1, 1)
    dead = ops.arange(x.size(0)).unsqueeze(1) >= ops.tensor(node.steps)  # [T, N]
    if node.zero_infinity:
        dead = dead | (loss == math.inf)
    return (gradient.masked_fill(dead.unsqueeze(2), 0),)


def _betas(emitted, follows, steps, lengths):
    """The backward recursion: log of the probability of all ways from a state at a step to the end, that step's emission included. [T, N, K]"""
    nowhere = ops.full_like(emitted[0], -math.inf)  # [N, K]
    ahead = pad(follows, (-2, 2), value=False) if follows.size(1) > 2 else follows  # whether the state two further on may follow
    ends = ops.tensor([[k in (2 * length, 2 * length - 1) for k in range(follows.size(1))] for length in lengths])
    last = ops.tensor(steps).unsqueeze(1) - 1  # [N, 1]
    now, betas = nowhere, []
    for t in range(emitted.size(0) - 1, -1, -1):
        after = [now, _shifted(now, -1), ops.where(ahead, _shifted(now, -2), nowhere)]
        now = ops.where((last == t) & ends, emitted[t], _logsumexp(after) + emitted[t])
        betas.append(now)
    return ops.stack(betas[::-1])


def _emitted(x, states):
    """Each state's log-probability at each step: [T, N, C] → [T, N, K]."""
    return x.gather(2, states.unsqueeze(0).expand(x.size(0), -1, -1))


def _shifted(x, by):
    """[.., K] moved right, −inf coming in."""
    return pad(x, (by, -by), value=-math.inf) if abs(by) < x.size(-1) else ops.full_like(x, -math.inf)


def _logsumexp(terms):
    """log Σ exp of tensors, added up in their order; −inf where all are."""
    top = terms[0]
    for term in terms[1:]:
        top = ops.maximum(top, term)
    top = ops.where(top == -math.inf, ops.zeros_like(top), top)
    total = (terms[0] - top).exp()
    for term in terms[1:]:
        total = total + (term - top).exp()
    return total.log() + top
