"""`torch.optim.radam`: PyTorch's place of RAdam, which is in adaptive.py."""
from .adaptive import RAdam

__all__ = ["RAdam"]
