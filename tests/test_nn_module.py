"""`nn.Module`: registration, traversal, state dicts and their messages, hooks, conversion, printing; containers and parameters."""
import copy
import pickle

import pytest

import strided as torch
import strided.nn as nn
from support import run_strided


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 3)
        self.b = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        self.c = self.a  # shared
        self.p = nn.Parameter(torch.ones(2))
        self.register_buffer("buf", torch.zeros(2))
        self.register_buffer("cache", torch.zeros(1), persistent=False)
        self.register_parameter("none", None)

    def forward(self, x):
        return self.b(self.a(x))


def test_traversal_visits_shared_members_once():
    block = Block()
    assert [k for k, _ in block.named_parameters()] == ["p", "a.weight", "a.bias", "b.0.weight", "b.0.bias", "b.1.weight", "b.1.bias"]
    assert [k for k, _ in block.named_modules()] == ["", "a", "b", "b.0", "b.1"]
    assert [k for k, _ in block.named_modules(remove_duplicate=False)] == ["", "a", "b", "b.0", "b.1", "c"]
    assert [k for k, _ in block.named_children()] == ["a", "b"]
    assert [k for k, _ in block.named_buffers()] == ["buf", "cache", "b.1.running_mean", "b.1.running_var", "b.1.num_batches_tracked"]
    assert sum(p.numel() for p in block.parameters()) == 2 + 9 + 12 + 6


def test_state_dict_round_trip():
    block, other = Block(), Block()
    state = block.state_dict()
    assert "c.weight" in state and "cache" not in state and "none" not in state
    assert state["a.weight"].data_ptr() == block.a.weight.data_ptr() and not state["a.weight"].requires_grad
    assert str(other.load_state_dict(state)) == "<All keys matched successfully>"
    x = torch.randn(4, 2)
    assert torch.equal(block.eval()(x), other.eval()(x))
    assert other.a.weight.data_ptr() != block.a.weight.data_ptr()
    other.load_state_dict(state, assign=True)
    assert other.a.weight.data_ptr() == block.a.weight.data_ptr() and isinstance(other.a.weight, nn.Parameter)


def test_load_state_dict_reports_everything_that_does_not_fit():
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(2, 3).load_state_dict({"weight": torch.ones(3, 3), "extra": torch.ones(1)})
    assert str(caught.value) == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". '
        '\n\tUnexpected key(s) in state_dict: "extra". '
        "\n\tsize mismatch for weight: copying a param with shape torch.Size([3, 3]) from checkpoint, "
        "the shape in current model is torch.Size([3, 2])."
    )
    result = nn.Linear(2, 3).load_state_dict({"extra": 1}, strict=False)
    assert result.missing_keys == ["weight", "bias"] and result.unexpected_keys == ["extra"]
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'list'>"):
        nn.Linear(2, 3).load_state_dict([])


def test_loading_keeps_gradients_and_dtype():
    layer = nn.Linear(2, 2).half()
    layer.load_state_dict({"weight": torch.full((2, 2), 0.5), "bias": torch.zeros(2)})
    assert layer.weight.dtype == torch.float16 and layer.weight.requires_grad and layer.weight.is_leaf


