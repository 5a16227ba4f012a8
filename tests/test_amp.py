"""Autocast regions, custom functions under them, and loss scaling."""
import pytest

import strided as torch
import strided.nn as nn
import strided.nn.functional as F
from strided.amp import GradScaler, autocast, custom_bwd, custom_fwd


def test_products_run_lower_and_losses_in_float32():
    layer = nn.Linear(16, 16)
    x = torch.randn(2, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = layer(x)
        assert out.dtype == torch.bfloat16
        assert F.mse_loss(out, torch.zeros_like(out)).dtype == torch.float32
        assert (x + 1).dtype == torch.float32
        assert torch.cat([x, out]).dtype == torch.float32
    assert layer(x).dtype == torch.float32 and layer.weight.dtype == torch.float32
    expected = x.bfloat16() @ layer.weight.bfloat16().t() + layer.bias.bfloat16()
    assert torch.allclose(out.float(), expected.float(), atol=2e-2)


def test_gradients_come_back_in_the_parameters_dtype():
    layer = nn.Linear(4, 3)
    with autocast("cpu", dtype=torch.bfloat16):
        loss = layer(torch.ones(2, 4)).sum()
    loss.backward()
    assert layer.weight.grad.dtype == torch.float32
    assert layer.weight.grad.tolist() == [[2.0] * 4] * 3


def test_regions_nest_and_can_be_switched_off():
    x = torch.ones(2, 2)
    with autocast("cpu", dtype=torch.bfloat16):
        with autocast("cpu", enabled=False):
            assert (x @ x).dtype == torch.float32
            with autocast("cpu", dtype=torch.float16):
                assert (x @ x).dtype == torch.float16
            assert (x @ x).dtype == torch.float32
        assert (x @ x).dtype == torch.bfloat16
        assert torch.amp.is_autocast_enabled("cpu")
    assert (x @ x).dtype == torch.float32
    assert not torch.amp.is_autocast_enabled("cpu")


def test_an_exception_leaves_the_region():
    with pytest.raises(ZeroDivisionError):
        with autocast("cpu"):
            1 / 0
    assert not torch.amp.is_autocast_enabled("cpu")


def test_decorator():
    @autocast("cpu", dtype=torch.bfloat16)
    def product(x):
        return x @ x

    assert product(torch.ones(2, 2)).dtype == torch.bfloat16
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_unsupported_regions_warn():
    with pytest.warns(UserWarning, match="the target dtype is not supported"):
        region = autocast("cpu", dtype=torch.float32)
    with region:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    with pytest.warns(UserWarning, match="CUDA is not available"):
        autocast("cuda")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'tpu'"):
        autocast("tpu")


def test_custom_functions():
    seen = []

    class Twice(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            seen.append((x.dtype, torch.amp.is_autocast_enabled("cpu")))
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append(torch.amp.is_autocast_enabled("cpu"))
            return g * 2

    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    with autocast("cpu", dtype=torch.bfloat16):
        y = Twice.apply(x)
    y.sum().backward()
    assert y.dtype == torch.float32 and seen == [(torch.float32, False), False]


def test_scaler_skips_bad_steps_and_adapts():
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.25)
    scaler = GradScaler("cpu", init_scale=8.0, growth_interval=2)
    scaler.scale((p * p).sum()).backward()
    assert p.grad.tolist() == [16, 16]
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.5, 0.5] and scaler.get_scale() == 8.0
    optimizer.zero_grad()
    scaler.scale((p * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.5, 0.5] and scaler.get_scale() == 4.0
    assert scaler.state_dict() == {"scale": 4.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2, "_growth_tracker": 0}


def test_scaler_misuse():
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.25)
    scaler = GradScaler("cpu")
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer since the last update"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="has already been called since the last update"):
        scaler.step(optimizer)


def test_disabled_scaler_passes_through():
    scaler = GradScaler("cpu", enabled=False)
    p = torch.ones(1, requires_grad=True)
    assert scaler.scale(p) is p and scaler.get_scale() == 1.0 and scaler.state_dict() == {}


def test_weights_are_cast_once_a_region():
    from strided.dispatch import CONTEXT

    layer, x = nn.Linear(3, 3), torch.randn(2, 3)
    with autocast("cpu", dtype=torch.bfloat16):
        first = layer(x)
        kept = dict(CONTEXT.autocast_cache)
        assert {id(p) for p, _ in kept.values()} == {id(layer.weight), id(layer.bias)}
        with autocast("cpu", enabled=False):
            layer(x)
        assert torch.equal(layer(x), first) and CONTEXT.autocast_cache == kept
    assert CONTEXT.autocast_cache is None
    with autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
        layer(x)
        assert CONTEXT.autocast_cache is None


def test_a_cast_made_without_grad_does_not_cost_the_gradient():
    layer, x = nn.Linear(3, 1), torch.ones(2, 3)
    with autocast("cpu", dtype=torch.bfloat16):
        with torch.no_grad():
            layer(x)
        loss = layer(x).sum()
    loss.backward()
    assert layer.weight.grad.tolist() == [[2, 2, 2]]


def test_lists_beyond_products_and_losses():
    m, wide = torch.randn(4, 6), torch.randn(4, 6)
    with autocast("cpu", dtype=torch.bfloat16):
        low = m.bfloat16()
        assert torch.linalg.vecdot(m, m).dtype == torch.inner(m, m).dtype == torch.tensordot(m, m.t(), 1).dtype == torch.linalg.multi_dot([m, m.t(), m]).dtype == torch.bfloat16
        assert F.prelu(m, torch.tensor([0.1])).dtype == torch.bfloat16
        assert torch.trace(low).dtype == torch.cdist(low, low).dtype == torch.prod(low).dtype == torch.float32
        assert F.pad(low[None], (1, 1), "reflect").dtype == F.pad(low[None], (1, 1), "replicate").dtype == torch.float32
        assert F.pad(low[None], (1, 1), "circular").dtype == F.pad(low, (1, 1)).dtype == torch.bfloat16
        assert F.max_pool3d(low[None, None, None], 1).dtype == F.adaptive_avg_pool3d(low[None, None, None], 1).dtype == torch.float32
        assert torch.index_copy(low, 0, torch.tensor([1]), wide[:1]).dtype == torch.float32
        assert torch.linalg.norm(low).dtype == torch.bfloat16 and torch.linalg.matrix_norm(low, "nuc").dtype == torch.float32
        assert torch.matrix_power(m @ m.t(), 2).dtype == torch.bfloat16
        assert F.bilinear(m, m, torch.randn(3, 6, 6)).dtype == torch.float32
        out, (h, c) = nn.LSTM(6, 5)(m[None])
        assert out.dtype == h.dtype == c.dtype == torch.bfloat16
        assert nn.GRU(6, 5)(m[None])[0].dtype == torch.float32


def test_cuda_names_take_their_own_arguments():
    with pytest.warns(UserWarning, match="CUDA is not available"), pytest.warns(FutureWarning, match="torch.cuda.amp.GradScaler"):
        scaler = torch.cuda.amp.GradScaler(2.0**10)
    assert not scaler.is_enabled()
    with pytest.warns(UserWarning, match="CUDA is not available"), pytest.warns(FutureWarning, match="torch.cuda.amp.autocast"):
        region = torch.cuda.amp.autocast()
    with region:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
