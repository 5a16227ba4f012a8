"""Small eager calls, where overhead is everything: strided against PyTorch in one process, two threads.

    python bench/small_calls.py          medians of elapsed time
    python bench/small_calls.py --cpu    the least of many rounds of the calling thread's own time: for a machine that is busy otherwise
    python bench/small_calls.py linear   only rows whose name has one of the words
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
        **functions(lib),
        **training(lib),
    }


def functions(lib):
    """Functions of a network on [4, 8], their gradients recorded."""
    F = lib.nn.functional
    x = lib.ones(4, 8, requires_grad=True)
    w, b = lib.ones(8, 8, requires_grad=True), lib.ones(8, requires_grad=True)
    table, ids, target = lib.ones(16, 8, requires_grad=True), lib.tensor([1, 2, 3, 4]), lib.tensor([0, 1, 2, 3])
    return {
        "m.sum(), gradient recorded": lambda: x.sum(),
        "m.transpose(0, 1), gradient recorded": lambda: x.transpose(0, 1),
        "m.view(2, 16), gradient recorded": lambda: x.view(2, 16),
        "m[1], gradient recorded": lambda: x[1],
        "linear, gradient recorded": lambda: F.linear(x, w, b),
        "relu, gradient recorded": lambda: F.relu(x),
        "gelu, gradient recorded": lambda: F.gelu(x),
        "softmax, gradient recorded": lambda: F.softmax(x, -1),
        "cross_entropy, gradient recorded": lambda: F.cross_entropy(x, target),
        "layer_norm, gradient recorded": lambda: F.layer_norm(x, (8,), b, b),
        "embedding, gradient recorded": lambda: F.embedding(ids, table),
        "mse_loss, gradient recorded": lambda: F.mse_loss(x, w[:4]),
    }


def training(lib):
    """Modules, optimisers and a step of a perceptron whose kernels take next to nothing: 8-16-4, 4 rows."""
    nn, F = lib.nn, lib.nn.functional
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x, y = lib.ones(4, 8), lib.tensor([0, 1, 2, 3])
    identity = nn.Identity()
    sgd, adam = lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), lib.optim.AdamW(model.parameters(), lr=0.001)

    def step(optimizer):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()

    step(sgd), step(adam)

    return {
        "nn.Identity()(x)": lambda: identity(x),
        "nn.Linear(8, 16)(x)": lambda: model[0](x),
        "perceptron, forward": lambda: model(x),
        "perceptron, forward + backward": lambda: F.cross_entropy(model(x), y).backward(),
        "SGD with momentum, step": sgd.step,
        "AdamW, step": adam.step,
        "zero_grad()": sgd.zero_grad,
        "perceptron, step of SGD": lambda: step(sgd),
        "perceptron, step of AdamW": lambda: step(adam),
    }


def least(ours, theirs, seconds=5e-4, rounds=40):
    """The least CPU seconds a call of each side, in alternating rounds of about so many seconds."""
    sides = ours, theirs
    number = calls(ours, seconds)
    best = [float("inf")] * 2
    for round in range(rounds + 3):
        for side in (0, 1):
            start = time.thread_time()
            for _ in range(number):
                sides[side]()
            if round >= 3:
                best[side] = min(best[side], (time.thread_time() - start) / number)
    return tuple(best)


def calls(side, seconds):
    """How many calls take about so long."""
    side()
    start = time.thread_time()
    for _ in range(10):
        side()
    return max(1, min(2000, round(10 * seconds / max(time.thread_time() - start, 1e-7))))


def main():
    torch.set_num_threads(2)
    strided.set_num_threads(2)
    ours, theirs = make(strided), make(torch)
    chosen = [word for word in sys.argv[1:] if word[0] != "-"]
    for name in ours:
        if chosen and not any(word in name for word in chosen):
            continue
        row(name, *(least(ours[name], theirs[name]) if "--cpu" in sys.argv[1:] else pair(ours[name], theirs[name], number=calls(ours[name], 4e-3), rounds=11)))


if __name__ == "__main__":
    main()
