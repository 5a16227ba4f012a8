"""The operator table, filled: importing this package registers every family and puts the methods on Tensor.

`strided.ops.<name>` is the public function of an operator (nn and optim call operators through here).
"""
from ..refused import missing as _missing
from . import (
    activation,
    attention,
    bags,
    choices,
    complexlike,
    composite,
    convolution,
    coordinates,
    counting,
    create,
    differences,
    distance,
    edges,
    elementwise,
    fft,
    floating,
    gamma,
    index,
    interop,
    join,
    legacy,
    linalg,
    lookup,
    loss,
    masks,
    matmul,
    moments,
    odds,
    packed,
    pointwise,
    pointwise_options,
    polynomials,
    pooling,
    python_operators,
    quantize,
    random,
    real_only,
    recurrent,
    reduce,
    rejection,
    rounding,
    rowwise,
    scan,
    scatter,
    shape,
    signatures,
    sort,
    special,
    stft,
    table,
    variants,
    windows,
)
from .table import TABLE

signatures.guard()
real_only.guard()
packed.round_once()
table.install_methods()
globals().update({name: e.call for e in TABLE.values() if e.function for name in (e.name, *e.aliases)})


def load_library(path):
    """Refused as a library that cannot be loaded, which packages with compiled parts catch: those parts are for PyTorch's C++ core."""
    raise OSError(f"Could not load this library: {path}: its operators are compiled for PyTorch's C++ core, which is not here; use library.custom_op for operators in Python")


load_library.is_refusal = True
__getattr__ = _missing("torch.ops")
