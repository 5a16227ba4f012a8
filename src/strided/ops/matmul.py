"""Products of matrices and vectors: matmul and @, mm, bmm, mv, dot, linear, and the forms with an added input.

Every product of two given kinds of operands has one cached plan: a kernel descriptor and the result's spec. Contractions written as equations
(einsum, tensordot, …) are contract.py's; the kernels are kernels/matmul.py's.
"""
from __future__ import annotations

from math import prod

from .. import errors
from ..autograd import backward, record, tracking
from ..dispatch import HOOKS, PlanCache, launch_new
from ..dispatch import run as run_plan
from ..kernels.matmul import DTYPES, build_matmul
from ..layout import Layout, broadcast_shapes
from ..tensor import Spec, Tensor, wrap
from .table import operator

# ---- plans ----------------------------------------------------------------------------------------------------------------


class Plan:
    """desc: the kernel's descriptor (None on meta). spec: the result's. inner: the spec of what the product's node returns, where the result is a view of it.

    node: class of the node. full: shape [*, m, n] of the product before dimensions were dropped.
    """

    __slots__ = ("desc", "spec", "inner", "node", "outer", "full")

    def __init__(self, desc, spec, node=None, inner=None, outer=None, full=None):
        self.desc, self.spec, self.node, self.inner, self.outer, self.full = desc, spec, node, inner, outer, full


def _descriptor(a: Spec, b: Spec, full, added: Layout | None = None, scale: bool = False):
    """(descriptor, device) of the product of two layouts [*, m, k] and [*, k, n] into a fresh row-major [*, m, n]."""
    device = a.device if a.is_meta or not b.is_meta else b.device
    if a.is_meta or b.is_meta:
        return None, device
    dtype, batch = a.dtype, tuple(full[:-2])
    operand = lambda layout: (dtype, layout.expand((*batch, *layout.shape[-2:])))
    extra = None if added is None else (dtype, added.expand(full))
    return build_matmul((dtype, Layout.contiguous(full)), operand(a.layout), operand(b.layout), extra, scale=scale, result_bytes=prod(full) * dtype.itemsize), device


def _tensors(name, **arguments):
    """Refuses what is no tensor, in PyTorch's words."""
    for position, (argument, value) in enumerate(arguments.items(), 1):
        if not isinstance(value, Tensor):
            raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}")


def _supported(name, *tensors):
    for t in tensors:
        if t.dtype.name not in DTYPES:
            raise NotImplementedError(f'"{name}" not implemented for \'{t.dtype.scalar_name}\'\n  Convert the operands first, as in x.float().')


def _as_matrix(spec: Spec, left: bool) -> Spec:
    """A vector as the one row (left operand) or the one column (right operand) of a matrix."""
    return spec if spec.ndim > 1 else spec.with_layout(spec.layout.unsqueeze(0 if left else 1))


# ---- gradients ------------------------------------------------------------------------------------------------------------


def _sum_to(g: Tensor, shape) -> Tensor:
    """Adds up the dimensions that broadcasting expanded."""
    if tuple(g.shape) == tuple(shape):
        return g
    extra = g.ndim - len(shape)
    dims = [*range(extra), *(d + extra for d, size in enumerate(shape) if size == 1 and g.shape[d + extra] != 1)]
    if dims:
        g = g.sum(dims, True)
    return g.reshape(shape)


def _column_major(t: Tensor) -> bool:
    """A transposed matrix gets its gradient laid out like itself, so that the parameter behind it gets a row-major one."""
    shape, strides = t.spec.shape, t.spec.strides
    return strides[0] == 1 and strides[1] == shape[0] and shape[0] > 1 and shape[1] > 1


