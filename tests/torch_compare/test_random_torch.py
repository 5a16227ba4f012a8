"""Random numbers against PyTorch's CPU generator, bit for bit: every fill, dtype and layout, and the generator's exported state after it."""
import numpy
import pytest

torch = pytest.importorskip("torch")
import strided
from strided.arrays import array_of

SIZES = (1, 2, 3, 15, 16, 17, 31, 33, 100, 623, 624, 625, 1000, 2049, 4099, 100003)
FLOATS = ("float32", "float64", "float16", "bfloat16")


def bits(t):
    """The bytes of a tensor of either package, in logical order."""
    if isinstance(t, torch.Tensor):
        t = t.contiguous()
        return t.view(torch.uint8 if t.dtype.itemsize == 1 else {2: torch.int16, 4: torch.int32, 8: torch.int64}[t.dtype.itemsize]).numpy().tobytes()
    return numpy.ascontiguousarray(array_of(t)).tobytes()


def same(make, seed=7, draws=2):
    """make(package) gives the same bits on both, `draws` times in a row, and leaves the same state."""
    torch.manual_seed(seed), strided.manual_seed(seed)
    for k in range(draws):
        a, b = make(torch), make(strided)
        assert tuple(a.shape) == tuple(b.shape) and str(a.dtype) == str(b.dtype)
        assert a.stride() == b.stride()
        assert bits(a) == bits(b), f"draw {k}"
    assert bits(torch.get_rng_state()) == bits(strided.get_rng_state())


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(n, dtype):
    same(lambda t: t.rand(n, dtype=getattr(t, dtype)))
    same(lambda t: t.randn(n, dtype=getattr(t, dtype)))
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).uniform_(-0.378, 0.378))
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).normal_(0.3, 1.7))
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).bernoulli_(0.3))
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).exponential_(2.5))
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).geometric_(0.3))
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).cauchy_(0.31, 1.7))
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).log_normal_(0.31, 0.7))
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).random_())
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).random_(3, 90))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ("int64", "int32", "int16", "int8", "uint8"))
def test_integers(n, dtype):
    same(lambda t: t.randint(0, 100, (n,), dtype=getattr(t, dtype)))
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).random_())
    same(lambda t: t.empty(n, dtype=getattr(t, dtype)).bernoulli_(0.7))
    if n < 100:
        same(lambda t: t.randperm(n, dtype=getattr(t, dtype)))


@pytest.mark.parametrize("n", SIZES)
def test_wide_integers(n):
    same(lambda t: t.randint(50000, (n,)))
    same(lambda t: t.randint(-5, 2**28 - 5, (n,)))
    same(lambda t: t.randint(-(2**40), 2**61, (n,)))
    same(lambda t: t.randint(-(2**63), 2**63 - 1, (n,)))
    same(lambda t: t.randint(0, 2**28 - 1, (n,)))
    same(lambda t: t.randint(0, 1, (n,)))
    same(lambda t: t.randperm(n))
    same(lambda t: t.empty(n, dtype=t.bool).random_())
    same(lambda t: t.empty(n, dtype=t.bool).bernoulli_(0.7))


def test_open_ranges():
    same(lambda t: t.empty(50, dtype=t.int64).random_(-(2**63), None))
    same(lambda t: t.empty(50, dtype=t.int64).random_(-3, None))
    same(lambda t: t.empty(50, dtype=t.float16).random_(5, None))
    same(lambda t: t.empty(50).random_(5, None))
    same(lambda t: t.empty(50, dtype=t.bool).random_(0, 2))


@pytest.mark.parametrize("n", (3, 20))
@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
def test_complex(n, dtype):
    torch.manual_seed(4), strided.manual_seed(4)
    for make in (lambda t: t.rand(n, dtype=getattr(t, dtype)), lambda t: t.randn(n, dtype=getattr(t, dtype))):
        assert make(torch).numpy().tobytes() == array_of(make(strided)).tobytes()


