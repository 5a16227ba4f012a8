"""Averages of a model over training (SWA, EMA): the averaged model, its batch statistics, and the schedule that goes with it."""
import copy
import itertools
import math

from .. import ops
from ..autograd.modes import no_grad
from ..dtypes import int64
from ..nn.module import Module
from ..nn.modules.batchnorm import _BatchNorm
from ..ops.many import fused_update
from .lr_scheduler.base import LRScheduler

__all__ = ["SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn"]


def _check_decay(decay):
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _is_number(t):
    return t.is_floating_point() or t.is_complex()


@fused_update("averages_", 1, 2, 1)
def _near(average, value, share, past):
    """A share of the way from average to value, from the nearer end, as lerp goes."""
    return value - (value - average) * (1 - share) if past else average + share * (value - average)


def _moved(averages, values, share):
    """Moves each average of floats a share of the way to its value, all in one launch. Returns the pairs that are left: of other numbers, or of two kinds."""
    alike, rest = [], []
    for pair in zip(averages, values, strict=True):
        average, value = pair
        if average.is_floating_point() and average.dtype is value.dtype and average.shape == value.shape and average.device == value.device:
            alike.append(pair)
        elif _is_number(average):
            average.lerp_(value, share)
        else:
            rest.append(pair)
    if alike:
        _near(alike, share, past=share >= 0.5)
    return rest


def get_ema_multi_avg_fn(decay=0.999):
    """update(averages, values, count): each average moves by 1 − decay of the way to its value, in place."""
    _check_decay(decay)

    def ema_update(ema_param_list, current_param_list, _):
        with no_grad():
            for average, value in _moved(ema_param_list, current_param_list, 1 - decay):
                average.copy_(average * decay + value * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """update(averages, values, count): each average takes its value as number count + 1 of equal weight, in place."""

    def swa_update(averaged_param_list, current_param_list, num_averaged):
        with no_grad():
            share = 1.0 / (float(num_averaged) + 1)
            for average, value in _moved(averaged_param_list, current_param_list, share):
                average.add_(value - average, alpha=share)

    return swa_update


def get_ema_avg_fn(decay=0.999):
    """average(old, value, count) of one tensor, with decaying weights."""
    _check_decay(decay)

    def ema_update(ema_param, current_param, num_averaged):
        with no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """average(old, value, count) of one tensor, with equal weights."""

    def swa_update(averaged_param, current_param, num_averaged):
        with no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model (`.module`) whose parameters are averages of that model's at each `update_parameters`: equal weights, unless a function is given.

    Buffers are averaged too with `use_buffers`, else taken over as they are.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", ops.tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _members(self, model):
        return [t.detach() for t in itertools.chain(model.parameters(), model.buffers() if self.use_buffers else ())]

    def update_parameters(self, model):
        """Takes the model's present parameters into the averages; the first time, they are the averages."""
        own, values = self._members(self.module), self._members(model)
        with no_grad():
            if self.n_averaged == 0:
                for average, value in zip(own, values):
                    average.copy_(value)
            elif self.avg_fn is not None:
                for average, value in zip(own, values):
                    average.copy_(self.avg_fn(average, value, self.n_averaged))
            else:
                update = self.multi_avg_fn or get_swa_multi_avg_fn()
                for dtype in dict.fromkeys(t.dtype for t in own):  # a list holds one dtype, as the functions expect
                    chosen = [(a, v) for a, v in zip(own, values) if a.dtype == dtype]
                    update([a for a, _ in chosen], [v for _, v in chosen], self.n_averaged)
            if not self.use_buffers:
                for kept, value in zip(self.module.buffers(), model.buffers(), strict=True):
                    kept.detach().copy_(value.detach())
            self.n_averaged += 1


def update_bn(loader, model, device=None):
    """Computes the running statistics of all batch norms anew, as plain averages over the loader's batches (a batch's first element, if it is a list)."""
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    momenta = [module.momentum for module in norms]
    for module in norms:
        module.reset_running_stats()
        module.momentum = None
    was_training = model.training
    model.train()
    with no_grad():
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    for module, momentum in zip(norms, momenta):
        module.momentum = momentum
    model.train(was_training)


def _cosine(t):
    return (1 - math.cos(math.pi * t)) / 2


def _straight(t):
    return t


class SWALR(LRScheduler):
    """Moves each group's rate to `swa_lr` over `anneal_epochs` steps, along a cosine or a line, and keeps it there."""

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(optimizer.param_groups)
        if len(rates) != len(optimizer.param_groups):
            raise ValueError(f"swa_lr must have the same length as optimizer.param_groups. swa_lr has {len(rates)} values, param_groups has {len(optimizer.param_groups)}.")
        for group, rate in zip(optimizer.param_groups, rates):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _set_anneal_func(self, anneal_strategy):
        self._anneal_strategy = anneal_strategy
        self.anneal_func = _cosine if anneal_strategy == "cos" else _straight

    def get_lr(self):
        """The next rates: where the last ones came from follows from how far along they were."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        length = max(1, self.anneal_epochs)
        before, now = (self.anneal_func(max(0, min(1, s / length))) for s in (step - 1, step))
        rates = []
        for group in self.optimizer.param_groups:
            start = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            rates.append(group["swa_lr"] * now + start * (1 - now))
        return rates

    def state_dict(self):
        """Everything but the optimiser and the function."""
        return {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "anneal_func")}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)
        self._set_anneal_func(self._anneal_strategy)
