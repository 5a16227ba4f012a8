"""`torch.backends`: switches that scripts set before training. What has no meaning here answers truthfully and can be set."""
from types import SimpleNamespace as _Namespace


def _no() -> bool:
    return False


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
)
cudnn = _Namespace(enabled=False, deterministic=False, benchmark=False, allow_tf32=False, is_available=_no, version=lambda: None)
mkl = _Namespace(is_available=_no)
mkldnn = _Namespace(is_available=_no, enabled=False)
openmp = _Namespace(is_available=_no)
