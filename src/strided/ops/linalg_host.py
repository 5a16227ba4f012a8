"""Linear algebra on NumPy arrays: what numpy.linalg lacks, over stacks of matrices at once, and the way from tensors to arrays and back.

Holds LU with partial pivoting, triangular solves, LDLᵀ with Bunch-Kaufman pivoting, the matrix exponential. Operators and gradients are linalg*.py's.
Arrays here are [*, m, n]; loops run over columns, never over elements.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor, empty
from . import host

BLOCK = 64  # columns factorised one by one before the rest is updated by one matrix product


def compute(inputs: Sequence[Tensor], outs: Sequence[tuple], function: Callable[..., Any]) -> Any:
    """Fresh tensors from a function of arrays; on the meta device shapes only.

    outs: (shape, dtype) an output, or (shape, dtype, "columns") for matrices laid out column by column, as LAPACK gives them and PyTorch returns them.
    One output comes as a tensor, several as a tuple.
    """
    device = inputs[0].device
    if any(t.is_meta for t in inputs):
        made = tuple([_fresh(None, device, *out) for out in outs])
    else:
        import numpy

        with numpy.errstate(all="ignore"):
            arrays = function(*[host.array(t) for t in inputs])
        made = tuple([_fresh(a, device, *out) for a, out in zip(arrays if len(outs) > 1 else (arrays,), outs)])
    return made if len(made) > 1 else made[0]


def _fresh(array, device, shape, dtype, order="rows"):
    strides = None
    if order == "columns":
        *batch, m, n = shape
        strides, step = [1, max(m, 1)], max(m, 1) * max(n, 1)
        for size in reversed(batch):
            strides, step = [step, *strides], step * max(size, 1)
    out = empty(tuple(shape), dtype, device, strides)
    if array is not None and out.numel():
        host.array(out)[...] = array
    return out


def stacked(a):
    """[*, m, n] -> [b, m, n]."""
    return a.reshape((math.prod(a.shape[:-2]), *a.shape[-2:]))


# ---- LU and triangles ---------------------------------------------------------------------------------------------------------------


def adjoint(a):
    """The conjugate transpose of every matrix."""
    a = a.swapaxes(-1, -2)
    return a.conj() if a.dtype.kind == "c" else a


def exact(a):
    """The same numbers in double precision."""
    return a.astype("complex128" if a.dtype.kind == "c" else "float64")


def magnitude(a):
    """What LAPACK compares pivots by: |re| + |im|."""
    import numpy

    return numpy.abs(a.real) + numpy.abs(a.imag) if a.dtype.kind == "c" else numpy.abs(a)


def lu(a):
    """(packed L and U, row exchanges counted from 1, number of the first zero pivot or 0) of every matrix: [*, m, n], [*, k], [*]; k = min(m, n)."""
    import numpy

    shape, (m, n) = a.shape, a.shape[-2:]
    k = min(m, n)
    a = stacked(a).copy()
    every = numpy.arange(len(a))
    pivots = numpy.empty((len(a), k), "int32")
    for start in range(0, k, BLOCK):
        stop = min(start + BLOCK, k)
        for j in range(start, stop):
            largest = j + magnitude(a[:, j:, j]).argmax(1)
            pivots[:, j] = largest + 1
            row = a[:, j].copy()
            a[:, j] = a[every, largest]
            a[every, largest] = row
            pivot = a[:, j, j]
            a[:, j + 1 :, j] /= numpy.where(pivot == 0, 1, pivot)[:, None]  # a zero pivot has only zeros below
            a[:, j + 1 :, j + 1 : stop] -= a[:, j + 1 :, j, None] * a[:, j, None, j + 1 : stop]
        if stop < n:
            a[:, start:stop, stop:] = solve_triangular(a[:, start:stop, start:stop], a[:, start:stop, stop:], False, True)
            a[:, stop:, stop:] -= a[:, stop:, start:stop] @ a[:, start:stop, stop:]
    zero = numpy.diagonal(a, 0, 1, 2) == 0
    info = numpy.where(zero.any(1), zero.argmax(1) + 1, 0) if k else numpy.zeros(len(a))
    return a.reshape(shape), pivots.reshape((*shape[:-2], k)), info.reshape(shape[:-2])


def permutation(pivots, m):
    """Row exchanges, one after the other, as an order of rows: [*, k] -> [*, m]; row i of the exchanged matrix is row order[i] of the original."""
    import numpy

    flat = pivots.reshape(-1, pivots.shape[-1]) if pivots.size else pivots.reshape(math.prod(pivots.shape[:-1]), 0)
    order = numpy.tile(numpy.arange(m), (len(flat), 1))
    every = numpy.arange(len(flat))
    for j in range(flat.shape[1]):
        other = flat[:, j] - 1
        kept = order[:, j].copy()
        order[:, j] = order[every, other]
        order[every, other] = kept
    return order.reshape((*pivots.shape[:-1], m))


def solve_triangular(a, b, upper, unit):
    """x with a x = b, by substitution: a [*, n, n], of which one triangle is read, and b [*, n, k]. Zeros on the diagonal give infinities, no error."""
    shape, n = b.shape, a.shape[-1]
    a, x = stacked(a), stacked(b).copy()
    blocks = [(s, min(s + BLOCK, n)) for s in range(0, n, BLOCK)]
    for start, stop in reversed(blocks) if upper else blocks:
        for i in range(stop - 1, start - 1, -1) if upper else range(start, stop):
            known = slice(i + 1, stop) if upper else slice(start, i)
            if known.stop > known.start:
                x[:, i] -= (a[:, i, None, known] @ x[:, known])[:, 0]
            if not unit:
                x[:, i] /= a[:, i, i, None]
        rest = slice(0, start) if upper else slice(stop, n)
        if rest.stop > rest.start:
            x[:, rest] -= a[:, rest, start:stop] @ x[:, start:stop]
    return x.reshape(shape)


def solve(a, b):
    """(x, info) with a x = b: [*, n, n], [*, n, k] of equal batches. info: number of the first zero pivot of each singular matrix, else 0."""
    import numpy

    try:
        return numpy.linalg.solve(a, b), numpy.zeros(a.shape[:-2])
    except numpy.linalg.LinAlgError:
        packed, pivots, info = lu(a)
        b = numpy.take_along_axis(b, permutation(pivots, a.shape[-1])[..., None], -2)
        return solve_triangular(packed, solve_triangular(packed, b, False, True), True, False), info


def cholesky(a):
    """(L, info) of every matrix's lower triangle; info: order of the first leading minor that is not positive, else 0 (the columns before it are right)."""
    import numpy

    try:
        out = numpy.linalg.cholesky(a)
        if not numpy.isnan(out).any():
            return out, numpy.zeros(a.shape[:-2])
    except numpy.linalg.LinAlgError:
        pass
    out = numpy.tril(stacked(a))
    info = [_cholesky_until(matrix) for matrix in out]
    return out.reshape(a.shape), numpy.array(info).reshape(a.shape[:-2])


