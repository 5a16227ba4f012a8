"""What goes wrong in training besides the mathematics: uneven samples, Ctrl-C in a step, workers that are interrupted, gradients that do not fit."""
import os
import signal
import subprocess
import sys
import time

import pytest

import strided as torch
from strided.data import DataLoader, Dataset


class Ragged(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return {"x": torch.zeros(3 if i != 4 else 5, 2), "n": i}


@pytest.mark.parametrize("workers", [0, 2])
def test_uneven_samples_are_told_with_their_sizes(workers):
    loader = DataLoader(Ragged(), batch_size=3, num_workers=workers)
    batches = iter(loader)
    assert next(batches)["x"].shape == (3, 3, 2)
    with pytest.raises(RuntimeError, match=r"stack expects each tensor to be equal size, but got \[3, 2\] at entry 0 and \[5, 2\] at entry 1") as caught:
        next(batches)
    assert workers == 0 or str(caught.value).startswith("Caught RuntimeError in DataLoader worker process 1.")


def test_uneven_lists_and_keys():
    from strided.data import default_collate

    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1, 2], [3]])
    with pytest.raises(KeyError, match="b"):
        default_collate([{"a": 1, "b": 2}, {"a": 1}])


TRAINING = """
import os, sys, time
import strided as torch
from strided.data import DataLoader, Dataset

class Noise(Dataset):
    def __len__(self): return 100000
    def __getitem__(self, i): return torch.randn(256), os.getpid()

if __name__ == "__main__":
    torch.set_num_threads(2)
    net = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256))
    optimizer = torch.optim.AdamW(net.parameters())
    for step, (x, pids) in enumerate(DataLoader(Noise(), batch_size=64, num_workers=2)):
        if step < 2: print(int(pids[0]), flush=True)
        if step == 3: print("training", flush=True)
        optimizer.zero_grad()
        (net(x) - x).square().mean().backward()
        optimizer.step()
"""


def gone(pids, seconds=30):
    """Whether all these processes end."""
    end = time.time() + seconds
    while time.time() < end:
        left = []
        for pid in pids:
            try:
                os.kill(pid, 0)
                left.append(pid)
            except ProcessLookupError:
                pass
        if not left:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("whole_group", [True, False])
@pytest.mark.parametrize("words", [(), ("-m", "strided", "run")])
def test_ctrl_c_in_a_step_leaves_no_process(tmp_path, whole_group, words):
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    process = subprocess.Popen([sys.executable, *words, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    workers = [int(process.stdout.readline()) for _ in range(2)]
    assert process.stdout.readline() == "training\n"
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT) if whole_group else process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT) and err.count("KeyboardInterrupt") == 1, err
    assert gone([process.pid, *workers])


def test_an_interrupted_worker_is_reported(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    workers = [int(process.stdout.readline()) for _ in range(2)]
    assert process.stdout.readline() == "training\n"
    os.kill(workers[0], signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and f"DataLoader worker (pid(s) {workers[0]}) exited unexpectedly" in err
    assert gone(workers)


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p)])
def test_a_step_that_cannot_be_done_changes_no_parameter(make):
    a, b = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(2, 2))
    optimizer = make([a, b])
    for p in (a, b):
        p.grad = torch.ones_like(p)
    optimizer.step()
    before = a.tolist(), b.tolist()
    state = optimizer.state[b]
    key = next(k for k in state if k != "step")
    state[key] = torch.zeros(3, 3)  # of another model
    with pytest.raises(RuntimeError, match=r"must have one shape, but got \[2, 2\] and \[3, 3\]"):
        optimizer.step()
    assert (a.tolist(), b.tolist()) == before


def test_wrong_gradients_are_refused_where_they_are_given():
    p = torch.nn.Parameter(torch.ones(3))
    for grad, text in ((torch.ones(4), "shape|size"), (torch.ones(3, dtype=torch.float64), "type"), ([1, 2, 3], "Tensor or None")):
        with pytest.raises((RuntimeError, TypeError), match=text):
            p.grad = grad
    assert p.grad is None


def test_options_out_of_range_leave_no_half_made_group():
    p = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([p])
    with pytest.raises(TypeError, match="optimizer can only optimize Tensors, but one of the params is str"):
        optimizer.add_param_group({"params": ["weight"]})
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optimizer.add_param_group({"params": [p]})
    assert len(optimizer.param_groups) == 1


def test_a_checkpoint_that_was_cut_short_says_so(tmp_path):
    path = tmp_path / "state.pt"
    torch.save(torch.nn.Linear(64, 64).state_dict(), path)
    whole = path.read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises((RuntimeError, EOFError, OSError)) as caught:
            torch.load(path)
        assert str(caught.value)


def test_class_weights_of_another_dtype_are_refused():
    from strided.nn import functional as F

    for loss in (F.nll_loss, F.cross_entropy):
        with pytest.raises(RuntimeError, match="expected scalar type Float but found Half"):
            loss(torch.zeros(2, 3), torch.tensor([0, 1]), weight=torch.ones(3, dtype=torch.float16))
        assert loss(torch.zeros(2, 3).half(), torch.tensor([0, 1]), weight=torch.ones(3).half()).dtype == torch.float16
