"""Strides of results and of gradients, ours beside PyTorch's, for operands in several memory formats: python tests/torch_compare/stride_cases.py [--show].

Holds the operands (`layouts`), the calls (`calls`) and `differences`. What is computed is compared elsewhere; here only where it lies.
"""
from __future__ import annotations

import sys
import warnings


def layouts(t, ndim, channels=4):
    """name → a fresh tensor [2, channels, 6(, 5(, 4))] of torch or strided with that layout."""
    shape = (2, channels, 6, 5, 4)[:ndim]
    base = lambda *shape: (t.arange(1, 1 + _count(shape)).reshape(shape) % 23 - 11.0) / 7
    made = {"contiguous": lambda: base(*shape)}
    if ndim >= 4:
        last = t.channels_last if ndim == 4 else t.channels_last_3d
        made["channels_last"] = lambda: base(*shape).contiguous(memory_format=last)
        made["one channel, last"] = lambda: base(shape[0], 1, *shape[2:]).contiguous(memory_format=last)
        made["1 x 1, last"] = lambda: base(*shape[:2], *(1,) * (ndim - 2)).contiguous(memory_format=last)
        made["one entry, last"] = lambda: base(1, *shape[1:]).contiguous(memory_format=last)
        made["window of last"] = lambda: base(shape[0], 2 * channels, *shape[2:]).contiguous(memory_format=last)[:, :channels]
    made["turned"] = lambda: base(*reversed(shape)).permute(*reversed(range(ndim)))
    made["swapped"] = lambda: base(shape[1], shape[0], *shape[2:]).transpose(0, 1)
    made["expanded batch"] = lambda: base(1, *shape[1:]).expand(shape)
    made["expanded channels"] = lambda: base(shape[0], 1, *shape[2:]).expand(shape)
    made["strided"] = lambda: base(*shape[:-1], 2 * shape[-1])[..., ::2]
    return made


