"""Ready-made parametrizations: weight norm, spectral norm, orthogonal matrices. The machinery is in parametrize.py."""
from ... import ops
from ...autograd.modes import no_grad
from ...dtypes import finfo
from ...ops.table import TABLE
from ...tensor import Tensor
from .. import functional as F
from ..module import Module
from ..modules.conv import _ConvTransposeNd
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(module, name):
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# ---- weight norm ----------------------------------------------------------------------------------------------


class _WeightNorm(Module):
    """w = g·v / ‖v‖, the norm over all dimensions but `dim` (−1: over all)."""

    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / ops.norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight):
        return ops.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Splits a tensor into its length (`original0`) and direction (`original1`) along `dim` (None: as a whole). Returns the module.

    State dicts of the older `nn.utils.weight_norm` (name_g, name_v) load into it.
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def translate(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(translate)
    return module


# ---- spectral norm --------------------------------------------------------------------------------------------


class _SpectralNorm(Module):
    """w / σ, σ the largest singular value of w as a matrix [size of dim, the rest], estimated by power iterations that go on from call to call."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight.detach())
            for name, size in zip(("_u", "_v"), matrix.shape):
                start = ops.empty(size, dtype=matrix.dtype, device=matrix.device).normal_(0, 1)
                self.register_buffer(name, F.normalize(start, dim=0, eps=eps))
            self._iterate(matrix, 15)

    def _matrix(self, weight):
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix, count):
        with no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.mH.mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # the next call writes into the buffers
        return weight / ops.vdot(u, matrix.mv(v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divides a tensor by its largest singular value. dim: the output dimension (1 for transposed convolutions, else 0). Returns the module."""
    weight = _tensor_of(module, name)
    if dim is None:
        dim = int(isinstance(module, _ConvTransposeNd))
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


# ---- orthogonal matrices --------------------------------------------------------------------------------------


def _is_orthogonal(q):
    n, k = q.shape[-2:]
    return ops.allclose(q.mH @ q, ops.eye(k, dtype=q.dtype, device=q.device), atol=10.0 * n * finfo(q.dtype).eps)


def _made_orthogonal(a):
    """The orthogonal factor of a, its columns signed as in a QR decomposition with a positive diagonal."""
    x, tau = ops.geqrf(a)
    q = TABLE["linalg_householder_product"].call(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A matrix (or batch) with orthonormal columns (rows, if it is wide) from an unconstrained one of its shape.

    The lower triangle becomes a skew-symmetric A and Q = exp(A) or (1 + A/2)(1 − A/2)⁻¹, or a product of Householder reflections. With
    `use_trivialization` the result is base·Q, and assigning sets the base.
    """

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x):
        wide = x.size(-2) < x.size(-1)
        x = x.mT if wide else x
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            a = x.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
            q = TABLE["linalg_householder_product"].call(a, tau)
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            x = x.tril()
            if n != k:
                x = ops.cat([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], dim=-1)  # [.., n, n]
            a = x - x.mH
            if self.orthogonal_map == "matrix_exp":
                q = ops.matrix_exp(a)
            else:
                one = ops.eye(n, dtype=a.dtype, device=a.device)
                q = TABLE["linalg_solve"].call(ops.add(one, a, alpha=-0.5), ops.add(one, a, alpha=0.5))
            q = q[..., :k] if n != k else q
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, value):
        with no_grad():
            return self._inverse(value)

    def _inverse(self, value):
        if value.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {value.shape}.")
        wide = value.size(-2) < value.size(-1)
        q = value.mT if wide else value
        n, k = q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when use_trivialization=False."
                )
            a, tau = ops.geqrf(q)  # orthogonal: the diagonal is ±1, and its sign is what `forward` multiplies by
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal.copy_(diagonal.sign())
            diagonal.copy_(ops.where(tau == 0.0, -diagonal, diagonal))
            return a.mT if wide else a
        if n == k:
            q = q.clone() if _is_orthogonal(q) else _made_orthogonal(q)
        else:  # completed to a square with random columns
            more = ops.randn(*q.shape[:-2], n, n - k, dtype=q.dtype, device=q.device)
            q = _made_orthogonal(ops.cat([q, more], dim=-1))
        self.base = q
        start = ops.zeros_like(value)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keeps a matrix (or batch of matrices) orthogonal: Q·Qᵀ = 1 or Qᵀ·Q = 1, whichever can be. Returns the module.

    orthogonal_map: "matrix_exp" (for square ones), "cayley" or "householder" (for the others).
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
