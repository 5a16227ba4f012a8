"""Stands for `safetensors` in processes that a script under `strided run` starts: installs the alias, whose `safetensors` it becomes. See ../torch."""

import importlib
import importlib.util
import os
import sys

del sys.modules["safetensors"]
if importlib.util.find_spec("strided") is not None:
    importlib.import_module("strided.torch_alias").install()
else:
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
importlib.import_module("safetensors")
