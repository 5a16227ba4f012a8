"""Row operators: softmax, log_softmax, layer_norm, rms_norm. Forward and backward are one fused fold each.

Every backward function has two bodies: the fused kernel, and the same formula in operators for when it must itself be differentiated.
Cross entropy is in loss.py.
"""
from __future__ import annotations

from .. import dtypes, errors
from ..autograd import backward, record, tracking
from ..dispatch import PlanCache
from ..kernels import expr as E
from ..layout import wrap_dim
from ..tensor import empty, empty_of, wrap
from .folding import Fold
from .onlooking import seen_as
from .table import TABLE, operator


def _exp_row(x):
    return E.exp(x - E.rmax(x))


_softmax = Fold("softmax", lambda x: _exp_row(x) * (1 / E.rsum(_exp_row(x))), 1, ("element",))  # one division a row: the sum is at least 1
_softmax_back = Fold("softmax_backward", lambda g, y: y * (g - E.rsum(g * y)), 2, ("element",))
_log_softmax = Fold("log_softmax", lambda x: x - E.rmax(x) - E.log(E.rsum(_exp_row(x))), 1, ("element",))
_log_softmax_back = Fold("log_softmax_backward", lambda g, y: g - E.exp(y) * E.rsum(g), 2, ("element",))


def _input(name, x, dim, dtype):
    last = wrap_dim(dim, x.ndim) == max(x.ndim - 1, 0)
    if dtype is not None and x.dtype is not dtype:
        x = TABLE["to"].call(x, dtype)
    if not x.dtype.is_floating_point and x.numel():
        raise NotImplementedError(f'"{name}{"_lastdim" if last else ""}_kernel_impl" not implemented for \'{x.dtype.scalar_name}\'\n  Convert to float32 first, or pass dtype=torch.float32.')
    return x


def _along(fold, operands, dim):
    """A row operator along one dimension; a 0-d tensor is a row of one element."""
    if operands[0].ndim == 0:
        flat = [TABLE["reshape"].call(t, (1,)) for t in operands]
        return TABLE["reshape"].call(fold(tuple(flat), (0,), (operands[-1].dtype,)), ())
    return fold(operands, (wrap_dim(dim, operands[0].ndim),), (operands[-1].dtype,))


def _rowwise(name, fold, input, dim, dtype):
    """(what was folded, the result) of a row operator with one operand; its kernel is found by the call's own arguments."""
    if dtype is None:
        try:
            launch, spec = fold.calls[input.spec, dim]
        except (KeyError, TypeError, AttributeError):
            pass
        else:
            memory = launch(input.ptr)
            return input, wrap(spec, memory, memory.data)
    x = _input(name, input, dim, dtype)
    if not x.dtype.is_floating_point:  # empty: PyTorch does not look for a kernel
        return x, empty(x.shape, x.dtype, x.device)
    out = _along(fold, (x,), dim)
    if x.ndim and not x.is_meta:
        plan, (spec,) = fold.plans[(wrap_dim(dim, x.ndim),), False, (x.dtype,), x.spec]
        fold.calls.put((x.spec, dim), (plan.caller(), spec))
    return x, out


def _softmax_flops(args, kwargs, result):
    """An element: subtract the maximum, exp, add up, divide by the sum (log_softmax: subtract its logarithm)."""
    return 4 * args[0].numel()


@operator("softmax", out="late", flops=_softmax_flops)
def softmax(input, dim, dtype=None):
    """exp(x) / sum(exp(x)) along `dim`, computed from x - max(x). `dtype`: convert first. Raises IndexError for a dimension out of range."""
    if input.dtype.is_complex if dtype is None else dtype.is_complex:
        return _complex_softmax(input if dtype is None else TABLE["to"].call(input, dtype), dim)
    x, out = _rowwise("softmax", _softmax, input, dim, dtype)
    if tracking(x):
        record(SoftmaxBackward0, (x,), out, (out,), dim=dim)
    return out