def _cholesky_until(a):
    """Factorises a lower triangle in place up to the first pivot that is not positive; its number, from 1 (0: there is none)."""
    for j in range(len(a)):
        a[j:, j] -= a[j:, :j] @ a[j, :j].conj()
        a[j, j] = a[j, j].real
        if not a[j, j].real > 0:
            return j + 1
        a[j:, j] /= a[j, j] ** 0.5
    return 0


# ---- symmetric indefinite matrices --------------------------------------------------------------------------------------------------


def ldl(a, hermitian=False):
    """(packed L and D, pivots, info) of symmetric (or Hermitian) matrices, by Bunch and Kaufman's pivoting on the lower triangle.

    D has blocks of size 1 and 2: a positive pivot p exchanged rows with p, a pair of negative ones -p is a block of size 2 whose second row was exchanged
    with p. info: number of the first zero block, else 0.
    """
    import numpy

    shape, n = a.shape, a.shape[-1]
    a = numpy.tril(stacked(a))
    pivots = numpy.empty((len(a), n), "int32")
    hermitian = hermitian and a.dtype.kind == "c"
    info = [_ldl_one(matrix, pivot, hermitian) for matrix, pivot in zip(a, pivots)]
    return a.reshape(shape), pivots.reshape(shape[:-1]), numpy.array(info, "int32").reshape(shape[:-2])


_GROWTH = (1 + math.sqrt(17)) / 8  # bounds the growth of elements equally for blocks of both sizes


def _choose(a, k, hermitian):
    """(row to exchange with, block size) for the next block at k; (k, 0) where the column is zero."""
    import numpy

    size = (lambda x: abs(x.real)) if hermitian else magnitude  # of an element of the diagonal
    n, own = len(a), size(a[k, k])
    below = magnitude(a[k + 1 :, k])
    if own == 0 and not below.any() or numpy.isnan(own):
        return k, 0
    if not len(below) or own >= _GROWTH * below.max():
        return k, 1
    column = below.max()
    r = k + 1 + int(below.argmax())
    row = magnitude(a[r, k:r]).max()
    if r + 1 < n:
        row = max(row, magnitude(a[r + 1 :, r]).max())
    if own >= _GROWTH * column * (column / row):
        return k, 1
    return (r, 1) if size(a[r, r]) >= _GROWTH * row else (r, 2)


