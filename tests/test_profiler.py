"""torch.profiler: what a profile collects, its averages and table, its trace, its schedule."""
import gzip
import json
import warnings

import pytest

import strided as torch
from strided.autograd import profiler as plain
from strided.autograd import profiler_util
from strided.dispatch import HOOKS
from strided.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

F = torch.nn.functional


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


@pytest.fixture(scope="module")
def trained():
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(3, 8), torch.tensor([0, 1, 2])
    with profile(record_shapes=True, profile_memory=True, with_flops=True, with_stack=True) as prof:
        with record_function("training"):
            step(model, optimizer, x, y)
            step(model, optimizer, x, y)
    return prof


def of(prof, key):
    (row,) = [row for row in prof.key_averages() if row.key == key]
    return row


def test_rows_and_counts(trained):
    assert of(trained, "training").count == 1 and of(trained, "training").is_user_annotation
    assert of(trained, "aten::linear").count == of(trained, "aten::addmm").count == 4
    assert of(trained, "aten::relu").count == of(trained, "aten::cross_entropy_loss").count == 2
    assert of(trained, "aten::mm").count == 6  # two a second layer, one a first
    assert of(trained, "AddmmBackward0").count == 4 and of(trained, "ReluBackward0").count == 2
    assert of(trained, "Optimizer.step#Adam.step").count == of(trained, "Optimizer.zero_grad#Adam.zero_grad").count == 2
    assert of(trained, "strided::adam_").count == 2


def test_times_nest(trained):
    whole = of(trained, "training")
    assert trained.events().self_cpu_time_total == pytest.approx(whole.cpu_time_total)
    for event in trained.events():
        assert 0 <= event.self_cpu_time_total <= event.cpu_time_total == event.time_range.elapsed_us()
        if event.name == "aten::addmm":
            assert event.cpu_parent.name == "aten::linear" and event.cpu_parent.cpu_parent.name == "training"
        if event.name == "strided::adam_":
            assert event.cpu_parent.name == "Optimizer.step#Adam.step"
        if event.name == "aten::relu_backward":
            assert event.cpu_parent.name == "ReluBackward0"
    total = trained.events().total_average()
    assert total.key == "Total" and total.self_cpu_time_total == pytest.approx(whole.cpu_time_total)


def test_flops_memory_shapes_and_lines(trained):
    assert of(trained, "aten::addmm").flops == 2 * (2 * 3 * 8 * 16 + 2 * 3 * 16 * 4)
    assert of(trained, "aten::linear").flops == 2 * (3 * 16 + 3 * 4)  # the bias; the product is addmm's
    assert of(trained, "aten::addmm").cpu_memory_usage == 2 * 4 * (3 * 16 + 3 * 4)
    assert of(trained, "Optimizer.zero_grad#Adam.zero_grad").cpu_memory_usage == -4 * (8 * 16 + 16 + 16 * 4 + 4)  # the first step had no gradients yet
    shapes = {str(row.input_shapes): row.count for row in trained.key_averages(group_by_input_shape=True) if row.key == "aten::linear"}
    assert shapes == {"[[3, 8], [16, 8], [16]]": 2, "[[3, 16], [4, 16], [4]]": 2}
    stacks = [row for row in trained.key_averages(group_by_stack_n=1) if row.key == "aten::linear"]
    assert len(stacks) == 1 and stacks[0].stack[0].startswith(__file__) and stacks[0].stack[0].endswith("): step")


def test_table(trained):
    text = trained.key_averages().table(sort_by="cpu_time_total", row_limit=3)
    lines = text.splitlines()
    assert lines[1].split("  ")[-2].strip() == "Total FLOPs" and [word.strip() for word in lines[1].split("  ") if word.strip()] == [
        "Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "CPU Mem", "Self CPU Mem", "# of Calls", "Total FLOPs",
    ]  # fmt: skip
    assert len({len(line) for line in lines[:7]}) == 1 and len(lines) == 3 + 3 + 2
    assert lines[3].split()[0] == "training" and lines[3].split()[3] == "100.00%" and lines[-1].startswith("Self CPU time total: ")
    counts = [row.count for row in trained.key_averages()]
    by_count = trained.key_averages().table(sort_by="count", row_limit=1).splitlines()[3]
    assert f" {max(counts)} " in by_count
    assert "Input Shapes" in trained.key_averages(group_by_input_shape=True).table() and "Source Location" in trained.key_averages(group_by_stack_n=2).table()
    assert "..." not in trained.key_averages().table(max_name_column_width=80) and "training" not in trained.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=1)
    assert trained.key_averages().table(header="what it took", time_unit="s", row_limit=1).splitlines()[1] == "what it took"
    with pytest.raises(AttributeError):
        trained.key_averages().table(sort_by="cpu_tiem")


def test_times_and_sizes_are_written_as_pytorch_writes_them():
    assert [profiler_util.format_time(t) for t in (0, 12.3456, 1234.5, 2.5e6)] == ["0.000us", "12.346us", "1.234ms", "2.500s"]
    assert [profiler_util.format_memory(n) for n in (0, -244, 1536, 3 << 20, -(5 << 30))] == ["0 B", "-244 B", "1.50 KB", "3.00 MB", "-5.00 GB"]
    assert profiler_util.EventList().table() == ""