def _left_gradient(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return mm(b, g.t()).t() if _column_major(a) else mm(g, b.t())  # [m, k]


def _right_gradient(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return mm(g.t(), a).t() if _column_major(b) else mm(a.t(), g)  # [k, n]


@backward("Mm", saved_names=("self", "mat2"))
def MmBackward0(node, g):
    a, b = node.saved
    return _left_gradient(g, a, b) if node.needs[0] else None, _right_gradient(g, a, b) if node.needs[1] else None


@backward("UnsafeView")
def UnsafeViewBackward0(node, g):
    return (g.reshape(node.shape),)


@backward("View")
def ViewBackward0(node, g):
    return (g.reshape(node.shape),)


@backward("SqueezeBackward4")
def SqueezeBackward4(node, g):
    return (g.reshape(node.shape),)


def _product_backward(node, g):
    """Gradients of a product with batch dimensions or vectors; node.full is the shape [*, m, n] of the product."""
    a, b = node.saved
    g = g.reshape(node.full)
    left = a if a.ndim > 1 else a.unsqueeze(0)
    right = b if b.ndim > 1 else b.unsqueeze(1)
    return (
        _sum_to(matmul(g, right.transpose(-2, -1)), left.shape).reshape(a.shape) if node.needs[0] else None,
        _right_of_batch(g, left, right).reshape(b.shape) if node.needs[1] else None,
    )


def _right_of_batch(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Gradient of b in a [*, m, k] @ b [*, k, n]: one product over all rows where one matrix b served every batch entry."""
    if prod(b.shape[:-2]) == 1:
        if a.ndim < g.ndim or a.shape[:-2] != g.shape[:-2]:
            a = a.expand(*g.shape[:-2], *a.shape[-2:])
        return mm(a.reshape(-1, a.shape[-1]).t(), g.reshape(-1, g.shape[-1])).reshape(b.shape)
    return _sum_to(matmul(a.transpose(-2, -1), g), b.shape)


_PRODUCT_NODES = {name: backward(name, saved_names=("self", second))(_product_backward) for name, second in (("Mm", "mat2"), ("Bmm", "mat2"), ("Mv", "vec"), ("Dot", "tensor"), ("Vdot", "other"))}


# ---- matmul ---------------------------------------------------------------------------------------------------------------

_MATMUL = PlanCache()


def _matmul_plan(a: Tensor, b: Tensor) -> Plan:
    _tensors("matmul", input=a, other=b)
    if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[-2 if b.ndim > 1 else -1]:
        raise errors.matmul_mismatch(a.shape, b.shape)
    if a.dtype is not b.dtype:
        raise _mixed_dtypes(a, b)
    _supported("addmm_impl_cpu_" if a.ndim == b.ndim == 2 else "bmm" if max(a.ndim, b.ndim) > 2 else "dot" if a.ndim == b.ndim == 1 else "addmv_impl_cpu", a)
    left, right = _as_matrix(a.spec, True), _as_matrix(b.spec, False)
    batch = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    full = (*batch, left.shape[-2], right.shape[-1])
    shape = (*batch, *([full[-2]] if a.ndim > 1 else []), *([full[-1]] if b.ndim > 1 else []))
    desc, device = _descriptor(left, right, full)
    spec = Spec.of(Layout.contiguous(shape), a.dtype, device)
    node, inner, outer = _matmul_nodes(a.ndim, b.ndim, full)
    inner = spec if inner is None else Spec.of(Layout.contiguous(inner), a.dtype, device)
    return _MATMUL.put((a.spec, b.spec), Plan(desc, spec, node, inner, outer, full))


def _matmul_nodes(a: int, b: int, full):
    """Node of the product, its result's shape (None: the final one), node of the view that follows, for operands of these numbers of dimensions."""
    rows = prod(full[:-1])
    if a == b == 1:
        return _PRODUCT_NODES["Dot"], None, None
    if a == b == 2:
        return MmBackward0, None, None
    if a == 2 and b == 1:
        return _PRODUCT_NODES["Mv"], None, None
    if a == 1 and b == 2:
        return _PRODUCT_NODES["Mm"], (1, full[-1]), SqueezeBackward4
    if b == 1:
        return _PRODUCT_NODES["Mv"], (rows,), UnsafeViewBackward0
    if b == 2:
        return _PRODUCT_NODES["Mm"], (rows, full[-1]), UnsafeViewBackward0
    return _PRODUCT_NODES["Bmm"], (prod(full[:-2]), *full[-2:]), UnsafeViewBackward0


def _mixed_dtypes(a: Tensor, b: Tensor) -> RuntimeError:
    error = errors.dtype_mismatch(a.dtype, b.dtype)
    rest = str(error).partition("\n")[2]
    first, second = a.dtype.scalar_name, b.dtype.scalar_name
    if max(a.ndim, b.ndim) > 2 and b.ndim > 2:
        return RuntimeError(f"expected scalar type {first} but found {second}\n{rest}")
    if b.ndim == 1 and a.ndim == 1:
        return RuntimeError(f"dot : expected both vectors to have same dtype, but found {first} and {second}\n{rest}")
    if b.ndim == 1:
        return RuntimeError(f"addmv input tensors must have the same dtype, but got {second}, {first}, and {second}\n{rest}")
    return error


def _record_product(plan: Plan, a: Tensor, b: Tensor, out: Tensor) -> Tensor:
    if plan.outer is None:
        if plan.node is MmBackward0:
            record(MmBackward0, (a, b), out, (a, b))
        else:
            record(plan.node, (a, b), out, (a, b), full=plan.full)
        return out
    product = wrap(plan.inner, out.mem, out.ptr)
    record(plan.node, (a, b), product, (a, b), full=plan.full)
    record(plan.outer, (product,), out, shape=plan.inner.shape)
    return out


def _product_flops(args, kwargs, result) -> int:
    """Two operations an element of k and of the result; each entry of a (or b) meets as many."""
    a = args[0]
    return 2 * result.numel() * a.shape[-1] if a.ndim else 0


@operator("matmul", out=True, autocast="lower", flops=_product_flops)
def matmul(input, other):
    """Matrix product [*, m, k] @ [*, k, n] -> [*, m, n]; batch dimensions broadcast, vectors lose their dimension in the result.

    16-bit floats are summed in float32 and rounded once. Raises RuntimeError where the inner sizes, the batch sizes or the dtypes differ.
    """
    try:
        plan = _MATMUL[input.spec, other.spec]
    except (KeyError, AttributeError):
        plan = _matmul_plan(input, other)
    if plan.desc is None:
        out = run_plan(None, plan.spec)
    else:
        memory = launch_new(plan.desc, input.ptr, other.ptr)
        out = wrap(plan.spec, memory, memory.data)
    # Neither tracked nor a view of something that might be: the usual case without gradients, asked without a call.
    if (input._tracked or other._tracked or input._base is not None or other._base is not None) and tracking(input, other):
        return _record_product(plan, input, other, out)
    return out


_matmul = matmul.__wrapped__


def _matmul_method(self, other):
    """self @ other: `matmul`, without the wrapper's cost while nobody listens."""
    if not isinstance(other, Tensor):
        return NotImplemented
    return matmul(self, other) if HOOKS.active else _matmul(self, other)


def _rmatmul_method(self, other):
    return matmul(other, self) if isinstance(other, Tensor) else NotImplemented


Tensor.__matmul__, Tensor.__rmatmul__ = _matmul_method, _rmatmul_method


@operator("mm", out=True, autocast="lower", flops=_product_flops)
def mm(input, mat2):
    """Product of two matrices [m, k] @ [k, n] -> [m, n]; nothing broadcasts."""
    try:
        if input.ndim != 2:
            raise RuntimeError(f"self must be a matrix\n  got shape {list(input.shape)}; matmul (or @) takes batches and vectors.")
        if mat2.ndim != 2:
            raise RuntimeError(f"mat2 must be a matrix\n  got shape {list(mat2.shape)}; matmul (or @) takes batches and vectors.")
    except AttributeError:
        _tensors("mm", input=input, mat2=mat2)
        raise
    return matmul(input, mat2)


@operator("bmm", out=True, autocast="lower", flops=_product_flops)
def bmm(input, mat2):
    """Products of matrices with the same batch size: [b, m, k] @ [b, k, n] -> [b, m, n]; nothing broadcasts."""
    _tensors("bmm", input=input, mat2=mat2)
    if input.ndim != 3:
        raise RuntimeError(f"batch1 must be a 3D tensor\n  got shape {list(input.shape)}; matmul (or @) broadcasts batches.")
    if mat2.ndim != 3:
        raise RuntimeError(f"batch2 must be a 3D tensor\n  got shape {list(mat2.shape)}; matmul (or @) broadcasts batches.")
    _check_batches(input, mat2)
    plan = _MATMUL.get((input.spec, mat2.spec)) or _matmul_plan(input, mat2)
    out = run_plan(plan.desc, plan.spec, input.ptr, mat2.ptr)
    if tracking(input, mat2):
        record(_PRODUCT_NODES["Bmm"], (input, mat2), out, (input, mat2), full=plan.full)
    return out


def _check_batches(a: Tensor, b: Tensor) -> None:
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}].\n"
            f"  batch1: {list(a.shape)}\n  batch2: {list(b.shape)}\n  [b, m, k] with [b, k, n]: batch size b and inner size k must agree; matmul (or @) broadcasts b."
        )


