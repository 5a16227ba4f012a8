"""`torch.backends`: switches that scripts set before training. What has no meaning here answers truthfully and can be set."""
from contextlib import contextmanager as _contextmanager
from contextlib import nullcontext as _nullcontext
from types import SimpleNamespace as _Namespace

from ..kernels import precision as _precision
from ..refused import missing as _missing


def _no() -> bool:
    return False


def _any_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True):
    """A block in which attention may use the kernels named: there is one kernel here, and it stays."""
    return _nullcontext()


class _CudaMatmul:
    """The switches of products on a CUDA device, of which there is none. They share their level with `torch.get_float32_matmul_precision()`, as in
    PyTorch; what this package's own products round is set by `torch.set_float32_matmul_precision` or `torch.backends.mkldnn.matmul.fp32_precision`."""

    allow_fp16_reduced_precision_reduction = False
    allow_bf16_reduced_precision_reduction = False
    allow_fp16_accumulation = False

    @property
    def allow_tf32(self) -> bool:
        return _precision.level() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, on: bool) -> None:
        _precision.set_level("high" if on else "highest", here=False)

    @property
    def fp32_precision(self) -> str:
        return "ieee" if _precision.level() == "highest" else "tf32"

    @fp32_precision.setter
    def fp32_precision(self, mode: str) -> None:
        if mode not in ("ieee", "tf32", "none"):
            raise RuntimeError(f"Unknown precision: {mode}")
        self.allow_tf32 = mode == "tf32"


class _OwnMatmul:
    """Products on this processor. fp32_precision: "ieee", or what operands of float32 products are rounded to, "tf32" or "bf16"."""

    @property
    def fp32_precision(self) -> str:
        return _precision.mode()

    @fp32_precision.setter
    def fp32_precision(self, mode: str) -> None:
        _precision.set_mode("ieee" if mode == "none" else mode)


def _capability() -> str:
    """The vector instructions that kernels are made for: "AVX512", "AVX2" or "DEFAULT"."""
    from ..kernels.jit import host

    bits = host().vector_bits if host().arch == "x86_64" else 0
    return {512: "AVX512", 256: "AVX2"}.get(bits, "DEFAULT")


@_contextmanager
def _cudnn_flags(
    enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none", depthwise_kernel: str = "auto"
):
    """A block with these values of cudnn's switches, which are kept and change nothing: there is no cuDNN."""
    new = {"enabled": enabled, "benchmark": benchmark, "deterministic": deterministic, "allow_tf32": allow_tf32}
    before = {name: getattr(cudnn, name) for name in new}
    vars(cudnn).update(new)
    try:
        yield
    finally:
        vars(cudnn).update(before)


mps = _Namespace(is_available=_no, is_built=_no, is_macos_or_newer=lambda major, minor: False)
cuda = _Namespace(
    matmul=_CudaMatmul(),
    is_built=_no,
    flash_sdp_enabled=_no,
    mem_efficient_sdp_enabled=_no,
    math_sdp_enabled=lambda: True,
    enable_flash_sdp=lambda on: None,
    enable_mem_efficient_sdp=lambda on: None,
    enable_math_sdp=lambda on: None,
    sdp_kernel=_any_kernel,
)
cudnn = _Namespace(enabled=False, deterministic=False, benchmark=False, allow_tf32=False, is_available=_no, version=lambda: None, flags=_cudnn_flags)
mkl = _Namespace(is_available=_no)
mkldnn = _Namespace(is_available=_no, enabled=False, matmul=_OwnMatmul())
cpu = _Namespace(get_cpu_capability=_capability)
openmp = _Namespace(is_available=_no)

__getattr__ = _missing("torch.backends")
