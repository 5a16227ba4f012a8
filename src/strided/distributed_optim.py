"""`torch.distributed.optim` for the group of one process: a sharded optimiser whose one shard is everything, and optimisers that step inside of a backward pass.

Update rules are optim/'s, collectives distributed.py's. Source: PyTorch's documentation of torch.distributed.optim.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import distributed as dist
from .optim import Optimizer
from .refused import missing as _missing


class ZeroRedundancyOptimizer(Optimizer):
    """An optimiser of `optimizer_class` over `params`, whose state is spread over the processes of the group: over one, which has all of it. `optim` is that optimiser.

    Its groups and its state are `optim`'s own. parameters_as_bucket_view changes where PyTorch keeps the parameters, not what comes out: it is accepted. Raises
    ValueError where no process group is there, NotImplementedError for overlap_with_ddp.
    """

    def __init__(self, params, optimizer_class: type, process_group: Any = None, parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any):
        self.process_group = dist._get_default_group() if process_group is None else process_group
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp=True steps inside of DistributedDataParallel's hooks, which one process has none of; leave it out")
        self.world_size, self.rank = dist.get_world_size(self.process_group), dist.get_rank(self.process_group)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self.optim = optimizer_class(params, **defaults)
        self._consolidated, self._made = False, False
        super().__init__(self.optim.param_groups, self.optim.defaults)
        self._made = True
        self.param_groups, self.state = self.optim.param_groups, self.optim.state

    def step(self, closure=None, **kwargs: Any):
        """One update; other arguments are the local optimiser's."""
        return self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)

    def add_param_group(self, param_group: dict) -> None:
        """Adds a group to the local optimiser, whose groups these are."""
        if self._made:
            self.optim.add_param_group(param_group)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gathers the state at process `to`, so that its `state_dict` may be asked for."""
        self._consolidated = self.rank == to

    def state_dict(self) -> dict:
        """The state of all processes. Raises RuntimeError before `consolidate_state_dict`."""
        if not self._consolidated:
            raise RuntimeError(
                f"Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global state."
            )
        return self.optim.state_dict()

    def load_state_dict(self, state_dict: dict) -> None:
        self.optim.load_state_dict(state_dict)
        self.param_groups, self.state = self.optim.param_groups, self.optim.state


def _apply_optimizer_in_backward(optimizer_class: type, params: Iterable[Any], optimizer_kwargs: dict[str, Any], register_hook: bool = True) -> None:
    """Gives each parameter an optimiser of its own, which steps as soon as the parameter's gradient is there and drops the gradient. register_hook=False: only notes it."""
    for p in params:
        if not hasattr(p, "_in_backward_optimizers"):
            p._in_backward_optimizers, p._optimizer_classes, p._optimizer_kwargs, p._steps_in_backward = [], [], [], False
        p._in_backward_optimizers.append(optimizer_class([p], **optimizer_kwargs))
        p._optimizer_classes.append(optimizer_class)
        p._optimizer_kwargs.append(optimizer_kwargs)
        if register_hook and not p._steps_in_backward:
            p._steps_in_backward = True
            p.register_post_accumulate_grad_hook(_step)


def _step(p: Any) -> None:
    for optimizer in p._in_backward_optimizers:
        optimizer.step()
    p.grad = None


def _get_in_backward_optimizers(module: Any) -> list[Optimizer]:
    """The optimisers that `_apply_optimizer_in_backward` gave to a module's parameters."""
    return [optimizer for p in module.parameters() for optimizer in getattr(p, "_in_backward_optimizers", ())]


__getattr__ = _missing("torch.distributed.optim")
