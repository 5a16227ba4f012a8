"""Functions on tensors, as torch.nn.functional has them. Written by tools/stubs.py."""
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator
from typing import Any, overload

from strided.nn.functions.activation import celu_ as celu_
from strided.nn.functions.activation import elu_ as elu_
from strided.nn.functions.activation import glu as glu
from strided.nn.functions.activation import gumbel_softmax as gumbel_softmax
from strided.nn.functions.activation import hardtanh as hardtanh
from strided.nn.functions.activation import hardtanh_ as hardtanh_
from strided.nn.functions.activation import leaky_relu_ as leaky_relu_
from strided.nn.functions.activation import log_softmax as log_softmax
from strided.nn.functions.activation import relu as relu
from strided.nn.functions.activation import relu_ as relu_
from strided.nn.functions.activation import rrelu as rrelu
from strided.nn.functions.activation import rrelu_ as rrelu_
from strided.nn.functions.activation import selu_ as selu_
from strided.nn.functions.activation import sigmoid as sigmoid
from strided.nn.functions.activation import softmax as softmax
from strided.nn.functions.activation import softmin as softmin
from strided.nn.functions.activation import tanh as tanh
from strided.nn.functions.activation import threshold_ as threshold_
from strided.nn.functions.attention import multi_head_attention_forward as multi_head_attention_forward
from strided.nn.functions.bilinear import bilinear as bilinear
from strided.nn.functions.conv import conv1d as conv1d
from strided.nn.functions.conv import conv2d as conv2d
from strided.nn.functions.conv import conv3d as conv3d
from strided.nn.functions.conv import conv_tbc as conv_tbc
from strided.nn.functions.conv import conv_transpose1d as conv_transpose1d
from strided.nn.functions.conv import conv_transpose2d as conv_transpose2d
from strided.nn.functions.conv import conv_transpose3d as conv_transpose3d
from strided.nn.functions.conv import fold as fold
from strided.nn.functions.conv import unfold as unfold
from strided.nn.functions.ctc import ctc_loss as ctc_loss
from strided.nn.functions.distance import cosine_similarity as cosine_similarity
from strided.nn.functions.distance import normalize as normalize
from strided.nn.functions.distance import pairwise_distance as pairwise_distance
from strided.nn.functions.distance import pdist as pdist
from strided.nn.functions.dropout import alpha_dropout as alpha_dropout
from strided.nn.functions.dropout import dropout as dropout
from strided.nn.functions.dropout import dropout1d as dropout1d
from strided.nn.functions.dropout import dropout2d as dropout2d
from strided.nn.functions.dropout import dropout3d as dropout3d
from strided.nn.functions.dropout import feature_alpha_dropout as feature_alpha_dropout
from strided.nn.functions.embedding_bag import embedding_bag as embedding_bag
from strided.nn.functions.fractional_pool import fractional_max_pool2d as fractional_max_pool2d
from strided.nn.functions.fractional_pool import fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices
from strided.nn.functions.fractional_pool import fractional_max_pool3d as fractional_max_pool3d
from strided.nn.functions.fractional_pool import fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices
from strided.nn.functions.grouped import grouped_mm as grouped_mm
from strided.nn.functions.loss import binary_cross_entropy as binary_cross_entropy
from strided.nn.functions.loss import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from strided.nn.functions.loss import cosine_embedding_loss as cosine_embedding_loss
from strided.nn.functions.loss import gaussian_nll_loss as gaussian_nll_loss
from strided.nn.functions.loss import hinge_embedding_loss as hinge_embedding_loss
from strided.nn.functions.loss import huber_loss as huber_loss
from strided.nn.functions.loss import kl_div as kl_div
from strided.nn.functions.loss import l1_loss as l1_loss
from strided.nn.functions.loss import linear_cross_entropy as linear_cross_entropy
from strided.nn.functions.loss import margin_ranking_loss as margin_ranking_loss
from strided.nn.functions.loss import mse_loss as mse_loss
from strided.nn.functions.loss import multi_margin_loss as multi_margin_loss
from strided.nn.functions.loss import multilabel_margin_loss as multilabel_margin_loss
from strided.nn.functions.loss import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from strided.nn.functions.loss import poisson_nll_loss as poisson_nll_loss
from strided.nn.functions.loss import smooth_l1_loss as smooth_l1_loss
from strided.nn.functions.loss import soft_margin_loss as soft_margin_loss
from strided.nn.functions.loss import triplet_margin_loss as triplet_margin_loss
from strided.nn.functions.loss import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from strided.nn.functions.normalization import batch_norm as batch_norm
from strided.nn.functions.normalization import group_norm as group_norm
from strided.nn.functions.normalization import instance_norm as instance_norm
from strided.nn.functions.normalization import local_response_norm as local_response_norm
from strided.nn.functions.padding import pad as pad
from strided.nn.functions.pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from strided.nn.functions.pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from strided.nn.functions.pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from strided.nn.functions.pooling import adaptive_max_pool1d as adaptive_max_pool1d
from strided.nn.functions.pooling import adaptive_max_pool2d as adaptive_max_pool2d
from strided.nn.functions.pooling import adaptive_max_pool3d as adaptive_max_pool3d
from strided.nn.functions.pooling import avg_pool1d as avg_pool1d
from strided.nn.functions.pooling import avg_pool2d as avg_pool2d
from strided.nn.functions.pooling import avg_pool3d as avg_pool3d
from strided.nn.functions.pooling import lp_pool1d as lp_pool1d
from strided.nn.functions.pooling import lp_pool2d as lp_pool2d
from strided.nn.functions.pooling import lp_pool3d as lp_pool3d
from strided.nn.functions.pooling import max_pool1d as max_pool1d
from strided.nn.functions.pooling import max_pool2d as max_pool2d
from strided.nn.functions.pooling import max_pool3d as max_pool3d
from strided.nn.functions.pooling import max_unpool1d as max_unpool1d
from strided.nn.functions.pooling import max_unpool2d as max_unpool2d
from strided.nn.functions.pooling import max_unpool3d as max_unpool3d
from strided.nn.functions.vision import affine_grid as affine_grid
from strided.nn.functions.vision import channel_shuffle as channel_shuffle
from strided.nn.functions.vision import grid_sample as grid_sample
from strided.nn.functions.vision import interpolate as interpolate
from strided.nn.functions.vision import pixel_shuffle as pixel_shuffle
from strided.nn.functions.vision import pixel_unshuffle as pixel_unshuffle
from strided.nn.functions.vision import upsample as upsample
from strided.nn.functions.vision import upsample_bilinear as upsample_bilinear
from strided.nn.functions.vision import upsample_nearest as upsample_nearest
from strided.nn.lazy import lazy_names as lazy_names
from strided.tensor import Tensor as Tensor

