"""Layers of recurrent networks as one operator each: values by its own definition step by step, gradients by differences, both directions, second derivatives."""

import pytest

import strided as torch
from strided import nn
from strided.ops.recurrent import gru_layer, lstm_layer, rnn_layer


def by_steps(x_gates, h, c, weight, reverse):
    outs = [None] * len(x_gates)
    for t in reversed(range(len(x_gates))) if reverse else range(len(x_gates)):
        i, f, g, o = (x_gates[t] + h @ weight.t()).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        outs[t] = h = o.sigmoid() * c.tanh()
    return torch.stack(outs), h, c


def operands(dtype=torch.float64, steps=5, rows=3, hidden=4):
    torch.manual_seed(0)
    shapes = (steps, rows, 4 * hidden), (rows, hidden), (rows, hidden), (4 * hidden, hidden)
    return [torch.randn(*shape, dtype=dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
def test_values_and_gradients(dtype, tolerance, reverse):
    mine, theirs = operands(dtype), operands(dtype)
    grads = [torch.randn(5, 3, 4, dtype=dtype), torch.randn(3, 4, dtype=dtype), torch.randn(3, 4, dtype=dtype)]
    for a, b in zip(lstm_layer(*mine, reverse), by_steps(*theirs, reverse)):
        assert torch.allclose(a, b, rtol=0, atol=tolerance)
    found = torch.autograd.grad(lstm_layer(*mine, reverse), mine, grads)
    expected = torch.autograd.grad(by_steps(*theirs, reverse), theirs, grads)
    for a, b in zip(found, expected):
        assert torch.allclose(a, b, rtol=tolerance * 10, atol=tolerance * 10)


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_by_differences_and_twice(reverse):
    inputs = operands(steps=2, rows=2, hidden=2)
    assert torch.autograd.gradcheck(lambda *t: lstm_layer(*t, reverse), inputs)
    assert torch.autograd.gradgradcheck(lambda *t: lstm_layer(*t, reverse), inputs)


def test_one_output_alone_has_a_gradient():
    mine, theirs = operands(), operands()
    lstm_layer(*mine)[2].sum().backward()
    by_steps(*theirs, False)[2].sum().backward()
    for a, b in zip(mine, theirs):
        assert torch.allclose(a.grad, b.grad)


@pytest.mark.parametrize("arguments", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True}])
def test_the_module_takes_it_and_packed_sequences_agree(arguments):
    torch.manual_seed(0)
    net = nn.LSTM(3, 4, **arguments).double()
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    if not arguments.get("batch_first"):
        x = x.transpose(0, 1)
    out, states = net(x)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 5]), batch_first=arguments.get("batch_first", False))  # by single steps
    by_cells, others = net(packed)
    again, _ = nn.utils.rnn.pad_packed_sequence(by_cells, batch_first=arguments.get("batch_first", False))
    assert torch.allclose(out, again)
    assert all(torch.allclose(a, b) for a, b in zip(states, others))


def operands_of(gates, bias=False, dtype=torch.float64, steps=5, rows=3, hidden=4):
    torch.manual_seed(0)
    shapes = [(steps, rows, gates * hidden), (rows, hidden), (gates * hidden, hidden)] + [(gates * hidden,)] * bias
    return [torch.randn(*shape, dtype=dtype).requires_grad_() for shape in shapes]


def gru_by_steps(x_gates, h, weight, bias, reverse):
    outs = [None] * len(x_gates)
    for t in reversed(range(len(x_gates))) if reverse else range(len(x_gates)):
        (xr, xz, xn), (hr, hz, hn) = x_gates[t].chunk(3, -1), (h @ weight.t() + bias).chunk(3, -1)
        r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
        n = (xn + r * hn).tanh()
        outs[t] = h = (1 - z) * n + z * h
    return torch.stack(outs), h


def rnn_by_steps(x_gates, h, weight, nonlinearity, reverse):
    outs = [None] * len(x_gates)
    for t in reversed(range(len(x_gates))) if reverse else range(len(x_gates)):
        outs[t] = h = getattr(x_gates[t] + h @ weight.t(), nonlinearity)()
    return torch.stack(outs), h


LAYERS = {
    "gru": (gru_layer, gru_by_steps, (3, True), ()),
    "tanh": (rnn_layer, rnn_by_steps, (1,), ("tanh",)),
    "relu": (rnn_layer, rnn_by_steps, (1,), ("relu",)),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 4e-6)])
@pytest.mark.parametrize(("rows", "hidden"), [(3, 4), (1, 5), (17, 33)])
def test_other_layers(name, reverse, dtype, tolerance, rows, hidden):
    layer, by_definition, shape, more = LAYERS[name]
    mine, theirs = (operands_of(*shape, dtype=dtype, rows=rows, hidden=hidden) for _ in range(2))
    grads = [torch.randn(5, rows, hidden, dtype=dtype), torch.randn(rows, hidden, dtype=dtype)]
    results = layer(*mine, *more, reverse), by_definition(*theirs, *more, reverse)
    for a, b in zip(*results):
        assert torch.allclose(a, b, rtol=0, atol=tolerance)
    found, expected = (torch.autograd.grad(result, leaves, grads) for result, leaves in zip(results, (mine, theirs)))
    for a, b in zip(found, expected):
        assert torch.allclose(a, b, rtol=tolerance * 10, atol=tolerance * 10 * hidden)


@pytest.mark.parametrize("name", LAYERS)
def test_other_layers_twice(name):
    layer, _, shape, more = LAYERS[name]
    inputs = operands_of(*shape, steps=2, rows=2, hidden=2)
    assert torch.autograd.gradcheck(lambda *t: layer(*t, *more, True), inputs)
    assert torch.autograd.gradgradcheck(lambda *t: layer(*t, *more, True), inputs)
    layer(*inputs, *more)[1].sum().backward()  # one output alone
    assert all(t.grad is not None for t in inputs)


@pytest.mark.parametrize("network", [nn.GRU, nn.RNN])
@pytest.mark.parametrize("arguments", [{}, {"bias": False}, {"num_layers": 2, "bidirectional": True}])
def test_other_modules_and_packed_sequences_agree(network, arguments):
    torch.manual_seed(0)
    net = network(3, 4, **arguments).double()
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    out, h = net(x)
    by_cells, other = net(nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 5])))  # by single steps
    again, _ = nn.utils.rnn.pad_packed_sequence(by_cells)
    assert torch.allclose(out, again) and torch.allclose(h, other)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("rows", [1, 15, 17, 32])
def test_gradients_that_lie_otherwise(kind, rows):
    """Of a sum (one number everywhere), of a result with its dimensions swapped, and of every second element: as those of the same numbers in a row."""
    torch.manual_seed(rows)
    net, x = kind(3, 6), torch.randn(4, rows, 3)
    losses = [
        (lambda out: out.sum(), torch.ones(4, rows, 6)),
        (lambda out: out.mean((0, 2)).sum(), torch.full((4, rows, 6), 1 / 24)),
        (lambda out: (out.transpose(0, 1) * weights.transpose(0, 1)).sum(), weights := torch.randn(4, rows, 6)),
        (lambda out: (out.permute(2, 0, 1) * weights.permute(2, 0, 1)).sum(), weights),
    ]
    for loss, gradient in losses:
        found = torch.autograd.grad(loss(net(x)[0]), list(net.parameters()))
        expected = torch.autograd.grad(net(x)[0], list(net.parameters()), gradient.contiguous())
        for a, b in zip(found, expected):
            assert torch.allclose(a, b, rtol=1e-5, atol=1e-5)
