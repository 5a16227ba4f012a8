"""Gradients of weights that a graph uses several times with a few rows each, as a loop over time does: one product over the rows of all uses, instead of a product and a sum a use.

Whether they may wait, and when they are made after all, is the engine's business (`wait` in autograd/engine.py); the nodes of products ask here.
"""
from __future__ import annotations

from ..tensor import Tensor
from .table import TABLE

MOST_ROWS = 256  # of one use: products of more rows are as good one by one
WAITING_ROWS = 1024  # of all uses that wait, which bounds what is held for them


def gathered(run, node, g: Tensor, x: Tensor) -> bool:
    """Whether the gradients of a linear layer's weight [out, in] and bias [out], last and first input of the node, are made later, with those of other uses. g [rows, out], x [rows, in]."""
    edges = node.edges
    weight, bias = edges[-1], edges[0] if len(edges) == 3 else None
    waiting = run.waiting.get(weight[0])
    if waiting is None:
        waiting = _begun(run, node, weight, bias, g, x)
        if waiting is None:
            return False
    elif waiting.function is not _of_linear or waiting.targets[1] is not (None if bias is None else bias[0]):
        return False
    if x._tracked and x._node is None:  # a leaf may be written before the pass is over
        return False
    waiting.items.append((g, x))
    if len(waiting.items) >= waiting.most:
        run.settle(waiting)
    return True


def _begun(run, node, weight, bias, g: Tensor, x: Tensor):
    rows = g.spec.shape[0]
    if len(weight) == 2 or x.spec.ndim != 2 or not 0 < rows <= MOST_ROWS or bias is not None and (len(bias) == 2 or node.shape != g.spec.shape[1:]):
        return None
    return run.wait(_of_linear, (weight[0], None if bias is None else bias[0]), max(2, WAITING_ROWS // rows))


def _of_linear(uses: list) -> tuple[Tensor, Tensor]:
    """g.T @ x over the rows of all uses, and the sum of g's rows: [out, in], [out]."""
    g, x = (TABLE["cat"].call(side) for side in zip(*uses))
    return TABLE["matmul"].call(g.t(), x), TABLE["sum"].call(g, 0)
