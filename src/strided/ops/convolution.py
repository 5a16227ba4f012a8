"""Convolution: one kernel forward, and gradients that are convolutions and products again.

Holds `convolution` (plain and transposed, up to three spatial dimensions), its gradient, and `windows`, the view that shows every window of a tensor.
Checks of arguments and the functions users call are nn/functions/conv.py's; the kernel is kernels/conv.py.
"""
from __future__ import annotations

import math
from itertools import product

from ..autograd import backward, record, tracking
from ..dispatch import PlanCache, launch_new
from ..kernels import conv as kernels
from ..kernels import expr as E
from ..kernels.native import new_storage
from ..layout import Layout
from ..tensor import Spec, Tensor, wrap
from .folding import Fold, plain
from .matmul import matmul
from .table import TABLE, operator


def windows(x, kernel, stride, dilation):
    """Every window over the last n dimensions, as a view (kernel, stride and dilation are tuples): [.., S₁.., Sₙ] → [.., O₁.., Oₙ, K₁.., Kₙ]."""
    n = len(kernel)
    first = x.dim() - n
    if stride == kernel and all(d == 1 for d in dilation):  # windows that tile the input: a view whose gradient is a view again
        for d, k in enumerate(kernel):
            x = x.narrow(first + 2 * d, 0, x.size(first + 2 * d) // k * k).unflatten(first + 2 * d, (-1, k))  # [.., O_d, K_d, ..]
        return x.permute(*range(first), *range(first, first + 2 * n, 2), *range(first + 1, first + 2 * n, 2))
    for d in range(n):
        x = x.unfold(first + d, (kernel[d] - 1) * dilation[d] + 1, stride[d])  # [.., O_d, .., reach]
        if dilation[d] != 1:
            x = x[..., :: dilation[d]]  # [.., O_d, .., K_d]
    return x


def spread(x, stride):
    """Puts stride−1 zeros between neighbours in the last n dimensions: [.., S] → [.., (S−1)·stride + 1]."""
    n = len(stride)
    for d, step in zip(range(x.dim() - n, x.dim()), stride):
        if step == 1:
            continue
        size = x.size(d)
        x = x.unsqueeze(d + 1)  # [.., S, 1, ..]
        x = _pad(x, [0, 0] * (x.dim() - d - 2) + [0, step - 1])  # [.., S, stride, ..]
        x = x.flatten(d, d + 1).narrow(d, 0, (size - 1) * step + 1)
    return x


def _pad(x, amounts):
    """`amounts` as constant_pad_nd takes them: (before, after) of the last dimension first; negative ones cut off."""
    return TABLE["constant_pad_nd"].call(x, amounts) if any(amounts) else x


def _around(before, after):
    return [p for pair in reversed(list(zip(before, after))) for p in pair]


# ---- forward ----------------------------------------------------------------------------------------------------------------------

_plans = PlanCache()
_each_channel = Fold("convolution", lambda x, w: E.rsum(x * w), 2)
_each_channel_bias = Fold("convolution", lambda x, w, b: E.rsum(x * w) + b, 3)


def _flops(args, kwargs, result) -> int:
    input, weight, bias, transposed = args[0], args[1], args[2], args[6]
    products = (input if transposed else result).numel() * weight.numel() // max(weight.shape[0], 1)
    return 2 * products + (result.numel() if bias is not None else 0)


@operator("convolution", method=False, autocast="lower", flops=_flops)
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Cross-correlation of [N, C, S..] with [F, C/groups, K..] (+ bias [F]) → [N, F, O..], or its transpose: [N, C, S..] with [C, F/groups, K..].

    O = (S + 2·padding − dilation·(K−1) − 1)//stride + 1; transposed: O = (S−1)·stride − 2·padding + dilation·(K−1) + output_padding + 1.
    """
    n = input.ndim - 2
    stride, padding, dilation, output_padding = (tuple(v) * (n if len(v) == 1 else 1) for v in (stride, padding, dilation, output_padding))
    if transposed:
        sizes = [(s - 1) * t - 2 * p + d * (k - 1) + e + 1 for s, t, p, d, k, e in zip(input.shape[2:], stride, padding, dilation, weight.shape[2:], output_padding)]
        if any(size < 1 for size in sizes):
            raise RuntimeError(
                f"Given input size per channel: ({' x '.join(map(str, input.shape[2:]))}). Calculated output size per channel: ({' x '.join(map(str, sizes))}). "
                "Output size is too small\n  (size - 1)*stride - 2*padding + dilation*(kernel - 1) + output_padding + 1 must be positive: less padding leaves more."
            )
        out = _input_gradient(input, weight, sizes, stride, padding, dilation, groups)
        return out if bias is None else (out + bias.reshape(-1, *(1,) * n)).to(input.dtype)
    return correlate(input, weight, bias, stride, padding, dilation, groups)


def correlate(x, weight, bias, stride, padding, dilation, groups):
    """The plain convolution for tuples of steps, recorded."""
    if x.dtype.name not in kernels.DTYPES or len(stride) > 3:
        return _by_products(_pad(x, _around(padding, padding)), weight, bias, stride, dilation, groups)
    wanted = tracking(x, weight, *(() if bias is None else (bias,)))
    padded = plain(x)
    padded = _pad(padded, _around(padding, padding))
    out = _correlate(padded, plain(weight).contiguous(), None if bias is None else plain(bias).contiguous(), stride, dilation, groups)
    if wanted:
        record(ConvolutionBackward0, (x, weight, bias), out, (x, weight), stride=stride, padding=padding, dilation=dilation, groups=groups)
    return out


def _correlate(x, weight, bias, stride, dilation, groups):
    if x.spec.is_meta or weight.spec.is_meta:
        spec = _result(x, weight, stride, dilation)
        return TABLE["empty"].call(spec.shape, dtype=spec.dtype, device="meta")
    if groups == x.shape[1] == weight.shape[0] and groups > 1:  # one window and one kernel a channel: no product to speak of
        return _depthwise(x, weight, bias, stride, dilation)
    key = x.spec, weight.spec, stride, dilation, groups, bias is None
    plan = _plans.get(key)
    if plan is None:
        spec = _result(x, weight, stride, dilation)
        built = kernels.build_conv(x.dtype, spec.layout, x.spec.layout, weight.spec.layout, stride, dilation, groups, bias is not None, spec.nbytes)
        plan = _plans.put(key, (spec, *built))
    spec, descriptor, scratch = plan
    room = new_storage(scratch)
    mem = launch_new(descriptor, x.ptr, weight.ptr, 0 if bias is None else bias.ptr, room.data)
    return wrap(spec, mem, mem.data)


def _result(x, weight, stride, dilation) -> Spec:
    places = [(s - d * (k - 1) - 1) // t + 1 for s, d, k, t in zip(x.shape[2:], dilation, weight.shape[2:], stride)]
    return Spec.of(Layout.contiguous((x.shape[0], weight.shape[0], *places)), x.dtype, x.device)


def _window_view(x, kernel, places, stride, dilation) -> Tensor:
    """[N, C, S..] → [N, C, O.., K..], unrecorded."""
    steps = x.spec.strides[2:]
    strides = (*x.spec.strides[:2], *(s * t for s, t in zip(steps, stride)), *(s * d for s, d in zip(steps, dilation)))
    return wrap(Spec.of(Layout.of((*x.shape[:2], *places, *kernel), strides), x.dtype, x.device), x.mem, x.ptr)


def _depthwise(x, weight, bias, stride, dilation):
    n = len(stride)
    kernel, places = tuple(weight.shape[2:]), _result(x, weight, stride, dilation).shape[2:]
    operands = [_window_view(x, kernel, places, stride, dilation), weight.reshape(1, -1, *(1,) * n, *kernel)]  # [N, C, O.., K..], [1, C, 1.., K..]
    fold = _each_channel
    if bias is not None:
        operands.append(bias.reshape(1, -1, *(1,) * (2 * n)))
        fold = _each_channel_bias
    return fold(tuple(operands), tuple(range(2 + n, 2 + 2 * n)), (x.dtype,))


def _by_products(x, weight, bias, stride, dilation, groups):
    """The same for dtypes the kernel does not take: windows laid out, and one product a group. x is padded already."""
    n, batch, features = len(stride), x.size(0), weight.size(0)
    kernel = tuple(weight.shape[2:])
    view = windows(x, kernel, stride, dilation)  # [N, C, O.., K..]
    sizes = view.shape[2 : 2 + n]
    view = view.permute(0, 1, *range(2 + n, 2 + 2 * n), *range(2, 2 + n))  # [N, C, K.., O..]
    columns = view.reshape(batch, groups, weight.size(1) * math.prod(kernel), math.prod(sizes))  # [N, g, C/g·K, O]
    rows = weight.reshape(groups, features // groups, -1)  # [g, F/g, C/g·K]
    narrow = bias is not None and x.dtype.itemsize <= 2 and x.dtype.is_floating_point  # rounded after its bias is added, not before
    if groups == 1 and narrow:
        return TABLE["baddbmm"].call(bias.reshape(-1, 1), rows.expand(batch, -1, -1), columns[:, 0]).reshape(batch, features, *sizes)  # [N, F, O]
    out = matmul(rows[0], columns[:, 0]) if groups == 1 else matmul(rows.float(), columns.float()) if narrow else matmul(rows, columns)
    out = out.reshape(batch, features, *sizes)  # [N, g, F/g, O] or [N, F, O] → [N, F, O..]
    return out if bias is None else (out + bias.reshape(-1, *(1,) * n)).to(x.dtype)


# ---- gradients --------------------------------------------------------------------------------------------------------------------


@backward("Convolution", saved_names=("input", "weight"))
def ConvolutionBackward0(node, g):
    x, weight = node.saved
    d_input = d_weight = d_bias = None
    arguments = node.stride, node.padding, node.dilation, node.groups
    if node.needs[0]:
        d_input = _input_gradient(g, weight, x.shape[2:], *arguments)
    if node.needs[1]:
        d_weight = _weight_gradient(x, weight, g, *arguments)
    if node.needs[2]:
        d_bias = g.sum((0, *range(2, g.ndim)))
    return d_input, d_weight, d_bias


def _turned(weight, groups):
    """The kernel turned round, with its channels swapped within each group: [F, C/g, K..] → [C, F/g, K..]."""
    n = weight.ndim - 2
    w = weight.flip(*range(2, 2 + n)).reshape(groups, weight.size(0) // groups, *weight.shape[1:]).transpose(1, 2)  # [g, C/g, F/g, K..]
    return w.reshape(groups * weight.size(1), weight.size(0) // groups, *weight.shape[2:])


def _input_gradient(g, weight, sizes, stride, padding, dilation, groups):
    """[N, F, O..] → [N, C, sizes..]: what each element of the input is multiplied by. A convolution with the kernel turned round.

    With a stride, elements of the input meet only every stride-th element of the kernel: those of one phase are a convolution of their own.
    """
    n = len(stride)
    weight = _turned(weight, groups)
    unit = (1,) * n
    if all(s == 1 for s in stride) or any(d != 1 for d, s in zip(dilation, stride) if s != 1):
        g = spread(g, stride)  # [N, F, (O−1)·stride + 1]
        before = [d * (k - 1) - p for k, d, p in zip(weight.shape[2:], dilation, padding)]
        after = [s + d * (k - 1) - size - b for s, d, k, size, b in zip(sizes, dilation, weight.shape[2:], g.shape[2:], before)]
        return correlate(_pad(g, _around(before, after)), weight, None, unit, (0,) * n, dilation, groups)
    phases = []
    for phase in product(*map(range, stride)):
        phases.append(_phase(g, weight, phase, sizes, stride, padding, dilation, groups))  # [N, C, M..] or None where no element meets it
    out = TABLE["new_zeros"].call(g, (g.size(0), weight.size(0), *sizes))
    for phase, part in zip(product(*map(range, stride)), phases):
        if part is not None:
            out[(slice(None), slice(None), *(slice(r, None, s) for r, s in zip(phase, stride)))] = part
    if tracking(g, weight) and not tracking(out):  # nothing meets anything: zeros, whose gradients are zeros
        out = out + (g[:0].sum() + weight[:0].sum())
    return out


def _phase(g, weight, phase, sizes, stride, padding, dilation, groups):
    """The gradient of the input's elements phase, phase + stride, …: `weight` is turned round already."""
    taps, before, after, steps = [], [], [], []
    for r, size, s, p, d, k, o in zip(phase, sizes, stride, padding, dilation, weight.shape[2:], g.shape[2:]):
        count = -(-(size - r) // s)  # elements of the phase
        first = (r + p) % s  # of the kernel as it was; then every s-th
        taps_here = -(-(k - first) // s)
        if s == 1:  # beside strided dimensions: as without a stride, dilation included
            first, taps_here = 0, k
        if count <= 0 or taps_here <= 0:
            return None
        reach = (taps_here - 1) * (d if s == 1 else 1)
        shift = (r + p - first) // s
        last = k - 1 - first  # the same element in the kernel turned round
        taps.append(slice(last - (taps_here - 1) * s, last + 1, s))
        before.append(reach - shift)
        after.append(count + reach - o - before[-1])
        steps.append(d if s == 1 else 1)
    part = weight[(slice(None), slice(None), *taps)]
    n = len(stride)
    return correlate(_pad(g, _around(before, after)), part, None, (1,) * n, (0,) * n, tuple(steps), groups)


def _weight_gradient(x, weight, g, stride, padding, dilation, groups):
    """[F, C/g, K..]: the product of the result's gradients and the windows, summed over batch and positions."""
    n, kernel = len(stride), tuple(weight.shape[2:])
    x = _pad(x, _around(padding, padding))
    if groups == x.shape[1] == weight.shape[0] and groups > 1 and not tracking(x, g) and not x.spec.is_meta:
        view = _window_view(x, kernel, g.shape[2:], stride, dilation)  # [N, C, O.., K..]
        spread_g = g.reshape(*g.shape, *(1,) * n)
        return _each_channel((view, spread_g), (0, *range(2, 2 + n)), (x.dtype,)).reshape(weight.shape)  # [C, K..]
    view = windows(x, kernel, stride, dilation)  # [N, C, O'.., K..]: positions beyond the result's never happen
    view = view.permute(1, *range(2 + n, 2 + 2 * n), 0, *range(2, 2 + n))  # [C, K.., N, O..]
    columns = view.reshape(groups, x.size(1) // groups * math.prod(kernel), -1)  # [g, C/g·K, N·O]
    rows = g.transpose(0, 1).reshape(groups, g.size(1) // groups, -1)  # [g, F/g, N·O]
    return matmul(rows, columns.transpose(1, 2)).reshape(weight.shape)


