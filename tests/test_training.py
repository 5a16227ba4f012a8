"""Training end to end: the shipped examples, memory under checkpointing, 16-bit training, saving that is cut short, and Ctrl-C among workers."""
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

import strided as torch
import strided.nn
import strided.optim
from strided.memory import max_memory_allocated, memory_allocated, reset_peak_memory_stats
from strided.utils.checkpoint import checkpoint
from support import run_strided

nn, F = torch.nn, torch.nn.functional
EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"


def losses(text):
    return [float(found) for found in re.findall(r"loss ([0-9.]+)", text)]


# ---- the examples -----------------------------------------------------------------------------------------------


def test_char_gpt_learns_and_goes_on_from_its_file(tmp_path):
    kept = tmp_path / "gpt.pt"
    code, out, err = run_strided("run", EXAMPLES / "char_gpt.py", "--steps", "21", "--save", kept, timeout=300)
    assert (code, err) == (0, "")
    first = losses(out)
    assert len(first) == 3 and first[0] > 4.0 and first[-1] < first[0] - 0.6
    code, out, err = run_strided("run", EXAMPLES / "char_gpt.py", "--steps", "31", "--save", kept, timeout=300)
    assert (code, err) == (0, "")
    assert "step   20" not in out and "step   30" in out
    assert losses(out)[-1] < first[0] - 0.5  # of another batch: far below where it began, as only a continued run is


def test_digits_are_the_same_with_and_without_workers():
    runs = [run_strided("run", EXAMPLES / "digits.py", "--workers", n, timeout=300) for n in (0, 2)]
    assert [(code, err) for code, _, err in runs] == [(0, "")] * 2
    assert losses(runs[0][1]) == losses(runs[1][1])
    assert int(re.findall(r"(\d+) of 200", runs[1][1])[-1]) > 150


def test_mixed_precision_takes_less_memory_with_checkpoints():
    peaks = []
    for choice in ("--checkpoint", "--no-checkpoint"):
        code, out, err = run_strided("run", EXAMPLES / "mixed_precision.py", "--steps", "6", choice, timeout=300)
        assert (code, err) == (0, "")
        found = losses(out)
        assert found[0] > 2 * found[2]  # steps 0, 5, and the average
        peaks.append(float(re.search(r"peak ([0-9.]+)", out)[1]))
    assert peaks[0] < 0.9 * peaks[1]


# ---- checkpointing ----------------------------------------------------------------------------------------------


def deep(depth=12, width=64):
    torch.manual_seed(0)
    block = lambda: nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.2), nn.Linear(4 * width, width))
    return nn.ModuleList([block() for _ in range(depth)])


def gradients(blocks, way):
    """(gradients, the most bytes held above those at the start) of one step; way: None, or checkpointing with that `use_reentrant`."""
    for p in blocks.parameters():
        p.grad = torch.zeros_like(p)
    torch.manual_seed(1)
    x = torch.randn(256, 64, requires_grad=True)
    before = memory_allocated()
    reset_peak_memory_stats()
    h = x
    for block in blocks:
        h = h + (block(h) if way is None else checkpoint(block, h, use_reentrant=way))
    h.pow(2).mean().backward()
    return [x.grad] + [p.grad for p in blocks.parameters()], max_memory_allocated() - before


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpointing_keeps_dropout_and_saves_memory(use_reentrant):
    blocks = deep()
    expected, whole = gradients(blocks, None)
    found, peak = gradients(blocks, use_reentrant)
    for a, b in zip(found, expected):
        assert torch.equal(a, b)
    assert peak < 0.4 * whole


# ---- 16 bits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_training_in_16_bits(dtype):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    x = torch.randn(64, 8)
    y = x[:, :2].sum(1, keepdim=True)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype is torch.float16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    seen = []
    for _ in range(40):
        with torch.autocast("cpu", dtype=dtype):
            predicted = model(x)
            loss = F.mse_loss(predicted, y.to(predicted.dtype))
        assert predicted.dtype is dtype
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        seen.append(loss.item())
    assert all(p.dtype is torch.float32 and p.grad.dtype is torch.float32 for p in model.parameters())
    assert math.isfinite(seen[-1]) and seen[-1] < 0.1 * seen[0]


