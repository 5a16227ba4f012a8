"""Tensors, nodes and modes as native objects: nothing that is done to their fields ends the interpreter, what is given is given back, and all Pythons have what is called."""

import copy
import gc
import re
import sys
import threading
import weakref

import pytest

import strided as torch
from strided.autograd.node import Node
from strided.kernels import native_objects as native
from strided.kernels.runtime_ir import runtime_ir
from strided.kernels.runtime_objects import TENSOR


class Passed(Node):
    __slots__ = ()

    def apply(self, grad):
        return (grad,)


# Macros or inline functions of some Python from 3.10 on: their names are no symbols of its library.
NO_SYMBOLS = {
    "PyObject_Vectorcall", "PyObject_CallOneArg", "PyObject_CallNoArgs", "PyObject_CallMethodNoArgs", "PyObject_CallMethodOneArg", "PyVectorcall_Function",
    "PyVectorcall_NARGS", "PyObject_GetIter_", "PyType_Check", "PyType_HasFeature", "PyTuple_GET_SIZE", "Py_INCREF", "Py_DECREF", "PyObject_TypeCheck", "PyTuple_SET_ITEM",
    "PyType_FastSubclass", "PyList_GetItemRef", "PyDict_GetItemRef", "PyFrame_GetLasti", "PyWeakref_GetRef", "PyObject_GetOptionalAttr", "PyLong_AsInt",
}  # fmt: skip


@pytest.mark.parametrize("arch", ["x86_64", "arm64"])
def test_the_runtime_calls_what_is_a_symbol_of_every_supported_python(arch):
    declared = set(re.findall(r"^declare .*?@(_?Py\w+)\(", runtime_ir(arch), re.M))
    assert len(declared) > 30
    assert not declared & NO_SYMBOLS


@pytest.mark.parametrize("name", [name for name in TENSOR if name != "mem"])  # without its memory a tensor's address says nothing
@pytest.mark.parametrize("kind", ["leaf", "result", "view", "plain", "plain view"])
def test_a_tensor_without_a_field_raises_and_does_not_crash(kind, name):
    leaf = torch.ones(2, 3, requires_grad=True)
    result = leaf * 2
    plain = leaf.detach().clone()
    t = {"leaf": leaf, "result": result, "view": result.view(3, 2), "plain": plain, "plain view": plain.view(6)}[kind]
    delattr(t, name)
    for f in (
        lambda: t * 2, lambda: t + t, lambda: t.exp(), lambda: t.sum(), lambda: t.view(-1), lambda: t.transpose(0, -1), lambda: t[0], lambda: torch.cat([t, t]),
        lambda: t.clone(), lambda: t.detach(), lambda: t.add_(1), lambda: t.grad_fn, lambda: t.unbind(0), lambda: t.requires_grad_(), lambda: repr(t),
    ):  # fmt: skip
        try:
            made = f()
            gc.collect()  # visits what was made
            if isinstance(made, torch.Tensor):
                repr(made.grad_fn and made.grad_fn.next_functions)
                made.sum().backward()
        except (AttributeError, TypeError, RuntimeError):
            pass


@pytest.mark.parametrize("value", [5, "a", None, object()], ids=["int", "str", "none", "object"])
def test_fields_that_hold_anything_do_not_crash(value):
    for name in ("_base", "_node", "_nr", "_seen", "_accumulator", "_view_kind", "_tracked"):
        leaf = torch.ones(2, 3, requires_grad=True)
        for t in (leaf, leaf * 2, (leaf * 2).view(6), torch.ones(4)):
            setattr(t, name, value)
            for f in (lambda t: t * 2, lambda t: t.exp(), lambda t: t.view(-1), lambda t: t[0], lambda t: (t * t).sum().backward()):
                try:
                    f(t)
                except (AttributeError, TypeError, RuntimeError, ValueError):
                    pass


def test_native_functions_refuse_what_they_cannot_take():
    for f in (native.new, native.make_tensor, native.hang, native.scan, native.launch_tensor, native.set_record, native.set_window, native.set_tensor_type, native.set_anomaly):
        with pytest.raises(TypeError):
            f()
    for wrong in (5, int, None, object):
        with pytest.raises(TypeError):
            native.new(wrong)
    with pytest.raises(TypeError):
        native.record(Passed)
    with pytest.raises(TypeError):
        native.record(5, (), torch.ones(1), x=1)


