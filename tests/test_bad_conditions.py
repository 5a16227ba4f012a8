"""Conditions that ordinary machines put a library in: few or too many threads, forks, caches that cannot be written, memory that ends, shapes without number.

Values only: what must hold is the same result as in quiet conditions, or a Python error that leaves everything as it was.
"""
import gc
import os
import pathlib
import subprocess
import sys
import threading

import pytest

import strided
from strided.kernels import native
from strided.kernels.runtime_pool import pool_ir

LINUX = sys.platform == "linux"


@pytest.fixture
def threads():
    before = strided.get_num_threads()
    yield strided.set_num_threads
    strided.set_num_threads(before)


def work() -> list:
    """Every kind of kernel that is split over threads, on numbers whose sums are exact (small integers)."""
    x = (strided.arange(512 * 700) % 7).reshape(512, 700).float()
    w = (strided.arange(700 * 96) % 5).reshape(700, 96).float()
    heads = (strided.arange(2 * 4 * 96 * 32) % 3).reshape(2, 4, 96, 32).float()
    images = (strided.arange(2 * 8 * 24 * 24) % 3).reshape(2, 8, 24, 24).float()
    kernels = (strided.arange(16 * 8 * 9) % 3).reshape(16, 8, 3, 3).float()
    return [
        x + 1,
        x.t().contiguous(),
        x.sum(0),
        x.sum(),
        x.argmax(1),
        x.cumsum(0),
        x @ w,
        strided.nn.functional.conv2d(images, kernels),
        x.softmax(1),
        strided.nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True),
        x.sort(1).values,
        x[strided.arange(511, -1, -1)],
    ]


def assert_same(results: list, expected: list) -> None:
    for result, wanted in zip(results, expected):
        assert strided.equal(result, wanted) or strided.allclose(result, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 500])
def test_any_number_of_threads(threads, count):
    threads(1)
    expected = work()
    threads(count)
    for _ in range(3):
        assert_same(work(), expected)


@pytest.mark.skipif(not LINUX, reason="binds threads to cores")
def test_workers_leave_the_core_of_the_process_alone(threads):
    """A process confined to one core after its workers were made still finishes, as does one that is given its cores back."""
    everywhere = os.sched_getaffinity(0)
    expected = work()
    threads(4)
    try:
        for cores in [{core} for core in sorted(everywhere)[:2]] + [everywhere]:
            os.sched_setaffinity(0, cores)
            for _ in range(3):
                threading.Event().wait(0.005)  # the workers lie down in between
                assert_same(work(), expected)
    finally:
        os.sched_setaffinity(0, everywhere)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_the_pool_is_valid_ir_on_every_platform(platform):
    import llvmlite.binding as llvm

    declarations = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