@backward("Softmax", saved_names=("result",))
@seen_as("softmax_backward", lambda node, g: _softmax_back.flops * g.numel())
def SoftmaxBackward0(node, g):
    (y,) = node.saved
    if tracking(g, y):
        gy = g * y
        return (gy - y * TABLE["sum"].call(gy, node.dim, True),)
    return (_along(_softmax_back, (g, y), node.dim),)


def _complex_softmax(z, dim):
    """exp(z) / sum(exp(z)), for which PyTorch has no answer: |exp(z)| is exp of the real part, whose largest is taken off first."""
    shift = TABLE["amax"].call(TABLE["real"].call(z.detach()), dim, keepdim=True) if z.ndim else 0.0
    e = TABLE["exp"].call(z - shift)
    return e / TABLE["sum"].call(e, dim, keepdim=True)


@operator("log_softmax", out="late", flops=_softmax_flops)
def log_softmax(input, dim, dtype=None):
    """x - log(sum(exp(x))) along `dim`, without overflow."""
    x, out = _rowwise("log_softmax", _log_softmax, input, dim, dtype)
    if tracking(x):
        record(LogSoftmaxBackward0, (x,), out, (out,), dim=dim)
    return out


@backward("LogSoftmax", saved_names=("result",))
@seen_as("log_softmax_backward", lambda node, g: _log_softmax_back.flops * g.numel())
def LogSoftmaxBackward0(node, g):
    (y,) = node.saved
    if tracking(g, y):
        return (g - TABLE["exp"].call(y) * TABLE["sum"].call(g, node.dim, True),)
    return (_along(_log_softmax_back, (g, y), node.dim),)


# ---- layer_norm --------------------------------------------------------------------------------------------------------------------


def _layer_norm_exprs(x, eps, affine):
    mean = E.rsum(x) / E.extent()
    rstd = E.rsqrt(E.rsum((x - mean) * (x - mean)) / E.extent() + eps)
    return affine((x - mean) * rstd), mean, rstd


_THREE = ("element", "row", "row")
_layer_norm = {  # by (weight given, bias given)
    (False, False): Fold("layer_norm", lambda x, e: _layer_norm_exprs(x, e, lambda n: n), 2, _THREE),
    (True, False): Fold("layer_norm", lambda x, w, e: _layer_norm_exprs(x, e, lambda n: n * w), 3, _THREE),
    (True, True): Fold("layer_norm", lambda x, w, b, e: _layer_norm_exprs(x, e, lambda n: n * w + b), 4, _THREE),
    (False, True): Fold("layer_norm", lambda x, b, e: _layer_norm_exprs(x, e, lambda n: n + b), 3, _THREE),
}


_layer_norm_alone = {  # the result without its statistics, which only gradients want
    (False, False): Fold("layer_norm", lambda x, e: _layer_norm_exprs(x, e, lambda n: n)[0], 2, ("element",)),
    (True, False): Fold("layer_norm", lambda x, w, e: _layer_norm_exprs(x, e, lambda n: n * w)[0], 3, ("element",)),
    (True, True): Fold("layer_norm", lambda x, w, b, e: _layer_norm_exprs(x, e, lambda n: n * w + b)[0], 4, ("element",)),
    (False, True): Fold("layer_norm", lambda x, b, e: _layer_norm_exprs(x, e, lambda n: n + b)[0], 3, ("element",)),
}
_norm_calls = PlanCache()  # of norms that nobody records, by the call's own arguments


def _norm_alone(key, fold, operands, eps, dims, dtype):
    """The result of a norm of which nothing is recorded; the next call with the same arguments finds the kernel by them."""
    out = fold((*operands, eps), dims, (dtype,))
    if key is not None and not out.is_meta:
        plan, (spec,) = fold.plans[(dims, False, (dtype,), *[o.spec for o in operands], float)]
        _norm_calls.put(key, (plan.caller(), spec, eps))
    return out


def _layer_norm_input(g, x, mean, rstd):
    n = (x - mean) * rstd
    return rstd * (g - E.rsum(g) / E.extent() - n * (E.rsum(g * n) / E.extent()))