def test_modes_cannot_be_deleted():
    for name in ("grad_enabled", "saved_hooks", "phase", "depth", "run"):
        with pytest.raises(TypeError, match="a mode cannot be deleted"):
            delattr(native.STATE, name)
    assert torch.is_grad_enabled()


def test_references_are_given_back():
    leaf, plain = torch.ones(4, requires_grad=True), torch.ones(4)
    middle = leaf * 2
    out, spec = torch.ones(4), middle.spec

    def refused():
        with pytest.raises(AttributeError):
            native.record(Passed, (leaf,), out, (leaf, 3))

    class Listed:
        saves = [0]

    class Nothing:
        pass

    calls = [
        lambda: middle * leaf, lambda: leaf.exp(), lambda: middle.view(2, 2), lambda: plain.view(2, 2), lambda: native.tracking(plain, leaf, None),
        lambda: native.record(Passed, (leaf, middle, 3, None), torch.ones(0), (leaf, middle), alpha=[1]), lambda: native.record(Passed, (leaf,), out, saves=(out, None)),
        lambda: native.window(middle, spec, middle.ptr, Passed, a=1), lambda: native.hang(Passed, {}, (), (), (leaf,), out),
        lambda: native.hang(Passed, {1: Listed}, (), (), (leaf,), out), lambda: native.hang(Passed, {1: Nothing}, (), (), (leaf,), out), lambda: native.scan({}, leaf),
        lambda: (middle * leaf).sum().backward(retain_graph=True), lambda: setattr(native.STATE, "phase", "forward"), refused,
    ]  # fmt: skip
    watched = [None, True, False, 0, (), native.TensorBase, native.NodeBase, torch.Tensor, Node, Passed, leaf, middle, plain, spec, Listed, Nothing]
    for f in calls:
        for _ in range(20):
            f()
        gc.collect()
        before = [sys.getrefcount(o) for o in watched]
        for _ in range(300):
            f()
        gc.collect()
        assert max(abs(a - b) for a, b in zip(before, [sys.getrefcount(o) for o in watched])) < 100


def test_cycles_through_every_field_are_collected():
    def through_field(name):
        t = torch.ones(2, requires_grad=True) * 2
        setattr(t, name, [t] if name in ("_hooks", "_post_hooks") else t)
        return t

    def through_dictionary():
        t = torch.ones(2)
        t.me = t
        return t

    def through_node(name):
        t = torch.ones(2, requires_grad=True) * 2
        setattr(t.grad_fn, name, [t])
        return t

    makers = [lambda n=n: through_field(n) for n in ("_node", "_grad", "_base", "_hooks", "_accumulator", "_post_hooks")]
    makers += [through_dictionary, *[lambda n=n: through_node(n) for n in ("edges", "saves", "specs", "hooks", "anything")]]
    for make in makers:
        t = make()
        seen = weakref.ref(t)
        del t
        gc.collect()
        assert seen() is None


def test_subclasses_with_slots_mixins_and_copies():
    class Mixin:
        def twice(self):
            return self * 2

    class Slotted(torch.Tensor):
        __slots__ = ("note",)

    class Both(Mixin, Slotted):
        pass

    t = torch.ones(3).as_subclass(Both)
    t.note, t.word = [1], "w"
    assert t.__dict__ == {"word": "w"} and t.note == [1]
    assert t.twice().tolist() == [2, 2, 2]
    assert copy.copy(t).word == "w"
    seen = weakref.ref(t)
    t.note.append(t)  # a cycle through a slot
    del t
    gc.collect()
    assert seen() is None


def test_a_chain_of_a_hundred_thousand_nodes_dies_without_recursion():
    t = torch.ones(1, requires_grad=True)
    for _ in range(100_000):
        t = t + 1
    del t
    gc.collect()


def test_modes_of_a_thread_that_ended_die_without_disturbing_others():
    """What a thread's modes held runs Python when they die, in which another thread may take its turn."""
    found = []

    class Last:
        def __del__(self):
            for _ in range(3):
                other = threading.Thread(target=lambda: native.STATE.grad_enabled)
                other.start()
                other.join()

    def work():
        native.STATE.run = Last()
        native.STATE.grad_enabled = False

    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        native.STATE.depth = 7
        found.append((native.STATE.grad_enabled, native.STATE.depth))
        native.STATE.depth = 0
    assert found == [(True, 7)] * 20
