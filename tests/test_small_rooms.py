"""torch.functional, torch.futures, torch.__config__ and what else packages import at their top."""
import threading

import pytest

import strided as torch
from strided.futures import Future, collect_all, wait_all


def test_functions_under_torch_functional():
    assert torch.functional.einsum("i,i->", torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])).item() == 11
    assert torch.functional.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert not hasattr(torch.functional, "pca_lowrank")


def test_config_says_what_computes():
    assert "LLVM" in torch.__config__.show() and "bits" in torch.__config__.show()
    assert f": {torch.get_num_threads()}" in torch.__config__.parallel_info()


def test_futures():
    first, second = Future(), Future()
    doubled, seen = first.then(lambda f: f.value() * 2), []
    both = collect_all([first, second])
    second.add_done_callback(lambda f: seen.append(f.done()))
    with pytest.raises(RuntimeError, match="not complete"):
        first.value()
    threading.Timer(0.01, first.set_result, (21,)).start()
    assert doubled.wait() == 42 and not both.done()
    with pytest.raises(RuntimeError, match="only be marked completed once"):
        first.set_result(1)
    second.set_exception(ValueError("no"))
    assert seen == [True] and both.done() and both.value() == [first, second]
    with pytest.raises(ValueError, match="no"):
        wait_all([first, second])
    with pytest.raises(ValueError, match="no"):
        second.then(lambda f: f.value()).wait()
    assert wait_all([]) == [] and wait_all([first, doubled]) == [21, 42]


def test_parameters_of_ones_own():
    """A subclass of Parameter has a __new__ with arguments of its own, and no __init__."""

    class Placed(torch.nn.Parameter):
        def __new__(cls, data, place, requires_grad=True):
            made = torch.nn.Parameter.__new__(cls, data, requires_grad)
            made.place = place
            return made

    p = Placed(torch.ones(2), place="here")
    assert p.place == "here" and p.requires_grad and isinstance(p, torch.nn.Parameter)
    (p * 2).sum().backward()
    assert p.grad.tolist() == [2, 2]


def test_a_group_of_one_has_what_packages_import():
    with torch.distributed.Join([object()]):
        pass
    assert torch.distributed.default_pg_timeout.total_seconds() == 1800
    assert torch.distributed.Work([1]).get_future().wait() == [1]


def test_layouts_to_compare_with():
    x = torch.zeros(2)
    assert x.layout is torch.strided and x.layout not in (torch.sparse_coo, torch.sparse_csr) and str(torch.sparse_coo) == "torch.sparse_coo"
    with pytest.raises(NotImplementedError, match="tensors here are dense"):
        torch.zeros(2, layout=torch.sparse_coo)


def test_scatter_and_gather_of_one_device():
    x = torch.ones(2)
    assert torch.nn.parallel.scatter((x,), ["cpu"])[0][0] is x and torch.nn.parallel.gather([x], "cpu") is x
    with pytest.raises(NotImplementedError, match="computes on one"):
        torch.nn.parallel.scatter((x,), [0, 1])


def test_records_of_a_checkpoint(tmp_path):
    path = str(tmp_path / "a.pt")
    torch.save({"w": torch.tensor([1.0, 2.0])}, path)
    reader = torch.PyTorchFileReader(path)
    assert "data.pkl" in reader.get_all_records() and reader.has_record("data/0") and not reader.has_record("data/1")
    assert reader.get_storage_from_record("data/0", 2, torch.float32).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="failed locating file"):
        reader.get_record("data/1")
    (tmp_path / "b.pt").write_bytes(b"no")
    with pytest.raises(RuntimeError, match="failed reading zip archive"):
        torch.PyTorchFileReader(str(tmp_path / "b.pt"))


def test_containers_by_type():
    from collections import namedtuple

    from strided.utils._pytree import SUPPORTED_NODES, TreeSpec, _get_node_type, tree_map, tree_unflatten

    pair = namedtuple("pair", "a b")
    assert _get_node_type([1]) is list and _get_node_type(3) is int and SUPPORTED_NODES[dict].flatten_fn({"k": 1}) == ([1], ["k"])
    assert tree_map(lambda x: x + 1, pair(1, (2,))) == pair(2, (3,)) and type(tree_map(str, pair(1, 2))) is pair
    assert tree_unflatten([1, 2], TreeSpec(list, None, [TreeSpec(None, None, []), TreeSpec(None, None, [])])) == [1, 2]