def test_registration_errors():
    block = Block()
    for action, kind, text in (
        (lambda: setattr(block, "p", torch.ones(2)), TypeError, "cannot assign 'torch.FloatTensor' as parameter 'p'"),
        (lambda: setattr(block, "a", 3), TypeError, "cannot assign 'int' as child module 'a'"),
        (lambda: setattr(block, "buf", 3), TypeError, "cannot assign 'int' as buffer 'buf'"),
        (lambda: block.nothing, AttributeError, "'Block' object has no attribute 'nothing'"),
        (lambda: block.register_parameter("x.y", None), KeyError, "parameter name can.*t contain"),
        (lambda: block.register_buffer("a", None), KeyError, "attribute 'a' already exists"),
        (lambda: block.add_module("z", 3), TypeError, "int is not a Module subclass"),
        (lambda: block.get_submodule("b.7"), AttributeError, "Sequential has no attribute `7`"),
        (lambda: block.get_parameter("buf"), AttributeError, "`buf` is not an nn.Parameter"),
        (lambda: nn.Module()(1), NotImplementedError, 'Module \\[Module\\] is missing the required "forward" function'),
        (lambda: nn.Linear(2, 3).to(torch.int32), TypeError, "nn.Module.to only accepts floating point or complex dtypes"),
        (lambda: nn.Parameter(torch.ones(2, dtype=torch.int64)), RuntimeError, "Only Tensors of floating point and complex dtype"),
        (lambda: nn.Linear(2, 3)(torch.ones(4, 5)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied"),
    ):
        with pytest.raises(kind, match=text):
            action()


def test_assignment_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.p = nn.Parameter(torch.ones(1))

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Early()


def test_a_name_means_one_thing():
    block = Block()
    block.buf = torch.ones(2)
    assert block.state_dict()["buf"].tolist() == [1, 1]
    block.x = 3
    block.x = nn.Parameter(torch.ones(1))
    assert "x" not in block.__dict__ and "x" in block.state_dict()
    block.x = None
    assert "x" not in block.state_dict() and block.x is None
    del block.a
    assert not hasattr(block, "a") and hasattr(block, "c")
    block.q = nn.Buffer(torch.ones(1), persistent=False)
    assert "q" in dict(block.named_buffers()) and "q" not in block.state_dict()


def test_conversion_keeps_parameter_objects():
    block = Block()
    weight = block.a.weight
    block.double()
    assert block.a.weight is weight and weight.dtype == torch.float64 and block.buf.dtype == torch.float64
    assert block.b[1].num_batches_tracked.dtype == torch.int64
    block(torch.ones(3, 2, dtype=torch.float64)).sum().backward()
    block.to(torch.bfloat16)
    assert weight.dtype == weight.grad.dtype == torch.bfloat16
    assert Block().to("meta").a.weight.is_meta


def test_modes():
    block = Block()
    assert block.training and block.b[1].training
    assert not block.eval().b[1].training
    block.requires_grad_(False)
    assert not any(p.requires_grad for p in block.parameters())
    seen = []
    block.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Linear", "BatchNorm1d", "Sequential", "Block"]


def test_zero_grad():
    layer = nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0, 0]]
    layer.zero_grad()
    assert layer.weight.grad is None


def test_deepcopy_and_pickle():
    block = Block()
    twin = copy.deepcopy(block)
    assert twin.a is twin.c and twin.a is not block.a and torch.equal(twin.a.weight, block.a.weight)
    again = pickle.loads(pickle.dumps(nn.Linear(2, 2)))
    assert isinstance(again.weight, nn.Parameter) and again.weight.requires_grad


