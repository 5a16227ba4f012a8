"""`gradcheck` and `gradgradcheck`: backward functions against central differences. For tests: element by element, hence slow, or along random directions.

A complex tensor counts as its real and its imaginary parts, and its gradient as the gradients of both: PyTorch's convention.
"""

from __future__ import annotations

import warnings

from strided.autograd import engine, graph
from strided.tensor import Tensor, empty, wrap


class GradcheckError(RuntimeError):
    """What `gradcheck` found wrong."""


def _tensors(value) -> tuple:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _inexact(results) -> list[Tensor]:
    """The results that could have gradients."""
    return [t for t in _tensors(results) if isinstance(t, Tensor) and (t.dtype.is_floating_point or t.dtype.is_complex)]


def _differentiable(t) -> bool:
    return isinstance(t, Tensor) and graph.requires_grad(t)


def gradcheck(
    func,
    inputs,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares the gradients of `func(*inputs)` for inputs that require grad with central differences of step `eps`.

    Inputs should be float64 or complex128: the default tolerances expect their precision. fast_mode compares one random direction of each input with one of each
    output, instead of the whole Jacobian. Returns True; raises GradcheckError, or returns False where `raise_exception` is off.
    check_batched_grad and check_grad_dtypes find nothing more: batched gradients are single passes, and every gradient is cast to its tensor's dtype.
    Raises ValueError where no pass is to be checked, NotImplementedError for forward mode.
    """
    if not (check_forward_ad or check_backward_ad):
        raise ValueError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_forward_ad or check_batched_forward_grad:
        raise NotImplementedError("gradcheck: forward-mode derivatives (check_forward_ad) do not exist here; check the backward pass")
    try:
        _check(func, _tensors(inputs), eps, atol, rtol, nondet_tol, check_undefined_grad, fast_mode)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs, eps, atol, rtol, nondet_tol, check_undefined, fast) -> None:
    variables = [x for x in inputs if _differentiable(x)]
    if not variables:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")
    for place, x in enumerate(inputs):
        if _differentiable(x):
            if x.dtype.name not in ("float64", "complex128"):
                warnings.warn(
                    f"Input #{place} requires gradient and is not a double precision floating point or complex. This check will likely fail if all the inputs "
                    "are not of double precision floating point or complex. ",
                    stacklevel=3,
                )
            if any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape)):
                raise RuntimeError(
                    f"The {place}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
                    "compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
                )
    outputs = _inexact(func(*inputs))
    if not any(map(_differentiable, outputs)):
        _expect_zero(func, inputs, variables, eps)
        return
    for o, out in enumerate(outputs):
        if not _differentiable(out):
            continue
        if fast:
            _check_directions(func, inputs, variables, o, out, eps, atol, rtol)
            continue
        numerical = _numerical(func, inputs, variables, o, eps)
        analytical = _analytical(out, variables)
        again = _analytical(out, variables)
        for i, (a, n, b) in enumerate(zip(analytical, numerical, again)):
            _compare(a, n, i, o, atol, rtol)
            if abs(a - b).max(initial=0.0) > nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, although "
                    f"analytical gradient matches numerical gradient.The tolerance for nondeterminism was {nondet_tol}."
                )
    if check_undefined:
        _check_zero_gradient(func, inputs, variables)


def _array(t: Tensor):
    return t.detach().numpy()


def _parts(t: Tensor) -> list:
    """The tensor's memory as real arrays: itself, or its real and its imaginary parts."""
    values = _array(t)
    return [values.real, values.imag] if t.dtype.is_complex else [values]


def _flat(t: Tensor):
    """A copy of the tensor's real numbers, in one dimension."""
    import numpy as np

    return np.concatenate([np.array(part, dtype=np.float64).reshape(-1) for part in _parts(t)])


def _output(func, inputs, place: int):
    """The real numbers of output `place`, with grad mode on: func may take gradients itself."""
    return _flat(_inexact(func(*inputs))[place])


def _numerical(func, inputs, variables, place: int, eps: float) -> list:
    """Central differences: for each variable an array [numbers of the variable, numbers of output `place`]."""
    import numpy as np

    found = []
    for x in variables:
        rows = []
        for values in _parts(x):  # shares the memory of x
            for index in np.ndindex(*values.shape):
                original = values[index].item()
                values[index] = original + eps
                above = _output(func, inputs, place)
                values[index] = original - eps
                below = _output(func, inputs, place)
                values[index] = original
                rows.append((above - below) / (2 * eps))
        found.append(np.array(rows).reshape(len(rows), -1) if rows else np.zeros((0, 0)))
    return found


def _analytical(out: Tensor, variables) -> list:
    """The same arrays from backward passes, one a number of the output."""
    import numpy as np

    columns: list[list] = [[] for _ in variables]
    for part in range(1 + out.dtype.is_complex):
        for index in np.ndindex(*out.shape):
            seed = empty(out.shape, out.dtype, out.device).zero_()
            _parts(seed)[part][index] = 1
            for column, grad in zip(columns, _gradients(out, variables, seed)):
                column.append(grad)
    return [np.array(column).reshape(len(column), -1).T if column else np.zeros((len(_flat(x)), 0)) for column, x in zip(columns, variables)]


def _gradients(out: Tensor, variables, seed: Tensor) -> list:
    """The real numbers of the gradient of each variable; zeros where there is none."""
    import numpy as np

    found = []
    for grad, x in zip(engine.grad(out, variables, seed, retain_graph=True, allow_unused=True), variables):
        if grad is not None and grad.shape != x.shape:
            raise GradcheckError("Analytical gradient has incorrect size")
        found.append(np.zeros(len(_flat(x))) if grad is None else _flat(grad))
    return found


def _check_directions(func, inputs, variables, o: int, out: Tensor, eps: float, atol: float, rtol: float) -> None:
    """One number a variable in place of its Jacobian: a random direction of the output times the Jacobian times a random direction of the variable."""
    import numpy as np

    random = np.random.default_rng(0)
    seed = empty(out.shape, out.dtype, out.device)
    for part in _parts(seed):
        part[...] = random.uniform(size=part.shape)
    towards = _flat(seed)
    for i, (x, gradient) in enumerate(zip(variables, _gradients(out, variables, seed))):
        parts = _parts(x)
        original = [part.copy() for part in parts]
        direction = [random.standard_normal(part.shape) for part in parts]
        length = np.sqrt(sum((d * d).sum() for d in direction)) or 1.0
        moved = []
        for step in (eps, -eps):
            for part, before, d in zip(parts, original, direction):
                part[...] = before + step * (d / length)
            moved.append(_output(func, inputs, o))
        for part, before in zip(parts, original):
            part[...] = before
        numerical = towards @ (moved[0] - moved[1]) / (2 * eps)
        analytical = gradient @ np.concatenate([(d / length).reshape(-1) for d in direction])
        _compare(analytical, numerical, i, o, atol * max(1.0, towards.sum()), rtol)  # errors of single numbers add up


def _compare(analytical, numerical, i: int, o: int, atol: float, rtol: float) -> None:
    import numpy as np

    if not np.size(numerical) and not np.size(analytical):
        return
    if not np.allclose(analytical, numerical, rtol=rtol, atol=atol, equal_nan=False):
        raise GradcheckError(f"Jacobian mismatch for output {o} with respect to input {i},\nnumerical:{numerical}\nanalytical:{analytical}\nlargest difference: {np.abs(analytical - numerical).max()}")


def _expect_zero(func, inputs, variables, eps) -> None:
    for place in range(len(_inexact(func(*inputs)))):
        for array in _numerical(func, inputs, variables, place, eps):
            if array.any():
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _check_zero_gradient(func, inputs, variables) -> None:
    """A zero gradient of the outputs must give zero gradients of the inputs."""
    outputs = [out for out in _tensors(func(*inputs)) if _differentiable(out)]
    zeros = [empty(out.shape, out.dtype, out.device).zero_() for out in outputs]
    for grad, x in zip(engine.grad(outputs, variables, zeros, allow_unused=True), variables):
        if grad is None:
            continue
        if _array(grad).any():
            raise GradcheckError("backward not multiplied by grad_output")
        if grad.dtype is not x.dtype:
            raise GradcheckError("grad is incorrect type")


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """`gradcheck` of the gradients: second derivatives of `func` with respect to the inputs and to `grad_outputs` (random where not given, and with
    gen_non_contig_grad_outputs every second element of their memory). Raises as `gradcheck` does.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise ValueError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_fwd_over_rev:
        raise NotImplementedError("gradgradcheck: forward-mode derivatives (check_fwd_over_rev) do not exist here; check the backward pass of the backward pass")
    import numpy as np

    inputs = _tensors(inputs)
    outputs = [out for out in _tensors(func(*inputs)) if _differentiable(out)]
    if grad_outputs is None:
        random = np.random.default_rng(0)
        grad_outputs = []
        for out in outputs:
            seed = empty(out.shape, out.dtype, out.device)
            if gen_non_contig_grad_outputs:
                wide = empty((*out.shape, 2), out.dtype, out.device)
                layout, _ = wide.spec.layout.select(-1, 0)
                seed = wrap(wide.spec.with_layout(layout), wide.mem, wide.ptr)
            for part in _parts(seed):
                part[...] = random.standard_normal(out.shape)
            grad_outputs.append(seed.requires_grad_())
    grad_outputs = _tensors(grad_outputs)
    count = len(inputs)

    def gradient(*args):
        xs, seeds = args[:count], args[count:]
        outs = [out for out in _tensors(func(*xs)) if _differentiable(out)]
        grads = engine.grad(outs, [x for x in xs if _differentiable(x)], seeds, create_graph=True, allow_unused=True)
        return tuple(grad for grad in grads if grad is not None)

    options = {"eps": eps, "atol": atol, "rtol": rtol, "raise_exception": raise_exception, "nondet_tol": nondet_tol, "check_undefined_grad": check_undefined_grad}
    return gradcheck(gradient, (*inputs, *grad_outputs), fast_mode=fast_mode, **options)