FILLS = {
    "normal": lambda x: x.normal_(0.1, 2.0), "uniform": lambda x: x.uniform_(-1, 1), "bernoulli": lambda x: x.bernoulli_(0.5),
    "exponential": lambda x: x.exponential_(), "random": lambda x: x.random_(0, 9),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("name", FILLS)
def test_layouts(dtype, name):
    """Fills go through memory in its own order, whatever the order of the dimensions."""
    fill = FILLS[name]
    same(lambda t: fill(t.empty(40, 7, dtype=getattr(t, dtype)).t()))
    same(lambda t: fill(t.empty(4, 5, 6, dtype=getattr(t, dtype)).permute(2, 0, 1)))
    same(lambda t: fill(t.zeros(9, 8, dtype=getattr(t, dtype))[:, 1:7]))
    same(lambda t: fill(t.zeros(9, 8, dtype=getattr(t, dtype))[1:7]))
    same(lambda t: fill(t.zeros(9, 8, dtype=getattr(t, dtype)).t()[2:, ::3]))
    same(lambda t: fill(t.empty((), dtype=getattr(t, dtype))))
    same(lambda t: fill(t.empty((0, 3), dtype=getattr(t, dtype))))


@pytest.mark.parametrize("name", ("rand_like", "randn_like"))
def test_like(name):
    same(lambda t: getattr(t, name)(t.empty(5, 9)))
    same(lambda t: getattr(t, name)(t.empty(5, 9).t()))
    same(lambda t: getattr(t, name)(t.empty(5, 9).t(), dtype=t.float64))
    same(lambda t: t.randint_like(t.empty(5, 9).t(), 3, 17))
    same(lambda t: t.randint_like(t.empty(5, 9, dtype=t.int32), 17))


@pytest.mark.parametrize("n", (5, 40))
def test_normal_with_tensors(n):
    same(lambda t: t.normal(t.arange(float(n)), t.arange(float(n)) * 0.3))
    same(lambda t: t.normal(2.5, t.arange(float(n)) * 0.3))
    same(lambda t: t.normal(t.arange(float(n)), 0.7))
    same(lambda t: t.normal(1.5, 0.7, (n, 2)))


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_bernoulli_with_tensors(dtype):
    same(lambda t: t.bernoulli(t.arange(30, dtype=getattr(t, dtype)) / 30))
    same(lambda t: t.empty(4, 30).bernoulli_(t.arange(30, dtype=getattr(t, dtype)) / 30))
    same(lambda t: t.bernoulli(t.empty(5, 6), 0.3))


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_multinomial(dtype):
    def weights(t):
        return t.tensor([0.1, 3.0, 0.0, 2.0, 0.5, 0.2], dtype=getattr(t, dtype))

    same(lambda t: t.multinomial(weights(t), 1))
    same(lambda t: t.multinomial(weights(t), 4))
    same(lambda t: t.multinomial(weights(t), 40, replacement=True))
    same(lambda t: t.multinomial(weights(t).expand(5, 6), 40, replacement=True))
    same(lambda t: t.multinomial(weights(t).expand(5, 6).contiguous(), 3))
    same(lambda t: t.multinomial(weights(t).expand(5, 6).contiguous(), 1))


@pytest.mark.parametrize("p", (0.1, 0.5, 0.9, 0.0))
@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout_mask(dtype, p):
    def mask(t):
        x = t.ones(33, 5, dtype=getattr(t, dtype)) * 3
        return torch.empty_like(x).bernoulli_(1 - p).div_(1 - p) if t is torch else strided.ops.random.dropout_mask(x, p)

    same(mask)


def test_states_travel():
    """A state taken in one package continues in the other, the spare normal included."""
    torch.manual_seed(3)
    torch.randn(3), torch.rand(700)
    state = strided.tensor(torch.get_rng_state().tolist(), dtype=strided.uint8)
    strided.set_rng_state(state)
    assert bits(torch.randn(5)) == bits(strided.randn(5)) and bits(torch.rand(1000)) == bits(strided.rand(1000))
    torch.set_rng_state(torch.tensor(strided.get_rng_state().tolist(), dtype=torch.uint8))
    assert bits(torch.randn(50)) == bits(strided.randn(50))


@pytest.mark.parametrize("seed", (0, 1, 2**32, 2**63, 2**64 - 1, -1, -(2**63)))
def test_seeds(seed):
    same(lambda t: t.rand(9), seed)
    assert torch.manual_seed(seed).initial_seed() == strided.manual_seed(seed).initial_seed()


CALLS = {
    "range": lambda t: t.randint(5, 5, (2,)), "bounds": lambda t: t.randint(0, 300, (2,), dtype=t.uint8), "uniform": lambda t: t.empty(3).uniform_(2, 1),
    "std": lambda t: t.empty(3).normal_(0, -1), "p": lambda t: t.empty(3).bernoulli_(2), "lambda": lambda t: t.empty(3).exponential_(-1),
    "geometric": lambda t: t.empty(3).geometric_(0), "sigma": lambda t: t.empty(3).cauchy_(0, -1), "log_normal": lambda t: t.empty(3).log_normal_(0, -1),
    "int normal": lambda t: t.randn(3, dtype=t.int32), "int uniform": lambda t: t.rand(3, dtype=t.int32), "negative": lambda t: t.rand(2, -1),
    "weights": lambda t: t.multinomial(t.tensor([1.0, -1]), 1), "sum": lambda t: t.multinomial(t.tensor([0.0, 0]), 1), "many": lambda t: t.multinomial(t.tensor([1.0, 1]), 3),
    "none": lambda t: t.multinomial(t.tensor([1.0, 1]), 0), "int weights": lambda t: t.multinomial(t.tensor([1, 1]), 1), "nan": lambda t: t.multinomial(t.tensor([1.0, float("nan")]), 1),
    "3d": lambda t: t.multinomial(t.ones(2, 2, 2), 1), "perm": lambda t: t.randperm(-1), "perm dtype": lambda t: t.randperm(300, dtype=t.uint8),
    "probability": lambda t: t.bernoulli(t.tensor([2.0])), "overlap": lambda t: t.empty(2, 1).expand(2, 3).normal_(), "leaf": lambda t: t.zeros(3, requires_grad=True).normal_(),
    "state size": lambda t: t.set_rng_state(t.zeros(10, dtype=t.uint8)), "state dtype": lambda t: t.set_rng_state(t.zeros(5056)), "seed": lambda t: t.manual_seed(2**64),
    "from": lambda t: t.empty(3).uniform_(-1e39, 0), "half to": lambda t: t.empty(3, dtype=t.float16).uniform_(0, 1e6), "width": lambda t: t.empty(3).random_(2**70),
    "below": lambda t: t.empty(3, dtype=t.uint8).random_(-1, 5), "bool": lambda t: t.randint(0, 5, (3,), dtype=t.bool), "half": lambda t: t.empty(3, dtype=t.float16).random_(0, 70000),
    "uint64": lambda t: t.empty(3, dtype=t.uint64).random_(), "p shape": lambda t: t.empty(3).bernoulli_(t.tensor([0.5, 0.5])), "half perm": lambda t: t.randperm(3000, dtype=t.float16),
    "size": lambda t: t.rand(2.5), "like": lambda t: t.rand_like(t.ones(3, dtype=t.int64)),
    "int exponential": lambda t: t.empty(3, dtype=t.int32).exponential_(), "int cauchy": lambda t: t.empty(3, dtype=t.int32).cauchy_(),
    "int log_normal": lambda t: t.empty(3, dtype=t.int32).log_normal_(), "normal std": lambda t: t.normal(0.0, t.tensor([1.0, -1])), "random": lambda t: t.empty(3, dtype=t.int8).random_(0, 300),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_errors(name):
    with pytest.raises(Exception) as theirs:
        CALLS[name](torch)
    with pytest.raises(Exception) as ours:
        CALLS[name](strided)
    assert type(ours.value) is type(theirs.value)
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]