def test_forward_hooks():
    log, net = [], nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with torch.no_grad():
        net[0].weight.fill_(1)
        net[0].bias.fill_(0.5)
    handle = net[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    net[0].register_forward_hook(lambda m, args, out: log.append((args[0].tolist(), out.tolist())))
    net[0].register_forward_pre_hook(lambda m, args, kwargs: log.append("first"), with_kwargs=True, prepend=True)
    net(torch.ones(1, 2))
    handle.remove()
    net(torch.ones(1, 2))
    assert log == ["first", ([[2, 2]], [[4.5, 4.5]]), "first", ([[1, 1]], [[2.5, 2.5]])]


def test_forward_hook_replaces_the_output():
    layer = nn.Identity()
    with layer.register_forward_hook(lambda m, args, out: out + 1):
        assert layer(torch.zeros(1)).item() == 1
    assert layer(torch.zeros(1)).item() == 0


def test_backward_hooks():
    log, relu = [], nn.ReLU()
    relu.register_full_backward_pre_hook(lambda m, grad_out: (grad_out[0] * 2,))
    relu.register_full_backward_hook(lambda m, grad_in, grad_out: log.append((grad_in[0].tolist(), grad_out[0].tolist())) or (grad_in[0] * 3,))
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    relu(x).sum().backward()
    assert log == [([2, 0], [2, 2])] and x.grad.tolist() == [6, 0]


def test_hooks_that_always_run():
    seen, layer = [], nn.Identity()
    layer.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    layer.forward = lambda x: 1 / 0
    with pytest.raises(ZeroDivisionError):
        layer(torch.ones(1))
    assert seen == [None]


def test_global_hooks():
    from strided.nn.hooks import register_module_forward_hook

    names = []
    with register_module_forward_hook(lambda m, args, out: names.append(type(m).__name__)):
        nn.Sequential(nn.ReLU(), nn.Tanh())(torch.ones(1))
    nn.ReLU()(torch.ones(1))
    assert names == ["ReLU", "Tanh", "Sequential"]


def test_repr():
    assert repr(nn.Linear(2, 3, bias=False)) == "Linear(in_features=2, out_features=3, bias=False)"
    assert repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"
    assert repr(nn.Sequential(nn.Sequential(nn.ReLU()))) == "Sequential(\n  (0): Sequential(\n    (0): ReLU()\n  )\n)"
    assert repr(nn.Parameter(torch.ones(1))) == "Parameter containing:\ntensor([1.], requires_grad=True)"


def test_sequential():
    s = nn.Sequential(*[nn.ReLU() for _ in range(3)])
    s.insert(1, nn.Tanh())
    assert [type(m).__name__ for m in s] == ["ReLU", "Tanh", "ReLU", "ReLU"]
    del s[0]
    assert [k for k, _ in s.named_children()] == ["0", "1", "2"] and isinstance(s[0], nn.Tanh)
    assert len(s + s) == 6 and len(s * 2) == 6 and isinstance(s[-1], nn.ReLU) and len(s[1:]) == 2
    with pytest.raises(IndexError, match="index 3 is out of range"):
        s[3]


def test_module_containers():
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers += [nn.ReLU()]
    layers.insert(0, nn.Tanh())
    assert [type(m).__name__ for m in layers] == ["Tanh", "Linear", "ReLU"] and "1.weight" in layers.state_dict()
    named = nn.ModuleDict({"a": nn.Linear(1, 1)})
    named.update([("b", nn.ReLU())])
    assert list(named) == ["a", "b"] and "a" in named and isinstance(named.pop("b"), nn.ReLU)
    with pytest.raises(TypeError, match="ModuleList.extend should be called with an iterable"):
        nn.ModuleList(3)


def test_parameter_containers():
    values = nn.ParameterList([torch.ones(2), 3])
    assert isinstance(values[0], nn.Parameter) and values[1] == 3 and len(list(values.parameters())) == 1
    table = nn.ParameterDict({"x": torch.ones(2)})
    table["y"] = torch.zeros(1)
    assert list(table) == ["x", "y"] and sorted(k for k, _ in table.named_parameters()) == ["x", "y"]
    del table["x"]
    assert "x" not in table


def test_extra_state():
    class Counter(nn.Module):
        count = 0

        def get_extra_state(self):
            return self.count

        def set_extra_state(self, state):
            self.count = state

    a, b = Counter(), Counter()
    a.count = 5
    b.load_state_dict(a.state_dict())
    assert b.count == 5 and list(a.state_dict()) == ["_extra_state"]


def test_clipping():
    p = nn.Parameter(torch.zeros(2))
    p.grad = torch.tensor([3.0, 4.0])
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == 5
    assert torch.allclose(p.grad, torch.tensor([0.6, 0.8]), atol=1e-6)
    nn.utils.clip_grad_value_([p], 0.7)
    assert p.grad.max().item() == pytest.approx(0.7)
    vector = nn.utils.parameters_to_vector([p, nn.Parameter(torch.ones(1))])
    nn.utils.vector_to_parameters(vector + 1, [p])
    assert p.tolist() == [1, 1]


# ---- compile ----------------------------------------------------------------------------------------------------------


def test_compile_gives_the_same_results():
    def f(a, b, scale=1.0):
        return torch.softmax(a @ b * scale, dim=-1)

    a, b = torch.randn(3, 4), torch.randn(4, 3)
    assert torch.equal(torch.compile(f)(a, b, scale=0.5), f(a, b, scale=0.5))
    assert torch.equal(torch.compile(mode="max-autotune")(f)(a, b), f(a, b))
    assert torch.compile(f, disable=True) is f


def test_compiled_module():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    compiled = torch.compile(net)
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert compiled._orig_mod is net and len(list(compiled.parameters())) == 2
    compiled.eval()
    assert not net.training and not net[1].training
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x), net(x))
    compiled.note = 3
    assert net.note == 3
    net.compile()
    assert torch.equal(net(x), compiled(x))


