"""Attention's kernels with the register tiles of other hosts: they compile for those, and compute the same with those tiles here."""

from __future__ import annotations

import numpy as np
import pytest

import strided as torch
from strided.kernels import attention as kernels
from strided.kernels import attention_few_ir, attention_grad_ir, attention_ir, gemm_pack
from strided.ops import attention as operators

attend = torch.nn.functional.scaled_dot_product_attention
TILES = {"neon": gemm_pack.Tile(4, (8, 4), 3, True, True, False), "avx2": gemm_pack.Tile(8, (6, 4), 2, True, True, False), "sse": gemm_pack.Tile(4, (6, 4), 2, False, False, False)}
TRIPLES = {"neon": ("aarch64-unknown-linux-gnu", "apple-m1", ""), "avx2": ("x86_64-unknown-linux-gnu", "haswell", ""), "sse": ("x86_64-unknown-linux-gnu", "x86-64", "")}


@pytest.mark.parametrize("host", TILES)
@pytest.mark.parametrize("mask", ["", "bool", "float32"])
def test_they_compile(host, mask):
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple, cpu, features = TRIPLES[host]
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=1)
    for name in ("float32", "bfloat16") + (("float16",) if host != "sse" else ()):
        kind = gemm_pack.Kind(name, name, "float32", "float32", "", TILES[host])
        for text in (
            attention_ir.attention_module(kind, mask, "nounwind"),
            attention_few_ir.few_module(kind, mask, "nounwind"),
            attention_grad_ir.attention_grad_module(kind, name, mask, "nounwind"),
        ):
            module = llvm.parse_assembly(text)
            module.triple = triple
            assembly = machine.emit_assembly(module)
            assert {"neon": "fmla", "avx2": "vfmadd", "sse": "mulps"}[host] in assembly


@pytest.fixture(params=TILES)
def tile(request, monkeypatch):
    monkeypatch.setattr(kernels, "tile_for", lambda accumulator: TILES[request.param])
    for plans in (operators._PLANS, operators._GRADIENT_PLANS):
        plans.clear()
    yield
    for plans in (operators._PLANS, operators._GRADIENT_PLANS):
        plans.clear()


@pytest.mark.parametrize(("rows", "keys", "width", "values"), [(40, 40, 16, 24), (61, 200, 33, 5), (2, 90, 20, 12)])
def test_their_tiles_give_the_same(tile, rows, keys, width, values):
    torch.manual_seed(rows)
    shapes = (1, 2, rows, width), (1, 2, keys, width), (1, 2, keys, values)
    exact = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]
    allowed = torch.rand(rows, keys) > 0.3
    added = torch.randn(1, 1, keys)
    for mask, causal in ((None, False), (None, True), (allowed, False), (added, False)):
        found = []
        for dtype in (torch.float64, torch.float32):
            leaves = [x.to(dtype).requires_grad_() for x in exact]
            given = mask if mask is None or mask.dtype is torch.bool else mask.to(dtype)
            out = attend(*leaves, given, is_causal=causal)
            found.append([out.detach(), *torch.autograd.grad(out, leaves, torch.ones_like(out) * torch.arange(values).to(dtype))])
        for a, b in zip(*found):
            np.testing.assert_allclose(b.double().numpy(), a.numpy(), rtol=1e-4, atol=1e-5 * max(1.0, a.abs().max().item()))
