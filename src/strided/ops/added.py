"""Products with an added input in the same kernel: addmm, baddbmm, addbmm, addmv, and linear with its bias.

Plans, gradients and checks shared with the plain products are matmul.py's.
"""
from __future__ import annotations

import functools
from math import prod

from .. import errors
from ..autograd import backward, no_grad, record, tracking
from ..autograd.modes import STATE
from ..block_tensor import BlockTensor, NotOfBlocks
from ..dispatch import HOOKS, PlanCache
from ..dispatch import run as run_plan
from ..layout import Layout
from ..tensor import Spec, Tensor, wrap
from .elementwise import sum_to
from .matmul import (
    Plan,
    SqueezeBackward4,
    UnsafeViewBackward0,
    ViewBackward0,
    _as_matrix,
    _check_batches,
    _conj,
    _descriptor,
    _left_gradient,
    _right_gradient,
    _rows,
    _supported,
    _tensors,
    bmm,
    matmul,
    mm,
    mv,
    operands_of,
    record_product,
)
from .reused import gathered
from .table import operator

# ---- addmm and its family -------------------------------------------------------------------------------------------------

_ADDED = PlanCache()


def _added_plan(key, a: Spec, b: Spec, added: Layout | None, full, scale: bool) -> Plan:
    desc, device = _descriptor(a, b, full, added, scale)
    return _ADDED.put(key, Plan(desc, Spec.of(Layout.contiguous(full), a.dtype, device)))


def _scalar(dtype, value):
    """alpha or beta as the kernel takes it: fractions are dropped for integer products."""
    if isinstance(value, complex):
        raise RuntimeError(f"value cannot be converted to type {'float' if dtype.is_floating_point else 'int64_t'} without overflow")
    return float(value) if dtype.is_floating_point else int(value)


def _added_product(input: Tensor, a: Tensor, b: Tensor, full, beta, alpha) -> Tensor:
    """beta * input + alpha * a @ b in one kernel, without recording. beta = 0 leaves the input out: its NaNs do not pass."""
    dtype = a.dtype
    if dtype.is_complex:  # the factors are applied afterwards
        with no_grad():
            product = _times(matmul(a, b), alpha)
            return product + _times(input, beta) if beta else product
    alpha, beta = _scalar(dtype, alpha), _scalar(dtype, beta)
    key = input.spec if beta else None, a.spec, b.spec
    plan = _ADDED.get(key) or _added_plan(key, a.spec, b.spec, input.spec.layout if beta else None, full, True)
    slots = (input.ptr, alpha, beta) if beta else (alpha,)
    return run_plan(plan.desc, plan.spec, a.ptr, b.ptr, *slots)


def _check_added(name: str, input: Tensor, full, *rest: Tensor) -> None:
    """The added input broadcasts to the result."""
    if input.ndim > len(full):
        raise errors.expand_too_short(input.shape, full)
    input.spec.layout.expand(full)


def _added_flops(args, kwargs, result) -> int:
    return (8 if result.dtype.is_complex else 2) * result.numel() * args[1].shape[-1] + result.numel()


def _times(g, factor):
    return g if factor == 1 else g * factor


def _back(g, factor):
    """The gradient behind a product with a number."""
    return _times(g, factor.conjugate() if isinstance(factor, complex) else factor)


@backward("Addmm", saved_names=("input", "mat1", "mat2"))
def AddmmBackward0(node, g):
    a, b = operands_of(node)
    scaled = _back(g, node.alpha)
    return (
        sum_to(_back(g, node.beta), node.shape) if node.needs[0] else None,
        _left_gradient(scaled, a, b) if node.needs[1] else None,
        _right_gradient(scaled, a, b) if node.needs[2] else None,
    )


