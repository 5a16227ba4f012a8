"""`torch.optim.asgd`: PyTorch's place of ASGD, which is in signs.py."""
from .signs import ASGD

__all__ = ["ASGD"]
