"""`torch.optim.rmsprop`: PyTorch's place of RMSprop, which is in adaptive.py."""
from .adaptive import RMSprop

__all__ = ["RMSprop"]
