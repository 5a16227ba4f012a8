"""torch.fft, stft, istft and windows beside PyTorch's: values, dtypes, strides, gradients and second gradients."""
import itertools
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.signal import windows as torch_windows

import strided as st

NORMS = [None, "ortho", "forward"]


def both(shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        a = a + 1j * rng.standard_normal(shape)
    a = a.astype(dtype)
    return torch.from_numpy(a.copy()), st.from_numpy(a.copy())


def agree(want, have, tolerance=1e-5, strides=True):
    assert str(want.dtype) == str(have.dtype) and tuple(want.shape) == tuple(have.shape)
    if strides:
        assert want.stride() == have.stride()
    a, b = want.detach().resolve_conj().numpy(), have.detach().numpy()
    if a.size:
        assert np.abs(a - b).max() <= tolerance * max(1.0, np.abs(a).max())


ONE = [((6,), {}), ((4, 6), {"n": 9}), ((4, 6), {"n": 3, "dim": 0}), ((2, 3, 4), {"dim": 1}), ((5,), {"n": 5}), ((1,), {"n": 2})]
SEVERAL = [((4, 6), {}), ((2, 3, 4), {"s": (5, 2)}), ((2, 3, 4), {"s": (4, -1), "dim": (0, 2)}), ((3, 4, 5), {"dim": (2, 0)})]
CALLS = [(name, *case) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for case in ONE]
CALLS += [(name + "n", *case) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for case in SEVERAL]
CALLS += [(name + "2", (2, 3, 4), {}) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")]


def kinds(name):
    if name.startswith(("rfft", "ihfft")):
        return ["float32", "float64", "int64"]
    return ["float32", "float64", "complex64", "complex128", "int64"]


@pytest.mark.parametrize("name, shape, arguments", CALLS)
@pytest.mark.parametrize("norm", NORMS)
def test_values(name, shape, arguments, norm):
    for dtype in kinds(name):
        x, y = both(shape, dtype)
        try:
            want = getattr(torch.fft, name)(x, norm=norm, **arguments)
        except RuntimeError:
            with pytest.raises(RuntimeError):
                getattr(st.fft, name)(y, norm=norm, **arguments)
            continue
        agree(want, getattr(st.fft, name)(y, norm=norm, **arguments), 1e-12 if dtype in ("float64", "complex128") else 2e-6)


def total(r, weights, lib):
    """A real number of a result that treats every part of it otherwise."""
    if r.dtype.is_complex:
        r = lib.view_as_real(r.resolve_conj() if lib is torch else r)
    return (r * weights).sum()


def gradients(lib, call, leaves, weights):
    out = call(lib, *leaves)
    loss = total(out, weights, lib)
    first = lib.autograd.grad(loss * loss, leaves, create_graph=True)
    again = 0
    for g in first:
        parts = lib.view_as_real(g.resolve_conj() if lib is torch else g) if g.dtype.is_complex else g
        again = again + (parts * parts).sum()
    return [*first, *lib.autograd.grad(again, leaves)]


def check_gradients(call, shapes, dtypes):
    tensors = [both(shape, dtype, seed) for seed, (shape, dtype) in enumerate(zip(shapes, dtypes))]
    mine, theirs = [y.requires_grad_() for _, y in tensors], [x.requires_grad_() for x, _ in tensors]
    out = call(torch, *theirs)
    weights = both((*out.shape, 2) if out.dtype.is_complex else out.shape, "float64", 9)
    for want, have in zip(gradients(torch, call, theirs, weights[0]), gradients(st, call, mine, weights[1])):
        agree(want, have, 1e-11, strides=False)


@pytest.mark.parametrize("name, shape, arguments", CALLS)
def test_gradients(name, shape, arguments):
    for dtype in ("float64", "complex128"):
        if dtype in kinds(name):
            try:
                getattr(torch.fft, name)(both(shape, dtype)[0], **arguments)
            except RuntimeError:
                continue
            check_gradients(lambda lib, x: getattr(lib.fft, name)(x, norm="ortho", **arguments), [shape], [dtype])


def test_nodes():
    names = lambda t: t.grad_fn.name() if hasattr(t.grad_fn, "name") else type(t.grad_fn).__name__
    for lib in (torch, st):
        x = lib.ones(4, 6, requires_grad=True)
        assert names(lib.fft.rfft(x)) == "FftR2CBackward0" and names(lib.fft.fftn(x)) == "FftC2CBackward0" and names(lib.fft.irfft(x)) == "FftC2RBackward0"


def test_frequencies():
    for n, d in itertools.product([0, 1, 2, 5, 8], [1.0, 0.5, 3]):
        for name in ("fftfreq", "rfftfreq"):
            if n or name == "fftfreq":
                for dtype in ("float32", "float64"):
                    want, have = (getattr(lib.fft, name)(n, d, dtype=getattr(lib, dtype)) for lib in (torch, st))
                    assert want.tolist() == have.tolist() and str(want.dtype) == str(have.dtype)


# ---- short-time transforms ----------------------------------------------------------------------------------------------------------

STFT = [
    {"n_fft": 8}, {"n_fft": 8, "hop_length": 3, "win_length": 6}, {"n_fft": 9, "center": False}, {"n_fft": 8, "pad_mode": "constant", "normalized": True}, {"n_fft": 8, "pad_mode": "replicate"},
    {"n_fft": 8, "pad_mode": "circular", "onesided": False}, {"n_fft": 8, "hop_length": 11}, {"n_fft": 8, "win_length": 4, "hop_length": 3, "center": False, "align_to_window": True},
]  # fmt: skip


def windowed(lib, arguments, dtype):
    n = arguments.get("win_length", arguments["n_fft"])
    return lib.hann_window(n, dtype=getattr(lib, dtype))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arguments", STFT)
@pytest.mark.parametrize("shape", [(20,), (2, 31)])
def test_stft(arguments, shape):
    for dtype, window in itertools.product(("float32", "float64", "complex64"), (True, False)):
        x, y = both(shape, dtype)
        kw = lambda lib: {**arguments, "return_complex": True, **({"window": windowed(lib, arguments, "float64" if dtype == "float64" else "float32")} if window else {})}
        agree(torch.stft(x, **kw(torch)), st.stft(y, **kw(st)), 2e-6)
    x, y = both(shape)
    agree(torch.stft(x, return_complex=False, **arguments), st.stft(y, return_complex=False, **arguments), strides=False)


ISTFT = [{"n_fft": 8}, {"n_fft": 8, "hop_length": 2, "win_length": 6}, {"n_fft": 8, "normalized": True}, {"n_fft": 8, "onesided": False}, {"n_fft": 7, "hop_length": 3}]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arguments", ISTFT)
@pytest.mark.parametrize("length", [None, 15, 40])
def test_istft(arguments, length):
    spectrum = lambda lib, x: lib.stft(x, window=windowed(lib, arguments, "float64"), return_complex=True, **arguments)
    inverse = lambda lib, s: lib.istft(s, window=windowed(lib, arguments, "float64"), length=length, **arguments)
    x, y = both((2, 30), "float64")
    try:
        want = inverse(torch, spectrum(torch, x))
    except RuntimeError as error:  # samples under no window
        with pytest.raises(RuntimeError) as raised:
            inverse(st, spectrum(st, y))
        assert str(raised.value).splitlines()[0] == str(error).splitlines()[0].removesuffix("[ CPUBoolType{} ]")
        return
    agree(want, inverse(st, spectrum(st, y)), 1e-12, strides=False)
    if length is None:
        assert st.allclose(inverse(st, spectrum(st, y)), y[:, : inverse(st, spectrum(st, y)).shape[1]])


@pytest.mark.filterwarnings("ignore")
def test_short_time_gradients():
    check_gradients(lambda lib, x, w: lib.stft(x, 8, 3, window=w, return_complex=True), [(2, 20), (8,)], ["float64", "float64"])
    check_gradients(lambda lib, x, w: lib.stft(x, 8, 3, 6, window=w, center=False), [(20,), (6,)], ["complex128", "float64"])
    check_gradients(lambda lib, x: lib.istft(x, 8, window=lib.hann_window(8, dtype=lib.float64)), [(2, 5, 9)], ["complex128"])
    check_gradients(lambda lib, x: lib.istft(x, 8, 3, 6, return_complex=True, onesided=False), [(8, 9)], ["complex128"])


# ---- windows ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_older_windows(name):
    for n, periodic, (dtype, tolerance) in itertools.product([0, 1, 2, 3, 8, 33, 512], [True, False], [("float32", 5e-7), ("float64", 3e-15), ("float16", 0), ("bfloat16", 0)]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = getattr(torch, name + "_window")(n, periodic, dtype=getattr(torch, dtype))
        have = getattr(st, name + "_window")(n, periodic, dtype=getattr(st, dtype))
        assert str(want.dtype) == str(have.dtype)
        assert np.allclose(want.double().numpy(), have.double().numpy(), 0, tolerance)


@pytest.mark.parametrize("name", torch_windows.__all__)
def test_windows(name):
    more = {"a": [0.3, 0.4, 0.2]} if name == "general_cosine" else {}
    for n, sym, (dtype, tolerance) in itertools.product([0, 1, 2, 3, 8, 33, 512], [True, False], [("float32", 1e-6), ("float64", 3e-15)]):
        want = getattr(torch_windows, name)(n, sym=sym, dtype=getattr(torch, dtype), **more)
        have = getattr(st.signal.windows, name)(n, sym=sym, dtype=getattr(st, dtype), **more)
        assert str(want.dtype) == str(have.dtype) and np.allclose(want.numpy(), have.numpy(), 0, tolerance)
