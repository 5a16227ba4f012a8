"""Convolution: one kernel forward, and gradients that are convolutions and products again.

Holds `convolution` (plain and transposed, up to three spatial dimensions), its gradient, and the choice among the ways to compute them.
Checks of arguments and the functions users call are nn/functions/conv.py's; the kernel is kernels/conv.py, products are convolution_products.py's and convolution_columns.py's.
"""
from __future__ import annotations

import math

from ..autograd import backward, record, tracking
from ..dispatch import PlanCache, launch, launch_new
from ..formats import channels_last, contiguous_format, suggested
from ..kernels import conv as kernels
from ..kernels.native import new_storage
from ..layout import Layout
from ..tensor import Spec, wrap
from . import convolution_columns as unfolded
from . import convolution_last as last
from . import convolution_products as products
from .convolution_columns import around, pad, windows
from .folding import plain
from .matmul import matmul
from .onlooking import seen_as
from .table import TABLE, operator


def spread(x, stride):
    """Puts stride−1 zeros between neighbours in the last n dimensions: [.., S] → [.., (S−1)·stride + 1]."""
    n = len(stride)
    for d, step in zip(range(x.dim() - n, x.dim()), stride):
        if step == 1:
            continue
        size = x.size(d)
        x = x.unsqueeze(d + 1)  # [.., S, 1, ..]
        x = pad(x, [0, 0] * (x.dim() - d - 2) + [0, step - 1])  # [.., S, stride, ..]
        x = x.flatten(d, d + 1).narrow(d, 0, (size - 1) * step + 1)
    return x


# ---- forward ----------------------------------------------------------------------------------------------------------------------

_plans = PlanCache()


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
    if not (type(stride) is type(padding) is type(dilation) is tuple and len(stride) == len(padding) == len(dilation) == n):
        stride, padding, dilation = (tuple(v) * (n if len(v) == 1 else 1) for v in (stride, padding, dilation))
    if transposed:
        output_padding = tuple(output_padding) * (n if len(output_padding) == 1 else 1)
        sizes = [(s - 1) * t - 2 * p + d * (k - 1) + e + 1 for s, t, p, d, k, e in zip(input.shape[2:], stride, padding, dilation, weight.shape[2:], output_padding)]
        if any(size < 1 for size in sizes):
            raise RuntimeError(
                f"Given input size per channel: ({' x '.join(map(str, input.shape[2:]))}). Calculated output size per channel: ({' x '.join(map(str, sizes))}). "
                "Output size is too small\n  (size - 1)*stride - 2*padding + dilation*(kernel - 1) + output_padding + 1 must be positive: less padding leaves more."
            )
        out = _input_gradient(input, weight, sizes, stride, padding, dilation, groups, last.form_of(input, weight))
        return out if bias is None else (out + bias.reshape(-1, *(1,) * n)).to(input.dtype)
    return correlate(input, weight, bias, stride, padding, dilation, groups)


def correlate(x, weight, bias, stride, padding, dilation, groups, form=None):
    """The plain convolution for tuples of steps, recorded. form: the memory format of the result, where operands do not say it."""
    key = x.spec, weight.spec, None if bias is None else bias.spec, stride, padding, dilation, groups, form
    way = _ways.get(key)
    if way is None:
        way = _ways.put(key, _way(x, weight, bias, stride, padding, dilation, groups, form))
    if way is _BY_PRODUCTS:
        return _by_products(pad(x, around(padding, padding)), weight, bias, stride, dilation, groups)
    wanted = tracking(x, weight, *(() if bias is None else (bias,)))
    out = way(x, weight, bias)
    if wanted:
        record(ConvolutionBackward0, (x, weight, bias), out, (x, weight), stride=stride, padding=padding, dilation=dilation, groups=groups, transposed=False)
    return out


_ways = PlanCache()  # how a convolution of given operands is computed: a function of them
_BY_PRODUCTS = object()  # in operators that are recorded