def test_compile_refuses_what_it_cannot_do():
    with pytest.raises(NotImplementedError, match="a custom backend needs a graph of operators"):
        torch.compile(lambda x: x, backend=lambda graph, inputs: graph)
    with pytest.raises(RuntimeError, match="Either mode or options can be specified"):
        torch.compile(lambda x: x, mode="default", options={})
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        torch.compile(lambda x: x, mode="fast")


def test_every_public_name_loads():
    for module in (nn, nn.functional, nn.utils, torch.optim, torch.optim.lr_scheduler, torch.utils.data):
        for name in module.__all__:
            assert getattr(module, name) is not None
            assert name in dir(module)
    with pytest.raises(AttributeError, match="has no attribute 'Lineer'"):
        nn.Lineer


def test_data_parallel_is_the_module():
    net = nn.DataParallel(nn.Linear(2, 1))
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    assert torch.equal(net(torch.ones(1, 2)), net.module(torch.ones(1, 2)))


PLACES = """
from torch.nn.modules.activation import MultiheadAttention
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.module import Module
from torch.nn.modules.utils import _pair
from torch.nn.parallel import DataParallel
from torch.optim.lr_scheduler import LambdaLR, _LRScheduler
from torch.optim.optimizer import Optimizer
from torch.utils.data.distributed import DistributedSampler
from torch.utils.data.sampler import RandomSampler
import torch
nn = torch.nn
assert MultiheadAttention is nn.MultiheadAttention and Module is nn.Module and DataParallel is nn.DataParallel
assert issubclass(nn.BatchNorm1d, _BatchNorm) and _pair(3) == (3, 3) and _pair((1, 2)) == (1, 2)
assert issubclass(LambdaLR, _LRScheduler) and issubclass(torch.optim.SGD, Optimizer)
assert RandomSampler is torch.utils.data.RandomSampler and DistributedSampler is torch.utils.data.DistributedSampler
"""


def test_the_places_where_pytorch_keeps_things(tmp_path):
    script = tmp_path / "places.py"
    script.write_text(PLACES)
    code, _, errors = run_strided("run", script)
    assert code == 0, errors


def test_a_memory_format_reaches_images_only():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 2)).to(memory_format=torch.channels_last)
    assert [p.stride() for p in model.parameters()] == [(27, 1, 9, 3), (1,), (1,), (1,), (4, 1), (1,)]
    assert model[0].weight.is_leaf and model.to(torch.float64, memory_format=torch.contiguous_format)[0].weight.stride() == (27, 9, 3, 1)


def test_parameters_come_in_the_order_of_their_names_and_once():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.extra = torch.ones(2)

        def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
            yield prefix + "extra", self.extra

    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.Sequential(nn.LayerNorm(2), shared), nn.Linear(2, 1, bias=False))
    model.tied = model[2].weight
    assert [id(p) for p in model.parameters()] == [id(p) for _, p in model.named_parameters()] and len(list(model.parameters())) == 5
    assert [id(p) for p in model.parameters(recurse=False)] == [id(model[2].weight)]
    own = Own()
    assert [id(p) for p in own.parameters()] == [id(own.extra)]
    around = nn.Sequential(nn.Linear(1, 1), own)
    assert [id(p) for p in around.parameters()] == [id(p) for _, p in around.named_parameters()]
