"""`strided bench`: how close a few kinds of work come to what this machine can do, in some ten seconds and without any other library.

Holds the command and its rows; the limits are limits.py's. The long form, beside other libraries, is bench/all.py in the source tree.
"""
from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

ROUNDS = 7


class Work(NamedTuple):
    """A call to be timed, and what it needs of the machine: floating-point operations, bytes read, bytes read and written."""

    name: str
    call: Callable[[], Any]
    flops: float = 0
    reads: float = 0
    copies: float = 0


def main(words: Sequence[str]) -> int:
    """`strided bench [--threads N] [--json]`; its exit code."""
    parser = argparse.ArgumentParser(
        prog="strided bench",
        description="Measure what this machine can do (multiply-adds, bytes read, bytes copied) and how close products, row operators, attention and a training step "
        "come to it. Medians; the limits are measured between the rounds of each row, so that all meet the same clock.",
        epilog="`of limit` is the time that the row's multiply-adds and bytes take at the measured speeds, whichever is longer, as a share of the time it took.\n"
        "Small work (the training step, a small call) is bound by the calls themselves: it has no such limit.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--threads", type=int, help="threads that kernels use (default: all cores)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    chosen = parser.parse_args(words)
    import strided

    if chosen.threads is not None:
        if chosen.threads < 1:
            parser.error("--threads must be positive")
        strided.set_num_threads(chosen.threads)
    rows = []
    for row in measured():
        rows.append(row)
        if not chosen.json:
            _show(row, first=len(rows) == 1)
    if chosen.json:
        print(json.dumps({"threads": strided.get_num_threads(), "rows": rows}, indent=1))
    return 0


def measured() -> Iterator[dict[str, Any]]:
    """A dict a row, as it is measured: name, seconds, speed and its unit, share of the limit and its name (None for work without one)."""
    from . import limits

    big = 64 << 20
    machine = {"multiply-adds": limits.multiply_adds(), "read": limits.read(big), "copy": limits.copy(big)}
    for name, (call, amount) in machine.items():
        seconds = _times([call])[0]
        unit = "GFLOP/s" if name == "multiply-adds" else "GB/s"
        yield {"name": f"limit: {name}", "seconds": seconds, "speed": amount / seconds / 1e9, "unit": unit, "share": None, "limit": None}
    for work in works():
        needs = {"multiply-adds": work.flops, "read": work.reads, "copy": work.copies}
        names = [name for name, need in needs.items() if need]
        own, *theirs = _times([work.call, *(machine[name][0] for name in names)])
        needed = {name: needs[name] * seconds / machine[name][1] for name, seconds in zip(names, theirs)}
        held = max(needed, key=lambda name: needed[name], default=None)
        speed = (needs[held] / own / 1e9, "GFLOP/s" if held == "multiply-adds" else "GB/s") if held else (None, None)
        yield {"name": work.name, "seconds": own, "speed": speed[0], "unit": speed[1], "share": needed[held] / own if held else None, "limit": held}


def works() -> Iterator[Work]:
    """The rows, made one after the other: the operands of one are gone before the next."""
    import strided as torch

    F, n = torch.nn.functional, 1024
    a, b = torch.randn(n, n), torch.randn(n, n)
    yield Work("matmul, float32 1024 x 1024", lambda: a @ b, flops=2 * n**3)
    row, weight = torch.randn(1, 4096), torch.randn(4096, 4096)
    yield Work("matrix x vector, float32 4096 x 4096", lambda: F.linear(row, weight), reads=weight.nbytes)
    x = torch.randn(4096, 4096)
    yield Work("x + x, 64 MB", lambda: x + x, copies=2 * x.nbytes)
    yield Work("gelu, 64 MB", lambda: F.gelu(x), copies=2 * x.nbytes)
    yield Work("softmax, 64 MB", lambda: torch.softmax(x, -1), copies=2 * x.nbytes)
    yield Work("layer_norm, 64 MB", lambda: F.layer_norm(x, (4096,)), copies=2 * x.nbytes)
    q, k, v = (torch.randn(2, 8, 512, 64) for _ in range(3))
    scores = 2 * 8 * 512 * 512 / 2
    yield Work("attention, causal [2, 8, 512, 64]", lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), flops=4 * 64 * scores)
    logits, classes = torch.randn(512, 50257, requires_grad=True), torch.randint(0, 50257, (512,))

    def loss():
        logits.grad = None
        F.cross_entropy(logits, classes).backward()

    yield Work("cross_entropy 512 x 50257, forward + backward", loss, copies=3 * logits.nbytes)
    yield Work("training step, MLP 784-256-10, 64 rows", _training_step())
    s = torch.ones(4)
    yield Work("a + b of 4 elements", lambda: s + s)


def _training_step() -> Callable[[], Any]:
    import strided as torch

    nn = torch.nn
    net = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    update = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, classes = torch.randn(64, 784), torch.randint(0, 10, (64,))

    def step():
        update.zero_grad()
        nn.functional.cross_entropy(net(x), classes).backward()
        update.step()

    return step


def _times(calls: list[Callable[[], Any]]) -> list[float]:
    """Median seconds of each, in interleaved rounds of so many calls that the clock can see them."""
    inner = []
    for call in calls:
        call()  # compiles
        start = time.perf_counter()
        call()
        inner.append(max(1, round(2e-3 / max(time.perf_counter() - start, 1e-7))))
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, number, into in zip(calls, inner, times):
            start = time.perf_counter()
            for _ in range(number):
                call()
            into.append((time.perf_counter() - start) / number)
    return [statistics.median(t) for t in times]


def _show(row: dict[str, Any], first: bool) -> None:
    if first:
        import strided

        print(f"{strided.get_num_threads()} threads")
        print(f"{'':48}{'time':>12}{'speed':>18}{'of limit':>10}")
    seconds = row["seconds"]
    shown = f"{seconds * 1e9:.0f} ns" if seconds < 1e-5 else f"{seconds * 1e6:.0f} µs" if seconds < 1e-2 else f"{seconds * 1e3:.1f} ms"
    speed = f"{row['speed']:.1f} {row['unit']}" if row["unit"] else ""
    share = f"{row['share']:.0%}" if row["share"] is not None else ""
    print(f"{row['name']:48}{shown:>12}{speed:>18}{share:>10}  {row['limit'] or ''}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
