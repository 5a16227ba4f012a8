"""A kernel that finds no memory for its scratch: an error in place of a result, and the next call, with memory, is right."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, resource, sys
import strided as torch

call, rows, format = sys.argv[1], int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)  # threads keep their scratch
ctypes.CDLL(None).mallopt(-3, 4096)  # what is freed goes back to the system at once
F = torch.nn.functional
square, wide, q = torch.randn(700, 700), torch.randn(700, 4096), torch.randn(1, 4, 2048, 64)
half = square.bfloat16()
few, weight = torch.randn(rows, 2048), torch.quantize(torch.randn(1024, 2048), format)
run = {
    "product": lambda: square @ square,
    "bfloat16": lambda: half @ half,
    "rows": lambda: square[:rows] @ wide,
    "attention": lambda: F.scaled_dot_product_attention(q, q, q),
    "blocks": lambda: F.linear(few, weight),
}[call]
want, limits = run(), resource.getrlimit(resource.RLIMIT_AS)
spare = run()
del spare  # its memory is the next result's
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), limits[1]))
try:
    run()
except RuntimeError as error:
    print(error)
finally:
    resource.setrlimit(resource.RLIMIT_AS, limits)
assert bool((run() == want).all())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space as Linux does")
@pytest.mark.parametrize(("call", "rows", "format"), [("product", 1, "mxfp4"), ("bfloat16", 1, "mxfp4"), ("rows", 24, "mxfp4"), ("attention", 1, "mxfp4"), ("blocks", 45, "mxfp4"), ("blocks", 45, "int8")])
def test_a_kernel_without_scratch_raises_and_the_next_call_is_right(call, rows, format):
    done = subprocess.run([sys.executable, "-c", PROGRAM, call, str(rows), format], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("DefaultCPUAllocator: can't allocate memory: the system has none left for a kernel's scratch")
