"""One training step of a small network, in its parts: strided against PyTorch in one process.

    python bench/training_step.py [--threads 2] [--cpu]

A digit classifier (784-256-10, 64 rows), and the same of 8-16-10 with 4 rows, where overhead is everything. `--cpu` measures the calling
thread's processor time instead of the wall clock: for machines that others use, too. There, more than one thread tells little: threads that wait for
one that does not get a core spin.
"""
import argparse
import pathlib
import sys
import time

import torch

import strided

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from side_by_side import pair, row


def make(lib, inputs, hidden, rows, optimizer):
    lib.manual_seed(0)
    nn = lib.nn
    net = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, 10))
    update = optimizer(lib, net.parameters())
    x, classes = lib.randn(rows, inputs), lib.randint(0, 10, (rows,))

    def loss():
        return nn.functional.cross_entropy(net(x), classes)

    def gradients():
        update.zero_grad()
        loss().backward()

    def step():
        gradients()
        update.step()

    step()
    return {"forward": loss, "forward and backward": gradients, "optimizer.step": update.step, "whole step": step}


OPTIMIZERS = {
    "SGD": lambda lib, parameters: lib.optim.SGD(parameters, lr=1e-3),
    "SGD, momentum": lambda lib, parameters: lib.optim.SGD(parameters, lr=1e-3, momentum=0.9),
    "AdamW": lambda lib, parameters: lib.optim.AdamW(parameters, lr=1e-3),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cpu", action="store_true", help="processor time of the calling thread")
    options = parser.parse_args()
    clock = time.thread_time if options.cpu else time.perf_counter
    torch.set_num_threads(options.threads)
    strided.set_num_threads(options.threads)
    for sizes in ((784, 256, 64), (8, 16, 4)):
        for optimizer, made in OPTIMIZERS.items():
            ours, theirs = (make(lib, *sizes, made) for lib in (strided, torch))
            for part in ours:
                name = f"{sizes[0]}-{sizes[1]}-10, {sizes[2]} rows, {optimizer}: {part}"
                row(f"{name:64}", *pair(ours[part], theirs[part], number=100, rounds=9, clock=clock), unit=1e6, suffix="µs")


if __name__ == "__main__":
    main()
