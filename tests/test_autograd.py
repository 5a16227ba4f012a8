"""Recording and running graphs: nodes, saved tensors, leaves, modes, hooks, errors. Values by hand; PyTorch itself is in torch_compare/."""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
import weakref

import pytest

import strided as torch


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


# ---- gradients ----------------------------------------------------------------------------------


def test_gradient_of_a_product():
    x, w = leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0, 6.0)
    (x * w + x).sum().backward()
    assert x.grad.tolist() == [5, 6, 7] and w.grad.tolist() == [1, 2, 3]


def test_gradients_add_up_over_passes_and_in_place():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    grad = x.grad
    (x * x).sum().backward()
    assert x.grad is grad and grad.tolist() == [4, 8]


def test_first_gradient_is_nobody_elses():
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (a + b).backward(seed := torch.tensor([1.0, 1.0]))
    a.grad.add_(1)
    assert b.grad.tolist() == [1, 1] and seed.tolist() == [1, 1]


def test_gradient_of_a_reused_intermediate():
    x = leaf(2.0)
    y = x * x
    for _ in range(20):
        y = y + y
    y.sum().backward()
    assert x.grad.tolist() == [4.0 * 2**20]


def test_broadcast_gradients_are_summed():
    x, b = torch.ones(3, 2, requires_grad=True), leaf(1.0, 2.0)
    (x * b).sum().backward()
    assert b.grad.tolist() == [3, 3] and x.grad.tolist() == [[1, 2]] * 3


def test_backward_needs_a_gradient_for_what_is_no_scalar():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\) and output\[0\] has a shape of torch.Size\(\[2\]\)."):
        (x * 2).backward(torch.ones(3))
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(()).backward()
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got float"):
        (x * 2).backward(1.0)


def test_long_chains_run_and_die_without_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + x
    y.sum().backward()
    assert x.grad.tolist() == [100_001]
    del y
    gc.collect()


def test_graph_is_freed_unless_retained():
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [12]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_nothing_saved_may_run_twice():
    x = leaf(1.0, 2.0)
    y = x.sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2, 2]


def test_graph_dies_with_its_result():
    x = leaf(1.0)
    y = x.exp() * x
    node = weakref.ref(y.grad_fn)
    gc.disable()
    try:
        del y
        assert node() is None  # by reference counting alone: no cycle
    finally:
        gc.enable()


def test_leaf_lives_as_long_as_a_graph_ends_in_it():
    x = leaf(1.0, 2.0)
    y = (x * 2).sum()
    ((node, _),) = y.grad_fn.next_functions[0][0].next_functions[:1]
    del x
    assert node.variable.tolist() == [1, 2]


def test_prepared_gradients_follow_what_a_leaf_holds_now():
    """The kernels of a backward pass are prepared by kinds of operands; `.data` may give a saved leaf other strides after that."""
    for _ in range(3):
        x, w = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3, requires_grad=True)
        y = x * w
        w.data = torch.arange(6.0).reshape(3, 2).t()
        y.sum().backward()
        assert x.grad.tolist() == [[0, 2, 4], [1, 3, 5]]
    x, w = torch.ones(2, 3, requires_grad=True), torch.arange(6.0).reshape(2, 3).requires_grad_()
    (x * w).sum().backward()
    assert x.grad.tolist() == [[0, 1, 2], [3, 4, 5]]  # what was prepared above is not taken for the usual strides


def test_gradients_of_products_with_numbers_and_broadcasting():
    """Twice each: first prepared, then from the prepared kernels."""
    for factor in (2.0, 3.0):
        x, w = torch.ones(2, 3, requires_grad=True), leaf(1.0, 2.0, 3.0)
        (x * w * factor).sum().backward()
        assert x.grad.tolist() == [[factor, 2 * factor, 3 * factor]] * 2 and w.grad.tolist() == [2 * factor] * 3


