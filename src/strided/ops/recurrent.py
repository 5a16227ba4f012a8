"""A layer of a recurrent network over a whole sequence as one operator: one kernel for all steps, and products for the weights' gradients at the end.

Holds `lstm_layer`, `gru_layer` and `rnn_layer` for float32 and float64. Modules, their layers, directions and packed sequences are nn/modules/rnn.py's, the
kernels kernels/recurrent.py's.
"""
from __future__ import annotations

from ..autograd import backward, enable_grad, record, tracking
from ..autograd.engine import grad as gradients_of
from ..dispatch import PlanCache, launch
from ..kernels.native import new_storage
from ..kernels.recurrent import CELLS, DTYPES, build_layer
from ..layout import Layout
from ..tensor import Spec, Tensor, empty_of
from .folding import plain
from .matmul import matmul
from .onlooking import seen_as
from .table import TABLE, operator

_plans = PlanCache()


def _plan(*key) -> tuple:
    return _plans.get(key) or _plans.put(key, build_layer(*key))


def _fresh(like: Tensor, *shape: int) -> Tensor:
    return empty_of(Spec.of(Layout.contiguous(shape), like.dtype, like.device))


def _pointer(t: Tensor | None) -> int:
    return 0 if t is None else t.ptr


def _forward(mode: str, x, h0, c0, weight, bias, reverse: bool) -> tuple:
    """(outputs [L, N, H], cells [L, N, H] or None, saved [L, N, 4, H] or None), unrecorded. Where no gradient will ask for them, steps share one place for what is saved."""
    keep = tracking(x, h0, weight, *(t for t in (c0, bias) if t is not None))
    x, h, c, w, b = (None if t is None else plain(t).contiguous() for t in (x, h0, c0, weight, bias))
    steps, rows, width = x.shape
    hidden = width // CELLS[mode].gates
    out = _fresh(x, steps, rows, hidden)
    cells = None if c is None else _fresh(x, steps, rows, hidden)
    saved = _fresh(x, steps if keep else 1, rows, 4, hidden) if mode in ("lstm", "gru") else None
    if not x.is_meta:
        descriptor, scratch = _plan(mode, False, x.dtype, steps, rows, hidden, bool(reverse), keep)
        room = new_storage(scratch)
        launch(descriptor, out.ptr, _pointer(cells), _pointer(saved), x.ptr, h.ptr, _pointer(c), _pointer(b), w.ptr, room.data)
    return out, cells, saved


def _backward(mode: str, node, x, h0, c0, weight, out, d_out, d_h, d_c) -> tuple:
    """(gradients of x, of the products with the state, of h0, of c0)."""
    steps, rows, width = x.shape
    hidden = width // CELLS[mode].gates
    start = lambda g: TABLE["new_zeros"].call(x, (rows, hidden)) if g is None else TABLE["clone"].call(plain(g).contiguous())  # written by the kernel
    d_h, d_c = start(d_h), None if c0 is None else start(d_c)
    d_out = TABLE["new_zeros"].call(x, (hidden,)).expand(steps, rows, hidden) if d_out is None else plain(d_out)
    if hidden > 1 and d_out.stride(2) != 1:  # of the same number everywhere, as a sum's gradient is, one row is enough
        d_out = d_out.contiguous() if any(d_out.stride()) or not rows else d_out[0, 0].contiguous().expand(steps, rows, hidden)
    d_x = _fresh(x, steps, rows, width)
    d_p = _fresh(x, steps, rows, width) if mode == "gru" else d_x
    h, c, w = (None if t is None else plain(t).contiguous() for t in (h0, c0, weight))
    descriptor, scratch = _plan(mode, True, x.dtype, steps, rows, hidden, bool(node.reverse), True, d_out.stride()[:2])
    room = new_storage(scratch)
    made = out.ptr, _pointer(node.cells), _pointer(node.saved_gates)
    launch(descriptor, d_x.ptr, d_p.ptr, d_h.ptr, _pointer(d_c), *made, d_out.ptr, h.ptr, _pointer(c), w.ptr, room.data)
    return d_x, d_p, d_h, d_c