@operator("mv", out=True, flops=_product_flops)
def mv(input, vec):
    """Matrix times vector: [m, k] @ [k] -> [m]."""
    _tensors("mv", input=input, vec=vec)
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}\n  input: {list(input.shape)}\n  vec: {list(vec.shape)}\n  matmul (or @) takes other ranks.")
    return matmul(input, vec)


def _dot(name: str, node, input, tensor):
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors\n  {list(input.shape)} and {list(tensor.shape)}: flatten them, or use matmul (@).")
    plan = _MATMUL.get((input.spec, tensor.spec)) or _matmul_plan(input, tensor)
    out = run_plan(plan.desc, plan.spec, input.ptr, tensor.ptr)
    if tracking(input, tensor):
        record(node, (input, tensor), out, (input, tensor), full=plan.full)
    return out


@operator("dot", out=True, flops=_product_flops)
def dot(input, tensor):
    """Sum of products of two vectors: [k], [k] -> scalar."""
    _tensors("dot", input=input, tensor=tensor)
    return _dot("dot", _PRODUCT_NODES["Dot"], input, tensor)


@operator("vdot", out=True, flops=_product_flops)
def vdot(input, other):
    """`dot` of real vectors (of complex ones the first would be conjugated)."""
    _tensors("vdot", input=input, other=other)
    return _dot("vdot", _PRODUCT_NODES["Vdot"], input, other)


