"""Defects once found in the engine's core, each kept as a test: the thread pool, forks, exits, memory that overlaps, tensors without memory."""

import math
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import strided as torch
from strided.dispatch import listen
from strided.kernels import jit, native


def run(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)


# ---- threads and processes ----------------------------------------------------------------------------------------------

COUNT_PARTS = """
define void @kernel(ptr %desc, ptr %slots, i64 %part, i64 %parts) nounwind {
  %base = load ptr, ptr %slots
  %p = getelementptr i64, ptr %base, i64 %part
  %old = atomicrmw add ptr %p, i64 1 seq_cst
  ret void
}
"""


def test_every_part_of_a_job_runs_once_when_jobs_differ_in_parts():
    """A worker late from a job of few parts must not take a part of the next one, of more parts, while that is being published."""
    address = jit.compile_kernel((COUNT_PARTS,), lambda: COUNT_PARTS)
    before = native.get_num_threads()
    native.set_num_threads(8)
    try:
        jobs = [(native.pack_desc(address, 1, parts), native.new_storage(64), parts) for parts in (2, 8)]
        for _, memory, _ in jobs:
            native.fill_bytes(memory.data, 0, 64)
        times = 60_000
        for _ in range(times):
            for desc, memory, _ in jobs:
                native.launch(desc, memory.data)
        for _, memory, parts in jobs:
            assert native.read_list(torch.int64.code, memory.data, 8, 8) == [times] * parts + [0] * (8 - parts)
        many = native.pack_desc(address, 1, 70_000)  # more parts than a job's word counts
        wide = native.new_storage(8 * 70_000)
        native.fill_bytes(wide.data, 0, wide.nbytes)
        native.launch(many, wide.data)
        assert set(native.read_list(torch.int64.code, wide.data, 70_000, 8)) == {1}
    finally:
        native.set_num_threads(before)


COMPILING = """
    import os, sys, threading, time
    os.environ["STRIDED_CACHE_DIR"] = ""
    import strided as torch
    from strided.ops.elementwise import Pointwise

    stop = []

    def compile_on():
        n = 0
        while not stop:
            n += 1
            Pointwise(f"test{n}", lambda x: x * float(n) + 1.0, 1)(torch.ones(3))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_child_forked_during_a_compile_can_compile():
    done = run(COMPILING + """
    worker = threading.Thread(target=compile_on)
    worker.start()
    time.sleep(0.3)
    hung = 0
    for _ in range(3):
        child = os.fork()
        if child == 0:
            torch.ones(3, dtype=torch.float64).sinh().cosh()
            os._exit(0)
        for _ in range(400):
            if os.waitpid(child, os.WNOHANG)[0]:
                break
            time.sleep(0.05)
        else:
            os.kill(child, 9)
            os.waitpid(child, 0)
            hung += 1
    stop.append(True)
    worker.join()
    sys.exit(hung)
    """)
    assert done.returncode == 0, done.stderr


def test_exit_while_daemon_threads_compile_and_compute():
    done = run(COMPILING + """
    big = torch.ones(5_000_000)

    def compute():
        while True:
            torch.exp(big)

    for work in (compile_on, compute, compute):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.4)
    """)
    assert done.returncode == 0, done.stderr


# ---- memory that overlaps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.int16, torch.int8])
def test_operand_is_the_same_memory_in_a_narrower_dtype(dtype):
    x = torch.arange(1000.0)
    narrow = x.view(dtype)[:1000]
    values = narrow.clone()
    added = x + values
    assert torch.equal(x.add_(narrow), added)
    x = torch.arange(1000.0)
    x.copy_(x.view(dtype)[:1000])
    assert torch.equal(x, values.to(torch.float32))


def test_operand_is_another_window_through_data():
    """`x.data` has a storage of its own over x's memory."""
    for _ in range(2):  # the second call finds its plan
        x = torch.arange(1000.0)
        expected = x[1:] + x[:-1]
        x.data[1:].add_(x.data[:-1])
        assert torch.equal(x[1:], expected)
        square = torch.arange(64.0 * 64).view(64, 64)
        expected = square.t().clone()
        square.data.copy_(square.data.t())
        assert torch.equal(square, expected)
        square.data.add_(square.data.t())
        assert torch.equal(square, expected + expected.t())


# ---- tensors without memory ---------------------------------------------------------------------------------------------

DEVICES = "Expected all tensors to be on the same device"
META = torch.empty(3, device="meta")


