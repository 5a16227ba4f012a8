"""Modules, parameters, functions, initialisers. Written by tools/stubs.py."""
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator
from typing import Any, overload

from strided.nn import attention as attention
from strided.nn import factory_kwargs as factory_kwargs
from strided.nn import functional as functional
from strided.nn import grad as grad
from strided.nn import init as init
from strided.nn import modules as modules
from strided.nn import parallel as parallel
from strided.nn import parameter as parameter
from strided.nn import utils as utils
from strided.nn.hooks import RemovableHandle as RemovableHandle
from strided.nn.module import Module as Module
from strided.nn.modules.activation import CELU as CELU
from strided.nn.modules.activation import ELU as ELU
from strided.nn.modules.activation import GELU as GELU
from strided.nn.modules.activation import GLU as GLU
from strided.nn.modules.activation import Hardshrink as Hardshrink
from strided.nn.modules.activation import Hardsigmoid as Hardsigmoid
from strided.nn.modules.activation import Hardswish as Hardswish
from strided.nn.modules.activation import Hardtanh as Hardtanh
from strided.nn.modules.activation import LeakyReLU as LeakyReLU
from strided.nn.modules.activation import LogSigmoid as LogSigmoid
from strided.nn.modules.activation import LogSoftmax as LogSoftmax
from strided.nn.modules.activation import Mish as Mish
from strided.nn.modules.activation import PReLU as PReLU
from strided.nn.modules.activation import RReLU as RReLU
from strided.nn.modules.activation import ReLU as ReLU
from strided.nn.modules.activation import ReLU6 as ReLU6
from strided.nn.modules.activation import SELU as SELU
from strided.nn.modules.activation import SiLU as SiLU
from strided.nn.modules.activation import Sigmoid as Sigmoid
from strided.nn.modules.activation import Softmax as Softmax
from strided.nn.modules.activation import Softmax2d as Softmax2d
from strided.nn.modules.activation import Softmin as Softmin
from strided.nn.modules.activation import Softplus as Softplus
from strided.nn.modules.activation import Softshrink as Softshrink
from strided.nn.modules.activation import Softsign as Softsign
from strided.nn.modules.activation import Tanh as Tanh
from strided.nn.modules.activation import Tanhshrink as Tanhshrink
from strided.nn.modules.activation import Threshold as Threshold
from strided.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from strided.nn.modules.attention import MultiheadAttention as MultiheadAttention
from strided.nn.modules.batchnorm import BatchNorm1d as BatchNorm1d
from strided.nn.modules.batchnorm import BatchNorm2d as BatchNorm2d
from strided.nn.modules.batchnorm import BatchNorm3d as BatchNorm3d
from strided.nn.modules.batchnorm import InstanceNorm1d as InstanceNorm1d
from strided.nn.modules.batchnorm import InstanceNorm2d as InstanceNorm2d
from strided.nn.modules.batchnorm import InstanceNorm3d as InstanceNorm3d
from strided.nn.modules.batchnorm import SyncBatchNorm as SyncBatchNorm
from strided.nn.modules.container import Container as Container
from strided.nn.modules.container import ModuleDict as ModuleDict
from strided.nn.modules.container import ModuleList as ModuleList
from strided.nn.modules.container import ParameterDict as ParameterDict
from strided.nn.modules.container import ParameterList as ParameterList
from strided.nn.modules.container import Sequential as Sequential
from strided.nn.modules.conv import Conv1d as Conv1d
from strided.nn.modules.conv import Conv2d as Conv2d
from strided.nn.modules.conv import Conv3d as Conv3d
from strided.nn.modules.conv import ConvTranspose1d as ConvTranspose1d
from strided.nn.modules.conv import ConvTranspose2d as ConvTranspose2d
from strided.nn.modules.conv import ConvTranspose3d as ConvTranspose3d
from strided.nn.modules.distance import CosineSimilarity as CosineSimilarity
from strided.nn.modules.distance import PairwiseDistance as PairwiseDistance
from strided.nn.modules.dropout import AlphaDropout as AlphaDropout
from strided.nn.modules.dropout import Dropout as Dropout
from strided.nn.modules.dropout import Dropout1d as Dropout1d
from strided.nn.modules.dropout import Dropout2d as Dropout2d
from strided.nn.modules.dropout import Dropout3d as Dropout3d
from strided.nn.modules.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from strided.nn.modules.flatten import Flatten as Flatten
from strided.nn.modules.flatten import Unflatten as Unflatten
from strided.nn.modules.lazy import LazyBatchNorm1d as LazyBatchNorm1d
from strided.nn.modules.lazy import LazyBatchNorm2d as LazyBatchNorm2d
from strided.nn.modules.lazy import LazyBatchNorm3d as LazyBatchNorm3d
from strided.nn.modules.lazy import LazyConv1d as LazyConv1d
from strided.nn.modules.lazy import LazyConv2d as LazyConv2d
from strided.nn.modules.lazy import LazyConv3d as LazyConv3d
from strided.nn.modules.lazy import LazyConvTranspose1d as LazyConvTranspose1d
from strided.nn.modules.lazy import LazyConvTranspose2d as LazyConvTranspose2d
from strided.nn.modules.lazy import LazyConvTranspose3d as LazyConvTranspose3d
from strided.nn.modules.lazy import LazyInstanceNorm1d as LazyInstanceNorm1d
from strided.nn.modules.lazy import LazyInstanceNorm2d as LazyInstanceNorm2d
from strided.nn.modules.lazy import LazyInstanceNorm3d as LazyInstanceNorm3d
from strided.nn.modules.lazy import LazyLinear as LazyLinear
from strided.nn.modules.linear import Bilinear as Bilinear
from strided.nn.modules.linear import Identity as Identity
from strided.nn.modules.linear import Linear as Linear
from strided.nn.modules.linear_cross_entropy import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from strided.nn.modules.linear_cross_entropy import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from strided.nn.modules.loss import BCELoss as BCELoss
from strided.nn.modules.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from strided.nn.modules.loss import CTCLoss as CTCLoss
from strided.nn.modules.loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from strided.nn.modules.loss import CrossEntropyLoss as CrossEntropyLoss
from strided.nn.modules.loss import GaussianNLLLoss as GaussianNLLLoss
from strided.nn.modules.loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from strided.nn.modules.loss import HuberLoss as HuberLoss
from strided.nn.modules.loss import KLDivLoss as KLDivLoss
from strided.nn.modules.loss import L1Loss as L1Loss
from strided.nn.modules.loss import MSELoss as MSELoss
from strided.nn.modules.loss import MarginRankingLoss as MarginRankingLoss
from strided.nn.modules.loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from strided.nn.modules.loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from strided.nn.modules.loss import MultiMarginLoss as MultiMarginLoss
from strided.nn.modules.loss import NLLLoss as NLLLoss
from strided.nn.modules.loss import NLLLoss2d as NLLLoss2d
from strided.nn.modules.loss import PoissonNLLLoss as PoissonNLLLoss
from strided.nn.modules.loss import SmoothL1Loss as SmoothL1Loss
from strided.nn.modules.loss import SoftMarginLoss as SoftMarginLoss
from strided.nn.modules.loss import TripletMarginLoss as TripletMarginLoss
from strided.nn.modules.loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from strided.nn.modules.normalization import CrossMapLRN2d as CrossMapLRN2d
from strided.nn.modules.normalization import GroupNorm as GroupNorm
from strided.nn.modules.normalization import LayerNorm as LayerNorm
from strided.nn.modules.normalization import LocalResponseNorm as LocalResponseNorm
from strided.nn.modules.normalization import RMSNorm as RMSNorm
from strided.nn.modules.padding import _CircularPad as _CircularPad
from strided.nn.modules.padding import _ConstantPad as _ConstantPad
from strided.nn.modules.padding import _Pad as _Pad
from strided.nn.modules.padding import _ZeroPad as _ZeroPad
from strided.nn.modules.parallel import DataParallel as DataParallel
from strided.nn.modules.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from strided.nn.modules.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from strided.nn.modules.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from strided.nn.modules.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from strided.nn.modules.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from strided.nn.modules.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from strided.nn.modules.pooling import AvgPool1d as AvgPool1d
from strided.nn.modules.pooling import AvgPool2d as AvgPool2d
from strided.nn.modules.pooling import AvgPool3d as AvgPool3d
from strided.nn.modules.pooling import FractionalMaxPool2d as FractionalMaxPool2d
from strided.nn.modules.pooling import FractionalMaxPool3d as FractionalMaxPool3d
from strided.nn.modules.pooling import LPPool1d as LPPool1d
from strided.nn.modules.pooling import LPPool2d as LPPool2d
from strided.nn.modules.pooling import LPPool3d as LPPool3d
from strided.nn.modules.pooling import MaxPool1d as MaxPool1d
from strided.nn.modules.pooling import MaxPool2d as MaxPool2d
from strided.nn.modules.pooling import MaxPool3d as MaxPool3d
from strided.nn.modules.pooling import MaxUnpool1d as MaxUnpool1d
from strided.nn.modules.pooling import MaxUnpool2d as MaxUnpool2d
from strided.nn.modules.pooling import MaxUnpool3d as MaxUnpool3d
from strided.nn.modules.rnn import GRU as GRU
from strided.nn.modules.rnn import GRUCell as GRUCell
from strided.nn.modules.rnn import LSTM as LSTM
from strided.nn.modules.rnn import LSTMCell as LSTMCell
from strided.nn.modules.rnn import RNN as RNN
from strided.nn.modules.rnn import RNNBase as RNNBase
from strided.nn.modules.rnn import RNNCell as RNNCell
from strided.nn.modules.rnn import RNNCellBase as RNNCellBase
from strided.nn.modules.sparse import Embedding as Embedding
from strided.nn.modules.sparse import EmbeddingBag as EmbeddingBag
from strided.nn.modules.transformer import Transformer as Transformer
from strided.nn.modules.transformer import TransformerDecoder as TransformerDecoder
from strided.nn.modules.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from strided.nn.modules.transformer import TransformerEncoder as TransformerEncoder
from strided.nn.modules.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from strided.nn.modules.vision import ChannelShuffle as ChannelShuffle
from strided.nn.modules.vision import Fold as Fold
from strided.nn.modules.vision import PixelShuffle as PixelShuffle
from strided.nn.modules.vision import PixelUnshuffle as PixelUnshuffle
from strided.nn.modules.vision import Unfold as Unfold
from strided.nn.modules.vision import Upsample as Upsample
from strided.nn.modules.vision import UpsamplingBilinear2d as UpsamplingBilinear2d
from strided.nn.modules.vision import UpsamplingNearest2d as UpsamplingNearest2d
from strided.nn.parameter import Buffer as Buffer
from strided.nn.parameter import Parameter as Parameter
from strided.nn.parameter import UninitializedBuffer as UninitializedBuffer
from strided.nn.parameter import UninitializedParameter as UninitializedParameter

class CircularPad1d(_CircularPad): ...
class CircularPad2d(_CircularPad): ...
class CircularPad3d(_CircularPad): ...
class ConstantPad1d(_ConstantPad): ...
class ConstantPad2d(_ConstantPad): ...
class ConstantPad3d(_ConstantPad): ...
class ReflectionPad1d(_Pad): ...
class ReflectionPad2d(_Pad): ...
class ReflectionPad3d(_Pad): ...
class ReplicationPad1d(_Pad): ...
class ReplicationPad2d(_Pad): ...
class ReplicationPad3d(_Pad): ...
class ZeroPad1d(_ZeroPad): ...
class ZeroPad2d(_ZeroPad): ...
class ZeroPad3d(_ZeroPad): ...
