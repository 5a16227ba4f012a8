"""PyTorch's tensors, autograd and number formats in plain Python, on kernels that Python compiles as they are first needed.

    import strided as torch

The tensor core is loaded at once; rooms above it (nn, optim, utils, …) when they are first named.
"""
import importlib as _importlib

from . import refused as _refused
from .torch_version import TorchVersion as _TorchVersion

__version__ = _TorchVersion("2.13.0+strided.0.1.0")  # the PyTorch whose behaviour is matched, then this package's own version

# Rooms above the operators, loaded when first named: `strided.nn`, `strided.optim`, …
_ROOMS = frozenset((
    "nn optim utils data io amp compiler cuda mps backends random version lens torch_alias array_api linalg special fft signal distributed accelerator xpu testing storage cpu symbolic "
    "func library _utils distributions multiprocessing _inductor _dynamo _functorch jit hub fx onnx _C overrides profiler ao types constraints _higher_order_ops functional futures __config__ "
    "_lowrank streams torch_version"
).split())


# Single names of those rooms that stand at the top level too.
_FROM_ROOMS = {
    "vmap": "func", "Tag": "library", "save": "io", "load": "io", "serialization": "io", "TypedStorage": "tensor", "Future": "futures",
    "PyTorchFileReader": "_C",
    "UntypedStorage": "tensor", "OutOfMemoryError": "cuda", "return_types": "ops",
}  # fmt: skip
_FROM_ROOMS.update(dict.fromkeys("mxfp4 mxfp6_e2m3 mxfp6_e3m2 mxfp8_e4m3 mxfp8_e5m2 mxint8 nvfp4 grouped_int".split(), "block_formats"))
_FROM_ROOMS.update(dict.fromkeys("sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc legacy_contiguous_format".split(), "formats"))
_FROM_ROOMS.update(dict.fromkeys("SymInt SymFloat SymBool sym_int sym_float sym_max sym_min sym_not sym_ite sym_sum sym_sqrt".split(), "symbolic"))
_FROM_ROOMS.update(svd_lowrank="_lowrank", pca_lowrank="_lowrank", Stream="streams", Event="streams")
_FROM_ROOMS.update(as_blocks="ops.blocks.convert", BlockTensor="block_tensor")
_FROM_ROOMS.update(dict.fromkeys(
    """autocast is_autocast_enabled set_autocast_enabled get_autocast_dtype set_autocast_dtype is_autocast_cache_enabled set_autocast_cache_enabled
    clear_autocast_cache get_autocast_gpu_dtype get_autocast_cpu_dtype set_autocast_cpu_dtype is_autocast_cpu_enabled set_autocast_cpu_enabled
    GradScaler""".split(), "amp"))  # fmt: skip
_FROM_ROOMS.update(dict.fromkeys(
    """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d avg_pool1d
    adaptive_avg_pool1d adaptive_max_pool1d dropout alpha_dropout pairwise_distance pdist bilinear
    celu celu_ selu selu_ rrelu rrelu_ threshold threshold_ hardshrink pixel_shuffle pixel_unshuffle channel_shuffle""".split(), "nn.functional"))  # fmt: skip
_FROM_ROOMS.update(dict.fromkeys(
    """batch_norm native_batch_norm group_norm native_group_norm instance_norm grid_sampler grid_sampler_2d grid_sampler_3d affine_grid_generator
    embedding_bag dropout_ alpha_dropout_ feature_dropout feature_dropout_ feature_alpha_dropout feature_alpha_dropout_ native_dropout
    binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div margin_ranking_loss poisson_nll_loss
    triplet_margin_loss""".split(), "nn.functions.toplevel"))  # fmt: skip


def __getattr__(name: str):
    if name.startswith("_foreach_"):
        return getattr(_importlib.import_module(".foreach", __name__), name)
    if name == "torch":  # as PyTorch's package has itself
        return _importlib.import_module(__name__)
    if name in _ROOMS:
        return _importlib.import_module("." + name, __name__)
    if name in _FROM_ROOMS:
        room = _importlib.import_module("." + _FROM_ROOMS[name], __name__)
        if hasattr(room, name):
            return globals().setdefault(name, getattr(room, name))
    raise _refused.absent(f"torch.{name}")


def __dir__():
    return sorted({*globals(), *_ROOMS, *_FROM_ROOMS})


# Last: names such as `tensor` and `compile` are both a module of this package and a public function; the function wins.
globals().update(_importlib.import_module(".namespace", __name__).NAMES)
_refused.guard(globals()["Tensor"])
