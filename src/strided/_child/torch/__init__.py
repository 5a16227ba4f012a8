"""Stands for `torch` in processes that a script under `strided run` starts: installs the alias and gives way to it.

The folder above is put on PYTHONPATH by torch_alias.inherit(). Where the child's Python has no strided, PyTorch is what it asked for.
"""

import importlib
import importlib.util
import os
import sys

del sys.modules["torch"]
if importlib.util.find_spec("strided") is not None:
    importlib.import_module("strided.torch_alias").install()
else:
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    importlib.import_module("torch")
