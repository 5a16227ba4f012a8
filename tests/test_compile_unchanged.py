"""The native check of what a recording took for granted: places in Python's objects and a call's arguments."""
import sys
import types

import pytest

import strided as torch
from strided.kernels.unchanged import MISSING, Held, unchanged


class Holder:
    __slots__ = ("value",)


def test_nothing_is_always_as_it_was():
    assert unchanged()() is True
    assert unchanged()(1) is None and unchanged()(a=1) is None


@pytest.mark.parametrize("value, same, other", [
    (1000, int("1000"), 1001), (2.5, float("2.5"), -2.5), ("name", "".join(["na", "me"]), "nome"), (b"x1", bytes([120, 49]), b"x2"), (True, True, 1), (1, 1, True), (None, None, 0),
    (0.0, 0.0, -0.0), ((), (), (1,)),
])  # fmt: skip
def test_numbers_and_texts_are_compared_by_value_and_type(value, same, other):
    table, holder, items = {"k": value}, Holder(), [value]
    holder.value = value
    check = unchanged(dicts=[(table, "k", value)], items=[(items, 0, value)], attributes=[(holder, "value", value)])
    assert check() is True
    for there in ("table", "items", "holder"):
        for new in (same, other):
            table["k"], items[0], holder.value = value, value, value
            if there == "table":
                table["k"] = new
            elif there == "items":
                items[0] = new
            else:
                holder.value = new
            assert check() is (True if new is same else None), (there, new)


def test_other_objects_must_be_the_same_ones():
    class Equal:
        def __eq__(self, other):
            raise AssertionError("nobody asks")

        __hash__ = None

    one = Equal()
    table = {"k": one}
    check = unchanged(dicts=[(table, "k", one)])
    assert check() is True
    table["k"] = Equal()
    assert check() is None
    nan = float("nan")
    table = {"k": nan}
    check = unchanged(dicts=[(table, "k", nan)])
    assert check() is True
    table["k"] = float("nan")
    assert check() is None


def test_what_is_missing_and_what_comes():
    table, holder, proxy = {}, Holder(), types.MappingProxyType({"a": 1})
    one = proxy["a"]
    check = unchanged(dicts=[(table, "k", MISSING)], attributes=[(holder, "value", MISSING)], items=[(proxy, "a", one), (proxy, "b", MISSING)])
    assert check() is True
    table["k"] = None
    assert check() is None
    del table["k"]
    holder.value = 3
    assert check() is None
    del holder.value
    assert check() is True
    assert sys.exc_info() == (None, None, None)


def test_lengths_and_keys_in_their_order():
    items, table = [1, 2], {"a": 1, "b": 2}
    check = unchanged(items=[(items, 1, 2)], sizes=[(items, 2)], keys=[(table, list(table))])
    assert check() is True
    table["a"] = table.pop("a")  # now the last one
    assert check() is None
    table["b"] = table.pop("b")
    assert check() is True
    table["c"] = 3
    assert check() is None
    del table["c"]
    items.pop()
    assert check() is None


def test_arguments():
    x, y = torch.ones(2, 3), torch.ones(2, 3)
    other = object()
    check = unchanged(
        names=("scale", "how"), arguments=[(torch.Tensor, None), (torch.Tensor, None), (None, other), (None, 2.0), (None, "sum")],
        tensors=[Held(0, x.spec, False, leaf=True, inference=False), Held(1, y.spec, False)],
    )  # fmt: skip
    assert check(x, y, other, scale=2.0, how="sum") is True
    assert check(y, x, other, scale=float("2"), how="sum") is True
    for args, kwargs in (
        ((x, x, other), {"scale": 2.0, "how": "sum"}), ((x, y, object()), {"scale": 2.0, "how": "sum"}), ((x, y, other), {"scale": 2, "how": "sum"}),
        ((x, y, other), {"how": "sum", "scale": 2.0}), ((x, y, other, 2.0), {"how": "sum"}), ((x, y), {"scale": 2.0, "how": "sum"}), ((x, 3, other), {"scale": 2.0, "how": "sum"}),
        ((x.t(), y, other), {"scale": 2.0, "how": "sum"}), ((x.double(), y, other), {"scale": 2.0, "how": "sum"}),
        ((torch.ones(2, 3, requires_grad=True), y, other), {"scale": 2.0, "how": "sum"}), ((torch.nn.Parameter(x), y, other), {"scale": 2.0, "how": "sum"}),
    ):  # fmt: skip
        assert check(*args, **kwargs) is None


def test_tensors_with_gradients_and_hooks():
    p = torch.ones(3, requires_grad=True)
    spec, plain = p.spec, unchanged(tensors=[Held(p, p.spec, True, leaf=True, has_grad=False, quiet=True)])
    assert plain() is True
    p.sum().backward()
    assert plain() is None
    held = unchanged(tensors=[Held(p, spec, True, has_grad=True, quiet=True, grad_spec=p.grad.spec)])
    assert held() is True
    p.grad = p.grad.view(3)[:]  # a view has a base
    assert held() is None
    p.grad = torch.ones(3)
    assert held() is True
    hook = p.register_hook(lambda g: g)
    assert held() is None
    hook.remove()
    p.requires_grad_(False)
    assert held() is None


def test_counts_of_references_stay():
    holder, items, value = Holder(), [], object()
    holder.value = value
    items.append(value)
    good, bad = (unchanged(attributes=[(holder, "value", v)], items=[(items, 0, v)]) for v in (value, Holder))
    before = sys.getrefcount(value), sys.getrefcount(None), sys.getrefcount(True)
    for _ in range(1000):
        assert good() and bad() is None
    after = sys.getrefcount(value), sys.getrefcount(None), sys.getrefcount(True)
    assert all(abs(a - b) < 50 for a, b in zip(after, before))
