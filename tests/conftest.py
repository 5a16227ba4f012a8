"""Settings and fixtures for all tests. Functions they call are in support.py."""

from __future__ import annotations

import pytest
from hypothesis import settings

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