def _count(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def _parameters(t, *shapes):
    return [(t.arange(1, 1 + _count(shape)).reshape(shape) % 5 - 2.0) / 4 for shape in shapes]


def calls(ndim):
    """name → function of (library, x) for operands of `ndim` dimensions, each [2, 4, 6(, 5(, 4))]."""
    n = ndim - 2
    F = lambda t: t.nn.functional
    by = lambda t, name: getattr(F(t), f"{name}{n}d")
    made = {}

    def add(name, function):
        made[name] = function

    # pointwise
    for name in "exp relu abs neg sigmoid tanh sqrt floor".split():
        add(name, lambda t, x, name=name: getattr(t, name)(x))
    for name in "gelu silu mish hardswish elu leaky_relu softplus relu6 hardtanh logsigmoid selu celu hardsigmoid softsign tanhshrink threshold".split():
        arguments = (0.5, 0.0) if name == "threshold" else ()
        add(name, lambda t, x, name=name, arguments=arguments: getattr(F(t), name)(x, *arguments))
    add("x + 1", lambda t, x: x + 1)
    add("x + x", lambda t, x: x + x)
    add("1 - x", lambda t, x: 1 - x)
    add("x / contiguous", lambda t, x: x / (x.contiguous() + 20))
    add("contiguous - x", lambda t, x: x.contiguous() - x)
    add("x * per channel", lambda t, x: x * _parameters(t, (1, x.shape[1], *(1,) * n))[0])
    add("per channel * x", lambda t, x: _parameters(t, (1, x.shape[1], *(1,) * n))[0] * x)
    add("x + row", lambda t, x: x + _parameters(t, (x.shape[-1],))[0])
    add("x + per position", lambda t, x: x + _parameters(t, (1, 1, *x.shape[2:]))[0])
    add("x * per entry", lambda t, x: x * _parameters(t, (x.shape[0], *(1,) * (ndim - 1)))[0])
    add("x * 0-d", lambda t, x: x * t.tensor(2.0))
    add("x > 0", lambda t, x: x > 0)
    add("where", lambda t, x: t.where(x > 0, x, x * 2))
    add("where scalar", lambda t, x: t.where(x > 0, x, 0.0))
    add("where contiguous", lambda t, x: t.where(x > 0, x.contiguous(), x))
    add("clamp", lambda t, x: x.clamp(-1, 1))
    add("lerp", lambda t, x: t.lerp(x, x.contiguous(), 0.3))
    add("addcmul", lambda t, x: t.addcmul(x, x, x.contiguous()))
    add("addcmul channel", lambda t, x: t.addcmul(_parameters(t, (x.shape[1], *(1,) * n))[0], x, x))
    add("pow", lambda t, x: x**2)
    add("masked_fill", lambda t, x: x.masked_fill(x > 0, 1.0))
    add("to float64", lambda t, x: x.to(t.float64))
    add("to bfloat16", lambda t, x: x.bfloat16())
    add("dropout", lambda t, x: F(t).dropout(x, 0.5, True))
    add("feature dropout", lambda t, x: by(t, "dropout")(x, 0.5, True))
    add("alpha_dropout", lambda t, x: F(t).alpha_dropout(x, 0.5, True))
    add("prelu", lambda t, x: F(t).prelu(x, _parameters(t, (x.shape[1],))[0]))
    add("glu", lambda t, x: F(t).glu(t.cat([x, x], 1), 1))
    add("maximum", lambda t, x: t.maximum(x, x.contiguous()))
    add("nan_to_num", lambda t, x: x.nan_to_num())
    # copies and fresh tensors
    for name in "empty_like zeros_like ones_like rand_like randn_like".split():
        add(name, lambda t, x, name=name: getattr(t, name)(x))
    add("full_like", lambda t, x: t.full_like(x, 2.0))
    add("clone", lambda t, x: x.clone())
    add("contiguous", lambda t, x: x.contiguous())
    add("to copy", lambda t, x: x.to(t.float32, copy=True))
    if ndim >= 4:
        last = lambda t: t.channels_last if ndim == 4 else t.channels_last_3d
        add("contiguous last", lambda t, x: x.contiguous(memory_format=last(t)))
        add("to last", lambda t, x: x.to(memory_format=last(t)))
        add("clone last", lambda t, x: x.clone(memory_format=last(t)))
        add("empty_like last", lambda t, x: t.empty_like(x, memory_format=last(t)))
    add("clone contiguous", lambda t, x: x.clone(memory_format=t.contiguous_format))
    add("new_zeros", lambda t, x: x.new_zeros(x.shape))
    add("cat channels", lambda t, x: t.cat([x, x], 1))
    add("cat batch", lambda t, x: t.cat([x, x, x], 0))
    add("cat last dim", lambda t, x: t.cat([x, x], -1))
    add("cat mixed", lambda t, x: t.cat([x, x.contiguous()], 1))
    add("cat mixed, first contiguous", lambda t, x: t.cat([x.contiguous(), x], 1))
    add("stack", lambda t, x: t.stack([x, x]))
    add("chunk", lambda t, x: x.chunk(2, 1)[1])
    add("flip", lambda t, x: x.flip(-1))
    add("roll", lambda t, x: x.roll(1, -1))
    add("pad", lambda t, x: F(t).pad(x, (1, 2)))
    add("pad all", lambda t, x: F(t).pad(x, (1, 1) * n, value=2.0))
    add("pad channels", lambda t, x: F(t).pad(x, (0, 0) * n + (1, 1)))
    add("pad nothing", lambda t, x: F(t).pad(x, (0, 0)))
    add("crop", lambda t, x: F(t).pad(x, (-1, -1)))
    for mode in ("reflect", "replicate", "circular"):
        add(f"pad {mode}", lambda t, x, mode=mode: F(t).pad(x, (1, 1) * n, mode=mode))
    add("index_select", lambda t, x: x.index_select(1, t.tensor([0, 0])))
    add("index by tensor", lambda t, x: x[t.tensor([0, 0])])
    add("repeat", lambda t, x: x.repeat(1, 2, *(1,) * n))
    add("cumsum", lambda t, x: x.cumsum(1))
    add("softmax", lambda t, x: x.softmax(1))
    add("log_softmax", lambda t, x: x.log_softmax(1))
    add("softmax last", lambda t, x: x.softmax(-1))
    add("sum channel", lambda t, x: x.sum(1))
    add("sum channel keepdim", lambda t, x: x.sum(1, keepdim=True))
    add("mean space keepdim", lambda t, x: x.mean(tuple(range(2, ndim)), keepdim=True))
    add("amax", lambda t, x: x.amax(1))
    add("max dim", lambda t, x: x.max(1))
    add("argmax", lambda t, x: x.argmax(1))
    add("sort", lambda t, x: x.sort(1))
    add("var", lambda t, x: x.var(1))
    add("normalize", lambda t, x: F(t).normalize(x, dim=1))
    add("layer_norm", lambda t, x: F(t).layer_norm(x, x.shape[-1:]))
    add("add_", lambda t, x: (x + 0).add_(1))
    # norms
    for training in (True, False):
        word = "training" if training else "running"
        add(f"batch_norm {word}", lambda t, x, training=training: F(t).batch_norm(x, *_parameters(t, (x.shape[1],)), _parameters(t, (x.shape[1],))[0].abs() + 1, *_parameters(t, (x.shape[1],), (x.shape[1],)), training=training))
        add(f"batch_norm plain {word}", lambda t, x, training=training: F(t).batch_norm(x, *_parameters(t, (x.shape[1],)), _parameters(t, (x.shape[1],))[0].abs() + 1, training=training))
    add("group_norm", lambda t, x: F(t).group_norm(x, 2 if x.shape[1] % 2 == 0 else 1, *_parameters(t, (x.shape[1],), (x.shape[1],))))
    add("group_norm plain", lambda t, x: F(t).group_norm(x, 1))
    add("instance_norm", lambda t, x: F(t).instance_norm(x, weight=_parameters(t, (x.shape[1],))[0]))
    add("local_response_norm", lambda t, x: F(t).local_response_norm(x, 3))
    # convolutions
    last = lambda t, w: w if ndim < 4 else w.contiguous(memory_format=t.channels_last if ndim == 4 else t.channels_last_3d)
    for word, form in (("", lambda t, w: w), (", weight last", last)) if ndim >= 4 else (("", lambda t, w: w),):
        weight = lambda t, *shape, form=form: form(t, _parameters(t, shape)[0])
        add(f"conv 3{word}", lambda t, x, w=weight: by(t, "conv")(x, w(t, 6, x.shape[1], *(3,) * n), padding=1))
        add(f"conv 3 bias{word}", lambda t, x, w=weight: by(t, "conv")(x, w(t, 6, x.shape[1], *(3,) * n), _parameters(t, (6,))[0], stride=2, padding=1))
        add(f"conv 1{word}", lambda t, x, w=weight: by(t, "conv")(x, w(t, 6, x.shape[1], *(1,) * n)))
        add(f"conv to one{word}", lambda t, x, w=weight: by(t, "conv")(x, w(t, 1, x.shape[1], *(3,) * n), padding=1))
        add(f"conv depthwise{word}", lambda t, x, w=weight: by(t, "conv")(x, w(t, x.shape[1], 1, *(3,) * n), padding=1, groups=x.shape[1]))
        add(f"conv dilated{word}", lambda t, x, w=weight: by(t, "conv")(x, w(t, 6, x.shape[1], *(2,) * n), padding=1, dilation=2))
        add(f"conv_transpose{word}", lambda t, x, w=weight: by(t, "conv_transpose")(x, w(t, x.shape[1], 6, *(2,) * n), stride=2))
    # pools
    add("max_pool", lambda t, x: by(t, "max_pool")(x, 3, 1, 1))
    add("max_pool indices", lambda t, x: by(t, "max_pool")(x, 2, 2, 1, return_indices=True))
    add("avg_pool", lambda t, x: by(t, "avg_pool")(x, 2, 1))
    add("avg_pool padded", lambda t, x: by(t, "avg_pool")(x, 3, 2, 1, count_include_pad=False))
    add("lp_pool", lambda t, x: by(t, "lp_pool")(x, 2, 2, 1))
    for size in (1, 2, 3):
        add(f"adaptive_avg_pool {size}", lambda t, x, size=size: by(t, "adaptive_avg_pool")(x, size))
        add(f"adaptive_max_pool {size}", lambda t, x, size=size: by(t, "adaptive_max_pool")(x, size, return_indices=True))
    # resampling
    for mode in {3: ("nearest", "linear", "nearest-exact", "area"), 4: ("nearest", "bilinear", "bicubic", "nearest-exact", "area"), 5: ("nearest", "trilinear", "nearest-exact", "area")}[ndim]:
        add(f"interpolate {mode}", lambda t, x, mode=mode: F(t).interpolate(x, scale_factor=2, mode=mode))
        add(f"interpolate {mode} size", lambda t, x, mode=mode: F(t).interpolate(x, size=3, mode=mode))
    if ndim == 4:
        add("antialias", lambda t, x: F(t).interpolate(x, size=3, mode="bilinear", antialias=True))
        add("pixel_shuffle", lambda t, x: F(t).pixel_shuffle(t.cat([x] * 4, 1), 2))
        add("pixel_unshuffle", lambda t, x: F(t).pixel_unshuffle(F(t).pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2)), 2))
        add("channel_shuffle", lambda t, x: F(t).channel_shuffle(t.cat([x] * 2, 1), 2))
        add("unfold", lambda t, x: F(t).unfold(x, 1))
        for mode in ("bilinear", "nearest", "bicubic"):
            add(f"grid_sample {mode}", lambda t, x, mode=mode: F(t).grid_sample(x, _parameters(t, (x.shape[0], 3, 3, 2))[0], mode=mode, align_corners=False))
    if ndim == 5:
        add("grid_sample", lambda t, x: F(t).grid_sample(x, _parameters(t, (x.shape[0], 3, 3, 3, 3))[0], align_corners=False))
    return made