def _ldl_one(a, pivots, hermitian) -> int:
    n, k, info = len(a), 0, 0
    conj = (lambda x: x.conj()) if hermitian else (lambda x: x)
    if hermitian:
        diagonal = a.reshape(-1)[:: n + 1]
        diagonal[...] = diagonal.real
    while k < n:
        p, size = _choose(a, k, hermitian)
        if size == 0:
            info = info or k + 1
        last = k + max(size, 1) - 1
        if p != last:  # exchange rows and columns `last` and p of the symmetric matrix, seen through its lower triangle
            _swap(a[p + 1 :, last], a[p + 1 :, p])
            _swap(a[last + 1 : p, last], a[p, last + 1 : p])
            if hermitian:  # these crossed the diagonal
                for crossed in (a[last + 1 : p, last], a[p, last + 1 : p], a[p, last : last + 1]):
                    crossed[...] = crossed.conj()
            a[last, last], a[p, p] = a[p, p], a[last, last]
            if size == 2:
                a[k + 1, k], a[p, k] = a[p, k], a[k + 1, k]
        rest = slice(k + max(size, 1), n)
        if size == 1:
            pivots[k] = p + 1
            scaled = a[rest, k] / a[k, k]
            _subtract_lower(a[rest, rest], scaled[:, None] * conj(a[rest, k]), hermitian)
            a[rest, k] = scaled
        elif size == 2:
            pivots[k] = pivots[k + 1] = -(p + 1)
            d = a[k + 1, k]  # the block is [[., conj(d)], [d, .]], or symmetric
            d11, d22 = a[k + 1, k + 1] / d, a[k, k] / conj(d)
            scale = 1 / (d11 * d22 - 1)
            x, y = a[rest, k].copy(), a[rest, k + 1].copy()
            a[rest, k], a[rest, k + 1] = scale * (d11 * x - y) / conj(d), scale * (d22 * y - x) / d
            _subtract_lower(a[rest, rest], a[rest, k, None] * conj(x) + a[rest, k + 1, None] * conj(y), hermitian)
        else:
            pivots[k] = k + 1
        k += max(size, 1)
    return info


def _swap(x, y):
    kept = x.copy()
    x[...] = y
    y[...] = kept


def _subtract_lower(a, update, hermitian):
    import numpy

    a -= numpy.tril(update)
    if hermitian and a.size:
        numpy.einsum("ii->i", a).imag[...] = 0


def ldl_solve(packed, pivots, b, hermitian=False):
    """x with L D Lᵀ x = b (or L D Lᴴ x = b), from `ldl`: [*, n, n], [*, n], [*, n, k]."""
    x = stacked(b).copy()
    flat = pivots.reshape(len(x), packed.shape[-1])
    for a, pivot, right in zip(stacked(packed), flat, x):
        _ldl_solve_one(a, pivot, right, hermitian and a.dtype.kind == "c")
    return x.reshape(b.shape)


def _ldl_solve_one(a, pivots, b, hermitian) -> None:
    n, k, starts = len(a), 0, []
    conj = (lambda x: x.conj()) if hermitian else (lambda x: x)
    while k < n:
        starts.append(k)
        size = 1 if pivots[k] > 0 else 2
        last, p = k + size - 1, abs(int(pivots[k])) - 1
        if p != last:
            b[[last, p]] = b[[p, last]]
        b[k + size :] -= a[k + size :, k : k + size] @ b[k : k + size]
        if size == 1:
            b[k] /= a[k, k]
        else:
            d = a[k + 1, k]
            d1, d2 = a[k, k] / conj(d), a[k + 1, k + 1] / d
            x, y = b[k] / conj(d), b[k + 1] / d
            b[k], b[k + 1] = (d2 * x - y) / (d1 * d2 - 1), (d1 * y - x) / (d1 * d2 - 1)
        k += size
    for k in reversed(starts):
        size = 1 if pivots[k] > 0 else 2
        last, p = k + size - 1, abs(int(pivots[k])) - 1
        b[k : k + size] -= conj(a[k + size :, k : k + size].T) @ b[k + size :]
        if p != last:
            b[[last, p]] = b[[p, last]]


# ---- the exponential ----------------------------------------------------------------------------------------------------------------

_PADE = [math.factorial(26 - i) * math.factorial(13) // (math.factorial(13 - i) * math.factorial(i)) for i in range(14)]
_PADE = [c // _PADE[13] for c in _PADE]  # divisible: the coefficients of the quotient's polynomials, the leading one 1


def matrix_exp(a):
    """e^a of every matrix [*, n, n]: halved until small, a quotient of polynomials of degree 13, squared back."""
    import numpy

    if a.size == 0:
        return a
    shape, out = a.shape, stacked(exact(a))
    size = numpy.abs(out).sum(1).max(1)  # 1-norm of each matrix
    times = numpy.ceil(numpy.log2(numpy.maximum(size / 5.37, 1)))  # the quotient is exact to float64's last bits below this norm
    times = numpy.where(numpy.isfinite(times), times, 0).astype(int)
    for t in numpy.unique(times):
        chosen = times == t
        e = _pade(out[chosen] / 2.0**t)
        for _ in range(t):
            e = e @ e
        out[chosen] = e
    return out.reshape(shape)


def _pade(a):
    import numpy

    b, identity = _PADE, numpy.eye(a.shape[-1])
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * identity)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * identity
    finite = numpy.isfinite(a).all((1, 2))
    out = numpy.full_like(a, numpy.nan)
    out[finite] = numpy.linalg.solve((even - odd)[finite], (even + odd)[finite])
    return out
