"""Names that PyTorch keeps beside others or for older code: what they compute, warn and raise, in both libraries."""
import importlib
import warnings

import pytest

torch = pytest.importorskip("torch")
import strided

BOTH = (torch, strided)


def both(call):
    """The values and warnings of a call on both sides."""
    found = []
    for lib in BOTH:
        lib.manual_seed(0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = call(lib)
        result = result if isinstance(result, (tuple, list)) else (result,)
        found.append(([r.detach().tolist() if isinstance(r, lib.Tensor) else r for r in result], [(w.category, str(w.message)) for w in caught]))
    return found


def agree(call):
    (a, warned_a), (b, warned_b) = both(call)
    assert len(a) == len(b) and warned_a == warned_b
    for x, y in zip(a, b):
        x, y = torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
        assert x.shape == y.shape and torch.allclose(x, y, rtol=1e-5, atol=1e-6)


def data(lib, *shape):
    n = 1
    for s in shape:
        n *= s
    return (lib.arange(n, dtype=lib.float32) * 0.7).sin().reshape(shape)


SAME = {
    **{f"init.{name}": (lambda lib, name=name: getattr(lib.nn.init, name)(lib.empty(4, 6))) for name in
       "kaiming_normal kaiming_uniform normal uniform xavier_normal xavier_uniform eye".split()},
    "init.constant": lambda lib: lib.nn.init.constant(lib.empty(3), 2.5),
    "init.dirac": lambda lib: lib.nn.init.dirac(lib.empty(3, 4, 3)),
    **{f"CrossMapLRN2d {size}": (lambda lib, size=size: lib.nn.CrossMapLRN2d(size, 0.1, 0.6, 2)(data(lib, 2, 7, 3, 4))) for size in (1, 2, 3, 4, 5, 6)},
    "max_pool1d": lambda lib: lib.nn.functional.max_pool1d_with_indices(data(lib, 2, 3, 9), 3, 2),
    "max_pool2d": lambda lib: lib.nn.functional.max_pool2d_with_indices(data(lib, 2, 3, 9, 8), 2, padding=1, ceil_mode=True),
    "max_pool3d": lambda lib: lib.nn.functional.max_pool3d_with_indices(data(lib, 1, 2, 5, 6, 4), 2),
    "adaptive_max_pool1d": lambda lib: lib.nn.functional.adaptive_max_pool1d_with_indices(data(lib, 2, 3, 9), 4),
    "adaptive_max_pool2d": lambda lib: lib.nn.functional.adaptive_max_pool2d_with_indices(data(lib, 2, 3, 9, 7), (4, 3)),
    "adaptive_max_pool3d": lambda lib: lib.nn.functional.adaptive_max_pool3d_with_indices(data(lib, 1, 2, 5, 6, 4), 2),
    "conv_tbc": lambda lib: lib.nn.functional.conv_tbc(data(lib, 7, 2, 3), data(lib, 3, 3, 5), data(lib, 5), 1),
    "native_channel_shuffle": lambda lib: lib.nn.functional.native_channel_shuffle(data(lib, 2, 6, 2, 2), 3),
    "grad.conv1d_input": lambda lib: lib.nn.grad.conv1d_input((2, 3, 9), data(lib, 4, 3, 3), data(lib, 2, 4, 5), 2, 1),
    "grad.conv1d_weight": lambda lib: lib.nn.grad.conv1d_weight(data(lib, 2, 3, 9), (4, 3, 3), data(lib, 2, 4, 5), 2, 1),
    "grad.conv2d_input": lambda lib: lib.nn.grad.conv2d_input((1, 4, 6, 6), data(lib, 6, 2, 3, 3), data(lib, 1, 6, 4, 4), groups=2),
    "grad.conv2d_weight": lambda lib: lib.nn.grad.conv2d_weight(data(lib, 1, 4, 6, 6), (6, 2, 3, 3), data(lib, 1, 6, 4, 4), groups=2),
    "grad.conv3d_input": lambda lib: lib.nn.grad.conv3d_input((1, 2, 5, 5, 5), data(lib, 3, 2, 2, 2, 2), data(lib, 1, 3, 4, 4, 4)),
    "grad.conv3d_weight": lambda lib: lib.nn.grad.conv3d_weight(data(lib, 1, 2, 5, 5, 5), (3, 2, 2, 2, 2), data(lib, 1, 3, 4, 4, 4)),
    "grouped_mm rows": lambda lib: lib.nn.functional.grouped_mm(data(lib, 8, 16).bfloat16(), data(lib, 2, 16, 8).bfloat16(), offs=lib.tensor([3, 8], dtype=lib.int32)).float(),
    "grouped_mm batches": lambda lib: lib.nn.functional.grouped_mm(data(lib, 2, 8, 16).bfloat16(), data(lib, 2, 16, 8).bfloat16()).float(),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_same_values_and_warnings(name):
    if name.startswith("grouped_mm"):
        (a, _), (b, _) = both(SAME[name])
        assert torch.allclose(torch.tensor(a), torch.tensor(b), rtol=2e-2, atol=2e-2)
    else:
        agree(SAME[name])


def test_cross_map_normalisation_has_the_gradient_of_its_result():
    net = strided.nn.CrossMapLRN2d(4, 0.1, 0.6, 2).double()
    assert repr(net) == repr(torch.nn.CrossMapLRN2d(4, 0.1, 0.6, 2))
    assert strided.autograd.gradcheck(net, (data(strided, 1, 7, 2, 2).double().requires_grad_(),))


def test_clip_grad_norm_and_container():
    def clipped(lib):
        p = lib.ones(3, requires_grad=True)
        p.grad = lib.full((3,), 2.0)
        return lib.nn.utils.clip_grad_norm([p], 1.0), p.grad

    agree(clipped)
    agree(lambda lib: [len(list(lib.nn.Container(a=lib.nn.Linear(2, 2)).parameters()))])


@pytest.mark.parametrize("lib", BOTH, ids=lambda lib: lib.__name__)
def test_what_holds_in_both(lib):
    nn = lib.nn
    assert nn.factory_kwargs({"dtype": lib.float64, "factory_kwargs": {"device": "cpu"}}) == {"dtype": lib.float64, "device": "cpu"}
    assert nn.factory_kwargs(None) == {}
    with pytest.raises(TypeError, match="unexpected kwargs"):
        nn.factory_kwargs({"bias": True})
    with pytest.raises(TypeError, match="dtype specified twice"):
        nn.factory_kwargs({"dtype": lib.float64, "factory_kwargs": {"dtype": lib.float64}})
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ConvTranspose2d(4, 2, 2))
    assert nn.utils.convert_conv2d_weight_memory_format(net, lib.channels_last) is net
    assert net[0].weight.is_contiguous(memory_format=lib.channels_last) and net[1].weight.is_contiguous(memory_format=lib.channels_last)
    assert nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(2, 2, 2), lib.channels_last_3d).weight.stride()[1] == 1
    seen = []
    module = importlib.import_module(f"{lib.__name__}.nn.modules.module")
    handles = [getattr(module, f"register_module_{kind}_registration_hook")(lambda m, n, v, kind=kind: seen.append((kind, n))) for kind in ("parameter", "buffer", "module")]
    nn.Sequential(nn.BatchNorm1d(2))
    for handle in handles:
        handle.remove()
    nn.Linear(1, 1)
    assert seen == [("parameter", "weight"), ("parameter", "bias"), ("buffer", "running_mean"), ("buffer", "running_var"), ("buffer", "num_batches_tracked"), ("module", "0")]
    state = nn.Sequential(nn.Linear(2, 3)).state_dict()
    importlib.import_module(f"{lib.__name__}.nn.modules.utils").consume_prefix_in_state_dict_if_present(state, "0.")
    assert list(state) == ["weight", "bias"]
    nn.Linear(2, 3).load_state_dict(state)
    steps = []
    optimizer = importlib.import_module(f"{lib.__name__}.optim.optimizer")
    handles = [optimizer.register_optimizer_step_pre_hook(lambda o, a, k: steps.append("before")), optimizer.register_optimizer_step_post_hook(lambda o, a, k: steps.append("after"))]
    lib.optim.SGD([lib.ones(1, requires_grad=True)], lr=1.0).step()
    for handle in handles:
        handle.remove()
    lib.optim.SGD([lib.ones(1, requires_grad=True)], lr=1.0).step()
    assert steps == ["before", "after"]


