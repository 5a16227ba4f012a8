"""`torch.optim.rprop`: PyTorch's place of Rprop, which is in signs.py."""
from .signs import Rprop

__all__ = ["Rprop"]
