"""`torch.distributed` for a group of one process: what training scripts call runs as with PyTorch's gloo backend and a world of size 1.

A collective over one process is a copy, or nothing. A group of several is refused when it is asked for: this package computes on one machine's cores, with
threads. Source: PyTorch's documentation of torch.distributed; sentences of errors as its gloo backend has them.
"""
from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from .autograd import no_grad
from .futures import Future
from .refused import missing as _missing
from .tensor import Tensor

_ALONE = "strided runs in one process"


# ---- what is there ----------------------------------------------------------------------------------------------------------------


def is_available() -> bool:
    """True: a group of one process can be made."""
    return True


def is_initialized() -> bool:
    """Whether `init_process_group` was called, and the group not destroyed since."""
    return group.WORLD is not None


def is_gloo_available() -> bool:
    return True


def is_nccl_available() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


class ReduceOp:
    """How processes join their tensors: names for arguments."""

    class RedOpType:
        def __init__(self, name: str):
            self.name = name

        def __repr__(self) -> str:
            return f"<RedOpType.{self.name}>"

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = map(RedOpType, "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split())


class Backend(str):
    """The names of PyTorch's backends."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]


class ProcessGroup:
    """A group of processes: this one alone. Made by `init_process_group` and `new_group`."""

    def __init__(self, *args: Any, backend: str | None = None):
        if backend is None:
            raise NotImplementedError(f"torch.distributed.{type(self).__name__}: not available, {_ALONE}; groups come from init_process_group and new_group")
        self._backend = backend

    def rank(self) -> int:
        return 0

    def size(self) -> int:
        return 1

    def name(self) -> str:
        return self._backend


class group:
    """`group.WORLD`: the default group, or None before `init_process_group`."""

    WORLD: ProcessGroup | None = None


GroupMember = group


class Work:
    """A collective that was called with async_op=True: it is done already."""

    def __init__(self, result: Any = None):
        self._result = result

    def wait(self, timeout: Any = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    is_success = is_completed

    def get_future(self) -> Future:
        """The result as a future that is done."""
        future: Future = Future()
        future.set_result(self._result)
        return future

    def result(self) -> Any:
        return self._result


# ---- the group -----------------------------------------------------------------------------------------------------------------------


def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: Any = None, world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None,
    device_id: Any = None,
) -> None:  # fmt: skip
    """Makes the default group, of this process alone. Rank and size come from the arguments or, with init_method "env://" (the default), from RANK and WORLD_SIZE.

    Raises ValueError where they are missing or a group is there already, RuntimeError for backends of accelerators, NotImplementedError for more than one process.
    """
    if group.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    name = "undefined" if backend is None else backend.lower()
    parts = {part.rpartition(":")[2] for part in name.split(",")}  # "cpu:gloo,cuda:nccl" names one a device
    if not parts & {"gloo", "undefined"}:
        known = parts <= set(Backend.backend_list)
        what = f"doesn't have {name.upper()} built in" if known else f"has no backend {backend!r}"
        raise RuntimeError(f"Distributed package {what}\n  Computing is on the CPU here: init_process_group('gloo').")
    if store is None and (init_method is None or init_method.startswith("env://")):
        rank = _from_environment("RANK", rank)
        world_size = _from_environment("WORLD_SIZE", world_size)
    elif store is None and init_method is not None and not init_method.startswith(("tcp://", "file://")):
        raise RuntimeError(f"No rendezvous handler for {init_method.partition('://')[0]}://")
    if world_size < 1 or rank < 0:
        raise ValueError(f"Error initializing torch.distributed: rank and world_size are needed, got rank {rank} and world_size {world_size}")
    if world_size > 1 or rank:
        raise NotImplementedError(
            f"torch.distributed.init_process_group: a group of {world_size} processes (rank {rank}) is not available, {_ALONE}\n"
            "  Start the script without torchrun, or with --nproc_per_node=1: threads use all cores (torch.set_num_threads)."
        )
    group.WORLD = ProcessGroup(backend=name)


def _from_environment(name: str, given: int) -> int:
    if given >= 0:
        return given
    if name not in os.environ:
        raise ValueError(f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, but not set")
    return int(os.environ[name])


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Ends a group (None: the default one)."""
    world = GroupMember.WORLD
    if world is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is world:
        GroupMember.WORLD = None


def _get_default_group() -> ProcessGroup:
    if group.WORLD is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return group.WORLD


def _check_root(root: int | None, what: str) -> None:
    """Raises ValueError without a group, RuntimeError unless the process that gives or takes is the only one, 0."""
    _get_default_group()
    if root:
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {root}")


def get_rank(group: ProcessGroup | None = None) -> int:
    """0, once there is a group; ValueError before."""
    _get_default_group()
    return 0


def get_world_size(group: ProcessGroup | None = None) -> int:
    """1, once there is a group; ValueError before."""
    _get_default_group()
    return 1


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """LOCAL_RANK of the environment. Raises RuntimeError where it is not set and there is no `fallback_rank`."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, assuming you are not running in a multi-device context")
    return int(fallback_rank)


def get_backend(group: ProcessGroup | None = None) -> str:
    """The name of a group's backend, "gloo"."""
    return (group or _get_default_group()).name()


def new_group(ranks: Sequence[int] | None = None, timeout: Any = None, backend: str | None = None, pg_options: Any = None, **options: Any) -> ProcessGroup:
    """Another group of some of the processes: of this one."""
    world = _get_default_group()
    if ranks is not None and len(ranks) > 1:
        raise ValueError("the new group's world size should be less or equal to the world size set by init_process_group")
    return ProcessGroup(backend=backend or world.name())


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The processes of a group: [0]."""
    _get_default_group()
    return [0]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank in the default group of a group's process."""
    return _only(group_rank)


get_group_rank = get_global_rank


def _only(rank: int) -> int:
    _get_default_group()
    if rank:
        raise ValueError(f"Global rank {rank} is not part of group")
    return 0


# ---- collectives -----------------------------------------------------------------------------------------------------------------------


def _done(async_op: bool, result: Any = None) -> Work | None:
    return Work(result) if async_op else None


def _need(value: Any, argument: str, several: bool = False) -> Any:
    values = value if several else [value]
    if several and not isinstance(value, (list, tuple)) or not all(isinstance(t, Tensor) for t in values):
        raise TypeError(f"Invalid function argument. Expected parameter `{argument}` of type {'List[torch.Tensor]' if several else 'torch.Tensor'}\n             but got {type(value)} instead.")
    return value


def _one(values: Any, argument: str, what: str) -> Tensor:
    """The only tensor of a list that has one for each process."""
    if len(_need(values, argument, several=True)) != 1:
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid {argument} at index 0 (expected length 1, got {len(values)})")
    return values[0]


def _copy(into: Tensor, source: Tensor, what: str) -> None:
    if into.shape != source.shape:
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid tensor size at index 0 (expected ({', '.join(map(str, source.shape))}), got ({', '.join(map(str, into.shape))}))")
    if into.dtype is not source.dtype:
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid tensor type at index 0 (expected {source.type()}, got {into.type()})")
    with no_grad():
        into.copy_(source)  # type: ignore[attr-defined]


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensor joined over all processes, in place: of one process it stays as it is."""
    _get_default_group()
    return _done(async_op, [_need(tensor, "tensor")])


def reduce(tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """The tensor joined over all processes, in place at `dst`."""
    _check_root(dst or group_dst, "reduce")
    return _done(async_op, [_need(tensor, "tensor")])


def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None) -> Work | None:
    """The tensor of the process `src`, in place: its own."""
    _check_root(src or group_src, "broadcast")
    return _done(async_op, [_need(tensor, "tensor")])


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all processes, into a list of one for each."""
    _get_default_group()
    _need(tensor, "tensor")
    if len(_need(tensor_list, "tensor_list", several=True)) != 1:
        raise RuntimeError(f"ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length 1, got {len(tensor_list)})")
    _copy(tensor_list[0], tensor, "allgather")
    return _done(async_op, tensor_list)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of all processes, joined in one."""
    _get_default_group()
    _copy(_need(output_tensor, "output_tensor"), _need(input_tensor, "input_tensor"), "allgather")
    return _done(async_op, output_tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """This process's part of the tensors joined over all processes."""
    _get_default_group()
    _copy(_need(output, "output"), _one(input_list, "input_list", "reduce_scatter"), "reduce_scatter")
    return _done(async_op, output)


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """This process's part of one tensor joined over all processes."""
    _get_default_group()
    _copy(_need(output, "output"), _need(input, "input"), "reduce_scatter")
    return _done(async_op, output)


def gather(tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None, group: Any = None, async_op: bool = False, group_dst: int | None = None) -> Work | None:
    """The tensors of all processes, into a list at `dst`."""
    _check_root(dst or group_dst, "gather")
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    _copy(_one(gather_list, "gather_list", "gather"), _need(tensor, "tensor"), "gather")
    return _done(async_op, gather_list)


def scatter(tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None) -> Work | None:
    """Each process's part of a list at `src`."""
    _check_root(src or group_src, "scatter")
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _copy(_need(tensor, "tensor"), _one(scatter_list, "scatter_list", "scatter"), "scatter")
    return _done(async_op, tensor)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None, async_op: bool = False) -> Work | None:
    """A tensor from each process for one to each."""
    _get_default_group()
    _copy(_one(output_tensor_list, "output_tensor_list", "alltoall"), _one(input_tensor_list, "input_tensor_list", "alltoall"), "alltoall")
    return _done(async_op, output_tensor_list)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Any = None, input_split_sizes: Any = None, group: Any = None, async_op: bool = False) -> Work | None:
    """A part from each process for one to each, of one tensor."""
    _get_default_group()
    _copy(_need(output, "output"), _need(input, "input"), "alltoall")
    return _done(async_op, output)