@r_first = internal global ptr null
@r_last = internal global ptr null
"""
    module = llvm.parse_assembly(declarations + pool_ir("call i32 @sched_yield()", platform))
    module.verify()
    assert ("sched_getcpu" in str(module)) == (platform == "linux")


def test_two_threads_call_at_once(threads):
    threads(2)
    expected = work()
    failures = []

    def caller():
        try:
            for _ in range(5):
                assert_same(work(), expected)
        except BaseException as error:
            failures.append(error)

    callers = [threading.Thread(target=caller) for _ in range(4)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_while_the_pool_lives(threads):
    threads(3)
    expected = work()
    children = []
    for _ in range(3):
        work()
        child = os.fork()
        if child == 0:
            try:
                assert_same(work(), expected)
                os._exit(0)
            except BaseException:
                os._exit(1)
        children.append(child)
        assert_same(work(), expected)  # the parent's workers go on
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]


# ---- the folder of compiled kernels ----------------------------------------------------------------------------------------

PROGRAM = """
import strided
x = strided.arange(12.).reshape(3, 4)
print((x.exp().log() @ x.t()).round().tolist(), round(x.softmax(1).sum().item(), 4))
"""
PRINTED = "[[14.0, 38.0, 62.0], [38.0, 126.0, 214.0], [62.0, 214.0, 366.0]] 3.0"


def start(cache: pathlib.Path, before: str = "") -> subprocess.Popen:
    environment = dict(os.environ, STRIDED_CACHE_DIR=str(cache))
    return subprocess.Popen([sys.executable, "-c", before + PROGRAM], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert err == ""
    return out.strip()


def test_two_processes_compile_the_same_kernels(tmp_path):
    both = [start(tmp_path / "cache"), start(tmp_path / "cache")]
    assert [finish(process) for process in both] == [PRINTED, PRINTED]
    left = sorted(entry.name for entry in (tmp_path / "cache").iterdir())
    assert left and all(name.endswith(".o") for name in left)  # no half-written file stays


# Root may write anywhere until it gives that right up (CAP_DAC_OVERRIDE, bit 1 of the first word).
WITHOUT_OVERRIDE = """
import ctypes
libc = ctypes.CDLL(None)
header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(header, data) == 0
data[0] &= ~2
assert libc.capset(header, data) == 0
"""


def test_read_only_cache_folder(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o500)
    root = hasattr(os, "getuid") and os.getuid() == 0
    if root and not LINUX:
        pytest.skip("root may write everywhere")
    assert finish(start(folder, WITHOUT_OVERRIDE if root else "")) == PRINTED
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not LINUX, reason="limits the size of files")
def test_full_cache_folder(tmp_path):
    """Not a byte can be written: what is left of a file is removed, the program runs."""
    limit = "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    assert finish(start(tmp_path / "cache", limit)) == PRINTED
    assert list((tmp_path / "cache").iterdir()) == []


def test_damaged_cache_folder(tmp_path):
    assert finish(start(tmp_path / "cache")) == PRINTED
    for number, entry in enumerate(sorted((tmp_path / "cache").iterdir())):
        data = bytearray(entry.read_bytes())
        if number % 3 == 0:
            data = data[: len(data) // 2]
        elif number % 3 == 1:
            data[-1] ^= 1
        else:
            data = bytearray()
        entry.write_bytes(data)
    assert finish(start(tmp_path / "cache")) == PRINTED


# ---- memory -------------------------------------------------------------------------------------------------------------------


def test_memory_limit_reached_in_the_middle_of_training():
    gc.collect()
    model = strided.nn.Sequential(strided.nn.Linear(64, 256), strided.nn.ReLU(), strided.nn.Linear(256, 8))
    x = strided.ones(32, 64)
    before = [p.clone() for p in model.parameters()]
    in_use = native.memory_stats()[0]
    strided.set_memory_limit(in_use + 40_000)
    try:
        with pytest.raises(RuntimeError, match="can't allocate memory: you tried to allocate"):
            model(x.repeat(64, 1)).sum().backward()
        with pytest.raises(RuntimeError, match=r"\(set_memory_limit changes it\); nothing was changed"):
            strided.zeros(1000, 1000)
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            x.repeat(1000, 1)
        assert (x + 1).sum().item() == 2 * 32 * 64  # what fits goes on
    finally:
        strided.set_memory_limit(None)
    assert all(strided.equal(p, q) for p, q in zip(model.parameters(), before))
    gc.collect()
    assert native.memory_stats()[0] <= in_use + 1024  # nothing of the failed step stays
    model(x).sum().backward()
    assert all(p.grad is not None for p in model.parameters())


@pytest.mark.parametrize("offset", range(1, 8))
def test_operands_at_any_address(offset):
    """Bytes that begin anywhere, as a mapped file's do: every vector load is unaligned."""
    raw = bytearray(4 * 5000 + 8)
    x = strided.frombuffer(raw, dtype=strided.uint8)[offset : offset + 20000].clone()
    aligned = (strided.arange(5000) % 11).float()
    raw[offset : offset + 20000] = bytes(memoryview(aligned.numpy()).cast("B"))
    view = strided.frombuffer(raw, dtype=strided.uint8, offset=offset, count=20000)
    if offset % 4:
        with pytest.raises((RuntimeError, ValueError)):
            view[:-1].view(strided.float32)
    x = strided.frombuffer(raw, dtype=strided.float32, offset=offset, count=5000)
    assert strided.equal(x + 1, aligned + 1)
    assert x.sum().item() == aligned.sum().item()
    assert strided.equal(x.reshape(50, 100) @ x.reshape(100, 50), aligned.reshape(50, 100) @ aligned.reshape(100, 50))


@pytest.mark.parametrize("shift", [1, 3, 16, 64])
def test_overlapping_operands(shift):
    """A copy between two windows of the same memory reads everything before it writes, in either direction."""
    numbers = list(range(5000))
    forward, backward = strided.arange(5000), strided.arange(5000)
    forward[shift:] = forward[:-shift]
    backward[:-shift] = backward[shift:]
    assert forward.tolist() == numbers[:shift] + numbers[:-shift]
    assert backward.tolist() == numbers[shift:] + numbers[-shift:]
    x = strided.arange(5000)
    x[shift:] += x[:-shift]
    assert x.tolist() == numbers[:shift] + [a + b for a, b in zip(numbers[shift:], numbers[:-shift])]