@pytest.mark.parametrize("call", [
    lambda: torch.ones(3).gather(0, torch.empty(3, device="meta", dtype=torch.int64)),
    lambda: torch.ones(3).scatter_(0, torch.zeros(3, dtype=torch.int64), META),
    lambda: torch.ones(3).index_add_(0, torch.tensor([0, 1, 2]), META),
    lambda: torch.ones(3).masked_select(torch.empty(3, device="meta", dtype=torch.bool)),
    lambda: torch.addmm(torch.empty(2, device="meta"), torch.ones(2, 2), torch.ones(2, 2)),
    lambda: torch.nn.functional.linear(torch.ones(3, 3), torch.ones(3, 3), META),
    lambda: torch.nn.functional.cross_entropy(torch.ones(3, 4), torch.empty(3, device="meta", dtype=torch.int64)),
    lambda: torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 2, 4, 8)] * 3, torch.empty(4, 4, device="meta")),
    lambda: torch.ones(3).index_add_(0, torch.tensor([0, 1]), (META * 2)[1:]),
    lambda: torch.ones(6).scatter_(0, torch.zeros(6, dtype=torch.int64), torch.cat([META, META])),
    lambda: torch.ones(3).scatter_(0, torch.zeros(3, dtype=torch.int64), META.softmax(0)),
    lambda: torch.ones(3).gather(0, torch.empty(3, 4, device="meta").argmax(1)),
    lambda: torch.addmm(torch.empty(2, 2, device="meta").sum(0), torch.ones(2, 2), torch.ones(2, 2)),
])
def test_meta_tensor_among_others_is_an_error(call):
    with pytest.raises(RuntimeError, match=DEVICES):
        call()


def test_meta_storage_has_no_bytes_to_read():
    for read in (lambda: META.untyped_storage()[0], lambda: META.storage().tolist(), lambda: bytes(META.mem)):
        with pytest.raises(RuntimeError, match="Cannot access data pointer"):
            read()


def test_meta_offsets():
    view = torch.empty(4, 6, device="meta")[1:, 2:]
    assert view.storage_offset() == 8 and view[1].storage_offset() == 14 and (view + 1).storage_offset() == 0
    assert view.data_ptr() == 0 and view.as_strided((2,), (1,), 3).storage_offset() == 3


def test_number_too_large_for_a_kernel():
    x = torch.ones(3)
    with pytest.raises(OverflowError, match="int too big to convert"):  # as PyTorch
        x.add_(2**63)
    assert x.tolist() == [1.0, 1.0, 1.0] and x._version == 0


# ---- in-place writes and history ----------------------------------------------------------------------------------------


