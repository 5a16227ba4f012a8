"""Arguments by the names that PyTorch takes beside its own: NumPy's (axis, keepdims), those of single overloads, and out= where it is looked for late."""
import pytest

import strided as torch


def test_axis_and_keepdims():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.sum(x, axis=0).tolist() == [3.0, 5.0, 7.0]
    assert x.mean(axis=1, keepdims=True).tolist() == [[1.0], [4.0]]
    assert x.max(axis=1).indices.tolist() == [2, 2] and x.argmax(axis=0).tolist() == [1, 1, 1]
    assert torch.cat([x, x], axis=1).shape == (2, 6) and torch.stack([x, x], axis=2).shape == (2, 3, 2)
    assert x.unsqueeze(axis=1).shape == (2, 1, 3) and x[:1].squeeze(axis=0).shape == (3,)
    assert x.select(axis=1, index=2).tolist() == [2.0, 5.0]
    assert torch.softmax(x, axis=1).sum(axis=1).tolist() == pytest.approx([1, 1])
    x.cumsum_(axis=1)
    assert x.tolist() == [[0.0, 1.0, 3.0], [3.0, 7.0, 12.0]]
    x.scatter_(axis=1, index=torch.tensor([[0], [2]]), value=9)
    assert x.tolist() == [[9.0, 1.0, 3.0], [3.0, 7.0, 9.0]]


def test_axis_while_a_listener_is_there():
    from strided import dispatch

    seen = []
    with dispatch.listen(lambda event: seen.append(event.op)):
        assert torch.ones(2, 3).sum(axis=0).shape == (3,)
        out = torch.empty(0)
        torch.softmax(torch.zeros(2), 0, out=out)
    assert "sum" in seen and out.tolist() == [0.5, 0.5]


def test_other_names_of_one_argument():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.swapaxes(x, axis0=0, axis1=1).shape == x.swapaxes(0, 1).shape == x.swapdims(dim0=0, dim1=1).shape == (3, 2)
    assert x.clone().swapaxes_(axis0=0, axis1=1).shape == (3, 2)
    assert [t.tolist() for t in torch.hsplit(x, sections=3)] == [[[0.0], [3.0]], [[1.0], [4.0]], [[2.0], [5.0]]]
    assert [tuple(t.shape) for t in torch.tensor_split(x, tensor_indices_or_sections=torch.tensor([1]), dim=1)] == [(2, 1), (2, 2)]
    assert torch.special.i0e(input=torch.zeros(1)).tolist() == [1.0]
    assert torch.linalg.cond(input=torch.eye(2)).item() == 1.0
    assert torch.sum(a=x).item() == 15.0 and torch.zeros_like(x, pin_memory=False).shape == (2, 3)
    assert x[:1, :1].squeeze(0, 1).shape == ()


def test_two_names_for_one_place_and_unknown_names_are_refused():
    x = torch.ones(2, 3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        torch.sum(x, 0, axis=0)
    with pytest.raises(TypeError, match="axis"):
        x.sum(dim=0, axis=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        x.sum(axes=0)
    with pytest.raises(TypeError, match="two names of one"):
        x.unsqueeze(dim=0, axis=0)
    with pytest.raises(TypeError, match='missing 1 required positional arguments: "dim"'):
        x.unsqueeze()
    with pytest.raises(RuntimeError, match="pin_memory"):
        torch.zeros_like(x, pin_memory=True)


def test_out_of_operators_that_look_for_it_late():
    x = torch.tensor([[1.0, 1.0]])
    out = torch.empty(0)
    assert torch.softmax(x, 1, out=out) is out and out.tolist() == [[0.5, 0.5]]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.log_softmax(x.requires_grad_(), 1, out=out)
    with pytest.raises(TypeError, match="must be Tensor"):
        torch.softmax(x.detach(), 1, out=3)


def test_ints_of_more_than_64_bits():
    x = torch.ones(2)
    for call in (lambda: x.sum(2**70), lambda: x.topk(2**70), lambda: torch.repeat_interleave(x, 2**70), lambda: x.narrow(0, 2**70, 1)):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            call()
    for call in (lambda: x.repeat(2**70), lambda: x.repeat(1, -(2**70)), lambda: x.flip((2**70,))):
        with pytest.raises(TypeError, match="failed to unpack the object at pos"):
            call()
    y = torch.ones(2, dtype=torch.int64)
    for call in (lambda: y.index_fill_(0, torch.tensor([0]), 2**70), lambda: y.scatter_(0, torch.tensor([0]), 2**70), lambda: torch.isin(y, 2**70)):
        with pytest.raises(OverflowError, match="int too big to convert"):
            call()
    assert y.tolist() == [1, 1]


def test_kinds_of_arguments():
    x = torch.ones(2, 2)
    told = {
        "softmax(): argument 'dim' (position 2) must be int, not list": lambda: torch.softmax(x, [0]),
        "softmax(): argument 'dim' (position 2) must be int, not NoneType": lambda: torch.softmax(x, None),
        "cumsum(): argument 'dim' (position 2) must be int, not list": lambda: torch.cumsum(x, [0]),
        "topk(): argument 'k' (position 2) must be int, not str": lambda: torch.topk(x, "a"),
        "argmax(): argument 'dim' (position 2) must be int, not float": lambda: torch.argmax(x, 1.5),
        "scatter_add(): argument 'src' (position 4) must be Tensor, not complex": lambda: torch.scatter_add(x, 0, torch.tensor([[0]]), 1j),
        "linalg_vector_norm(): argument 'ord' (position 2) must be Number, not list": lambda: torch.norm(x, [2]),
    }
    for sentence, call in told.items():
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value).startswith(sentence)
