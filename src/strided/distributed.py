"""`torch.distributed` as scripts probe it: not available. What would need other processes raises with the way out."""
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


def _refused(name: str):
    def call(*args, **kwargs):
        raise NotImplementedError(f"torch.distributed.{name}: not available, strided runs in one process; start the script without torchrun (no RANK in the environment)")

    call.__name__ = name
    call.is_refusal = True  # type: ignore[attr-defined]
    call.__doc__ = "Refused: this package runs in one process."
    return call


_NAMES = "init_process_group destroy_process_group new_group barrier all_reduce all_gather all_gather_object broadcast broadcast_object_list reduce scatter gather send recv reduce_scatter"
globals().update({name: _refused(name) for name in _NAMES.split()})

__getattr__ = _missing("torch.distributed")
