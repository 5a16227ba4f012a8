"""Rarer names of the core: functions made from functions, operators of one's own, other spellings. Values by hand."""
import pytest

import strided as torch


def test_derivatives_of_functions():
    x = torch.tensor([1.0, 2.0])
    cube = lambda t: (t**3).sum()
    assert torch.func.grad(cube)(x).tolist() == [3, 12] and not torch.func.grad(cube)(x).requires_grad
    assert torch.func.grad(lambda t: torch.func.grad(cube)(t).sum())(x).tolist() == [6, 12]
    assert torch.func.hessian(cube)(x).tolist() == [[6, 0], [0, 12]]
    assert torch.func.jacrev(lambda t: t * t)(x).tolist() == [[2, 0], [0, 4]]
    out, along = torch.func.jvp(cube, (x,), (torch.tensor([1.0, 1.0]),))
    assert (out.item(), along.item()) == (9, 15)
    out, back = torch.func.vjp(lambda t: t * t, x)
    assert out.tolist() == [1, 4] and back(torch.ones(2))[0].tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="Expected f.* to return a scalar Tensor, got tensor with 1 dims"):
        torch.func.grad(lambda t: t * 2)(x)
    with pytest.raises(RuntimeError, match="expected f.* to return only tensors, got unsupported type <class 'int'>"):
        torch.func.jacrev(lambda t: 3)(x)
    for in_dims, given, told in (
        (0, 1, "the input is of type <class 'int'>. We cannot vmap over non-Tensor arguments"),
        (2, x, "a Tensor of dimensionality 1 so expected in_dim to satisfy -1 <= in_dim < 1."),
        (0.5, x, "in_dim must be either an integer dimension or None."),
    ):
        with pytest.raises(ValueError, match=f"in_dims={in_dims}, .*Got in_dim={in_dims} .*{told}"):
            torch.func.vmap(cube, in_dims=in_dims)(given)


def test_jacobians_of_more_outputs_than_arguments_have_elements():
    """jacfwd goes by columns there, and is differentiable again."""
    x, y = torch.tensor([1.0, 2.0]), torch.tensor(3.0)
    f = lambda x, y: {"a": torch.outer(x, x) * y, "b": (torch.ones(2), x * x)}
    for jacobian in (torch.func.jacfwd, torch.func.jacrev):
        (by_x, by_y), (ones, squares) = jacobian(f, (0, 1))(x, y)["a"], jacobian(f)(x, y)["b"]
        assert by_x.tolist() == [[[6, 0], [6, 3]], [[6, 3], [0, 12]]] and by_y.tolist() == [[1, 2], [2, 4]]
        assert ones.tolist() == [[0, 0], [0, 0]] and squares.tolist() == [[2, 0], [0, 4]] and not squares.requires_grad
    cubes = lambda x: torch.stack([x[0] ** 3, x[0] * x[1], x[1] ** 2])
    expected = [[[6, 0], [0, 0]], [[0, 1], [1, 0]], [[0, 0], [0, 2]]]
    assert torch.func.hessian(cubes)(x).tolist() == torch.func.jacfwd(torch.func.jacfwd(cubes))(x).tolist() == expected
    assert torch.vmap(torch.func.jacfwd(cubes))(torch.stack([x, 2 * x])).tolist() == [[[3, 0], [2, 1], [0, 4]], [[12, 0], [4, 2], [0, 8]]]
    rows, aux = torch.func.jacfwd(lambda x: (cubes(x), x.sum()), has_aux=True)(x)
    assert rows.tolist() == [[3, 0], [2, 1], [0, 4]] and aux.item() == 3

    class Cube(torch.autograd.Function):  # its derivative is no part of a graph: columns would be zeros
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return torch.from_numpy(g.detach().numpy() * 3 * ctx.saved_tensors[0].detach().numpy() ** 2)

    assert torch.func.jacfwd(lambda x: Cube.apply(x).repeat(2))(x).tolist() == [[3, 0], [0, 12], [3, 0], [0, 12]]


def test_vmap():
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.vmap(torch.sum)(x).tolist() == [3, 12] and torch.vmap(torch.sum, in_dims=1)(x).tolist() == [3, 5, 7]
    assert torch.vmap(lambda a, b: a * b, in_dims=(0, None), out_dims=1)(x, torch.tensor(2.0)).shape == (3, 2)
    assert torch.vmap(torch.func.grad(lambda r: (r * r).sum()))(x).tolist() == (2 * x).tolist()
    with pytest.raises(ValueError, match="Expected all tensors to have the same size in the mapped dimension"):
        torch.vmap(torch.add)(x, torch.zeros(3))


def test_vmap_over_a_pull_back():
    """The function was run outside of the map: its samples are the seeds only."""
    x = torch.tensor([1.0, 2.0])
    _, back = torch.func.vjp(lambda t, s: (t * t * s, t.sum()), x, torch.tensor(3.0))
    rows, scale = torch.vmap(back)((torch.eye(2), torch.tensor([0.0, 10.0])))
    assert rows.tolist() == [[6, 0], [10, 22]] and scale.tolist() == [1, 4]
    again = torch.vmap(torch.vmap(lambda seed: back((seed, torch.tensor(0.0)))[0]))(torch.eye(2).reshape(2, 1, 2))
    assert again.tolist() == [[[6, 0]], [[0, 12]]]
    shared, _ = torch.vmap(back, in_dims=((0, None),))((torch.eye(2), torch.tensor(1.0)))
    assert shared.tolist() == [[7, 1], [1, 13]]


