"""Products of complex matrices from one real product, by the same kernels: how operands are laid out for it, and the plans. No operator and no gradient.

A complex number z is the matrix [[re, im], [-im, re]] to the row vector (re, im) left of it. A row-major complex [m, k] seen as real [m, 2k], times the
real [2k, 2n] of all these matrices of b (rows of b, then of ib), is the real [m, 2n] that a complex [m, n] is in memory. Where a has few rows, the other way
round costs less: re a and im a, one above the other, times b seen as real [k, 2n], give two products P and Q with ab = P + iQ.
"""
from __future__ import annotations

from math import prod

from ..dispatch import launch, launch_new
from ..kernels import expr as E
from ..kernels.fold import plan_fold
from ..kernels.map import build_map
from ..kernels.matmul import build_matmul
from ..kernels.native import new_storage
from ..layout import Layout
from ..tensor import Spec

_spread = E.trace(lambda z: (z, E.pair(-E.imag(z), E.real(z))), 1)  # z, iz
_planes = E.trace(lambda z: (E.real(z), E.imag(z)), 1)
_joined = E.trace(lambda p, q: E.pair(E.real(p) - E.imag(q), E.imag(p) + E.real(q)), 2)  # p + iq
_copied = E.trace(lambda z: z, 1)
_dot = (E.trace(lambda x, y: E.rsum(x * y), 2),)


def _pairs(layout: Layout) -> Layout:
    """A complex [*, m, k] whose rows lie together, as the real [*, m, 2k] in its place."""
    *batch, m, k = layout.shape
    return Layout.of((*batch, m, 2 * k), (*(2 * stride for stride in layout.strides[:-1]), 1))


def _rows_together(layout: Layout) -> bool:
    return layout.strides[-1] == 1 or layout.shape[-1] == 1


class Product:
    """A plan: call it with the addresses of a [*, m, k] and b [*, k, n] for the memory of a fresh row-major [*, m, n]."""

    __slots__ = ("prepare", "prepared_bytes", "second", "copy", "gemm", "join", "half", "dot")

    def __init__(self, a: Spec, b: Spec, full: tuple):
        dtype, real = a.dtype, a.dtype.to_real()
        batch, (m, n) = full[:-2], full[-2:]
        k, part = a.shape[-1], real.itemsize
        self.copy = self.join = self.dot = None
        if m == n == 1:
            row, column = a.layout.expand((*batch, 1, k)), b.layout.transpose(-2, -1).expand((*batch, 1, k))
            self.dot = plan_fold(_dot, (len(batch) + 1,), [(dtype, Layout.contiguous(full))], [(dtype, row), (dtype, column)], result_bytes=max(prod(full) * dtype.itemsize, 1))
            return
        if _rows_together(b.layout) and m * (k + 2 * n) < k * n:
            planes = Layout.contiguous((*a.shape[:-2], 2, m, k))
            out = (real, planes.select(-3, 0)[0])
            self.prepare = build_map(_planes, [out, out], [(dtype, a.layout)])
            self.prepared_bytes, self.second = planes.numel * part, m * k * part
            left = Layout.contiguous((*a.shape[:-2], 2 * m, k)).expand((*batch, 2 * m, k))
            right = _pairs(b.layout).expand((*batch, k, 2 * n))
            product = Layout.contiguous((*batch, 2 * m, 2 * n))
            halves = Layout.contiguous((*batch, 2, m, n)).select(-3, 0)[0]
            self.join = build_map(_joined, [(dtype, Layout.contiguous(full))], [(dtype, halves)] * 2, result_bytes=max(prod(full) * dtype.itemsize, 1))
            self.half = m * n * dtype.itemsize
        else:
            spread = Layout.contiguous((*b.shape[:-2], k, 2, n))
            out = (dtype, spread.select(-2, 0)[0])
            self.prepare = build_map(_spread, [out, out], [(dtype, b.layout)])
            self.prepared_bytes, self.second = spread.numel * dtype.itemsize, n * dtype.itemsize
            own = a.layout
            if not _rows_together(own):
                own = Layout.contiguous(own.shape)
                self.copy = build_map(_copied, [(dtype, own)], [(dtype, a.layout)], result_bytes=max(own.numel * dtype.itemsize, 1))
            left = _pairs(own).expand((*batch, m, 2 * k))
            right = Layout.contiguous((*b.shape[:-2], 2 * k, 2 * n)).expand((*batch, 2 * k, 2 * n))
            product = Layout.contiguous((*batch, m, 2 * n))
        self.gemm = build_matmul((real, product), (real, left), (real, right), None, scale=False, result_bytes=product.numel * part)

    def __call__(self, a: int, b: int):
        if self.dot is not None:
            return self.dot.launch_new(a, b)
        prepared = new_storage(max(self.prepared_bytes, 1))
        at = prepared.data
        if self.join is not None:
            launch(self.prepare, at, at + self.second, a)
            product = launch_new(self.gemm, at, b)
            return launch_new(self.join, product.data, product.data + self.half)
        launch(self.prepare, at, at + self.second, b)
        if self.copy is None:
            return launch_new(self.gemm, a, at)
        copied = launch_new(self.copy, a)
        return launch_new(self.gemm, copied.data, at)
