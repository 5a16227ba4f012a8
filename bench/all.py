"""Every row of the promised figures, beside whichever peers are installed, with the machine's limits measured in the same run. One command:

    python bench/all.py                        # everything, with one thread and with all: some twenty minutes
    python bench/all.py --quick                # a few rows of each group: a minute or two
    python bench/all.py --rows attention,loss  # groups, or parts of rows' names
    python bench/all.py --threads 2 --peers torch,numpy --json out.json --html out.html

Sides are interleaved (side_by_side.py): every round measures strided, each peer and the limit once, so that all meet the same clock and the same
neighbours; figures are medians. Each thread count has a process of its own that may use as many cores, without anybody's settings for threads in its
environment. On a machine that others use, `--cpu` counts one thread's processor time. `of limit` is the time that the row's multiply-adds and bytes would
take at the measured speeds, whichever is longer, as a share of the time it took. `ratio` is the best peer's time over ours (the named one's where the floor is about it).
Writes JSON and a page with a chart.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import platform
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

SETTINGS = ("OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE", "OPENBLAS_MAIN_FREE", "GOTO_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS", "OMP_WAIT_POLICY")
CACHED = 1 << 20  # bytes up to which a row works in the caches, where no limit is measured


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="a few rows of each group, all threads only")
    options.add_argument("--rows", default="", help="groups or parts of names, by commas")
    options.add_argument("--threads", type=int, action="append", help="thread counts (default: 1 and all)")
    options.add_argument("--peers", default="", help="names, by commas (default: all that are installed)")
    options.add_argument("--seconds", type=float, default=0.4, help="about how long each side of a row is measured")
    options.add_argument("--cpu", action="store_true", help="processor time of one thread instead of the wall clock: for machines that others use, too")
    options.add_argument("--compile-everything", action="store_true", help="torch.compile beside every row, not only the compiled ones")
    options.add_argument("--json", type=pathlib.Path, default=pathlib.Path("bench.json"))
    options.add_argument("--html", type=pathlib.Path, default=pathlib.Path("bench.html"))
    options.add_argument("--markdown", type=pathlib.Path, help="write the tables as Markdown, too")
    options.add_argument("--child", type=int, help=argparse.SUPPRESS)  # the process that measures with so many threads
    chosen = options.parse_args()
    if chosen.child:
        return child(chosen)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if chosen.cpu and chosen.threads not in (None, [1]):
        options.error("--cpu measures the calling thread: it goes with one thread")
    report = {"machine": machine(), "time": time.strftime("%Y-%m-%d %H:%M:%S"), "runs": []}
    for threads in chosen.threads or ([1] if chosen.cpu else [cores] if chosen.quick else sorted({1, cores})):
        report["runs"].append(measure(threads, cores))
    chosen.json.write_text(json.dumps(report, indent=1))
    import chart

    chosen.html.write_text(chart.page(report), encoding="utf-8")
    if chosen.markdown:
        chosen.markdown.write_text(chart.markdown(report), encoding="utf-8")
    print(f"\n{chosen.json} and {chosen.html} written")


def machine() -> dict:
    name = platform.processor() or platform.machine()
    try:
        name = next(line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"processor": name, "system": f"{platform.system()} {platform.machine()}", "python": platform.python_version()}


def measure(threads: int, cores: int) -> dict:
    """Runs the child with so many threads on as many cores, printing its rows as they come."""
    env = {k: v for k, v in os.environ.items() if k not in SETTINGS}
    command = [sys.executable, __file__, *sys.argv[1:], "--child", str(threads)]
    limited = (lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])) if hasattr(os, "sched_setaffinity") and threads < cores else None
    run = {"threads": threads, "rows": [], "growth": [], "peers": {}, "missing": {}}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=limited) as process:
        assert process.stdout is not None
        for line in process.stdout:
            kind, _, text = line.partition(" ")
            if kind not in ("ROW", "GROWTH", "PEERS", "NOTE"):
                continue
            value = json.loads(text)
            if kind == "ROW":
                run["rows"].append(value)
                print(line_of(value), flush=True)
            elif kind == "GROWTH":
                run["growth"].append(value)
                print(f"  {value['name']:58} exponent {value['exponent']:.3f}", flush=True)
            elif kind == "PEERS":
                run.update(value)
                print(f"\n{threads} thread{'s' * (threads > 1)}, beside {', '.join(f'{n} {v}' for n, v in value['peers'].items()) or 'nobody'}")
                for name, why in value["missing"].items():
                    print(f"  {name}: skipped, {why}")
                print(f"  {'':58} {'strided':>11} {'best peer':>22} {'ratio':>7} {'floor':>6} {'of limit':>9} {'floor':>6}", flush=True)
            else:
                print(f"  {value}", file=sys.stderr, flush=True)
    if process.returncode:
        raise SystemExit(f"the measuring process ended with {process.returncode}")
    return run


def line_of(row: dict) -> str:
    """A row of the printed table; ! marks what misses its floor."""
    best = f"{row['best']} {_time(row['times'][row['best']])}" if row["best"] else "-"
    ratio = f"{row['ratio']:6.2f}{' !'[row['ratio'] < (row['ratio_floor'] or 0)]}" if row["ratio"] else "-"
    share = f"{row['share']:8.0%}{' !'[row['share'] < (row['share_floor'] or 0)]}" if row["share"] else "-"
    floors = [f"{row['ratio_floor']:.2f}" if row["ratio_floor"] else "", f"{row['share_floor']:.0%}" if row["share_floor"] else ""]
    return f"  {row['group'] + ': ' + row['name']:58.58} {_time(row['times']['strided']):>11} {best:>22} {ratio:>7} {floors[0]:>6} {share:>9} {floors[1]:>6}  {row['held']}"


def _time(seconds: float) -> str:
    return f"{seconds * 1e9:.0f} ns" if seconds < 1e-5 else f"{seconds * 1e6:.0f} µs" if seconds < 1e-2 else f"{seconds * 1e3:.1f} ms"


# ---- the process that measures ----------------------------------------------------------------------------------------------


def tell(kind: str, value) -> None:
    print(kind, json.dumps(value), flush=True)


def child(chosen) -> None:
    import peers
    import rows

    import strided
    from strided.lens import limits

    threads = chosen.child
    strided.set_num_threads(threads)
    there, missing = peers.available(threads, set(filter(None, chosen.peers.split(","))), chosen.compile_everything)
    tell("PEERS", {"peers": {p.name: p.version for p in there}, "missing": missing, "strided": strided.__version__})
    wanted = [w for w in chosen.rows.split(",") if w]
    picked = lambda key: any(w in key for w in wanted) if wanted else True
    for row in rows.rows():
        if not picked(row.key) or (chosen.quick and not row.quick and not wanted):
            continue
        try:
            tell("ROW", one(row, there, strided, limits, threads, chosen.seconds, time.thread_time if chosen.cpu else time.perf_counter))
        except Exception as error:
            tell("NOTE", f"{row.key}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    if threads > 1 and not chosen.quick and picked("start"):
        start(strided)
    if not chosen.quick or "growth" in wanted:
        for name, (scales, make) in rows.growth().items():
            if picked(f"growth: {name}"):
                tell("GROWTH", growth(name, scales, make, strided, chosen.seconds, time.thread_time if chosen.cpu else time.perf_counter))


def one(row, there, strided, limits, threads: int, seconds: float, clock) -> dict:
    """Measures a row: strided, every peer that has it, and the kernels of its limits."""
    from side_by_side import PAUSE, several

    calls, notes = {"strided": row.make(strided)}, []
    for peer in there:
        try:
            call = peer.call(row)
            if call is not None:
                call()
                calls[peer.name] = call
        except Exception as error:
            notes.append(f"{peer.name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    machine, amounts = {}, {}
    low = str(row.settings.get("dtype", "")) == "bfloat16"
    if row.flops and not (low and _matrix_units()):
        machine["multiply-adds"], amounts["multiply-adds"] = limits.multiply_adds(threads=threads)
    if row.reads > CACHED:
        machine["read"], amounts["read"] = limits.read(int(row.reads), threads)
    if row.copies > CACHED:
        machine["copy"], amounts["copy"] = limits.copy(int(row.copies) // 2, threads)
    times = several({**calls, **machine}, seconds=seconds, clock=clock, pause=PAUSE if threads > 1 else 0.0)
    work = {"multiply-adds": row.flops, "read": row.reads, "copy": row.copies}
    needed = {name: work[name] / (amounts[name] / times[name]) for name in machine}
    if "read" in needed and "copy" in needed:  # one after the other
        needed["memory"] = needed.pop("read") + needed.pop("copy")
    held = max(needed, key=needed.__getitem__, default="")
    names = [p.name for p in there if p.name in calls and (not row.against or p.name == row.against)]
    best = min(names, key=times.__getitem__, default="")
    speeds = {name: amounts[name] / times[name] / 1e9 for name in machine}
    return {
        "group": row.group, "name": row.name, "times": {n: times[n] for n in calls}, "best": best, "ratio": times[best] / times["strided"] if best else None,
        "ratio_floor": row.ratio, "share": needed[held] / times["strided"] if held else None, "share_floor": None if row.reads and held == "multiply-adds" else row.share,
        "held": held, "limits": speeds, "notes": notes,
    }  # fmt: skip


def _matrix_units() -> bool:
    """Whether the host multiplies bfloat16 faster than float32: the peak of multiply-adds is then no limit of such rows."""
    from strided.kernels import jit

    return bool({"+avx512bf16", "+amx-bf16", "+bf16"} & jit.host().features)


def start(strided) -> None:
    """The attention example as a whole process with an empty code cache, beside PyTorch's process, where PyTorch is installed."""
    import importlib.util
    import tempfile

    from side_by_side import pair

    if importlib.util.find_spec("torch") is None:
        return
    example = str(pathlib.Path(__file__).resolve().parent.parent / "examples" / "attention.py")
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "STRIDED_CACHE_DIR": folder}

        def ours():
            for entry in pathlib.Path(folder).iterdir():
                entry.unlink()
            subprocess.run([sys.executable, "-m", "strided", "run", example], check=True, stdout=subprocess.DEVNULL, env=env)

        mine, other = pair(ours, lambda: subprocess.run([sys.executable, example], check=True, stdout=subprocess.DEVNULL), rounds=5, warm=1)
    tell("ROW", {"group": "start", "name": "examples/attention.py, empty code cache", "times": {"strided": mine, "torch": other}, "best": "torch", "ratio": other / mine,
                 "ratio_floor": 1 / 1.5, "share": None, "share_floor": None, "held": "", "limits": {}, "notes": []})  # fmt: skip


def growth(name, scales, make, strided, seconds, clock) -> dict:
    """How the time grows with the work: the slope of log time over log work, 1 where twice the work takes twice the time."""
    from side_by_side import several

    times = [several({"strided": make(strided, scale)}, seconds=seconds / 2, clock=clock)["strided"] for scale in scales]
    xs, ys = [math.log(s) for s in scales], [math.log(t) for t in times]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)
    return {"name": name, "scales": scales, "times": times, "exponent": slope, "floor": 0.05}


if __name__ == "__main__":
    main()
