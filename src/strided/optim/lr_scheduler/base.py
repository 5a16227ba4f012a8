"""The base of all schedules, and what they share."""
import types
import warnings
import weakref

from ..optimizer import Optimizer


class LRScheduler:
    """Base of the schedules: `get_lr` gives every group's next rate, `step()` sets it."""

    def __init__(self, optimizer, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", _number(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0.\n"
                        "This typically happens when:\n"
                        "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
                        "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                    )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.optimizer = optimizer
        self.last_epoch = last_epoch
        _count_steps(optimizer)
        self._step_count = 0
        self._is_initial = True
        self._get_lr_called_within_step = False
        self.step()
        self._is_initial = False

    def _groups(self):
        return self.optimizer.param_groups

    def _rates(self):
        return [group["lr"] for group in self._groups()]

    def state_dict(self):
        """Everything but the optimiser."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The rates set last, one a group."""
        return self._last_lr

    def get_lr(self):
        """The next rates, one a group."""
        raise NotImplementedError

    def step(self, epoch=None):
        """Sets the next rate (or, deprecated, that of `epoch`)."""
        if self._step_count == 1 and not self._is_initial and not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
                "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
                "PyTorch skipping the first value of the learning rate schedule. See more details at "
                "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = self._closed_form() if hasattr(self, "_get_closed_form_lr") else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _closed_form(self):
        return self._get_closed_form_lr()

    def _set(self, rates):
        for group, rate in zip(self._groups(), rates):
            assign(group, rate)
        self._last_lr = self._rates()


def _number(lr):
    return lr.clone() if hasattr(lr, "clone") else lr


def assign(group, rate):
    """A learning rate held in a tensor stays that tensor."""
    if hasattr(group["lr"], "fill_"):
        group["lr"].fill_(rate)
    else:
        group["lr"] = rate


def _count_steps(optimizer):
    """Lets the schedule know whether the optimiser has stepped (for the warning about the order of calls)."""
    if getattr(optimizer.step, "_counted", False):
        return
    step, owner = type(optimizer).step, weakref.ref(optimizer)

    def counted(self, *args, **kwargs):
        optimizer = owner()
        optimizer._opt_called = True
        return step(self, *args, **kwargs)

    counted._counted = True
    optimizer.step = types.MethodType(counted, optimizer)


def per_group(name, optimizer, value):
    if not isinstance(value, (list, tuple)):
        return [value] * len(optimizer.param_groups)
    if len(value) != len(optimizer.param_groups):
        raise ValueError(f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups has {len(optimizer.param_groups)}.")  # fmt: skip
    return list(value)
