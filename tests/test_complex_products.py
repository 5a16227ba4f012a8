"""Products of complex matrices: values against NumPy in complex128 over shapes, strides and batches, dtypes, gradients by the definition, FLOPs, errors."""
import itertools

import numpy as np
import pytest

import strided as torch
from strided.autograd.gradcheck import gradcheck

RNG = np.random.default_rng(3)
SHAPES = [
    ((3, 4), (4, 5)), ((1, 7), (7, 50)), ((1, 7), (7, 1)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (6, 4, 5)), ((2, 1, 1, 40), (3, 40, 90)), ((5, 0), (0, 4)), ((0, 3), (3, 2)),
    ((33, 65), (65, 17)), ((1, 30), (30, 400)), ((4,), (4,)), ((4,), (4, 3)), ((3, 4), (4,)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)),
]  # fmt: skip


def numbers(*shape, dtype="complex128"):
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def leaf(*shape):
    return torch.from_numpy(numbers(*shape)).requires_grad_()


@pytest.mark.parametrize("left, right", SHAPES)
@pytest.mark.parametrize("dtype, tolerance", [("complex64", 1e-5), ("complex128", 1e-13)])
def test_matmul(left, right, dtype, tolerance):
    a, b = numbers(*left, dtype=dtype), numbers(*right, dtype=dtype)
    want = a.astype("complex128") @ b
    turned = lambda x, turn: torch.from_numpy(np.ascontiguousarray(x.swapaxes(-1, -2))).mT if turn and x.ndim > 1 else torch.from_numpy(x)
    for turn_a, turn_b in itertools.product((False, True), repeat=2):
        got = turned(a, turn_a) @ turned(b, turn_b)
        assert got.shape == want.shape and got.is_contiguous() and str(got.dtype) == f"torch.{dtype}"
        assert np.abs(got.numpy() - want).max(initial=0) <= tolerance * max(1, np.abs(want).max(initial=0))


def test_windows_and_offsets():
    a, b = torch.from_numpy(numbers(8, 9)), torch.from_numpy(numbers(9, 8))
    for x, y in ((a[1:7:2, 2:8], b[3:9, 1:]), (a[:, ::2], b[:5]), (a[2:3, 1:9], b[1:].flip(1)), (a[:, 3:4], b[3:4])):
        assert np.allclose((x @ y).numpy(), x.numpy() @ y.numpy(), atol=1e-13)


def test_products_with_an_added_input():
    c, a, b = numbers(3, 5), numbers(3, 4), numbers(4, 5)
    t = torch.from_numpy
    close = lambda got, want: np.allclose(got.numpy(), want, atol=1e-13)
    assert close(torch.addmm(t(c), t(a), t(b), beta=1 + 2j, alpha=0.5j), (1 + 2j) * c + 0.5j * (a @ b))
    assert close(torch.addmm(t(c * np.nan), t(a), t(b), beta=0), a @ b)
    assert close(torch.addmv(t(c[:, 0].copy()), t(a), t(b[:, 0].copy()), alpha=2), c[:, 0] + 2 * (a @ b[:, 0]))
    assert close(torch.addr(t(c), t(a[:, 0].copy()), t(b[0].copy()), alpha=1j), c + 1j * np.outer(a[:, 0], b[0]))
    A, B, C = numbers(2, 3, 4), numbers(2, 4, 5), numbers(2, 3, 5)
    assert close(torch.baddbmm(t(C), t(A), t(B), beta=2j), 2j * C + A @ B)
    assert close(torch.addbmm(t(c), t(A), t(B)), c + (A @ B).sum(0))
    assert close(torch.nn.functional.linear(t(A), t(b.T.copy()), t(c[0].copy())), A @ b + c[0])


def test_conjugating_products():
    a, b = numbers(6), numbers(6)
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    assert abs(torch.vdot(x, y).item() - np.vdot(a, b)) < 1e-13
    assert abs(torch.dot(x, y).item() - a @ b) < 1e-13
    m = numbers(3, 6)
    assert np.allclose(torch.linalg.vecdot(torch.from_numpy(m), y).numpy(), (m.conj() * b).sum(-1))
    assert np.allclose(torch.einsum("ij,kj->ik", torch.from_numpy(m), torch.from_numpy(m)).numpy(), m @ m.T)
    assert np.allclose(torch.tensordot(torch.from_numpy(m), y, 1).numpy(), m @ b)


def test_gradients():
    for left, right in SHAPES:
        if 0 not in left + right and max(left + right) < 20:
            assert gradcheck(torch.matmul, (leaf(*left), leaf(*right)))
    assert gradcheck(lambda c, a, b: torch.addmm(c, a, b, beta=1 + 2j, alpha=0.5j), (leaf(3, 5), leaf(3, 4), leaf(4, 5)))
    assert gradcheck(lambda c, a, b: torch.baddbmm(c, a, b, beta=2j, alpha=1 - 1j), (leaf(2, 3, 5), leaf(2, 3, 4), leaf(2, 4, 5)))
    assert gradcheck(torch.addbmm, (leaf(3, 5), leaf(2, 3, 4), leaf(2, 4, 5)))
    assert gradcheck(lambda c, a, b: torch.addmv(c, a, b, alpha=1j), (leaf(3), leaf(3, 4), leaf(4)))
    assert gradcheck(lambda c, a, b: torch.addr(c, a, b, beta=1j, alpha=2 - 1j), (leaf(3, 4), leaf(3), leaf(4)))
    assert gradcheck(torch.nn.functional.linear, (leaf(2, 3, 4), leaf(5, 4), leaf(5)))
    assert gradcheck(torch.nn.functional.linear, (leaf(3, 4), leaf(5, 4)))
    assert gradcheck(torch.vdot, (leaf(4), leaf(4))) and gradcheck(torch.dot, (leaf(4), leaf(4)))
    assert gradcheck(torch.linalg.vecdot, (leaf(2, 4), leaf(4)))
    assert gradcheck(lambda a, b: torch.einsum("bij,bkj->ik", a, b), (leaf(2, 3, 4), leaf(2, 5, 4)))
    assert gradcheck(torch.kron, (leaf(2, 2), leaf(2, 3))) and gradcheck(torch.inner, (leaf(2, 3), leaf(4, 3)))


def test_gradients_are_differentiable_again():
    a, b = leaf(2, 3), leaf(3, 2)
    g = torch.autograd.grad((a @ b).abs().square().sum(), a, create_graph=True)[0]
    assert np.allclose(g.detach().numpy(), 2 * (a.detach().numpy() @ b.detach().numpy()) @ b.detach().numpy().conj().T)
    assert gradcheck(lambda x, y: torch.autograd.grad((x @ y).abs().square().sum(), x, create_graph=True)[0], (a, b))


def test_meta_and_errors():
    a = torch.empty(2, 3, dtype=torch.complex64, device="meta")
    assert (a @ a.mT).shape == (2, 2) and (a @ a.mT).dtype is torch.complex64
    with pytest.raises(RuntimeError, match="same dtype"):
        torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.ones(2, 3, dtype=torch.complex64) @ torch.ones(2, 3, dtype=torch.complex64)
