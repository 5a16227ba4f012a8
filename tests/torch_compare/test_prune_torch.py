"""nn.utils.prune beside PyTorch's: the same masks, names, state dicts and errors."""
import pytest

torch = pytest.importorskip("torch")
import strided


def nets():
    for lib in (torch, strided):
        lib.manual_seed(0)
        net = lib.nn.Sequential(lib.nn.Conv2d(2, 6, 3), lib.nn.Linear(12, 8))
        yield lib, net


CALLS = {
    "identity": lambda lib, net, p: p.identity(net[1], "bias"),
    "l1": lambda lib, net, p: p.l1_unstructured(net[1], "weight", 0.3),
    "l1 count": lambda lib, net, p: p.l1_unstructured(net[1], "weight", 7),
    "l1 scores": lambda lib, net, p: p.l1_unstructured(net[1], "bias", 3, importance_scores=-lib.arange(8.0)),
    "random": lambda lib, net, p: p.random_unstructured(net[1], "weight", 0.5),
    "random slices": lambda lib, net, p: p.random_structured(net[0], "weight", 2, 0),
    "ln": lambda lib, net, p: p.ln_structured(net[0], "weight", 0.5, 2, 0),
    "ln last": lambda lib, net, p: p.ln_structured(net[1], "weight", 5, float("inf"), -1),
    "mask": lambda lib, net, p: p.custom_from_mask(net[1], "bias", lib.tensor([1.0, 0, 1, 0, 1, 1, 1, 0])),
    "twice": lambda lib, net, p: p.l1_unstructured(p.ln_structured(net[1], "weight", 0.25, 1, 0), "weight", 0.5),
    "thrice": lambda lib, net, p: p.ln_structured(p.random_unstructured(p.l1_unstructured(net[0], "weight", 10), "weight", 10), "weight", 1, 2, 1),
    "global": lambda lib, net, p: p.global_unstructured([(net[0], "weight"), (net[1], "weight")], p.L1Unstructured, amount=0.4),
    "global twice": lambda lib, net, p: [p.global_unstructured([(net[0], "weight"), (net[1], "bias")], p.L1Unstructured, amount=n) for n in (5, 9)],
    "removed": lambda lib, net, p: p.remove(p.l1_unstructured(net[1], "weight", 0.3), "weight"),
    "nothing": lambda lib, net, p: p.l1_unstructured(net[1], "weight", 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_masks_and_states(name):
    states = []
    for lib, net in nets():
        lib.manual_seed(3)
        CALLS[name](lib, net, __import__(f"{lib.__name__}.nn.utils.prune", fromlist=["x"]))
        x = lib.linspace(-1, 1, 2 * 5 * 14).reshape(1, 2, 5, 14)
        y = net(x)
        y.square().sum().backward()
        grads = {k: v.grad.tolist() for k, v in net.named_parameters() if v.grad is not None}
        states.append(({k: v.tolist() for k, v in net.state_dict().items()}, [n for n, _ in net.named_parameters()], y.tolist(), grads))
    (a, names, y, grads), (b, names2, y2, grads2) = states
    assert list(a) == list(b) and names == names2 and a == b
    assert torch.allclose(torch.tensor(y), torch.tensor(y2), rtol=1e-4, atol=1e-5)
    assert grads.keys() == grads2.keys()
    for key in grads:
        assert torch.allclose(torch.tensor(grads[key]), torch.tensor(grads2[key]), rtol=1e-3, atol=1e-4), key


WRONG = [
    lambda lib, net, p: p.l1_unstructured(net[1], "weight", "much"),
    lambda lib, net, p: p.l1_unstructured(net[1], "weight", 1.5),
    lambda lib, net, p: p.l1_unstructured(net[1], "weight", -1),
    lambda lib, net, p: p.l1_unstructured(net[1], "weight", 97),
    lambda lib, net, p: p.ln_structured(net[1], "bias", 1, 2, 0),
    lambda lib, net, p: p.ln_structured(net[1], "weight", 1, 2, 5),
    lambda lib, net, p: p.remove(net[1], "weight"),
    lambda lib, net, p: p.l1_unstructured(net[1], "nothing", 0.5),
    lambda lib, net, p: p.global_unstructured([(net[0], "weight")], p.RandomStructured, amount=0.4),
    lambda lib, net, p: p.global_unstructured(3, p.L1Unstructured, amount=0.4),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_errors(number):
    found = []
    for lib, net in nets():
        before = {k: v.tolist() for k, v in net.state_dict().items()}
        with pytest.raises(Exception) as error:
            WRONG[number](lib, net, __import__(f"{lib.__name__}.nn.utils.prune", fromlist=["x"]))
        if lib is strided:
            assert {k: v.tolist() for k, v in net.state_dict().items()} == before
        found.append((type(error.value), str(error.value).split("\n")[0].replace("strided.nn", "torch.nn")))
    assert issubclass(found[1][0], found[0][0]) and found[0][1] == found[1][1]
