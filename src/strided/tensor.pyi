"""What a tensor is, with every method and attribute that operators give it. Written by tools/stubs.py."""
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator
from typing import Any, overload

from .dtypes import Device as Device, DType as DType
from .kernels.native import Storage as Storage, new_storage as new_storage, wrap_storage as wrap_storage
from .layout import Layout as Layout, Size as Size, wrap_dim as wrap_dim

META_ADDRESS: Any
_SPECS: Any
_SPEC_LIMIT: Any
class Spec:
    def __repr__(self) -> Any:
        r"""Return repr(self)."""
    cache: Any
    device: Any
    dtype: Any
    is_contiguous: Any
    is_meta: Any
    is_plain: Any
    itemsize: Any
    layout: Any
    nbytes: Any
    ndim: Any
    numel: Any
    @staticmethod
    def of(layout: Layout, dtype: DType, device: Device) -> Spec: ...
    shape: Any
    strides: Any
    def with_dtype(self, dtype: DType) -> Spec: ...
    def with_layout(self, layout: Layout) -> Spec: ...

def _sealed(name) -> Any: ...
class Tensor:
    spec: Spec
    mem: Any
    ptr: _int
    _tracked: _bool
    _node: Any
    _nr: _int
    _grad: Any
    _base: Any
    _hooks: Any
    _inference: _bool
    _accumulator: Any
    _seen: _int
    _view_kind: _str | None
    _retains: _bool
    _post_hooks: Any
    @property
    def H(self) -> Tensor:
        r"""A matrix's conjugate transpose. [a, b] -> [b, a]"""
    @property
    def T(self) -> Tensor:
        r"""All dimensions in reverse order. Deprecated for tensors that are not matrices."""
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Any) -> Tensor: ...
    def __and__(self, other: Any) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> Any:
        r"""NumPy's view of the tensor (no copy unless the dtype changes or one is asked for). Raises RuntimeError for one that requires grad."""
    @property
    def __array_interface__(self) -> dict[_str, Any]:
        r"""NumPy's description of the memory, where it is exact: a cpu tensor of a NumPy dtype that does not require grad."""
    def __array_namespace__(self, *, api_version: _str | None = None) -> Any:
        r"""The module that follows the array API standard for tensors."""
    __array_priority__: Any
    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: _bool = False) -> Any:
        r"""What NumPy's functions of tensors return: a tensor (uint8 for truth values, as in PyTorch)."""
    def __bool__(self) -> _bool: ...
    def __complex__(self) -> _complex: ...
    def __contains__(self, element) -> _bool: ...
    def __deepcopy__(self, memo) -> Any: ...
    def __dlpack__(self, *, stream: Any = None, max_version: tuple[_int, _int] | None = None, dl_device: tuple[Any, _int] | None = None, copy: _bool | None = None) -> Any:
        r"""A DLPack capsule over the memory (over a copy of it with copy=True). Raises BufferError for a tensor that requires grad."""
    def __dlpack_device__(self) -> tuple[_int, _int]:
        r"""(device type, index) as DLPack numbers them: (1, 0) is the CPU."""
    def __eq__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __float__(self) -> _float: ...
    def __floordiv__(self, other: Any) -> Tensor: ...
    def __format__(self, format_spec: _str) -> _str:
        r"""`format(t, spec)`: a 0-d tensor formats its number, any other as an object does (TypeError for a spec that is not empty)."""
    def __ge__(self, other: Any) -> Tensor: ...
    def __getitem__(self, other: Any) -> Tensor: ...
    def __gt__(self, other: Any) -> Tensor: ...
    def __iadd__(self, other: Any) -> Tensor: ...
    def __iand__(self, other: Any) -> Tensor: ...
    def __ifloordiv__(self, other: Any) -> Tensor: ...
    def __ilshift__(self, other: Any) -> Tensor: ...
    def __imod__(self, other: Any) -> Tensor: ...
    def __imul__(self, other: Any) -> Tensor: ...
    def __index__(self) -> _int: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __int__(self) -> _int: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: Any) -> Tensor: ...
    def __ipow__(self, other: Any) -> Tensor: ...
    def __irshift__(self, other: Any) -> Tensor: ...
    def __isub__(self, other: Any) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __itruediv__(self, other: Any) -> Tensor: ...
    def __ixor__(self, other: Any) -> Tensor: ...
    def __le__(self, other: Any) -> Tensor: ...
    def __len__(self) -> _int: ...
    def __lshift__(self, other: Any) -> Tensor: ...
    def __lt__(self, other: Any) -> Tensor: ...
    def __matmul__(self, other: Any) -> Tensor: ...
    def __mod__(self, other: Any) -> Tensor: ...
    def __mul__(self, other: Any) -> Tensor: ...
    def __ne__(self, other: Any) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor: ...
    def __or__(self, other: Any) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: Any) -> Tensor: ...
    def __radd__(self, other: Any) -> Tensor: ...
    def __rand__(self, other: Any) -> Tensor: ...
    def __rdiv__(self, other: Any) -> Tensor: ...
    def __reduce_ex__(self, other: Any) -> Any: ...
    def __repr__(self, *, contents: _str | None = None) -> _str:
        r"""`repr(t)`. contents: text to show instead of the elements."""
    def __reversed__(self) -> Tensor: ...
    def __rfloordiv__(self, other: Any) -> Tensor: ...
    def __rlshift__(self, other: Any) -> Tensor: ...
    def __rmatmul__(self, other: Any) -> Tensor: ...
    def __rmod__(self, other: Any) -> Tensor: ...
    def __rmul__(self, other: Any) -> Tensor: ...
    def __ror__(self, other: Any) -> Tensor: ...
    def __rpow__(self, other: Any) -> Tensor: ...
    def __rrshift__(self, other: Any) -> Tensor: ...
    def __rshift__(self, other: Any) -> Tensor: ...
    def __rsub__(self, other: Any) -> Tensor: ...
    def __rtruediv__(self, other: Any) -> Tensor: ...
    def __rxor__(self, other: Any) -> Tensor: ...
    def __setitem__(self, key, value) -> None:
        r"""x[key] = value: a number or a tensor that broadcasts to what x[key] is, in place."""
    def __setstate__(self, state: dict) -> None: ...
    def __sub__(self, other: Any) -> Tensor: ...
    __torch_function__: Any
    def __truediv__(self, other: Any) -> Tensor: ...
    def __xor__(self, other: Any) -> Tensor: ...
    @property
    def _cdata(self) -> Any:
        r"""A number that no other tensor has as long as this one lives."""
    def _is_view(self) -> _bool: ...
    @staticmethod
    def _make_subclass(cls: _type, data: Tensor, require_grad: _bool = False) -> Any:
        r"""`Tensor._make_subclass`: the same memory as an instance of `cls`, a leaf."""
    @property
    def _version(self) -> _int:
        r"""How often the storage was written in place."""
    def _view_as_complex(self) -> Any:
        r"""A last dimension of size 2 as complex numbers, in the same memory. [.., 2] -> [..]"""
    def _view_as_real(self) -> Any:
        r"""Real and imaginary parts in a last dimension of size 2, in the same memory. [..] -> [.., 2]. Raises RuntimeError for a real tensor."""
    def abs(self) -> Tensor:
        r"""`abs` of each element of a tensor of any shape."""
    def abs_(self) -> Tensor:
        r"""In-place form of `abs`."""
    def absolute(self) -> Tensor:
        r"""`abs` of each element of a tensor of any shape."""
    def absolute_(self) -> Tensor:
        r"""In-place form of `abs`."""
    def acos(self) -> Tensor:
        r"""`acos` of each element of a tensor of any shape, as floats where it holds integers."""
    def acos_(self) -> Tensor:
        r"""In-place form of `acos`."""
    def acosh(self) -> Tensor:
        r"""`acosh` of each element of a tensor of any shape, as floats where it holds integers."""
    def acosh_(self) -> Tensor:
        r"""In-place form of `acosh`."""
    def add(self, other, *, alpha=1) -> Tensor:
        r"""`add` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def add_(self, other, *, alpha=1) -> Tensor:
        r"""In-place form of `add`."""
    def addbmm(self, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
        r"""beta * input + alpha * sum over the batch of batch1 @ batch2: [m, n], [b, m, k], [b, k, n] -> [m, n]."""
    def addbmm_(self, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
        r"""In-place form of `addbmm`."""
    def addcdiv(self, tensor1, tensor2, *, value=1) -> Tensor:
        r"""input + value * tensor1 / tensor2."""
    def addcdiv_(self, tensor1, tensor2, *, value=1) -> Tensor:
        r"""In-place form of `addcdiv`."""
    def addcmul(self, tensor1, tensor2, *, value=1) -> Tensor:
        r"""input + value * tensor1 * tensor2."""
    def addcmul_(self, tensor1, tensor2, *, value=1) -> Tensor:
        r"""In-place form of `addcmul`."""
    def addmm(self, mat1, mat2, *, beta=1, alpha=1) -> Tensor:
        r"""beta * input + alpha * mat1 @ mat2: [m, n] (or what broadcasts to it), [m, k], [k, n] -> [m, n]."""
    def addmm_(self, mat1, mat2, *, beta=1, alpha=1) -> Tensor:
        r"""In-place form of `addmm`."""
    def addmv(self, mat, vec, *, beta=1, alpha=1) -> Tensor:
        r"""beta * input + alpha * mat @ vec: [m] (or what broadcasts to it), [m, k], [k] -> [m]."""
    def addmv_(self, mat, vec, *, beta=1, alpha=1) -> Tensor:
        r"""In-place form of `addmv`."""
    def addr(self, vec1, vec2, *, beta=1, alpha=1) -> Tensor:
        r"""beta * input + alpha * outer(vec1, vec2): [m, n] (or what broadcasts to it), [m], [n] -> [m, n]."""
    def addr_(self, vec1, vec2, *, beta=1, alpha=1) -> Tensor:
        r"""In-place form of `addr`."""
    def adjoint(self) -> Tensor:
        r"""The last two dimensions exchanged (and conjugated, for complex numbers)."""
    def all(self, dim=None, keepdim=False) -> Tensor:
        r"""Whether all elements are non-zero, in all or along `dim`; True for none."""
    def allclose(self, other, rtol=..., atol=..., equal_nan=False) -> _bool:
        r"""Whether all elements are close in the sense of `isclose`."""
    def amax(self, dim=..., keepdim=False) -> Tensor:
        r"""The largest element along `dim` (an int or several; empty: all). Equal ones share the gradient."""
    def amin(self, dim=..., keepdim=False) -> Tensor:
        r"""The smallest element along `dim` (an int or several; empty: all). Equal ones share the gradient."""
    def aminmax(self, *, dim=None, keepdim=False) -> _aminmax:
        r"""(smallest, largest) of all elements, or along `dim`, as a named tuple (min, max)."""
    def angle(self) -> Tensor:
        r"""`angle` of each element of a tensor of any shape, as floats where it holds integers."""
    def any(self, dim=None, keepdim=False) -> Tensor:
        r"""Whether any element is non-zero (NaN counts), in all or along `dim`."""
    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        r"""Every element replaced by callable(element), one Python call each: slow, for what no operator does."""
    def arccos(self) -> Tensor:
        r"""`acos` of each element of a tensor of any shape, as floats where it holds integers."""
    def arccos_(self) -> Tensor:
        r"""In-place form of `acos`."""
    def arccosh(self) -> Tensor:
        r"""`acosh` of each element of a tensor of any shape, as floats where it holds integers."""
    def arccosh_(self) -> Tensor:
        r"""In-place form of `acosh`."""
    def arcsin(self) -> Tensor:
        r"""`asin` of each element of a tensor of any shape, as floats where it holds integers."""
    def arcsin_(self) -> Tensor:
        r"""In-place form of `asin`."""
    def arcsinh(self) -> Tensor:
        r"""`asinh` of each element of a tensor of any shape, as floats where it holds integers."""
    def arcsinh_(self) -> Tensor:
        r"""In-place form of `asinh`."""
    def arctan(self) -> Tensor:
        r"""`atan` of each element of a tensor of any shape, as floats where it holds integers."""
    def arctan2(self, other) -> Tensor:
        r"""`atan2` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
    def arctan2_(self, other) -> Tensor:
        r"""In-place form of `atan2`."""
    def arctan_(self) -> Tensor:
        r"""In-place form of `atan`."""
    def arctanh(self) -> Tensor:
        r"""`atanh` of each element of a tensor of any shape, as floats where it holds integers."""
    def arctanh_(self) -> Tensor:
        r"""In-place form of `atanh`."""
    def argmax(self, dim=None, keepdim=False) -> Tensor:
        r"""Position of the first largest element (or first NaN): in the flattened input, or along `dim`."""
    def argmin(self, dim=None, keepdim=False) -> Tensor:
        r"""Position of the first smallest element (or first NaN): in the flattened input, or along `dim`."""
    def argsort(self, dim=-1, descending=False, stable=False) -> Tensor:
        r"""The indices of `sort`."""
    def argwhere(self) -> Tensor:
        r"""`nonzero(input)`."""
    def as_strided(self, size, stride, storage_offset=None) -> Tensor:
        r"""Any window of the storage: sizes, strides and offset in elements. Raises RuntimeError where it would leave the storage."""
    def as_strided_(self, size, stride, storage_offset=None) -> Tensor:
        r"""This tensor becomes a window of its own memory with other sizes, strides and offset (in elements)."""
    def as_strided_scatter(self, src, size, stride, storage_offset=None) -> Tensor:
        r"""input with the window of `as_strided` replaced by `src`."""
    def as_subclass(self, cls: _type) -> Any:
        r"""The same memory as an instance of `cls`, with history: a view of this tensor."""
    def asin(self) -> Tensor:
        r"""`asin` of each element of a tensor of any shape, as floats where it holds integers."""
    def asin_(self) -> Tensor:
        r"""In-place form of `asin`."""
    def asinh(self) -> Tensor:
        r"""`asinh` of each element of a tensor of any shape, as floats where it holds integers."""
    def asinh_(self) -> Tensor:
        r"""In-place form of `asinh`."""
    def atan(self) -> Tensor:
        r"""`atan` of each element of a tensor of any shape, as floats where it holds integers."""
    def atan2(self, other) -> Tensor:
        r"""`atan2` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
    def atan2_(self, other) -> Tensor:
        r"""In-place form of `atan2`."""
    def atan_(self) -> Tensor:
        r"""In-place form of `atan`."""
    def atanh(self) -> Tensor:
        r"""`atanh` of each element of a tensor of any shape, as floats where it holds integers."""
    def atanh_(self) -> Tensor:
        r"""In-place form of `atanh`."""
    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
        r"""Accumulates the gradients of this tensor with respect to the graph's leaves into their `.grad`; see `torch.autograd.backward`."""
    def baddbmm(self, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
        r"""beta * input + alpha * batch1 @ batch2, matrix by matrix: [b, m, n], [b, m, k], [b, k, n] -> [b, m, n]."""
    def baddbmm_(self, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
        r"""In-place form of `baddbmm`."""
    def bernoulli(self, p=None, *, generator=None) -> Tensor:
        r"""1 with the probability that the input's element gives (or p), else 0; shaped and typed as the input, drawn row by row."""
    def bernoulli_(self, p=..., *, generator=None) -> Tensor:
        r"""Fills with 1 with probability p (a number, or a tensor that broadcasts to the input), else 0."""
    def bfloat16(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.bfloat16)`."""
    def bincount(self, weights=None, minlength=0) -> Tensor:
        r"""How often each of 0, 1, 2, … occurs in a 1-d tensor of non-negative ints, at least `minlength` numbers; or the sums of `weights`."""
    def bitwise_and(self, other) -> Tensor:
        r"""`bitwise_and` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def bitwise_and_(self, other) -> Tensor:
        r"""In-place form of `bitwise_and`."""
    def bitwise_left_shift(self, other) -> Tensor:
        r"""`bitwise_left_shift` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def bitwise_left_shift_(self, other) -> Tensor:
        r"""In-place form of `bitwise_left_shift`."""
    def bitwise_not(self) -> Tensor:
        r"""`bitwise_not` of each element of a tensor of any shape."""
    def bitwise_not_(self) -> Tensor:
        r"""In-place form of `bitwise_not`."""
    def bitwise_or(self, other) -> Tensor:
        r"""`bitwise_or` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def bitwise_or_(self, other) -> Tensor:
        r"""In-place form of `bitwise_or`."""
    def bitwise_right_shift(self, other) -> Tensor:
        r"""`bitwise_right_shift` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def bitwise_right_shift_(self, other) -> Tensor:
        r"""In-place form of `bitwise_right_shift`."""
    def bitwise_xor(self, other) -> Tensor:
        r"""`bitwise_xor` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def bitwise_xor_(self, other) -> Tensor:
        r"""In-place form of `bitwise_xor`."""
    def bmm(self, mat2) -> Tensor:
        r"""Products of matrices with the same batch size: [b, m, k] @ [b, k, n] -> [b, m, n]; nothing broadcasts."""
    def bool(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.bool)`."""
    def broadcast_to(self, *shape, size=None) -> Tensor:
        r"""`input.expand(shape)`."""
    def byte(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.uint8)`."""
    def cauchy_(self, median=..., sigma=..., *, generator=None) -> Tensor:
        r"""Fills with Cauchy numbers."""
    def cdouble(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.complex128)`."""
    def ceil(self) -> Tensor:
        r"""`ceil` of each element of a tensor of any shape."""
    def ceil_(self) -> Tensor:
        r"""In-place form of `ceil`."""
    def cfloat(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.complex64)`."""
    def chalf(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.complex32)`."""
    def char(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.int8)`."""
    def cholesky(self, upper=False) -> Tensor:
        r"""`linalg.cholesky`."""
    def cholesky_inverse(self, upper=False) -> Tensor:
        r"""A⁻¹ from A's Cholesky factor L [*, n, n]: A = L Lᴴ, or Lᴴ L if `upper`."""
    def cholesky_solve(self, L, upper=False) -> Tensor:
        r"""X with A X = input, [*, n, k], from A's Cholesky factor L [*, n, n]: A = L Lᴴ, or Lᴴ L if `upper`."""
    def chunk(self, chunks, dim=0) -> tuple[Tensor, ...]:
        r"""At most `chunks` windows of equal size along `dim` (the last may be shorter)."""
    def clamp(self, min=None, max=None) -> Tensor:
        r"""input limited to [min, max]; either bound may be a number, a tensor or None. Raises RuntimeError when both are None."""
    def clamp_(self, min=None, max=None) -> Tensor:
        r"""In-place form of `clamp`."""
    def clamp_max(self, max) -> Tensor:
        r"""input, lowered to at most `max`."""
    def clamp_max_(self, max) -> Tensor:
        r"""In-place form of `clamp_max`."""
    def clamp_min(self, min) -> Tensor:
        r"""input, raised to at least `min`."""
    def clamp_min_(self, min) -> Tensor:
        r"""In-place form of `clamp_min`."""
    def clip(self, min=None, max=None) -> Tensor:
        r"""input limited to [min, max]; either bound may be a number, a tensor or None. Raises RuntimeError when both are None."""
    def clip_(self, min=None, max=None) -> Tensor:
        r"""In-place form of `clamp`."""
    def clone(self, *, memory_format=None) -> Tensor:
        r"""A copy with its own memory, part of the graph. Strides are kept where the input is dense."""
    def conj(self) -> Tensor:
        r"""The complex conjugate; a real tensor itself."""
    def conj_physical(self) -> Tensor:
        r"""The complex conjugate; a real tensor itself."""
    def conj_physical_(self) -> Tensor:
        r"""In-place form of `conj_physical`."""
    def contiguous(self, memory_format=...) -> Tensor:
        r"""Itself if its elements lie in row-major order (or in `memory_format`), else a copy that does."""
    def copy_(self, src, non_blocking=False) -> Tensor:
        r"""Writes the values of `src`, broadcast and converted, into this tensor, and returns it."""
    def copysign(self, other) -> Tensor:
        r"""`copysign` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
    def copysign_(self, other) -> Tensor:
        r"""In-place form of `copysign`."""
    def corrcoef(self) -> Tensor:
        r"""Pearson's correlation coefficients of variables (rows) over observations (columns), their parts within [-1, 1]: [v, n] -> [v, v], [n] -> []."""
    def cos(self) -> Tensor:
        r"""`cos` of each element of a tensor of any shape, as floats where it holds integers."""
    def cos_(self) -> Tensor:
        r"""In-place form of `cos`."""
    def cosh(self) -> Tensor:
        r"""`cosh` of each element of a tensor of any shape, as floats where it holds integers."""
    def cosh_(self) -> Tensor:
        r"""In-place form of `cosh`."""
    def count_nonzero(self, dim=None) -> Tensor:
        r"""How many elements are not 0, in all or along `dim`; int64."""
    def cov(self, *, correction=1, fweights=None, aweights=None) -> Tensor:
        r"""Covariances of variables (rows) over observations (columns): [v, n] -> [v, v], [n] -> []. Sums are divided by n - correction."""
    def cpu(self, memory_format=None) -> Tensor:
        r"""On the CPU: itself."""
    def cross(self, other, dim=None) -> Tensor:
        r"""Cross products along `dim`, by default the first dimension of size 3."""
    def cuda(self, device=None, non_blocking=False, memory_format=None) -> Tensor:
        r"""Refused: this build computes on the CPU."""
    def cummax(self, dim) -> _cummax:
        r"""(values, indices) of the running maximum along `dim`; the last of equal elements."""
    def cummin(self, dim) -> _cummin:
        r"""(values, indices) of the running minimum along `dim`; the last of equal elements."""
    def cumprod(self, dim, *, dtype=None) -> Tensor:
        r"""The running product along `dim`."""
    def cumprod_(self, dim, *, dtype=None) -> Tensor:
        r"""In-place form of `cumprod`."""
    def cumsum(self, dim, *, dtype=None) -> Tensor:
        r"""The running sum along `dim`; integers and bool give int64 unless `dtype` says otherwise."""
    def cumsum_(self, dim, *, dtype=None) -> Tensor:
        r"""In-place form of `cumsum`."""
    data: Tensor
    def data_ptr(self) -> _int:
        r"""Address of element [0, …, 0] (of the byte that it begins in); 0 for an empty or meta tensor."""
    def deg2rad(self) -> Tensor:
        r"""`deg2rad` of each element of a tensor of any shape, as floats where it holds integers."""
    def deg2rad_(self) -> Tensor:
        r"""In-place form of `deg2rad`."""
    def dequantize(self, dtype=None) -> Tensor:
        r"""The numbers that a block tensor holds, as float32 or the floating-point `dtype`; any other tensor as float32."""
    def det(self) -> Tensor:
        r"""Determinants of square matrices: [*, n, n] -> [*]."""
    def detach(self) -> Tensor:
        r"""The same memory without history: a tensor that requires no grad. Not counted as a view when it comes to writes in place: they go unrecorded."""
    def detach_(self) -> Tensor:
        r"""Cuts this tensor itself from the graph that made it: it becomes a leaf that requires no grad."""
    @property
    def device(self) -> Device: ...
    def diag(self, diagonal=0) -> Tensor:
        r"""A matrix's diagonal as a copy, or the matrix with a vector on its diagonal. [n, m] -> [min(n, m)]; [n] -> [n, n]"""
    def diag_embed(self, offset=0, dim1=-2, dim2=-1) -> Tensor:
        r"""Matrices with the input's last dimension on a diagonal, zero elsewhere. [.., n] -> [.., n+|offset|, n+|offset|]"""
    def diagflat(self, offset=0) -> Tensor:
        r"""A matrix with all elements of the input on its diagonal. [..] -> [n, n]"""
    def diagonal(self, offset=0, dim1=0, dim2=1) -> Tensor:
        r"""The diagonal of dimensions `dim1` and `dim2`, `offset` above the main one, as a new last dimension. [n, m] -> [min(n, m)]"""
    def diagonal_scatter(self, src, offset=0, dim1=0, dim2=1) -> Tensor:
        r"""input with a diagonal (as in `diagonal`) replaced by `src`."""
    def diff(self, n=1, dim=-1, prepend=None, append=None) -> Tensor:
        r"""Differences of neighbours along `dim`, n times; prepend and append are joined to the input first."""
    def digamma(self) -> Tensor:
        r"""`digamma` of each element of a tensor of any shape, as floats where it holds integers."""
    def digamma_(self) -> Tensor:
        r"""In-place form of `digamma`."""
    def dim(self) -> _int: ...
    def dim_order(self) -> tuple[_int, ...]:
        r"""The dimensions in the order in which they lie in memory, the outermost first."""
    def dist(self, other, p=2) -> Tensor:
        r"""The p-norm of input - other."""
    def div(self, other, *, rounding_mode=None) -> Tensor:
        r"""input / other, elementwise with broadcasting. rounding_mode: None (true division), "trunc" or "floor"."""
    def div_(self, other, *, rounding_mode=None) -> Tensor:
        r"""In-place form of `div`."""
    def divide(self, other, *, rounding_mode=None) -> Tensor:
        r"""input / other, elementwise with broadcasting. rounding_mode: None (true division), "trunc" or "floor"."""
    def divide_(self, other, *, rounding_mode=None) -> Tensor:
        r"""In-place form of `div`."""
    def dot(self, tensor) -> Tensor:
        r"""Sum of products of two vectors: [k], [k] -> scalar."""
    def double(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.float64)`."""
    def dsplit(self, indices_or_sections) -> tuple[Tensor, ...]:
        r"""tensor_split along dimension 2; a number of sections must divide it."""
    @property
    def dtype(self) -> DType: ...
    def element_size(self) -> _int:
        r"""Bytes of one element."""
    def eq(self, other) -> Tensor:
        r"""`eq` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def eq_(self, other) -> Tensor:
        r"""In-place form of `eq`."""
    def equal(self, other) -> _bool:
        r"""Whether two tensors have the same shape and elements."""
    def erf(self) -> Tensor:
        r"""`erf` of each element of a tensor of any shape, as floats where it holds integers."""
    def erf_(self) -> Tensor:
        r"""In-place form of `erf`."""
    def erfc(self) -> Tensor:
        r"""`erfc` of each element of a tensor of any shape, as floats where it holds integers."""
    def erfc_(self) -> Tensor:
        r"""In-place form of `erfc`."""
    def erfinv(self) -> Tensor:
        r"""`erfinv` of each element of a tensor of any shape, as floats where it holds integers."""
    def erfinv_(self) -> Tensor:
        r"""In-place form of `erfinv`."""
    def exp(self) -> Tensor:
        r"""`exp` of each element of a tensor of any shape, as floats where it holds integers."""
    def exp2(self) -> Tensor:
        r"""`exp2` of each element of a tensor of any shape, as floats where it holds integers."""
    def exp2_(self) -> Tensor:
        r"""In-place form of `exp2`."""
    def exp_(self) -> Tensor:
        r"""In-place form of `exp`."""
    def expand(self, *shape, size=None, implicit=False) -> Tensor:
        r"""Broadcast to a shape without a copy (-1 keeps a size): expanded dimensions get stride 0."""
    def expand_as(self, other) -> Tensor:
        r"""`input.expand(other.shape)`."""
    def expit(self) -> Tensor:
        r"""`sigmoid` of each element of a tensor of any shape, as floats where it holds integers."""
    def expit_(self) -> Tensor:
        r"""In-place form of `sigmoid`."""
    def expm1(self) -> Tensor:
        r"""`expm1` of each element of a tensor of any shape, as floats where it holds integers."""
    def expm1_(self) -> Tensor:
        r"""In-place form of `expm1`."""
    def exponential_(self, lambd=..., *, generator=None) -> Tensor:
        r"""Fills with exponential numbers of rate lambd."""
    def fill_(self, value) -> Tensor:
        r"""Every element set to `value`: a number or a 0-d tensor."""
    def fill_diagonal_(self, fill_value, wrap=False) -> Tensor:
        r"""Writes a number along the main diagonal, in place; with `wrap`, a tall matrix's diagonal starts anew below. [n, m, …]"""
    def fix(self) -> Tensor:
        r"""`trunc` of each element of a tensor of any shape."""
    def fix_(self) -> Tensor:
        r"""In-place form of `trunc`."""
    def flatten(self, start_dim=0, end_dim=-1) -> Tensor:
        r"""Dimensions `start_dim` to `end_dim` merged into one: a view where they lie in one run, else a copy. [.., a, b, ..] -> [.., a*b, ..]"""
    def flip(self, *given, dims=None) -> Tensor:
        r"""The order of entries reversed along `dims`."""
    def fliplr(self) -> Tensor:
        r"""The second dimension reversed."""
    def flipud(self) -> Tensor:
        r"""The first dimension reversed."""
    def float(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.float32)`."""
    def float_power(self, exponent) -> Tensor:
        r"""input ** exponent, computed in float64 (complex128 where one of them is complex); either may be a number."""
    def float_power_(self, exponent) -> Tensor:
        r"""In-place form of `float_power`: for float64 tensors."""
    def floor(self) -> Tensor:
        r"""`floor` of each element of a tensor of any shape."""
    def floor_(self) -> Tensor:
        r"""In-place form of `floor`."""
    def floor_divide(self, other) -> Tensor:
        r"""`floor_divide` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def floor_divide_(self, other) -> Tensor:
        r"""In-place form of `floor_divide`."""
    def fmax(self, other) -> Tensor:
        r"""`fmax` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def fmin(self, other) -> Tensor:
        r"""`fmin` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def fmod(self, other) -> Tensor:
        r"""`fmod` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def fmod_(self, other) -> Tensor:
        r"""In-place form of `fmod`."""
    def frac(self) -> Tensor:
        r"""`frac` of each element of a tensor of any shape."""
    def frac_(self) -> Tensor:
        r"""In-place form of `frac`."""
    def frexp(self) -> _frexp:
        r"""(mantissa, exponent): input = mantissa * 2**exponent with 1/2 <= |mantissa| < 1; exponents are int32, 0 for 0, infinities and NaN."""
    def gather(self, dim, index, *, sparse_grad=False) -> Tensor:
        r"""out[i][j] = input[i][index[i][j]] along `dim`; index may be smaller than input in the other dimensions."""
    def gcd(self, other) -> Tensor:
        r"""The greatest common divisor of two integers, not negative."""
    def gcd_(self, other) -> Tensor:
        r"""In-place form of `gcd`."""
    def ge(self, other) -> Tensor:
        r"""`ge` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def ge_(self, other) -> Tensor:
        r"""In-place form of `ge`."""
    def geometric_(self, p, *, generator=None) -> Tensor:
        r"""Fills with the number of trials until the first success of probability p."""
    def geqrf(self) -> _geqrf:
        r"""(a, tau): R in a's upper triangle and, below it, the vectors of the reflections 1 - tau v vᴴ whose product is Q: [*, m, n], [*, k], k = min(m, n)."""
    def ger(self, vec2) -> Tensor:
        r"""Every element of one vector times every one of another: [m], [n] -> [m, n]."""
    def get_device(self) -> _int: ...
    grad: Tensor | None
    @property
    def grad_fn(self) -> Any:
        r"""The node that made this tensor; None for a leaf."""
    def greater(self, other) -> Tensor:
        r"""`gt` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def greater_(self, other) -> Tensor:
        r"""In-place form of `gt`."""
    def greater_equal(self, other) -> Tensor:
        r"""`ge` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def greater_equal_(self, other) -> Tensor:
        r"""In-place form of `ge`."""
    def gt(self, other) -> Tensor:
        r"""`gt` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def gt_(self, other) -> Tensor:
        r"""In-place form of `gt`."""
    def half(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.float16)`."""
    def hash_tensor(self, dim=..., *, keepdim=False, mode=0) -> Tensor:
        r"""The exclusive or of the elements' 64-bit patterns along `dim` (all by default), as uint64: integers extended, floats as float64."""
    def heaviside(self, values, **kwargs) -> Tensor:
        r"""`heaviside` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def heaviside_(self, values, **kwargs) -> Tensor:
        r"""In-place form of `heaviside`."""
    def histc(self, bins=100, min=0, max=0) -> Tensor:
        r"""Counts of input's elements in `bins` equal bins between min and max (both 0: the data's), in input's dtype; others are not counted. [*] -> [bins]"""
    def histogram(self, bins, *, range=None, weight=None, density=False) -> _histogram:
        r"""(hist, bin_edges) of input's elements: `bins` equal bins over `range` (the data's by default), or between the edges given as a tensor. [*] -> [bins], [bins + 1]"""
    def histogramdd(self, bins, *, range=None, weight=None, density=False) -> _histogramdd:
        r"""(hist, bin_edges) of points: [*, d] -> [bins of dimension 1, …, bins of dimension d]. bins: a number for all dimensions, one each, or the edges of each."""
    def hsplit(self, indices_or_sections) -> tuple[Tensor, ...]:
        r"""tensor_split along dimension 1 (0 for 1-d); a number of sections must divide it."""
    def hypot(self, other) -> Tensor:
        r"""`hypot` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def hypot_(self, other) -> Tensor:
        r"""In-place form of `hypot`."""
    def i0(self) -> Tensor:
        r"""The modified Bessel function of the first kind, order 0."""
    def i0_(self) -> Tensor:
        r"""In-place form of `i0`."""
    def igamma(self, other) -> Tensor:
        r"""The regularized lower incomplete gamma function P(input, other)."""
    def igamma_(self, other) -> Tensor:
        r"""In-place form of `igamma`."""
    def igammac(self, other) -> Tensor:
        r"""The regularized upper incomplete gamma function Q(input, other) = 1 - P."""
    def igammac_(self, other) -> Tensor:
        r"""In-place form of `igammac`."""
    @property
    def imag(self) -> Tensor:
        r"""The imaginary part of a complex tensor, a view. Raises RuntimeError for a real tensor."""
    def index_add(self, *args, **kwargs) -> Tensor:
        r"""A copy of input with `alpha * source` added to the entries of `dim` that `index` names, several times where named several times."""
    def index_add_(self, *args, **kwargs) -> Tensor:
        r"""In-place form of `index_add`."""
    def index_copy(self, *args, **kwargs) -> Tensor:
        r"""A copy of input with the entries of `dim` that `index` names replaced by those of source."""
    def index_copy_(self, *args, **kwargs) -> Tensor:
        r"""In-place form of `index_copy`."""
    def index_fill(self, *args, **kwargs) -> Tensor:
        r"""A copy of input with the entries of `dim` that `index` names filled with a number (or 0-d tensor). Negative indices count from the end."""
    def index_fill_(self, *args, **kwargs) -> Tensor:
        r"""In-place form of `index_fill`."""
    def index_put(self, indices, values, accumulate=False) -> Tensor:
        r"""A copy of input with `values` (broadcast) at `indices`, a tuple of int tensors or masks; accumulate: added to what is there."""
    def index_put_(self, indices, values, accumulate=False) -> Tensor:
        r"""In-place form of `index_put`."""
    def index_reduce(self, dim, index, source, reduce, *, include_self=True) -> Tensor:
        r"""A copy of input whose entries of `dim` that `index` names are combined with source's by "prod", "mean", "amax" or "amin"."""
    def index_reduce_(self, dim, index, source, reduce, *, include_self=True) -> Tensor:
        r"""In-place form of `index_reduce`."""
    def index_select(self, dim, index) -> Tensor:
        r"""The entries of dimension `dim` that `index` (1-d) names, in its order. [.., n, ..], [k] -> [.., k, ..]"""
    def inner(self, other) -> Tensor:
        r"""Sums of products along the last dimension: [*a, k], [*b, k] -> [*a, *b]; with a number, a plain product."""
    def int(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.int32)`."""
    def inverse(self) -> Tensor:
        r"""`linalg.inv`."""
    def is_complex(self) -> _bool: ...
    def is_conj(self) -> _bool:
        r"""Whether a conjugation is pending: never, conjugates are computed at once."""
    def is_contiguous(self, memory_format=None) -> _bool:
        r"""Whether the elements lie in row-major order without gaps (or in channels-last order, when asked for that)."""
    @property
    def is_cpu(self) -> _bool: ...
    is_cuda: _bool
    def is_floating_point(self) -> _bool: ...
    def is_inference(self) -> _bool:
        r"""Whether it was made in inference mode."""
    is_ipu: _bool
    @property
    def is_leaf(self) -> _bool:
        r"""True for tensors that no recorded operator made."""
    is_maia: _bool
    @property
    def is_meta(self) -> _bool: ...
    is_mkldnn: _bool
    is_mps: _bool
    is_mtia: _bool
    def is_neg(self) -> _bool:
        r"""Whether a negation is pending: never."""
    is_nested: _bool
    def is_nonzero(self) -> _bool:
        r"""Whether the one element of a tensor is not zero. Raises RuntimeError unless there is exactly one."""
    def is_pinned(self, device=None) -> _bool: ...
    is_quantized: _bool
    def is_same_size(self, other) -> _bool:
        r"""Whether both have the same shape."""
    def is_set_to(self, tensor: Tensor) -> _bool:
        r"""Whether both are the same window of the same memory."""
    def is_shared(self) -> _bool:
        r"""Whether the storage is in memory shared with forked processes."""
    def is_signed(self) -> _bool: ...
    is_sparse: _bool
    is_sparse_csr: _bool
    is_vulkan: _bool
    is_xla: _bool
    is_xpu: _bool
    def isclose(self, other, rtol=..., atol=..., equal_nan=False) -> Tensor:
        r"""Elementwise |input - other| <= atol + rtol * |other|; equal infinities are close, and NaNs with `equal_nan`."""
    def isfinite(self) -> Tensor:
        r"""`isfinite` of each element of a tensor of any shape, as bool."""
    def isinf(self) -> Tensor:
        r"""`isinf` of each element of a tensor of any shape, as bool."""
    def isnan(self) -> Tensor:
        r"""`isnan` of each element of a tensor of any shape, as bool."""
    def isneginf(self) -> Tensor:
        r"""`isneginf` of each element of a tensor of any shape, as bool."""
    def isposinf(self) -> Tensor:
        r"""`isposinf` of each element of a tensor of any shape, as bool."""
    def isreal(self) -> Tensor:
        r"""Whether each element has no imaginary part: true everywhere, for a real tensor."""
    def istft(self, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, return_complex=False) -> Tensor:
        r"""The signal whose `stft` this is, in the sense of least squares: [b, frequencies, frames] -> [b, length], real unless return_complex."""
    def item(self) -> Any:
        r"""The one element as a Python number. Raises RuntimeError for any other number of elements."""
    @property
    def itemsize(self) -> _int: ...
    def kron(self, other) -> Tensor:
        r"""Kronecker product: every element of input times the whole of other, laid out as blocks. Sizes multiply dimension by dimension."""
    def kthvalue(self, k, dim=-1, keepdim=False) -> _kthvalue:
        r"""(values, indices) of the k-th smallest element (from 1) along `dim`."""
    @property
    def layout(self) -> Any:
        r"""torch.strided: elements lie in memory by strides."""
    def lcm(self, other) -> Tensor:
        r"""The least common multiple of two integers, not negative."""
    def lcm_(self, other) -> Tensor:
        r"""In-place form of `lcm`."""
    def ldexp(self, other) -> Tensor:
        r"""input * 2**other."""
    def ldexp_(self, other) -> Tensor:
        r"""In-place form of `ldexp`."""
    def le(self, other) -> Tensor:
        r"""`le` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def le_(self, other) -> Tensor:
        r"""In-place form of `le`."""
    def lerp(self, end, weight) -> Tensor:
        r"""input + weight * (end - input); weight a number or a tensor. RuntimeError where the tensors' dtypes differ."""
    def lerp_(self, end, weight) -> Tensor:
        r"""In-place form of `lerp`."""
    def less(self, other) -> Tensor:
        r"""`lt` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def less_(self, other) -> Tensor:
        r"""In-place form of `lt`."""
    def less_equal(self, other) -> Tensor:
        r"""`le` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def less_equal_(self, other) -> Tensor:
        r"""In-place form of `le`."""
    def lgamma(self) -> Tensor:
        r"""`lgamma` of each element of a tensor of any shape, as floats where it holds integers."""
    def lgamma_(self) -> Tensor:
        r"""In-place form of `lgamma`."""
    def log(self) -> Tensor:
        r"""`log` of each element of a tensor of any shape, as floats where it holds integers."""
    def log10(self) -> Tensor:
        r"""`log10` of each element of a tensor of any shape, as floats where it holds integers."""
    def log10_(self) -> Tensor:
        r"""In-place form of `log10`."""
    def log1p(self) -> Tensor:
        r"""`log1p` of each element of a tensor of any shape, as floats where it holds integers."""
    def log1p_(self) -> Tensor:
        r"""In-place form of `log1p`."""
    def log2(self) -> Tensor:
        r"""`log2` of each element of a tensor of any shape, as floats where it holds integers."""
    def log2_(self) -> Tensor:
        r"""In-place form of `log2`."""
    def log_(self) -> Tensor:
        r"""In-place form of `log`."""
    def log_normal_(self, mean=..., std=..., *, generator=None) -> Tensor:
        r"""Fills with exp of normal numbers of the given mean and standard deviation."""
    def log_softmax(self, dim, dtype=None) -> Tensor:
        r"""x - log(sum(exp(x))) along `dim`, without overflow."""
    def logaddexp(self, other) -> Tensor:
        r"""`logaddexp` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
    def logaddexp2(self, other) -> Tensor:
        r"""`logaddexp2` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
    def logcumsumexp(self, dim) -> Tensor:
        r"""log of the running sum of exp(x) along `dim`, without overflow."""
    def logdet(self) -> Tensor:
        r"""Logarithms of the determinants: [*, n, n] -> [*]. -inf for a singular matrix, NaN where a real determinant is negative."""
    def logical_and(self, other) -> Tensor:
        r"""`logical_and` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def logical_and_(self, other) -> Tensor:
        r"""In-place form of `logical_and`."""
    def logical_not(self) -> Tensor:
        r"""`logical_not` of each element of a tensor of any shape, as bool."""
    def logical_not_(self) -> Tensor:
        r"""In-place form of `logical_not`."""
    def logical_or(self, other) -> Tensor:
        r"""`logical_or` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def logical_or_(self, other) -> Tensor:
        r"""In-place form of `logical_or`."""
    def logical_xor(self, other) -> Tensor:
        r"""`logical_xor` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def logical_xor_(self, other) -> Tensor:
        r"""In-place form of `logical_xor`."""
    def logit(self, eps=None) -> Tensor:
        r"""log(x / (1 - x)); with eps, x is first limited to [eps, 1 - eps]. An eps below 0 limits nothing, as in PyTorch."""
    def logit_(self, eps=None) -> Tensor:
        r"""In-place form of `logit`."""
    def logsumexp(self, dim, keepdim=False) -> Tensor:
        r"""log(sum(exp(x))) along `dim` (an int or several), without overflow."""
    def long(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.int64)`."""
    def lt(self, other) -> Tensor:
        r"""`lt` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def lt_(self, other) -> Tensor:
        r"""In-place form of `lt`."""
    def lu(self, pivot=True, get_infos=False) -> tuple[Tensor, ...]:
        r"""(LU, pivots) of `linalg.lu_factor`, or with `get_infos` (LU, pivots, info). Singular matrices are no error."""
    def lu_solve(self, LU_data, LU_pivots) -> Tensor:
        r"""X with AX = input from A's `linalg.lu_factor`: [*, n, k], [*, n, n], [*, n]."""
    @property
    def mH(self) -> Tensor:
        r"""The last two dimensions exchanged and conjugated. [.., a, b] -> [.., b, a]"""
    @property
    def mT(self) -> Tensor:
        r"""The last two dimensions exchanged. [.., a, b] -> [.., b, a]"""
    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        r"""Every element replaced by callable(element, x's element, y's element), one Python call each."""
    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        r"""Every element replaced by callable(element, tensor's element), one Python call each."""
    def masked_fill(self, mask, value) -> Tensor:
        r"""input with `value` where `mask` holds; mask and input broadcast together."""
    def masked_fill_(self, mask, value) -> Tensor:
        r"""In-place form of `masked_fill`: the mask broadcasts to the input."""
    def masked_scatter(self, mask, source) -> Tensor:
        r"""A copy of input whose elements where `mask` holds are those of source, in order. Raises RuntimeError where source has too few."""
    def masked_scatter_(self, mask, source) -> Tensor:
        r"""In-place form of `masked_scatter`."""
    def masked_select(self, mask) -> Tensor:
        r"""The elements of input where `mask` (bool, broadcast against it) holds, in row-major order, 1-d."""
    def matmul(self, other) -> Tensor:
        r"""Matrix product [*, m, k] @ [*, k, n] -> [*, m, n]; batch dimensions broadcast, vectors lose their dimension in the result."""
    def matrix_exp(self) -> Tensor:
        r"""e^A = 1 + A + A² / 2 + …: [*, n, n] -> [*, n, n]."""
    def matrix_power(self, n) -> Tensor:
        r"""A multiplied n times with itself (n >= 0) or its inverse |n| times: [*, m, m] -> [*, m, m]. LinAlgError for n < 0 and a singular matrix."""
    @overload
    def max(self, dim: _int, keepdim: _bool = ...) -> _max:
        r"""The maximum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
    @overload
    def max(self) -> Tensor:
        r"""The maximum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
    @overload
    def max(self, other: Tensor) -> Tensor:
        r"""The maximum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
    def maximum(self, other) -> Tensor:
        r"""`maximum` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def mean(self, dim=None, keepdim=False, *, dtype=None) -> Tensor:
        r"""Arithmetic mean of all elements, or along `dim`. Raises RuntimeError for integers without a floating `dtype`."""
    @overload
    def median(self, dim: _int, keepdim: _bool = ...) -> _median:
        r"""The lower median of all elements, or (values, indices) along `dim`. NaN where any element is."""
    @overload
    def median(self) -> Tensor:
        r"""The lower median of all elements, or (values, indices) along `dim`. NaN where any element is."""
    @overload
    def min(self, dim: _int, keepdim: _bool = ...) -> _min:
        r"""The minimum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
    @overload
    def min(self) -> Tensor:
        r"""The minimum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
    @overload
    def min(self, other: Tensor) -> Tensor:
        r"""The minimum: of all elements; along `dim` as a named tuple (values, indices); or, given a second tensor, elementwise. NaN wins."""
    def minimum(self, other) -> Tensor:
        r"""`minimum` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def mm(self, mat2) -> Tensor:
        r"""Product of two matrices [m, k] @ [k, n] -> [m, n]; nothing broadcasts."""
    def mode(self, dim=-1, keepdim=False) -> _mode:
        r"""(values, indices) of the most frequent element along `dim`: the smallest of equally frequent ones, at its position in the sorted row."""
    def moveaxis(self, source, destination) -> Tensor:
        r"""Dimensions `source` moved to the positions `destination`; the others keep their order."""
    def movedim(self, source, destination) -> Tensor:
        r"""Dimensions `source` moved to the positions `destination`; the others keep their order."""
    def msort(self) -> Tensor:
        r"""The values of `sort` along dimension 0."""
    def mul(self, other) -> Tensor:
        r"""`mul` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def mul_(self, other) -> Tensor:
        r"""In-place form of `mul`."""
    def multinomial(self, num_samples, replacement=False, *, generator=None) -> Tensor:
        r"""Indices drawn with the probabilities that the rows of input [columns] or [rows, columns] give (not necessarily summing to 1): int64 [..., num_samples]."""
    def multiply(self, other) -> Tensor:
        r"""`mul` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def multiply_(self, other) -> Tensor:
        r"""In-place form of `mul`."""
    def mv(self, vec) -> Tensor:
        r"""Matrix times vector: [m, k] @ [k] -> [m]."""
    def mvlgamma(self, p) -> Tensor:
        r"""The logarithm of the multivariate gamma function of dimension p >= 1."""
    def mvlgamma_(self, p) -> Tensor:
        r"""In-place form of `mvlgamma`."""
    @property
    def name(self) -> Any:
        r"""None: tensors have no names."""
    def nan_to_num(self, nan=None, posinf=None, neginf=None) -> Tensor:
        r"""input with NaN and infinities replaced (by 0 and the dtype's extremes unless given)."""
    def nan_to_num_(self, nan=None, posinf=None, neginf=None) -> Tensor:
        r"""In-place form of `nan_to_num`."""
    def nanmean(self, dim=None, keepdim=False, *, dtype=None) -> Tensor:
        r"""Mean along `dim` of the elements that are not NaN."""
    @overload
    def nanmedian(self, dim: _int, keepdim: _bool = ...) -> _nanmedian:
        r"""The lower median of all elements, or (values, indices) along `dim`. NaN is ignored."""
    @overload
    def nanmedian(self) -> Tensor:
        r"""The lower median of all elements, or (values, indices) along `dim`. NaN is ignored."""
    def nanquantile(self, q, dim=None, keepdim=False, *, interpolation='linear') -> Tensor:
        r"""The q-quantiles (q in [0, 1], a number or 1-d) of all elements or along `dim`, NaN ignored. [q, ..] for 1-d q."""
    def nansum(self, dim=None, keepdim=False, *, dtype=None) -> Tensor:
        r"""Sum along `dim` with NaN counted as 0."""
    def narrow(self, dim, start, length) -> Tensor:
        r"""`length` entries of dimension `dim` from `start` (an int or a 0-d integer tensor)."""
    def narrow_copy(self, dim, start, length) -> Tensor:
        r"""`narrow`, with the result in memory of its own."""
    @property
    def nbytes(self) -> _int:
        r"""Bytes of the elements: numel × element size (the storage may hold more, or fewer under an expanded dimension)."""
    @property
    def ndim(self) -> _int: ...
    def ndimension(self) -> _int: ...
    def ne(self, other) -> Tensor:
        r"""`ne` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def ne_(self, other) -> Tensor:
        r"""In-place form of `ne`."""
    def neg(self) -> Tensor:
        r"""`neg` of each element of a tensor of any shape."""
    def neg_(self) -> Tensor:
        r"""In-place form of `neg`."""
    def negative(self) -> Tensor:
        r"""`neg` of each element of a tensor of any shape."""
    def negative_(self) -> Tensor:
        r"""In-place form of `neg`."""
    def nelement(self) -> _int:
        r"""Number of elements."""
    def new(self, *args) -> Tensor:
        r"""An undefined tensor of a shape, or one of data, with this tensor's dtype and device."""
    def new_empty(self, *given, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False) -> Tensor:
        r"""`torch.empty` with this tensor's dtype and device."""
    def new_empty_strided(self, size, stride, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False) -> Tensor:
        r"""`torch.empty_strided` with this tensor's dtype and device."""
    def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False) -> Tensor:
        r"""`torch.full` with this tensor's dtype and device."""
    def new_ones(self, *given, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False) -> Tensor:
        r"""`torch.ones` with this tensor's dtype and device."""
    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False) -> Tensor:
        r"""`torch.tensor` with this tensor's dtype and device."""
    def new_zeros(self, *given, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False) -> Tensor:
        r"""`torch.zeros` with this tensor's dtype and device."""
    def nextafter(self, other) -> Tensor:
        r"""The next number of the dtype after input in the direction of other."""
    def nextafter_(self, other) -> Tensor:
        r"""In-place form of `nextafter`."""
    def nonzero(self, *, as_tuple=False) -> Tensor:
        r"""Coordinates of the non-zero elements in row-major order: int64 [n, ndim], or with as_tuple one [n] a dimension, fit for x[...]."""
    def nonzero_static(self, *, size, fill_value=-1) -> Tensor:
        r"""`nonzero` with a fixed number of rows: cut off, or filled up with fill_value. [size, ndim]"""
    def norm(self, p='fro', dim=None, keepdim=False, dtype=None) -> Tensor:
        r"""The norm of all elements as one vector, or along `dim`: p a number, or "fro" (2)."""
    def normal_(self, mean=..., std=..., *, generator=None) -> Tensor:
        r"""Fills with normal numbers of the given mean and standard deviation."""
    def not_equal(self, other) -> Tensor:
        r"""`ne` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote; the result is bool."""
    def not_equal_(self, other) -> Tensor:
        r"""In-place form of `ne`."""
    def numel(self) -> _int:
        r"""Number of elements."""
    def numpy(self, *, force=False) -> Any:
        r"""A NumPy array over the same memory (below eight bits a copy; types that NumPy lacks are those of ml_dtypes). Raises RuntimeError for a tensor that requires grad, unless `force` is True."""
    def orgqr(self, input2) -> Tensor:
        r"""`linalg.householder_product`."""
    def ormqr(self, tau, other, left=True, transpose=False) -> Tensor:
        r"""Q @ other, or other @ Q without `left`, Q (or Qᴴ if `transpose`) the whole m x m product of the reflections that `geqrf` stores in input [*, m, n] and tau [*, k]."""
    def outer(self, vec2) -> Tensor:
        r"""Every element of one vector times every one of another: [m], [n] -> [m, n]."""
    @property
    def output_nr(self) -> _int:
        r"""Which output of `grad_fn` this is."""
    def permute(self, *dims_given, dims=None) -> Tensor:
        r"""Dimension i of the result is dimension `dims[i]` of the input."""
    def pin_memory(self, device=None) -> Any:
        r"""Itself: pinning speeds up copies to an accelerator, and there is none."""
    def pinverse(self, rcond=...) -> Tensor:
        r"""`linalg.pinv` with rtol = rcond."""
    def polygamma(self, n) -> Any:
        r"""`x.polygamma(n)`: the n-th derivative of digamma at x."""
    def polygamma_(self, n) -> Any:
        r"""In-place form of `polygamma`."""
    def positive(self) -> Tensor:
        r"""The input itself, as +x is. Raises RuntimeError for bool."""
    def pow(self, exponent) -> Tensor:
        r"""`pow` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def pow_(self, exponent) -> Tensor:
        r"""In-place form of `pow`."""
    def prelu(self, weight) -> Tensor:
        r"""x where positive, weight * x elsewhere; weight: one number a channel (dimension 1), or one in all."""
    def prod(self, dim=None, keepdim=False, *, dtype=None) -> Tensor:
        r"""Product of all elements, or along one dimension. Integers and bool give int64 unless `dtype` says otherwise."""
    def put(self, index, source, accumulate=False) -> Tensor:
        r"""A copy of input with source's elements at flat (row-major) positions; accumulate: added."""
    def put_(self, index, source, accumulate=False) -> Tensor:
        r"""In-place form of `put`."""
    def qr(self, some=True) -> _qr:
        r"""`linalg.qr`, reduced if `some`, else complete."""
    def quantile(self, q, dim=None, keepdim=False, *, interpolation='linear') -> Tensor:
        r"""The q-quantiles (q in [0, 1], a number or 1-d) of all elements or along `dim`. [q, ..] for 1-d q."""
    def quantize(self, format, *, scale_rule=None, group=128, scale='float16', zero_point=False, tensor_scale=None, pad=False) -> Tensor:
        r"""`input` [*, n] in blocks of low-precision elements along its last dimension, rounded to nearest even. No gradient flows through it."""
    def rad2deg(self) -> Tensor:
        r"""`rad2deg` of each element of a tensor of any shape, as floats where it holds integers."""
    def rad2deg_(self) -> Tensor:
        r"""In-place form of `rad2deg`."""
    def random_(self, *args, generator=None, **bounds) -> Tensor:
        r"""`random_()`, `random_(to)`, `random_(from, to)`: fills with integers from [from, to); without bounds, from all non-negative ones of the dtype."""
    def ravel(self) -> Tensor:
        r"""All elements in one dimension: a view of contiguous memory, else of a contiguous copy."""
    @property
    def real(self) -> Tensor:
        r"""The real part, a view; a real tensor itself."""
    def reciprocal(self) -> Tensor:
        r"""`reciprocal` of each element of a tensor of any shape, as floats where it holds integers."""
    def reciprocal_(self) -> Tensor:
        r"""In-place form of `reciprocal`."""
    def register_hook(self, hook: Callable) -> Any:
        r"""`hook(grad)` runs when this tensor's gradient is known; a tensor it returns takes the gradient's place."""
    def register_post_accumulate_grad_hook(self, hook: Callable) -> Any:
        r"""`hook(tensor)` runs after this leaf's `.grad` was added to."""
    def relu(self) -> Tensor:
        r"""`relu` of each element of a tensor of any shape."""
    def relu_(self) -> Tensor:
        r"""In-place form of `relu`."""
    def remainder(self, other) -> Tensor:
        r"""`remainder` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def remainder_(self, other) -> Tensor:
        r"""In-place form of `remainder`."""
    def renorm(self, p, dim, maxnorm) -> Tensor:
        r"""Slices along `dim` whose p-norm exceeds maxnorm, scaled down to it. The shape stays."""
    def renorm_(self, p, dim, maxnorm) -> Tensor:
        r"""In-place form of `renorm`."""
    def repeat(self, *sizes, repeats=None) -> Tensor:
        r"""The tensor laid next to itself `repeats[d]` times along each dimension; more numbers than dimensions add leading ones. [a, b] -> [r0*a, r1*b]"""
    def repeat_interleave(self, repeats=None, dim=None, *, output_size=None) -> Tensor:
        r"""Each entry along `dim` (None: of the flattened tensor) repeated `repeats` times: a number, or one number an entry."""
    requires_grad: _bool
    def requires_grad_(self, requires_grad: _bool = True) -> Tensor:
        r"""Says whether this leaf wants a gradient, and returns it. RuntimeError for a result of tracked operators, or an integer dtype."""
    def reshape(self, *sizes, shape=None) -> Tensor:
        r"""Another shape of the same elements (one size may be -1): a view where strides can express it, else a copy."""
    def reshape_as(self, other) -> Tensor:
        r"""`input.reshape(other.shape)`."""
    def resize(self, *sizes: Any) -> Tensor:
        r"""`reshape`, as PyTorch's old `resize` does for tensors that keep their number of elements."""
    def resize_(self, *sizes, size=None, memory_format=None) -> Tensor:
        r"""This tensor with another shape, row-major from its start; elements are kept as far as they go, new ones are undefined."""
    def resize_as(self, tensor: Tensor) -> Tensor:
        r"""`resize` to the other's shape."""
    def resize_as_(self, other, memory_format=None) -> Tensor:
        r"""`input.resize_(other.shape)`."""
    def resolve_conj(self) -> Tensor:
        r"""The tensor with a pending conjugation carried out: itself, since none is ever pending."""
    def resolve_neg(self) -> Tensor:
        r"""The tensor with a pending negation carried out: itself, since none is ever pending."""
    def retain_grad(self) -> None:
        r"""Asks for `.grad` of a tensor that is no leaf."""
    @property
    def retains_grad(self) -> _bool:
        r"""Whether `retain_grad()` was asked for."""
    def roll(self, shifts, dims=None) -> Tensor:
        r"""Entries moved by `shifts` along `dims`, those that fall off the end coming in at the start; without dims, of the flattened tensor."""
    def rot90(self, k=1, dims=...) -> Tensor:
        r"""Rotated by k quarter turns in the plane of `dims`, from the first towards the second."""
    def round(self, *, decimals=0) -> Tensor:
        r"""`round` of each element of a tensor of any shape."""
    def round_(self, *, decimals=0) -> Tensor:
        r"""In-place form of `round`."""
    def rsqrt(self) -> Tensor:
        r"""`rsqrt` of each element of a tensor of any shape, as floats where it holds integers."""
    def rsqrt_(self) -> Tensor:
        r"""In-place form of `rsqrt`."""
    def rsub(self, other, *, alpha=1) -> Tensor:
        r"""other - alpha * input."""
    def scatter(self, *args, **kwargs) -> Tensor:
        r"""A copy of input with `src` (a tensor or a number) written at `index` along `dim`: out[i][index[i][j]] = src[i][j]."""
    def scatter_(self, *args, **kwargs) -> Tensor:
        r"""In-place form of `scatter`."""
    def scatter_add(self, *args, **kwargs) -> Tensor:
        r"""A copy of input with `src` added at `index` along `dim`; places named several times take every addend."""
    def scatter_add_(self, *args, **kwargs) -> Tensor:
        r"""In-place form of `scatter_add`."""
    def scatter_reduce(self, *args, **kwargs) -> Tensor:
        r"""A copy of input with `src` combined at `index` along `dim` by "sum", "prod", "mean", "amax" or "amin"; include_self: with what is there."""
    def scatter_reduce_(self, *args, **kwargs) -> Tensor:
        r"""In-place form of `scatter_reduce`."""
    def select(self, dim=None, index=None, axis=None) -> Tensor:
        r"""Entry `index` of dimension `dim` (or `axis`), without that dimension."""
    def select_scatter(self, src, dim, index) -> Tensor:
        r"""input with entry `index` of dimension `dim` replaced by `src`."""
    def set_(self, source=None, storage_offset=0, size=None, stride=None) -> Tensor:
        r"""This tensor becomes a window of another's memory (a tensor or a storage); without a source, empty."""
    def sgn(self) -> Tensor:
        r"""`sgn` of each element of a tensor of any shape."""
    def sgn_(self) -> Tensor:
        r"""In-place form of `sgn`."""
    @property
    def shape(self) -> Size:
        r"""The sizes of the dimensions."""
    def share_memory_(self) -> Tensor:
        r"""Moves the tensor's storage into memory that this process shares with those it forks from now on: writes on either side are seen on the other."""
    def short(self, memory_format=None) -> Tensor:
        r"""`x.to(torch.int16)`."""
    def sigmoid(self) -> Tensor:
        r"""`sigmoid` of each element of a tensor of any shape, as floats where it holds integers."""
    def sigmoid_(self) -> Tensor:
        r"""In-place form of `sigmoid`."""
    def sign(self) -> Tensor:
        r"""`sign` of each element of a tensor of any shape."""
    def sign_(self) -> Tensor:
        r"""In-place form of `sign`."""
    def signbit(self) -> Tensor:
        r"""`signbit` of each element of a tensor of any shape, as bool."""
    def sin(self) -> Tensor:
        r"""`sin` of each element of a tensor of any shape, as floats where it holds integers."""
    def sin_(self) -> Tensor:
        r"""In-place form of `sin`."""
    def sinc(self) -> Tensor:
        r"""`sinc` of each element of a tensor of any shape, as floats where it holds integers."""
    def sinc_(self) -> Tensor:
        r"""In-place form of `sinc`."""
    def sinh(self) -> Tensor:
        r"""`sinh` of each element of a tensor of any shape, as floats where it holds integers."""
    def sinh_(self) -> Tensor:
        r"""In-place form of `sinh`."""
    @overload
    def size(self) -> Size: ...
    @overload
    def size(self, dim: _int) -> _int: ...
    def slice_scatter(self, src, dim=0, start=None, end=None, step=1) -> Tensor:
        r"""input with `input[start:end:step]` along `dim` replaced by `src`."""
    def slogdet(self) -> _slogdet:
        r"""`linalg.slogdet`."""
    def softmax(self, dim, dtype=None) -> Tensor:
        r"""exp(x) / sum(exp(x)) along `dim`, computed from x - max(x). `dtype`: convert first. Raises IndexError for a dimension out of range."""
    def sort(self, dim=-1, descending=False, stable=False) -> _sort:
        r"""(values, indices) along `dim` in ascending (or descending) order; NaN counts as the largest. Equal elements keep their order."""
    def split(self, split_size_or_sections=None, dim=0, *, split_size=None) -> tuple[Tensor, ...]:
        r"""Windows along `dim`: of `split_size` entries each (the last may be shorter), or of the given sizes, which must add up to the dimension."""
    def split_with_sizes(self, split_sizes, dim=0) -> tuple[Tensor, ...]:
        r"""Windows of the given sizes along `dim`."""
    def sqrt(self) -> Tensor:
        r"""`sqrt` of each element of a tensor of any shape, as floats where it holds integers."""
    def sqrt_(self) -> Tensor:
        r"""In-place form of `sqrt`."""
    def square(self) -> Tensor:
        r"""`square` of each element of a tensor of any shape."""
    def square_(self) -> Tensor:
        r"""In-place form of `square`."""
    def squeeze(self, dim=None, axis=None, *more) -> Tensor:
        r"""Without its dimensions of size 1: all, or those named by `dim` (or `axis`; an int or several, also one by one)."""
    def squeeze_(self, dim=None) -> Tensor:
        r"""In-place form of `squeeze`."""
    def std(self, dim=None, unbiased=None, keepdim=False, *, correction=None) -> Tensor:
        r"""The standard deviation of all elements, or along `dim`: squares divided by n - correction (default 1)."""
    def std_mean(self, dim=None, unbiased=None, keepdim=False, *, correction=None) -> tuple[Tensor, ...]:
        r"""(standard deviation, mean) of all elements, or along `dim`."""
    def stft(self, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect', normalized=False, onesided=None, return_complex=None, align_to_window=None) -> Tensor:
        r"""Fourier transforms of overlapping frames, windowed: [length] or [b, length] -> [b, frequencies, frames]."""
    def storage(self) -> TypedStorage:
        r"""The flat memory behind this tensor as a sequence of its dtype."""
    def storage_offset(self) -> _int:
        r"""Elements from the start of the storage to element [0, …, 0]."""
    @overload
    def stride(self) -> tuple[_int, ...]: ...
    @overload
    def stride(self, dim: _int) -> _int: ...
    def sub(self, other, *, alpha=1) -> Tensor:
        r"""`sub` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def sub_(self, other, *, alpha=1) -> Tensor:
        r"""In-place form of `sub`."""
    def subtract(self, other, *, alpha=1) -> Tensor:
        r"""`sub` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote."""
    def subtract_(self, other, *, alpha=1) -> Tensor:
        r"""In-place form of `sub`."""
    def sum(self, dim=None, keepdim=False, *, dtype=None) -> Tensor:
        r"""Sum of all elements, or along `dim` (an int or several). Integers and bool give int64 unless `dtype` says otherwise."""
    def sum_to_size(self, *sizes, size=None) -> Tensor:
        r"""input summed over the dimensions along which `size` would be broadcast to its shape."""
    def svd(self, some=True, compute_uv=True) -> _svd:
        r"""(U, S, V) with input = U diag(S) Vᴴ, as `linalg.svd` has it; zeros for U and V without compute_uv."""
    def swapaxes(self, axis0, axis1) -> Tensor:
        r"""`transpose`, by NumPy's name."""
    def swapaxes_(self, dim0, dim1) -> Tensor:
        r"""In-place form of `transpose`: this tensor's own shape changes."""
    def swapdims(self, dim0, dim1) -> Tensor:
        r"""Dimensions `dim0` and `dim1` exchanged. [.., a, .., b, ..] -> [.., b, .., a, ..]"""
    def swapdims_(self, dim0, dim1) -> Tensor:
        r"""In-place form of `transpose`: this tensor's own shape changes."""
    def t(self) -> Tensor:
        r"""The transpose of a matrix; tensors of fewer dimensions as they are. [a, b] -> [b, a]"""
    def t_(self) -> Tensor:
        r"""In-place form of `t`."""
    def take(self, index) -> Tensor:
        r"""Elements at flat (row-major) positions; result of index's shape. Negative positions count from the end."""
    def take_along_dim(self, indices, dim=None) -> Tensor:
        r"""gather with input and indices broadcast against each other; without `dim` both are flattened. Negative indices count from the end."""
    def tan(self) -> Tensor:
        r"""`tan` of each element of a tensor of any shape, as floats where it holds integers."""
    def tan_(self) -> Tensor:
        r"""In-place form of `tan`."""
    def tanh(self) -> Tensor:
        r"""`tanh` of each element of a tensor of any shape, as floats where it holds integers."""
    def tanh_(self) -> Tensor:
        r"""In-place form of `tanh`."""
    def tensor_split(self, indices_or_sections=None, dim=0, *, sections=None, indices=None) -> tuple[Tensor, ...]:
        r"""Windows along `dim`: so many of nearly equal size, or cut at the given indices."""
    def tile(self, *sizes, dims=None) -> Tensor:
        r"""`repeat`, with missing leading numbers taken as 1."""
    def to(self, *args, device=None, dtype=None, other=None, non_blocking=False, copy=False, memory_format=None, rounding=None, generator=None) -> Tensor:
        r"""Converted: `x.to(dtype)`, `x.to(device)`, `x.to(device, dtype)`, `x.to(other)`. Itself where nothing changes and `copy` is False."""
    def to_dense(self, dtype: Any = None, *, masked_grad: _bool | None = None) -> Tensor:
        r"""The tensor itself, which is dense."""
    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        r"""The array API's name of `.to(device)`."""
    def to_sparse(self, sparse_dim: _int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: _int | None = None) -> Tensor:
        r"""A copy that also tells where its values are not 0, by `indices()` and `values()`; in memory it is as dense as the tensor."""
    def to_sparse_coo(self, sparse_dim: _int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: _int | None = None) -> Tensor:
        r"""A copy that also tells where its values are not 0, by `indices()` and `values()`; in memory it is as dense as the tensor."""
    def tolist(self) -> Any:
        r"""The elements as nested lists of Python numbers; a number for a 0-d tensor."""
    def topk(self, k, dim=-1, largest=True, sorted=True) -> _topk:
        r"""(values, indices) of the k largest (or smallest) along `dim`, in order; NaN counts as the largest. Raises RuntimeError for k out of range."""
    def trace(self) -> Tensor:
        r"""Sum of the diagonal of a matrix: [n, m] -> []. Raises RuntimeError for another number of dimensions."""
    def transpose(self, dim0, dim1) -> Tensor:
        r"""Dimensions `dim0` and `dim1` exchanged. [.., a, .., b, ..] -> [.., b, .., a, ..]"""
    def transpose_(self, dim0, dim1) -> Tensor:
        r"""In-place form of `transpose`: this tensor's own shape changes."""
    def triangular_solve(self, A, upper=True, transpose=False, unitriangular=False) -> _triangular_solve:
        r"""(solution, cloned_coefficient) of AX = input (or AᵀX = input), both [*, n, ..]. Prefer `linalg.solve_triangular`."""
    def tril(self, diagonal=0) -> Tensor:
        r"""Matrices with only the elements on and below diagonal number `diagonal` (0: the main one, above it positive) kept, others 0. [.., n, m]"""
    def tril_(self, diagonal=0) -> Tensor:
        r"""In-place form of `tril`."""
    def triu(self, diagonal=0) -> Tensor:
        r"""Matrices with only the elements on and above diagonal number `diagonal` (0: the main one, above it positive) kept, others 0. [.., n, m]"""
    def triu_(self, diagonal=0) -> Tensor:
        r"""In-place form of `triu`."""
    def true_divide(self, other) -> Tensor:
        r"""`true_divide` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
    def true_divide_(self, other) -> Tensor:
        r"""In-place form of `true_divide`."""
    def trunc(self) -> Tensor:
        r"""`trunc` of each element of a tensor of any shape."""
    def trunc_(self) -> Tensor:
        r"""In-place form of `trunc`."""
    def type(self, dtype=None, non_blocking=False) -> Any:
        r"""Without an argument the name of the tensor's type ("torch.FloatTensor"), else the tensor converted to a dtype or such a name."""
    def type_as(self, other) -> Tensor:
        r"""Converted to the dtype (and device) of another tensor."""
    def unbind(self, dim=0) -> tuple[Tensor, ...]:
        r"""The entries of dimension `dim`, each without it. [n, a] -> n x [a]"""
    def unflatten(self, dim, sizes) -> Tensor:
        r"""Dimension `dim` split into `sizes`, of which one may be -1."""
    def unfold(self, dimension, size, step) -> Tensor:
        r"""Windows of `size` entries every `step` entries along a dimension, as a new last dimension. [.., n, ..] -> [.., windows, .., size]"""
    def uniform_(self, *args, generator=None, **bounds) -> Tensor:
        r"""`uniform_(from=0, to=1)`: fills with numbers from [from, to)."""
    def unique(self, sorted=True, return_inverse=False, return_counts=False, dim=None) -> Tensor:
        r"""The distinct elements (or, along `dim`, slices) in ascending order; with the places of the input's elements among them and their counts if asked."""
    def unique_consecutive(self, return_inverse=False, return_counts=False, dim=None) -> Tensor:
        r"""The elements (or slices along `dim`) without immediate repetitions."""
    def unsafe_chunk(self, chunks, dim=0) -> tuple[Tensor, ...]:
        r"""`chunk` whose pieces autograd takes for separate tensors: they may be written in place, the input must then not be used."""
    def unsafe_split(self, split_size_or_sections=None, dim=0, *, split_size=None) -> tuple[Tensor, ...]:
        r"""`split` whose pieces autograd takes for separate tensors: they may be written in place, the input must then not be used."""
    def unsafe_split_with_sizes(self, split_sizes, dim=0) -> tuple[Tensor, ...]:
        r"""`split_with_sizes` whose pieces autograd takes for separate tensors: they may be written in place, the input must then not be used."""
    def unsqueeze(self, dim=None, axis=None) -> Tensor:
        r"""A new dimension of size 1 at position `dim` (or `axis`) of the result."""
    def unsqueeze_(self, dim) -> Tensor:
        r"""In-place form of `unsqueeze`."""
    def untyped_storage(self) -> UntypedStorage:
        r"""The flat bytes behind this tensor, shared by all its views."""
    def var(self, dim=None, unbiased=None, keepdim=False, *, correction=None) -> Tensor:
        r"""The variance of all elements, or along `dim`: squares divided by n - correction (default 1). unbiased=False is correction=0."""
    def var_mean(self, dim=None, unbiased=None, keepdim=False, *, correction=None) -> tuple[Tensor, ...]:
        r"""(variance, mean) of all elements, or along `dim`."""
    def vdot(self, other) -> Tensor:
        r"""`dot` of the first vector's conjugate with the second."""
    def view(self, *shape, size=None, dtype=None) -> Tensor:
        r"""The same memory as another shape (one size may be -1), or another dtype: `x.view(2, -1)`, `x.view(torch.int32)`."""
    def view_as(self, other) -> Tensor:
        r"""`input.view(other.shape)`."""
    def vsplit(self, indices_or_sections) -> tuple[Tensor, ...]:
        r"""tensor_split along dimension 0; a number of sections must divide it."""
    def where(self, condition, other) -> Any:
        r"""`x.where(condition, other)`: x where the condition holds."""
    def xlogy(self, other) -> Tensor:
        r"""`xlogy` of the elements at each place of tensors or numbers: shapes broadcast, dtypes promote, then to a floating one."""
    def xlogy_(self, other) -> Tensor:
        r"""In-place form of `xlogy`."""
    def zero_(self) -> Tensor:
        r"""Every element set to 0."""

def wrap(spec: Spec, mem: Any, ptr: _int) -> Tensor:
    r"""A tensor over existing memory, without checks."""
def bytes_for(elements: _int, dtype: DType) -> _int:
    r"""Bytes that so many elements take: whole ones, also where the last is shared with nothing."""
def place_of(mem: Any, spec: Spec, offset: _int = 0) -> _int:
    r"""`ptr` of element `offset` of a storage, for tensors of a spec's dtype and device."""
def empty(shape, dtype: DType, device: Device, strides=None) -> Tensor:
    r"""A fresh uninitialised tensor; `strides` in elements (default row-major, must be dense)."""
def empty_of(spec: Spec) -> Tensor:
    r"""A fresh uninitialised tensor of a spec."""
def meta_storage(spec: Spec) -> Any:
    r"""The storage of a fresh meta tensor: no memory, and the bytes that it would have. Raises RuntimeError where 64 bits do not count them."""
def _empty_unusual(spec: Spec) -> Tensor: ...
class UntypedStorage:
    def __eq__(self, other: Any) -> Any: ...
    def __getitem__(self, key) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __len__(self) -> Any: ...
    def __repr__(self) -> Any:
        r"""Return repr(self)."""
    def _version(self) -> Any: ...
    def data_ptr(self) -> _int: ...
    @property
    def device(self) -> Device: ...
    def nbytes(self) -> _int: ...
    def size(self) -> _int: ...
    def tolist(self) -> Any: ...

class TypedStorage:
    def __getitem__(self, key) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __len__(self) -> Any: ...
    def __repr__(self) -> Any:
        r"""Return repr(self)."""
    def data_ptr(self) -> _int: ...
    @property
    def device(self) -> Device: ...
    def nbytes(self) -> _int: ...
    def size(self) -> Any: ...
    def tolist(self) -> Any: ...
    def untyped(self) -> UntypedStorage: ...

class _aminmax(tuple[Tensor, ...]):
    @property
    def min(self) -> Tensor: ...
    @property
    def max(self) -> Tensor: ...
class _cummax(tuple[Tensor, ...]):
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
class _cummin(tuple[Tensor, ...]):
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
class _frexp(tuple[Tensor, ...]):
    @property
    def mantissa(self) -> Tensor: ...
    @property
    def exponent(self) -> Tensor: ...
class _geqrf(tuple[Tensor, ...]):
    @property
    def a(self) -> Tensor: ...
    @property
    def tau(self) -> Tensor: ...
class _histogram(tuple[Tensor, ...]):
    @property
    def hist(self) -> Tensor: ...
    @property
    def bin_edges(self) -> Tensor: ...
class _histogramdd(tuple[Tensor, ...]):
    @property
    def hist(self) -> Tensor: ...
    @property
    def bin_edges(self) -> Tensor: ...
class _kthvalue(tuple[Tensor, ...]):
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
class _linalg_cholesky_ex(tuple[Tensor, ...]):
    @property
    def L(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...
class _linalg_eig(tuple[Tensor, ...]):
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...
class _linalg_eigh(tuple[Tensor, ...]):
    @property
    def eigenvalues(self) -> Tensor: ...
    @property
    def eigenvectors(self) -> Tensor: ...
class _linalg_inv_ex(tuple[Tensor, ...]):
    @property
    def inverse(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...
class _linalg_ldl_factor(tuple[Tensor, ...]):
    @property
    def LD(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
class _linalg_ldl_factor_ex(tuple[Tensor, ...]):
    @property
    def LD(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...
class _linalg_lstsq(tuple[Tensor, ...]):
    @property
    def solution(self) -> Tensor: ...
    @property
    def residuals(self) -> Tensor: ...
    @property
    def rank(self) -> Tensor: ...
    @property
    def singular_values(self) -> Tensor: ...
class _linalg_lu(tuple[Tensor, ...]):
    @property
    def P(self) -> Tensor: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def U(self) -> Tensor: ...
class _linalg_lu_factor(tuple[Tensor, ...]):
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
class _linalg_lu_factor_ex(tuple[Tensor, ...]):
    @property
    def LU(self) -> Tensor: ...
    @property
    def pivots(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...
class _linalg_qr(tuple[Tensor, ...]):
    @property
    def Q(self) -> Tensor: ...
    @property
    def R(self) -> Tensor: ...
class _linalg_slogdet(tuple[Tensor, ...]):
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...
class _linalg_solve_ex(tuple[Tensor, ...]):
    @property
    def result(self) -> Tensor: ...
    @property
    def info(self) -> Tensor: ...
class _linalg_svd(tuple[Tensor, ...]):
    @property
    def U(self) -> Tensor: ...
    @property
    def S(self) -> Tensor: ...
    @property
    def Vh(self) -> Tensor: ...
class _lu_unpack(tuple[Tensor, ...]):
    @property
    def P(self) -> Tensor: ...
    @property
    def L(self) -> Tensor: ...
    @property
    def U(self) -> Tensor: ...
class _max(tuple[Tensor, ...]):
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
class _median(tuple[Tensor, ...]):
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
class _min(tuple[Tensor, ...]):
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
class _mode(tuple[Tensor, ...]):
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
class _nanmedian(tuple[Tensor, ...]):
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
class _qr(tuple[Tensor, ...]):
    @property
    def Q(self) -> Tensor: ...
    @property
    def R(self) -> Tensor: ...
class _slogdet(tuple[Tensor, ...]):
    @property
    def sign(self) -> Tensor: ...
    @property
    def logabsdet(self) -> Tensor: ...
class _sort(tuple[Tensor, ...]):
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
class _svd(tuple[Tensor, ...]):
    @property
    def U(self) -> Tensor: ...
    @property
    def S(self) -> Tensor: ...
    @property
    def V(self) -> Tensor: ...
class _topk(tuple[Tensor, ...]):
    @property
    def values(self) -> Tensor: ...
    @property
    def indices(self) -> Tensor: ...
class _triangular_solve(tuple[Tensor, ...]):
    @property
    def solution(self) -> Tensor: ...
    @property
    def cloned_coefficient(self) -> Tensor: ...
