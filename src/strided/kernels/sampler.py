"""Grid sampling: the gradient of trilinear samples with respect to their places, one place after the other.

The sums go over the channels and, within each, over the eight corners of a cell, every step rounded: PyTorch's order, which a sum by corners does not have.
"""
from __future__ import annotations

from . import jit, native
from .loops import Body
from .lower import IR

GRAIN = 1 << 8


def build_places_gradient(dtype, batch: int, channels: int, places: int, sizes: tuple[int, int, int]) -> bytes:
    """Descriptor for float32 or float64. Slots: result [3, N, P] (x, y, z), x, y, z [N, P] in pixels, image [N, C, D, H, W], gradient [N, C, P]; all row-major."""
    address = jit.compile_kernel(("sampler_places", dtype.name), lambda: _text(IR[dtype.name], dtype.itemsize))
    work = batch * places
    parts = max(1, min(native.parts_for(work * max(channels, 1), GRAIN), max(work, 1)))
    return native.pack_desc(address, 6, parts, work * channels >= 16 * GRAIN, 0, [batch, channels, places, *sizes])


def _text(type: str, size: int) -> str:
    b = Body()
    b.declare(f"declare {type} @llvm.floor.{'f32' if type == 'float' else 'f64'}({type})")
    floor = f"@llvm.floor.{'f32' if type == 'float' else 'f64'}"
    batch, channels, places, *extents = (b.word(i) for i in range(6))  # D, H, W
    depth, height, width = extents
    result, xs, ys, zs, image, gradient = (b.slot(i) for i in range(6))
    element = lambda base, index: b(f"getelementptr {type}, ptr {base}, i64 {index}")
    volume = b.mul(b.mul(depth, height), width)
    count = b.mul(batch, places)
    with b.loop(*b.share(count)) as at:
        n = b.div(at, places)
        p = b.sub(at, b.mul(n, places))
        near = []  # for x, y, z: ((whole position, weight towards it), the same of the next one)
        for base in (xs, ys, zs):
            place = b.load(type, element(base, at))
            low = b(f"call {type} {floor}({type} {place})")
            # Saturating: a NaN or a huge position becomes some whole number, and lies outside or not without harm.
            whole = b(f"call i64 @llvm.fptosi.sat.i64.{'f32' if type == 'float' else 'f64'}({type} {low})")
            following = b.add(whole, 1)
            high = b(f"sitofp i64 {following} to {type}")
            low = b(f"sitofp i64 {whole} to {type}")
            near.append(((whole, b(f"fsub {type} {high}, {place}")), (following, b(f"fsub {type} {place}, {low}"))))
        totals = [b.cell(type, "0.0") for _ in range(3)]
        corners = []
        for dz in (0, 1):
            for dy in (0, 1):
                for dx in (0, 1):
                    inside = b(f"icmp ult i64 {near[0][dx][0]}, {width}")
                    for (whole, _), limit in ((near[1][dy], height), (near[2][dz], depth)):
                        inside = b(f"and i1 {inside}, {b(f'icmp ult i64 {whole}, {limit}')}")
                    offset = b.add(b.mul(b.add(b.mul(near[2][dz][0], height), near[1][dy][0]), width), near[0][dx][0])
                    corners.append(((dx, dy, dz), inside, offset))
        with b.loop(0, channels) as c:
            row = b.add(b.mul(n, channels), c)
            g = b.load(type, element(gradient, b.add(b.mul(row, places), p)))
            start = element(image, b.mul(row, volume))
            for (dx, dy, dz), inside, offset in corners:
                with b.when(inside):
                    value = b.load(type, element(start, offset))
                    x, y, z = near[0][dx][1], near[1][dy][1], near[2][dz][1]
                    for total, (first, second), upper in zip(totals, ((y, z), (x, z), (x, y)), (dx, dy, dz)):
                        term = value
                        for factor in (first, second, g):
                            term = b(f"fmul {type} {term}, {factor}")
                        total.set(b(f"{'fadd' if upper else 'fsub'} {type} {total.get()}, {term}"))
        for k, total in enumerate(totals):
            b.store(type, total.get(), element(result, b.add(b.mul(count, k), at)))
    b.declare(f"declare i64 @llvm.fptosi.sat.i64.{'f32' if type == 'float' else 'f64'}({type})")
    return b.text()
