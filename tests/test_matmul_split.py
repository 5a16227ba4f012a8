"""How products are cut into pieces that threads claim: every element once, whoever comes, and what threads keep between pieces stays right."""

import threading

import numpy as np
import pytest

from strided import dtypes
from strided.kernels import gemm_ir, matmul, native
from test_matmul import assert_product, layout, multiply, operand


@pytest.fixture
def threads():
    before = native.get_num_threads()
    yield native.set_num_threads
    native.set_num_threads(before)


@pytest.mark.parametrize("count", [2, 3, 5, 16])
@pytest.mark.parametrize("form", ["nn", "nt", "tn"])
def test_pieces_make_up_the_product(count, form, threads):
    threads(count)
    rng = np.random.default_rng(count)
    for m, n, k in [(300, 257, 130), (40, 1500, 200), (1500, 40, 200), (700, 300, 1100), (131, 900, 40), (600, 600, 1)]:
        a, b = operand(rng, (), m, k, form[0], "float32"), operand(rng, (), k, n, form[1], "float32")
        for _ in range(3):
            assert_product(multiply(a, b, "float32"), a, b, "float32")


def test_batches_are_claimed_in_pieces(threads):
    rng = np.random.default_rng(1)
    for count in (2, 4):
        threads(count)
        for batch, m, n, k in [((3,), 200, 170, 90), ((2, 2), 130, 60, 300), ((2000,), 9, 8, 7), ((3,), 60, 50, 1100), ((0,), 5, 6, 7), ((3,), 0, 6, 7)]:
            a, b = operand(rng, batch, m, k, "n", "float32"), operand(rng, batch, k, n, "t", "float32")
            added = np.broadcast_to(operand(rng, (), 1, n, "n", "float32"), (*batch, m, n))
            assert_product(multiply(a, b, "float32"), a, b, "float32")
            assert_product(multiply(a, b, "float32", "add", added), a, b, "float32", "add", added)


def test_a_packed_operand_is_kept_or_not_by_its_size(threads, monkeypatch):
    threads(2)
    rng = np.random.default_rng(2)
    a, b = operand(rng, (), 500, 1200, "n", "float32"), operand(rng, (), 1200, 400, "n", "float32")
    kept = []
    for limit in (8 << 20, 1):
        monkeypatch.setattr(matmul, "KEPT", limit)
        f32 = dtypes.float32
        words = memoryview(matmul.build_matmul((f32, layout(a @ b)), (f32, layout(a)), (f32, layout(b)))).cast("q").tolist()
        kept.append(words[gemm_ir.FIRST + gemm_ir.WORDS.index("keep")] > 0)
        assert_product(multiply(a, b, "float32"), a, b, "float32")
    assert kept == [True, False]


def test_products_of_several_python_threads_do_not_mix(threads):
    threads(2)
    rng = np.random.default_rng(3)
    pairs = [(operand(rng, (), 150 + i, 200, "n", "float32"), operand(rng, (), 200, 170, "t", "float32")) for i in range(4)]
    wrong = []

    def work(a, b):
        expected = a.astype(np.float64) @ b
        for _ in range(60):
            if np.abs(multiply(a, b, "float32") - expected).max() > 1e-3:
                wrong.append(a.shape)

    workers = [threading.Thread(target=work, args=pair) for pair in pairs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_sizes_shrink_and_add_up():
    for units in (0, 1, 2, 9, 37, 293, 5000):
        for count, least, most in ((1, 2, 1 << 16), (2, 2, 1 << 16), (3, 8, 1 << 16), (16, 4, 64), (100, 1, 64)):
            sizes = matmul._guided(units, count, least, most)
            assert sum(sizes) == units and len(sizes) <= most and all(s >= min(least, units) for s in sizes)
            if units >= 8 * count * least and most > 64:
                assert sizes[0] * count <= 0.6 * units + count and sizes[-1] < sizes[0]
