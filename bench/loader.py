"""DataLoader with workers: batches a second of 32 × [3, 224, 224] float32, ours and PyTorch's, each side in a process of its own.

    python bench/loader.py [--workers 2] [--batches 60] [--rounds 5]

A sample is made by one copy, so that what is measured is how batches travel from the workers. Rounds alternate; medians are printed.
"""
from __future__ import annotations

import argparse
import statistics
import subprocess
import sys

SIDE = """
import sys, time
if {ours}:
    from strided import torch_alias
    torch_alias.install()
import torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    image = torch.rand(3, 224, 224)
    def __len__(self): return {batches} * 32
    def __getitem__(self, i): return self.image.clone(), i % 1000

loader = DataLoader(Images(), batch_size=32, num_workers={workers})
total, start = 0.0, None
for i, (images, labels) in enumerate(loader):
    total += float(images[0, 0, 0, 0]) + int(labels[0])
    if i == 9: start = time.perf_counter()  # the first batches start the workers
print(({batches} - 10) / (time.perf_counter() - start))
"""


def rate(ours: bool, workers: int, batches: int) -> float:
    """Batches a second of one pass."""
    code = SIDE.format(ours=ours, workers=workers, batches=batches)
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    rates: dict[bool, list[float]] = {True: [], False: []}
    for i in range(given.rounds):
        for ours in (True, False) if i % 2 else (False, True):
            rates[ours].append(rate(ours, given.workers, given.batches))
    mine, theirs = (statistics.median(rates[side]) for side in (True, False))
    print(f"{given.workers} workers, 32 x [3, 224, 224] float32: {mine:.1f} batches/s here, {theirs:.1f} with PyTorch, ratio {mine / theirs:.2f}   floor 1.00")
    return 0 if mine >= theirs else 1


if __name__ == "__main__":
    sys.exit(main())
