"""Modules, parameters, functions, initialisers. Written by tools/stubs.py."""
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator
from typing import Any, overload

from strided.nn import functional as functional
from strided.nn import init as init
from strided.nn import modules as modules
from strided.nn import parallel as parallel
from strided.nn import parameter as parameter
from strided.nn import utils as utils
from strided.nn.hooks import RemovableHandle as RemovableHandle
from strided.nn.module import Module as Module
from strided.nn.parameter import Buffer as Buffer
from strided.nn.parameter import Parameter as Parameter
from strided.nn.parameter import UninitializedParameter as UninitializedParameter

AdaptiveAvgPool1d: Any
AdaptiveAvgPool2d: Any
AdaptiveAvgPool3d: Any
AdaptiveMaxPool1d: Any
AdaptiveMaxPool2d: Any
AdaptiveMaxPool3d: Any
AlphaDropout: Any
AvgPool1d: Any
AvgPool2d: Any
AvgPool3d: Any
BCELoss: Any
BCEWithLogitsLoss: Any
BatchNorm1d: Any
BatchNorm2d: Any
BatchNorm3d: Any
Bilinear: Any
CELU: Any
CTCLoss: Any
ChannelShuffle: Any
CircularPad1d: Any
CircularPad2d: Any
CircularPad3d: Any
ConstantPad1d: Any
ConstantPad2d: Any
ConstantPad3d: Any
Conv1d: Any
Conv2d: Any
Conv3d: Any
ConvTranspose1d: Any
ConvTranspose2d: Any
ConvTranspose3d: Any
CosineEmbeddingLoss: Any
CosineSimilarity: Any
CrossEntropyLoss: Any
DataParallel: Any
Dropout: Any
Dropout1d: Any
Dropout2d: Any
Dropout3d: Any
ELU: Any
Embedding: Any
EmbeddingBag: Any
FeatureAlphaDropout: Any
Flatten: Any
Fold: Any
GELU: Any
GLU: Any
GRU: Any
GRUCell: Any
GaussianNLLLoss: Any
GroupNorm: Any
Hardshrink: Any
Hardsigmoid: Any
Hardswish: Any
Hardtanh: Any
HingeEmbeddingLoss: Any
HuberLoss: Any
Identity: Any
InstanceNorm1d: Any
InstanceNorm2d: Any
InstanceNorm3d: Any
KLDivLoss: Any
L1Loss: Any
LPPool1d: Any
LPPool2d: Any
LPPool3d: Any
LSTM: Any
LSTMCell: Any
LayerNorm: Any
LeakyReLU: Any
Linear: Any
LocalResponseNorm: Any
LogSigmoid: Any
LogSoftmax: Any
MSELoss: Any
MarginRankingLoss: Any
MaxPool1d: Any
MaxPool2d: Any
MaxPool3d: Any
MaxUnpool1d: Any
MaxUnpool2d: Any
MaxUnpool3d: Any
Mish: Any
ModuleDict: Any
ModuleList: Any
MultiLabelMarginLoss: Any
MultiLabelSoftMarginLoss: Any
MultiMarginLoss: Any
MultiheadAttention: Any
NLLLoss: Any
PReLU: Any
PairwiseDistance: Any
ParameterDict: Any
ParameterList: Any
PixelShuffle: Any
PixelUnshuffle: Any
PoissonNLLLoss: Any
RMSNorm: Any
RNN: Any
RNNBase: Any
RNNCell: Any
RNNCellBase: Any
RReLU: Any
ReLU: Any
ReLU6: Any
ReflectionPad1d: Any
ReflectionPad2d: Any
ReflectionPad3d: Any
ReplicationPad1d: Any
ReplicationPad2d: Any
ReplicationPad3d: Any
SELU: Any
Sequential: Any
SiLU: Any
Sigmoid: Any
SmoothL1Loss: Any
SoftMarginLoss: Any
Softmax: Any
Softmax2d: Any
Softmin: Any
Softplus: Any
Softshrink: Any
Softsign: Any
SyncBatchNorm: Any
Tanh: Any
Tanhshrink: Any
Threshold: Any
Transformer: Any
TransformerDecoder: Any
TransformerDecoderLayer: Any
TransformerEncoder: Any
TransformerEncoderLayer: Any
TripletMarginLoss: Any
TripletMarginWithDistanceLoss: Any
Unflatten: Any
Unfold: Any
Upsample: Any
UpsamplingBilinear2d: Any
UpsamplingNearest2d: Any
ZeroPad1d: Any
ZeroPad2d: Any
ZeroPad3d: Any
