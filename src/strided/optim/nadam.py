"""`torch.optim.nadam`: PyTorch's place of NAdam, which is in adaptive.py."""
from .adaptive import NAdam

__all__ = ["NAdam"]