def test_a_hook_of_a_reduction_sees_the_whole_gradient():
    seen = []
    x = leaf(1.0, 2.0)
    y = x * 1
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert seen == [[1, 1]] and x.grad.tolist() == [1, 1]


def test_wide_graphs_run_in_order():
    """Several nodes are ready at once; each runs when all its uses have delivered."""
    x = leaf(2.0)
    a, b = x * 3, x * 5
    c = a * b
    (c * a + c * b + c).sum().backward()  # 45x³ + 75x³ + 15x²
    assert x.grad.tolist() == [3 * 120 * 4 + 30 * 2]


# ---- the graph ----------------------------------------------------------------------------------


def test_nodes_show_the_graph():
    x = leaf(1.0, 2.0)
    y = x.exp().sum()
    assert y.grad_fn.name() == "SumBackward0" and repr(y.grad_fn).startswith("<SumBackward0 object at 0x")
    ((exp, number),) = y.grad_fn.next_functions
    assert exp.name() == "ExpBackward0" and number == 0
    ((end, _),) = exp.next_functions
    assert "AccumulateGrad" in repr(end) and end.variable is x and end is exp.next_functions[0][0]
    assert exp.metadata == {} and isinstance(exp, torch.autograd.graph.Node)


def test_saved_tensors_can_be_read():
    x = leaf(1.0, 2.0)
    y = x.exp()
    saved = y.grad_fn._saved_result
    assert torch.equal(saved, y) and saved is not y and saved.grad_fn is y.grad_fn
    w = leaf(3.0, 4.0)
    z = x * w
    assert z.grad_fn._saved_self is x and z.grad_fn._saved_other is w
    with pytest.raises(AttributeError):
        y.grad_fn._saved_nonsense
    z.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        z.grad_fn._saved_self


def test_leaf_and_requires_grad():
    x = torch.ones(2)
    assert x.is_leaf and not x.requires_grad and x.grad_fn is None and x.grad is None
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf
    y = x * 2
    assert y.requires_grad and not y.is_leaf and y.output_nr == 0
    d = y.detach()
    assert not d.requires_grad and d.is_leaf and d.data_ptr() == y.data_ptr()
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables."):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require gradients"):
        torch.ones(2, dtype=torch.int64).requires_grad_()
    assert y.detach_() is y and y.is_leaf and not y.requires_grad


def test_grad_slot_checks_what_it_is_given():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"attempting to assign a gradient of size '\[3\]' to a tensor of size '\[2\]'"):
        x.grad = torch.ones(3)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None but got grad of type int"):
        x.grad = 1
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    x.grad = torch.ones(2)
    x.grad = None
    assert x.grad is None


def test_reading_grad_of_a_result_warns():
    y = leaf(1.0) * 2
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_integer_results_are_not_recorded():
    x = leaf(1.0, 3.0, 2.0)
    assert not x.argmax().requires_grad and not (x > 1).requires_grad


def test_several_outputs_of_which_one_is_used():
    x = torch.arange(6.0).requires_grad_()
    a, b, c = x.chunk(3)
    (b * 3).sum().backward()
    assert x.grad.tolist() == [0, 0, 3, 3, 0, 0]


# ---- torch.autograd.grad ------------------------------------------------------------------------


def test_grad_returns_and_leaves_grad_alone():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    gx, gy = torch.autograd.grad((y * y).sum(), [x, y])
    assert gx.tolist() == [18, 64] and gy.tolist() == [6, 16] and x.grad is None and w.grad is None


def test_grad_of_unused_inputs():
    x, w = leaf(1.0), leaf(2.0)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used in the graph. Set allow_unused=True"):
        torch.autograd.grad(x.sum(), (x, w))
    assert torch.autograd.grad(x.sum(), (x, w), allow_unused=True)[1] is None
    assert torch.autograd.grad(x.sum(), (x, w), materialize_grads=True)[1].tolist() == [0]
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        torch.autograd.grad(x.sum(), torch.ones(1))


