"""The operator table, filled: importing this package registers every family and puts the methods on Tensor.

`strided.ops.<name>` is the public function of an operator (nn and optim call operators through here).
"""
import importlib as _importlib
import importlib.util as _util

from . import elementwise, pointwise, table  # noqa: F401
from .table import TABLE  # noqa: F401

_FAMILIES = (
    "shape", "create", "reduce", "scan", "rowwise", "loss", "index", "scatter", "masks", "lookup", "join", "sort", "matmul", "attention", "random",
)  # fmt: skip
for _family in _FAMILIES:
    if _util.find_spec(f"{__name__}.{_family}"):
        _importlib.import_module(f"{__name__}.{_family}")

table.install_methods()
globals().update({name: e.call for e in TABLE.values() if e.function for name in (e.name, *e.aliases)})
