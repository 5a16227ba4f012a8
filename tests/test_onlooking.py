"""Gradients that are computed by kernels of their own are operators to whoever looks on (ops/onlooking.py): nothing is computed unseen, and it is counted."""
import pytest

import strided as torch
from strided import dispatch
from strided.kernels import native
from strided.kernels.runtime_capture import LAUNCH, LAUNCH_NEW

F, nn = torch.nn.functional, torch.nn
x = lambda *shape: torch.randn(shape, requires_grad=True)

STEPS = {
    "conv2d": lambda: nn.Conv2d(3, 4, 3, padding=1)(x(2, 3, 5, 5)),
    "conv1d, stride and groups": lambda: nn.Conv1d(4, 4, 3, stride=2, groups=2)(x(2, 4, 9)),
    "conv3d": lambda: nn.Conv3d(2, 3, 2)(x(1, 2, 4, 4, 4)),
    "conv_transpose2d": lambda: nn.ConvTranspose2d(3, 4, 2, stride=2)(x(2, 3, 5, 5)),
    "channels last": lambda: nn.Conv2d(8, 8, 3)(x(2, 8, 5, 5).contiguous(memory_format=torch.channels_last)),
    "attention": lambda: F.scaled_dot_product_attention(x(1, 2, 8, 4), x(1, 2, 8, 4), x(1, 2, 8, 4), is_causal=True),
    "attention, dropout": lambda: F.scaled_dot_product_attention(x(1, 2, 8, 4), x(1, 2, 8, 4), x(1, 2, 8, 4), dropout_p=0.5),
    "lstm": lambda: nn.LSTM(4, 3)(x(5, 2, 4))[0],
    "gru, both directions": lambda: nn.GRU(4, 3, bidirectional=True)(x(5, 2, 4))[0],
    "rnn": lambda: nn.RNN(4, 3)(x(5, 2, 4))[0],
    "batch_norm": lambda: nn.BatchNorm2d(3)(x(2, 3, 4, 4)),
    "batch_norm, evaluation": lambda: nn.BatchNorm1d(3).eval()(x(4, 3)),
    "group_norm": lambda: nn.GroupNorm(2, 4)(x(2, 4, 3, 3)),
    "layer_norm": lambda: nn.LayerNorm(4)(x(2, 4)),
    "rms_norm": lambda: nn.RMSNorm(4)(x(2, 4)),
    "softmax": lambda: x(3, 4).softmax(-1) + x(3, 4).log_softmax(0),
    "cross_entropy": lambda: F.cross_entropy(x(3, 4), torch.tensor([0, 1, 2])),
    "ctc_loss": lambda: F.ctc_loss(x(6, 2, 5).log_softmax(-1), torch.tensor([[1, 2], [3, 4]]), torch.tensor([6, 6]), torch.tensor([2, 2])),
    "pools": lambda: F.max_pool2d(x(1, 2, 4, 4), 2).sum() + F.avg_pool2d(x(1, 2, 4, 4), 2).sum() + F.adaptive_avg_pool2d(x(1, 2, 4, 4), 3).sum() + F.adaptive_max_pool2d(x(1, 2, 5, 5), 2).sum(),
    "interpolate": lambda: F.interpolate(x(1, 2, 4, 4), scale_factor=2, mode="bilinear").sum() + F.interpolate(x(1, 2, 4, 4), size=7, mode="bicubic").sum(),
    "grid_sample": lambda: F.grid_sample(x(1, 2, 4, 4), x(1, 3, 3, 2), align_corners=False),
    "embedding": lambda: nn.Embedding(5, 3)(torch.tensor([1, 2])),
    "indexing": lambda: x(4, 3)[torch.tensor([0, 0, 2])].sum() + x(4, 3)[:, 1].sum() + x(4, 3)[x(4, 3) > 0].sum(),
    "activations": lambda: sum(f(x(3, 4)).sum() for f in (F.gelu, F.silu, F.relu, F.softplus, torch.tanh, F.elu, F.mish)),
    "linear": lambda: nn.Linear(4, 3)(x(2, 4)) @ x(3, 2),
    "reductions": lambda: x(3, 4).amax(0).sum() + x(3, 4).var(1).sum() + x(3, 4).cumsum(1).sum() + x(3, 4).prod() + x(3, 4).norm() + x(3, 4).sort(1).values.sum(),
    "casts": lambda: x(3, 4).double().sum() + x(3, 4).bfloat16().float().sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_no_kernel_runs_unseen(name):
    unseen = []

    def note(kind, what, address, count, storage):
        if kind in (LAUNCH, LAUNCH_NEW) and not dispatch.CONTEXT.depth and dispatch.CONTEXT.phase == "backward":
            unseen.append(kind)

    out = STEPS[name]()
    events = []
    with dispatch.listen(events.append):
        native.set_capture(note)
        try:
            out.backward(torch.ones_like(out))
        finally:
            native.set_capture(None)
    assert events and not unseen


@pytest.mark.parametrize(
    "name, op, flops",
    [
        ("conv2d", "convolution_backward", 2 * 2 * (2 * 4 * 25) * 27 + 200),  # two products, and the bias
        ("conv_transpose2d", "convolution_backward", 2 * 2 * (2 * 3 * 25) * 16),
        ("attention", "scaled_dot_product_attention_backward", 2 * 8 * 8 * (4 * (4 + 4) + 5)),
        ("softmax", "softmax_backward", 12 * 4),
        ("lstm", "lstm_layer_backward", 5 * 2 * (2 * 2 * 3 * 12 + 24 * 3)),
        ("layer_norm", "layer_norm_backward", None),
        ("cross_entropy", "cross_entropy_backward", None),
    ],
)
def test_what_a_gradient_costs(name, op, flops):
    out = STEPS[name]()
    with dispatch.listen(lambda event: found.update({event.op: event})):
        found = {}
        out.backward(torch.ones_like(out))
    event = found[op]
    assert event.phase == "backward" and (event.flops == flops if flops else event.flops > 0) and event.bytes_allocated > 0


def test_a_gradient_to_be_differentiated_again_is_seen_operator_by_operator():
    t = x(3, 4)
    loss = t.softmax(1).square().sum()
    with dispatch.listen(lambda event: seen.append(event.op)):
        seen = []
        (g,) = torch.autograd.grad(loss, t, create_graph=True)
    assert "softmax_backward" not in seen and seen.count("mul") >= 2 and g.requires_grad


def test_threads_listen_and_leave_as_they_like():
    """None takes another's place, and nothing is left when all have gone."""
    import sys
    import threading

    from strided.dispatch import HOOKS, listen, surround, watch

    before = HOOKS.listeners, HOOKS.before, HOOKS.watchers, HOOKS.around, HOOKS.eager, HOOKS.users
    heard, interval = [], sys.getswitchinterval()
    x = torch.ones(2)

    def work():
        for _ in range(200):
            mine = []
            with listen(lambda event, mine=mine: mine.append(event.op), before=_nothing), surround(lambda entry, function: function, eager=True), watch(_nothing):
                x + 1
            heard.append("add" in mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert heard == [True] * 800
    assert (HOOKS.listeners, HOOKS.before, HOOKS.watchers, HOOKS.around, HOOKS.eager, HOOKS.users) == before


def _nothing(*given):
    pass
