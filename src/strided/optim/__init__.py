"""`optim`: optimisers and learning-rate schedules."""
from ..refused import missing as _missing
from . import lr_scheduler, optimizer
from .adam import Adam, AdamW
from .adaptive import Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop
from .lbfgs import LBFGS
from .matrix import Adafactor, Muon
from .optimizer import Optimizer
from .sgd import SGD
from .signs import ASGD, Rprop

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "optimizer",
    "swa_utils",
]

_absent = _missing("torch.optim")


def __getattr__(name):
    if name == "swa_utils":  # loaded when first named
        import importlib

        return importlib.import_module(".swa_utils", __name__)
    return _absent(name)


def __dir__():
    return sorted({*globals(), "swa_utils"})
