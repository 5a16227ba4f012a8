"""Special functions, gamma functions, orthogonal polynomials, counting and other operators of the long tail, against values computed with 30 digits or by NumPy."""
from __future__ import annotations

import math

import numpy as np
import pytest

import strided as st
from strided.autograd import gradcheck, gradgradcheck

NAN, INF = math.nan, math.inf

# name: (arguments, values computed with 30 digits)
VALUES = {
    "i0": ([-3.5, 0.25, 7.9, 20.0], [7.3782034322254795, 1.015686141223608, 389.406283282158, 43558282.559553534]),
    "i0e": ([-3.5, 0.25, 8.5, 500.0], [0.22280243801077917, 0.7910171621397194, 0.13900184305484758, 0.017845706500153168]),
    "i1": ([-3.5, 0.25, 7.9, 20.0], [-6.205834922258365, 0.12597910894546793, 363.8539440845084, 42454973.38512777]),
    "i1e": ([-3.5, 0.25, 8.5, 500.0], [-0.18739997660305, 0.09811262869736824, 0.13054935509459586, 0.017827851852898056]),
    "modified_bessel_i0": ([-1.0, 2.5], [1.2660658777520084, 3.289839144050123]),
    "modified_bessel_i1": ([-1.0, 2.5], [-0.565159103992485, 2.5167162452886984]),
    "modified_bessel_k0": ([0.01, 1.5, 2.5, 30.0], [4.721244730161095, 0.21380556264752573, 0.06234755320036619, 2.1324774964630563e-14]),
    "modified_bessel_k1": ([0.01, 1.5, 2.5, 30.0], [99.97389411829624, 0.2773878004568438, 0.07389081634774707, 2.1677320018915495e-14]),
    "scaled_modified_bessel_k0": ([0.01, 1.5, 2.5, 900.0], [4.768694028544462, 0.9582100532948965, 0.7595486903280996, 0.04177133915254879]),
    "scaled_modified_bessel_k1": ([0.01, 1.5, 2.5, 900.0], [100.97864845824004, 1.243165873552553, 0.900174423907878, 0.041794539013033705]),
    "bessel_j0": ([-3.5, 0.25, 7.9, 50.0], [-0.3801277399872634, 0.9844359292958527, 0.19436184484127825, 0.055812327669251816]),
    "bessel_j1": ([-3.5, 0.25, 7.9, 50.0], [-0.1373775273623272, 0.12402597732272692, 0.2191793999217512, -0.09751182812517514]),
    "bessel_y0": ([0.01, 2.5, 7.9, 50.0], [-3.005455637083646, 0.4980703596152319, 0.20652094814437577, -0.09806499547007708]),
    "bessel_y1": ([0.01, 2.5, 7.9, 50.0], [-63.67859628206065, 0.1459181379667858, -0.18172107728057313, -0.05679566856201477]),
    "spherical_bessel_j0": ([-3.5, 0.25, 12.0], [-0.10022377933989139, 0.9896158370180917, -0.04471440983336958]),
    "airy_ai": ([-30.0, -6.0, -2.5, 0.0, 1.5, 3.0, 20.0], [-0.08796818845684216, -0.3291451736298231, -0.11232506769296609, 0.3550280538878172, 0.07174949700810541, 0.006591139357460719, 1.6916728686705404e-27]),
    "erfcx": ([-5.0, -0.5, 0.25, 3.0, 10000.0], [144009798674.66104, 1.952360489182557, 0.7703465477309968, 0.17900115118138996, 5.641895807268084e-05]),
    "ndtr": ([-8.0, -0.5, 0.25, 3.0], [6.220960574271784e-16, 0.3085375387259869, 0.5987063256829237, 0.9986501019683699]),
    "log_ndtr": ([-40.0, -2.0, -0.5, 3.0], [-804.6084420137538, -3.783184333682032, -1.1759117615936185, -0.0013508099647481938]),
    "entr": ([0.25, 1.0, 3.0], [0.34657359027997264, 0.0, -3.295836866004329]),
    "digamma": ([-3.25, 0.1, 1.0, 30.0], [4.46627587235028, -10.423754940411076, -0.5772156649015329, 3.384438132685525]),
    "gammaln": ([-3.25, 0.1, 1.0, 30.0], [-0.6231534513209986, 2.252712651734206, 0.0, 71.25703896716801]),
    "ndtri": ([1e-200, 1e-12, 0.01, 0.3, 0.5, 0.9, 0.9999990463256836], [-30.20559417957964, -7.034483825301132, -2.326347874040841, -0.5244005127080408, 0.0, 1.2815515655446006, 4.7630010342678135]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_special_functions(name):
    arguments, expected = VALUES[name]
    function = getattr(st.special, name)
    np.testing.assert_allclose(function(st.tensor(arguments, dtype=st.float64)).numpy(), expected, rtol=3e-13, atol=1e-15)
    single = st.tensor(arguments)
    if name not in ("digamma", "gammaln", "ndtri"):  # steep or at the border of float32 there
        result = function(single)
        assert result.dtype is st.float32
        np.testing.assert_allclose(result.numpy(), expected, rtol=4e-6, atol=1e-12)
    assert function(single.bfloat16()).dtype is st.bfloat16 and function(st.tensor([1, 2])).dtype is st.float32
    assert function(st.empty(2, 3, device="meta")).shape == (2, 3)


def test_special_functions_at_the_ends():
    s = st.special
    x = st.tensor([0.0, INF, -INF, NAN, -1.0], dtype=st.float64)
    same = lambda got, *expected: np.testing.assert_allclose(got.numpy(), expected, rtol=1e-15)
    same(s.modified_bessel_k0(x), INF, 0.0, NAN, NAN, NAN)
    same(s.bessel_y0(x), -INF, 0.0, NAN, NAN, NAN)
    same(s.bessel_j0(x)[:4], 1.0, 0.0, 0.0, NAN)
    same(s.i0e(x)[:4], 1.0, 0.0, 0.0, NAN)
    same(s.erfcx(x)[:4], 1.0, 0.0, INF, NAN)
    same(s.ndtri(st.tensor([0.0, 1.0, 2.0, -1.0, NAN])), -INF, INF, NAN, NAN, NAN)
    same(s.entr(x), 0.0, -INF, -INF, NAN, -INF)
    same(s.log_ndtr(x)[1:4], 0.0, -INF, NAN)
    same(s.digamma(x), -INF, INF, NAN, NAN, NAN)
    same(st.lgamma(x), INF, INF, INF, NAN, INF)


@pytest.mark.parametrize("name", [n for n in VALUES if n not in ("entr", "ndtri", "airy_ai", "modified_bessel_i0", "modified_bessel_i1")])
def test_special_gradients(name):
    x = st.tensor([0.7, 1.9, 3.1, 9.5], dtype=st.float64, requires_grad=True)
    function = getattr(st.special, name)
    assert gradcheck(function, (x,)) and gradgradcheck(function, (x,))


def test_special_gradients_at_zero_and_in_narrow_domains():
    x = st.zeros(1, dtype=st.float64, requires_grad=True)
    for name, slope in (("i0", 0.0), ("i1", 0.5), ("i1e", 0.5), ("i0e", 0.0), ("bessel_j1", 0.5)):
        (g,) = st.autograd.grad(getattr(st.special, name)(x).sum(), x)
        assert g.item() == slope, name
    p = st.tensor([0.05, 0.4, 0.8], dtype=st.float64, requires_grad=True)
    for name in ("entr", "ndtri", "airy_ai"):
        assert gradcheck(getattr(st.special, name), (p,)) and gradgradcheck(getattr(st.special, name), (p,))
    y = st.tensor([[0.5], [2.0]], dtype=st.float64, requires_grad=True)
    assert gradcheck(st.special.xlog1py, (p, y)) and st.special.xlog1py(0.0, st.tensor([-1.0, NAN])).tolist()[0] == 0.0


# ---- gamma ------------------------------------------------------------------------------------------------------------------------

POLYGAMMA = {
    0: [3.714139120213528, -3.502524222200133, 0.42278433509846713, 3.676327374034843],
    1: [19.181879647671607, 12.245364546107732, 0.6449340668482264, 0.02531510384129103],
    2: [123.72136678366236, -75.27253658872604, -0.4041138063191886, -0.0006408202718352986],
    3: [1558.2209125348506, 743.1417646550498, 0.49393940226682914, 3.24414001515635e-05],
    5: [492230.21062287455, 164634.84609922304, 2.081167438133897, 2.4938943509996704e-07],
    10: [15220204740174.338, -2048468424178.0745, -1793.311606628713, -3.9130747998980846e-11],
}


@pytest.mark.parametrize("n", POLYGAMMA)
def test_polygamma(n):
    x = st.tensor([-1.25, 0.3, 2.0, 40.0], dtype=st.float64)
    np.testing.assert_allclose(st.polygamma(n, x).numpy(), POLYGAMMA[n], rtol=1e-12)
    np.testing.assert_allclose(x.float().polygamma(n).numpy(), POLYGAMMA[n], rtol=2e-6)
    assert x.clone().polygamma_(n).tolist() == st.special.polygamma(n, x).tolist()
    y = st.tensor([0.8, 2.5], dtype=st.float64, requires_grad=True)
    assert gradcheck(lambda t: st.polygamma(n, t), (y,)) and gradgradcheck(lambda t: st.polygamma(n, t), (y,))


def test_polygamma_of_poles_and_orders():
    assert st.polygamma(1, st.tensor([0.0, -2.0], dtype=st.float64)).tolist() == [INF, INF] and st.polygamma(2, st.tensor([0.0, -3.0])).tolist() == [-INF, -INF]
    with pytest.raises(RuntimeError, match="polygamma\\(n, x\\) does not support negative n."):
        st.polygamma(-1, st.ones(2))
    assert st.ones(2).digamma_().tolist() == pytest.approx([-0.5772156649] * 2)


def test_mvlgamma():
    x = st.tensor([2.5, 7.0], dtype=st.float64, requires_grad=True)
    assert st.mvlgamma(x, 3).tolist() == pytest.approx([1.8809954616117741, 18.74639984342339], rel=1e-14)
    assert gradcheck(lambda t: st.mvlgamma(t, 3), (x,))
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        st.mvlgamma(x, 0)


def test_zeta():
    zeta = st.special.zeta
    s, q = st.tensor([2.0, 3.5, 1.5, 20.0], dtype=st.float64), st.tensor([1.0, 0.25, 30.0, 2.5], dtype=st.float64)
    np.testing.assert_allclose(zeta(s, q).numpy(), [1.6449340668482264, 128.54695896428436, 0.3682166281870004, 1.1008345466854143e-08], rtol=1e-13)
    assert zeta(4, st.tensor([-2.5], dtype=st.float64)).item() == pytest.approx(32.4579793698646, rel=1e-13)
    np.testing.assert_equal(zeta(st.tensor([1.0, 0.5, 2.0, 2.5, 2.0]), st.tensor([1.0, 1.0, -3.0, -0.5, INF])).numpy(), [INF, NAN, INF, NAN, 0.0])
    q.requires_grad_(True)
    assert gradcheck(lambda q: zeta(s, q), (q,)) and gradgradcheck(lambda q: zeta(s, q), (q,))
    with pytest.raises(NotImplementedError, match="derivative for 'zeta' is not implemented"):
        zeta(s.clone().requires_grad_(True), 2.0).sum().backward()


def test_incomplete_gamma():
    a = st.tensor([0.5, 3, 3, 0.01, 200, 200, 1e4], dtype=st.float64)
    x = st.tensor([0.25, 2.5, 9, 4, 180, 230, 10050], dtype=st.float64)
    lower = [0.5204998778130465, 0.45618688411667047, 0.9937678048936227, 0.9999613913096468, 0.07485803498415958, 0.9796688566711638, 0.6923424407025656]
    upper = [0.4795001221869535, 0.5438131158833295, 0.006232195106377317, 3.860869035320241e-05, 0.9251419650158405, 0.020331143328836235, 0.30765755929743444]
    np.testing.assert_allclose(st.igamma(a, x).numpy(), lower, rtol=1e-13)
    np.testing.assert_allclose(st.special.gammaincc(a, x).numpy(), upper, rtol=1e-12)
    np.testing.assert_equal(st.igamma(st.tensor([0.0, 0.0, 2.0, 2.0, INF, -1.0]), st.tensor([1.0, 0.0, 0.0, INF, 2.0, 1.0])).numpy(), [1.0, NAN, 0.0, 1.0, 0.0, NAN])
    y = st.tensor([0.7, 3.0], dtype=st.float64, requires_grad=True)
    for function in (st.igamma, st.igammac):
        assert gradcheck(lambda y, f=function: f(st.tensor(1.5, dtype=st.float64), y), (y,)) and gradgradcheck(lambda y, f=function: f(st.tensor(1.5, dtype=st.float64), y), (y,))
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not implemented"):
        st.igamma(y, st.tensor(1.0, dtype=st.float64)).sum().backward()
    assert st.igamma(st.empty(2, 1, device="meta"), st.empty(3, device="meta")).shape == (2, 3)


# ---- orthogonal polynomials ------------------------------------------------------------------------------------------------------

POLYNOMIALS = {  # degree 3, written out; then p(1) of degree 12
    "chebyshev_polynomial_t": (lambda x: 4 * x**3 - 3 * x, 1), "chebyshev_polynomial_u": (lambda x: 8 * x**3 - 4 * x, 13),
    "chebyshev_polynomial_v": (lambda x: 8 * x**3 - 4 * x**2 - 4 * x + 1, 1), "chebyshev_polynomial_w": (lambda x: 8 * x**3 + 4 * x**2 - 4 * x - 1, 25),
    "hermite_polynomial_h": (lambda x: 8 * x**3 - 12 * x, None), "hermite_polynomial_he": (lambda x: x**3 - 3 * x, None),
    "laguerre_polynomial_l": (lambda x: (-(x**3) + 9 * x**2 - 18 * x + 6) / 6, None), "legendre_polynomial_p": (lambda x: (5 * x**3 - 3 * x) / 2, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    cubic, at_one = POLYNOMIALS[name]
    function = getattr(st.special, name)
    x = st.tensor([-2.0, -0.5, 0.0, 0.3, 1.0, 1.5], dtype=st.float64)
    np.testing.assert_allclose(function(x, 3).numpy(), cubic(x.numpy()), rtol=1e-13, atol=1e-14)
    assert function(x, 0).tolist() == [1.0] * 6 and function(x, -2).tolist() == [0.0] * 6
    mixed = function(st.tensor([0.3, 0.3, 0.3], dtype=st.float64), st.tensor([0, 3, 3]))
    np.testing.assert_allclose(mixed.numpy(), [1.0, cubic(0.3), cubic(0.3)], rtol=1e-13)
    if at_one is not None:
        assert function(st.ones(1, dtype=st.float64), 12).item() == at_one
    if "chebyshev" in name:
        shifted = getattr(st.special, "shifted_" + name)
        np.testing.assert_allclose(shifted(x, 3).numpy(), cubic(2 * x.numpy() - 1), rtol=1e-13, atol=1e-14)
        inside, n = st.linspace(-0.9, 0.9, 7, dtype=st.float64), 10  # through the angle: three neighbours still obey the recurrence
        step = 2 * inside * function(inside, n) - function(inside, n - 1)
        np.testing.assert_allclose(function(inside, n + 1).numpy(), step.numpy(), rtol=1e-12, atol=1e-13)
    assert function(st.tensor([2]), 1).dtype is st.float32
    with pytest.raises(NotImplementedError, match=f"the derivative for 'special_{name}' is not implemented"):
        function(st.ones(1, requires_grad=True), 2).backward()


# ---- counting ------------------------------------------------------------------------------------------------------------------------


def test_histc():
    x = st.tensor([1.0, 2.0, 1.0, 4.0, -7.0])
    assert st.histc(x, bins=4, min=0, max=3).tolist() == [0.0, 2.0, 1.0, 0.0]
    assert st.histc(x, bins=2).tolist() == [1.0, 4.0] and st.histc(st.ones(3), 2).tolist() == [0.0, 3.0]
    with pytest.raises(RuntimeError, match="bins must be > 0"):
        st.histc(x, 0)
    with pytest.raises(RuntimeError, match="range of .* is not finite"):
        st.histc(st.tensor([INF]), 3)
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        st.histc(st.tensor([1, 2]))


def test_histogram():
    x = st.tensor([1.0, 2.0, 1.0, 3.0])
    hist, edges = st.histogram(x, bins=4, range=(0.0, 4.0), weight=st.tensor([1.0, 2.0, 4.0, 8.0]))
    assert hist.tolist() == [0.0, 5.0, 2.0, 8.0] and edges.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    found = st.histogram(x, st.tensor([0.0, 1.5, 3.0]), density=True)
    assert found.hist.tolist() == pytest.approx([0.5 / 1.5, 0.5 / 1.5]) and found.bin_edges.tolist() == [0.0, 1.5, 3.0]
    points = st.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [2.0, 2.0]])
    hist, edges = st.histogramdd(points, bins=[3, 3])
    expected, bounds = np.histogramdd(points.numpy(), bins=[3, 3])
    assert hist.tolist() == expected.tolist() and [e.tolist() for e in edges] == [pytest.approx(b.tolist()) for b in bounds]


def test_membership_and_positions():
    x = st.tensor([[1, 2], [3, 4]])
    assert st.isin(x, st.tensor([2, 3])).tolist() == [[False, True], [True, False]] and st.isin(x, 4, invert=True).tolist() == [[True, True], [True, False]]
    assert st.isin(2, x).item() is True
    sparse = st.tensor([[1, 0], [0, 3]])
    assert sparse.nonzero_static(size=3).tolist() == [[0, 0], [1, 1], [-1, -1]] and sparse.nonzero_static(size=1, fill_value=7).tolist() == [[0, 0]]
    assert st.hash_tensor(st.tensor([1, 2, 4])).item() == 7 and st.hash_tensor(x, dim=1).tolist() == [3, 7]
    assert st.hash_tensor(st.tensor([1.5])).item() == int(np.array([1.5]).view("uint64")[0])
    assert st.gcd(st.tensor([12, -18]), st.tensor([18, 27])).tolist() == [6, 9] and st.lcm(st.tensor([4, 6]), st.tensor(10)).tolist() == [20, 30]
    with pytest.raises(NotImplementedError, match="gcd_cpu"):
        st.gcd(st.ones(2), st.ones(2))


# ---- parts of numbers ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [st.float32, st.float64, st.float16, st.bfloat16], ids=str)
def test_frexp_and_ldexp(dtype):
    x = st.tensor([0.0, 1.0, -3.0, 96.0, 2.0**-10], dtype=dtype)
    mantissa, exponent = st.frexp(x)
    assert mantissa.tolist() == [0.0, 0.5, -0.75, 0.75, 0.5] and exponent.tolist() == [0, 1, 2, 7, -9]
    assert mantissa.dtype is dtype and exponent.dtype is st.int32
    assert st.equal(st.ldexp(mantissa, exponent).to(dtype), x)
    with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
        st.frexp(st.tensor([1]))


def test_frexp_gradient():
    x = st.tensor([3.0, -0.2], dtype=st.float64, requires_grad=True)
    assert gradcheck(lambda x: st.frexp(x).mantissa, (x,))
    y = st.tensor([1.5, 2.5], dtype=st.float64, requires_grad=True)
    assert gradcheck(st.ldexp, (x, y)) and gradgradcheck(st.ldexp, (x, y))


@pytest.mark.parametrize("dtype", [st.float32, st.float64, st.bfloat16], ids=str)
def test_nextafter(dtype):
    eps = st.finfo(dtype).eps
    one = st.ones(3, dtype=dtype)
    assert st.nextafter(one, st.tensor([2.0, 0.0, 1.0], dtype=dtype)).tolist() == [1 + eps, 1 - eps / 2, 1.0]
    with pytest.raises(NotImplementedError, match="nextafter_cpu"):
        st.nextafter(st.tensor([1]), st.tensor([2]))


# ---- differences and sizes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient(edge_order):
    f = np.array([[1.0, 2.0, 6.0, 3.0], [3.0, 4.0, 5.0, 9.0], [8.0, 1.0, 0.0, 2.0]])
    ours = lambda **options: [g.numpy() for g in st.gradient(st.tensor(f), edge_order=edge_order, **options)]
    for got, expected in zip(ours(), np.gradient(f, edge_order=edge_order)):
        np.testing.assert_allclose(got, expected, atol=1e-13)
    for got, expected in zip(ours(spacing=[2.0, 0.5]), np.gradient(f, 2.0, 0.5, edge_order=edge_order)):
        np.testing.assert_allclose(got, expected, atol=1e-13)
    points = np.array([0.0, 1.0, 2.5, 3.0])
    (got,) = ours(spacing=[st.tensor(points)], dim=1)
    np.testing.assert_allclose(got, np.gradient(f, points, axis=1, edge_order=edge_order), atol=1e-13)
    x = st.tensor(f, requires_grad=True)
    assert gradcheck(lambda x: st.gradient(x, edge_order=edge_order), (x,))
    with pytest.raises(RuntimeError, match="at least edge_order\\+1"):
        st.gradient(st.ones(1))


def test_trapezoids():
    y, x = st.tensor([1.0, 5.0, 10.0]), st.tensor([1.0, 3.0, 6.0])
    assert st.trapezoid(y).item() == 10.5 and st.trapezoid(y, x).item() == 28.5 and st.trapezoid(y, dx=2).item() == 21.0
    assert st.cumulative_trapezoid(y).tolist() == [3.0, 10.5] and st.cumulative_trapezoid(y, x).tolist() == [6.0, 28.5]
    assert st.cumulative_trapezoid(y.expand(2, 3), dim=0).shape == (1, 3)


def test_pieces_and_padding():
    x = st.arange(6.0).requires_grad_(True)
    y = x * 1
    a, b = st.unsafe_chunk(y, 2)
    a.mul_(2)  # autograd takes the pieces for tensors of their own
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0, 1.0, 1.0, 1.0]
    assert [p.tolist() for p in st.unsafe_split(st.arange(3), 2)] == [[0, 1], [2]]
    assert st.constant_pad_nd(st.ones(1, 2), (1, 0, 0, 1), 7).tolist() == [[7.0, 1.0, 1.0], [7.0, 7.0, 7.0]]
    assert st.constant_pad_nd(st.arange(4), (-1, 1)).tolist() == [1, 2, 3, 0]
    z = st.ones(2, 3, requires_grad=True)
    assert z.sum_to_size(1, 3).tolist() == [[2.0, 2.0, 2.0]] and z.sum_to_size(3).shape == (3,) and z.sum_to_size(()).item() == 6.0
    with pytest.raises(RuntimeError, match="is not expandable to size"):
        z.sum_to_size(2)


@pytest.mark.parametrize("dtype, tolerance", [(st.float32, 1e-6), (st.float64, 1e-14)])
def test_gradients_of_sinc_beside_zero(dtype, tolerance):
    points = [0.0, 1e-38, 1e-12, 1e-7, 1e-3, 0.1, 0.159, 0.161, 0.3, 1.0]
    x = st.tensor(points, dtype=dtype, requires_grad=True)
    (g,) = st.autograd.grad(st.sinc(x).sum(), x, create_graph=True)
    (second,) = st.autograd.grad(g.sum(), x)
    for v, first, curve in zip(points, g.tolist(), second.tolist()):
        terms = [((-1) ** n * 2 * n / math.factorial(2 * n + 1), 2 * n - 1) for n in range(1, 25)]
        assert first == pytest.approx(math.pi * sum(c * (math.pi * v) ** k for c, k in terms), rel=tolerance, abs=1e-44)
        assert curve == pytest.approx(math.pi**2 * sum(c * k * (math.pi * v) ** (k - 1) for c, k in terms), rel=10 * tolerance)
