"""A layer of an LSTM over a whole sequence as one operator: a product and one kernel a step, and the products with the weights' gradients at the end.

Holds `lstm_layer` for float32 and float64. The module, its layers, directions and packed sequences are nn/modules/rnn.py's.
"""
from __future__ import annotations

from ..autograd import backward, enable_grad, record, tracking
from ..autograd.engine import grad as gradients_of
from ..dispatch import PlanCache, launch
from ..kernels import expr as E
from ..kernels.map import build_map
from ..kernels.matmul import build_matmul
from ..layout import Layout
from ..tensor import Spec, Tensor, empty_of
from .folding import plain
from .matmul import matmul
from .table import TABLE, operator


def _step_forward(i, f, g, o, c):
    """Of one element's gates before activation and its cell: the gates after it, the new cell and the output."""
    i, f, g, o = E.sigmoid(i), E.sigmoid(f), E.tanh(g), E.sigmoid(o)
    new = f * c + i * g
    return i, f, g, o, new, o * E.tanh(new)


def _step_backward(i, f, g, o, c, new, dh_out, dh_next, dc):
    """Gradients of the gates before activation and of the cell before, from those of the output (its own and the next step's) and of the new cell."""
    dh = dh_out + dh_next
    t = E.tanh(new)
    dc = dc + dh * o * (1 - t * t)
    return dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g * g), dh * t * o * (1 - o), dc * f


_FORWARD, _BACKWARD = E.trace(_step_forward, 5), E.trace(_step_backward, 9)
_plans = PlanCache()


def _kernels(rows: int, hidden: int, spec: Spec) -> tuple:
    """(product forward, step forward, product backward, step backward) for one step of [rows, hidden]."""
    key = rows, hidden, spec.dtype
    found = _plans.get(key)
    if found is None:
        dtype = spec.dtype
        gates, state = Layout.contiguous((rows, 4 * hidden)), Layout.contiguous((rows, hidden))
        quarter = Layout.of((rows, hidden), (4 * hidden, 1))
        weight = Layout.contiguous((4 * hidden, hidden))
        g, s = (dtype, quarter), (dtype, state)
        found = _plans.put(key, (
            build_matmul((dtype, gates), (dtype, state), (dtype, weight.transpose(0, 1)), (dtype, gates)),
            build_map(_FORWARD, [g, g, g, g, s, s], [g, g, g, g, s]),
            build_matmul((dtype, state), (dtype, gates), (dtype, weight)),
            build_map(_BACKWARD, [g, g, g, g, s], [g, g, g, g, s, s, s, s, s]),
        ))  # fmt: skip
    return found


def _flops(args, kwargs, result) -> int:
    steps, rows, width = args[0].shape
    hidden = width // 4
    return steps * rows * (2 * hidden * width + width + 17 * hidden)  # the product and its sum; three sigmoids of 3, two tanh, four products and a sum, …


@operator("lstm_layer", function=False, method=False, flops=_flops)
def lstm_layer(x_gates, h0, c0, weight, reverse=False):
    """([L, N, H] of outputs, h, c [N, H]) from the input's share of the gates [L, N, 4H] (input, forget, cell, output; all biases in), states [N, H], weight [4H, H].

    reverse: from the last step to the first; outputs stand at their own steps. float32 or float64, one dtype for all.
    """
    steps, rows, width = x_gates.shape
    hidden, size = width // 4, x_gates.itemsize
    x, h, c, w = (plain(t).contiguous() for t in (x_gates, h0, c0, weight))
    spec = lambda *shape: Spec.of(Layout.contiguous(shape), x.dtype, x.device)
    gates, cells, out = empty_of(spec(steps, rows, width)), empty_of(spec(steps, rows, hidden)), empty_of(spec(steps, rows, hidden))
    if not x.is_meta:
        product, step, *_ = _kernels(rows, hidden, x.spec)
        before_h, before_c = h.ptr, c.ptr
        for t in reversed(range(steps)) if reverse else range(steps):
            here, there = gates.ptr + t * rows * width * size, t * rows * hidden * size
            launch(product, here, before_h, w.ptr, x.ptr + t * rows * width * size, 1.0, 1.0)
            parts = [here + k * hidden * size for k in range(4)]
            launch(step, *parts, cells.ptr + there, out.ptr + there, *parts, before_c)
            before_h, before_c = out.ptr + there, cells.ptr + there
    last = 0 if reverse else steps - 1
    h_n, c_n = (TABLE["clone"].call(s[last]) for s in (out, cells))
    if tracking(x_gates, h0, c0, weight):
        record(LstmLayerBackward0, (x_gates, h0, c0, weight), (out, h_n, c_n), (x_gates, h0, c0, weight, out), gates=gates, cells=cells, reverse=reverse)
    return out, h_n, c_n


