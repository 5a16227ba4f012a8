"""Datasets, samplers, collation and loaders, with and without worker processes."""
import os
import time

import pytest

import strided as torch
from strided.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)


class Squares(Dataset):
    def __init__(self, size=10, bad=None):
        self.size, self.bad = size, bad

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        if i == self.bad:
            raise ValueError("sample is broken")
        return torch.tensor([float(i * i)]), i


class Large(Dataset):
    """Rows big enough to travel through a shared file."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        return torch.full((256, 256), float(i))


class Ids(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        info = get_worker_info()
        return info.id, info.num_workers, info.seed, os.getpid()


class Dies(Squares):
    def __getitem__(self, i):
        os._exit(3)


class Slow(Squares):
    def __getitem__(self, i):
        time.sleep(30)


class Count(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(7) if info is None else range(info.id, 7, info.num_workers))


def values(loader):
    return [(x.tolist(), i.tolist()) for x, i in loader]


def test_tensor_dataset_and_default_batches():
    data = TensorDataset(torch.arange(10).float().unsqueeze(1), torch.arange(10))
    batches = list(DataLoader(data, batch_size=4, pin_memory=False))
    assert [len(b[1]) for b in batches] == [4, 4, 2] and batches[0][0].shape == (4, 1)
    assert len(DataLoader(data, batch_size=4)) == 3 and len(DataLoader(data, batch_size=4, drop_last=True)) == 2
    assert batches[1][1].tolist() == [4, 5, 6, 7]


def test_shuffle_follows_the_seed():
    """Orders as PyTorch 2.13 draws them."""
    torch.manual_seed(0)
    assert [b.tolist() for b in DataLoader(range(10), batch_size=4, shuffle=True)] == GOLDEN_SHUFFLE
    torch.manual_seed(0)
    assert list(RandomSampler(range(7), replacement=True, num_samples=9)) == GOLDEN_REPLACEMENT
    torch.manual_seed(0)
    assert list(WeightedRandomSampler([0.1, 0.5, 0.4], 8)) == GOLDEN_WEIGHTED
    torch.manual_seed(0)
    assert [s.indices for s in random_split(range(10), [0.31, 0.3, 0.39])] == GOLDEN_SPLIT


GOLDEN_SHUFFLE = [[6, 7, 1, 4], [2, 0, 9, 8], [3, 5]]
GOLDEN_REPLACEMENT = [0, 4, 0, 4, 2, 4, 1, 2, 0]
GOLDEN_WEIGHTED = [2, 2, 1, 2, 2, 2, 1, 1]
GOLDEN_SPLIT = [[4, 1, 7, 5], [3, 9, 0], [8, 6, 2]]


def test_datasets():
    joined = ConcatDataset([range(3), range(5)])
    assert [joined[i] for i in (-1, 0, 3, 7)] == [4, 0, 0, 4] and len(joined) == 8
    assert list(Subset(range(10, 20), [3, 1])) == [13, 11]
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal the length of the input dataset!"):
        random_split(range(10), [3, 3])


def test_collate():
    batch = default_collate([{"a": 1, "b": [torch.ones(2)], "c": "x"}, {"a": 3, "b": [torch.zeros(2)], "c": "y"}])
    assert batch["a"].tolist() == [1, 3] and batch["b"][0].tolist() == [[1, 1], [0, 0]] and batch["c"] == ["x", "y"]
    assert default_collate([1.5, 2.5]).dtype == torch.float64
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal size"):
        default_collate([[1, 2], [3]])
    with pytest.raises(TypeError, match="default_collate: batch must contain"):
        default_collate([object()])


def test_mutually_exclusive_options():
    for options, text in (
        ({"shuffle": True, "sampler": range(3)}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler option is mutually exclusive"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"num_workers": -1}, "num_workers option should be non-negative"),
    ):
        with pytest.raises(ValueError, match=text):
            DataLoader(Squares(), **options)


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_keep_the_order(workers):
    expected = values(DataLoader(Squares(), batch_size=3))
    assert values(DataLoader(Squares(), batch_size=3, num_workers=workers)) == expected


def test_workers_shuffle_as_without():
    torch.manual_seed(5)
    expected = values(DataLoader(Squares(), batch_size=3, shuffle=True))
    torch.manual_seed(5)
    assert values(DataLoader(Squares(), batch_size=3, shuffle=True, num_workers=2)) == expected


def test_spawned_workers():
    loader = DataLoader(Squares(4), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    assert values(loader) == values(DataLoader(Squares(4), batch_size=2))


def test_unordered_workers_deliver_everything():
    loader = DataLoader(Squares(), batch_size=3, num_workers=2, in_order=False)
    assert sorted(i for _, batch in values(loader) for i in batch) == list(range(10))


def test_large_batches_travel_through_shared_memory():
    batches = list(DataLoader(Large(), batch_size=2, num_workers=2))
    assert [b[:, 0, 0].tolist() for b in batches] == [[0, 1], [2, 3], [4, 5]]
    batches[0].add_(1)  # the memory is ours to write
    assert batches[0].sum().item() == 256 * 256 * 3
    assert (batches[2] == torch.tensor([4.0, 5.0]).view(2, 1, 1)).all()


def test_batches_unpacked_by_two_threads_at_once():
    """Each thread's tensors lie in its own batch's file."""
    import sys
    import threading

    from strided.data.transport import pack, unpack

    right, interval = [], sys.getswitchinterval()

    def work(number):
        for _ in range(40):
            parts = unpack(pack([torch.full((20_000,), number) for _ in range(8)], f"strided_test_{os.getpid()}_"))
            right.extend((part == number).all().item() for part in parts)

    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert right == [True] * (3 * 40 * 8)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="files are given memory as they are written")
def test_shared_memory_that_is_full(monkeypatch, tmp_path):
    """A batch then travels through a file on disk; where that is full, too, an error says what to change, and no file stays."""
    import errno

    from strided.data import transport

    shared, disk = tmp_path / "shm", tmp_path / "disk"
    shared.mkdir(), disk.mkdir()
    monkeypatch.setattr(transport, "directories", lambda: [str(shared), str(disk)])
    allocate, full = os.posix_fallocate, [shared]

    def posix_fallocate(handle, start, nbytes):
        if any(os.path.samestat(os.fstat(handle), entry.stat()) for folder in full for entry in folder.iterdir()):
            raise OSError(errno.ENOSPC, "No space left on device")
        allocate(handle, start, nbytes)

    monkeypatch.setattr(os, "posix_fallocate", posix_fallocate)
    x = torch.arange(50_000)
    packed = transport.pack(x, "strided_test_")
    assert packed[1].startswith(str(disk)) and (transport.unpack(packed) == x).all()
    full.append(disk)
    with pytest.raises(OSError, match="a batch of 400,000 bytes does not fit into .*: use fewer workers"):
        transport.pack(x, "strided_test_")
    assert not [*shared.iterdir(), *disk.iterdir()]


def test_worker_info_and_seeds():
    torch.manual_seed(1)
    rows = [r for batch in DataLoader(Ids(), batch_size=None, num_workers=2) for r in [batch]]
    assert {r[0] for r in rows} == {0, 1} and {r[1] for r in rows} == {2}
    assert len({r[3] for r in rows}) == 2 and os.getpid() not in {r[3] for r in rows}
    seeds = {r[0]: r[2] for r in rows}
    assert seeds[1] == seeds[0] + 1
    assert get_worker_info() is None


def test_a_worker_error_is_raised_with_its_traceback():
    with pytest.raises(ValueError) as caught:
        list(DataLoader(Squares(bad=4), batch_size=3, num_workers=2))
    text = str(caught.value)
    assert text.startswith("Caught ValueError in DataLoader worker process 1.\nOriginal Traceback (most recent call last):")
    assert "sample is broken" in text and "__getitem__" in text


def test_a_worker_that_dies_is_reported(monkeypatch):
    monkeypatch.setattr("strided.data.loader.CHECK_INTERVAL", 0.5)
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly"):
        list(DataLoader(Dies(), num_workers=1))


def test_timeout(monkeypatch):
    monkeypatch.setattr("strided.data.loader.CHECK_INTERVAL", 0.2)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.5 seconds"):
        next(iter(DataLoader(Slow(), num_workers=1, timeout=0.5)))


def test_worker_init_and_its_errors():
    def broken(worker_id):
        raise KeyError("no such file")

    with pytest.raises(KeyError, match="no such file"):
        list(DataLoader(Squares(), num_workers=1, worker_init_fn=broken))


def test_persistent_workers_serve_several_passes():
    loader = DataLoader(Ids(), batch_size=None, num_workers=2, persistent_workers=True)
    first, second = {r[3] for r in loader}, {r[3] for r in loader}
    assert first == second
    iterator = iter(loader)
    next(iterator)  # a pass that is given up
    assert len(list(loader)) == 8


def test_streams():
    assert [b.tolist() for b in DataLoader(Count(), batch_size=3)] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [b.tolist() for b in DataLoader(Count(), batch_size=3, drop_last=True)] == [[0, 1, 2], [3, 4, 5]]
    batches = [b.tolist() for b in DataLoader(Count(), batch_size=2, num_workers=2)]
    assert sorted(i for b in batches for i in b) == list(range(7))
    with pytest.raises(ValueError, match="expected unspecified shuffle option"):
        DataLoader(Count(), shuffle=True)


def test_leaving_early_stops_the_workers():
    iterator = iter(DataLoader(Squares(100), num_workers=2))
    next(iterator)
    workers = iterator.workers
    del iterator
    assert all(not w.is_alive() for w in workers)


def test_a_batch_computes_in_the_worker():
    """Kernels and the thread pool work on the other side of a fork."""
    torch.randn(512, 512) @ torch.randn(512, 512)

    class Products(Dataset):
        def __len__(self):
            return 3

        def __getitem__(self, i):
            x = torch.full((300, 300), float(i + 1))
            return (x @ x).sum()

    sums = torch.cat(list(DataLoader(Products(), num_workers=2)))
    assert sums.tolist() == [300.0**3 * (i + 1) ** 2 for i in range(3)]
