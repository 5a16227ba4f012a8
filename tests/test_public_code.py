"""What public training code met: each test is a few lines of it, with its values."""
import pytest

import strided as torch


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_deviations_under_another_default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        x = torch.tensor([1, 2, 3, 6])
        assert x.float().var().item() == pytest.approx(14 / 3, rel=1e-6) and x.float().std(unbiased=False).item() == pytest.approx(3.5**0.5, rel=1e-6)
        assert x.bfloat16().var().item() == pytest.approx(14 / 3, rel=1e-2) and x.double().std().item() == pytest.approx((14 / 3) ** 0.5, rel=1e-12)
    finally:
        torch.set_default_dtype(before)


def lists():
    return [torch.tensor([1.0, 2.0]), torch.tensor([[4.0]])], [torch.tensor([3.0, 5.0]), torch.tensor([[2.0]])]


@pytest.mark.parametrize("name, arguments, expected", [
    ("sqrt", (), [[1, 2**0.5], [[2]]]), ("neg", (), [[-1, -2], [[-4]]]), ("add", (lists()[1],), [[4, 7], [[6]]]), ("add", (2.0,), [[3, 4], [[6]]]),
    ("sub", ([1.0, 3.0],), [[0, 1], [[1]]]), ("mul", (torch.tensor(2.0),), [[2, 4], [[8]]]), ("div", (lists()[1],), [[1 / 3, 0.4], [[2]]]),
    ("maximum", (2.5,), [[2.5, 2.5], [[4]]]), ("clamp_max", (lists()[1],), [[1, 2], [[2]]]), ("pow", (2,), [[1, 4], [[16]]]), ("lerp", (lists()[1], 0.5), [[2, 3.5], [[3]]]),
    ("addcmul", (lists()[1], lists()[1], 2), [[19, 52], [[12]]]), ("addcdiv", (lists()[1], lists()[0], [1.0, 4.0]), [[4, 4.5], [[6]]]),
])  # fmt: skip
def test_operators_over_lists(name, arguments, expected):
    a, _ = lists()
    results = getattr(torch, f"_foreach_{name}")(a, *arguments)
    assert isinstance(results, tuple) and all(r.flatten().tolist() == pytest.approx(torch.tensor(e).flatten().tolist()) for r, e in zip(results, expected))
    assert getattr(torch, f"_foreach_{name}_")(a, *arguments) is a and all(x.equal(r) for x, r in zip(a, results))