def test_training_with_16_bit_parameters():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)).bfloat16()
    x = torch.randn(64, 8).bfloat16()
    y = x[:, :2].sum(1, keepdim=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    seen = []
    for _ in range(30):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    assert seen[-1] < 0.2 * seen[0]
    assert optimizer.state[next(model.parameters())]["momentum_buffer"].dtype is torch.bfloat16


# ---- saving -----------------------------------------------------------------------------------------------------


class Unwritable:
    def __reduce__(self):
        raise RuntimeError("no")


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    torch.save({"w": torch.arange(5)}, path)
    with pytest.raises(RuntimeError, match="no"):
        torch.save({"w": torch.zeros(100000), "x": Unwritable()}, path)
    monkeypatch.setattr(os, "replace", lambda *names: (_ for _ in ()).throw(OSError("disk is gone")))
    with pytest.raises(OSError, match="disk is gone"):
        torch.save({"w": torch.zeros(3)}, path)
    assert torch.load(path)["w"].tolist() == [0, 1, 2, 3, 4]
    assert os.listdir(tmp_path) == ["model.pt"]


def test_a_process_killed_while_saving_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.pt"
    torch.save({"w": torch.arange(5)}, path)
    script = f"import strided as torch\nt = torch.zeros(1 << 22)\nprint('ready', flush=True)\nwhile True: torch.save({{'w': torch.arange(5), 'more': t}}, {str(path)!r})"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    process.stdout.readline()
    time.sleep(0.3)
    process.kill()
    process.wait()
    assert torch.load(path)["w"].tolist() == [0, 1, 2, 3, 4]


# ---- Ctrl-C -----------------------------------------------------------------------------------------------------

WORKERS = """
import os, time
import strided as torch
from strided.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.zeros(200, 200), os.getpid()

if __name__ == "__main__":
    for i, (x, pids) in enumerate(DataLoader(Slow(), batch_size=4, num_workers=2, prefetch_factor=3)):
        if i < 2: print(int(pids[0]), flush=True)
        if i == 2: print("loading", flush=True)
"""


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_stays_behind(tmp_path, how):
    script = tmp_path / "load.py"
    script.write_text(WORKERS)
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    workers = [int(process.stdout.readline()) for _ in range(2)]
    assert process.stdout.readline() == "loading\n" and len(set(workers)) == 2
    if how is signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does
    else:
        process.kill()
    _, err = process.communicate(timeout=60)
    assert process.returncode == -how
    end = time.time() + 30  # workers look every few seconds whether the loader's process still lives
    while any(map(alive, workers)) and time.time() < end:
        time.sleep(0.1)
    assert not any(map(alive, workers))
    if how is signal.SIGINT:
        assert err.count("KeyboardInterrupt") == 1
    assert not [name for name in os.listdir("/dev/shm" if os.path.isdir("/dev/shm") else tmp_path) if name.startswith(f"strided_{process.pid}_")]


HELD_UP = """
import time
import strided as torch
from strided.data import DataLoader, Dataset, get_worker_info

class OneWaits(Dataset):
    def __len__(self): return 1000
    def __getitem__(self, i):
        if get_worker_info().id == 0: time.sleep(600)
        return torch.zeros(200, 200)

if __name__ == "__main__":
    for x in DataLoader(OneWaits(), batch_size=4, num_workers=2, prefetch_factor=3):
        pass
"""


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="shared files have no folder of their own here")
def test_an_interrupted_loader_leaves_no_batches(tmp_path):
    """Batches of the other worker have come; the interrupt finds the loader waiting for its turn's, and its traceback holds the iterator to the end."""
    script = tmp_path / "load.py"
    script.write_text(HELD_UP)
    process = subprocess.Popen([sys.executable, script], stderr=subprocess.PIPE, text=True, start_new_session=True)
    files = lambda: [name for name in os.listdir("/dev/shm") if name.startswith(f"strided_{process.pid}_")]
    end = time.time() + 60
    while len(files()) < 3 and time.time() < end:
        time.sleep(0.02)
    assert len(files()) == 3
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT and err.count("KeyboardInterrupt") == 1 and not files()


# ---- what is refused --------------------------------------------------------------------------------------------


def test_wrong_state_dicts_and_empty_optimisers():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = {name: value.tolist() for name, value in model.state_dict().items()}
    state = dict(model.state_dict())
    state.pop("0.weight")
    state["2.weight"] = torch.zeros(1)
    state["1.weight"] = torch.zeros(2, 3)
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "0.weight". \n\tUnexpected key(s) in state_dict: "2.weight". \n'
        "\tsize mismatch for 1.weight: copying a param with shape torch.Size([2, 3]) from checkpoint, the shape in current model is torch.Size([1, 3])."
    )
    assert {name: value.tolist() for name, value in model.state_dict().items()} == before
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        torch.optim.AdamW(nn.ReLU().parameters())
    other = torch.optim.SGD([torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)])
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        torch.optim.SGD([torch.zeros(1, requires_grad=True)]).load_state_dict(other.state_dict())
