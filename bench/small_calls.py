"""Small eager calls, where overhead is everything: strided against PyTorch in one process, two threads.

    python bench/small_calls.py          medians of elapsed time
    python bench/small_calls.py --cpu    the least of many rounds of the calling thread's own time: for a machine that is busy otherwise
"""
import pathlib
import sys
import time

import torch

import strided

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from side_by_side import pair, row


def make(lib):
    a, b = lib.tensor([1.0, 2.0, 3.0, 4.0]), lib.tensor([5.0, 6.0, 7.0, 8.0])
    g = lib.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    m = lib.ones(4, 4)
    mg = lib.ones(4, 4, requires_grad=True)
    return {
        "a + b": lambda: a + b,
        "a + b, gradient recorded": lambda: g + b,
        "a * b, gradient recorded": lambda: g * b,
        "a + 2.0": lambda: a + 2.0,
        "exp(a)": lambda: a.exp(),
        "a.add_(b)": lambda: a.add_(b),
        "m.view(2, 8)": lambda: m.view(2, 8),
        "m.transpose(0, 1)": lambda: m.transpose(0, 1),
        "m[1]": lambda: m[1],
        "m[:, 1:3]": lambda: m[:, 1:3],
        "m @ m": lambda: m @ m,
        "m @ m, gradient recorded": lambda: mg @ m,
        "a.sum()": lambda: a.sum(),
        "softmax(m)": lambda: lib.softmax(m, -1),
        "(g * b).sum().backward()": lambda: (g * b).sum().backward(),
        "a[1].item()": lambda: a[1].item(),
        "tensor([1., 2.])": lambda: lib.tensor([1.0, 2.0]),
    }


def least(ours, theirs, number=300, rounds=60):
    """The least CPU seconds a call of each side, in alternating rounds."""
    sides = ours, theirs
    best = [float("inf")] * 2
    for round in range(rounds + 3):
        for side in (0, 1):
            start = time.thread_time()
            for _ in range(number):
                sides[side]()
            if round >= 3:
                best[side] = min(best[side], (time.thread_time() - start) / number)
    return tuple(best)


def main():
    torch.set_num_threads(2)
    strided.set_num_threads(2)
    ours, theirs = make(strided), make(torch)
    for name in ours:
        row(name, *(least(ours[name], theirs[name]) if "--cpu" in sys.argv[1:] else pair(ours[name], theirs[name], number=2000, rounds=11)))


if __name__ == "__main__":
    main()
