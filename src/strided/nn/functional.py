"""`nn.functional`: PyTorch's stateless functions. The public face: row operators, products and lookups from ops/, the rest from functions/,
a file a family, each loaded when one of its names is first used.
"""
from ..ops import (
    celu,
    cross_entropy,
    elu,
    embedding,
    gelu,
    hardshrink,
    hardsigmoid,
    hardswish,
    layer_norm,
    leaky_relu,
    linear,
    logsigmoid,
    mish,
    nll_loss,
    one_hot,
    prelu,
    relu6,
    rms_norm,
    scaled_dot_product_attention,
    selu,
    silu,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from .lazy import lazy_names

FAMILIES = {
    "activation": (
        "celu_ elu_ glu gumbel_softmax hardtanh hardtanh_ leaky_relu_ log_softmax relu relu_ rrelu rrelu_ "
        "selu_ sigmoid softmax softmin tanh threshold_"
    ),
    "attention": "multi_head_attention_forward",
    "bilinear": "bilinear",
    "conv": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d fold unfold",
    "ctc": "ctc_loss",
    "distance": "cosine_similarity normalize pairwise_distance pdist",
    "dropout": "alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout",
    "embedding_bag": "embedding_bag",
    "fractional_pool": "fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices",
    "grouped": "grouped_mm",
    "loss": (
        "binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss gaussian_nll_loss "
        "hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss "
        "linear_cross_entropy multilabel_margin_loss multilabel_soft_margin_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss "
        "triplet_margin_with_distance_loss"
    ),
    "normalization": "batch_norm group_norm instance_norm local_response_norm",
    "padding": "pad",
    "pooling": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
        "adaptive_max_pool3d adaptive_max_pool1d_with_indices adaptive_max_pool2d_with_indices "
        "adaptive_max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d max_pool1d max_pool2d "
        "max_pool3d max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d lp_pool3d"
    ),
    "vision": (
        "affine_grid channel_shuffle native_channel_shuffle grid_sample interpolate pixel_shuffle pixel_unshuffle upsample "
        "upsample_bilinear upsample_nearest"
    ),
}

__getattr__, __dir__, _names = lazy_names(f"{__package__}.functions", globals(), FAMILIES)
__all__ = [
    "celu",
    "cross_entropy",
    "elu",
    "embedding",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "layer_norm",
    "leaky_relu",
    "linear",
    "logsigmoid",
    "mish",
    "nll_loss",
    "one_hot",
    "prelu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanhshrink",
    "threshold",
]
__all__.extend(_names)