@operator("addmm", out=True, inplace=True, autocast="lower", flops=_added_flops)
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta * input + alpha * mat1 @ mat2: [m, n] (or what broadcasts to it), [m, k], [k, n] -> [m, n]."""
    _tensors("addmm", input=input, mat1=mat1, mat2=mat2)
    for name, t in (("mat1", mat1), ("mat2", mat2)):
        if t.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {t.ndim}-D tensor\n  shape {list(t.shape)}; baddbmm takes batches.")
    if mat1.shape[1] != mat2.shape[0]:
        raise errors.matmul_mismatch(mat1.shape, mat2.shape, ("mat1", "mat2"))
    _same_dtype(input, mat1, mat2)
    _supported("addmm_impl_cpu_", mat1)
    full = (mat1.shape[0], mat2.shape[1])
    _check_added("addmm", input, full)
    out = _added_product(input, mat1, mat2, full, beta, alpha)
    if tracking(input, mat1, mat2):
        record_product(AddmmBackward0, (input, mat1, mat2), out, mat1, mat2, alpha=alpha, beta=beta, shape=input.shape)
    return out


def _same_dtype(input: Tensor, a: Tensor, b: Tensor) -> None:
    if input.dtype is not b.dtype or a.dtype is not b.dtype:
        first = input if input.dtype is not b.dtype else a
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {first.dtype.scalar_name} and {b.dtype.scalar_name}\n"
            f"  input: {input.dtype}, mat1: {a.dtype}, mat2: {b.dtype}\n  Convert them to one dtype, as in x.to({b.dtype})."
        )


@backward("Baddbmm", saved_names=("batch1", "batch2"))
def BaddbmmBackward0(node, g):
    a, b = operands_of(node)
    scaled = _back(g, node.alpha)
    return (
        sum_to(_back(g, node.beta), node.shape) if node.needs[0] else None,
        bmm(scaled, _conj(b).transpose(1, 2)) if node.needs[1] else None,
        bmm(_conj(a).transpose(1, 2), scaled) if node.needs[2] else None,
    )


@operator("baddbmm", out=True, inplace=True, autocast="lower", flops=_added_flops)
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * batch1 @ batch2, matrix by matrix: [b, m, n], [b, m, k], [b, k, n] -> [b, m, n]."""
    _tensors("baddbmm", input=input, batch1=batch1, batch2=batch2)
    _check_batch_ranks(batch1, batch2)
    if not input.dtype is batch1.dtype is batch2.dtype:
        names = [errors.c_name(t.dtype) for t in (input, batch1, batch2)]
        raise RuntimeError(f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: {names[2]}\n  Convert them to one dtype, as in x.to({batch1.dtype}).")
    _check_batches(batch1, batch2)
    _supported("baddbmm", batch1)
    full = (*batch1.shape[:2], batch2.shape[2])
    _check_added("baddbmm", input, full)
    out = _added_product(input, batch1, batch2, full, beta, alpha)
    if tracking(input, batch1, batch2):
        record_product(BaddbmmBackward0, (input, batch1, batch2), out, batch1, batch2, alpha=alpha, beta=beta, shape=input.shape)
    return out


def _check_batch_ranks(a: Tensor, b: Tensor) -> None:
    for name, t in (("batch1", a), ("batch2", b)):
        if t.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor\n  got shape {list(t.shape)}; [b, m, k] with [b, k, n] is needed.")


@backward("Addbmm", saved_names=("batch1", "batch2"))
def AddbmmBackward0(node, g):
    a, b = operands_of(node)
    each = _back(g, node.alpha).expand(a.shape[0], *g.shape)  # [b, m, n]
    return (
        sum_to(_back(g, node.beta), node.shape) if node.needs[0] else None,
        bmm(each, _conj(b).transpose(1, 2)) if node.needs[1] else None,
        bmm(_conj(a).transpose(1, 2), each) if node.needs[2] else None,
    )


def _addbmm_flops(args, kwargs, result) -> int:
    return (8 if result.dtype.is_complex else 2) * result.numel() * args[1].shape[0] * args[1].shape[-1] + result.numel()


@operator("addbmm", out=True, inplace=True, autocast="lower", flops=_addbmm_flops)
def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * sum over the batch of batch1 @ batch2: [m, n], [b, m, k], [b, k, n] -> [m, n]."""
    _tensors("addbmm", input=input, batch1=batch1, batch2=batch2)
    full = (batch1.shape[-2] if batch1.ndim > 1 else 1, batch2.shape[-1] if batch2.ndim else 1)
    _check_added("addbmm", input, full)
    _check_batch_ranks(batch1, batch2)
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {batch1.shape[0]} and {batch2.shape[0]}")
    if batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({batch1.shape[1]}x{batch1.shape[2]} and {batch2.shape[1]}x{batch2.shape[2]})")
    _same_dtype(input, batch1, batch2)
    _supported("addbmm", batch1)
    with no_grad():  # the sum over the batch is a longer inner dimension: [m, b·k] @ [b·k, n]
        long = batch1.shape[0] * batch1.shape[2]
        out = _added_product(input, batch1.permute(1, 0, 2).reshape(full[0], long), batch2.reshape(long, full[1]), full, beta, alpha)
    if tracking(input, batch1, batch2):
        record_product(AddbmmBackward0, (input, batch1, batch2), out, batch1, batch2, alpha=alpha, beta=beta, shape=input.shape)
    return out


@backward("Addmv", saved_names=("mat", "vec"))
def AddmvBackward0(node, g):
    mat, vec = operands_of(node)
    scaled = _back(g, node.alpha)
    return (
        sum_to(_back(g, node.beta), node.shape) if node.needs[0] else None,
        scaled.unsqueeze(1) * _conj(vec) if node.needs[1] else None,  # [m, k]
        mv(_conj(mat).t(), scaled) if node.needs[2] else None,
    )


@operator("addmv", out=True, inplace=True, flops=_added_flops)
def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta * input + alpha * mat @ vec: [m] (or what broadcasts to it), [m, k], [k] -> [m]."""
    _tensors("addmv", input=input, mat=mat, vec=vec)
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.shape[0] or input.numel() not in (1, mat.shape[0]):
        raise RuntimeError(
            f"size mismatch, got input ({input.numel()}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})\n"
            f"  input [m], mat [m, k], vec [k]: m and k must agree."
        )
    if not input.dtype is mat.dtype is vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {input.dtype.scalar_name}, {mat.dtype.scalar_name}, and {vec.dtype.scalar_name}"
            f"\n  Convert them to one dtype, as in x.to({mat.dtype})."
        )
    _supported("addmv_impl_cpu", mat)
    column = wrap(_as_matrix(vec.spec, False), vec.mem, vec.ptr)  # [k, 1]
    added = input if input.ndim == 0 else wrap(_as_matrix(input.spec, False), input.mem, input.ptr)  # [m, 1]
    product = _added_product(added, mat, column, (mat.shape[0], 1), beta, alpha)
    out = wrap(Spec.of(Layout.contiguous((mat.shape[0],)), mat.dtype, product.device), product.mem, product.ptr)
    if tracking(input, mat, vec):
        record_product(AddmvBackward0, (input, mat, vec), out, mat, vec, alpha=alpha, beta=beta, shape=input.shape)
    return out