def _weight_gradient(node, d_p, h0, out):
    """[gates·H, H]: the products' gradients times the states that they were taken with."""
    before = TABLE["cat"].call([out[1:], h0.unsqueeze(0)] if node.reverse else [h0.unsqueeze(0), out[:-1]], 0)  # [L, N, H]
    return matmul(d_p.flatten(0, 1).t(), before.flatten(0, 1))


def _flops(gates: int, extra: int):
    """Of each step: the product and its sum, and `extra` an element for the cell."""

    def count(args, kwargs, result) -> int:
        steps, rows, width = args[0].shape
        hidden = width // gates
        return steps * rows * (2 * hidden * width + width + extra * hidden)

    return count


def _back_flops(gates: int, extra: int, weight: int):
    """Of a node whose input number `weight` is the weight: each step's product with it, the weight's gradient, and `extra` an element for the cell."""

    def count(node, *grads) -> int:
        steps, rows, width = node.saved[0].shape
        hidden = width // gates
        return steps * rows * (2 * hidden * width * (1 + node.needs[weight]) + extra * hidden)

    return count


@operator("lstm_layer", function=False, method=False, flops=_flops(4, 17))  # three sigmoids of 3, two tanh, four products and a sum, …
def lstm_layer(x_gates, h0, c0, weight, reverse=False):
    """([L, N, H] of outputs, h, c [N, H]) from the input's share of the gates [L, N, 4H] (input, forget, cell, output; all biases in), states [N, H], weight [4H, H].

    reverse: from the last step to the first; outputs stand at their own steps. float32 or float64, one dtype for all.
    """
    out, cells, saved = _forward("lstm", x_gates, h0, c0, weight, None, reverse)
    last = 0 if reverse else x_gates.shape[0] - 1
    h_n, c_n = (TABLE["clone"].call(s[last]) for s in (out, cells))
    if tracking(x_gates, h0, c0, weight):
        kept = (x_gates, h0, c0, weight, out)
        record(LstmLayerBackward0, kept[:4], (out, h_n, c_n), kept, saved_gates=saved, cells=cells, reverse=reverse)
    return out, h_n, c_n


@backward("LstmLayer", skips_undefined=True)
@seen_as("lstm_layer_backward", _back_flops(4, 24, 3))  # each gate: its product and the slope of its curve; the cell: two products and a sum
def LstmLayerBackward0(node, d_out, d_h, d_c):
    x_gates, h0, c0, weight, out = node.saved
    if tracking(x_gates, h0, c0, weight, *(g for g in (d_out, d_h, d_c) if g is not None)):
        return _again(node, _lstm_steps, (x_gates, h0, c0, weight), (d_out, d_h, d_c))
    d_x, d_p, d_h, d_c = _backward("lstm", node, x_gates, h0, c0, weight, out, d_out, d_h, d_c)
    return d_x, d_h, d_c, _weight_gradient(node, d_p, h0, out) if node.needs[3] else None


@operator("gru_layer", function=False, method=False, flops=_flops(3, 13))
def gru_layer(x_gates, h0, weight, bias, reverse=False):
    """([L, N, H] of outputs, h [N, H]) from the input's share of the gates [L, N, 3H] (reset, update, new; its bias in), h0 [N, H], weight [3H, H], bias [3H].

    The bias belongs to the product with the state. reverse and dtypes as of `lstm_layer`.
    """
    out, _, saved = _forward("gru", x_gates, h0, None, weight, bias, reverse)
    h_n = TABLE["clone"].call(out[0 if reverse else x_gates.shape[0] - 1])
    if tracking(x_gates, h0, weight, bias):
        kept = (x_gates, h0, weight, bias, out)
        record(GruLayerBackward0, kept[:4], (out, h_n), kept, saved_gates=saved, cells=None, reverse=reverse)
    return out, h_n


