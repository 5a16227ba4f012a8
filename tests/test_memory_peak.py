"""What a training step holds at its peak, to the byte: by hand, from what each gradient needs."""
import pytest

import strided as torch
from strided import memory, nn
from strided.nn import functional as F


def growth(work):
    """Bytes at the peak of work() beyond what was held before; work has run once, so that nothing is made for the first time."""
    work()
    before = memory.memory_allocated()
    memory.reset_peak_memory_stats()
    work()
    return memory.max_memory_allocated() - before


def step_of(net, loss, optimizer):
    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("optimizer", [lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p)])
def test_a_step_of_an_mlp(optimizer):
    net = nn.Sequential(nn.Linear(100, 64), nn.ReLU(), nn.Linear(64, 10))
    x, classes = torch.randn(32, 100), torch.randint(0, 10, (32,))
    peak = growth(step_of(net, lambda: F.cross_entropy(net(x), classes), optimizer(net.parameters())))
    hidden, logits = 32 * 64 * 4, 32 * 10 * 4
    first, second = (100 * 64 + 64) * 4, (64 * 10 + 10) * 4
    # At the first layer's gradient: the second layer's, the gradient of the hidden activations (the activations themselves are gone), the first layer's.
    most = second + hidden + first
    assert most <= peak <= most + 2 * logits + 64


def test_activations_are_kept_once():
    """GELU keeps its input, the product behind it GELU's result; a norm its input and two numbers a row; nothing keeps both sides of an addition."""
    up, down, norm = nn.Linear(64, 256, bias=False), nn.Linear(256, 64, bias=False), nn.LayerNorm(64)
    x = torch.randn(50, 64, requires_grad=True)
    narrow, wide = 50 * 64 * 4, 50 * 256 * 4

    def held(make):
        make()
        before = memory.memory_allocated()
        result = make()
        return memory.memory_allocated() - before, result

    assert held(lambda: down(F.gelu(up(x))))[0] == 2 * wide + narrow
    assert held(lambda: x + down(F.gelu(up(norm(x)))))[0] == 2 * wide + narrow + narrow + 2 * 50 * 4
    assert held(lambda: F.relu(up(x)))[0] == wide  # its result tells where it was positive
    assert held(lambda: torch.tanh(up(x)))[0] == wide
    assert held(lambda: F.dropout(up(x), 0.5))[0] == wide + wide // 4
    assert held(lambda: F.softmax(up(x), -1))[0] == wide
    assert held(lambda: x * 2 + 1)[0] == narrow


def test_gradients_of_a_tensor_used_twice_are_added_in_place():
    w = torch.randn(256, 256, requires_grad=True)
    a, b = torch.randn(4, 256), torch.randn(4, 256)
    size = 256 * 256 * 4

    def step():
        w.grad = None
        ((a @ w).sum() + (b @ w).sum()).backward()
        w.grad = None

    assert 2 * size <= growth(step) < 2.1 * size
    step()
    ((a @ w).sum() + (b @ w).sum()).backward()
    assert torch.allclose(w.grad, (a + b).sum(0).unsqueeze(1).expand(256, 256), atol=1e-4)


def test_a_gradient_that_others_hold_is_not_written():
    x = torch.ones(3, requires_grad=True)
    given = torch.full((3,), 2.0)
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.append(g)
            return g

    y = x * 1
    (Double.apply(y) + Double.apply(y)).backward(given)
    assert x.grad.tolist() == [4, 4, 4] and given.tolist() == [2, 2, 2]
    assert all(g.tolist() == [2, 2, 2] for g in seen)


def test_a_chain_gives_its_activations_back_as_it_goes():
    """The peak of the backward pass of a long chain is that of its forward pass and a few gradients, not both."""
    x = torch.randn(1000, requires_grad=True)

    def step():
        x.grad = None
        y = x
        for _ in range(20):
            y = torch.tanh(y)
        y.sum().backward()
        x.grad = None

    assert 20 * 4000 <= growth(step) <= 22 * 4000 + 64


def test_a_leaf_takes_its_first_gradient_without_a_copy():
    w = torch.randn(128, 128, requires_grad=True)
    x = torch.randn(2, 128)

    def step():
        (x @ w).sum().backward()
        w.grad = None

    assert growth(step) < 1.1 * 128 * 128 * 4
    assert growth(lambda: (step(), step())) < 1.1 * 128 * 128 * 4
    with torch.no_grad():
        assert growth(lambda: x @ w) == 2 * 128 * 4