def all_gather_object(object_list: list, obj: Any, group: Any = None) -> None:
    """The objects of all processes, into a list of one for each."""
    _get_default_group()
    object_list[0] = obj


def gather_object(obj: Any, object_gather_list: list | None = None, dst: int | None = None, group: Any = None, group_dst: int | None = None) -> None:
    """The objects of all processes, into a list at `dst`."""
    _check_root(dst or group_dst, "gather")
    if not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    object_gather_list[0] = obj


def broadcast_object_list(object_list: list, src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None) -> None:
    """The objects of the process `src`, in place: its own."""
    _check_root(src or group_src, "broadcast")


def scatter_object_list(scatter_object_output_list: list, scatter_object_input_list: list | None = None, src: int | None = None, group: Any = None, group_src: int | None = None) -> None:
    """Each process's object of a list at `src`, into the first place of the output list."""
    _check_root(src or group_src, "scatter")
    if not scatter_object_input_list:
        raise ValueError("source rank must provide non-empty scatter_object_input_list")
    scatter_object_output_list[0] = scatter_object_input_list[0]


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Waits for all processes: there is no other."""
    _get_default_group()
    return _done(async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Waits for all processes: there is no other."""
    _get_default_group()


def _no_partner(name: str, peer: str) -> Any:
    def call(tensor: Any, rank: int | None = None, group: Any = None, tag: int = 0, **ranks: Any) -> Any:
        _get_default_group()
        rank = next((value for value in ranks.values() if value is not None), rank)
        raise ValueError(f"Invalid {peer} rank: {peer} rank should not be the same as the rank of the current process.\n  {name}: rank {rank}; the group has this process only.")

    call.__name__ = name
    call.__doc__ = "Refused: the group has no other process."
    return call


