"""Memory-bound work into fresh results: strided against PyTorch in one process, two threads; GB/s counts bytes read and written once.

    python bench/large_pointwise.py
"""
import pathlib
import sys

import torch

import strided

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from side_by_side import pair, row


def make(lib, n):
    x, y = lib.ones(n, n), lib.ones(n, n)
    return {
        ("x + y", 3): lambda: x + y,
        ("x * 2", 2): lambda: x * 2,
        ("exp(x)", 2): lambda: x.exp(),
        ("gelu(x)", 2): lambda: lib.nn.functional.gelu(x),
        ("softmax(x, -1)", 2): lambda: lib.softmax(x, -1),
        ("layer_norm(x)", 2): lambda: lib.nn.functional.layer_norm(x, (n,)),
        ("x.sum()", 1): lambda: x.sum(),
        ("x.sum(0)", 1): lambda: x.sum(0),
        ("x.t().contiguous()", 2): lambda: x.t().contiguous(),
    }


def main():
    torch.set_num_threads(2)
    strided.set_num_threads(2)
    n = 4096
    ours, theirs = make(strided, n), make(torch, n)
    for key in ours:
        name, moves = key
        a, b = pair(ours[key], theirs[key], rounds=9)
        row(f"{name}, {n} x {n} float32", a, b, f"{moves * n * n * 4 / a / 1e9:.1f} GB/s against {moves * n * n * 4 / b / 1e9:.1f}", unit=1e3, suffix="ms")


if __name__ == "__main__":
    main()
