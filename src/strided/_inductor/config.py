"""Settings of PyTorch's code generator with PyTorch's defaults. They are kept and change nothing: kernels here are made by another generator, which has none.

Holds the names that public code sets; a misspelt one is refused, as in PyTorch.
"""
import sys
from types import ModuleType, SimpleNamespace


class _Settings(ModuleType):
    """The module itself: names can be changed, not added."""

    def __setattr__(self, name, value):
        if name not in self.__dict__ and not name.startswith("__"):
            raise AttributeError(f"{self.__name__.replace('strided', 'torch', 1)}.{name} does not exist")
        super().__setattr__(name, value)


class _Group(SimpleNamespace):
    def __setattr__(self, name, value):
        if name not in self.__dict__:
            raise AttributeError(f"torch._inductor.config: there is no setting {name!r} in this group")
        super().__setattr__(name, value)


coordinate_descent_tuning = coordinate_descent_check_all_directions = False
fx_graph_cache = True
force_disable_caches = False
max_autotune = max_autotune_gemm = max_autotune_pointwise = False
epilogue_fusion = shape_padding = pattern_matcher = layout_optimization = split_reductions = reorder_for_locality = True
conv_1x1_as_mm = force_fuse_int_mm_with_mul = permute_fusion = freezing = cpp_wrapper = debug = benchmark_kernel = False
use_mixed_mm = dynamic_scale_rblock = True
triton = _Group(unique_kernel_names=True, cudagraphs=False, cudagraph_trees=True, autotune_pointwise=True, multi_kernel=0)
cpp = _Group(threads=-1, simdlen=None, min_chunk_size=512)

sys.modules[__name__].__class__ = _Settings