# ---- linear ---------------------------------------------------------------------------------------------------------------

_LINEAR = PlanCache()


def _linear_plan(input: Tensor, weight: Tensor, bias: Tensor | None) -> Plan:
    _tensors("linear", input=input, weight=weight, **({} if bias is None else {"bias": bias}))
    if weight.ndim not in (1, 2) or weight.ndim == 1 and bias is not None and bias.ndim:
        raise RuntimeError(f"linear(): weight must be [out, in] (or [in]), got shape {list(weight.shape)}")
    if input.ndim == 0:
        raise RuntimeError("both arguments to matmul need to be at least 1D, but they are 0D and 2D\n  linear takes [*, in].")
    turned = weight.spec.with_layout(weight.spec.layout.permute((1, 0))) if weight.ndim == 2 else weight.spec.with_layout(weight.spec.layout.unsqueeze(1))
    if input.shape[-1] != turned.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({prod(input.shape[:-1])}x{input.shape[-1]} and {turned.shape[0]}x{turned.shape[1]})\n"
            f"  input: {list(input.shape)}   last size {input.shape[-1]}\n  weight: {list(weight.shape)}   [out, in] with in = {weight.shape[-1]}\n"
            f"  linear computes input @ weight.T: the input's last size must be the layer's in_features."
        )
    if bias is None:
        if input.dtype is not weight.dtype:
            raise errors.dtype_mismatch(input.dtype, weight.dtype, ("input", "weight"))
    elif input.dtype is not weight.dtype or bias.dtype is not weight.dtype:
        raise errors.added_dtype_mismatch(input.dtype, weight.dtype, bias.dtype)
    _supported("addmm_impl_cpu_", input)
    rows = prod(input.shape[:-1])
    if bias is not None:
        bias.spec.layout.expand((rows, turned.shape[1]))
    source = _as_matrix(input.spec, True)
    full = (*source.shape[:-1], turned.shape[1])
    desc, device = _descriptor(source, turned, full, None if bias is None else bias.spec.layout)
    shape = (*input.shape[:-1], *([full[-1]] if weight.ndim == 2 else []))
    spec = Spec.of(Layout.contiguous(shape), input.dtype, device)
    inner = Spec.of(Layout.contiguous((rows, full[-1])), input.dtype, device)
    node = LinearMmBackward if bias is None else LinearAddmmBackward
    outer = None if inner is spec else ViewBackward0 if bias is not None else SqueezeBackward4 if input.ndim == 1 else UnsafeViewBackward0
    plan = Plan(desc, spec, node, inner, outer, full)
    return plan if input.dtype.is_complex else _LINEAR.put((input.spec, weight.spec, None if bias is None else bias.spec), plan)


