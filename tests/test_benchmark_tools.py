"""torch.utils.benchmark and torch.utils.flop_counter: statements that are timed, products that are counted."""
import pytest

import strided as torch
from strided.dispatch import HOOKS
from strided.utils import benchmark, flop_counter
from strided.utils.benchmark import Compare, Measurement, TaskSpec, Timer
from strided.utils.flop_counter import FlopCounterMode

F, nn = torch.nn.functional, torch.nn


def task(**facts):
    return TaskSpec("x.sum()", "pass", **{"label": "sums", **facts})


# ---- times ----------------------------------------------------------------------------------------------------------------------


class Clock:
    """A clock that a statement moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def ticking(clock, seconds):
    def tick():
        clock.now += seconds

    return tick


def test_timers_count_runs():
    clock = Clock()
    timer = Timer("tick()", timer=clock, globals={"tick": ticking(clock, 0.001)})
    m = timer.timeit(50)
    assert m.number_per_run == 50 and m.raw_times == pytest.approx([0.05]) and m.median == m.mean == pytest.approx(0.001) and m.iqr == 0
    m = timer.blocked_autorange(min_run_time=0.2)
    assert m.number_per_run == 1 and len(m.times) in (200, 201) and m.median == pytest.approx(0.001) and not m.has_warnings
    fast = Timer("tick()", timer=clock, globals={"tick": ticking(clock, 1e-7)})
    assert fast.blocked_autorange(min_run_time=0.01).number_per_run in (100, 1000)  # a block takes ten microseconds, and the clock's own step is lost in it
    assert len(timer.adaptive_autorange(min_run_time=0.001).times) == 4
    seen = []
    timer.blocked_autorange(callback=lambda number, seconds: seen.append(number), min_run_time=0.005)
    assert set(seen) == {1}


def test_a_timer_knows_torch_and_its_threads():
    before = torch.get_num_threads()
    found = []
    Timer("found.append((torch.get_num_threads(), y))", setup="y = 3", globals={"found": found}, num_threads=2).timeit(1)
    assert found[-1] == (2, 3) and torch.get_num_threads() == before
    with pytest.raises(NotImplementedError, match="only Python statements"):
        Timer("x;", language="c++")
    with pytest.raises(NotImplementedError, match="blocked_autorange"):
        Timer().repeat()
    with pytest.raises(NameError):
        Timer("nowhere").timeit(1)
    assert torch.get_num_threads() == before


def test_measurements_tell_of_their_spread():
    m = Measurement(10, [1e-5, 1.1e-5, 1.2e-5, 1.3e-5, 2e-5], task(sub_label="4", description="mine"))
    assert m.median == pytest.approx(1.2e-6) and m.iqr == pytest.approx(0.2e-6) and m.mean == pytest.approx(1.32e-6) and m.significant_figures == 1
    assert m.label == "sums" and m.num_threads == 1 and m.title == "sums: 4" and m.as_row_name == "4" and m.env == "Unspecified env" and m.has_warnings
    assert str(m).splitlines()[1:] == [
        "sums: 4", "mine", "  Median: 1.20 us", "  IQR:    0.20 us (1.10 to 1.30)", "  5 measurements, 10 runs per measurement, 1 thread",
        "  WARNING: Interquartile range is 16.7% of the median measurement.", "           This could indicate system fluctuation.",
    ]  # fmt: skip
    one = Measurement(100, [2.0], TaskSpec("a\nb", "c = 1", num_threads=2))
    assert str(one).splitlines()[1:] == ["stmt:", "  a", "  b", "", "setup: c = 1", "  20.00 ms", "  1 measurement, 100 runs , 2 threads"]
    (both,) = Measurement.merge([m, Measurement(1, [1e-6], m.task_spec)])
    assert both.number_per_run == 1 and len(both.times) == 6
    with pytest.raises(AttributeError, match="'Measurement' object has no attribute 'medain'"):
        m.medain
    assert benchmark.select_unit(3e-5)[0] == "us" and benchmark.trim_sigfig(1234.0, 2) == 1200 and benchmark.select_unit(2.0) == ("s", 1.0)


def test_measurements_as_a_table():
    table = Compare([
        Measurement(1, [2.5e-6], task(sub_label="64", description="sum")), Measurement(1, [13.52e-6], task(sub_label="512", description="mean")),
        Measurement(1, [7.9e-6], task(sub_label="64", description="mean", num_threads=2)),
    ])  # fmt: skip
    assert str(table).splitlines() == [
        "[--------- sums ---------]", "           |  sum  |  mean", "1 threads: ---------------", "      64   |  2.5  |      ", "      512  |       |  13.5",
        "2 threads: ---------------", "      64   |       |   7.9", "", "Times are in microseconds (us).",
    ]  # fmt: skip
    table.colorize()
    assert "\033[92m\033[1m2.5\033[0m" in str(table)
    table.extend_results([Measurement(1, [1e-6, 2e-6, 3e-6, 4e-6], task(sub_label="8", description="sum"))])
    table.highlight_warnings()
    assert "(! 60%)" in str(table)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        table.extend_results([1.0])


# ---- products -------------------------------------------------------------------------------------------------------------------


def count(function, grad=True):
    with FlopCounterMode(display=False) as counter:
        result = function()
        if grad:
            result.sum().backward()
    return counter.get_flop_counts()["Global"]


def R(*shape):
    return torch.randn(*shape, requires_grad=True)


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda: F.linear(R(3, 4), R(5, 4), R(5)), {"aten.addmm": 120, "aten.mm": 240}),
        (lambda: F.linear(R(2, 3, 4), R(5, 4)), {"aten.mm": 720}),
        (lambda: R(2, 3, 4) @ R(2, 4, 5), {"aten.bmm": 720}),
        (lambda: R(2, 3, 4) @ R(4, 5), {"aten.mm": 720}),
        (lambda: torch.baddbmm(R(2, 3, 5), R(2, 3, 4), R(2, 4, 5)), {"aten.baddbmm": 240, "aten.bmm": 480}),
        (lambda: F.conv2d(torch.randn(2, 3, 8, 8), R(4, 3, 3, 3), stride=2, padding=1), {"aten.convolution": 6912, "aten.convolution_backward": 6912}),
        (lambda: F.conv1d(R(2, 4, 8), R(4, 2, 3), groups=2), {"aten.convolution": 576, "aten.convolution_backward": 1728}),  # the weight's: every pair of channels, as in PyTorch
        (lambda: F.conv_transpose2d(R(2, 3, 8, 8), R(3, 4, 3, 3), stride=2), {"aten.convolution": 27648, "aten.convolution_backward": 55296}),
        (lambda: F.scaled_dot_product_attention(R(2, 6, 8), R(2, 6, 8), R(2, 6, 8)), {"aten.bmm": 6912}),
        (lambda: F.scaled_dot_product_attention(R(2, 2, 6, 8), R(2, 2, 9, 8), R(2, 2, 9, 8)),
         {"aten._scaled_dot_product_flash_attention": 6912, "aten._scaled_dot_product_flash_attention_backward": 17280}),
        (lambda: nn.GRU(4, 5)(R(6, 2, 4))[0], {"aten.addmm": 3240, "aten.mm": 6180}),
        (lambda: torch.outer(R(2), R(3)) + 1, {}),
    ],
)  # fmt: skip
def test_products_of_operators(function, wanted):
    assert count(function) == wanted


def test_out_and_inplace_forms_count():
    a, b = torch.ones(3, 4), torch.ones(4, 5)
    assert count(lambda: torch.mm(a, b, out=torch.empty(3, 5)), grad=False) == {"aten.mm": 120}
    assert count(lambda: torch.ones(3, 5).addmm_(a, b), grad=False) == {"aten.addmm": 120}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(8 * 16, 10)

    def forward(self, x):
        return self.fc(self.a(x).flatten(1))


def test_products_of_modules(capsys):
    before = HOOKS.users, HOOKS.eager
    net = Net()
    with FlopCounterMode(depth=3) as counter:
        net(torch.randn(2, 3, 8, 8)).sum().backward()
    convolutions = {"aten.convolution": 55296, "aten.convolution_backward": 55296}
    linear = {"aten.addmm": 5120, "aten.mm": 10240}
    assert counter.get_flop_counts() == {"Global": {**convolutions, **linear}, "Net": {**convolutions, **linear}, "Net.a": convolutions, "Net.a.0": convolutions, "Net.fc": linear}
    assert counter.get_total_flops() == 125952 and (HOOKS.users, HOOKS.eager) == before
    text = capsys.readouterr().out.splitlines()
    assert text[0].split() == ["Module", "FLOP", "%", "Total"] and text[2].split() == ["Net", "125.952K", "100.00%"] and text[-1].split() == ["-", "aten.mm", "10.240K", "8.13%"]
    assert "Net.a.0" in counter.get_table(3) and "Net.a.0" not in counter.get_table(2)
    (net(torch.randn(2, 3, 8, 8)).sum() * 1).backward()  # nothing is left behind
    assert counter.get_total_flops() == 125952


def test_compiled_functions_count():
    net = Net()
    compiled = torch.compile(net)
    for _ in range(2):
        compiled(torch.randn(2, 3, 8, 8)).sum().backward()
    assert sum(count(lambda: compiled(torch.randn(2, 3, 8, 8))).values()) == 125952


def test_what_fails_leaves_no_module_open():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError

    with FlopCounterMode(display=False) as counter:
        with pytest.raises(ValueError):
            Fails()(torch.ones(1))
        torch.ones(2, 3) @ torch.ones(3, 4)
    assert counter.get_flop_counts() == {"Global": {"aten.mm": 48}}
    with pytest.raises(NotImplementedError, match="custom_mapping"):
        FlopCounterMode(custom_mapping={1: 2})


def test_formulas():
    assert flop_counter.mm_flop((3, 4), (4, 5)) == 120 and flop_counter.bmm_flop((2, 3, 4), (2, 4, 5)) == 240
    assert flop_counter.conv_flop_count((2, 3, 8, 8), (4, 3, 3, 3), (2, 4, 6, 6)) == 15552
    assert flop_counter.conv_backward_flop_count((2, 4, 6, 6), (2, 3, 8, 8), (4, 3, 3, 3)) == 31104
    assert flop_counter.sdpa_flop_count((2, 2, 6, 8), (2, 2, 9, 8), (2, 2, 9, 8)) == 6912
    assert flop_counter.convert_num_with_suffix(1234567, "M") == "1.235M" and flop_counter.get_suffix_str(125952) == "K"
