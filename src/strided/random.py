"""`torch.random`: the generator's state, from ops/random.py."""
from .ops.random import *  # noqa: F403
