"""Modules against PyTorch: registration, state dicts, hooks, containers and the text of every error."""
import copy

import pytest

torch = pytest.importorskip("torch")
import strided
import strided.nn


def outcome(function, library):
    try:
        return "ok", function(library.nn, library)
    except Exception as error:
        return type(error).__name__, str(error)


def net(n, t):
    class Net(n.Module):
        def __init__(self):
            super().__init__()
            self.a = n.Linear(2, 3)
            self.b = n.Sequential(n.Linear(3, 3), n.BatchNorm1d(3))
            self.c = self.a
            self.p = n.Parameter(t.ones(2))
            self.register_buffer("buf", t.zeros(2))
            self.register_buffer("np", t.zeros(1), persistent=False)
            self.register_parameter("none", None)

        def forward(self, x):
            return self.b(self.a(x))

    return Net()


def uninitialised(n, value):
    class X(n.Module):
        def __init__(self):
            self.x = value

    return X()


def hooks(n, t):
    log, m = [], n.Sequential(n.Linear(2, 2), n.ReLU())
    with t.no_grad():
        m[0].weight.fill_(1)
        m[0].bias.fill_(0.5)
    first = m[0].register_forward_pre_hook(lambda m, a: (log.append("pre"), (a[0] * 2,))[1])
    m[0].register_forward_hook(lambda m, a, o: log.append(("fwd", a[0].tolist(), o.tolist())))
    m[0].register_forward_pre_hook(lambda m, a, k: log.append(("kw", len(a), list(k))), with_kwargs=True, prepend=True)
    m.register_full_backward_hook(lambda m, gi, go: log.append(("bwd", [None if g is None else g.tolist() for g in gi], [g.tolist() for g in go])))
    m[1].register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))
    m[1].register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    x = t.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    log += [x.grad.tolist(), m[0].weight.grad.tolist()]
    first.remove()
    x2 = t.ones(1, 2)
    m(x2).sum().backward()
    log.append(m[0].weight.grad.tolist())

    def boom(*args):
        raise ValueError("boom")

    m[1].register_forward_hook(lambda m, a, o: log.append(("always", o is None)), always_call=True)
    m[1].forward = boom
    try:
        m(x2)
    except ValueError:
        log.append("raised")
    return log


def state_hooks(n, t):
    log, m = [], n.Linear(1, 1)
    m._register_state_dict_hook(lambda m, sd, p, lm: log.append(("sd", list(sd), p)))
    m.register_state_dict_post_hook(lambda m, sd, p, lm: sd.update({p + "extra": 1}))
    m.register_state_dict_pre_hook(lambda m, p, kv: log.append(("pre", p, kv)))
    m.register_load_state_dict_pre_hook(lambda m, sd, p, *a: (log.append(p), sd.pop(p + "extra", None))[0])
    m.register_load_state_dict_post_hook(lambda m, ik: ik.missing_keys.clear())
    s = n.Sequential(m)
    sd = s.state_dict()
    log += [list(sd), str(s.load_state_dict(sd))]
    del sd["0.bias"]
    log.append(str(s.load_state_dict(sd, strict=False)))
    return log


def containers(n, t):
    out = []
    s = n.Sequential(*[n.ReLU() for _ in range(4)])
    del s[1]
    s.insert(1, n.Tanh())
    s.append(n.GELU())
    out += [repr(s), repr(s[1:3]), repr(s + s), repr(s * 2), repr(s.pop(0)), len(s)]
    l = n.ModuleList([n.ReLU()])
    l.insert(0, n.Tanh())
    l += [n.GELU()]
    del l[0]
    out.append(repr(l))
    l[0] = n.Tanh()
    return [*out, repr(l[-1])]


def misc(n, t):
    m = net(n, t)
    c = copy.deepcopy(m)
    out = [c.a is c.c, c.a is m.a, t.equal(c.a.weight, m.a.weight)]
    c.load_state_dict(m.state_dict(), assign=True)
    out.append(c.a.weight.data_ptr() == m.a.weight.data_ptr())
    del m.a
    out.append(hasattr(m, "a"))
    m.requires_grad_(False)
    out.append([p.requires_grad for p in m.parameters()])
    m.apply(lambda x: out.append(type(x).__name__))
    m.set_submodule("b.0", n.ReLU())
    out.append(repr(m.b))
    m.p = None
    m.bb = n.Buffer(t.ones(1))
    m.cc = n.Buffer(t.ones(1), persistent=False)
    return [*out, list(m.state_dict()), [k for k, _ in m.named_buffers()]]


