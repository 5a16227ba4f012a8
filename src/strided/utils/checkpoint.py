"""`utils.checkpoint`: activation checkpointing, from autograd/checkpoint.py."""
from ..autograd.checkpoint import *  # noqa: F403
from ..autograd.checkpoint import checkpoint, checkpoint_sequential

__all__ = ["checkpoint", "checkpoint_sequential"]
