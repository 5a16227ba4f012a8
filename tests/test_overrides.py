"""`__torch_function__`: subclasses of Tensor keep their type, arrays of other kinds and modes answer calls themselves (overrides.py, ops/overriding.py)."""
import copy
import gc
import pickle

import pytest

import strided as torch
from strided import dispatch, overrides
from strided.ops import overriding

F = torch.nn.functional


class Tagged(torch.Tensor):
    pass


class Logged(torch.Tensor):
    log: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.log.append((func.__name__, types))
        return super().__torch_function__(func, types, args, kwargs)


class Diagonal:
    """A matrix that is a number times the identity."""

    HANDLED: dict = {}

    def __init__(self, n, value):
        self.n, self.value = n, value

    def tensor(self):
        return self.value * torch.eye(self.n)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in cls.HANDLED or not all(issubclass(t, (torch.Tensor, Diagonal)) for t in types):
            return NotImplemented
        return cls.HANDLED[func](*args, **(kwargs or {}))


def implements(*functions):
    def register(function):
        Diagonal.HANDLED.update(dict.fromkeys(functions, function))
        return function

    return register


@implements(torch.mean)
def _mean(x):
    return x.value / x.n


@implements(torch.add, torch.matmul, F.linear)
def _mixed(a, b):
    return "answered", type(a).__name__, type(b).__name__


@pytest.fixture
def x():
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(Tagged)


def test_results_keep_the_subclass(x):
    plain = torch.ones(2, 2)
    made = {
        "x + 1": x + 1, "1 - x": 1 - x, "plain * x": plain * x, "x @ plain": x @ plain, "plain @ x": plain @ x, "x[0]": x[0], "x.T": x.T, "-x": -x, "x > 1": x > 1,
        "torch.add": torch.add(plain, x), "cat": torch.cat([plain, x]), "view": x.view(4), "sum": x.sum(), "item's tensor": x[0, 0], "relu": F.relu(x),
        "linear": F.linear(plain, x), "softmax": F.softmax(x, -1), "clone": x.clone(), "detach": x.detach(), "new_zeros": x.new_zeros(3), "zeros_like": torch.zeros_like(x),
        "to": x.to(torch.float64), "where": torch.where(x > 2, x, 0.0), "stack": torch.stack([x, x]), "einsum": torch.einsum("ij,jk", x, x),
    }  # fmt: skip
    assert {name for name, value in made.items() if type(value) is not Tagged} == set()
    assert all(type(part) is Tagged for part in (*x.max(0), *torch.split(x, 1), *x.unbind(), *torch.topk(x, 1)))
    assert torch.equal((x + 1).as_subclass(torch.Tensor), torch.tensor([[2.0, 3.0], [4.0, 5.0]]))
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]] and x.sum().item() == 10.0 and x.shape == (2, 2)
    assert repr(x[0]) == "Tagged([1., 2.])"


def test_a_write_keeps_the_tensor(x):
    y = x
    y += 1
    y[0, 0] = 7
    assert y is x and type(y.mul_(2)) is Tagged and x.tolist() == [[14.0, 6.0], [8.0, 10.0]]
    out = torch.empty(2, 2)
    assert torch.add(x, x, out=out) is not None and out.tolist() == [[28.0, 12.0], [16.0, 20.0]]


def test_gradients_go_through_the_change_of_type():
    w = torch.ones(3, requires_grad=True)
    y = w.as_subclass(Tagged)
    assert type(y.grad_fn).__name__ == "AliasBackward0" and not y.is_leaf
    (y * torch.arange(3.0)).sum().backward()
    assert w.grad.tolist() == [0.0, 1.0, 2.0]


def test_calls_are_seen_once_and_with_their_types():
    m = torch.ones(2).as_subclass(Logged)
    Logged.log.clear()
    result = F.layer_norm(m, (2,)) + torch.softmax(m, 0)
    assert [name for name, _ in Logged.log] == ["layer_norm", "softmax", "add"] and {types for _, types in Logged.log} == {(Logged,)}
    assert type(result) is Logged


def test_of_two_classes_the_derived_one_answers():
    class Deeper(Logged):
        log: list = []

    a, b = torch.ones(2).as_subclass(Logged), torch.ones(2).as_subclass(Deeper)
    assert type(a + b) is Deeper and type(b + a) is Deeper
    assert Deeper.log[0] == ("add", (Deeper, Logged))


def test_classes_that_know_nothing_of_each_other():
    a, b = torch.ones(2).as_subclass(Tagged), torch.ones(2).as_subclass(Logged)
    with pytest.raises(TypeError, match="no implementation found for 'torch.add' on types that implement __torch_function__"):
        a + b


def test_parameters_give_plain_tensors():
    class Weight(torch.nn.Parameter):
        pass

    w = Weight(torch.ones(2))
    assert type(w * 2) is torch.Tensor and type(w.sum()) is torch.Tensor
    assert type(w * torch.ones(2).as_subclass(Tagged)) is Tagged


def test_ordinary_calls_are_not_looked_at_once_no_such_tensor_lives(x):
    assert dispatch.overridden is not None
    users = dispatch.HOOKS.users
    y = x + 1
    del x, y
    gc.collect()
    assert dispatch.HOOKS.users <= users