# ---- with an added input --------------------------------------------------------------------------------------------------

_ADDED = PlanCache()


def _added_plan(key, a: Spec, b: Spec, added: Layout | None, full, scale: bool) -> Plan:
    desc, device = _descriptor(a, b, full, added, scale)
    return _ADDED.put(key, Plan(desc, Spec.of(Layout.contiguous(full), a.dtype, device)))


def _scalar(dtype, value):
    """alpha or beta as the kernel takes it: fractions are dropped for integer products."""
    return float(value) if dtype.is_floating_point else int(value)


def _added_product(input: Tensor, a: Tensor, b: Tensor, full, beta, alpha) -> Tensor:
    """beta * input + alpha * a @ b in one kernel, without recording. beta = 0 leaves the input out: its NaNs do not pass."""
    dtype = a.dtype
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
    return 2 * result.numel() * args[1].shape[-1] + result.numel()


def _times(g, factor):
    return g if factor == 1 else g * factor


@backward("Addmm", saved_names=("input", "mat1", "mat2"))
def AddmmBackward0(node, g):
    a, b = node.saved
    scaled = _times(g, node.alpha)
    return (
        _sum_to(_times(g, node.beta), node.shape) if node.needs[0] else None,
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
        record(AddmmBackward0, (input, mat1, mat2), out, (mat1, mat2), alpha=alpha, beta=beta, shape=input.shape)
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
    a, b = node.saved
    scaled = _times(g, node.alpha)
    return (
        _sum_to(_times(g, node.beta), node.shape) if node.needs[0] else None,
        bmm(scaled, b.transpose(1, 2)) if node.needs[1] else None,
        bmm(a.transpose(1, 2), scaled) if node.needs[2] else None,
    )


@operator("baddbmm", out=True, inplace=True, autocast="lower", flops=_added_flops)
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta * input + alpha * batch1 @ batch2, matrix by matrix: [b, m, n], [b, m, k], [b, k, n] -> [b, m, n]."""
    _tensors("baddbmm", input=input, batch1=batch1, batch2=batch2)
    _check_batch_ranks(batch1, batch2)
    if not input.dtype is batch1.dtype is batch2.dtype:
        names = [errors._c_name(t.dtype) for t in (input, batch1, batch2)]
        raise RuntimeError(f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: {names[2]}\n  Convert them to one dtype, as in x.to({batch1.dtype}).")
    _check_batches(batch1, batch2)
    _supported("baddbmm", batch1)
    full = (*batch1.shape[:2], batch2.shape[2])
    _check_added("baddbmm", input, full)
    out = _added_product(input, batch1, batch2, full, beta, alpha)
    if tracking(input, batch1, batch2):
        record(BaddbmmBackward0, (input, batch1, batch2), out, (batch1, batch2), alpha=alpha, beta=beta, shape=input.shape)
    return out


def _check_batch_ranks(a: Tensor, b: Tensor) -> None:
    for name, t in (("batch1", a), ("batch2", b)):
        if t.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor\n  got shape {list(t.shape)}; [b, m, k] with [b, k, n] is needed.")


@backward("Addbmm", saved_names=("batch1", "batch2"))
def AddbmmBackward0(node, g):
    a, b = node.saved
    each = _times(g, node.alpha).expand(a.shape[0], *g.shape)  # [b, m, n]
    return (
        _sum_to(_times(g, node.beta), node.shape) if node.needs[0] else None,
        bmm(each, b.transpose(1, 2)) if node.needs[1] else None,
        bmm(a.transpose(1, 2), each) if node.needs[2] else None,
    )


def _addbmm_flops(args, kwargs, result) -> int:
    return 2 * result.numel() * args[1].shape[0] * args[1].shape[-1] + result.numel()


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
    from ..autograd import no_grad

    with no_grad():  # the sum over the batch is a longer inner dimension: [m, b·k] @ [b·k, n]
        long = batch1.shape[0] * batch1.shape[2]
        out = _added_product(input, batch1.permute(1, 0, 2).reshape(full[0], long), batch2.reshape(long, full[1]), full, beta, alpha)
    if tracking(input, batch1, batch2):
        record(AddbmmBackward0, (input, batch1, batch2), out, (batch1, batch2), alpha=alpha, beta=beta, shape=input.shape)
    return out


@backward("Addmv", saved_names=("mat", "vec"))
def AddmvBackward0(node, g):
    mat, vec = node.saved
    scaled = _times(g, node.alpha)
    return (
        _sum_to(_times(g, node.beta), node.shape) if node.needs[0] else None,
        scaled.unsqueeze(1) * vec if node.needs[1] else None,  # [m, k]
        mv(mat.t(), scaled) if node.needs[2] else None,
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
        record(AddmvBackward0, (input, mat, vec), out, (mat, vec), alpha=alpha, beta=beta, shape=input.shape)
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
    else:
        _same_dtype(bias, input, weight)
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
    return _LINEAR.put((input.spec, weight.spec, None if bias is None else bias.spec), Plan(desc, spec, node, inner, outer, full))


def _linear_gradients(node, g):
    """Gradients of input [*, in] and weight [out, in] from g [rows, out]."""
    x, w = node.saved
    matrix = w if w.ndim == 2 else w.unsqueeze(0)
    return (
        matmul(g, matrix).reshape(x.shape) if node.needs[-2] else None,
        mm(g.t(), x.reshape(-1, x.shape[-1])).reshape(w.shape) if node.needs[-1] else None,
    )


@backward("Mm", saved_names=("self", "mat2"))
def LinearMmBackward(node, g):
    return _linear_gradients(node, g)


@backward("Addmm", saved_names=("mat1", "mat2"))
def LinearAddmmBackward(node, g):
    return (_sum_to(g, node.shape) if node.needs[0] else None, *_linear_gradients(node, g))


def _linear_flops(args, kwargs, result) -> int:
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    return 2 * result.numel() * args[0].shape[-1] + (result.numel() if bias is not None else 0)


@operator("linear", method=False, namespace="nn.functional", autocast="lower", flops=_linear_flops)
def linear(input, weight, bias=None):
    """input @ weight.T + bias in one kernel: [*, in], [out, in], [out] -> [*, out]. The weight is read where it is, never transposed in memory."""
    try:
        if bias is None:
            plan = _LINEAR[input.spec, weight.spec, None]
        else:
            plan = _LINEAR[input.spec, weight.spec, bias.spec]
    except (KeyError, AttributeError):
        plan = _linear_plan(input, weight, bias)
    if bias is None:
        out = run_plan(plan.desc, plan.spec, input.ptr, weight.ptr)
        if tracking(input, weight):
            _record_linear(plan, (input, weight), out, (input, weight))
        return out
    one = 1.0 if input.dtype.is_floating_point else 1
    out = run_plan(plan.desc, plan.spec, input.ptr, weight.ptr, bias.ptr, one, one)
    if tracking(input, weight, bias):
        _record_linear(plan, (bias, input, weight), out, (input, weight), shape=bias.shape)
    return out


def _record_linear(plan: Plan, inputs, out: Tensor, saves, **attributes) -> None:
    if plan.outer is None:
        record(plan.node, inputs, out, saves, **attributes)
        return
    product = wrap(plan.inner, out.mem, out.ptr)
    record(plan.node, inputs, product, saves, **attributes)
    record(plan.outer, (product,), out, shape=plan.inner.shape)


from . import contract  # noqa: E402, F401  (equations are written over the products above)
