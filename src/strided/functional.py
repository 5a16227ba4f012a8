"""`torch.functional`: the functions of the top level that PyTorch writes in Python, under the module that they are in there."""
from . import namespace as _namespace
from .refused import missing as _missing

_NAMES = """
atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors cartesian_prod block_diag cdist chain_matmul einsum istft norm meshgrid split stft tensordot
unique unique_consecutive unravel_index
"""

globals().update({name: _namespace.NAMES[name] for name in _NAMES.split()})

__getattr__ = _missing("torch.functional")