def test_gradient_of_a_write_from_its_own_memory_uses_the_old_values():
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x.clone()
    y.pow_(y)
    y.sum().backward()
    expected = torch.tensor([4 * (1 + math.log(2)), 27 * (1 + math.log(3))])
    assert torch.allclose(x.grad, expected)

    x = torch.tensor([[2.0, 3.0], [5.0, 7.0]], requires_grad=True)
    y = x.clone()
    y.mul_(y[0])  # rows 0 and 1 times the old row 0
    assert y.tolist() == [[4.0, 9.0], [10.0, 21.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[9.0, 13.0], [2.0, 3.0]]  # d/da (a^2 + a b), d/db (a b)


def test_failed_in_place_operator_leaves_its_tensor():
    with torch.inference_mode():
        t = torch.full((3,), 5.0)
    x = torch.ones(3, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x.mul_(t)
    assert x.tolist() == [1.0, 1.0, 1.0] and x._version == 0 and x.grad_fn.name() == "MulBackward0"


def test_retain_grad_follows_a_generic_in_place_operator():
    x = torch.arange(3.0).requires_grad_()
    y = x * 1
    y.retain_grad()
    y.cumsum_(0)
    (y * 2).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0, 2.0] and x.grad.tolist() == [6.0, 4.0, 2.0]


# ---- memory that dies under a kernel, and the cache on disk ---------------------------------------------------------------


def test_storage_replaced_while_a_kernel_reads_it():
    """Another thread says `x.data = y` during log(x): the old memory must not be given to the next tensor before the kernel is done."""
    count = 8_000_000
    torch.log(torch.ones(count))
    held = native.memory_stats()[0]
    for _ in range(6):
        x = torch.ones(count)
        made = []

        def replace(x=x, made=made):
            time.sleep(0.003)
            x.data = torch.ones(1)
            made.append(torch.full((count,), 7.0))

        other = threading.Thread(target=replace)
        other.start()
        result = torch.log(x)
        other.join()
        assert not result.any()
        del x, made, result, other, replace
    torch.log(torch.ones(count))
    assert native.memory_stats()[0] == held  # what had to wait was freed


def test_threads_that_compute_free_what_they_made():
    held = native.memory_stats()[0]

    def work():
        for _ in range(40):
            a = torch.ones(200_000)
            b = (a * 2).exp()
            del a, b

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.ones(4_000_000).exp()
    assert native.memory_stats()[0] == held


def test_cache_on_disk_is_bounded(tmp_path):
    for number in range(20):
        (tmp_path / f"{number}.o").write_bytes(b"x")
        os.utime(tmp_path / f"{number}.o", (number, number))
    jit._prune(tmp_path, 20)
    assert len(list(tmp_path.iterdir())) == 20
    jit._prune(tmp_path, 10)
    assert sorted(int(path.stem) for path in tmp_path.iterdir()) == [15, 16, 17, 18, 19]


def test_user_without_a_home():
    done = run("""
    import os, pwd
    for name in ("HOME", "XDG_CACHE_HOME", "STRIDED_CACHE_DIR"):
        os.environ.pop(name, None)

    def nobody(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    pwd.getpwuid = nobody
    import strided as torch
    assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]
    """)
    assert done.returncode == 0, done.stderr


def test_expanded_tensor_cannot_be_written():
    one = torch.zeros(1)
    for write in (lambda x: torch.add(torch.ones(3), 1, out=x), lambda x: x.cumsum_(0), lambda x: x.add_(1), lambda x: x.copy_(torch.ones(3))):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers? to a single memory location"):
            write(one.expand(3))
    assert one.item() == 0 and one._version == 0


def test_listener_may_compute():
    seen = []

    def listener(event):
        seen.append((event.op, torch.ones(4).sum().item()))

    with listen(listener):
        torch.full((3,), 2.0).exp()
        with pytest.raises(ZeroDivisionError), listen(lambda event: 1 // 0):
            torch.ones(2) * 2
        torch.ones(2) + 1
    assert [op for op, _ in seen if op in ("exp", "sum", "add")] == ["exp", "add"]


@pytest.mark.parametrize("window", [lambda x: x[:, :1], lambda x: x[:, 1::2], lambda x: x.t()[:, :4].t(), lambda x: x[:, 3], lambda x: x[1:2].expand(4, 4), lambda x: x.t()])
def test_operand_is_a_window_that_is_not_dense(window):
    """The copy that such a window needs has strides of its own: reading it by the window's runs past its end."""
    for _ in range(2):
        x = torch.arange(16.0).view(4, 4)
        if window(x).shape[-1] == 2:
            x = torch.arange(16.0).view(4, 4)
            target = x[:, :2]
        else:
            target = x
        expected = target * window(x).clone() + 0.0
        target.mul_(window(x))
        assert torch.equal(target, expected)
    weights = torch.arange(1.0, 17.0).view(4, 4).requires_grad_()
    y = weights * 1
    y.mul_(y[:, :1])
    y.sum().backward()
    assert weights.grad[0].tolist() == [1 + 1 + 2 + 3 + 4, 1, 1, 1]


# ---- numbers beside 16-bit tensors, the default dtype, signs of zero, powers, arrays, the lens in the backward pass ----


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_round_to_a_16_bit_tensors_dtype(dtype):
    x = torch.tensor([0.1, 1.0], dtype=getattr(torch, dtype))
    assert (x == 0.1).tolist() == [True, False] and (x < 0.1).tolist() == [False, False]
    assert (x - 0.1).tolist()[0] == 0.0
    # a product with a number is computed in float32 and rounded once
    wide = torch.tensor([3.0], dtype=getattr(torch, dtype))
    assert (wide * 0.1).tolist() == torch.tensor([3.0 * 0.1]).to(getattr(torch, dtype)).tolist()


def test_plans_follow_the_default_dtype():
    i = torch.arange(3)
    assert torch.sin(i).dtype == (i + 1.5).dtype == (i / 2).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.sin(i).dtype == (i + 1.5).dtype == (i / 2).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.sin(i).dtype == torch.float32


def test_negative_zero_is_written():
    assert torch.full((2,), -0.0).signbit().all() and torch.zeros(2).fill_(-0.0).signbit().all()


def test_negative_powers_of_integers_are_refused():
    i = torch.arange(1, 4)
    for call in (lambda: i**-2, lambda: i.pow_(-1), lambda: torch.pow(i, -1)):
        with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
            call()
    assert i.tolist() == [1, 2, 3] and (i.float() ** -1).tolist()[0] == 1.0


def test_arrays_beside_tensors():
    import numpy

    x, n = torch.ones(3), numpy.array([1.0, 2.0, 4.0], dtype=numpy.float32)
    assert (x + n).tolist() == [2, 3, 5] and (x == n).tolist() == [True, False, False] and (n * x).tolist() == [1, 2, 4] and (x / n).tolist() == [1, 0.5, 0.25]


def test_meta_storages_stay_meta():
    m = torch.empty(3, device="meta").resize_(10)
    assert m.is_meta and m.shape == (10,) and (m + 1).shape == (10,)
    with pytest.raises(RuntimeError, match="meta"):
        torch.empty(3).set_(torch.empty(3, device="meta").untyped_storage(), 0, (3,), (1,))


def test_the_lens_sees_pointwise_gradients():
    from strided import dispatch

    x = torch.ones(4, 4, requires_grad=True)
    seen = []
    with dispatch.listen(lambda event: seen.append((event.op, event.flops, event.phase))):
        (x.tanh() * x).exp().sum().backward()
    backward = {op: flops for op, flops, phase in seen if phase == "backward" and flops}
    assert backward == {"exp_backward": 16, "mul_backward": 16, "tanh_backward": 48, "add_": 16}
