"""`torch.optim.adamw`: PyTorch's place of AdamW, which is in adam.py."""
from .adam import AdamW

__all__ = ["AdamW"]
