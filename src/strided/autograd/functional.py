"""Derivatives as functions: jacobian, hessian and their products with vectors, for functions of one tensor or a tuple of them.

Everything is taken by backward passes; a product from the right (jvp, hvp) by differentiating a backward pass with respect to its own input
gradient, in which it is linear.
"""

from __future__ import annotations

from collections.abc import Callable

from strided.autograd import engine, graph
from strided.autograd.modes import enable_grad, is_grad_enabled
from strided.tensor import Tensor, empty

STRICT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner from the input when running in strict mode.",
    "back": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "back_trick": "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double backward trick to compute "
    "forward mode gradients. This is not allowed in strict mode.",
    "double_back": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "double_back_trick": "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not allowed in strict mode as it "
    "prevents from using the double backward trick to replace forward mode AD.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is independent of the input. This "
    "is not allowed in strict mode. You should ensure that your function is twice differentiable and that the jacobian depends on the inputs (this would be "
    "violated by a linear function for example).",
    "create": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode when create_graph=True.",
}


def vjp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(*inputs), vᵀJ): v has the shapes of the outputs (may be left out for a one-element output), the product those of the inputs."""
    single, inputs = _inputs(inputs, create_graph, "vjp")
    with enable_grad():
        outputs, one_out = _call(func, inputs, "vjp", strict)
        v = _vector(v, outputs, one_out, "The vector v can only be None if the user-provided function returns a single Tensor with a single element.", create_graph)
        products = _grad(outputs, inputs, v, create_graph, strict, "back")
    return _finish(outputs, one_out, create_graph), _finish(products, single, create_graph)


def jvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(*inputs), Jv): v has the shapes of the inputs (may be left out for one one-element input), the product those of the outputs."""
    single, inputs = _inputs(inputs, create_graph, "jvp")
    v = _vector(v, inputs, single, "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element.", create_graph)
    with enable_grad():
        outputs, one_out = _call(func, inputs, "jvp", strict)
        seeds = tuple(_zeros(out, True) for out in outputs)
        back = _grad(outputs, inputs, seeds, True, strict, "back")
        products = _grad(back, seeds, v, create_graph, strict, "back_trick")
    return _finish(outputs, one_out, create_graph), _finish(products, one_out, create_graph)


def jacobian(func: Callable, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode"):
    """The Jacobian of func: for an output of shape S and an input of shape T, a tensor of shape S + T (nested in tuples where there are several).

    One backward pass an output element. vectorize and the "forward-mode" strategy change how PyTorch computes, not what: both are accepted.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, "forward-mode" tends to be '
            'more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError('torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported together (yet). ')
    if strict and vectorize:
        raise RuntimeError("torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either set `strict=False` or `vectorize=False`.")
    single, inputs = _inputs(inputs, create_graph, "jacobian")
    with enable_grad():
        outputs, one_out = _call(func, inputs, "jacobian", strict)
        rows = tuple(_jacobian_of(out, inputs, create_graph, strict) for out in outputs)
    blocks = tuple(_finish(row, single, create_graph) for row in rows)
    return blocks[0] if one_out else blocks


def _jacobian_of(out: Tensor, inputs: tuple, create_graph: bool, strict: bool) -> tuple:
    """∂out/∂input for every input, each of shape out.shape + input.shape."""
    rows = []
    flat = out.reshape(-1)  # [elements]
    for element in range(flat.shape[0]):
        rows.append(_grad((flat[element],), inputs, (None,), create_graph, strict, "back", keep=True))
    blocks = []
    for place, x in enumerate(inputs):
        block = engine.stack([row[place] for row in rows]) if rows else _zeros_of((0, *x.shape), x)
        blocks.append(block.reshape((*out.shape, *x.shape)))  # [*out, *x]
    return tuple(blocks)


def hessian(func: Callable, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode"):
    """The Hessian of a scalar function: for inputs of shapes S and T a block of shape S + T (nested in tuples where there are several)."""
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    single, given = _as_tuple(inputs, "inputs", "hessian")

    def gradient(*xs):
        out = func(*xs)
        out, one_out = _as_tuple(out, "outputs of the user-provided function", "hessian")[1], isinstance(out, Tensor)
        _check_scalar(out, one_out, "hessian")
        if strict:
            _require(out, "outputs")
        grads = _grad(out, xs, (None,), True, False, "back")
        if strict:
            _require(grads, "jacobian")
        return grads[0] if single else grads

    return jacobian(gradient, given[0] if single else given, create_graph, strict, vectorize)


def vhp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(*inputs), vᵀH) for a scalar function; v and the product have the shapes of the inputs."""
    return _hessian_product(func, inputs, v, create_graph, strict, "vhp")


def hvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False):
    """(func(*inputs), Hv) for a scalar function; v and the product have the shapes of the inputs."""
    return _hessian_product(func, inputs, v, create_graph, strict, "hvp")