CASES = {
    "parameters": lambda n, t: [k for k, _ in net(n, t).named_parameters()],
    "all parameters": lambda n, t: [k for k, _ in net(n, t).named_parameters(remove_duplicate=False)],
    "modules": lambda n, t: [k for k, _ in net(n, t).named_modules()],
    "all modules": lambda n, t: [k for k, _ in net(n, t).named_modules(remove_duplicate=False)],
    "buffers": lambda n, t: [k for k, _ in net(n, t).named_buffers()],
    "children": lambda n, t: [k for k, _ in net(n, t).named_children()],
    "state dict": lambda n, t: list(net(n, t).state_dict()),
    "metadata": lambda n, t: dict(net(n, t).state_dict()._metadata),
    "repr": lambda n, t: repr(net(n, t)),
    "no attribute": lambda n, t: net(n, t).foo,
    "set module": lambda n, t: setattr(net(n, t), "a", 3),
    "set parameter": lambda n, t: setattr(net(n, t), "p", 3),
    "set parameter to tensor": lambda n, t: setattr(net(n, t), "p", t.ones(2)),
    "set buffer": lambda n, t: setattr(net(n, t), "buf", 3),
    "load empty": lambda n, t: net(n, t).load_state_dict({}),
    "load wrong": lambda n, t: net(n, t).load_state_dict({"a.weight": t.ones(3, 3), "x": 1, "b.0.foo": 2}),
    "load list": lambda n, t: net(n, t).load_state_dict([]),
    "load loosely": lambda n, t: str(net(n, t).load_state_dict({"x": 1, "a.weight": t.ones(3, 2)}, strict=False)),
    "load": lambda n, t: repr(net(n, t).load_state_dict(net(n, t).state_dict())),
    "no submodule": lambda n, t: net(n, t).get_submodule("b.7"),
    "not a module": lambda n, t: net(n, t).get_submodule("p"),
    "no parameter": lambda n, t: net(n, t).get_parameter("b.0.zip"),
    "not a parameter": lambda n, t: net(n, t).get_parameter("buf"),
    "not a buffer": lambda n, t: net(n, t).get_buffer("p"),
    "parameter taken": lambda n, t: net(n, t).register_parameter("a", n.Parameter(t.ones(1))),
    "parameter dot": lambda n, t: net(n, t).register_parameter("x.y", None),
    "parameter empty": lambda n, t: net(n, t).register_parameter("", None),
    "parameter kind": lambda n, t: net(n, t).register_parameter("z", 3),
    "parameter name": lambda n, t: net(n, t).register_parameter(3, None),
    "parameter non-leaf": lambda n, t: net(n, t).register_parameter("z", n.Parameter(t.ones(1)) * 1),
    "buffer taken": lambda n, t: net(n, t).register_buffer("a", None),
    "buffer kind": lambda n, t: net(n, t).register_buffer("z", 3),
    "module kind": lambda n, t: net(n, t).add_module("z", 3),
    "module taken": lambda n, t: net(n, t).add_module("p", n.ReLU()),
    "module dot": lambda n, t: net(n, t).add_module("p.q", n.ReLU()),
    "module empty": lambda n, t: net(n, t).add_module("", n.ReLU()),
    "module argument": lambda n, t: n.Module(3),
    "module keyword": lambda n, t: n.Module(a=3),
    "no forward": lambda n, t: n.Module()(3),
    "train": lambda n, t: net(n, t).train(3),
    "to integer": lambda n, t: net(n, t).to(t.int32),
    "to dtype": lambda n, t: str(net(n, t).to(t.float64).a.weight.dtype),
    "half": lambda n, t: str(net(n, t).half().b[1].num_batches_tracked.dtype),
    "to meta": lambda n, t: str(net(n, t).to("meta").a.weight.device),
    "to both": lambda n, t: str(net(n, t).to("cpu", t.bfloat16).buf.dtype),
    "early parameter": lambda n, t: uninitialised(n, n.Parameter(t.ones(1))),
    "early module": lambda n, t: uninitialised(n, n.ReLU()),
    "early buffer": lambda n, t: uninitialised(n, n.Buffer(t.ones(1))),
    "integer parameter": lambda n, t: n.Parameter(t.ones(2, dtype=t.int64)),
    "wrong shape": lambda n, t: n.Linear(2, 3)(t.ones(2, 5)),
    "sequential index": lambda n, t: n.Sequential(n.ReLU())[3],
    "list index": lambda n, t: n.ModuleList([n.ReLU()])[3],
    "list of what": lambda n, t: n.ModuleList(3),
    "dict of what": lambda n, t: n.ModuleDict(3),
    "dict pairs": lambda n, t: n.ModuleDict([1]),
    "sequential kind": lambda n, t: n.Sequential(3),
    "hooks": hooks,
    "state hooks": state_hooks,
    "containers": containers,
    "misc": misc,
}


@pytest.mark.parametrize("name", CASES)
def test_module(name):
    kind, mine = outcome(CASES[name], strided)
    other, theirs = outcome(CASES[name], torch)
    assert kind == other
    if kind == "ok":
        assert mine == theirs
    else:  # PyTorch's sentence first, then perhaps more
        assert mine.startswith(theirs)
