"""In-place operators and views: version counters, history of bases and windows, and what is refused."""

from __future__ import annotations

import math

import pytest

import strided as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_a_leaf_that_requires_grad_is_not_written():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation."):
        x.add_(1)
    with pytest.raises(RuntimeError, match="^a view of a leaf Variable that requires grad is being used in an in-place operation."):
        x.view(2).add_(1)
    with pytest.raises(RuntimeError, match="^a view of a leaf Variable that requires grad is being used in an in-place operation."):
        x[0] = 1
    assert x.tolist() == [1, 2]  # refused before any work
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2, 3] and x.is_leaf


def test_saved_and_then_modified():
    x = leaf(1.0, 2.0, 3.0)
    y = x.exp()
    z = y.sum() + (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: \[torch.FloatTensor \[3\]\], which is output 0 of \w+, is at version 1; expected version 0 instead. Hint: "):
        z.backward()


def test_modified_through_a_view_or_detached_alias():
    for alias in (lambda y: y[0], lambda y: y.detach(), lambda y: y.view(3)):
        x = leaf(1.0, 2.0, 3.0)
        y = x.exp()
        with torch.no_grad():
            alias(y).zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_writes_through_data_go_unnoticed():
    x = leaf(1.0, 2.0)
    y = x.exp()
    y.data.zero_()
    assert y.tolist() == [0, 0]
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_version_counts_writes():
    x = torch.zeros(3)
    assert x._version == 0
    x.add_(1)
    x[0] = 5
    assert x._version == 2 and x.view(3)._version == 2
    torch.autograd.graph.increment_version(x)
    assert x._version == 3


def test_chain_of_in_place_operators():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.add_(3).mul_(4)
    assert y.grad_fn.name() == "MulBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [8, 8]


def test_in_place_keeps_what_its_gradient_needs():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x.clone()
    y.mul_(w)
    y.sum().backward()
    assert x.grad.tolist() == [3, 4] and w.grad.tolist() == [1, 2]
    z = leaf(0.0, 1.0)
    y = z * 1
    y.exp_()
    y.sum().backward()
    assert torch.allclose(z.grad, y.detach())


def test_writing_a_tracked_value_into_a_plain_tensor():
    w = leaf(2.0, 3.0)
    buffer = torch.zeros(2, 2)
    early = buffer[0]
    assert not early.requires_grad
    buffer[0] = w
    buffer[1] = w * w
    assert buffer.requires_grad and buffer.grad_fn.name() == "torch::autograd::CopySlices"
    assert early.requires_grad and not early.is_leaf
    (buffer.sum() + early.sum()).backward()
    assert w.grad.tolist() == [1 + 4 + 1, 1 + 6 + 1]


def test_writing_into_a_window_replaces_its_history_only():
    w = leaf(2.0, 3.0, 4.0)
    h = w * 2
    h[1].mul_(w[0])
    assert h.grad_fn.name() == "torch::autograd::CopySlices"
    h.sum().backward()
    assert w.grad.tolist() == [2 + 6, 4, 2]


def test_view_follows_writes_to_its_base():
    w = leaf(1.0, 2.0)
    h = w * 2
    v = h.view(2)
    h.mul_(3)
    assert v.tolist() == [6, 12] and v.grad_fn.name() == "AsStridedBackward0"
    v.sum().backward()
    assert w.grad.tolist() == [6, 6]


def test_base_follows_writes_to_a_transposed_view():
    w = torch.arange(6.0).reshape(2, 3).requires_grad_()
    h = w * 1
    t = h.t()
    t[2].mul_(10)
    (h * h).sum().backward()
    expected = [[0, 2, 400], [6, 8, 1000]]
    assert w.grad.tolist() == expected


def test_second_derivative_through_a_written_window():
    w = leaf(2.0, 3.0)
    h = w * w
    h[0].mul_(w[1])
    (g,) = torch.autograd.grad(h.sum(), w, create_graph=True)
    assert g.tolist() == [12, 10]
    (gg,) = torch.autograd.grad(g.sum(), w)
    assert gg.tolist() == [2 * 3 + 2 * 2, 2 * 2 + 2]


def test_views_of_several_outputs_are_not_written():
    h = leaf(1.0, 2.0, 3.0, 4.0) * 1
    with pytest.raises(RuntimeError, match="Output 1 of Unbind is a view and is being modified inplace. This view is the output of a function that returns multiple views."):
        h.unbind()[1].mul_(2)
    with pytest.raises(RuntimeError, match="Output 0 of Split is a view and is being modified inplace."):
        h.chunk(2)[0].mul_(2)


def test_view_made_without_recording_is_not_written_with():
    w = leaf(1.0, 2.0)
    h = w * 1
    with torch.no_grad():
        v = h.view(2)
        v.add_(1)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace with grad mode enabled."):
        v.add_(1)


def test_base_attribute():
    x = torch.zeros(2, 3)
    assert x._base is None and x.t()._base is x and x.t()[0]._base is x and x.t()._is_view()
    assert x.detach()._base is None and (x + 1)._base is None
    with pytest.raises(RuntimeError, match="^Can't detach views in-place. Use detach"):
        x.view(6).detach_()


def test_fill_and_zero_end_the_history():
    w = leaf(1.0, 2.0)
    h = w * 2
    h.zero_()
    (h + w).sum().backward()
    assert w.grad.tolist() == [1, 1]


@pytest.mark.parametrize("name, arguments, expected", [
    ("clamp_min_", (0.9,), [0, 1, 1]), ("clamp_max_", (0.9,), [1, 0, 0]), ("cumprod_", (0,), [4, 1.5, 0.5]), ("nan_to_num_", (), [1, 1, 1]), ("logit_", (0.1,), [4, 0, 0]),
])  # fmt: skip
def test_what_was_saved_of_the_input_is_its_old_values(name, arguments, expected):
    """An operator whose gradient needs its input, in place, and once more in a chain of such."""
    x = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    getattr(x * 1, name)(*arguments).sum().backward()
    assert x.grad.tolist() == pytest.approx(expected)
    y = x * 1
    getattr(y[:], name)(*arguments)  # through a window
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.tolist() == pytest.approx(expected)
    (g,) = torch.autograd.grad((x * 1).clamp_min_(0.75).div_(-2).exp_().sum(), x)
    assert g.tolist() == pytest.approx([0, -0.5 * math.exp(-0.5), -0.5 * math.exp(-1)])


@pytest.mark.parametrize("name, arguments, weights", [
    ("t_", (), [[1, 3, 5], [2, 4, 6]]), ("transpose_", (0, 1), [[1, 3, 5], [2, 4, 6]]), ("unsqueeze_", (1,), [[1, 2, 3], [4, 5, 6]]), ("squeeze_", (), [[1, 2, 3], [4, 5, 6]]),
])  # fmt: skip
def test_a_window_that_becomes_another_view(name, arguments, weights):
    """Its history is that of its old shape; what is written through it afterwards still reaches its base."""
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    base = x * 1
    window = getattr(base[:], name)(*arguments)
    w = torch.arange(1.0, 7.0).view(window.shape)
    (g,) = torch.autograd.grad((window * w).sum(), x, retain_graph=True)
    assert g.tolist() == weights
    window.mul_(2)
    (g,) = torch.autograd.grad((window * w).sum() + base.sum(), x)
    assert g.tolist() == [[2 * v + 2 for v in row] for row in weights] and base.tolist() == [[0, 2, 4], [6, 8, 10]]


def test_renorm_in_place_is_differentiated_at_the_old_values():
    x = torch.tensor([[3.0, 4.0], [0.3, 0.4]], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    (g,) = torch.autograd.grad(((x * 1).renorm_(2, 0, 1.0) * w).sum(), x)
    (plain,) = torch.autograd.grad((torch.renorm(x, 2, 0, 1.0) * w).sum(), x)
    assert g.tolist() == plain.tolist()
    # of u = x / |x|: (w − u (u·w)) / |x|, with u = (0.6, 0.8), u·w = 2.2, |x| = 5; the second row is short enough to stay
    assert g.tolist()[0] == pytest.approx([-0.064, 0.048], rel=1e-5) and g.tolist()[1] == [3, 4]
    y = x.detach().clone()
    assert y.renorm_(2, 0, 1.0) is y and y[0].tolist() == pytest.approx([0.6, 0.8], rel=1e-6)
