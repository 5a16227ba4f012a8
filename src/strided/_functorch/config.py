"""Settings of PyTorch's ahead-of-time gradients with PyTorch's defaults. They are kept and change nothing: compile/ records gradients as they run."""
import sys

from .._inductor.config import _Settings

enable_autograd_cache = donated_buffer = True
functionalize_rng_ops = debug_partitioner = recompute_views = False
activation_memory_budget = 1.0

sys.modules[__name__].__class__ = _Settings