def test_lists_are_copied_measured_and_checked():
    a, b = lists()
    assert [n.item() for n in torch._foreach_norm(b)] == [pytest.approx(34**0.5), 2] and [m.item() for m in torch._foreach_max(b)] == [5, 2]
    assert [r.tolist() for r in torch._foreach_add(a, b, alpha=-1)] == [[-2, -3], [[2]]]
    torch._foreach_copy_(a, b)
    assert a[0].equal(b[0]) and a[0] is not b[0]
    x, y = torch.ones(2), torch.full((2,), 2.0)
    torch._foreach_add_([x, x, y], [y, y, x])  # one after the other where they meet
    assert x.tolist() == [5, 5] and y.tolist() == [7, 7]
    torch._foreach_zero_(a)
    assert a[1].tolist() == [[0]]
    for call, message in (
        (lambda: torch._foreach_add([], 1), "Tensor list must have at least one tensor"), (lambda: torch._foreach_mul(a, b[:1]), "must have the same number of tensors, got 2 and 1"),
        (lambda: torch._foreach_mul(a, [1.0]), "same number of elements as scalar list"), (lambda: torch._foreach_add_([a[0][:1]], [b[0]]), "doesn't match the broadcast shape"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            call()
    leaves = [x.clone().requires_grad_() for x in b]
    sum(t.sum() for t in torch._foreach_mul(leaves, b)).backward()
    assert [x.grad.tolist() for x in leaves] == [[3, 5], [[2]]]


RAMP = torch.arange(24.0).view(1, 1, 4, 6) ** 1.5


@pytest.mark.parametrize("mode, expected", [
    ("bilinear", [[14.3271, 20.3322, 27.3987], [56.6614, 67.0546, 78.0118]]), ("bicubic", [[10.2770, 16.3905, 23.8770], [59.0057, 70.7471, 83.1405]]),
    ("lanczos", [[8.5621, 14.6789, 22.3352], [59.6667, 71.9344, 84.8878]]),
])  # fmt: skip
def test_images_shrink_without_false_detail(mode, expected):
    x = RAMP.clone().requires_grad_()
    out = torch.nn.functional.interpolate(x, size=(2, 3), mode=mode, antialias=True)
    assert torch.allclose(out[0, 0], torch.tensor(expected), atol=1e-4)
    out.sum().backward()
    assert x.grad.sum().item() == pytest.approx(6, rel=1e-6)  # each result's weights add up to 1


def test_cubic_weights_of_16_bits_are_rounded_once():
    x = (torch.arange(12.0).view(1, 1, 3, 4) ** 2 / 7).bfloat16()  # PyTorch's results, bit for bit: it rounds the weights, but not the fractions they come from
    interpolate = torch.nn.functional.interpolate
    for align, expected in (
        (False, [[0.240234375, 0.361328125, 0.58984375, 0.91015625, 1.3671875, 1.9453125, 2.3125], [7.4375, 8.25, 9.625, 11.0625, 12.6875, 14.375, 15.4375]]),
        (True, [[0, 0.03125, 0.142578125, 0.302734375, 0.5703125, 0.96875, 1.2890625], [9.125, 10.0625, 11.5625, 12.875, 14.3125, 16, 17.25]]),
    ):
        assert interpolate(x, (2, 7), mode="bicubic", align_corners=align)[0, 0].tolist() == expected
    assert interpolate(x.half(), (2, 7), mode="bicubic")[0, 0, 1].tolist() == [7.4375, 8.2578125, 9.625, 11.0859375, 12.671875, 14.359375, 15.3984375]


def test_antialias_by_hand_and_its_limits():
    interpolate = torch.nn.functional.interpolate
    row = torch.tensor([0.0, 8, 8, 0]).view(1, 1, 1, 4)
    # the triangle of half width 2 around 1: weights 1.5, 1.5, 0.5 of 3.5 at places 0, 1, 2
    assert interpolate(row, size=(1, 2), mode="bilinear", antialias=True).flatten().tolist() == pytest.approx([8 * 2 / 3.5] * 2)
    assert torch.equal(interpolate(RAMP, size=(4, 6), mode="bicubic", antialias=True), RAMP)
    bytes_ = (RAMP * 2).to(torch.uint8)
    assert interpolate(bytes_, size=(2, 3), mode="bilinear", antialias=True).tolist() == [[[[29, 41, 55], [113, 134, 156]]]]
    assert interpolate(bytes_, size=(3, 4), mode="bicubic", antialias=True).tolist() == [[[[5, 10, 20, 28], [57, 71, 87, 102], [142, 159, 181, 200]]]]
    with pytest.raises(ValueError, match="Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor"):
        interpolate(RAMP, size=2, mode="nearest", antialias=True)
    with pytest.raises(ValueError, match="Lanczos mode requires antialias=True"):
        interpolate(RAMP, size=2, mode="lanczos")
    with pytest.raises(NotImplementedError, match="takes floats and uint8, got torch.int32"):
        interpolate(RAMP.int(), size=2, mode="bilinear", antialias=True)
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_results_of_a_function(n, reverse):
    from strided._higher_order_ops import associative_scan

    x = torch.arange(1.0, 2 * n + 1).view(2, n)
    expected = x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)
    assert associative_scan(lambda a, b: a + b, x, dim=1, reverse=reverse).equal(expected)
    # a linear recurrence: h[i] = a[i] * h[i - 1] + b[i], as state space models run it
    a, b = torch.full((n,), 0.5), torch.ones(n, requires_grad=True)
    _, h = associative_scan(lambda p, q: (p[0] * q[0], p[1] * q[0] + q[1]), (a, b), dim=0, reverse=reverse)
    steps = [2 - 0.5**i for i in range(n)]
    assert h.tolist() == (steps[::-1] if reverse else steps)
    h.sum().backward()
    assert b.grad.tolist() == (steps if reverse else steps[::-1])


def test_scans_are_checked():
    from strided._higher_order_ops import associative_scan

    for call in (lambda: associative_scan(max, [], 0), lambda: associative_scan(max, (torch.ones(2), torch.ones(3)), 0), lambda: associative_scan(max, torch.ones(2), 0, combine_mode="x"),
                 lambda: associative_scan(lambda a, b: a.sum(), torch.ones(4), 0)):  # fmt: skip
        with pytest.raises(ValueError):
            call()


def test_operators_of_ones_own_are_found_by_name():
    @torch.library.custom_op("tests_public::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert torch.ops.tests_public.twice(torch.ones(2)).tolist() == [2, 2] and torch.ops.tests_public.twice.default is twice
    with pytest.raises(AttributeError, match="module 'torch.ops.tests_public' has no attribute 'thrice'"):
        torch.ops.tests_public.thrice
    assert not hasattr(torch.ops, "tests_absent")


@pytest.mark.parametrize("transposed", [False, True])
def test_no_rows_times_a_matrix(transposed):
    """An expert that got no token."""
    weight = torch.randn(128, 64).mT if transposed else torch.randn(64, 128)
    for rows in (torch.zeros(0, 64), torch.zeros(3, 0, 64)):
        assert (rows @ weight).shape == (*rows.shape[:-1], 128)
    tokens = torch.zeros(0, 64, requires_grad=True)
    torch.nn.functional.linear(tokens, weight.mT).sum().backward()
    assert tokens.grad.shape == (0, 64)


def test_conditions_that_models_assert():
    torch._assert(True, "fine")
    with pytest.raises(AssertionError, match="Input height doesn't match"):
        torch._assert(torch.tensor(3) == 4, "Input height doesn't match")


def test_an_optimizer_that_stands_for_another():
    class Wrapped(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner  # as packages wrap optimisers: the base is never initialised

        def step(self, closure=None):
            return self.inner.step(closure)

    p = torch.ones(1, requires_grad=True)
    p.grad = torch.ones(1)
    seen = []
    inner = torch.optim.SGD([p], lr=0.5)
    inner.register_step_post_hook(lambda *args: seen.append(1))
    Wrapped(inner).step()
    assert p.item() == 0.5 and seen == [1]
