"""Random numbers: golden values of PyTorch's CPU generator (checksums of the bytes), states, sampling, layouts, errors. The comparison with PyTorch
itself is in torch_compare/."""
import pickle
import threading
import zlib

import pytest

import strided
from strided.arrays import array_of


def checksum(t):
    return zlib.crc32(array_of(t).tobytes())


# After manual_seed(n), the second draw of n = 16, 33, 625, 5000 elements in PyTorch 2.13.
SIZES = (16, 33, 625, 5000)
GOLDEN = {
    "rand": (lambda n: strided.rand(n), (3896739449, 4095915110, 2979175432, 1678571068)),
    "rand float64": (lambda n: strided.rand(n, dtype=strided.float64), (1046555703, 797515633, 1799711426, 2525557810)),
    "uniform": (lambda n: strided.empty(n).uniform_(-0.378, 0.378), (154544788, 89026390, 164344327, 4109392577)),
    "randn": (lambda n: strided.randn(n), (2267901972, 118420936, 1431874387, 1335849247)),
    "normal": (lambda n: strided.empty(n).normal_(0.3, 1.7), (2827319816, 3890002095, 3107075327, 67910414)),
    "randint": (lambda n: strided.randint(50000, (n,)), (3813902041, 3396857635, 1813704079, 3290711599)),
    "randint wide": (lambda n: strided.randint(-(2**40), 2**61, (n,)), (4057887855, 2832116284, 3834570724, 325391931)),
    "randperm": (lambda n: strided.randperm(n), (542032335, 2340430023, 3910956569, 1077821950)),
    "bernoulli": (lambda n: strided.empty(n).bernoulli_(0.3), (972012269, 2769558218, 685201401, 2986494252)),
    "transposed": (lambda n: strided.empty(n, 3).t().uniform_().t(), (2245894674, 3438245164, 3793372492, 3248019610)),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name):
    make, expected = GOLDEN[name]
    for n, value in zip(SIZES, expected):
        strided.manual_seed(n)
        make(n)
        assert checksum(make(n)) == value, n


def test_golden_large():
    strided.manual_seed(0)
    assert checksum(strided.randn(10000, 64)) == 911690886


def test_golden_values():
    """The fills that go through libm: equal up to its last place."""
    strided.manual_seed(0)
    assert strided.randn(5).tolist() == pytest.approx([1.5409960746765137, -0.293428897857666, -2.1787893772125244, 0.5684312582015991, -1.0845223665237427], rel=1e-6)
    assert strided.rand(3).tolist() == [0.022325754165649414, 0.16885894536972046, 0.2938884496688843]
    assert strided.empty(3).exponential_(2.0).tolist() == pytest.approx([0.08018693327903748, 0.25548893213272095, 0.14930346608161926], rel=1e-6)
    assert strided.empty(3).cauchy_().tolist() == pytest.approx([-0.627800703048706, 47.1311149597168, -0.24587838351726532], rel=1e-5)
    assert strided.empty(3).geometric_(0.3).tolist() == [4.0, 1.0, 3.0]
    assert strided.empty(3).log_normal_().tolist() == pytest.approx([0.16576389968395233, 6.238370418548584, 9.826858520507812], rel=1e-5)
    assert strided.randn(20, dtype=strided.float64).tolist()[:3] == pytest.approx([-1.039824457874215, -1.4507352170129912, 1.9643718563536774], rel=1e-14)


def test_seeding():
    g = strided.manual_seed(3)
    assert repr(g).startswith("<torch._C.Generator object at 0x") and g is strided.default_generator
    assert strided.initial_seed() == 3
    a = strided.rand(4).tolist()
    assert strided.manual_seed(2**32 + 3).initial_seed() == 2**32 + 3  # the engine takes the low 32 bits
    assert strided.rand(4).tolist() == a
    assert strided.manual_seed(-1).initial_seed() == 2**64 - 1
    assert strided.seed() == strided.initial_seed()
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        strided.manual_seed(2**64)


def test_generator_is_independent():
    own = strided.Generator().manual_seed(11)
    a = strided.rand(5, generator=own).tolist()
    strided.manual_seed(11)
    strided.randn(3, generator=own)
    assert strided.rand(5).tolist() == a
    assert str(own.device) == "cpu"
    with pytest.raises(TypeError, match="must be torch.Generator"):
        strided.rand(2, generator=3)


