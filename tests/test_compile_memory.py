"""When compiled programs take and give back memory: lifetimes, stages, and the peak of a training step. What programs compute is in the other tests of compile."""

import pytest

import strided as torch
from strided import nn
from strided.compile.lifetimes import cut, lifetimes, plan_memory
from strided.compile.program import Step
from strided.memory import max_memory_allocated, memory_allocated, reset_peak_memory_stats

ROWS, WIDTH = 256, 256
TENSOR = ROWS * WIDTH * 4  # bytes of a layer's weight, and of its input


def deep(dropout=0.0, layers=10):
    torch.manual_seed(0)
    net = nn.Sequential(*[m for _ in range(layers) for m in (nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Dropout(dropout))])
    x = torch.randn(ROWS, WIDTH)
    return net, lambda: net(x).square().mean()


def peak_of(call):
    before = memory_allocated()
    reset_peak_memory_stats()
    call()
    return max_memory_allocated() - before


def train_step(net, loss):
    def step():
        net.zero_grad()
        loss().backward()

    return step


def entry_of(compiled):
    ((entry,),) = compiled.entries.values()
    return entry


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_the_backward_pass_makes_room_for_gradients(dropout):
    net, loss = deep(dropout)
    eager = train_step(net, loss)
    eager()
    net.zero_grad()
    wanted = peak_of(eager)
    expected = [p.grad.clone() for p in net.parameters()]
    compiled = torch.compile(loss)
    step = train_step(net, compiled)
    for _ in range(3):
        step()
    net.zero_grad()
    assert peak_of(step) <= wanted + TENSOR // 8  # ten kept results and ten gradients, of which about ten are held at once
    entry = entry_of(compiled)
    assert len(entry.backward.program.stages) > 1 and len(entry.kept) > 1
    if not dropout:
        assert all(torch.equal(p.grad, e) for p, e in zip(net.parameters(), expected))
    assert entry.backward.program.arena <= 3 * TENSOR


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_graph_that_is_retained_keeps_what_it_needs(dropout):
    net, loss = deep(dropout)
    compiled = torch.compile(loss)
    for _ in range(3):
        net.zero_grad()
        compiled().backward()
    net.zero_grad()
    value = compiled()
    found = []
    for retain in (True, True, False):
        value.backward(retain_graph=retain)
        found.append([p.grad.clone() for p in net.parameters()])
        net.zero_grad()
    assert all(torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(*found))
    assert found[0][0].abs().sum() > 0
    with pytest.raises(RuntimeError, match="second time"):
        value.backward()


def test_a_small_program_is_not_cut():
    net = nn.Linear(4, 4)
    compiled = torch.compile(lambda x: net(x).tanh().sum())
    for _ in range(3):
        compiled(torch.ones(2, 4)).backward()
    entry = entry_of(compiled)
    assert len(entry.forward.stages) == len(entry.backward.program.stages) == 1


def test_a_whole_training_step_takes_gradients_late():
    net, loss = deep()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def step():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value.detach()

    compiled = torch.compile(step)
    for _ in range(4):
        compiled()
        optimizer.zero_grad()
    assert not compiled.reasons
    wanted = peak_of(step)
    optimizer.zero_grad()
    assert peak_of(compiled) <= wanted + 2 * TENSOR  # updates are computed as soon as the gradient is, not after the backward pass: else twenty would be held
    assert len(entry_of(compiled).forward.stages) > 1


def test_a_failing_check_runs_the_original_call():
    table = nn.Embedding(600, 512)
    weight = nn.Parameter(torch.randn(512, 512))

    def loss(idx):
        return (table(idx) @ weight).tanh().sum()

    compiled = torch.compile(loss)
    good, bad = torch.arange(600), torch.full((600,), 600)
    for _ in range(3):
        compiled(good).backward()
    before = memory_allocated()
    with pytest.raises(IndexError):
        compiled(bad)
    assert memory_allocated() <= before + 4096
    table.weight.grad = weight.grad = None
    compiled(good).backward()
    found = table.weight.grad.clone(), weight.grad.clone()
    table.weight.grad = weight.grad = None
    loss(good).backward()
    assert torch.allclose(found[0], table.weight.grad, atol=1e-6) and torch.allclose(found[1], weight.grad, atol=1e-4)


