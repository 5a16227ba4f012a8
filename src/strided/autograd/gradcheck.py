"""`gradcheck` and `gradgradcheck`: backward functions against central differences. For tests; element by element, hence slow."""

from __future__ import annotations

import warnings

from strided.autograd import engine, graph
from strided.tensor import Tensor, empty


class GradcheckError(RuntimeError):
    """What `gradcheck` found wrong."""


def _tensors(value) -> tuple:
    return (value,) if isinstance(value, Tensor) else tuple(value)


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

    Inputs should be float64: the default tolerances expect its precision. fast_mode is accepted and ignored: the whole Jacobian is always compared. Returns True;
    raises GradcheckError, or returns False where `raise_exception` is off.
    """
    if check_forward_ad or check_batched_forward_grad:
        raise NotImplementedError("gradcheck: forward-mode derivatives (check_forward_ad) do not exist here; check the backward pass")
    try:
        _check(func, _tensors(inputs), eps, atol, rtol, nondet_tol, check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs, eps, atol, rtol, nondet_tol, check_undefined) -> None:
    variables = [x for x in inputs if _differentiable(x)]
    if not variables:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")
    for place, x in enumerate(inputs):
        if _differentiable(x):
            if x.dtype.is_complex:
                raise NotImplementedError("gradcheck: complex inputs are not supported; check the real and the imaginary part as two real inputs")
            if x.dtype.name != "float64":
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
    outputs = [out for out in _tensors(func(*inputs)) if _differentiable(out)]
    if not outputs:
        _expect_zero(func, inputs, variables, eps)
        return
    for o in range(len(outputs)):
        numerical = _numerical(func, inputs, variables, o, eps)
        analytical = _analytical(outputs[o], variables)
        again = _analytical(outputs[o], variables)
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


def _numerical(func, inputs, variables, place: int, eps: float) -> list:
    """Central differences: for each variable an array [elements of the variable, elements of output `place`]."""
    import numpy as np

    def output():
        outs = [out for out in _tensors(func(*inputs)) if isinstance(out, Tensor) and out.dtype.is_floating_point]  # with grad mode on: func may take gradients itself
        return np.array(_array(outs[place]), dtype=np.float64).reshape(-1)

    found = []
    for x in variables:
        values = _array(x)  # shares the memory of x
        rows = []
        for index in np.ndindex(*values.shape):
            original = values[index].item()
            values[index] = original + eps
            above = output()
            values[index] = original - eps
            below = output()
            values[index] = original
            rows.append((above - below) / (2 * eps))
        found.append(np.array(rows).reshape(values.size, -1))
    return found


def _analytical(out: Tensor, variables) -> list:
    """The same arrays from backward passes, one an element of the output."""
    import numpy as np

    columns: list[list] = [[] for _ in variables]
    for index in np.ndindex(*out.shape):
        seed = empty(out.shape, out.dtype, out.device).zero_()
        _array(seed)[index] = 1
        grads = engine.grad(out, variables, seed, retain_graph=True, allow_unused=True)
        for column, grad, x in zip(columns, grads, variables):
            if grad is not None and grad.shape != x.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            column.append(np.zeros(x.numel()) if grad is None else np.array(_array(grad), dtype=np.float64).reshape(-1))
    return [np.array(column).reshape(len(column), x.numel()).T for column, x in zip(columns, variables)]


def _compare(analytical, numerical, i: int, o: int, atol: float, rtol: float) -> None:
    import numpy as np

    if not np.allclose(analytical, numerical, rtol=rtol, atol=atol, equal_nan=False):
        raise GradcheckError(f"Jacobian mismatch for output {o} with respect to input {i},\nnumerical:{numerical}\nanalytical:{analytical}\nlargest difference: {np.abs(analytical - numerical).max()}")


def _expect_zero(func, inputs, variables, eps) -> None:
    for place, out in enumerate(_tensors(func(*inputs))):
        if isinstance(out, Tensor) and out.dtype.is_floating_point:
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
    """`gradcheck` of the gradients: second derivatives of `func` with respect to the inputs and to `grad_outputs` (random where not given)."""
    import numpy as np

    inputs = _tensors(inputs)
    outputs = [out for out in _tensors(func(*inputs)) if _differentiable(out)]
    if grad_outputs is None:
        random = np.random.default_rng(0)
        grad_outputs = []
        for out in outputs:
            seed = empty(out.shape, out.dtype, out.device)
            _array(seed)[...] = random.standard_normal(out.shape)
            grad_outputs.append(seed.requires_grad_())
    grad_outputs = _tensors(grad_outputs)
    count = len(inputs)

    def gradient(*args):
        xs, seeds = args[:count], args[count:]
        outs = [out for out in _tensors(func(*xs)) if _differentiable(out)]
        grads = engine.grad(outs, [x for x in xs if _differentiable(x)], seeds, create_graph=True, allow_unused=True)
        return tuple(grad for grad in grads if grad is not None)

    return gradcheck(gradient, (*inputs, *grad_outputs), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad)
