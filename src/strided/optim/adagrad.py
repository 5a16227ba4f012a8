"""`torch.optim.adagrad`: PyTorch's place of Adagrad, which is in adaptive.py."""
from .adaptive import Adagrad

__all__ = ["Adagrad"]