def test_state_round_trip():
    strided.manual_seed(5)
    fresh = strided.get_rng_state()
    strided.randn(3), strided.rand(700)  # leaves a spare normal and a position inside a block of words
    state = strided.get_rng_state()
    assert state.dtype is strided.uint8 and tuple(state.shape) == (5056,)
    assert zlib.crc32(array_of(state).tobytes()[:5016]) == 1433086470  # PyTorch's bytes
    expected = [strided.randn(1).tolist(), strided.rand(1000).tolist()]
    strided.set_rng_state(state)
    assert [strided.randn(1).tolist(), strided.rand(1000).tolist()] == expected
    strided.set_rng_state(fresh)
    assert strided.get_rng_state().tolist() == fresh.tolist()
    twin = pickle.loads(pickle.dumps(strided.default_generator))
    assert strided.rand(9, generator=twin).tolist() == strided.rand(9).tolist()
    clone = twin.clone_state()
    assert strided.rand(9, generator=twin).tolist() == strided.rand(9, generator=clone).tolist()


def test_bad_states():
    state = strided.get_rng_state()
    with pytest.raises(RuntimeError, match="Expected a CPUGeneratorImplState of size 5056 but found the input RNG state size to be 10"):
        strided.set_rng_state(state[:10])
    with pytest.raises(TypeError, match="RNG state must be a torch.ByteTensor"):
        strided.set_rng_state(strided.zeros(5056))
    for place, value in ((8, 0), (9, 255), (17, 200), (30, 1)):  # left 0, left too large, next too large, a word beyond 32 bits
        broken = state.clone()
        broken[place] = value
        if place == 8:
            broken[9] = 0
        with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
            strided.set_rng_state(broken)


def test_fork_rng():
    strided.manual_seed(1)
    with strided.random.fork_rng():
        inside = strided.rand(3).tolist()
        strided.manual_seed(99)
    assert strided.rand(3).tolist() == inside
    with strided.random.fork_rng(enabled=False):
        strided.manual_seed(1)
    assert strided.rand(3).tolist() == inside