def test_higher_derivatives():
    x = leaf(2.0)
    y = x**4
    for factor in (4 * 8.0, 12 * 4.0, 24 * 2.0, 24.0):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert y.tolist() == [factor]


def test_create_graph_keeps_grad_differentiable():
    x = leaf(1.0, 2.0)
    (x * x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    (second,) = torch.autograd.grad(x.grad.sum(), x)
    assert second.tolist() == [6, 12]
    x.grad = None


def test_backward_into_chosen_inputs():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * w).sum().backward(inputs=[x])
    assert x.grad.tolist() == [3, 4] and w.grad is None
    y = x * w
    (y * y).sum().backward(inputs=[y])
    assert y.grad.tolist() == [6, 16] and w.grad is None
    with pytest.raises(RuntimeError, match="cannot be empty"):
        x.sum().backward(inputs=[])


def test_batched_grad():
    x = leaf(1.0, 2.0)
    (rows,) = torch.autograd.grad(x * x, x, grad_outputs=torch.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[2, 0], [0, 4]]


def test_gradient_edges_stand_for_tensors():
    x = leaf(1.0, 2.0)
    y = x * 3
    edge = torch.autograd.graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    (g,) = torch.autograd.grad((y * y).sum(), edge)
    assert g.tolist() == [6, 12]


# ---- hooks --------------------------------------------------------------------------------------


def test_tensor_hooks_see_and_replace_gradients():
    x = leaf(1.0, 2.0)
    seen = []
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: seen.append(g.tolist()))
    y.sum().backward()
    assert x.grad.tolist() == [20, 20] and seen == [[20, 20]]
    handle.remove()
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_a_leaf_hook_runs_once_with_the_total():
    x = leaf(1.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [5]


def test_retain_grad():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [4, 8]
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        torch.ones(1).retain_grad()


def test_retained_grad_is_that_of_the_tensor_as_it_is():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * 5).sum().backward()
    assert y.grad.tolist() == [5, 5] and x.grad.tolist() == [30, 30]


def test_hook_after_accumulation():
    x = leaf(1.0, 2.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()) or setattr(p, "grad", None))
    (x * 2).sum().backward()
    assert seen == [[2, 2]] and x.grad is None
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_node_hooks():
    x = leaf(1.0, 2.0)
    y = x * 2
    seen = []
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: seen.append((grad_inputs[0].tolist(), grad_outputs[0].tolist())))
    y.grad_fn.register_prehook(lambda grad_outputs: (grad_outputs[0] * 3,))
    y.sum().backward()
    assert x.grad.tolist() == [6, 6] and seen == [([6, 6], [3, 3])]


def test_multi_grad_hook():
    x = leaf(1.0)
    y, z = x * 2, x * 3
    seen = []
    torch.autograd.graph.register_multi_grad_hook([y, z], lambda grads: seen.append([g.item() for g in grads]))
    (y * 5 + z).sum().backward()
    assert seen == [[5, 1]]


# ---- saved tensor hooks -------------------------------------------------------------------------


def test_saved_tensors_go_through_hooks():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    packed = []

    def pack(t):
        packed.append(t.tolist())
        return len(packed) - 1

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda place: torch.tensor(packed[place])):
        y = (x * w).exp()
    saved = y.grad_fn.next_functions[0][0]._saved_self  # x as the hook gave it back: a leaf, whose gradient is x's
    assert saved is not x and saved.is_leaf and saved.requires_grad and saved.grad_fn is None and "requires_grad=True" in repr(saved)
    assert torch.autograd.grad((saved * 2).sum(), x)[0].tolist() == [2, 2]
    y.sum().backward()
    assert packed[:2] == [[1, 2], [3, 4]]
    assert torch.allclose(x.grad, w.detach() * y.detach())