def _complex_linear(plan: Plan, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`linear` as a product and a sum, by a plan that is not kept."""
    with no_grad():
        out = matmul(input, weight.t())
        out = out if bias is None else out + bias
    if tracking(input, weight) or bias is not None and tracking(bias):
        inputs, more = ((input, weight), {}) if bias is None else ((bias, input, weight), {"shape": bias.shape})
        _record_linear(plan, inputs, out, input, weight, **more)
    return out


def _linear_gradients(node, g):
    """Gradients of bias [out], where there is one, input [*, in] and weight [out, in] from g [rows, out]."""
    needs = node.needs
    x, w = node.saved
    like_x, like_w = node.of if x is None or w is None else (x.spec, w.spec)
    if not (STATE.grad_enabled or HOOKS.active or like_w.dtype.is_complex):
        into_x, into_w = _LINEAR_BACK.get((g.spec, like_x, like_w)) or _linear_back_plans(g.spec, like_x, like_w)
        if into_x is not None:
            of_x = run_plan(into_x.desc, into_x.spec, g.ptr, w.ptr) if needs[-2] else None
            if needs[-1] and (run := STATE.run) is not None and gathered(run, node, g, x):
                return (None,) * (len(needs) - 2) + (of_x, None)
            of_w = run_plan(into_w.desc, into_w.spec, g.ptr, x.ptr) if needs[-1] else None
            return (of_x, of_w) if len(needs) == 2 else (sum_to(g, node.shape) if needs[0] else None, of_x, of_w)
    of_x = matmul(g, _conj(w if w.ndim == 2 else w.unsqueeze(0))).reshape(like_x.shape) if needs[-2] else None
    of_w = mm(g.t(), _conj(_rows(x))).reshape(like_w.shape) if needs[-1] else None
    return (of_x, of_w) if len(needs) == 2 else (sum_to(g, node.shape) if needs[0] else None, of_x, of_w)


_LINEAR_BACK = PlanCache()


def _linear_back_plans(g: Spec, x: Spec, w: Spec) -> tuple[Plan | None, Plan | None]:
    """Plans of both gradients where no operand needs a copy: g [rows, out] @ w [out, in], g.T @ x [rows, in]. (None, None) elsewhere."""
    plans: tuple[Plan | None, Plan | None] = None, None
    rows = x.layout.view((g.shape[0], x.shape[-1]))
    if w.ndim == 2 and rows is not None and not g.is_meta and g.dtype is x.dtype is w.dtype:
        into_x, _ = _descriptor(g, w, (g.shape[0], w.shape[1]))
        into_w, _ = _descriptor(g.with_layout(g.layout.transpose(0, 1)), x.with_layout(rows), w.shape)
        plans = Plan(into_x, x.with_layout(Layout.contiguous(x.shape))), Plan(into_w, w.with_layout(Layout.contiguous(w.shape)))
    return _LINEAR_BACK.put((g, x, w), plans)


@backward("Mm", saved_names=("self", "mat2"))
def LinearMmBackward(node, g):
    return _linear_gradients(node, g)


@backward("Addmm", saved_names=("mat1", "mat2"))
def LinearAddmmBackward(node, g):
    return _linear_gradients(node, g)


def _linear_flops(args, kwargs, result) -> int:
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    return (8 if result.dtype.is_complex else 2) * result.numel() * args[0].shape[-1] + (result.numel() if bias is not None else 0)


@functools.cache
def _of_blocks():
    """Products with block tensors, whose kernels are imported when there is one."""
    from .blocks import products

    return products


@operator("linear", method=False, namespace="nn.functional", autocast="lower", flops=_linear_flops)
def linear(input, weight, bias=None):
    """input @ weight.T + bias in one kernel: [*, in], [out, in], [out] -> [*, out]. The weight is read where it is, never transposed in memory."""
    if type(weight) is BlockTensor:
        return _of_blocks().linear_of_blocks(input, weight, bias)
    try:
        if bias is None:
            plan = _LINEAR[input.spec, weight.spec, None]
        else:
            plan = _LINEAR[input.spec, weight.spec, bias.spec]
    except (KeyError, AttributeError, NotOfBlocks):
        plan = None  # planned outside: an error there has no KeyError behind it
    if plan is None:
        if isinstance(weight, BlockTensor) or isinstance(input, BlockTensor):
            return _of_blocks().linear_of_blocks(input, weight, bias)
        plan = _linear_plan(input, weight, bias)
        if input.dtype.is_complex:
            return _complex_linear(plan, input, weight, bias)
    if bias is None:
        out = run_plan(plan.desc, plan.spec, input.ptr, weight.ptr)
        if tracking(input, weight):
            _record_linear(plan, (input, weight), out, input, weight)
        return out
    one = 1.0 if input.dtype.is_floating_point else 1
    out = run_plan(plan.desc, plan.spec, input.ptr, weight.ptr, bias.ptr, one, one)
    if tracking(input, weight, bias):
        _record_linear(plan, (bias, input, weight), out, input, weight, shape=bias.shape)
    return out


def _record_linear(plan: Plan, inputs, out: Tensor, input: Tensor, weight: Tensor, **attributes) -> None:
    product = out if plan.outer is None else wrap(plan.inner, out.mem, out.ptr)
    if input._tracked and weight._tracked:
        record(plan.node, inputs, product, (input, weight), **attributes)
    else:
        record_product(plan.node, inputs, product, input, weight, **attributes)
    if plan.outer is None:
        return
    record(plan.outer, (product,), out, shape=plan.inner.shape)
