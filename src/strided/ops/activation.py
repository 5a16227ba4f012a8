"""Activation functions, under the names of `torch.nn.functional`: one expression each, and the functions that read their options."""
from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..kernels import expr as E
from .elementwise import Pointwise, with_flops
from .table import TABLE, operator

# ---- expressions -----------------------------------------------------------------------------------------------------------------------

_gelu_erf = Pointwise("gelu", lambda x: x * E.ndtr(x), 1, node="Gelu")
_gelu_tanh = Pointwise("gelu", lambda x: 0.5 * x * (1 + E.tanh(x * (math.sqrt(2 / math.pi) + 0.044715 * math.sqrt(2 / math.pi) * (x * x)))), 1, node="Gelu")
_silu = Pointwise("silu", lambda x: x / (1 + E.exp(-x)), 1, node="Silu")
_silu.gradient = lambda i: lambda g, x, y: g * (E.sigmoid(x) * (1 + x * (1 - E.sigmoid(x))))
_mish = Pointwise("mish", lambda x: x * E.tanh(E.log1p(E.exp(-abs(x))) + E.maximum(x, 0)), 1, node="Mish")
_mish.gradient = lambda i: lambda g, x, y: g * (
    E.tanh(E.log1p(E.exp(-abs(x))) + E.maximum(x, 0))
    + x * E.sigmoid(x) * (1 - E.tanh(E.log1p(E.exp(-abs(x))) + E.maximum(x, 0)) * E.tanh(E.log1p(E.exp(-abs(x))) + E.maximum(x, 0)))
)
_softplus = Pointwise("softplus", lambda x, b, t: E.where(x * b > t, x, E.log1p(E.exp(x * b)) / b), 3, node="Softplus")
_softplus.gradient = lambda i: lambda g, x, b, t, y: E.where(x * b > t, g, g * E.sigmoid(x * b))
_logsigmoid = Pointwise("log_sigmoid", lambda x: E.minimum(x, 0) - E.log1p(E.exp(-abs(x))), 1, node="LogSigmoid")
_logsigmoid.row_major = True
_logsigmoid.gradient = lambda i: lambda g, x, y: g * E.sigmoid(-x)
_leaky_relu = Pointwise("leaky_relu", lambda x, s: E.where(x > 0, x, x * s), 2, node="LeakyRelu")
_leaky_relu.gradient = lambda i: lambda g, x, s, y: E.where(x > 0, g, g * s)
_prelu = Pointwise("prelu", lambda x, s: E.where(x > 0, x, x * s), 2, node="PreluKernel")
_elu = Pointwise("elu", lambda x, a, s, k: E.where(x > 0, x * s, E.expm1(x * k) * (a * s)), 4, node="Elu")
_hardtanh = Pointwise("hardtanh", lambda x, low, high: E.clamp(x, low, high), 3, node="Hardtanh")
_hardtanh.gradient = lambda i: lambda g, x, low, high, y: E.where((x <= low) | (x >= high), 0.0, g)
_hardswish = Pointwise("hardswish", lambda x: x * E.clamp(x + 3, 0, 6) / 6, 1, node="Hardswish")
_hardswish.gradient = lambda i: lambda g, x, y: E.where(x <= -3, 0.0, E.where(x < 3, g * (x / 3 + 0.5), g))
_hardsigmoid = Pointwise("hardsigmoid", lambda x: E.clamp(x + 3, 0, 6) / 6, 1, node="Hardsigmoid")
_hardsigmoid.gradient = lambda i: lambda g, x, y: E.where((x > -3) & (x < 3), g / 6, 0.0)
_softshrink = Pointwise("softshrink", lambda x, t: E.where(x > t, x - t, E.where(x < -t, x + t, x * 0)), 2, node="Softshrink")
_softshrink.gradient = lambda i: lambda g, x, t, y: E.where((x >= -t) & (x <= t), 0.0, g)
_hardshrink = Pointwise("hardshrink", lambda x, t: E.where((x >= -t) & (x <= t), 0, x), 2, node="Hardshrink")
_hardshrink.gradient = lambda i: lambda g, x, t, y: E.where((x >= -t) & (x <= t), 0.0, g)
_threshold = Pointwise("threshold", lambda x, t, v: E.where(x <= t, v, x), 3, node="Threshold")
_threshold.gradient = lambda i: lambda g, x, t, v, y: E.where(x <= t, 0.0, g)
_tanhshrink = Pointwise("tanhshrink", lambda x: x - E.tanh(x), 1, kind="float", node="Tanhshrink")
_softsign = Pointwise("softsign", lambda x: x / (1 + abs(x)), 1, kind="float", node="Div")
_softsign.saves_result = False
_relu6 = Pointwise("relu6", lambda x: E.clamp(x, 0, 6), 1, node="Hardtanh")
_relu6.gradient = lambda i: lambda g, x, y: E.where((x <= 0) | (x >= 6), 0.0, g)
_selu = Pointwise("selu", lambda x: 1.0507009873554804934193349852946 * E.where(x > 0, x, 1.6732632423543772848170429916717 * E.expm1(x)), 1, node="Elu")
_celu = Pointwise("celu", lambda x, a: E.where(x > 0, x, a * E.expm1(x / a)), 2, node="Celu")