@pytest.mark.parametrize("name", [
    "utils.data.sampler.SubsetRandomSampler", "utils.data.dataset.Subset", "utils.data.dataset.random_split", "utils.data.dataloader.default_collate",
    "utils.data.dataloader.DataLoader", "utils.data._utils.collate.default_collate", "optim.adamw.AdamW", "optim.rmsprop.RMSprop", "optim.asgd.ASGD",
])  # fmt: skip
def test_places(name):
    module, _, attribute = name.rpartition(".")
    for lib in BOTH:
        thing = getattr(importlib.import_module(f"{lib.__name__}.{module}"), attribute)
        assert thing.__name__ == attribute


@pytest.mark.parametrize("size", [(4, None), (None, 3), (None, None), (1, None), (4, 3), 5, (8, 6)])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_adaptive_pools_keep_the_memory_format(size, last, kind):
    found = []
    for lib in BOTH:
        x = data(lib, 2, 3, 8, 6)
        x = x.contiguous(memory_format=lib.channels_last) if last else x
        y = getattr(lib.nn.functional, f"adaptive_{kind}_pool2d")(x, size)
        assert y.data_ptr() != x.data_ptr()
        found.append((tuple(y.shape), y.stride(), y.tolist()))
    assert found[0][:2] == found[1][:2] and torch.allclose(torch.tensor(found[0][2]), torch.tensor(found[1][2]), atol=1e-6)