@pytest.mark.parametrize("retain", [False, True])
def test_results_take_the_place_of_inputs_that_nothing_needs_afterwards(retain):
    torch.manual_seed(0)
    head, x, classes = nn.Linear(64, 3000), torch.randn(128, 64), torch.randint(0, 3000, (128,))
    compiled = torch.compile(lambda: nn.functional.cross_entropy(head(x), classes))
    nn.functional.cross_entropy(head(x), classes).backward()
    expected, head.weight.grad = head.weight.grad, None
    for _ in range(3):
        head.weight.grad = None
        compiled().backward()
    value = compiled()
    head.weight.grad = None
    logits = 128 * 3000 * 4
    if retain:
        value.backward(retain_graph=True)
        head.weight.grad = None
    assert peak_of(value.backward) < logits  # the weight's gradient alone is half of it: their own takes the logits' place
    assert torch.allclose(head.weight.grad, expected, atol=1e-7)


def test_a_result_that_is_scaled_in_place_is_made_where_it_stays():
    """A gradient that is clipped and stays in `.grad`: the product writes into its memory, and no other is taken for what was there before."""
    torch.manual_seed(0)
    ws, x = [torch.randn(160, 160, requires_grad=True) for _ in range(3)], torch.randn(8, 160)

    def step():
        for w in ws:
            w.grad = None
        sum((x @ w).sum() for w in ws).backward()
        torch.nn.utils.clip_grad_norm_(ws, 1.0)

    run = torch.compile(step)
    for _ in range(3):
        run()
        found = [w.grad for w in ws]
        step()
        assert all(torch.equal(g, w.grad) for g, w in zip(found, ws))
    assert run.report()["kinds"][-1]["forward"]["arena"] < ws[0].grad.nbytes


def test_what_is_cheap_is_computed_again_rather_than_kept():
    torch.manual_seed(0)
    gate, up, x = nn.Linear(64, WIDTH), nn.Linear(64, WIDTH), torch.randn(ROWS, 64)

    def loss():
        return (nn.functional.silu(gate(x)) * up(x)).sum()

    parameters = [*gate.parameters(), *up.parameters()]
    expected = torch.autograd.grad(loss(), parameters)
    compiled = torch.compile(loss)
    for _ in range(3):
        found = torch.autograd.grad(compiled(), parameters)
    assert all(torch.allclose(a, b, rtol=1e-5, atol=1e-5) for a, b in zip(found, expected))
    kept = sum(entry_of(compiled).kept)
    assert 2 * TENSOR <= kept < 3 * TENSOR  # both products; silu(gate) is made from one of them
    with torch.no_grad():
        up.bias.add_(1.0)  # no gradient needs it
    compiled().backward()


# ---- the plan itself --------------------------------------------------------------------------------------------------------------


def block(number):
    return ("block", number), 0


def test_lifetimes_end_with_flags_behind_the_last_step():
    steps = [Step(b"", (block(0), block(1)), None), Step("flag", (block(1),), None), Step(b"", (block(2), block(0), 7), None)]
    assert lifetimes(steps) == {("block", 0): [0, 2], ("block", 1): [0, 3], ("block", 2): [2, 2]}


def test_blocks_that_never_live_together_share_their_place():
    life = {"a": [0, 1], "b": [1, 2], "c": [2, 3]}
    offsets, nbytes = plan_memory(life, {"a": 100, "b": 64, "c": 128})
    assert offsets == {"c": 0, "a": 0, "b": 128} and nbytes == 192


def test_cuts_let_what_was_read_go_before_what_is_made_comes():
    size, count = 1 << 22, 8
    kept = [(size, -1, k) for k in range(count)]
    grads = [(size, k, count) for k in range(count)]
    assert cut(kept, count) == ([], count * size)  # it is all there at the start
    cuts, held = cut(kept + grads, count)
    assert held == (count + 1) * size and cuts == list(range(1, count))
    assert cut(kept + grads, count, [3], enough=100 * size) == ([3], max(count + 3, count - 3 + count) * size)
    assert cut([(10, -1, 0), (10, 1, 2)], 2) == ([], 20)  # so little is not worth it
