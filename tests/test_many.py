"""Lists of tensors in one launch: updates, counts of steps, norms and scaling, against one tensor at a time and against exact sums."""
import math

import pytest

import strided as torch
from strided.kernels import native
from strided.nn.utils import clip_grad_norm_, get_total_norm
from strided.ops.many import fused_update, scale_all, total_norm


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture
def launches():
    """How many kernels were launched since the fixture was made, as a function."""
    kinds = []
    native.set_capture(lambda kind, *rest: kinds.append(kind))
    yield lambda: sum(kind in (0, 1) for kind in kinds)
    native.set_capture(None)


def uneven(dtype=torch.float32):
    """Tensors of many kinds: sizes zero, one, odd and large, transposed, of every other element."""
    torch.manual_seed(0)
    made = [torch.randn(s) for s in ((), (0,), (1,), (7,), (3, 5), (129,), (300, 257), (2, 3, 4, 5))]
    made += [torch.randn(6, 9).t(), torch.randn(40, 30)[::2, 1::3], torch.randn(5, 1).expand(5, 4).clone()]
    return [t.to(dtype) for t in made]


@fused_update("test_update_", 2, 3, 2)
def update(p, m, g, rate, keep, decays):
    m = m * keep + g
    return p - rate * (m + 0.5 * p if decays else m), m


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("decays", [False, True])
def test_a_list_is_updated_as_its_members_are(threads, dtype, decays):
    p, m, g = (uneven(dtype) for _ in range(3))
    together = list(zip(p, m, g))
    alone = [tuple(t.clone() for t in member) for member in together]
    versions = [(a._version, b._version, c._version) for a, b, c in together]
    with torch.no_grad():
        update(together, 0.1, 0.9, decays=decays)
        for member in alone:
            update([member], 0.1, 0.9, decays=decays)
    for a, b in zip(together, alone):
        assert a[0].equal(b[0]) and a[1].equal(b[1]) and a[2].equal(b[2])
    assert [(a._version - x, b._version - y, c._version - z) for (a, b, c), (x, y, z) in zip(together, versions)] == [(1, 1, 0)] * len(p)


def test_nothing_is_written_where_one_member_is_wrong():
    good, bad = [torch.ones(3) for _ in range(3)], [torch.ones(3), torch.ones(3), torch.ones(4)]
    with torch.no_grad(), pytest.raises(RuntimeError, match=r"must have one shape, but got \[3\] and \[4\]"):
        update([tuple(good), tuple(bad)], 0.1, 0.9, decays=False)
    assert good[0].tolist() == [1, 1, 1] and good[0]._version == 0


@pytest.mark.parametrize(
    "make, most",
    [
        (lambda p: torch.optim.SGD(p, lr=0.1), 1),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1), 1),
        (lambda p: torch.optim.Adam(p), 2),  # the counts of steps, then everything else
        (lambda p: torch.optim.AdamW(p, fused=True), 2),
        (lambda p: torch.optim.RMSprop(p, foreach=True), 2),
    ],
)
def test_a_step_is_one_launch_however_many_parameters(make, most, launches):
    parameters = [torch.ones(n % 7 + 1, requires_grad=True) for n in range(40)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    optimizer = make(parameters)
    optimizer.step()  # makes the state
    before = launches()
    optimizer.step()
    assert launches() - before == most
    assert all(p[0].item() == parameters[0][0].item() < 1 for p in parameters)


def test_parameters_may_be_at_different_steps():
    """A parameter without a gradient stays behind, and its corrections with it."""

    def run(together):
        p, q = (torch.zeros(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
        optimizers = [torch.optim.Adam([p, q])] if together else [torch.optim.Adam([p]), torch.optim.Adam([q])]
        for i in range(6):
            p.grad = torch.tensor([1.0, -2.0], dtype=torch.float64) * (i + 1)
            q.grad = p.grad.clone() if i % 2 else None
            for optimizer in optimizers:
                optimizer.step()
        return p.tolist(), q.tolist()

    assert run(True) == run(False)


@pytest.mark.parametrize("ord", [1.0, 2.0, math.inf, 3.0])
def test_total_norm(threads, ord):
    tensors = [t for t in uneven() if t.numel()]
    values = [abs(float(v)) for t in tensors for v in t.double().reshape(-1).tolist()]
    expected = max(values) if ord == math.inf else math.fsum(v**ord for v in values) ** (1 / ord)
    assert total_norm(tensors, ord).item() == pytest.approx(expected, rel=1e-6)
    assert get_total_norm([t.double() for t in tensors], ord).item() == pytest.approx(expected, rel=1e-12)
    assert get_total_norm(uneven(), 2.0).item() == total_norm(uneven(), 2.0).item()  # empty ones add nothing
    assert get_total_norm([]).item() == 0


def test_total_norm_of_16_bits_and_of_what_is_not_finite():
    a, b = torch.full((3,), 3.0, dtype=torch.bfloat16), torch.full((5,), 4.0, dtype=torch.bfloat16)
    norm = total_norm([a, b])
    assert norm.dtype == torch.bfloat16 and norm.item() == torch.tensor(math.sqrt(27 + 80)).bfloat16().item()
    assert math.isnan(total_norm([torch.ones(2), torch.tensor([math.nan])]).item())
    assert total_norm([torch.ones(2), torch.tensor([-math.inf])], math.inf).item() == math.inf


def test_clipping(threads, launches):
    parameters = [t.requires_grad_() for t in uneven() if t.numel()]
    for p in parameters:
        p.grad = torch.full_like(p, 2.0)
    norm = 2 * math.sqrt(sum(p.numel() for p in parameters))
    clip_grad_norm_(parameters, 1.0)
    for p in parameters:
        p.grad.fill_(2.0)
    before = launches()
    assert clip_grad_norm_(parameters, 1.0).item() == pytest.approx(norm, rel=1e-6)
    assert launches() - before <= 7  # all norms, the norm of norms, the factor's few operators, all gradients
    assert all(abs(v - 2 / norm) < 1e-6 for p in parameters for v in p.grad.reshape(-1).tolist())
    assert clip_grad_norm_(parameters, 5.0).item() == pytest.approx(1, rel=1e-4) and parameters[0].grad.item() == pytest.approx(2 / norm, rel=1e-4)


def test_scale_all():
    tensors = uneven()
    expected = [t * 0.5 for t in tensors]
    with torch.no_grad():
        scale_all([(t,) for t in tensors], 0.5)
    assert all(a.equal(b) for a, b in zip(tensors, expected))


def test_clamp_by_value(launches):
    parameters = [t.requires_grad_() for t in uneven()]
    for p in parameters:
        p.grad = p.detach() * 3
    parameters[3].grad[0] = math.nan
    expected = [p.grad.clamp(-0.5, 0.5) for p in parameters]
    torch.nn.utils.clip_grad_value_(parameters[:1], 9.0)  # makes nothing for the list
    before = launches()
    torch.nn.utils.clip_grad_value_(parameters, 0.5)
    assert launches() - before == 1
    assert all(p.grad.nan_to_num(7).equal(e.nan_to_num(7)) for p, e in zip(parameters, expected)) and parameters[3].grad[0].isnan()