@backward("LstmLayer", skips_undefined=True)
def LstmLayerBackward0(node, d_out, d_h, d_c):
    x_gates, h0, c0, weight, out = node.saved
    if tracking(x_gates, h0, c0, weight, *(g for g in (d_out, d_h, d_c) if g is not None)):
        return _again(node, (x_gates, h0, c0, weight), (d_out, d_h, d_c))
    steps, rows, width = x_gates.shape
    hidden, size = width // 4, x_gates.itemsize
    zeros = lambda *shape: TABLE["new_zeros"].call(x_gates, shape)
    d_out = zeros(steps, rows, hidden) if d_out is None else d_out.contiguous()
    d_h = zeros(rows, hidden) if d_h is None else d_h.clone()
    d_c = zeros(rows, hidden) if d_c is None else d_c.clone()
    d_h, d_c = d_h.contiguous(), d_c.contiguous()
    d_gates = empty_of(x_gates.spec if x_gates.is_contiguous() else x_gates.spec.with_layout(Layout.contiguous(x_gates.shape)))
    h, c, w = (plain(t).contiguous() for t in (h0, c0, weight))
    _, _, product, step = _kernels(rows, hidden, x_gates.spec)
    order = list(range(steps)) if node.reverse else list(reversed(range(steps)))  # against the order of the forward pass
    for number, t in enumerate(order):
        there = t * rows * hidden * size
        cell_before = c.ptr if number == steps - 1 else node.cells.ptr + order[number + 1] * rows * hidden * size
        acts = [node.gates.ptr + t * rows * width * size + k * hidden * size for k in range(4)]
        here = d_gates.ptr + t * rows * width * size
        parts = [here + k * hidden * size for k in range(4)]
        launch(step, *parts, d_c.ptr, *acts, cell_before, node.cells.ptr + there, d_out.ptr + there, d_h.ptr, d_c.ptr)
        launch(product, d_h.ptr, here, w.ptr)
    d_weight = None
    if node.needs[3]:
        flat = d_gates.view(steps * rows, width)  # [L·N, 4H]
        before = TABLE["cat"].call([out[1:], h.unsqueeze(0)] if node.reverse else [h.unsqueeze(0), out[:-1]], 0)  # [L, N, H]
        d_weight = matmul(flat.t(), before.reshape(steps * rows, hidden))
    return d_gates, d_h, d_c, d_weight


def _again(node, inputs, grads):
    """The same through operators, so that the gradient has a gradient."""
    with enable_grad():
        x_gates, h, c, weight = inputs
        steps, outs = x_gates.shape[0], [None] * x_gates.shape[0]
        for t in reversed(range(steps)) if node.reverse else range(steps):
            i, f, g, o = (x_gates[t] + matmul(h, weight.t())).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            outs[t] = h = o.sigmoid() * c.tanh()
        results = TABLE["stack"].call(outs, 0), h, c
        pairs = [(r, g) for r, g in zip(results, grads) if g is not None]
        wanted = [t for t, needed in zip(inputs, node.needs) if needed]
        found = iter(gradients_of([r for r, _ in pairs], wanted, [g for _, g in pairs], create_graph=True, allow_unused=True))
    return tuple(next(found) if needed else None for needed in node.needs)


def applies(*tensors: Tensor) -> bool:
    """Whether `lstm_layer` takes these: one dtype of its two, on the CPU."""
    return len({t.dtype for t in tensors}) == 1 and tensors[0].dtype.name in ("float32", "float64")
