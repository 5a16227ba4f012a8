"""The ready-made modules, a file a family, each loaded when one of its names is first used (a script that needs Linear need not read pooling)."""
from ..lazy import lazy_names
from ..module import Module

FAMILIES = {
    "linear": "Identity Linear Bilinear",
    "sparse": "Embedding EmbeddingBag",
    "activation": (
        "ReLU SiLU Mish SELU Hardswish Hardsigmoid Hardtanh ReLU6 GELU Sigmoid Tanh LogSigmoid Softsign "
        "Tanhshrink ELU CELU LeakyReLU RReLU PReLU Softplus Softshrink Hardshrink Threshold GLU Softmax "
        "LogSoftmax Softmin Softmax2d"
    ),
    "container": "Container Sequential ModuleList ModuleDict ParameterList ParameterDict",
    "flatten": "Flatten Unflatten",
    "dropout": "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout",
    "distance": "CosineSimilarity PairwiseDistance",
    "normalization": "LayerNorm RMSNorm GroupNorm LocalResponseNorm CrossMapLRN2d",
    "batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d",
    "loss": (
        "L1Loss MSELoss SmoothL1Loss HuberLoss NLLLoss CrossEntropyLoss BCELoss BCEWithLogitsLoss KLDivLoss "
        "PoissonNLLLoss GaussianNLLLoss CosineEmbeddingLoss MarginRankingLoss HingeEmbeddingLoss "
        "SoftMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss MultiLabelMarginLoss CTCLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss NLLLoss2d"
    ),
    "linear_cross_entropy": "LinearCrossEntropyLoss LinearCrossEntropyOptions",
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "lazy": (
        "LazyLinear LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyBatchNorm1d LazyBatchNorm2d "
        "LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d"
    ),
    "conv": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
    "pooling": (
        "MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d AdaptiveAvgPool1d "
        "AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d FractionalMaxPool2d FractionalMaxPool3d"
    ),
    "padding": (
        "ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d ReflectionPad1d "
        "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d CircularPad1d "
        "CircularPad2d CircularPad3d"
    ),
    "vision": (
        "Upsample UpsamplingNearest2d UpsamplingBilinear2d PixelShuffle PixelUnshuffle ChannelShuffle Unfold "
        "Fold"
    ),
    "attention": "MultiheadAttention",
    "transformer": "TransformerEncoderLayer TransformerEncoder TransformerDecoderLayer TransformerDecoder Transformer",
    "parallel": "DataParallel",
    "module": "",
    "utils": "",
    "rnn": "RNNBase RNN LSTM GRU RNNCellBase RNNCell LSTMCell GRUCell",
}

__getattr__, __dir__, _names = lazy_names(__name__, globals(), FAMILIES)
__all__ = ["Module", *_names]
