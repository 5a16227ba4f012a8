"""`torch.optim.adadelta`: PyTorch's place of Adadelta, which is in adaptive.py."""
from .adaptive import Adadelta

__all__ = ["Adadelta"]
