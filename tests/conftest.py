"""Settings and fixtures for all tests. Functions they call are in support.py."""

from __future__ import annotations

import pytest
from hypothesis import settings

from strided.kernels import jit, native
from support import safetensors_bytes

# A shared machine stalls now and then: no single example is given a time limit.
settings.register_profile("strided", deadline=None, print_blob=True)
settings.load_profile("strided")


@pytest.fixture
def make_file(tmp_path):
    """Write a safetensors file: make_file(header, data, name=…) → its path."""

    def make(header, data=b"", name="model.safetensors", length=None):
        path = tmp_path / name
        path.write_bytes(safetensors_bytes(header, data, length))
        return path

    return make


@pytest.fixture
def kernels_asked(monkeypatch):
    """The keys of the kernels that plans are made with from here on: what a call is computed by, whether its code is written now, known or read from disk."""
    asked = []
    compile_kernel = jit.compile_kernel
    monkeypatch.setattr(jit, "compile_kernel", lambda key, *given: asked.append(key) or compile_kernel(key, *given))
    native.clear_plans()
    return asked
