"""What becomes one kernel: maps of a product's result inside the product, copies inside their neighbours. Values and gradients are the eager ones, and the report says what was saved."""
import random

import numpy as np
import pytest

import strided as torch
from strided.kernels import epilogue, matmul, native
from strided.kernels import expr as E
from strided.layout import Layout
from strided.lens import compiled as lens

F = torch.nn.functional
ROWS, IN, OUT = 640, 208, 272  # so many rows and columns that products are packed ones


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def tensors(tracked=False):
    torch.manual_seed(0)
    shapes = {"x": (2, ROWS // 2, IN), "w": (OUT, IN), "b": (OUT,), "v": (IN, OUT), "c": (IN,)}
    return {name: torch.randn(shape).requires_grad_(tracked) for name, shape in shapes.items()}


CHAINS = {  # (the function, steps of its forward pass, kernels that are left)
    "bias and relu": (lambda x, w, b, v, c: F.linear(x, w, b).relu(), 2, 1),
    "gelu": (lambda x, w, b, v, c: F.gelu(F.linear(x, w)), 2, 1),
    "x * sigmoid(x)": (lambda x, w, b, v, c: (lambda h: h * h.sigmoid())(F.linear(x, w, b)), 3, 1),
    "a gated pair": (lambda x, w, b, v, c: F.silu(F.linear(x, w)) * F.linear(x, w, b), 4, 2),
    "residual": (lambda x, w, b, v, c: x + F.linear(F.gelu(F.linear(x, w, b)), v, c), 4, 2),
    "scale": (lambda x, w, b, v, c: (x.view(-1, IN) @ w.t()) * 0.125 + 1, 3, 1),
    "cast": (lambda x, w, b, v, c: F.linear(x, w).bfloat16().float(), 3, 1),
    "written in place": (lambda x, w, b, v, c: F.relu(F.linear(x, w, b), inplace=True), 2, 1),
    "needed twice": (lambda x, w, b, v, c: (lambda h: (h.relu(), h))(F.linear(x, w, b)), 2, 1),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CHAINS)
def test_values_are_the_eager_ones(name, threads):
    torch.set_num_threads(threads)
    function, steps, kernels = CHAINS[name]
    given = tensors()
    run = torch.compile(function)
    for _ in range(3):
        found, expected = run(**given), function(**given)
        for a, b in zip(found, expected) if isinstance(found, tuple) else ((found, expected),):
            assert torch.equal(a, b)
        given["x"] = given["x"] + 1
    (kind,) = run.report()["kinds"]
    assert (kind["forward"]["steps"], kind["forward"]["kernels"]) == (steps, kernels)


@pytest.mark.parametrize("name", [n for n in CHAINS if n != "needed twice"])
def test_gradients_are_the_eager_ones(name):
    function = CHAINS[name][0]
    ours, eager = tensors(True), tensors(True)
    run = torch.compile(function)
    for _ in range(3):
        for f, given in ((run, ours), (function, eager)):
            for t in given.values():
                t.grad = None
            out = f(**given)
            out.backward(torch.linspace(-1, 1, out.numel()).view(out.shape).to(out.dtype))
        for key, t in eager.items():
            if t.grad is None:
                assert ours[key].grad is None
            else:
                torch.testing.assert_close(ours[key].grad, t.grad, rtol=2e-5, atol=1e-6 * t.grad.abs().max().item())


@pytest.mark.parametrize("act", [F.gelu, lambda h: F.gelu(h, approximate="tanh"), F.silu, F.mish, F.softplus, torch.sin])
def test_derivatives_are_computed_where_the_function_is(act):
    """The forward kernel keeps f'(h) in place of h, which nothing else wants: the gradient's epilogue is one multiplication."""

    def function(x, w, b, v, c):
        return act(F.linear(x, w, b)) @ v.t()

    exact = tensors(True)
    exact = {key: t.detach().double().requires_grad_() for key, t in exact.items()}
    function(**exact).square().mean().backward()
    given = tensors(True)
    run = torch.compile(function)
    for _ in range(3):
        for t in given.values():
            t.grad = None
        run(**given).square().mean().backward()
        for key, t in exact.items():
            if t.grad is not None:
                torch.testing.assert_close(given[key].grad.double(), t.grad, rtol=1e-5, atol=2e-5 * t.grad.abs().max().item())
    (kind,) = run.report()["kinds"]
    assert kind["forward"]["kernels"] == 2 and kind["forward"]["steps"] == 3


def test_derivatives_stay_where_more_than_a_product_with_them_is_wanted():
    def function(x, w, b, v, c):
        h = F.linear(x, w, b)
        return F.gelu(h) + h.sin()  # two gradients read h

    ours, eager = tensors(True), tensors(True)
    run = torch.compile(function)
    for _ in range(3):
        for f, given in ((run, ours), (function, eager)):
            for t in given.values():
                t.grad = None
            f(**given).square().mean().backward()
        for key in ("x", "w", "b"):
            torch.testing.assert_close(ours[key].grad, eager[key].grad, rtol=2e-5, atol=1e-6)


def test_backward_of_an_activation_is_part_of_the_gradients_product():
    given = tensors(True)
    run = torch.compile(CHAINS["residual"][0])
    for _ in range(2):
        run(**given).sum().backward()
    back = run.report()["kinds"][0]["backward"]
    assert any(group["saved"] == 2 * 4 * ROWS * OUT for group in back["fused"])  # the gradient of gelu's result, float32, is nowhere in memory


def test_what_is_not_a_block_is_computed_as_ever():
    x, w, v = torch.randn(64, 48), torch.randn(48, 48), torch.randn(3, 64, 48)
    for function in (lambda: (x @ w) + x.t().contiguous().t(), lambda: (x @ w).t() * 2, lambda: (v @ w)[1] * 3, lambda: torch.softmax(x @ w, -1) + x, lambda: (x @ w).cumsum(0) * 2):
        run = torch.compile(function)
        for _ in range(2):
            torch.testing.assert_close(run(), function(), rtol=1e-6, atol=1e-6)


def test_a_result_that_is_also_an_operand_is_not_written_while_it_is_read():
    torch.manual_seed(1)
    w, start = torch.randn(200, 200) / 14, torch.randn(200, 200)

    def step(h):
        return h.add_(F.linear(h, w).relu())

    run, ours, eager = torch.compile(step), start.clone(), start.clone()
    for _ in range(3):
        run(ours)
        step(eager)
        assert torch.equal(ours, eager)


def test_the_report_names_the_lines_and_the_traffic():
    given = tensors()

    def layer(x, w, b, v, c):
        h = F.linear(x, w, b)
        return F.gelu(h)

    run = torch.compile(layer)
    for _ in range(2):
        run(**given)
    (group,) = run.report()["kinds"][0]["forward"]["fused"]
    assert group["steps"] == 2 and group["saved"] == 2 * 4 * ROWS * OUT
    text = lens.text([run.report()])
    assert "2 steps in 1 kernel" in text and "h = F.linear(x, w, b)" in text and "return F.gelu(h)" in text


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("m, n, k", [(300, 700, 40), (257, 33, 20), (1000, 300, 600), (150, 2100, 8)])
def test_an_epilogue_sees_every_block_once(m, n, k, threads):
    torch.set_num_threads(threads)
    rng = np.random.default_rng(0)
    a, b, added, bias = (rng.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n), (m, n), (n,)))
    sums, out = np.zeros((m, n), np.float32), np.zeros((m, n), np.float32)
    whole, row = Layout.contiguous((m, n)), Layout.contiguous((n,)).expand((m, n))
    f32 = torch.float32
    made = epilogue.build_epilogue((E.maximum(E.param(0) + E.param(1), E.constant(0.0)) * E.param(3) + E.param(2),), [(f32, whole)], [(f32, whole), (f32, row), (f32, whole), ("param", "f64")])
    product = matmul.build_matmul((f32, whole), (f32, Layout.contiguous((m, k))), (f32, Layout.contiguous((k, n))), result_bytes=sums.nbytes)
    assert epilogue.rows_of(product) == (m, n, sums.nbytes)
    native.launch(epilogue.with_epilogue(product, made), *(array.ctypes.data for array in (sums, a, b, out, sums, bias, added)), 0.5)
    wide = a.astype(np.float64) @ b
    np.testing.assert_allclose(sums, wide, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(out, np.maximum(sums + bias, 0) * np.float32(0.5) + added, rtol=1e-6, atol=1e-6)


def test_an_epilogue_needs_rows():
    f32, whole = torch.float32, Layout.contiguous((8, 40))
    assert not epilogue.fits([(f32, whole)], [(f32, Layout.of((8, 40), (1, 8)))])
    assert not epilogue.fits([(f32, whole)], [("index", 0)]) and not epilogue.fits([(f32, Layout.contiguous((1, 40)))], [])
    with pytest.raises(NotImplementedError, match="rows"):
        epilogue.build_epilogue((E.param(0),), [(f32, whole)], [(f32, Layout.of((8, 40), (1, 8)))])
    batches = Layout.contiguous((3, 32, 32))
    assert epilogue.rows_of(matmul.build_matmul((f32, batches), (f32, batches), (f32, batches), result_bytes=3 * 4096)) is None


# ---- copies, and chains that public models are made of ----------------------------------------------------------------------------

HEADS, LENGTH, WIDTH = 4, 24, 32
COS, SIN = (torch.linspace(-1, 1, LENGTH * WIDTH // 2).view(LENGTH, WIDTH // 2) * n for n in (1, 2))


def halves(x):
    a, b = x[..., : WIDTH // 2], x[..., WIDTH // 2 :]
    return torch.cat((a * COS - b * SIN, b * COS + a * SIN), -1)


def pairs(x):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * COS - b * SIN, b * COS + a * SIN), -1).flatten(-2)


def turned(x):
    a, b = x.chunk(2, -1)
    return x * torch.cat((COS, COS), -1) + torch.cat((-b, a), -1) * torch.cat((SIN, SIN), -1)


def heads(x):
    return (x.transpose(1, 2) * 2).contiguous() + 1


def written_into_a_window(x):
    out = torch.zeros(2, HEADS, LENGTH, 2 * WIDTH)
    out[..., WIDTH:] = x.exp()
    return out * 2


def rms(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * COS.view(-1)[:WIDTH]


@pytest.mark.parametrize("function, kernels", [(halves, 2), (pairs, 2), (heads, 1), (rms, 1), (turned, 7), (written_into_a_window, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_copies_are_part_of_their_neighbours(function, kernels, dtype):
    x = torch.linspace(-3, 3, 2 * HEADS * LENGTH * WIDTH).view(2, HEADS, LENGTH, WIDTH).to(dtype)
    run = torch.compile(function)
    for _ in range(3):
        torch.testing.assert_close(run(x), function(x), rtol=1e-2 if dtype is torch.bfloat16 else 1e-6, atol=1e-6)
        x = x + 1
    (kind,) = run.report()["kinds"]
    if dtype is torch.float32:
        assert kind["forward"]["kernels"] == kernels
    x = x[:1].clone().requires_grad_()
    y = x.detach().clone().requires_grad_()
    run = torch.compile(function)
    if function is not written_into_a_window:
        for _ in range(3):
            x.grad = y.grad = None
            run(x).square().sum().backward()
            function(y).square().sum().backward()
            torch.testing.assert_close(x.grad, y.grad, rtol=2e-2 if dtype is torch.bfloat16 else 1e-5, atol=1e-2 if dtype is torch.bfloat16 else 1e-5)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("joined", ["split", "chunks turned", "one heads' dimension", "apart"])
def test_gradients_of_heads_are_written_beside_each_other(joined, threads, B=2, T=24, H=4, D=16):
    """The attention's gradients go straight into the linear layer's, and no copies are left; what was never beside each other stays as it is."""
    torch.set_num_threads(threads)
    C = H * D

    def attention(x, w):
        qkv = F.linear(x, w)  # [B, T, 3C]
        if joined == "split":
            q, k, v = (t.view(B, T, H, D).transpose(1, 2) for t in qkv.split(C, dim=2))
        elif joined == "chunks turned":
            v, q, k = (t.reshape(B, T, H, D).transpose(1, 2) for t in qkv.chunk(3, dim=-1))
        elif joined == "one heads' dimension":
            q, k, v = qkv.view(B, T, 3, H, D).permute(2, 0, 3, 1, 4)
        else:
            q, k, v = (F.linear(x, w[n * C : (n + 1) * C]).view(B, T, H, D).transpose(1, 2) for n in range(3))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, C)

    torch.manual_seed(0)
    ours = torch.randn(B, T, C, requires_grad=True), torch.randn(3 * C, C, requires_grad=True)
    eager = tuple(t.detach().clone().requires_grad_() for t in ours)
    run, g = torch.compile(attention), torch.randn(B, T, C)
    for _ in range(3):
        for f, given in ((run, ours), (attention, eager)):
            for t in given:
                t.grad = None
            f(*given).backward(g)
        for a, b in zip(ours, eager):
            assert torch.equal(a.grad, b.grad)
    (kind,) = run.report()["kinds"]
    if joined in ("split", "chunks turned"):
        assert kind["backward"]["kernels"] <= 3  # the attention's gradients, and two products


def test_copies_of_what_is_no_number():
    mask, index = torch.tensor([[True, False] * 8] * 4), torch.arange(64).view(4, 16)
    for function in (lambda: torch.cat((mask[:, 8:], ~mask[:, :8]), 1), lambda: torch.cat((index[:, 8:] * 3, index[:, :8]), 1) + 1, lambda: index.view(torch.float64).clone().view(torch.int64) + 1):
        run = torch.compile(function)
        for _ in range(2):
            assert torch.equal(run(), function())


# ---- chance chains ------------------------------------------------------------------------------------------------------------------

KINDS = "linear linear linear product relu gelu gate sum product_of scale relu_ add_ norm join turn bias cast softmax swap shape".split()


def chance_chain(seed, m, n):
    """A function of x [m, n], two weights [n, n], a bias [n] and y [m, n]: some operators, each of the last result or an earlier one."""
    draw = random.Random(seed)
    steps = [(draw.choice(KINDS), draw.randrange(100), draw.randrange(100)) for _ in range(draw.randint(3, 9))]

    def operation(kind, a, c, j, w, v, b):
        return {
            "linear": lambda: F.linear(a, w, b if j % 2 else None),
            "product": lambda: a @ v,
            "relu": lambda: a.relu(),
            "gelu": lambda: F.gelu(a),
            "gate": lambda: a * a.sigmoid(),
            "sum": lambda: a + c,
            "product_of": lambda: a * c * 0.1,
            "scale": lambda: a * 0.5 + 1,
            "relu_": lambda: (a * 1.5).relu_(),
            "add_": lambda: F.linear(a, w).add_(c),
            "norm": lambda: F.layer_norm(a, (n,)),
            "join": lambda: torch.cat((a[:, : n // 2] * 2, c[:, n // 2 :]), 1),
            "turn": lambda: (a.view(m, 4, n // 4).transpose(0, 1) * 2).contiguous().transpose(0, 1).reshape(m, n),
            "bias": lambda: a + b,
            "cast": lambda: (a.bfloat16() * 2).float(),
            "softmax": lambda: torch.softmax(a, -1) + c,
            "swap": lambda: torch.cat((a[:, n // 2 :], -a[:, : n // 2]), 1) * 0.5,
            "shape": lambda: (a.view(m // 2, 2, n) + c.view(m // 2, 2, n)).view(m, n),
        }[kind]()

    def run(x, w, v, b, y):
        made = [x, y]
        for kind, i, j in steps:
            made.append(operation(kind, made[-1] if i % 3 else made[i % len(made)], made[j % len(made)], j, w, v, b))
        return made[-1], made[len(made) // 2] * 1.0

    return run


@pytest.mark.parametrize("seed", [35, 140, 171, 233, 242, 285, 363, 369, 384, 409])  # a product moved past readers of its own result in these once
def test_chance_chains(seed, m=144, n=160):
    torch.set_num_threads(1 + seed % 2)
    function = chance_chain(seed, m, n)
    run = torch.compile(function)
    torch.manual_seed(seed)
    shapes = (m, n), (n, n), (n, n), (n,), (m, n)
    given = [torch.randn(shape) / (12 if shape == (n, n) else 1) for shape in shapes]
    for _ in range(3):
        ours, eager = ([t.clone().requires_grad_() for t in given] for _ in range(2))
        found, expected = run(*ours), function(*eager)
        for a, b in zip(found, expected):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 + 1e-4 * float(b.detach().abs().max()))
        for results in (found, expected):
            sum((t * 1e-2).sum() for t in results if t.requires_grad).backward()
        for a, b in zip(ours, eager):
            assert (a.grad is None) is (b.grad is None)
            if b.grad is not None:
                torch.testing.assert_close(a.grad, b.grad, rtol=2e-3, atol=1e-6 + 2e-3 * float(b.grad.abs().max()))
