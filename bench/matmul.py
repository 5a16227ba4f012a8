"""Matrix products beside PyTorch's (when it is installed), interleaved, and against the machine's measured peak of fused multiply-adds.

    python bench/matmul.py            # the table
    python bench/matmul.py --quick    # the large float32 squares only

Times are medians of interleaved rounds: both libraries meet the same clock and the same neighbours. On a machine that others use, trust the ratio and
the share of the peak, which is measured between the rounds, more than the GFLOP/s.
"""

import argparse
import pathlib
import sys

import strided
from strided.kernels import native
from strided.lens import limits

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from side_by_side import several

try:
    import torch
except ImportError:
    torch = None


# ---- the cases ------------------------------------------------------------------------------------------------------------


def pair(shape, dtype, transposed=False):
    """The same operand in both libraries; `transposed`: stored the other way round, as the weight of a linear layer."""
    stored = (*shape[:-2], shape[-1], shape[-2]) if transposed else shape
    make = lambda lib: lib.randn(stored).to(getattr(lib, dtype)) if "float" in dtype else lib.randint(0, 100, stored, dtype=getattr(lib, dtype))
    turn = lambda t: t.transpose(-1, -2) if transposed else t
    return turn(make(strided)), turn(make(torch)) if torch else None


def product(m, n, k, dtype="float32", transposed=False, batch=(), columns=False):
    """`columns`: the left operand is stored by columns, as in the gradient of a weight."""
    a, b = pair((*batch, m, k), dtype, columns), pair((*batch, k, n), dtype, transposed)
    flops = 2 * m * n * k
    for size in batch:
        flops *= size
    moved = (m * k + k * n + m * n) * a[0].element_size()
    name = f"{dtype} {'x'.join(map(str, batch)) + ' of ' if batch else ''}{m}x{k}{' (by columns)' if columns else ''} @ {k}x{n}{' (transposed)' if transposed else ''}"
    return name, flops, moved, lambda: a[0] @ b[0], (lambda: a[1] @ b[1]) if torch else None


def attention(batch, heads, length, width, causal=False):
    q, k, v = (pair((batch, heads, length, width), "float32") for _ in range(3))
    flops = 4 * batch * heads * length * length * width
    call = lambda lib, i: lib.nn.functional.scaled_dot_product_attention(q[i], k[i], v[i], is_causal=causal)
    return f"attention {batch}x{heads}x{length}x{width}{' causal' if causal else ''}", flops, 0, lambda: call(strided, 0), (lambda: call(torch, 1)) if torch else None


def cases(quick):
    yield from (product(n, n, n) for n in (256, 512, 1024, 2048))
    if quick:
        return
    yield from (product(n, n, n) for n in (4, 16, 32, 64, 128))
    yield product(512, 768, 768, transposed=True)
    yield product(512, 3072, 768, transposed=True)
    for k in (384, 512):  # few columns, and their weights' gradients: a small model's training
        yield product(768, 128, k)
        yield product(k, 128, 768, columns=True)
    yield product(128, 512, 768, columns=True)
    for rows in (1, 8):
        yield product(rows, 3072, 768)
        yield product(rows, 3072, 768, transposed=True)
    yield product(4096, 1, 1024)
    yield product(1, 16384, 2048, "bfloat16", transposed=True)
    yield product(512, 512, 512, "bfloat16")
    yield product(512, 512, 512, "float64")
    yield product(256, 256, 256, "int64")
    yield product(64, 64, 32, transposed=True, batch=(8, 12))
    yield product(64, 32, 64, batch=(8, 12))
    yield attention(1, 12, 512, 64)
    yield attention(1, 12, 512, 64, causal=True)


def measure(ours, theirs, threads):
    """Median seconds a call of both (None without PyTorch), and the median peak between the rounds in GFLOP/s."""
    peak, flops = limits.multiply_adds(threads=threads)
    times = several({"ours": ours, **({"theirs": theirs} if theirs else {}), "peak": peak})
    return times["ours"], times.get("theirs"), flops / times["peak"] / 1e9


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--threads", type=int, action="append", help="thread counts to measure (default: 1 and all)")
    chosen = options.parse_args()
    everything = native.get_num_threads()
    for threads in chosen.threads or sorted({1, everything}):
        native.set_num_threads(threads)
        if torch:
            torch.set_num_threads(threads)
        print(f"\n{threads} thread{'s' if threads > 1 else ''}")
        print(f"{'':52}{'ours':>11}{'GFLOP/s':>9}{'of peak':>9}{'GB/s':>7}{'PyTorch':>12}{'ratio':>7}")
        for name, flops, moved, ours, theirs in cases(chosen.quick):
            mine, other, peak = measure(ours, theirs, threads)
            beside = f"{other * 1e6:10.1f}us{other / mine:7.2f}" if other else ""
            print(f"{name:52}{mine * 1e6:9.1f}us{flops / mine / 1e9:9.1f}{flops / mine / 1e9 / peak:9.0%}{moved / mine / 1e9:7.1f}{beside}", flush=True)
    native.set_num_threads(everything)


if __name__ == "__main__":
    main()
