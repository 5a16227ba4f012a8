"""Attention cut into parts and read in place, against NumPy in float64: keys split over threads, rows that lie a page apart, rests of tiles, what is kept."""

import numpy as np
import pytest

import strided as torch
from strided.kernels import attention as kernels
from strided.kernels.attention import _bounds, _splits

attention = torch.nn.functional.scaled_dot_product_attention


def formula(q, k, v, g, causal=False, mask=None, scale=None):
    """Result and gradients in float64."""
    q, k, v, g = (x.astype(np.float64) for x in (q, k, v, g))
    scale = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    s = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    top = s.max(-1, keepdims=True)
    p = np.exp(s - np.where(np.isinf(top), 0, top))
    total = p.sum(-1, keepdims=True)
    p = p / np.where(total == 0, 1, total)
    dp = g @ np.swapaxes(v, -1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    return p @ v, ds @ k, np.swapaxes(ds, -1, -2) @ q, np.swapaxes(p, -1, -2) @ g


def check(q, k, v, g, **options):
    """q, k, v, g: tensors [*, L, E], of any strides."""
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    mask = options.pop("mask", None)
    causal, scale = options.get("causal", False), options.get("scale")
    out = attention(*leaves, mask, is_causal=causal, scale=scale)
    found = [out.detach(), *torch.autograd.grad(out, leaves, g)]
    exact = formula(*(x.detach().numpy() for x in (q, k, v, g)), mask=None if mask is None else mask.numpy(), **options)
    for a, b in zip(found, exact):
        assert np.abs(a.numpy() - b).max() <= 3e-6 * max(1.0, np.abs(b).max())


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize(("heads", "length", "keys", "causal"), [(1, 300, 300, True), (1, 256, 512, False), (3, 200, 200, True), (3, 100, 333, False), (1, 400, 150, True), (1, 150, 400, True)])
def test_gradients_with_keys_split_over_threads(threads, count, heads, length, keys, causal):
    threads(count)
    torch.manual_seed(heads)
    q, k, v, g = (torch.randn(1, heads, rows, 40) for rows in (length, keys, keys, length))
    check(q, k, v, g, causal=causal)
    mask = torch.rand(length, keys) > 0.2
    check(q, k, v, g, mask=mask)


def test_keys_are_split_where_heads_do_not_divide(threads):
    threads(2)
    q = torch.randn(1, 1, 1024, 64)
    pair = (q.dtype, q.spec.layout)
    _, sums, _ = kernels.build_attention_grad([pair] * 3, pair, pair, pair, pair, pair, causal=True)
    assert sums is not None
    q = torch.randn(1, 2, 1024, 64)
    pair = (q.dtype, q.spec.layout)
    _, sums, _ = kernels.build_attention_grad([pair] * 3, pair, pair, pair, pair, pair, causal=True)
    assert sums is None


def test_how_often_keys_are_split():
    assert [_splits(entries, 2, 16) for entries in (1, 2, 3, 4, 5, 8, 64)] == [2, 1, 2, 1, 2, 1, 1]
    assert _splits(1, 8, 16) == 8 and _splits(1, 8, 3) == 3 and _splits(12, 8, 16) == 2 and _splits(0, 4, 16) == 1
    assert _splits(1, 2, 0) == 1  # too few keys


def test_parts_of_a_causal_triangle_are_of_equal_area():
    bounds = _bounds(1024, 1024, 4, True, 32)
    assert bounds[0] == 0 and bounds[-1] == 1024 and all(b % 32 == 0 for b in bounds)
    areas = [sum(1024 - k for k in range(a, b)) for a, b in zip(bounds, bounds[1:])]
    assert max(areas) < 1.15 * min(areas)
    assert _bounds(100, 0, 1, False, 32) == [0, 0] and _bounds(64, 256, 2, True, 32)[-1] == 256


@pytest.mark.parametrize("length", [5, 17, 64, 65, 130])
@pytest.mark.parametrize("width", [1024, 768])
@pytest.mark.parametrize("causal", [False, True])
def test_heads_of_rows_a_page_apart(length, width, causal):
    """[B, T, 3 C] cut into query, key and value, as models do; 3 * 1024 floats are three pages."""
    torch.manual_seed(length)
    x = torch.randn(1, length, 3 * width)
    heads = width // 64
    q, k, v = (t.view(1, length, heads, 64).transpose(1, 2)[:, :2] for t in x.split(width, dim=2))
    g = torch.randn(1, length, heads, 64).transpose(1, 2)[:, :2]
    check(q, k, v, g, causal=causal)


@pytest.mark.parametrize("width", range(1, 34))
def test_rests_of_tiles(width):
    """Rows and widths that tiles cover but for one, two or three, at the very end of a storage, where nothing may be read behind it."""
    torch.manual_seed(width)
    rows = 29 + width
    q, k, v, g = (torch.randn(1, 2, rows, width) for _ in range(4))
    check(q, k, v, g)
    check(q, k, v, g, causal=True)


@pytest.mark.parametrize("shape", [(1, 40), (70, 1), (1, 1), (70, 40)])
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks_that_broadcast(shape, kind):
    torch.manual_seed(3)
    q, k, v, g = torch.randn(1, 2, 70, 16), torch.randn(1, 2, 40, 16), torch.randn(1, 2, 40, 16), torch.randn(1, 2, 70, 16)
    mask = torch.randn(*shape)
    mask = mask > -1 if kind == "bool" else mask
    check(q, k, v, g, mask=mask.expand(70, 40))
    check(q, k, v, g, mask=mask.expand(2, 70, 40).unsqueeze(0))


@pytest.mark.parametrize("rows", [12, 15, 16, 17, 31, 33, 64])
def test_some_rows_against_many_keys(rows):
    """Where one vector holds all rows, the other is left out."""
    torch.manual_seed(rows)
    q, k, v, g = torch.randn(2, 3, rows, 24), torch.randn(2, 3, 500, 24), torch.randn(2, 3, 500, 20), torch.randn(2, 3, rows, 20)
    mask = torch.rand(2, 1, rows, 500) > 0.5
    for options in ({}, {"causal": True}, {"mask": mask}, {"mask": torch.randn(rows, 500)}, {"scale": -0.3}):
        check(q, k, v, g, **options)


def test_one_float_a_row_is_kept():
    q = torch.randn(1, 4, 256, 8, requires_grad=True)
    attention(q, q, q).sum().backward()
    before = torch.memory.memory_allocated()
    out = attention(q, q, q)
    assert torch.memory.memory_allocated() - before == 4 * 256 * (8 + 1) * 4
    out.sum().backward()


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
def test_weights_of_large_scores_do_not_exceed_one(size):
    """What is kept of a row is rounded; the row's greatest score is rounded alike, so that gradients stay of the weights' size."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 40, 8, requires_grad=True) for _ in range(3))
    out = attention(q, k, v, scale=size)
    out.backward(torch.ones_like(out))
    sums = v.grad.numpy().sum(-2)  # the weights of 40 rows, one column after the other
    assert np.isfinite(q.grad.numpy()).all() and (v.grad.numpy() >= 0).all()
    np.testing.assert_allclose(sums, 40, rtol=size * 2**-20)


@pytest.mark.parametrize(("length", "keys", "width", "values"), [(64, 64, 64, 64), (70, 130, 48, 16), (150, 45, 24, 32), (3, 70, 16, 40), (17, 200, 64, 5), (58, 58, 32, 96)])
@pytest.mark.parametrize("mask", ["none", "causal", "bool"])
def test_scratch_may_hold_anything(monkeypatch, length, keys, width, values, mask):
    """Memory of the allocator is filled with NaN: nothing that was not written is used."""
    from strided.kernels.native import fill_bytes, new_storage
    from strided.ops import attention as operators

    def filled(nbytes):
        storage = new_storage(nbytes)
        fill_bytes(storage.data, 0xFF, nbytes)
        return storage

    monkeypatch.setattr(operators, "new_storage", filled)
    torch.manual_seed(length)
    q, k, v, g = (torch.randn(1, 2, rows, columns) for rows, columns in ((length, width), (keys, width), (keys, values), (length, values)))
    check(q, k, v, g, causal=mask == "causal", mask=torch.rand(length, keys) > 0.3 if mask == "bool" else None)