def _way(x, weight, bias, stride, padding, dilation, groups, form):
    if not _has_kernel(x, stride):
        return _BY_PRODUCTS
    form = last.form_of(x, weight) if form is None else form
    places = [(s + 2 * p - d * (k - 1) - 1) // t + 1 for s, p, d, k, t in zip(x.shape[2:], padding, dilation, weight.shape[2:], stride)]
    if not x.is_meta and not weight.is_meta and products.takes(x, weight, stride, padding, dilation, groups, places):
        in_place = products.way(plain(x), plain(weight), bias, places, stride, form)
        if in_place is not None:
            return in_place
    return lambda x, weight, bias: _correlate(plain(x), plain(weight), None if bias is None else plain(bias).contiguous(), places, stride, padding, dilation, groups, form)


def _rows(x, weight, groups):
    """x as kernels read it best: for few features, rows whose elements lie apart (channels_last) are laid out first."""
    x = plain(x)
    return x.contiguous() if x.stride(-1) != 1 and weight.shape[0] // groups < 32 else x


def _row_major(t):
    """t laid out in rows; dimensions of one element have the steps that belong to them."""
    t = t.contiguous()
    return wrap(Spec.of(Layout.contiguous(t.shape), t.dtype, t.device), t.mem, t.ptr)


def _has_kernel(x, stride) -> bool:
    return x.dtype.name in kernels.DTYPES and len(stride) <= 3


def _correlate(x, weight, bias, places, stride, before, dilation, groups, form):
    """[N, F, places..], unrecorded, in the given format. before: how far the first window begins before the input; whatever lies outside is zero."""
    if x.spec.is_meta or weight.spec.is_meta:
        shape = x.shape[0], weight.shape[0], *places
        return TABLE["empty"].call(shape, dtype=x.dtype, device="meta", memory_format=form)
    if products.takes(x, weight, stride, before, dilation, groups, places):
        return plain(products.correlate(x, weight, bias, places, stride, form))
    if form is not contiguous_format:
        if last.takes(x.dtype.compute, weight.shape[0], x.shape[1], groups):
            arguments = places, stride, before, dilation
            if unfolded.takes("result", x.dtype, weight.shape, x.shape[0], places, groups, form):
                return plain(unfolded.correlate(x, weight, bias, *arguments))
            if x.dtype.itemsize >= 4:
                return last.correlate(x, weight, bias, *arguments, groups)
            return last.correlate(x.float(), weight.float(), None if bias is None else bias.float(), *arguments, groups).to(x.dtype)
        return _correlate(x.contiguous(), weight, bias, places, stride, before, dilation, groups, contiguous_format).contiguous(memory_format=form)
    if (groups != 1 or math.prod(places) > 100) and last.better(x.dtype, weight.shape, places, groups):  # for few positions, turning the weights takes longer
        return _row_major(_correlate(last.laid_out(x), last.weights(weight), bias, places, stride, before, dilation, groups, channels_last))
    x, weight = _rows(x, weight, groups), weight.contiguous()
    key = x.spec, weight.spec, tuple(places), stride, tuple(before), dilation, groups, bias is None
    plan = _plans.get(key)
    if plan is None:
        spec = Spec.of(Layout.contiguous((x.shape[0], weight.shape[0], *places)), x.dtype, x.device)
        built = kernels.build_conv(x.dtype, spec.layout, x.spec.layout, weight.spec.layout, stride, before, dilation, groups, bias is not None, spec.nbytes)
        plan = _plans.put(key, (spec, *built))
    spec, descriptor, scratch = plan
    room = new_storage(scratch)
    mem = launch_new(descriptor, x.ptr, weight.ptr, 0 if bias is None else bias.ptr, room.data)
    return wrap(spec, mem, mem.data)


def _correlate_into(out, x, weight, stride, before, dilation, groups) -> None:
    """The same, written into a window of a tensor."""
    key = out.spec, x.spec, weight.spec, stride, tuple(before), dilation, groups
    plan = _plans.get(key)
    if plan is None:
        plan = _plans.put(key, kernels.build_direct(x.dtype, out.spec.layout, x.spec.layout, weight.spec.layout, stride, before, dilation, groups, False))
    descriptor, scratch = plan
    room = new_storage(scratch)
    launch(descriptor, out.ptr, x.ptr, weight.ptr, 0, room.data)


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


def _back_flops(node, g) -> int:
    """A product as large as the convolution's for the input's gradient and for the weight's, a sum for the bias's."""
    x, weight = node.saved
    products = (x if node.transposed else g).numel() * weight.numel() // max(weight.shape[0], 1)
    return 2 * products * (node.needs[0] + node.needs[1]) + g.numel() * node.needs[2]


@backward("Convolution", saved_names=("input", "weight"))
@seen_as("convolution_backward", _back_flops)
def ConvolutionBackward0(node, g):
    x, weight = node.saved
    d_input = d_weight = d_bias = None
    arguments = node.stride, node.padding, node.dilation, node.groups
    form = last.form_of(x, weight)
    if node.transposed:  # the plain convolution's gradients with the result and the input in each other's places
        if node.needs[0]:
            d_input = correlate(g, weight, None, *arguments, form)[(slice(None), slice(None), *map(slice, x.shape[2:]))]  # output_padding may reach beyond the last window
        return d_input, _weight_gradient(g, weight, x, *arguments, form) if node.needs[1] else None, None
    if node.needs[0]:
        d_input = _input_gradient(g, weight, x.shape[2:], *arguments, form)
    if node.needs[1]:
        d_weight = _weight_gradient(x, weight, g, *arguments, form)
    if node.needs[2]:
        d_bias = g.sum((0, *range(2, g.ndim)))
    return d_input, d_weight, d_bias


def _turned(weight, groups):
    """The kernel turned round, with its channels swapped within each group: [F, C/g, K..] → [C, F/g, K..]."""
    n = weight.ndim - 2
    w = weight.flip(*range(2, 2 + n)).reshape(groups, weight.size(0) // groups, *weight.shape[1:]).transpose(1, 2)  # [g, C/g, F/g, K..]
    return w.reshape(groups * weight.size(1), weight.size(0) // groups, *weight.shape[2:])


def _input_gradient(g, weight, sizes, stride, padding, dilation, groups, form):
    """[N, F, O..] → [N, C, sizes..]: what each element of the input is multiplied by, which is the transposed convolution. Recorded."""
    n = len(stride)
    if not _has_kernel(g, stride) or g.is_meta or weight.is_meta:
        g = spread(g, stride)  # [N, F, (O−1)·stride + 1]
        before = [d * (k - 1) - p for k, d, p in zip(weight.shape[2:], dilation, padding)]
        after = [s + d * (k - 1) - size - b for s, d, k, size, b in zip(sizes, dilation, weight.shape[2:], g.shape[2:], before)]
        return correlate(pad(g, around(before, after)), _turned(weight, groups), None, (1,) * n, (0,) * n, dilation, groups, form)
    out = _plain_input_gradient(plain(g), plain(weight), tuple(sizes), stride, padding, dilation, groups, form)
    if tracking(g, weight):
        record(ConvolutionBackward0, (g, weight, None), out, (g, weight), stride=stride, padding=padding, dilation=dilation, groups=groups, transposed=True)
    return out


def _plain_input_gradient(g, weight, sizes, stride, padding, dilation, groups, form):
    """The same, unrecorded: a convolution with the kernel turned round.

    With a stride, elements of the input meet only every stride-th element of the kernel: those of one phase are a convolution of their own, which writes into
    the result.
    """
    key = "input", g.spec, weight.spec, sizes, stride, padding, dilation, groups, form
    way = _ways.get(key)
    if way is None:
        way = _ways.put(key, _input_way(g, weight, sizes, stride, padding, dilation, groups, form))
    if way == "product":
        return plain(products.input_gradient(g, weight, sizes, stride, form))
    if way == "turned":
        return _row_major(_plain_input_gradient(last.laid_out(g), last.weights(weight), sizes, stride, padding, dilation, groups, channels_last))
    if way == "columns":
        return plain(unfolded.input_gradient(g, weight, sizes, stride, padding, dilation, form))
    kernel, unit = weight.shape[2:], (1,) * len(stride)
    if any(d != 1 and s != 1 for d, s in zip(dilation, stride)):
        g, stride = spread(g, stride), unit  # [N, F, (O−1)·stride + 1]
    if form is not contiguous_format and not last.takes(g.dtype.compute, weight.shape[1] * groups, g.shape[1], groups):
        return _plain_input_gradient(g.contiguous(), weight, sizes, stride, padding, dilation, groups, contiguous_format).contiguous(memory_format=form)
    if form is not contiguous_format and g.dtype.itemsize < 4:
        return _plain_input_gradient(g.float(), weight.float(), sizes, stride, padding, dilation, groups, form).to(g.dtype)
    if form is not contiguous_format:
        return last.input_gradient(g, weight, sizes, stride, padding, dilation, groups, form)
    turned = _turned(weight, groups).contiguous()
    if stride == unit:
        before = [d * (k - 1) - p for k, d, p in zip(kernel, dilation, padding)]
        return _correlate(g, turned, None, sizes, unit, before, dilation, groups, form)
    g = _rows(g, weight, groups)
    out = TABLE["new_empty"].call(g, (g.shape[0], turned.shape[0], *sizes))
    for phase in last.phases(kernel, sizes, stride, padding, dilation):
        if not all(phase.counts):
            continue
        target = out[(slice(None), slice(None), *phase.where)]
        if phase.taps is None:
            target.zero_()
            continue
        _correlate_into(target, g, turned[(slice(None), slice(None), *phase.taps)].contiguous(), unit, phase.before, phase.steps, groups)
    return out


def _input_way(g, weight, sizes, stride, padding, dilation, groups, form) -> str:
    """How an input's gradient is computed."""
    places = g.shape[2:]
    if products.reach(sizes, weight, stride, padding, dilation, groups, places) and (form is contiguous_format or weight.shape[0] >= 8):
        return "product"
    if form is contiguous_format and last.better(g.dtype, weight.shape, places, groups):
        return "turned"
    return "columns" if unfolded.takes("input", g.dtype, weight.shape, g.shape[0], places, groups, form) else "kernel"


def _weight_way(x, weight, places, stride, padding, dilation, groups, form) -> str:
    """How the weights' gradient is computed."""
    channels_last = form is not contiguous_format and last.takes(x.dtype.compute, weight.shape[0], x.shape[1], groups)
    if channels_last and x.dtype.itemsize >= 4 and last.short(weight.shape, groups):
        return "last"
    if products.takes(x, weight, stride, padding, dilation, groups, places):
        return "product"
    if unfolded.takes("weight", x.dtype, weight.shape, x.shape[0], places, groups, form):
        return "columns"
    if form is contiguous_format and groups != 1 and places[-1] <= 28 and last.better(x.dtype, weight.shape, places, groups):
        return "last"
    return "last" if channels_last else "rows"


def _weight_gradient(x, weight, g, stride, padding, dilation, groups, form):
    """[F, C/g, K..]: the product of the result's gradients and the windows, summed over batch and positions."""
    n, kernel = len(stride), tuple(weight.shape[2:])
    if _has_kernel(x, stride) and not tracking(x, g) and not x.is_meta:
        x, g = plain(x), plain(g)
        key = "weight", x.spec, weight.spec, g.spec, stride, padding, dilation, groups, form
        way = _ways.get(key)
        if way is None:
            way = _ways.put(key, _weight_way(x, weight, g.shape[2:], stride, padding, dilation, groups, form))
        if way == "product":
            return plain(products.weight_gradient(x, weight.spec, g, stride, form))
        if way == "columns":
            return plain(unfolded.weight_gradient(x, weight.spec, g, stride, padding, dilation, form))
        if way == "last":
            if x.dtype.itemsize >= 4:
                return last.weight_gradient(x, weight.spec, g, stride, padding, dilation, groups)
            return last.weight_gradient(x.float(), weight.spec, g.float(), stride, padding, dilation, groups).to(x.dtype)
        d_weight = _plain_weight_gradient(_rows(x, weight, groups), weight.spec, _rows(g, weight, groups), stride, padding, dilation, groups)
        return d_weight.contiguous(memory_format=suggested(weight.spec.layout))
    x = pad(x, around(padding, padding))
    view = windows(x, kernel, stride, dilation)[(slice(None), slice(None), *map(slice, g.shape[2:]))]  # [N, C, O.., K..]
    view = view.permute(1, *range(2 + n, 2 + 2 * n), 0, *range(2, 2 + n))  # [C, K.., N, O..]
    columns = view.reshape(groups, x.size(1) // groups * math.prod(kernel), -1)  # [g, C/g·K, N·O]
    rows = g.transpose(0, 1).reshape(groups, g.size(1) // groups, -1)  # [g, F/g, N·O]
    return matmul(rows, columns.transpose(1, 2)).reshape(weight.shape)


def _plain_weight_gradient(x, weight: Spec, g, stride, before, dilation, groups):
    key = "weight", x.spec, weight, g.spec, stride, tuple(before), dilation, groups
    plan = _plans.get(key)
    if plan is None:
        spec = Spec.of(Layout.contiguous(weight.shape), x.dtype, x.device)
        plan = _plans.put(key, (spec, *kernels.build_weight_gradient(x.dtype, spec.layout, x.spec.layout, g.spec.layout, stride, before, dilation, groups, spec.nbytes)))
    spec, descriptor, scratch = plan
    room = new_storage(scratch)
    mem = launch_new(descriptor, x.ptr, g.ptr, room.data)
    return wrap(spec, mem, mem.data)
