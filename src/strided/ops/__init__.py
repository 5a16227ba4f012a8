"""The operator table, filled: importing this package registers every family and puts the methods on Tensor.

`strided.ops.<name>` is the public function of an operator (nn and optim call operators through here).
"""
from ..refused import missing as _missing
from . import (
    activation,
    attention,
    complexlike,
    composite,
    convolution,
    counting,
    create,
    differences,
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
    polynomials,
    quantize,
    random,
    real_only,
    recurrent,
    reduce,
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
__getattr__ = _missing("torch.ops")
