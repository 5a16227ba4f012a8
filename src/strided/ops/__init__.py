"""The operator table, filled: importing this package registers every family and puts the methods on Tensor.

`strided.ops.<name>` is the public function of an operator (nn and optim call operators through here).
"""
from . import elementwise, pointwise, table
from . import shape, create, reduce, moments, scan, rowwise, loss, index, scatter, masks, lookup, join, sort, matmul, attention, random, composite, legacy, special, gamma, polynomials, variants
from . import linalg
from .table import TABLE

table.install_methods()
globals().update({name: e.call for e in TABLE.values() if e.function for name in (e.name, *e.aliases)})
