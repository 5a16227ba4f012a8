"""`torch.backends`: switches that scripts set before training. What has no meaning here answers truthfully and can be set."""
from contextlib import nullcontext as _nullcontext
from types import SimpleNamespace as _Namespace

from ..refused import missing as _missing


def _no() -> bool:
    return False


def _any_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True):
    """A block in which attention may use the kernels named: there is one kernel here, and it stays."""
    return _nullcontext()


mps = _Namespace(is_available=_no, is_built=_no)
cuda = _Namespace(
    matmul=_Namespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=False, allow_bf16_reduced_precision_reduction=False),
    is_built=_no,
    flash_sdp_enabled=_no,
    mem_efficient_sdp_enabled=_no,
    math_sdp_enabled=lambda: True,
    enable_flash_sdp=lambda on: None,
    enable_mem_efficient_sdp=lambda on: None,
    enable_math_sdp=lambda on: None,
    sdp_kernel=_any_kernel,
)
cudnn = _Namespace(enabled=False, deterministic=False, benchmark=False, allow_tf32=False, is_available=_no, version=lambda: None)
mkl = _Namespace(is_available=_no)
mkldnn = _Namespace(is_available=_no, enabled=False)
openmp = _Namespace(is_available=_no)

__getattr__ = _missing("torch.backends")
