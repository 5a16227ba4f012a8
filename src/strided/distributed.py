"""`torch.distributed` as scripts probe it: not available. What would need other processes raises with the way out."""
import enum

from .refused import missing as _missing


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    return False


def get_rank(group=None) -> int:
    """Refused without a process group, as PyTorch does."""
    raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")


get_world_size = get_rank


def is_nccl_available() -> bool:
    return False


is_gloo_available = is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


class ReduceOp(enum.Enum):
    """How PyTorch's processes join their tensors: a name in arguments, since nothing is joined here."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class _OfProcesses:
    """A class without instances, which annotations and isinstance name."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(f"torch.distributed.{type(self).__name__}: not available, strided runs in one process; start the script without torchrun (no RANK in the environment)")


class ProcessGroup(_OfProcesses):
    """PyTorch's class of groups of processes."""


class DTensor(_OfProcesses):
    """PyTorch's class of tensors that are spread over processes."""


class DeviceMesh(_OfProcesses):
    """PyTorch's class of grids of devices."""


class group:
    """The default group: none."""

    WORLD = None


GroupMember = group


def _refused(name: str):
    def call(*args, **kwargs):
        raise NotImplementedError(f"torch.distributed.{name}: not available, strided runs in one process; start the script without torchrun (no RANK in the environment)")

    call.__name__ = name
    call.is_refusal = True  # type: ignore[attr-defined]
    call.__doc__ = "Refused: this package runs in one process."
    return call


_NAMES = """init_process_group destroy_process_group new_group barrier monitored_barrier all_reduce all_gather all_gather_object all_gather_into_tensor all_to_all
all_to_all_single broadcast broadcast_object_list reduce scatter gather gather_object send recv isend irecv batch_isend_irecv reduce_scatter reduce_scatter_tensor
get_backend get_process_group_ranks get_global_rank init_device_mesh distribute_tensor distribute_module"""
globals().update({name: _refused(name) for name in _NAMES.split()})

__getattr__ = _missing("torch.distributed")