def resident() -> int:
    """Bytes of this process in memory."""
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise AssertionError


def many_shapes(largest: int) -> tuple[int, int]:
    """Computes with every shape (a, b, c) of at most `largest` elements: how many there were, and by how many bytes the process outgrew its first half."""
    source = strided.arange(largest).float()
    shapes = ((a, b, c) for a in range(1, largest + 1) for b in range(1, largest // a + 1) for c in range(1, largest // a // b + 1))
    half = sum(largest // a // b for a in range(1, largest + 1) for b in range(1, largest // a + 1)) // 2
    largest_before = largest_after = 0
    for count, shape in enumerate(shapes):
        if count % 500 == 0:  # the caches fill and are emptied: their peaks are what counts
            if count < half:
                largest_before = max(largest_before, resident())
            else:
                largest_after = max(largest_after, resident())
        x = source[: shape[0] * shape[1] * shape[2]].view(shape) + 1
        if count % 7 == 0:
            x.sum(1)
        if count % 11 == 0:
            x.transpose(0, 2).contiguous()
    return count + 1, largest_after - largest_before


@pytest.mark.skipif(not LINUX, reason="reads the process's size from /proc")
def test_shapes_without_number_leave_memory_flat():
    count, growth = many_shapes(1_500)
    assert count > 40_000  # a million of them is many_shapes(21_000)
    assert growth < 12 * 2**20
    assert all(len(cache) <= cache.limit for cache in native._plan_caches)


def sizes_beyond_64_bits():
    F, one, meta = strided.nn.functional, strided.zeros(1), strided.device("meta")
    image, rows = strided.zeros(1, 1, 5), strided.empty(2**31, 4, device=meta)
    return {
        "empty": lambda: strided.empty(2**62),
        "meta": lambda: strided.empty(2**31, 2**31, device=meta),
        "a result on meta": lambda: strided.empty(1, device=meta).expand(2**62) + 1,
        "a result": lambda: one.expand(2**62) + 1,
        "a product on meta": lambda: F.linear(rows, rows),
        "distances on meta": lambda: strided.cdist(rows, rows),
        "a product": lambda: one.expand(2**40)[:, None] @ one.expand(2**22)[None],
        "resize_": lambda: strided.zeros(3).resize_(2**62),
        "multinomial": lambda: strided.multinomial(strided.ones(3), 2**62, replacement=True),
        "a step": lambda: F.max_pool1d(image, 2, stride=2**62),
        "interpolate": lambda: F.interpolate(image, size=2**61),
        "interpolate by scale": lambda: F.interpolate(image, scale_factor=1e30, mode="linear"),
        "means of ranges": lambda: F.adaptive_avg_pool1d(image, 2**62),
        "maxima of ranges": lambda: F.adaptive_max_pool1d(image, 2**62),
    }


@pytest.mark.parametrize("case", sizes_beyond_64_bits())
def test_sizes_beyond_64_bits(case):
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        sizes_beyond_64_bits()[case]()


def test_memory_is_asked_for_before_tables_of_the_result_s_length():
    """They would be made for minutes, and end the process."""
    image = strided.zeros(1, 1, 5)
    F = strided.nn.functional
    for call in (lambda: F.interpolate(image, size=2**55), lambda: F.adaptive_avg_pool1d(image, 2**55), lambda: F.adaptive_max_pool1d(image, 2**55)):
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            call()


def test_layouts_met_again_after_their_table_was_emptied(monkeypatch):
    """They are other objects then, and equal: an out= tensor that is an input still is the same memory, element by element."""
    x = strided.arange(6.0).view(2, 3)
    monkeypatch.setattr(sys.modules["strided.layout"], "_TABLE", {})
    monkeypatch.setattr(sys.modules["strided.tensor"], "_SPECS", {})
    same = x.as_strided((2, 3), (3, 1))
    assert same.spec is not x.spec and same.spec.layout is not x.spec.layout
    assert strided.add(x, 1, out=same) is same and x.tolist() == [[1, 2, 3], [4, 5, 6]]
    x += same
    assert x.tolist() == [[2, 4, 6], [8, 10, 12]]
