"""`torch.autograd.Function`: what a user's forward and backward may do."""

from __future__ import annotations

import pytest

import strided as torch
from strided.autograd import Function
from strided.autograd.function import once_differentiable


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x * x * factor

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False)
        return g * 3 * x * x * ctx.factor, None


def test_value_gradient_and_node():
    x = leaf(1.0, 2.0)
    y = Cube.apply(x, 2.0)
    assert y.tolist() == [2, 16] and y.grad_fn.name() == "CubeBackward"
    assert len(y.grad_fn.next_functions) == 1 and y.grad_fn.factor == 2.0
    y.sum().backward()
    assert x.grad.tolist() == [6, 24]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()


def test_differentiable_twice():
    x = leaf(2.0)
    (g,) = torch.autograd.grad(Cube.apply(x, 1.0).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [12]


def test_no_graph_without_need():
    assert Cube.apply(torch.ones(1), 1.0).grad_fn is None
    with torch.no_grad():
        assert not Cube.apply(leaf(1.0), 1.0).requires_grad


class TwoOutputs(Function):
    @staticmethod
    def forward(x, y):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        product, total = output
        assert product.shape == total.shape

    @staticmethod
    def backward(ctx, a, b):
        x, y = ctx.saved_tensors
        return a * y + b, a * x + b


def test_setup_context_and_zeros_for_gradients_that_did_not_come():
    x, y = leaf(2.0), leaf(5.0)
    product, total = TwoOutputs.apply(x, y)
    assert total.output_nr == 1
    total.sum().backward()
    assert x.grad.tolist() == [1] and y.grad.tolist() == [1]


def test_unmaterialised_gradients():
    seen = []

    class Bare(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a is None, b is None))
            return b * 2

    x = leaf(1.0)
    Bare.apply(x)[1].sum().backward()
    assert seen == [(True, False)] and x.grad.tolist() == [2]


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_dirty_inputs():
    x = leaf(1.0, 3.0)
    h = x * 1
    result = Double.apply(h)
    assert result is h and h.grad_fn.name() == "DoubleBackward" and h.tolist() == [2, 6]
    h.sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation."):
        Double.apply(x)


def test_dirty_view():
    x = leaf(1.0, 3.0)
    h = x * 1
    Double.apply(h[0])
    h.sum().backward()
    assert h.tolist() == [2, 3] and x.grad.tolist() == [2, 1]


def test_dirty_view_that_is_not_the_first_argument():
    class AddInto(Function):
        @staticmethod
        def forward(ctx, source, scale, target):
            ctx.mark_dirty(target)
            ctx.scale = scale
            return target.add_(source * scale)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.scale, None, g

    x, w = leaf(1.0, 3.0), leaf(5.0)
    h = x * 2
    AddInto.apply(w, 10, h[1:])
    (h * h).sum().backward()
    assert h.tolist() == [2, 56] and x.grad.tolist() == [8, 224] and w.grad.tolist() == [1120]


def test_non_differentiable_outputs():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            mask = x * 0
            ctx.mark_non_differentiable(mask)
            return x * 2, mask

        @staticmethod
        def backward(ctx, g, _):
            return g * 2

    x = leaf(1.0)
    y, mask = Sorted.apply(x)
    assert y.requires_grad and not mask.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2]


def test_returning_an_input_gives_another_tensor():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [7]
    h = x * 1
    with pytest.raises(RuntimeError, match="Output 0 of Same is a view and is being modified inplace. This view was created inside a custom Function"):
        Same.apply(h).add_(1)
    y = Same.apply(h)
    h.add_(1)
    with pytest.raises(RuntimeError, match="Output 0 of Same is a view and its base or another view of its base has been modified inplace."):
        y.sum()


def test_any_name_may_be_hung_on_ctx():
    class Free(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.name, ctx.saved, ctx.seq, ctx.edges, ctx.needs, ctx.hooks = "a", "b", "c", "d", "e", "f"
            return x * 1

        @staticmethod
        def backward(ctx, g):
            assert (ctx.name, ctx.saved, ctx.seq, ctx.edges, ctx.needs, ctx.hooks) == tuple("abcdef")
            return g

    x = leaf(1.0)
    Free.apply(x).sum().backward()
    assert x.grad.tolist() == [1]


def test_gradient_of_a_number_is_refused():
    class Extra(Function):
        @staticmethod
        def forward(ctx, x, factor):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g, g

    with pytest.raises(RuntimeError, match="returned a gradient different than None at position 2, but the corresponding forward input was not a Variable"):
        Extra.apply(leaf(1.0), 2).sum().backward()


def test_saved_tensors_are_checked():
    class Saving(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf(0.0)
    y = Saving.apply(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 0 is of type int"):
        Saving.apply(x).grad_fn.ctx.save_for_backward(3)


def test_wrong_gradients_are_named():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return torch.ones(5)

    with pytest.raises(RuntimeError, match=r"Function WrongBackward returned an invalid gradient at index 0 - got \[5\] but expected shape compatible with \[2\]"):
        Wrong.apply(leaf(1.0, 2.0)).sum().backward()

    class Many(Wrong):
        @staticmethod
        def backward(ctx, g):
            return g, g

    with pytest.raises(RuntimeError, match=r"function ManyBackward returned an incorrect number of gradients \(expected 1, got 2\)"):
        Many.apply(leaf(1.0)).sum().backward()


def test_missing_methods():
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="You must implement the forward function for custom autograd.Function."):
        Nothing.apply(leaf(1.0))

    class Forward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        Forward.apply(leaf(1.0)).sum().backward()


def test_once_differentiable():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = leaf(3.0)
    Once.apply(x).sum().backward()
    assert x.grad.tolist() == [6]
    (g,) = torch.autograd.grad(Once.apply(x).sum(), x, grad_outputs=torch.ones((), requires_grad=True), create_graph=True)
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"):
        g.sum().backward()
