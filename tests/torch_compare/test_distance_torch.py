"""cdist against PyTorch: values, gradients and second derivatives, by differences and by products, with batches and zero distances."""
import pytest

import strided

torch = pytest.importorskip("torch")

SHAPES = {
    "few": ((5, 3), (7, 3)),
    "25 rows": ((25, 4), (25, 4)),
    "26 rows": ((26, 4), (3, 4)),
    "many": ((40, 9), (61, 9)),
    "batches": ((2, 1, 30, 5), (3, 28, 5)),
    "no rows": ((0, 3), (30, 3)),
    "no columns": ((27, 0), (30, 0)),
}
MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def both(shapes, dtype):
    torch.manual_seed(3)
    theirs = [torch.randn(*shape, dtype=dtype).requires_grad_() for shape in shapes]
    ours = [strided.tensor(x.detach().numpy(), requires_grad=True) for x in theirs]
    return theirs, ours


def near(ours, theirs, tolerance):
    assert tuple(ours.shape) == tuple(theirs.shape)
    torch.testing.assert_close(torch.from_numpy(ours.detach().numpy()), theirs.detach(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-4), ("float64", 1e-10)])
def test_values_and_gradients(shapes, mode, dtype, tolerance):
    theirs, ours = both(shapes, getattr(torch, dtype))
    d, e = torch.cdist(*theirs, compute_mode=mode), strided.cdist(*ours, compute_mode=mode)
    near(e, d, tolerance)
    torch.manual_seed(4)
    g = torch.randn(d.shape, dtype=d.dtype)
    for a, b in zip(torch.autograd.grad(d, theirs, g), strided.autograd.grad(e, ours, strided.tensor(g.numpy()))):
        near(b, a, tolerance)


def test_second_derivatives():
    theirs, ours = both(((28, 4), (27, 4)), torch.float64)
    weights = torch.linspace(-1, 1, 28 * 27, dtype=torch.float64).view(28, 27)

    def second(library, inputs, weights):
        first = library.autograd.grad((library.cdist(*inputs) * weights).sum(), inputs, create_graph=True)
        return library.autograd.grad(sum((g * g * g).sum() for g in first), inputs)

    for a, b in zip(second(torch, theirs, weights), second(strided, ours, strided.tensor(weights.numpy()))):
        near(b, a, 1e-9)


def test_errors_are_the_same():
    for rows, options in (([[1.0]], {"compute_mode": "other"}), ([[1.0]], {"compute_mode": None}), ([1.0], {}), ([[1]], {}), ([[1.0]], {"p": -1.0})):
        with pytest.raises((RuntimeError, ValueError)) as theirs:
            torch.cdist(torch.tensor(rows), torch.tensor(rows), **options)
        with pytest.raises(theirs.type) as ours:
            strided.cdist(strided.tensor(rows), strided.tensor(rows), **options)
        assert str(ours.value).startswith(str(theirs.value))