# ---- functions -----------------------------------------------------------------------------------------------------------------------------

_nn: dict[str, Any] = {"method": False, "function": True, "namespace": "nn.functional"}


@operator("gelu", flops=lambda args, kwargs, result: (_gelu_tanh if "tanh" in (*args[1:], kwargs.get("approximate")) else _gelu_erf).flops * result.numel(), **_nn)
def gelu(input, approximate="none"):
    """x * Φ(x), the Gaussian error linear unit; approximate="tanh" uses the tanh form."""
    if approximate == "none":
        return _gelu_erf(input)
    if approximate == "tanh":
        return _gelu_tanh(input)
    raise RuntimeError("approximate argument must be either none or tanh.")


_IN_DTYPE = frozenset(["hardtanh", "threshold"])  # options take the input's dtype, integers too


def _activation(name, op, *, defaults=(), **facts):
    """An activation whose options are numbers: `name(input, *options, inplace=False)`."""
    names = [n for n, _ in defaults]

    @operator(name, flops=with_flops(op), **{**_nn, **facts})
    def call(input, *args, inplace=False, **kwargs):
        if len(args) > len(names):
            inplace, args = args[len(names)], args[: len(names)]
        values = dict(defaults)
        values.update(zip(names, args))
        for key, value in kwargs.items():
            if key not in values:
                raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
            values[key] = value
        if name == "softshrink" and values["lambd"] < 0:
            top = dtypes.finfo(input.dtype).max
            raise RuntimeError(f"lambda must be in range [0, {top:g}] for input dtype {input.dtype.scalar_name}, but found {values['lambd']:g}")
        options = [(float if input.is_floating_point() else int)(v) for v in values.values()] if name in _IN_DTYPE or input.is_floating_point() else [*values.values()]
        return op.into(input, *options) if inplace else op(input, *options)

    call.__doc__ = f"The activation {name}, elementwise" + (f"; options {', '.join(f'{n}={v}' for n, v in defaults)}." if defaults else ".")
    TABLE[name].doc = call.__doc__
    return call


silu = _activation("silu", _silu)
mish = _activation("mish", _mish)
softplus = _activation("softplus", _softplus, defaults=(("beta", 1.0), ("threshold", 20.0)))
logsigmoid = _activation("logsigmoid", _logsigmoid)
leaky_relu = _activation("leaky_relu", _leaky_relu, defaults=(("negative_slope", 0.01),))
hardtanh = _activation("hardtanh", _hardtanh, defaults=(("min_val", -1.0), ("max_val", 1.0)))
hardswish = _activation("hardswish", _hardswish)
hardsigmoid = _activation("hardsigmoid", _hardsigmoid)
softshrink = _activation("softshrink", _softshrink, defaults=(("lambd", 0.5),))
hardshrink = _activation("hardshrink", _hardshrink, defaults=(("lambd", 0.5),))
threshold = _activation("threshold", _threshold, defaults=(("threshold", 0.0), ("value", 0.0)))
tanhshrink = _activation("tanhshrink", _tanhshrink)
softsign = _activation("softsign", _softsign)
relu6 = _activation("relu6", _relu6)
selu = _activation("selu", _selu)
celu = _activation("celu", _celu, defaults=(("alpha", 1.0),))


@operator("elu", flops=with_flops(_elu), **_nn)
def elu(input, alpha=1.0, inplace=False):
    """x where positive, alpha * (exp(x) - 1) elsewhere."""
    options = (float(alpha), 1.0, 1.0)
    return _elu.into(input, *options) if inplace else _elu(input, *options)


@operator("prelu", autocast="lower", flops=with_flops(_prelu), method=True, function=True)
def prelu(input, weight):
    """x where positive, weight * x elsewhere; weight: one number a channel (dimension 1), or one in all."""
    if weight.numel() != 1:
        if not input.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.numel() != channels:
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {weight.numel()} and channel size = {channels}.")
        if weight.ndim > 1:
            raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
        weight = TABLE["view"].call(weight, [1, -1, *[1] * (input.ndim - 2)])  # [1, C, 1, …]
    elif weight.ndim:
        weight = TABLE["view"].call(weight, [1] * input.ndim)
    if weight.dtype is not input.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype.scalar_name} and {weight.dtype.scalar_name}\n  Convert one of them: weight.to({input.dtype}).")
    return _prelu(input, weight)