@backward("GruLayer", skips_undefined=True)
@seen_as("gru_layer_backward", _back_flops(3, 17, 2))
def GruLayerBackward0(node, d_out, d_h):
    x_gates, h0, weight, bias, out = node.saved
    if tracking(x_gates, h0, weight, bias, *(g for g in (d_out, d_h) if g is not None)):
        return _again(node, _gru_steps, (x_gates, h0, weight, bias), (d_out, d_h))
    d_x, d_p, d_h, _ = _backward("gru", node, x_gates, h0, None, weight, out, d_out, d_h, None)
    return d_x, d_h, _weight_gradient(node, d_p, h0, out) if node.needs[2] else None, d_p.sum((0, 1)) if node.needs[3] else None


@operator("rnn_layer", function=False, method=False, flops=_flops(1, 1))
def rnn_layer(x_gates, h0, weight, nonlinearity="tanh", reverse=False):
    """([L, N, H] of outputs, h [N, H]) of h' = tanh (or relu) of x_gates [L, N, H] (all biases in) + weight [H, H] @ h. reverse and dtypes as of `lstm_layer`."""
    out, _, _ = _forward(nonlinearity, x_gates, h0, None, weight, None, reverse)
    h_n = TABLE["clone"].call(out[0 if reverse else x_gates.shape[0] - 1])
    if tracking(x_gates, h0, weight):
        kept = (x_gates, h0, weight, out)
        record(RnnLayerBackward0, kept[:3], (out, h_n), kept, saved_gates=None, cells=None, reverse=reverse, nonlinearity=nonlinearity)
    return out, h_n


@backward("RnnLayer", skips_undefined=True)
@seen_as("rnn_layer_backward", _back_flops(1, 4, 2))
def RnnLayerBackward0(node, d_out, d_h):
    x_gates, h0, weight, out = node.saved
    if tracking(x_gates, h0, weight, *(g for g in (d_out, d_h) if g is not None)):
        return _again(node, _rnn_steps(node.nonlinearity), (x_gates, h0, weight), (d_out, d_h))
    d_x, d_p, d_h, _ = _backward(node.nonlinearity, node, x_gates, h0, None, weight, out, d_out, d_h, None)
    return d_x, d_h, _weight_gradient(node, d_p, h0, out) if node.needs[2] else None


# ---- through operators, so that the gradient has a gradient -----------------------------------------------------------------------


def _again(node, run, inputs, grads):
    """The layer's gradients with a graph of their own: run(reverse, inputs…) is the layer step by step."""
    with enable_grad():
        results = run(node.reverse, *inputs)
        pairs = [(r, g) for r, g in zip(results, grads) if g is not None]
        wanted = [t for t, needed in zip(inputs, node.needs) if needed]
        found = iter(gradients_of([r for r, _ in pairs], wanted, [g for _, g in pairs], create_graph=True, allow_unused=True))
    return tuple(next(found) if needed else None for needed in node.needs)


def _order(steps: int, reverse: bool):
    return reversed(range(steps)) if reverse else range(steps)


def _lstm_steps(reverse, x_gates, h, c, weight):
    outs = [None] * x_gates.shape[0]
    for t in _order(len(outs), reverse):
        i, f, g, o = (x_gates[t] + matmul(h, weight.t())).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        outs[t] = h = o.sigmoid() * c.tanh()
    return TABLE["stack"].call(outs, 0), h, c


def _gru_steps(reverse, x_gates, h, weight, bias):
    outs = [None] * x_gates.shape[0]
    for t in _order(len(outs), reverse):
        (xr, xz, xn), (hr, hz, hn) = (gates.chunk(3, -1) for gates in (x_gates[t], matmul(h, weight.t()) + bias))
        n = (xn + (xr + hr).sigmoid() * hn).tanh()
        outs[t] = h = n + (xz + hz).sigmoid() * (h - n)
    return TABLE["stack"].call(outs, 0), h


def _rnn_steps(nonlinearity):
    def run(reverse, x_gates, h, weight):
        outs = [None] * x_gates.shape[0]
        for t in _order(len(outs), reverse):
            outs[t] = h = getattr(x_gates[t] + matmul(h, weight.t()), nonlinearity)()
        return TABLE["stack"].call(outs, 0), h

    return run


def applies(*tensors: Tensor) -> bool:
    """Whether the layers here take these: one dtype of their two."""
    return len({t.dtype for t in tensors}) == 1 and tensors[0].dtype.name in DTYPES