def _strides(t, function, make, gradient):
    """The strides of each result and of the gradient, or the error's name."""
    try:
        x = make()
        if gradient:
            x = x.detach().requires_grad_()
        results = function(t, x)
        results = results if isinstance(results, (tuple, list)) else (results,)
        found = [(tuple(r.shape), tuple(r.stride())) for r in results]
        if gradient and results[0].requires_grad:
            t.manual_seed(0)
            (g,) = t.autograd.grad(results[0].sum() if gradient == "sum" else (results[0] * results[0].detach()).sum(), x)
            found.append(("gradient", tuple(g.stride())))
        return found
    except Exception as error:  # what only one of them refuses is a difference
        return type(error).__name__


def differences(ours, torch, ndim, names=None, gradient="product"):
    """[(call, layout, PyTorch's, ours)] where the strides are not the same."""
    found = []
    theirs, mine = layouts(torch, ndim), layouts(ours, ndim)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in calls(ndim).items():
            if names is not None and name not in names:
                continue
            for layout in theirs:
                expected, actual = (_strides(t, function, make[layout], gradient) for t, make in ((torch, theirs), (ours, mine)))
                if expected != actual:
                    found.append((name, layout, expected, actual))
    return found


if __name__ == "__main__":
    import torch

    import strided

    total = 0
    for ndim in (3, 4, 5):
        rows = differences(strided, torch, ndim)
        total += len(rows)
        print(f"{ndim}-d: {len(rows)} differences over {len(calls(ndim))} calls of {len(layouts(torch, ndim))} layouts")
        by_name: dict = {}
        for name, layout, expected, actual in rows:
            by_name.setdefault(name, []).append(layout)
            if "--show" in sys.argv:
                print(f"  {name} | {layout}\n      PyTorch {expected}\n      ours    {actual}")
        for name, where in by_name.items():
            print(f"  {name}: {', '.join(where)}")
    sys.exit(total > 0)
