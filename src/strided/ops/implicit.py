"""How a drawn number moves with its distribution's parameters at a fixed probability: dx/da = −(∂F/∂a) / F′(x), for gamma numbers and Dirichlet points.

The cumulative distribution F and its derivative are summed as series in double precision, by NumPy, for all elements at once; where a gamma's concentration is so large
that these get long, the expansion of the quantile around the normal one is differentiated instead. PyTorch's values agree to their four or five digits.
Sources: Figurnov, Mohamed and Mnih 2018, "Implicit reparameterization gradients"; the series are DLMF 8.7.1, 8.11.1 and 8.17.8, the expansion is Cornish and Fisher's.
"""
from __future__ import annotations

from typing import Any

from ..dtypes import float64, resolve_device
from ..tensor import Tensor
from . import host
from .table import TABLE, operator

CPU = resolve_device(None)
LARGE = 2000.0  # concentrations from here on use the expansion: its error is below 1e-9


def _digamma(a: Any) -> Any:
    """ψ of a NumPy array of positive numbers."""
    return host.array(TABLE["digamma"].call(host.tensor(a, float64, CPU)))


def _series(y: Any, bottom: Any, top: Any = None, bottom_moves: bool = True) -> tuple:
    """Σ c_n and its derivative, c_n = y^n · [top (top+1) … (top+n−1)] / (bottom (bottom+1) … (bottom+n)), where top and (if told) bottom move at 1."""
    import numpy as np

    term = 1 / bottom
    log_slope = -1 / bottom if bottom_moves else np.zeros_like(bottom)
    total, total_slope = term.copy(), term * log_slope
    n = 0
    while True:
        n += 1
        term *= y / (bottom + n)
        if top is not None:
            term *= top + (n - 1)
            log_slope += 1 / (top + (n - 1))
        if bottom_moves:
            log_slope -= 1 / (bottom + n)
        total += term
        total_slope += term * log_slope
        if n % 16 == 0 and not np.any((np.abs(term) > 1e-17 * np.abs(total)) | (np.abs(term * log_slope) > 1e-17 * np.abs(total_slope))):
            return total, total_slope


def _gamma(a: Any, x: Any) -> Any:
    """dx/da of gamma numbers x of concentrations a, both float64 arrays of one shape."""
    import numpy as np

    out = np.full(x.shape, np.nan)
    known = (a > 0) & (x >= 0) & np.isfinite(a) & np.isfinite(x)
    out[known & (x == 0)] = 0.0
    known &= x > 0
    big = known & (a >= LARGE)
    far = known & ~big & (x > 20) & (x > 2 * a + 20)
    near = known & ~big & ~far
    if near.any():
        b, y = a[near], x[near]
        total, slope = _series(y, b)
        out[near] = -y * ((np.log(y) - _digamma(b)) * total + slope)
    if far.any():  # from above: 1 - F = x^(a-1) e^-x / Γ(a) · (1 + (a-1)/x + (a-1)(a-2)/x² + …)
        b, y = a[far], x[far]
        term, term_slope = np.ones_like(b), np.zeros_like(b)
        total, slope = term.copy(), term_slope.copy()
        for n in range(1, 20):
            term, term_slope = term * (b - n) / y, (term_slope * (b - n) + term) / y
            total += term
            slope += term_slope
        out[far] = (np.log(y) - _digamma(b)) * total + slope
    if big.any():
        out[big] = _quantile_slope(a[big], x[big])
    return out


def _quantile_slope(a: Any, x: Any) -> Any:
    """d/da at fixed z of x = a + √a z + (z²−1)/3 + (z³−7z)/(36√a) − (3z⁴+7z²−16)/(810a) + (9z⁵+256z³−433z)/(38880 a√a), z found by Newton's steps."""
    import numpy as np

    root = np.sqrt(a)
    z = (x - a) / root
    for _ in range(6):
        value = a + root * z + (z * z - 1) / 3 + (z**3 - 7 * z) / (36 * root) - (3 * z**4 + 7 * z * z - 16) / (810 * a) + (9 * z**5 + 256 * z**3 - 433 * z) / (38880 * a * root)
        z = z - (value - x) / (root + 2 * z / 3 + (3 * z * z - 7) / (36 * root))
    return 1 + z / (2 * root) - (z**3 - 7 * z) / (72 * a * root) + (3 * z**4 + 7 * z * z - 16) / (810 * a * a) - (9 * z**5 + 256 * z**3 - 433 * z) / (25920 * a * a * root)


def _beta(x: Any, a: Any, total: Any) -> Any:
    """−(∂F/∂a) / (F′(x) (1−x)) of beta numbers x with concentrations a and total − a."""
    import numpy as np

    b = total - a
    out = np.full(x.shape, np.nan)
    known = (a > 0) & (b > 0) & (x > 0) & (x < 1) & np.isfinite(total)
    out[(a > 0) & (b > 0) & ((x == 0) | (x == 1))] = 0.0
    below = known & (x <= (a + 1) / (total + 2))
    for chosen, turned in ((below, False), (known & ~below, True)):
        if not chosen.any():
            continue
        p, q, s, y = a[chosen], b[chosen], total[chosen], x[chosen]
        common = np.log(y) - _digamma(p) + _digamma(s)
        if turned:  # F(x; a, b) = 1 − F(1 − x; b, a), whose series is short here
            sums, slopes = _series(1 - y, q, s, False)
            out[chosen] = y * (common * sums + slopes)
        else:
            sums, slopes = _series(y, p, s)
            out[chosen] = -y * (common * sums + slopes)
    return out


def _computed(function: Any, *tensors: Tensor) -> Tensor:
    import numpy as np

    arrays = np.broadcast_arrays(*(np.asarray(host.array(t.detach().double())) for t in tensors))
    with np.errstate(all="ignore"):
        found = function(*(np.ascontiguousarray(array) for array in map(np.atleast_1d, arrays)))
    return host.tensor(found.reshape(arrays[0].shape), float64, tensors[0].device).to(tensors[0].dtype)


@operator("_standard_gamma_grad", method=False)
def gamma_grad(input, output):
    """How gamma numbers `output` of concentrations `input` move with these; both floats of one shape."""
    return _computed(_gamma, input, output)


@operator("_dirichlet_grad", method=False)
def dirichlet_grad(x, concentration, total):
    """How coordinates x of Dirichlet points move with their own concentration, of `total` in all, but for the factor that keeps their sum 1."""
    return _computed(_beta, x, concentration, total)


