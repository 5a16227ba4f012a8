"""Products of matrices and vectors: matmul and @, mm, bmm, mv, dot.

Every product of two given kinds of operands has one cached plan: a kernel descriptor and the result's spec. Contractions written as equations
(einsum, tensordot, …) are contract.py's, those with an added input (addmm, linear, …) added.py's; the kernels are kernels/matmul.py's.
"""
from __future__ import annotations

from math import prod

from .. import errors
from ..autograd import backward, no_grad, record, tracking
from ..autograd.graph import requires_grad
from ..block_tensor import BlockTensor, NotOfBlocks
from ..dispatch import HOOKS, PlanCache, launch_tensor
from ..dispatch import run as run_plan
from ..dtypes import META, complex64, complex128, int8, int32, uint8
from ..errors import PackedOperand
from ..kernels.matmul import DTYPES, build_matmul
from ..layout import Layout, broadcast_shapes
from ..tensor import Spec, Tensor, empty, wrap
from .complex_products import Product as complex_product
from .elementwise import sum_to
from .packed import call_unpacked
from .table import operator

# ---- plans ----------------------------------------------------------------------------------------------------------------


class Plan:
    """desc: the kernel's descriptor (None on meta, and for complex numbers). spec: the result's. inner: the spec of what the product's node returns, where the result is a view of it.

    node: class of the node. full: shape [*, m, n] of the product before dimensions were dropped. parts: what computes a complex product.
    """

    __slots__ = ("desc", "spec", "inner", "node", "outer", "full", "parts")

    def __init__(self, desc, spec, node=None, inner=None, outer=None, full=None, parts=None):
        self.desc, self.spec, self.node, self.inner, self.outer, self.full, self.parts = desc, spec, node, inner, outer, full, parts


def _run(plan: Plan, a: Tensor, b: Tensor) -> Tensor:
    """The product of a plan, of any dtype and device."""
    if plan.parts is None:
        return run_plan(plan.desc, plan.spec, a.ptr, b.ptr)
    memory = plan.parts(a.ptr, b.ptr)
    return wrap(plan.spec, memory, memory.data)


def _descriptor(a: Spec, b: Spec, full, added: Layout | None = None, scale: bool = False):
    """(descriptor, device) of the product of two layouts [*, m, k] and [*, k, n] into a fresh row-major [*, m, n]."""
    device = a.device if a.is_meta or not b.is_meta else b.device
    if a.is_meta or b.is_meta or a.dtype.is_complex:
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
        if t.dtype.packed:
            raise PackedOperand
        if t.dtype.name not in DTYPES and t.dtype is not complex64 and t.dtype is not complex128:
            raise NotImplementedError(f'"{name}" not implemented for \'{t.dtype.scalar_name}\'\n  Convert the operands first, as in x.float().')


def _as_matrix(spec: Spec, left: bool) -> Spec:
    """A vector as the one row (left operand) or the one column (right operand) of a matrix."""
    return spec if spec.ndim > 1 else spec.with_layout(spec.layout.unsqueeze(0 if left else 1))


# ---- gradients ------------------------------------------------------------------------------------------------------------


def _column_major(t: Tensor) -> bool:
    """A transposed matrix gets its gradient laid out like itself, so that the parameter behind it gets a row-major one."""
    shape, strides = t.spec.shape, t.spec.strides
    return strides[0] == 1 and strides[1] == shape[0] and shape[0] > 1 and shape[1] > 1


def _conj(t: Tensor) -> Tensor:
    """What multiplies a gradient: the conjugate of a complex factor."""
    return t.conj() if t.spec.dtype.is_complex else t