def test_autograd_grad_in_a_map():
    x, unused = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.ones(1, requires_grad=True)
    y = x**2
    assert torch.vmap(lambda v: torch.autograd.grad(y, x, v)[0])(torch.eye(3)).tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    z = y.sum()
    rows, none = torch.vmap(lambda v: torch.autograd.grad([y * 1, z], [x, unused], [v, None], materialize_grads=True))(torch.eye(3))
    assert rows.tolist() == [[4, 4, 6], [2, 8, 6], [2, 4, 12]] and none.tolist() == [[0], [0], [0]]


def test_functional_call_swaps_and_restores():
    layer = torch.nn.Linear(2, 1)
    weight = layer.weight
    out = torch.func.functional_call(layer, {"weight": torch.ones(1, 2), "bias": torch.ones(1)}, torch.tensor([1.0, 2.0]))
    assert out.tolist() == [4] and layer.weight is weight
    with pytest.raises(RuntimeError, match="Unexpected key"):
        torch.func.functional_call(layer, {"nothing": weight}, torch.ones(2), strict=True)


def test_operator_of_ones_own():
    @torch.library.custom_op("test::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    x = torch.ones(2, requires_grad=True)
    assert double(x).tolist() == [2, 2] and not double(x).requires_grad
    torch.library.register_autograd("test::double", lambda ctx, g: g * 2)
    torch.library.register_fake("test::double", lambda x: torch.empty_like(x))
    double(x).sum().backward()
    assert x.grad.tolist() == [2, 2] and double(torch.empty(3, device="meta")).shape == (3,)
    with pytest.raises(ValueError, match="namespace::name"):
        torch.library.custom_op("double", lambda x: x, mutates_args=())


def test_other_spellings():
    x = torch.arange(6.0).reshape(2, 3)
    assert [t.item() for t in torch.unravel_index(torch.tensor(23), (2, 3, 4))] == [1, 2, 3]
    assert torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride() == (12, 1, 3) and x.t().dim_order() == (1, 0)
    assert torch.norm_except_dim(x, 2, 0).shape == (2, 1) and torch.spmm(x, x.t()).tolist() == torch.mm(x, x.t()).tolist()
    assert x.is_set_to(x[:]) and not x.is_set_to(x[1:]) and x.to_dense() is x and x.name is None and x._cdata != x.clone()._cdata
    y = x.clone()
    assert y.apply_(lambda v: v + 1) is y and y.map_(x, lambda a, b: a * b)[0].tolist() == [0, 2, 6]
    y = torch.arange(6.0)
    assert y.as_strided_((2, 2), (3, 1), 1).tolist() == [[1, 2], [4, 5]] and torch.is_signed(y) and torch.get_device(y) == -1
    with pytest.raises(TypeError, match="Can't call apply_"):
        torch.ones(1, requires_grad=True).apply_(abs)
    assert torch.ByteTensor(torch.ByteStorage.from_buffer(b"ab")).tolist() == [97, 98] and isinstance(x.storage(), torch.FloatStorage)
    assert torch._utils._rebuild_tensor_v2(x.storage(), 1, (2,), (3,), True, None).tolist() == [1, 4]
    for kind, check in ((RuntimeError, torch._check), (IndexError, torch._check_index), (ValueError, torch._check_value)):
        with pytest.raises(kind, match="why"):
            check(False, lambda: "why")
    with torch.autograd.profiler.record_function("part") as part:
        assert part.name == "part"
    assert not hasattr(torch, "dropout_mask") and not hasattr(torch, "place_back")


def test_distributions():
    d = torch.distributions
    normal = d.Normal(torch.tensor([0.0, 1.0]), 2.0)
    assert normal.log_prob(torch.tensor([0.0, 1.0])).tolist() == pytest.approx([-1.612085713764618] * 2)
    assert d.Categorical(logits=torch.zeros(4)).entropy().item() == pytest.approx(1.3862943611198906)
    torch.manual_seed(0)
    drawn = d.Categorical(torch.tensor([0.0, 1.0, 0.0])).sample((5,))
    assert drawn.tolist() == [1] * 5 and d.Bernoulli(torch.tensor(1.0)).sample((3,)).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="to satisfy the constraint GreaterThan"):
        d.Normal(0.0, -1.0)
    with pytest.raises(NotImplementedError, match="No KL"):
        d.kl_divergence(normal, d.Bernoulli(0.5))


def test_settings_of_another_generator():
    config = torch._inductor.config
    config.coordinate_descent_tuning = config.triton.unique_kernel_names = True
    assert config.coordinate_descent_tuning is True
    config.coordinate_descent_tuning = False
    for holder in (config, config.triton):
        with pytest.raises(AttributeError):
            holder.no_such_setting = 1
    with pytest.raises(AttributeError, match="torch._inductor.compile_fx|has no attribute 'compile_fx'"):
        torch._inductor.compile_fx


def test_a_process_whose_pipe_closes_before_its_exit_code_is_there():
    """Waiting again for such a process would never end."""
    import os

    from strided.multiprocessing import ProcessContext, ProcessExitedException

    class Ending:
        pid, ended = 1, False

        def __init__(self):
            self.sentinel, other = os.pipe()
            os.close(other)

        @property
        def exitcode(self):
            return 3 if self.ended else None

        def join(self, timeout=None):
            self.ended = True

        def is_alive(self):
            return not self.ended

    class Nothing:
        def empty(self):
            return True

    process = Ending()
    with pytest.raises(ProcessExitedException, match="process 0 terminated with exit code 3"):
        ProcessContext([process], [Nothing()]).join()
    os.close(process.sentinel)
