"""What `vmap` maps a function over: tensors of a batch that operators see as one sample.

A `Batched` (samples.py) holds a tensor with one dimension more, in front. It answers calls through `__torch_function__`: pointwise operators, reductions, views and
products have rules, a file a family, which call the operator once for the whole batch; all others run sample by sample. Gradients need no rules: the graph is that
of the tensors inside. Which function is mapped, and how, is func.py's.
"""
from . import dimensions, pointwise, products, views
from .samples import ERROR_MODE, Batched, Map, OfSample, as_sample_of, batched, in_every_map, in_map, inside, like, maps_beyond, one_by_one

__all__ = ["ERROR_MODE", "Batched", "Map", "OfSample", "as_sample_of", "batched", "in_every_map", "in_map", "inside", "like", "maps_beyond", "one_by_one"]
