"""DataLoaders against PyTorch's: the order of samples, what workers draw, exceptions, for the same seeds."""
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import strided
import strided.data
import strided.utils.data


def drawing(t):
    """A dataset whose samples are draws of all three generators and the worker's facts."""
    D = t.utils.data

    class Draws(D.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            info = D.get_worker_info()
            own = (-1, 0, 0) if info is None else (info.id, info.num_workers, info.seed % 1000003)
            return i, t.rand(()).item(), random.random(), float(np.random.rand()), *own

    return Draws()


def passes(t, count=3, **options):
    t.manual_seed(7), random.seed(7), np.random.seed(7)
    loader = t.utils.data.DataLoader(drawing(t), **options)
    out = [[[column.tolist() for column in batch] for batch in loader] for _ in range(count)]
    return out, t.rand(2).tolist()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_draws(workers, persistent, shuffle):
    if persistent and not workers:
        pytest.skip("needs workers")
    options = {"batch_size": 3, "num_workers": workers, "persistent_workers": persistent, "shuffle": shuffle}
    assert passes(strided, **options) == passes(torch, **options)


def test_generators_of_ones_own():
    def run(t):
        g = t.Generator().manual_seed(3)
        loader = t.utils.data.DataLoader(range(10), batch_size=4, shuffle=True, generator=g)
        weighted = t.utils.data.WeightedRandomSampler([0.1, 0.9, 0.4, 3.0], 12, generator=g)
        without = t.utils.data.WeightedRandomSampler([0.1, 0.9, 0.4, 3.0], 3, replacement=False)
        t.manual_seed(1)
        parts = t.utils.data.random_split(range(11), [0.5, 0.3, 0.2])
        many = t.utils.data.RandomSampler(range(5), replacement=True, num_samples=70)
        few = t.utils.data.RandomSampler(range(5), num_samples=13)
        subset = t.utils.data.SubsetRandomSampler([4, 7, 9])
        return [[b.tolist() for b in loader] for _ in range(2)], [list(s) for s in (weighted, without, many, few, subset)], [list(p.indices) for p in parts]

    assert run(strided) == run(torch)


def faulty(t, kind):
    D = t.utils.data

    class Faulty(D.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            if i == 4:
                if kind == "raise":
                    raise ValueError("sample four")
                if kind == "key":
                    raise KeyError("four")
                if kind == "die":
                    import os

                    os._exit(3)
                if kind == "ragged":
                    return t.zeros(3)
                if kind == "ragged list":
                    return [1, 2, 3]
                if kind == "text":
                    return {"a": object()}
            return [1, 2] if kind == "ragged list" else {"a": 1.0} if kind == "text" else t.zeros(2)

    return Faulty()


@pytest.mark.parametrize("kind", ["raise", "key", "ragged", "ragged list", "text"])
@pytest.mark.parametrize("workers", [0, 1])
def test_exceptions(kind, workers):
    outcomes = []
    for t in (strided, torch):
        try:
            list(t.utils.data.DataLoader(faulty(t, kind), batch_size=2, num_workers=workers))
            outcomes.append("nothing")
        except Exception as error:
            lines = str(error).splitlines()
            outcomes.append((type(error).__name__, lines[0], lines[-1] if kind in ("raise", "key") else ""))
    assert outcomes[0] == outcomes[1]


def test_dying_worker():
    # Only ours runs: PyTorch's answer is a race between its signal handler (this RuntimeError) and a reset socket (ConnectionResetError).
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(?s?\)? ?\d+\) exited unexpectedly"):
        list(strided.utils.data.DataLoader(faulty(strided, "die"), batch_size=2, num_workers=1))


REFUSED = [
    {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True}, {"batch_size": 0}, {"batch_size": None, "drop_last": True},
    {"shuffle": True, "sampler": [1]}, {"batch_sampler": [[1]], "shuffle": True}, {"num_workers": 1, "prefetch_factor": -1}, {"batch_size": 2.5}, {"multiprocessing_context": "x"},
    {"num_workers": 1, "multiprocessing_context": "x"}, {"drop_last": 1},
]  # fmt: skip


@pytest.mark.parametrize("options", REFUSED)
def test_refused_options(options):
    outcomes = []
    for t in (strided, torch):
        try:
            t.utils.data.DataLoader(range(4), **options)
            outcomes.append("nothing")
        except Exception as error:
            outcomes.append((type(error).__name__, str(error)))
    assert outcomes[0] == outcomes[1]
