"""`torch.optim.adamax`: PyTorch's place of Adamax, which is in adaptive.py."""
from .adaptive import Adamax

__all__ = ["Adamax"]