def test_save_on_cpu_and_forbidding_hooks():
    x = leaf(1.0, 2.0)
    with torch.autograd.graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [2, 4]
    with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"), pytest.raises(RuntimeError, match="no hooks here"):
        with torch.autograd.graph.save_on_cpu():
            pass


def test_second_derivative_through_saved_tensor_hooks():
    x = leaf(2.0)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        y = x * x * x
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [12]


# ---- modes --------------------------------------------------------------------------------------


def test_no_grad_in_all_its_forms():
    x = leaf(1.0)

    @torch.no_grad()
    def called():
        return x * 2

    @torch.no_grad
    def plain():
        return x * 2

    @torch.no_grad()
    def steps():
        yield x * 2
        received = yield torch.is_grad_enabled()
        yield received

    assert not called().requires_grad and not plain().requires_grad
    generator = steps()
    assert not next(generator).requires_grad and torch.is_grad_enabled()
    assert next(generator) is False and generator.send(7) == 7
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)


def test_mode_is_restored_after_an_error_and_private_to_a_thread():
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0
    assert torch.is_grad_enabled()
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_inference_mode():
    x = leaf(1.0, 2.0)
    with torch.inference_mode():
        y = x * 2
        view = x.view(2)
        assert torch.is_inference_mode_enabled() and not y.requires_grad and y.is_inference()
        y.add_(1)
        with torch.inference_mode(False):
            assert (x * 2).requires_grad
    assert not view.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward."):
        y * x
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed."):
        y.add_(1)
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."):
        y.requires_grad_()
    assert (y + x).requires_grad  # nothing saved


# ---- anomaly ------------------------------------------------------------------------------------


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        raise ValueError("broken on purpose")


