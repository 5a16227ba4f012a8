"""`utils`: the names PyTorch keeps here. Data loading lives in data/, checkpointing in autograd/."""
import importlib as _importlib

from ..refused import absent as _absent

_ROOMS = ("benchmark", "checkpoint", "data", "dlpack", "flop_counter", "hooks", "tensorboard")


def __getattr__(name):
    if name in _ROOMS:
        return _importlib.import_module("." + name, __name__)
    raise _absent(f"torch.utils.{name}")