def test_trace(trained, tmp_path):
    trained.add_metadata("run", "first")
    trained.add_metadata_json("sizes", "[1, 2]")
    trained.export_chrome_trace(str(tmp_path / "trace.json"))
    trained.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace == json.loads(gzip.open(tmp_path / "trace.json.gz").read()) and trace["run"] == "first" and trace["sizes"] == [1, 2]
    rows = [row for row in trace["traceEvents"] if row["ph"] == "X"]
    assert len(rows) == len(trained.events()) and all(row["dur"] >= 0 for row in rows)
    linear = next(row for row in rows if row["name"] == "aten::linear")
    assert linear["cat"] == "cpu_op" and linear["args"]["Input Dims"] == [[3, 8], [16, 8], [16]]
    assert next(row for row in rows if row["name"] == "training")["cat"] == "user_annotation"
    trained.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert any("_step " in line and line.rsplit(" ", 1)[1].isdigit() for line in (tmp_path / "stacks").read_text().splitlines())


def test_a_schedule_records_steps(tmp_path):
    ready = []
    handler = tensorboard_trace_handler(str(tmp_path), "worker")

    def on_ready(prof):
        ready.append(sorted(row.key for row in prof.key_averages() if row.key.startswith("ProfilerStep")))
        handler(prof)

    with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=on_ready) as prof:
        for _ in range(10):
            torch.ones(3).add(1)
            prof.step()
    assert ready == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]
    assert len(list(tmp_path.glob("worker.*.pt.trace.json"))) == 2 and of(prof, "aten::add").count == 2 and prof.step_num == 10


def test_events_of_all_cycles_are_kept_on_request():
    with profile(schedule=schedule(wait=0, warmup=1, active=1), acc_events=True) as prof:
        for _ in range(6):
            torch.ones(3).add(1)
            prof.step()
    assert of(prof, "aten::add").count == 3


def test_wrong_schedules():
    with pytest.raises(AssertionError, match="Invalid profiler schedule arguments"):
        schedule(wait=1, warmup=1, active=0)
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=1, warmup=0, active=1)
    actions = [ProfilerAction.RECORD, ProfilerAction.NONE, ProfilerAction.NONE]
    with profile(schedule=actions.__getitem__) as prof:
        with pytest.warns(UserWarning, match="RECORD followed by NONE"):
            prof.step()


def test_one_profile_at_a_time_and_nothing_afterwards():
    before = HOOKS.users
    with profile() as prof:
        with pytest.raises(RuntimeError, match="Profiler is already enabled on this thread"):
            with profile():
                pass
        with pytest.raises(AssertionError, match="still running"):
            prof.events()
        with pytest.raises(ZeroDivisionError):
            with record_function("fails"):
                1 / 0
        with pytest.raises(RuntimeError):
            torch.ones(2) @ torch.ones(3)
        torch.ones(2)
    assert HOOKS.users == before and not HOOKS.around and not plain.RUNNING
    assert {row.key for row in prof.key_averages()} == {"fails", "aten::ones"}
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        prof.export_stacks("nowhere")


def test_other_devices_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="CUDA is not available, disabling CUDA profiling"):
        prof = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    assert prof.activities == {ProfilerActivity.CPU} == torch.profiler.supported_activities()


def test_the_plain_profile():
    @record_function("twice")
    def twice(x):
        return x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with torch.autograd.profiler.profile(record_shapes=True) as prof:
            assert str(prof) == "<unfinished torch.autograd.profile>"
            twice(twice(torch.ones(2)))
    assert [event.name for event in prof.function_events] == ["aten::ones", "twice", "aten::mul", "twice", "aten::mul"]
    assert of(prof, "twice").count == 2 and "aten::mul" in prof.table() and prof.self_cpu_time_total > 0 and str(prof) == prof.table()
    with torch.autograd.profiler.profile(enabled=False) as prof:
        torch.ones(2)
    with pytest.raises(RuntimeError, match="didn't finish"):
        prof.function_events


def test_composites_are_opened_and_results_stay():
    torch.manual_seed(1)
    attention, x = torch.nn.MultiheadAttention(8, 2), torch.randn(3, 2, 8)
    wanted = attention(x, x, x)[0]
    with profile() as prof:
        found = attention(x, x, x)[0]
    assert torch.equal(found, wanted)
    whole = next(event for event in prof.events() if event.name == "aten::_native_multi_head_attention")
    assert {"aten::linear", "aten::softmax"} <= {child.name for child in whole.cpu_children}
    with torch.autocast("cpu", torch.bfloat16):
        wanted = attention(x, x, x)[0]
        with profile() as prof:
            found = attention(x, x, x)[0]
    assert torch.equal(found, wanted)


def test_other_threads_are_not_looked_at():
    import threading

    with profile() as prof:
        thread = threading.Thread(target=lambda: torch.ones(2).mul(3))
        thread.start()
        thread.join()
    assert not prof.events()


def test_a_compiled_call_is_one_row():
    model = network()
    compiled, x = torch.compile(model), torch.randn(3, 8)
    for _ in range(3):
        compiled(x).sum().backward()
    with profile() as prof:
        compiled(x).sum().backward()
    assert of(prof, "Torch-Compiled Region: Sequential").count == of(prof, "CompiledFunctionBackward0").count == 1
    assert "aten::linear" not in {row.key for row in prof.key_averages()}


def test_reading_is_a_row():
    loader = torch.utils.data.DataLoader(torch.arange(6.0), batch_size=2)
    with profile() as prof:
        assert len(list(loader)) == 3
    assert of(prof, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__").count == 4  # the last one says that there is no more