send, isend = _no_partner("send", "destination"), _no_partner("isend", "destination")
recv, irecv = _no_partner("recv", "source"), _no_partner("irecv", "source")


class P2POp:
    """A transfer for `batch_isend_irecv`: op is `isend` or `irecv`, peer the other process's rank. Raises ValueError for any other op."""

    def __init__(self, op: Any, tensor: Tensor, peer: int | None = None, group: ProcessGroup | None = None, tag: int = 0, group_peer: int | None = None):
        if op not in (isend, irecv):
            raise ValueError("Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``.")
        if not isinstance(tensor, Tensor):
            raise TypeError(f"Invalid function argument. Expected parameter `tensor` of type torch.Tensor\n             but got {type(tensor)} instead.")
        if (peer is None) == (group_peer is None):
            raise ValueError("Can't specify both group_peer and peer" if peer is not None else "Must specify peer or group_peer")
        self.op, self.tensor, self.group, self.tag = op, tensor, group or _get_default_group(), tag
        self.peer = self.group_peer = peer if peer is not None else group_peer

    def __repr__(self) -> str:
        return f"P2POp({self.op.__name__} pg={self.group.name()}, group_src=0, group_dst={self.group_peer},  {self.tensor.shape}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Starts transfers: with the one process of the group there is nobody to send to, so that any raises ValueError; of none, nothing is left to wait for."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``.")
    return [op.op(op.tensor, op.peer, op.group, op.tag) for op in p2p_op_list]


# ---- what several processes would need -----------------------------------------------------------------------------------------------------


class _OfProcesses:
    """A class without instances, which annotations and isinstance name."""

    def __init__(self, *args: Any, **kwargs: Any):
        raise NotImplementedError(f"torch.distributed.{type(self).__name__}: not available, {_ALONE}; use ordinary tensors and the module itself")


class DTensor(_OfProcesses):
    """PyTorch's class of tensors that are spread over processes."""


class DeviceMesh(_OfProcesses):
    """PyTorch's class of grids of devices."""


def _refused(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.distributed.{name}: not available, {_ALONE}; use ordinary tensors and the module itself")

    call.__name__ = name
    call.is_refusal = True  # type: ignore[attr-defined]
    call.__doc__ = "Refused: this package runs in one process."
    return call


globals().update({name: _refused(name) for name in "init_device_mesh distribute_tensor distribute_module".split()})

default_pg_timeout, default_pg_nccl_timeout = timedelta(minutes=30), timedelta(minutes=10)  # nobody is waited for


class Join:
    """`with Join([model]):` lets processes that run out of data first wait for the others: alone, there is nobody to wait for."""

    def __init__(self, joinables: list, enable: bool = True, throw_on_early_termination: bool = False, **options: Any):
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None


@contextmanager
def implicit_replication() -> Iterator[None]:
    """Ordinary tensors beside distributed ones count as copies that all processes have: alone, all are."""
    yield


device_mesh = distributed_c10d = constants = sys.modules[__name__]  # PyTorch's files of these names, which are there once this is


def __getattr__(name: str) -> Any:
    if name in ("nn", "optim"):
        return importlib.import_module(f".distributed_{name}", __package__)
    return _missing("torch.distributed")(name)