def test_counting_ends_with_the_last_one():
    gc.collect()
    before = len(overriding._ALIVE), dispatch.HOOKS.users
    tensors = [torch.ones(2).as_subclass(Tagged) for _ in range(3)]
    assert len(overriding._ALIVE) == before[0] + 3
    del tensors
    assert (len(overriding._ALIVE), dispatch.HOOKS.users) == before


def test_other_kinds_of_arrays_answer():
    d = Diagonal(2, 3.0)
    assert torch.mean(d) == 1.5
    assert torch.add(d, torch.ones(2, 2)) == ("answered", "Diagonal", "Tensor")
    assert torch.ones(2, 2) + d == ("answered", "Tensor", "Diagonal")
    assert torch.matmul(torch.ones(2, 2), d) == ("answered", "Tensor", "Diagonal") and F.linear(d, torch.ones(2, 2))[0] == "answered"
    with pytest.raises(TypeError, match="no implementation found for 'torch.mul'"):
        torch.mul(d, 2)
    assert overrides.is_tensor_like(d) and not overrides.is_tensor_like(3)


def test_the_reflected_operator_of_something_else_is_asked():
    class Right:
        def __radd__(self, other):
            return "radd"

        def __rsub__(self, other):
            return "rsub"

        def __rtruediv__(self, other):
            return "rtruediv"

        __rmul__ = __rmatmul__ = __rpow__ = __radd__

    x, r = torch.ones(2), Right()
    assert (x + r, x - r, x / r, x * r, x @ r, x**r) == ("radd", "rsub", "rtruediv", "radd", "radd", "radd")
    with pytest.raises(TypeError):
        x + object()


def test_modes_see_every_call_and_nest():
    seen = []

    class Mode(overrides.TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, func.__name__))
            return func(*args, **(kwargs or {}))

    with Mode("outer"):
        with Mode("inner"):
            y = torch.ones(2) + 1
        y * 2
    y * 3
    assert seen == [("inner", "ones"), ("outer", "ones"), ("inner", "add"), ("outer", "add"), ("outer", "mul")]
    with pytest.raises(ZeroDivisionError), overrides.BaseTorchFunctionMode():
        raise ZeroDivisionError
    assert not overriding.CONTEXT.modes


def test_a_mode_may_answer():
    class Zeros(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 0 if func is torch.exp else func(*args, **(kwargs or {}))

    with Zeros():
        assert torch.exp(torch.ones(2)) == 0 and torch.ones(2).sum() == 2


def test_functions_of_ones_own():
    def area(x):
        if overrides.has_torch_function_unary(x):
            return overrides.handle_torch_function(area, (x,), x)
        return "computed"

    class Square:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types

    assert area(torch.ones(2)) == "computed" and area(Square()) == ("area", (Square,))
    assert overrides.has_torch_function((1, Square())) and not overrides.has_torch_function((1, torch.ones(1), torch.nn.Parameter(torch.ones(1))))

    @overrides.wrap_torch_function(lambda x: (x,))
    def volume(x):
        return "computed"

    assert volume(1) == "computed" and volume(Square()) == ("volume", (Square,))


def test_names_of_functions():
    assert overrides.resolve_name(torch.add) in ("torch.add", "torch.Tensor.add") and overrides.resolve_name(F.relu) == "torch.nn.functional.relu"
    functions = overrides.get_overridable_functions()
    assert torch.matmul in functions[torch] and torch.linalg.norm in functions[torch.linalg]
    assert overrides.get_testing_overrides()[torch.matmul](1, 2) == -1
    assert overrides.is_tensor_method_or_property(torch.Tensor.sum) and not overrides.is_tensor_method_or_property(F.layer_norm)


def test_copies_and_pickles_keep_the_class(x):
    assert type(copy.copy(x)) is Tagged and type(copy.deepcopy(x)) is Tagged
    again = pickle.loads(pickle.dumps(x))
    assert type(again) is Tagged and again.tolist() == x.tolist() and type(again + 1) is Tagged


def test_a_subclass_trains():
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 1)
    data = torch.randn(8, 3).as_subclass(Tagged)
    before = layer.weight.detach().clone()
    loss = F.mse_loss(layer(data), data.sum(1, keepdim=True))
    loss.backward()
    torch.optim.SGD(layer.parameters(), lr=0.1).step()
    assert type(loss) is Tagged and type(layer.weight.grad) in (torch.Tensor, Tagged) and not torch.equal(before, layer.weight)


@pytest.mark.parametrize("name, args", [("t", ()), ("transpose", (0, 1)), ("permute", ((1, 0),)), ("unsqueeze", (0,)), ("squeeze", (0,)), ("select", (0, 1)), ("reshape", ((2, 2),)), ("flatten", ()), ("relu", ()), ("atan2", (1,))])
def test_views_and_functions_of_what_is_no_tensor(name, args):
    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args)

    assert getattr(torch, name)(Answers(), *args)[0] == name
    with pytest.raises(TypeError):
        getattr(torch, name)(object(), *args)