def _left_gradient(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return mm(_conj(b), g.t()).t() if _column_major(a) else mm(g, _conj(b).t())  # [m, k]


def _right_gradient(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return mm(g.t(), _conj(a)).t() if _column_major(b) else mm(_conj(a).t(), g)  # [k, n]


def record_product(cls, inputs: tuple, out: Tensor, a: Tensor, b: Tensor, **attributes) -> None:
    """Records a product of a and b, two of `inputs`. Each is kept for the other's gradient: where one is frozen, the other is not kept, and `of` has their specs."""
    if a._tracked and b._tracked:
        record(cls, inputs, out, (a, b), **attributes)
    else:
        record(cls, inputs, out, (a if requires_grad(b) else None, b if requires_grad(a) else None), of=(a.spec, b.spec), **attributes)


def operands_of(node) -> tuple[Tensor, Tensor]:
    """What a node keeps of a and b; one that no gradient needs is a meta tensor of its layout."""
    a, b = node.saved
    if a is None or b is None:
        a, b = (_outline(spec) if t is None else t for t, spec in zip((a, b), node.of))
    return a, b


def _outline(spec: Spec) -> Tensor:
    return empty(spec.shape, spec.dtype, META, spec.strides)


@backward("Mm", saved_names=("self", "mat2"))
def MmBackward0(node, g):
    a, b = operands_of(node)
    return _left_gradient(g, a, b) if node.needs[0] else None, _right_gradient(g, a, b) if node.needs[1] else None


@backward("UnsafeView")
def UnsafeViewBackward0(node, g):
    return (g.reshape(*node.shape),)


@backward("View")
def ViewBackward0(node, g):
    return (g.reshape(*node.shape),)


@backward("SqueezeBackward4")
def SqueezeBackward4(node, g):
    return (g.reshape(*node.shape),)


def _product_backward(node, g):
    """Gradients of a product with batch dimensions or vectors; node.full is the shape [*, m, n] of the product."""
    a, b = operands_of(node)
    g = g.reshape(node.full)
    left = a if a.ndim > 1 else a.unsqueeze(0)
    right = b if b.ndim > 1 else b.unsqueeze(1)
    return (
        sum_to(matmul(g, _conj(right).transpose(-2, -1)), left.shape).reshape(a.shape) if node.needs[0] else None,
        _right_of_batch(g, _conj(left), right).reshape(b.shape) if node.needs[1] else None,
    )


def _rows(t: Tensor) -> Tensor:
    """[*, n] as [rows, n]; spelled out, since -1 says nothing where there are no elements."""
    return t.reshape(prod(t.shape[:-1]), t.shape[-1])


def _right_of_batch(g: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Gradient of b in a [*, m, k] @ b [*, k, n], given the conjugate of a: one product over all rows where one matrix b served every batch entry."""
    if prod(b.shape[:-2]) == 1:
        if a.ndim < g.ndim or a.shape[:-2] != g.shape[:-2]:
            a = a.expand(*g.shape[:-2], *a.shape[-2:])
        return mm(_rows(a).t(), _rows(g)).reshape(b.shape)
    return sum_to(matmul(a.transpose(-2, -1), g), b.shape)


_PRODUCT_NODES = {name: backward(name, saved_names=("self", second))(_product_backward) for name, second in (("Mm", "mat2"), ("Bmm", "mat2"), ("Mv", "vec"), ("Dot", "tensor"))}


@backward("Vdot", saved_names=("self", "other"))
def VdotBackward0(node, g):
    a, b = operands_of(node)
    return _conj(g) * b if node.needs[0] else None, g * a if node.needs[1] else None


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
    parts = complex_product(left, right, full) if a.dtype.is_complex and not spec.is_meta else None
    return _MATMUL.put((a.spec, b.spec), Plan(desc, spec, node, inner, outer, full, parts))


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
            if a._tracked and b._tracked:
                record(MmBackward0, (a, b), out, (a, b))  # the usual product, without a call on the way
            else:
                record_product(MmBackward0, (a, b), out, a, b)
        else:
            record_product(plan.node, (a, b), out, a, b, full=plan.full)
        return out
    product = wrap(plan.inner, out.mem, out.ptr)
    record_product(plan.node, (a, b), product, a, b, full=plan.full)
    record(plan.outer, (product,), out, shape=plan.inner.shape)
    return out


def _product_flops(args, kwargs, result) -> int:
    """Two operations an element of k and of the result, eight of complex numbers; each entry of a (or b) meets as many."""
    a = args[0]
    return (8 if a.dtype.is_complex else 2) * result.numel() * a.shape[-1] if a.ndim else 0


@operator("matmul", out=True, autocast="lower", flops=_product_flops)
def matmul(input, other):
    """Matrix product [*, m, k] @ [*, k, n] -> [*, m, n]; batch dimensions broadcast, vectors lose their dimension in the result.

    16-bit floats are summed in float32 and rounded once. Raises RuntimeError where the inner sizes, the batch sizes or the dtypes differ.
    """
    try:
        plan = _MATMUL[input.spec, other.spec]
    except (KeyError, AttributeError, NotOfBlocks):
        plan = None  # planned outside: an error there has no KeyError behind it
    if plan is None:
        if isinstance(input, BlockTensor) or isinstance(other, BlockTensor):
            from .blocks.products import matmul_of_blocks

            return matmul_of_blocks(input, other)
        plan = _matmul_plan(input, other)
    if plan.desc is None:
        out = _run(plan, input, other)
    else:
        out = launch_tensor(plan.desc, plan.spec, input.ptr, other.ptr)
    # Neither tracked nor a view of something that might be: the usual case without gradients, asked without a call.
    if (input._tracked or other._tracked or input._base is not None or other._base is not None) and tracking(input, other):
        return _record_product(plan, input, other, out)
    return out


_matmul = matmul.__wrapped__


def _matmul_method(self, other):
    """self @ other: `matmul`, without the wrapper's cost while nobody listens."""
    if not isinstance(other, Tensor):
        return NotImplemented
    try:
        return matmul(self, other) if HOOKS.active else _matmul(self, other)
    except PackedOperand as error:
        return call_unpacked(_matmul, (self, other), {}, error)


def _rmatmul_method(self, other):
    return matmul(other, self) if isinstance(other, Tensor) else NotImplemented


Tensor.__matmul__, Tensor.__rmatmul__ = _matmul_method, _rmatmul_method


@operator("mm", out=True, autocast="lower", flops=_product_flops)
def mm(input, mat2):
    """Product of two matrices [m, k] @ [k, n] -> [m, n]; nothing broadcasts."""
    if not (isinstance(input, Tensor) and isinstance(mat2, Tensor)):
        _tensors("mm", input=input, mat2=mat2)  # raises
    if input.ndim != 2:
        raise RuntimeError(f"self must be a matrix\n  got shape {list(input.shape)}; matmul (or @) takes batches and vectors.")
    if mat2.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix\n  got shape {list(mat2.shape)}; matmul (or @) takes batches and vectors.")
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
    out = _run(plan, input, mat2)
    if tracking(input, mat2):
        record_product(_PRODUCT_NODES["Bmm"], (input, mat2), out, input, mat2, full=plan.full)
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
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}\n  input: {list(input.shape)}\n  vec: {list(vec.shape)}\n  matmul (or @) takes other ranks.")
    return matmul(input, vec)


def _dot(node, input, tensor, conjugated=False):
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors\n  {list(input.shape)} and {list(tensor.shape)}: flatten them, or use matmul (@).")
    left = input
    if conjugated:
        with no_grad():
            left = _conj(input)
    plan = _MATMUL.get((left.spec, tensor.spec)) or _matmul_plan(left, tensor)
    out = _run(plan, left, tensor)
    if tracking(input, tensor):
        record_product(node, (input, tensor), out, input, tensor, full=plan.full)
    return out


@operator("dot", out=True, flops=_product_flops)
def dot(input, tensor):
    """Sum of products of two vectors: [k], [k] -> scalar."""
    _tensors("dot", input=input, tensor=tensor)
    return _dot(_PRODUCT_NODES["Dot"], input, tensor)


@operator("vdot", out=True, flops=_product_flops)
def vdot(input, other):
    """`dot` of the first vector's conjugate with the second."""
    _tensors("vdot", input=input, other=other)
    return _dot(VdotBackward0, input, other, True)


# ---- bytes into 32 bits ---------------------------------------------------------------------------------------------------

_INT_MM = PlanCache()


@operator("_int_mm", method=False, out=True, flops=_product_flops)
def _int_mm(self, mat2):
    """Product of a matrix of int8 (or uint8) and one of int8, summed and kept in int32: [m, k] @ [k, n] -> [m, n], without wrapping to eight bits."""
    try:
        plan = _INT_MM[self.spec, mat2.spec]
    except (KeyError, AttributeError):
        plan = None
    if plan is None:
        plan = _int_mm_plan(self, mat2)
    return run_plan(*plan, self.ptr, mat2.ptr)


def _int_mm_plan(a: Tensor, b: Tensor):
    _tensors("_int_mm", self=a, mat2=b)
    for name, t in (("self", a), ("mat2", b)):
        if t.ndim != 2:
            raise RuntimeError(f"int_mm_out_cpu: Expected {name} to be of dimension 2 but got {t.ndim}\n  got shape {list(t.shape)}")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got {a.shape[1]} and {b.shape[0]}\n  self: {list(a.shape)}, mat2: {list(b.shape)}")
    if a.dtype not in (int8, uint8):
        raise RuntimeError(f"int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got {a.dtype.scalar_name.lower()}\n  convert it first, as in x.to(torch.int8).")
    if b.dtype is not int8:
        raise RuntimeError(f"int_mm_out_cpu: Expected mat2 dtype to be of type int8 but got {b.dtype.scalar_name.lower()}\n  convert it first, as in x.to(torch.int8).")
    spec = Spec.of(Layout.contiguous((a.shape[0], b.shape[1])), int32, a.device if a.is_meta or not b.is_meta else b.device)
    desc = None if spec.is_meta else build_matmul((int32, spec.layout), (a.dtype, a.spec.layout), (b.dtype, b.spec.layout), result_bytes=spec.numel * 4)
    return _INT_MM.put((a.spec, b.spec), (desc, spec))


from . import added as _added  # noqa: E402, F401  (written over the products above)
from . import contract as _contract  # noqa: E402, F401
