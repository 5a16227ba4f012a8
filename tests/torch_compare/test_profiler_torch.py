"""FLOP counts and profiles next to PyTorch's: the same products, rows of the same names and counts."""
import pytest

import strided

torch = pytest.importorskip("torch")
pytest.importorskip("torch.utils.flop_counter")


def linear(t):
    return t.nn.Linear(4, 5)(t.ones(2, 3, 4))


def attention(t):
    return t.nn.MultiheadAttention(8, 2)(*[t.ones(3, 2, 8)] * 3)[0]


def encoder(t):
    return t.nn.TransformerEncoderLayer(8, 2, 16)(t.ones(3, 2, 8, requires_grad=True))


def images(t):
    return t.nn.Sequential(t.nn.Conv2d(3, 8, 3, stride=2), t.nn.ReLU(), t.nn.Conv2d(8, 4, 3, groups=2), t.nn.Flatten(), t.nn.LazyLinear(3))(t.ones(2, 3, 16, 16))


def transposed(t):
    return t.nn.ConvTranspose1d(4, 6, 3, 2, groups=2)(t.ones(2, 4, 8, requires_grad=True))


def recurrent(t):
    return t.nn.GRU(4, 5, num_layers=2)(t.ones(6, 2, 4))[0]


def products(t):
    a, b = t.ones(2, 3, 4, requires_grad=True), t.ones(2, 4, 5, requires_grad=True)
    return t.einsum("bij,bjk->bik", a, b) + a @ b + t.baddbmm(t.ones(2, 3, 5), a, b) + a @ b[0] + t.tensordot(a, b, ([0, 2], [0, 1]))


@pytest.mark.parametrize("program", [linear, attention, encoder, images, transposed, recurrent, products])
def test_flops(program):
    counts = []
    for library, mode in ((torch, torch.utils.flop_counter.FlopCounterMode), (strided, strided.utils.flop_counter.FlopCounterMode)):
        with mode(display=False) as counter:
            program(library).sum().backward()
        counts.append({module: {str(name): flops for name, flops in rows.items() if flops} for module, rows in counter.get_flop_counts().items()})
    assert counts[0] == counts[1]


def test_rows_of_a_profile():
    found = []
    for library, profiler in ((torch, torch.profiler), (strided, strided.profiler)):
        model = library.nn.Sequential(library.nn.Linear(8, 16), library.nn.ReLU(), library.nn.Linear(16, 4))
        optimizer = library.optim.Adam(model.parameters())
        x, y = library.ones(3, 8), library.tensor([0, 1, 2])
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
            for _ in range(3):
                with profiler.record_function("forward"):
                    loss = library.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        rows = {row.key: row.count for row in prof.key_averages()}
        found.append({key: rows[key] for key in (
            "forward", "aten::linear", "aten::addmm", "aten::mm", "aten::relu", "aten::cross_entropy_loss", "AddmmBackward0", "ReluBackward0",
            "Optimizer.step#Adam.step", "Optimizer.zero_grad#Adam.zero_grad",
        )})  # fmt: skip
        found[-1]["shapes"] = sorted(row.count for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::linear")
        table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=5, max_name_column_width=30)
        found[-1]["heading"] = [word.strip() for word in table.splitlines()[1].split("  ") if word.strip()]
    assert found[0] == found[1]
