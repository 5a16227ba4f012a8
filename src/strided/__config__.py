"""`torch.__config__`: what the library was built with, which here is what it computes with."""
from .kernels import jit as _jit
from .kernels.native import get_num_threads as _threads


def show() -> str:
    """The host that kernels are compiled for, a line each: processor, vector bits, LLVM."""
    import llvmlite

    host = _jit.host()
    version = ".".join(map(str, llvmlite.binding.llvm_version_info))
    return f"strided computes with:\n  - LLVM {version} (llvmlite {llvmlite.__version__}), kernels compiled as they are needed\n  - {host.triple}, {host.cpu}, vectors of {host.vector_bits} bits\n"


def parallel_info() -> str:
    """How many threads compute."""
    return f"strided:\n\tget_num_threads() : {_threads()}\n"


def _cxx_flags() -> str:
    return ""