_layer_norm_back = Fold("layer_norm_backward", _layer_norm_input, 4, ("element",))
_layer_norm_back_w = Fold("layer_norm_backward", lambda g, x, m, r, w: _layer_norm_input(g * w, x, m, r), 5, ("element",))
_layer_norm_back_affine = Fold("layer_norm_backward", lambda g, x, m, r: (E.rsum(g * ((x - m) * r)), E.rsum(g)), 4, ("row", "row"))


def _check_norm(name, x, normalized_shape, *affine):
    shape = tuple(normalized_shape) if isinstance(normalized_shape, (tuple, list)) else (normalized_shape,)
    if not shape:
        raise RuntimeError(f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = {list(shape)}")
    for label, t in affine:
        if t is not None and tuple(t.shape) != shape:
            raise RuntimeError(
                f"Expected {label} to be of same shape as normalized_shape, but got {label} of shape {list(t.shape)} and normalized_shape = {list(shape)}"
            )
    if x.ndim < len(shape) or tuple(x.shape[x.ndim - len(shape) :]) != shape:
        stars = "".join(f", {n}" for n in shape)
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape [*{stars}], but got input of size{list(x.shape)}")
    if name != "rms_norm" and any(t is not None and t.dtype is not x.dtype for _, t in affine):
        problem = errors.mixed_parameters(x.dtype, [None if t is None else t.dtype for _, t in affine])
        if problem is not None:
            raise problem
    if not (x.dtype.is_floating_point or x.dtype.is_complex and name == "rms_norm"):
        raise NotImplementedError(f'"{name}" not implemented for \'{x.dtype.scalar_name}\'')
    return tuple(range(x.ndim - len(shape), x.ndim))


def _layer_norm_flops(args, kwargs, result):
    """An element: add up, subtract the mean, square, add up, scale; one more each for weight and bias."""
    given = [*args[2:4], kwargs.get("weight"), kwargs.get("bias")]
    return (5 + sum(t is not None for t in given)) * args[0].numel()


def _layer_norm_results(input, normalized_shape, weight, bias, eps):
    """(result, mean, 1 / sqrt(var + eps)); only the first is differentiable, as in PyTorch."""
    dims = _check_norm("LayerNormKernelImpl", input, normalized_shape, ("weight", weight), ("bias", bias))
    statistic = input.dtype.compute
    operands = tuple([t for t in (input, weight, bias) if t is not None])
    fold = _layer_norm[weight is not None, bias is not None]
    out, mean, rstd = fold((*operands, float(eps)), dims, (input.dtype, statistic, statistic), True)
    if tracking(input, weight, bias):
        record(NativeLayerNormBackward0, (input, weight, bias), out, (input, weight, mean, rstd), dims=dims, eps=eps)
    return out, mean, rstd


@operator("layer_norm", flops=_layer_norm_flops, method=False)
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions, whose sizes `normalized_shape` repeats; weight and bias have that shape."""
    operands = tuple([t for t in (input, weight, bias) if t is not None])
    recorded = tracking(*operands)
    key = None
    try:
        key = "layer", tuple(normalized_shape) if type(normalized_shape) is list else normalized_shape, weight is None, eps, recorded, *[t.spec for t in operands]
        launch, spec, number = _norm_calls[key]
    except (KeyError, TypeError, AttributeError):
        pass
    else:
        if recorded:
            dims, specs = spec
            out, mean, rstd = [empty_of(s) for s in specs]
            launch(out.ptr, mean.ptr, rstd.ptr, *[t.ptr for t in operands], number)
            record(NativeLayerNormBackward0, (input, weight, bias), out, (input, weight, mean, rstd), dims=dims, eps=eps)
            return out
        memory = launch(*[t.ptr for t in operands], number)
        return wrap(spec, memory, memory.data)
    if recorded:
        out = _layer_norm_results(input, normalized_shape, weight, bias, eps)[0]
        if key is not None and type(eps) is float and not out.is_meta:
            dims, statistic = out._node.dims, input.dtype.compute
            plan, specs = _layer_norm[weight is not None, bias is not None].plans[(dims, True, (input.dtype, statistic, statistic), *[t.spec for t in operands], float)]
            _norm_calls.put(key, (plan.launch, (dims, specs), eps))
        return out
    dims = _check_norm("LayerNormKernelImpl", input, normalized_shape, ("weight", weight), ("bias", bias))
    return _norm_alone(key if type(eps) is float else None, _layer_norm_alone[weight is not None, bias is not None], operands, float(eps), dims, input.dtype)


@operator("native_layer_norm", method=False)
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """(layer_norm, mean, 1 / sqrt(var + eps)), the last two of size 1 along the normalised dimensions."""
    out, mean, rstd = _layer_norm_results(input, normalized_shape, weight, bias, eps)
    if weight is not None and weight.dtype is not input.dtype:  # a mixed-precision call keeps its statistics in float32
        return out, mean, rstd
    return out, TABLE["to"].call(mean, input.dtype), TABLE["to"].call(rstd, input.dtype)


def _layer_norm_back_flops(node, g) -> int:
    inner = _layer_norm_back if node.saved[1] is None else _layer_norm_back_w
    return g.numel() * (node.needs[0] * inner.flops + (node.needs[1] or node.needs[2]) * _layer_norm_back_affine.flops)


@backward("NativeLayerNorm", saved_names=("input", "weight", "mean", "rstd"))
@seen_as("layer_norm_backward", _layer_norm_back_flops)
def NativeLayerNormBackward0(node, g):
    x, weight, mean, rstd = node.saved
    dims = node.dims
    if tracking(g, x, weight):
        return _layer_norm_composed(node, g, x, weight)
    needs, key = node.needs, (g.spec, x.spec, mean.spec, dims, weight if weight is None else weight.spec)
    found = _layer_norm_backs.get(key)
    if found is None:
        gx = gw = gb = None
        if needs[0]:
            fold, operands = (_layer_norm_back, (g, x, mean, rstd)) if weight is None else (_layer_norm_back_w, (g, x, mean, rstd, weight))
            gx = fold(operands, dims, (x.dtype,))
        if needs[1] or needs[2]:
            rows = tuple(range(dims[0]))
            dtype = x.dtype if weight is None else weight.dtype
            gw, gb = _layer_norm_back_affine((g, x, mean, rstd), rows, (dtype, dtype))
            if needs[0] and not g.is_meta:
                inner, (spec,) = fold.plans[(dims, False, (x.dtype,), *[o.spec for o in operands])]
                outer, specs = _layer_norm_back_affine.plans[(rows, False, (dtype, dtype), *[o.spec for o in operands[:4]])]
                _layer_norm_backs.put(key, (inner.caller(), spec, outer.launch, specs))
        return gx, gw if needs[1] else None, gb if needs[2] else None
    into, spec, sums, (of_weight, of_bias) = found
    slots = g.ptr, x.ptr, mean.ptr, rstd.ptr
    gx = gw = gb = None
    if needs[0]:
        memory = into(*slots) if weight is None else into(*slots, weight.ptr)
        gx = wrap(spec, memory, memory.data)
    if needs[1] or needs[2]:
        gw, gb = empty_of(of_weight), empty_of(of_bias)
        sums(gw.ptr, gb.ptr, *slots)
    return gx, gw if needs[1] else None, gb if needs[2] else None


_layer_norm_backs = PlanCache()  # (launch of the input's gradient, its spec, launch of the other two, their specs) by the kinds of what is saved


def _sum_rows(t, dims):
    """t summed over the dimensions before `dims`."""
    return TABLE["sum"].call(t, tuple(range(dims[0]))) if dims[0] else t


def _layer_norm_composed(node, g, x, weight):
    dims = node.dims
    mean = TABLE["mean"].call
    centred = x - mean(x, dims, True)
    rstd = TABLE["rsqrt"].call(mean(centred * centred, dims, True) + node.eps)
    n = centred * rstd
    h = g if weight is None else g * weight
    gx = rstd * (h - mean(h, dims, True) - n * mean(h * n, dims, True))
    return gx, _sum_rows(g * n, dims) if node.needs[1] else None, _sum_rows(g, dims) if node.needs[2] else None


# ---- rms_norm ------------------------------------------------------------------------------------------------------------------------


def _rms_exprs(x, eps, affine):
    r = E.rsqrt(E.rsum(x * x) / E.extent() + eps)
    return affine(x * r), r


_rms_norm = Fold("rms_norm", lambda x, e: _rms_exprs(x, e, lambda n: n), 2, ("element", "row"))
_rms_norm_w = Fold("rms_norm", lambda x, w, e: _rms_exprs(x, e, lambda n: n * w), 3, ("element", "row"))
_rms_norm_alone = Fold("rms_norm", lambda x, e: _rms_exprs(x, e, lambda n: n)[0], 2, ("element",))
_rms_norm_w_alone = Fold("rms_norm", lambda x, w, e: _rms_exprs(x, e, lambda n: n * w)[0], 3, ("element",))
_rms_back = Fold("rms_norm_backward", lambda g, x, r: r * (g - x * r * (E.rsum(g * (x * r)) / E.extent())), 3, ("element",))
_rms_back_w = Fold("rms_norm_backward", lambda g, x, r, w: r * (g * w - x * r * (E.rsum(g * w * (x * r)) / E.extent())), 4, ("element",))
_rms_back_weight = Fold("rms_norm_backward", lambda g, x, r: E.rsum(g * (x * r)), 3)


def _rms_norm_flops(args, kwargs, result):
    """An element: square, add up, scale; one more for the weight."""
    return (3 + (len(args) > 2 and args[2] is not None or kwargs.get("weight") is not None)) * args[0].numel()


@operator("rms_norm", flops=_rms_norm_flops, method=False)
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """x / sqrt(mean(x²) + eps) * weight over the last dimensions; eps: the dtype's epsilon unless given."""
    operands = (input,) if weight is None else (input, weight)
    recorded = tracking(*operands)
    key = None
    if not recorded:
        try:
            key = "rms", tuple(normalized_shape) if type(normalized_shape) is list else normalized_shape, eps, *[t.spec for t in operands]
            launch, spec, number = _norm_calls[key]
        except (KeyError, TypeError, AttributeError):
            pass
        else:
            memory = launch(*[t.ptr for t in operands], number)
            return wrap(spec, memory, memory.data)
    dims = _check_norm("rms_norm", input, normalized_shape, ("weight", weight))
    given = dtypes.finfo(input.dtype.compute).eps if eps is None else float(eps)
    if input.dtype.is_complex:  # the square is that of the complex number, as in PyTorch
        out = input * TABLE["rsqrt"].call(TABLE["mean"].call(input * input, dims, True) + given)
        return out if weight is None else out * weight
    if not recorded:
        known = key if eps is None or type(eps) is float else None
        return _norm_alone(known, _rms_norm_alone if weight is None else _rms_norm_w_alone, operands, given, dims, input.dtype)
    out, r = (_rms_norm if weight is None else _rms_norm_w)((*operands, given), dims, (input.dtype, input.dtype.compute), True)
    record(FusedRmsNormBackward0, (input, weight), out, (input, weight, r), dims=dims, eps=given)
    return out


def _rms_back_flops(node, g) -> int:
    inner = _rms_back if node.saved[1] is None else _rms_back_w
    return g.numel() * (node.needs[0] * inner.flops + node.needs[1] * _rms_back_weight.flops)


@backward("FusedRmsNorm", saved_names=("input", "weight", "rstd"))
@seen_as("rms_norm_backward", _rms_back_flops)
def FusedRmsNormBackward0(node, g):
    x, weight, r = node.saved
    dims = node.dims
    if tracking(g, x, weight):
        mean = TABLE["mean"].call
        r = TABLE["rsqrt"].call(mean(x * x, dims, True) + node.eps)
        h = g if weight is None else g * weight
        n = x * r
        return r * (h - n * mean(h * n, dims, True)), _sum_rows(g * n, dims) if node.needs[1] else None
    gx = gw = None
    if node.needs[0]:
        gx = _rms_back((g, x, r), dims, (x.dtype,)) if weight is None else _rms_back_w((g, x, r, weight), dims, (x.dtype,))
    if node.needs[1]:
        gw = _rms_back_weight((g, x, r), tuple(range(dims[0])), (weight.dtype,))
    return gx, gw