def test_anomaly_mode_names_the_forward_line():
    x = leaf(1.0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            y = Broken.apply(x).sum()
            with pytest.raises(ValueError, match="broken on purpose"):
                y.backward()
    text = str(seen[-1].message)
    assert text.startswith("Error detected in BrokenBackward. Traceback of forward call that caused the error:") and "y = Broken.apply(x).sum()" in text


def test_anomaly_mode_finds_nan():
    x = leaf(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="Function 'MulBackward0' returned nan values in its 1th output."):
            (x / x * x).sum().backward()
    assert not torch.autograd.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(True)
    assert torch.autograd.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_runs_backward_though_a_thread_of_its_parent_held_the_lock():
    from strided.autograd import delivery

    held, done = threading.Event(), threading.Event()

    def hold():
        with delivery._ADDING:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        x = leaf(1.0, 2.0)
        (x + 1).sum().backward()
        os._exit(0 if x.grad.tolist() == [1, 1] else 1)
    done.set()
    thread.join()
    for _ in range(200):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        time.sleep(0.05)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        raise AssertionError("the child hangs")
    assert status == 0


def test_hooks_are_counted_by_one_thread_at_a_time():
    from strided.dispatch import HOOKS

    before = HOOKS.users

    def work():
        for _ in range(300):
            with torch.inference_mode():
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert HOOKS.users == before and HOOKS.active == (before > 0)


def test_gradients_of_windows_meet_in_place():
    """A loop over x[:, t]: each step's gradient is added to its window of what has arrived; nobody who can see it is surprised."""
    x = torch.arange(12.0).view(3, 4).requires_grad_()
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    total = sum((y[:, t] * (t + 1)).sum() for t in range(4)) + (y[1:] * 10).sum() + y[0, 0] * 100 + y[..., None][2, 3, 0] * 5
    total = total + y.select(1, 0).sum() + y.narrow(0, 1, 2).sum() + y.diagonal(1).sum() * 3
    total.backward()
    expected = [[102, 5, 3, 4], [13, 13, 17, 15], [13, 13, 14, 23]]
    assert seen == [expected] and x.grad.tolist() == [[2 * v for v in row] for row in expected]

    z = torch.ones(4, requires_grad=True)
    w = torch.arange(4.0)
    (z * 1)[2:].sum().backward()
    kept = z.grad
    loss = (lambda y: (y * w).sum() + y[1:3].sum() + y[1] * 7)(z * 1)  # the first gradient is `w * g`, made afresh; then windows
    (g,) = torch.autograd.grad(loss, z, create_graph=True)
    assert g.tolist() == [0, 9, 3, 3] and kept.tolist() == [0, 0, 1, 1] and w.tolist() == [0, 1, 2, 3]

    u = torch.ones(3, requires_grad=True)
    v = u + 0
    given = torch.tensor([5.0, 6.0, 7.0])  # a gradient that the caller holds is not written
    torch.autograd.backward([v, v[1:]], [given, torch.ones(2)])
    assert u.grad.tolist() == [5, 7, 8] and given.tolist() == [5, 6, 7]

    u.grad = None
    v = u.double()
    (v[0] + v[:2].float().sum().double() + v[-1:].sum()).backward()
    assert u.grad.tolist() == [2, 1, 1]


def test_a_table_read_several_times_has_one_gradient():
    table = torch.zeros(4, 2, requires_grad=True)
    a, b = torch.tensor([[0, 1], [1, 3]]), torch.tensor([3, 3])
    looked = torch.nn.functional.embedding
    (looked(a, table).sum() + 10 * looked(b, table).sum() + 100 * looked(a[0], table, padding_idx=1).sum()).backward()
    assert table.grad.tolist() == [[101, 101], [2, 2], [0, 0], [21, 21]]
    doubled = table * 2
    (looked(b, doubled).sum() + doubled[3].sum() + looked(a, doubled).sum()).backward()
    assert table.grad.tolist() == [[103, 103], [6, 6], [0, 0], [29, 29]]


@pytest.mark.parametrize("shape", [(6, 1, 5), (1, 3, 1), (1,), (), (3, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_gradients_of_broadcast_operands_are_sums_of_the_products(shape, dtype):
    torch.manual_seed(3)
    dtype = getattr(torch, dtype)
    x, y = torch.randn(6, 3, 5).to(dtype), (torch.rand(shape) + 0.5).to(dtype).requires_grad_()
    for _ in range(2):  # the second pass takes what the first prepared
        y.grad = None
        (x / y).sum().backward()
        expected = (-x.double() / y.detach().double() ** 2).sum_to_size(y.shape)
        assert y.grad.shape == y.shape and y.grad.dtype is dtype
        assert torch.allclose(y.grad.double(), expected, rtol=2e-2 if dtype is torch.bfloat16 else 1e-5, atol=0.1 if dtype is torch.bfloat16 else 1e-5)


def test_names_of_what_a_node_keeps():
    x = torch.ones(2, 3, requires_grad=True)
    node = (x * x).sum(1).grad_fn
    assert node._saved_keepdim is False and "_saved_keepdim" in dir(node)
    product = node.next_functions[0][0]
    assert product._saved_self is x and product._saved_other is x
    with pytest.raises(AttributeError, match="_saved_nothing"):
        product._saved_nothing


@pytest.mark.parametrize("dims, keepdim", [((-1,), True), ((0, 1), False), ((1,), False)])
def test_gradient_of_a_standard_deviation_over_rows(dims, keepdim):
    torch.manual_seed(5)
    x = torch.randn(12, 10, 16, dtype=torch.float64, requires_grad=True)
    out = x.std(dims, keepdim=keepdim)
    weights = torch.randn(*out.shape, dtype=torch.float64)
    (out * weights).sum().backward()
    count = x.numel() // out.numel()
    spread = x.detach() - x.detach().mean(dims, keepdim=True)
    scale = (weights / out.detach() / (count - 1)).reshape(spread.mean(dims, keepdim=True).shape)
    assert torch.allclose(x.grad, spread * scale, rtol=1e-12, atol=1e-14)