def _hessian_product(func, inputs, v, create_graph, strict, name):
    single, inputs = _inputs(inputs, create_graph, name)
    v = _vector(v, inputs, single, "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element.", create_graph)
    with enable_grad():
        outputs, one_out = _call(func, inputs, name, strict)
        _check_scalar(outputs, one_out, name)
        grads = _grad(outputs, inputs, (None,), True, strict, "back")
        if strict:
            _require(grads, "jacobian")
        if name == "vhp":
            products = _grad(grads, inputs, v, create_graph, strict, "double_back")
        else:
            seeds = tuple(_zeros(x, True) for x in inputs)
            double = _grad(grads, inputs, seeds, True, strict, "double_back")
            products = _grad(double, seeds, v, create_graph, strict, "double_back_trick")
    return _finish(outputs, one_out, create_graph), _finish(products, single, create_graph)


# ---- pieces -------------------------------------------------------------------------------------


def _as_tuple(value, what: str, name: str) -> tuple[bool, tuple]:
    """(was it a single tensor, the tuple)"""
    if isinstance(value, Tensor):
        return True, (value,)
    if not isinstance(value, tuple):
        raise TypeError(f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the given {what} has type {type(value)}.")
    for place, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise TypeError(f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the value at index {place} has type {type(item)}.")
    return False, value


def _inputs(inputs, create_graph: bool, name: str) -> tuple[bool, tuple]:
    """The inputs as fresh variables: attached to the caller's graph with create_graph, leaves without."""
    single, inputs = _as_tuple(inputs, "inputs", name)
    fresh = []
    for x in inputs:
        if create_graph:
            with enable_grad():
                fresh.append(x.view_as(x) if graph.requires_grad(x) else x.detach().requires_grad_())
        else:
            fresh.append(x.detach().requires_grad_())
    return single, tuple(fresh)


def _call(func, inputs, name: str, strict: bool) -> tuple[tuple, bool]:
    one_out, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", name)
    if strict:
        _require(outputs, "outputs")
    return outputs, one_out


def _require(tensors: tuple, what: str) -> None:
    for place, t in enumerate(tensors):
        if not graph.requires_grad(t):
            raise RuntimeError(STRICT[what].format(place))


def _check_scalar(outputs: tuple, one_out: bool, name: str) -> None:
    if not one_out:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")


def _vector(v, like: tuple, single: bool, message: str, create_graph: bool) -> tuple:
    """v as a tuple of tensors of the shapes of `like`; ones where it may be left out."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(message)
        return (_zeros_of(like[0].shape, like[0]).fill_(1),)
    v = v if isinstance(v, tuple) else (v,)
    if len(v) != len(like):
        raise RuntimeError("The given v should contain a single Tensor." if single else f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
    for place, (given, wanted) in enumerate(zip(v, like)):
        if given.shape != wanted.shape:
            raise RuntimeError(f"{'' if single else f'Entry {place} in '}v has invalid size: should be {wanted.shape} but got {given.shape}.")
    return v if create_graph else tuple(t.detach() for t in v)


def _zeros_of(shape, like: Tensor) -> Tensor:
    return empty(tuple(shape), like.dtype, like.device).zero_()


def _zeros(like: Tensor, requires_grad: bool = False) -> Tensor:
    out = _zeros_of(like.shape, like)
    return out.requires_grad_() if requires_grad else out


def _grad(outputs: tuple, inputs: tuple, vectors: tuple, create_graph: bool, strict: bool, stage: str, keep: bool = False) -> tuple:
    """Gradients of those outputs that have any; zeros where an input has none (an error in strict mode)."""
    pairs = [(out, v) for out, v in zip(outputs, vectors) if graph.requires_grad(out)]
    if pairs:
        found = engine.grad([out for out, _ in pairs], inputs, [v for _, v in pairs], retain_graph=keep or create_graph, create_graph=create_graph, allow_unused=True)
    else:
        found = (None,) * len(inputs)
    filled = []
    for place, (grad, x) in enumerate(zip(found, inputs)):
        if grad is None:
            if strict:
                raise RuntimeError(STRICT[stage].format(place))
            grad = _zeros(x)
        elif strict and create_graph and stage == "back" and not graph.requires_grad(grad):
            raise RuntimeError(STRICT["create"].format(place))
        filled.append(grad)
    return tuple(filled)


def _finish(tensors: tuple, single: bool, create_graph: bool):
    """The results as the caller gave the inputs: one tensor or a tuple; without history unless asked for."""
    if not (create_graph and is_grad_enabled()):
        tensors = tuple(t.detach() for t in tensors)
    return tensors[0] if single else tensors
