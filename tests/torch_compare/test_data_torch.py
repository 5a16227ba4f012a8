"""Datasets, samplers, collation and loaders against PyTorch: values, random order for a seed, and errors."""
import collections
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
torch_data = pytest.importorskip("torch.utils.data")

import strided
import strided.data

Pair = collections.namedtuple("Pair", "a b")


def plain(value):
    if isinstance(value, (torch.Tensor, strided.Tensor)):
        return "tensor", str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def outcome(case, library, data):
    library.manual_seed(0)
    random.seed(0)
    try:
        return "ok", plain(case(data, library)), library.rand(1).item()  # the generator must be left alike
    except Exception as error:
        return type(error).__name__, str(error)


def generator(t, seed):
    g = t.Generator()
    g.manual_seed(seed)
    return g


def rows(d, t):
    return d.TensorDataset(t.arange(10).float().unsqueeze(1), t.arange(10))


def stream(d):
    class Stream(d.IterableDataset):
        def __iter__(self):
            return iter(range(7))

        def __len__(self):
            return 7

    return Stream()


LOADERS = [{}, {"batch_size": 4}, {"batch_size": 4, "shuffle": True}, {"batch_size": 4, "drop_last": True, "shuffle": True}, {"batch_size": None}, {"batch_size": None, "shuffle": True}]
BATCHES = [
    lambda t: [1, 2],
    lambda t: [1.0, 2.0],
    lambda t: ["a", "b"],
    lambda t: [(1, 2.0), (3, 4.0)],
    lambda t: [{"a": 1, "b": [t.ones(2)]}, {"a": 3, "b": [t.zeros(2)]}],
    lambda t: [np.ones(2), np.zeros(2)],
    lambda t: [np.float32(1), np.float32(2)],
    lambda t: [Pair(1, 2), Pair(3, 4)],
    lambda t: [[1, 2], [3]],
    lambda t: [object],
    lambda t: [True, False],
    lambda t: [b"x", b"y"],
    lambda t: [None, None],
    lambda t: [np.array(["a"])],
]
CASES = [
    *[lambda d, t, kw=kw: list(d.DataLoader(rows(d, t), **kw)) for kw in LOADERS],
    *[lambda d, t, kw=kw: len(d.DataLoader(rows(d, t), **kw)) for kw in LOADERS],
    lambda d, t: list(d.DataLoader(rows(d, t), shuffle=True, generator=generator(t, 3))),
    lambda d, t: list(d.RandomSampler(range(7), replacement=True, num_samples=70)),
    lambda d, t: list(d.RandomSampler(range(7), num_samples=17)),
    lambda d, t: list(d.WeightedRandomSampler([0.1, 0.5, 0.4], 8)),
    lambda d, t: list(d.WeightedRandomSampler([0.1, 0.5, 0.4], 3, replacement=False)),
    lambda d, t: list(d.SubsetRandomSampler([3, 5, 9])),
    lambda d, t: list(d.BatchSampler(d.SequentialSampler(range(7)), 3, False)),
    lambda d, t: list(d.BatchSampler(range(7), 3, True)),
    lambda d, t: [list(s) for s in d.random_split(list(range(10)), [3, 7])],
    lambda d, t: [list(s) for s in d.random_split(list(range(10)), [0.31, 0.3, 0.39], generator=generator(t, 1))],
    lambda d, t: d.random_split(list(range(10)), [3, 3]),
    lambda d, t: [list(d.DistributedSampler(range(10), 3, r)) for r in range(3)],
    *[lambda d, t, b=b: d.default_collate(b(t)) for b in BATCHES],
    *[lambda d, t, b=b: d.default_convert(b(t)) for b in BATCHES],
    lambda d, t: [d.ConcatDataset([range(3), range(5)])[i] for i in (-1, 0, 3, 7)],
    lambda d, t: d.ConcatDataset([]),
    lambda d, t: d.ConcatDataset([range(3)])[-5],
    lambda d, t: d.TensorDataset(t.ones(10), t.ones(3)),
    lambda d, t: d.StackDataset(range(3), range(4)),
    lambda d, t: d.StackDataset(a=range(3), b=range(3))[1],
    *[
        lambda d, t, kw=kw: d.DataLoader(range(5), **kw) and 1
        for kw in (
            {"num_workers": -1}, {"timeout": -1}, {"prefetch_factor": 2}, {"persistent_workers": True}, {"shuffle": True, "sampler": range(3)},
            {"batch_sampler": [[1]], "batch_size": 2}, {"batch_size": None, "drop_last": True}, {"batch_size": 0}, {"batch_size": -1}, {"shuffle": True, "batch_sampler": [[1]]},
        )
    ],
    lambda d, t: setattr(d.DataLoader(range(5)), "batch_size", 3),
    lambda d, t: d.RandomSampler(range(3), replacement=3),
    lambda d, t: d.RandomSampler(range(3), num_samples=-1),
    lambda d, t: d.WeightedRandomSampler([1.0], 0),
    lambda d, t: d.DataLoader([], shuffle=True),
    lambda d, t: [list(d.DataLoader(stream(d), batch_size=3)), list(d.DataLoader(stream(d), batch_size=3, drop_last=True)), len(d.DataLoader(stream(d), batch_size=3))],
    lambda d, t: [list(d.DataLoader(stream(d), batch_size=None)), list(d.DataLoader(stream(d) + stream(d), batch_size=4))],
    lambda d, t: d.DataLoader(stream(d), shuffle=True),
    lambda d, t: d.DataLoader(stream(d), sampler=[1]),
    lambda d, t: d.Dataset()[0],
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_data(case):
    assert outcome(case, strided, strided.data) == outcome(case, torch, torch_data)