def adaptive_max_pool1d_with_indices(*args, **kwargs) -> Any:
    r"""(`adaptive_max_pool1d`, the places of its elements). The arguments are the same."""
def adaptive_max_pool2d_with_indices(*args, **kwargs) -> Any:
    r"""(`adaptive_max_pool2d`, the places of its elements). The arguments are the same."""
def adaptive_max_pool3d_with_indices(*args, **kwargs) -> Any:
    r"""(`adaptive_max_pool3d`, the places of its elements). The arguments are the same."""
def celu(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation celu, elementwise; options alpha=1.0."""
def cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', label_smoothing=...) -> Tensor:
    r"""-log softmax(input)[target], averaged over rows (reduction "mean": by class weight; or "sum", "none")."""
def elu(input, alpha=..., inplace=False) -> Tensor:
    r"""x where positive, alpha * (exp(x) - 1) elsewhere."""
def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=..., scale_grad_by_freq=False, sparse=False) -> Tensor:
    r"""The rows of `weight` that `input` (int64 or int32, any shape) names. [*], [V, D] -> [*, D]"""
def gelu(input, approximate='none') -> Tensor:
    r"""x * Φ(x), the Gaussian error linear unit; approximate="tanh" uses the tanh form."""
def hardshrink(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation hardshrink, elementwise; options lambd=0.5."""
def hardsigmoid(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation hardsigmoid, elementwise."""
def hardswish(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation hardswish, elementwise."""
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=..., cudnn_enable=True) -> Tensor:
    r"""(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, whose sizes `normalized_shape` repeats; weight and bias have that shape."""
def leaky_relu(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation leaky_relu, elementwise; options negative_slope=0.01."""
def linear(input, weight, bias=None) -> Tensor:
    r"""input @ weight.T + bias in one kernel: [*, in], [out, in], [out] -> [*, out]. The weight is read where it is, never transposed in memory."""
def logsigmoid(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation logsigmoid, elementwise."""
def max_pool1d_with_indices(*args, **kwargs) -> Any:
    r"""(`max_pool1d`, the places of its elements). The arguments are the same."""
def max_pool2d_with_indices(*args, **kwargs) -> Any:
    r"""(`max_pool2d`, the places of its elements). The arguments are the same."""
def max_pool3d_with_indices(*args, **kwargs) -> Any:
    r"""(`max_pool3d`, the places of its elements). The arguments are the same."""
def mish(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation mish, elementwise."""
native_channel_shuffle = channel_shuffle
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean') -> Tensor:
    r"""-input[target], for log-probabilities [C], [N, C] or [N, C, d1, …], averaged by class weight (reduction "mean"; or "sum", "none")."""
def one_hot(tensor, num_classes=-1) -> Tensor:
    r"""For each class (int64) a row of `num_classes` zeros with a 1 at the class; -1: one more than the largest. [*] -> [*, C]"""
def prelu(input, weight) -> Tensor:
    r"""x where positive, weight * x elsewhere; weight: one number a channel (dimension 1), or one in all."""
def relu6(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation relu6, elementwise."""
def rms_norm(input, normalized_shape, weight=None, eps=None) -> Tensor:
    r"""x / sqrt(mean(x²) + eps) * weight over the last dimensions; eps: the dtype's epsilon unless given."""
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=..., is_causal=False, scale=None, enable_gqa=False) -> Tensor:
    r"""softmax(query @ key^T * scale + mask) @ value: [*, L, E], [*, S, E], [*, S, Ev] -> [*, L, Ev]."""
def selu(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation selu, elementwise."""
def silu(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation silu, elementwise."""
def softplus(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation softplus, elementwise; options beta=1.0, threshold=20.0."""
def softshrink(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation softshrink, elementwise; options lambd=0.5."""
def softsign(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation softsign, elementwise."""
def tanhshrink(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation tanhshrink, elementwise."""
def threshold(input, *args, inplace=False, **kwargs) -> Tensor:
    r"""The activation threshold, elementwise; options threshold=0.0, value=0.0."""