def test_threads_share_a_generator():
    """Long fills let other threads run; the generator's lock keeps every draw whole."""
    strided.manual_seed(0)
    expected = sorted([checksum(strided.rand(200_000)) for _ in range(4)])
    strided.manual_seed(0)
    found = []
    threads = [threading.Thread(target=lambda: found.append(checksum(strided.rand(200_000)))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(found) == expected


def test_creation_arguments():
    assert tuple(strided.rand(2, 3).shape) == tuple(strided.rand((2, 3)).shape) == tuple(strided.rand(size=(2, 3)).shape) == (2, 3)
    assert strided.randn(3, requires_grad=True).requires_grad
    assert tuple(strided.rand(()).shape) == () and tuple(strided.rand(0, 4).shape) == (0, 4)
    meta = strided.randn(4, 5, device="meta")
    assert meta.is_meta and tuple(meta.shape) == (4, 5)
    out = strided.empty(4)
    strided.manual_seed(2)
    assert strided.rand(4, out=out) is out
    strided.manual_seed(2)
    assert strided.rand(4).tolist() == out.tolist()
    assert set(strided.randint(3, 5, (50,)).tolist()) == {3, 4}
    assert set(strided.randint(low=3, high=5, size=(50,)).tolist()) == {3, 4}
    assert sorted(strided.randperm(50).tolist()) == list(range(50))


def test_open_ranges():
    """A range of 2^64 has no modulus; the widest ones must not overflow."""
    x = strided.empty(1000, dtype=strided.int64).random_(-(2**63), None)
    assert x.min().item() < 0 < x.max().item()
    x = strided.randint(-(2**63), 2**63 - 1, (1000,))
    assert x.min().item() < 0 < x.max().item()
    assert strided.empty(1000, dtype=strided.int64).random_().min().item() >= 0
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        strided.empty(3).random_(2**70)


def test_complex():
    strided.manual_seed(0)
    x = array_of(strided.randn(10_000, dtype=strided.complex64))
    assert abs((abs(x) ** 2).mean() - 1) < 0.05  # the variance is shared by the two parts


def test_gaps_stay():
    """A fill of a window writes the window only."""
    x = strided.zeros(6, 6)
    x[1:4, ::2].normal_()
    a = array_of(x).copy()
    assert (a[1:4, ::2] != 0).all()
    a[1:4, ::2] = 0
    assert (a == 0).all()


def test_half_open():
    """What rounds up to the bound in 16 bits becomes the lower bound."""
    for dtype in (strided.float16, strided.bfloat16):
        x = strided.rand(100_000, dtype=dtype).float()
        assert x.max().item() < 1 and x.min().item() == 0


def test_in_place_bookkeeping():
    x = strided.zeros(5)
    before = x._version
    assert x.normal_() is x and x._version == before + 1
    w = strided.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        w.uniform_()
    y = w * 2
    y.uniform_()
    y.sum().backward()
    assert w.grad.tolist() == [0, 0, 0]


def test_multinomial():
    w = strided.tensor([0.0, 1.0, 0.0, 3.0])
    strided.manual_seed(0)
    counts = array_of(strided.multinomial(w, 4000, replacement=True)).tolist()
    assert set(counts) == {1, 3} and 0.7 < counts.count(3) / 4000 < 0.8
    assert sorted(strided.multinomial(w, 2).tolist()) == [1, 3]
    assert tuple(strided.multinomial(w.expand(5, 4), 2).shape) == (5, 2)


def test_dropout_mask():
    from strided.ops.random import dropout_mask

    strided.manual_seed(0)
    mask = dropout_mask(strided.empty(100, 100), 0.2)
    assert set(mask.flatten().tolist()) == {0.0, 1.25} and 0.78 < mask.count_nonzero().item() / 10_000 < 0.82
    assert set(dropout_mask(strided.empty(5), 1.0).tolist()) == {0.0}
    assert set(dropout_mask(strided.empty(5), 0.0).tolist()) == {1.0}
    assert tuple(dropout_mask(strided.empty(5, 3), 0.5, shape=(5, 1)).shape) == (5, 1)


ERRORS = {
    "random_ expects 'from' to be less than 'to', but got from=5 >= to=5": lambda: strided.randint(5, 5, (2,)),
    "to - 1 is out of bounds for unsigned char": lambda: strided.randint(0, 300, (2,), dtype=strided.uint8),
    "uniform_ expects to return a [from, to) range, but found from=2 > to=1": lambda: strided.empty(3).uniform_(2, 1),
    "normal expects std >= 0.0, but found std -1": lambda: strided.empty(3).normal_(0, -1),
    "bernoulli_ expects p to be in [0, 1], but got p=2": lambda: strided.empty(3).bernoulli_(2),
    "exponential_ expects lambda > 0.0, but found lambda=-1": lambda: strided.empty(3).exponential_(-1),
    "\"normal_kernel_cpu\" not implemented for 'Int'": lambda: strided.randn(3, dtype=strided.int32),
    "Trying to create tensor with negative dimension -1: [2, -1]": lambda: strided.rand(2, -1),
    "cannot sample n_sample > prob_dist.size(-1) samples without replacement": lambda: strided.multinomial(strided.ones(2), 3),
    "probability tensor contains either `inf`, `nan` or element < 0": lambda: strided.multinomial(strided.tensor([1.0, float("nan")]), 1),
    "invalid multinomial distribution (sum of probabilities <= 0)": lambda: strided.multinomial(strided.zeros(2), 1),
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location.": lambda: strided.empty(2, 1).expand(2, 3).normal_(),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message):
    with pytest.raises((RuntimeError, NotImplementedError)) as error:
        ERRORS[message]()
    assert str(error.value).startswith(message)


def test_single_numbers_by_their_empty_size():
    for make in (
        lambda **o: strided.randint(0, 9, (), **o), lambda **o: strided.randint(9, [], **o), lambda **o: strided.randint(high=9, size=(), **o), lambda **o: strided.rand((), **o), lambda **o: strided.randn(size=(), **o),
        lambda **o: strided.normal(0.0, 1.0, (), **o), lambda **o: strided.normal(0.0, 1.0, size=[], **o),
    ):  # fmt: skip
        first = make(generator=strided.Generator().manual_seed(3))
        assert first.shape == () and strided.equal(first, make(generator=strided.Generator().manual_seed(3)))
    assert strided.rand(size=(2, 3)).shape == (2, 3) and strided.randn(size=[2]).shape == (2,)
    with pytest.raises(TypeError, match='rand\\(\\) missing 1 required positional arguments: "size"'):
        strided.rand()
