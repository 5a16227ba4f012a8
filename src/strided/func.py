"""`torch.func`: functions made from functions. Derivatives (grad, vjp, jvp, jacrev, hessian), maps over a batch (vmap), modules as functions of their parameters.

Derivatives nest and follow autograd's graph. `vmap` calls the function once, with tensors that stand for every sample of the batch (batching/).
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import ops, tree
from .autograd import enable_grad, engine
from .autograd.function import BackwardCFunction
from .autograd.node import AccumulateGrad
from .batching import ERROR_MODE, Batched, Map, as_sample_of, batched, in_every_map, in_map, inside, like, maps_beyond, one_by_one
from .nn.utils.stateless import functional_call  # noqa: F401
from .ops.generator import get_rng_state, set_rng_state
from .ops.table import TABLE
from .refused import missing
from .tensor import Tensor

# ---- leaves of a transform ------------------------------------------------------------------------


def _inside(value: Any, made: list[Tensor]) -> Any:
    """The tensors of a nest as inputs of their own: a view of one that is recorded already, else a new leaf, which is noted in `made`."""

    def fresh(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        x = in_every_map(x)
        if x.requires_grad:
            return TABLE["alias"].call(x)
        if not (x.is_floating_point() or x.is_complex()):
            return x
        leaf = x.detach().requires_grad_()
        made.append(inside(leaf))
        return leaf

    return tree.map_leaves(fresh, value)


def _outside(value: Any, made: list[Tensor]) -> Any:
    """Results as the caller sees them: recorded only where their history leads to something other than the transform's own leaves."""
    own = {id(t) for t in made}

    def released(t: Any) -> Any:
        if not isinstance(t, Tensor) or not t.requires_grad:
            return t
        if t.grad_fn is None:
            return t.detach() if id(inside(t)) in own else t
        foreign = any(isinstance(node, AccumulateGrad) and id(node.variable) not in own for node in _history([t]))
        return t if foreign else t.detach()

    return tree.map_leaves(released, value)


def _history(outputs: Sequence[Tensor]) -> Iterator[Any]:
    """The nodes that the outputs came from, each once."""
    seen, stack = set(), [t.grad_fn for t in outputs]
    while stack:
        node = stack.pop()
        if node is not None and id(node) not in seen:
            seen.add(id(node))
            yield node
            stack.extend(following for following, _ in node.next_functions)


def _gradients(outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Tensor]) -> list[Tensor]:
    """Σ over outputs of seedᵀ · d output / d input, an input; zeros where nothing leads there."""
    for running in maps_beyond(seeds, outputs):  # the outputs were computed outside of a map whose samples the seeds are: a backward pass for each of them
        return one_by_one(lambda *some: _gradients(outputs, inputs, some), in_map(seeds, running), {}, running.level)
    live = [(o, s) for o, s in zip(outputs, seeds) if isinstance(o, Tensor) and o.requires_grad]
    wanted = [i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad]
    found: list[Any] = [None] * len(inputs)
    if live and wanted:
        results = [inside(o) for o, _ in live]
        along = [inside(as_sample_of(s, o)) for o, s in live]
        grads = engine.grad(results, [inside(inputs[i]) for i in wanted], along, create_graph=True, allow_unused=True)
        for i, g in zip(wanted, grads):
            found[i] = None if g is None else like(inputs[i], g)
    return [ops.zeros_like(t) if g is None and isinstance(t, Tensor) else g for t, g in zip(inputs, found)]


def _chosen(args: tuple, argnums: int | tuple[int, ...]) -> tuple[int, ...]:
    places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for place in places:
        if not -len(args) <= place < len(args):
            raise RuntimeError(f"Got argnum={place}, but only {len(args)} positional inputs")
    return tuple(place % len(args) for place in places)


def _only_tensors(output: Any, what: str) -> Any:
    """`output`, whose leaves must all be tensors: else RuntimeError."""
    for leaf in tree.flatten(output):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}")
    return output


def _call(func: Callable, args: tuple, kwargs: dict, places: tuple[int, ...], has_aux: bool, made: list[Tensor]):
    """(the differentiated arguments as inputs of their own, func's output, its aux or None)."""
    inner = [_inside(a, made) if i in places else a for i, a in enumerate(args)]
    output = func(*inner, **kwargs)
    aux = None
    if has_aux:
        if not (isinstance(output, tuple) and len(output) == 2):
            raise RuntimeError("output of function f should be a tuple: (output, aux) if has_aux is True")
        output, aux = output
    return [inner[i] for i in places], output, aux


# ---- derivatives ------------------------------------------------------------------------------------


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns (gradients of func's scalar result with respect to the arguments `argnums`, func's result; with has_aux, (result, aux))."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        made: list[Tensor] = []
        places = _chosen(args, argnums)
        with enable_grad():
            inner, output, aux = _call(func, args, kwargs, places, has_aux, made)
            if not isinstance(output, Tensor):
                raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
            if output.dim():
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe you wanted to use the vjp or "
                    "jacrev APIs instead?"
                )
            leaves = tree.flatten(inner)
            grads = tree.rebuild(inner, _gradients([output], leaves, [ops.ones_like(output)]))
        result = grads[0] if isinstance(argnums, int) else tuple(grads)
        return _outside((result, (output, aux) if has_aux else output), made)

    return wrapper


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradients of func's scalar result with respect to the arguments `argnums`: nests of tensors of their shapes."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        grads, value = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapper


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(func(*primals), a function that takes cotangents of the outputs' structure to the tuple of the primals' gradients; with has_aux, aux)."""
    made: list[Tensor] = []
    with enable_grad():
        inner, output, aux = _call(func, primals, {}, tuple(range(len(primals))), has_aux, made)
        _only_tensors(output, "vjp(f, *primals)")

    def pull_back(cotangents: Any) -> tuple:
        seeds = tree.flatten(cotangents)
        outputs = tree.flatten(output)
        if len(seeds) != len(outputs):
            raise RuntimeError(f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function: {len(seeds)} and {len(outputs)} tensors")
        with enable_grad():
            grads = _gradients(outputs, tree.flatten(inner), seeds)
        return tuple(_outside(tree.rebuild(inner, grads), made))

    result = _outside(output, made)
    return (result, pull_back, _outside(aux, made)) if has_aux else (result, pull_back)


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """(func(*primals), the derivative along `tangents`): a backward pass differentiated by its own input gradient, in which it is linear."""
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or len(primals) != len(tangents) or not primals:
        raise RuntimeError("jvp(f, primals, tangents): Expected primals and tangents to be tuples of one length, at least 1")
    made: list[Tensor] = []
    with enable_grad():
        inner, output, aux = _call(func, primals, {}, tuple(range(len(primals))), has_aux, made)
        _only_tensors(output, "jvp(f, primals, tangents)")
        outputs, along = tree.flatten(output), tree.flatten(tangents)
        seeds = [ops.zeros_like(o).requires_grad_() for o in outputs]
        made.extend(seeds)
        products = _gradients(_gradients(outputs, tree.flatten(inner), seeds), seeds, along)
    result = _outside((output, tree.rebuild(output, products), aux), made)
    return result if has_aux else result[:2]


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """(func(*primals), a function that takes tangents, one a primal, to the derivative along them). What func records is kept, so that each further tangent costs two
    backward passes through it and no call of func. Raises RuntimeError where the tangents' structure or shapes are not the primals'."""
    made: list[Tensor] = []
    with enable_grad():
        inner, output, _ = _call(func, primals, {}, tuple(range(len(primals))), False, made)
        _only_tensors(output, "linearize(func, *primals)")
        outputs, inputs = tree.flatten(output), tree.flatten(inner)
        seeds = [ops.zeros_like(o).requires_grad_() for o in outputs]
        made.extend(seeds)
        pulled = _gradients(outputs, inputs, seeds)  # linear in the seeds

    def push_forward(*tangents: Any) -> Any:
        along = tree.flatten(tangents)
        if len(along) != len(inputs):
            raise RuntimeError(f"Expected the tangents to have the same argspec as the primals: {len(along)} and {len(inputs)} tensors")
        for i, (t, x) in enumerate(zip(along, inputs)):
            if t.shape != x.shape:
                raise RuntimeError(f"tangent:{i} with shape {t.shape} in flattened pytree doesn't match the shape {x.shape} of the corresponding primal.")
            if t.dtype is not x.dtype:
                raise RuntimeError(f"tangent:{i} with dtype {t.dtype} in flattened pytree doesn't match the dtype {x.dtype} of the corresponding primal.")
        with enable_grad():
            products = _gradients(pulled, seeds, along)
        return _outside(tree.rebuild(output, products), made)

    return _outside(output, made), push_forward


def jacrev(func: Callable, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None, _preallocate_and_copy: bool = False) -> Callable:
    """A function that returns the Jacobians of func: for an output of shape S and an argument of shape T a tensor of shape S + T, nested as output, then argument."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        made: list[Tensor] = []
        places = _chosen(args, argnums)
        with enable_grad():
            inner, output, aux = _call(func, args, kwargs, places, has_aux, made)
            _only_tensors(output, "vjp(f, *primals)")
            leaves = tree.flatten(inner)

            nested = [tree.rebuild(inner, block) for block in _rows(tree.flatten(output), leaves)]
            jacobians = tree.rebuild(output, [each[0] if isinstance(argnums, int) else tuple(each) for each in nested])
        result = _outside((jacobians, aux), made)
        return result if has_aux else result[0]

    return wrapper


def jacfwd(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error") -> Callable:
    """What `jacrev` returns, at the cost of the arguments' elements rather than the outputs': a pass for each element of the arguments, where these are fewer."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        made: list[Tensor] = []
        with enable_grad():
            inner, output, aux = _call(func, args, kwargs, _chosen(args, argnums), has_aux, made)
            _only_tensors(output, "jvp(f, primals, tangents)")
            outputs, leaves = tree.flatten(output), tree.flatten(inner)
            by_columns = sum(leaf.numel() for leaf in leaves) < sum(out.numel() for out in outputs) and _differentiable_twice(outputs)
            blocks = _columns(outputs, leaves, made) if by_columns else _rows(outputs, leaves)
            nested = [tree.rebuild(inner, block) for block in blocks]
            jacobians = tree.rebuild(output, [each[0] if isinstance(argnums, int) else tuple(each) for each in nested])
        result = _outside((jacobians, aux), made)
        return result if has_aux else result[0]

    return wrapper


def _differentiable_twice(outputs: Sequence[Tensor]) -> bool:
    """Whether all of the outputs' history is made of this package's operators: what a user's Function does in its backward may be no part of a graph."""
    return not any(isinstance(node, BackwardCFunction) for node in _history(outputs))


def _rows(outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> list[list[Tensor]]:
    """The derivatives of each output by each leaf, of shape out.shape + leaf.shape: a backward pass for each element of the outputs."""
    blocks = []
    for out in outputs:
        flat = out.reshape(-1)
        one = ops.eye(flat.numel(), dtype=out.dtype)
        rows = [_gradients([flat], leaves, [one[i]]) for i in range(flat.numel())]
        blocks.append([ops.stack([row[k] for row in rows]).reshape(out.shape + leaf.shape) if rows else leaf.new_zeros(out.shape + leaf.shape) for k, leaf in enumerate(leaves)])
    return blocks


def _columns(outputs: Sequence[Tensor], leaves: Sequence[Tensor], made: list[Tensor]) -> list[list[Tensor]]:
    """The same by a pass for each element of the leaves: a backward pass is linear in its seeds, and its derivative by them is the derivative along a tangent."""
    seeds = [ops.zeros_like(out).requires_grad_() for out in outputs]
    made.extend(seeds)
    pulled = _gradients(outputs, leaves, seeds)
    blocks: list[list[Tensor]] = [[] for _ in outputs]
    for k, leaf in enumerate(leaves):
        one = ops.eye(leaf.numel(), dtype=leaf.dtype).reshape(leaf.numel(), *leaf.shape)
        columns = [_gradients([pulled[k]], seeds, [one[i]]) for i in range(leaf.numel())]
        for number, out in enumerate(outputs):
            whole = ops.stack([column[number] for column in columns], -1) if columns else out.new_zeros((*out.shape, 0))  # [*out, leaf's elements]
            blocks[number].append(whole.reshape(out.shape + leaf.shape))
    return blocks


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """The Jacobian of the Jacobian."""
    return jacfwd(jacrev(func, argnums), argnums)


# ---- a batch at once ----------------------------------------------------------------------------------


def vmap(func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None) -> Callable:
    """A function over batches: func as if called for each index along `in_dims` of the tensors (None: the same for all), its results stacked along `out_dims`.

    It is called once, on tensors that stand for all samples; chunk_size: for how many at a time. randomness: "different" draws for each sample, "same" the same
    numbers for all, "error" refuses to draw. Raises ValueError where the sizes of the batch disagree, RuntimeError where the function asks for a sample's value.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = args, kwargs
        leaves = tree.flatten(given)
        dims = tree.broadcast(in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args), args, f"vmap({getattr(func, '__name__', func)}, in_dims, ...): in_dims")
        dims += [0 if isinstance(leaf, Tensor) else None for leaf in tree.flatten(kwargs)]
        for d, leaf in zip(dims, leaves):
            _check_in_dim(f"vmap({getattr(func, '__name__', func)}, in_dims={in_dims}, ...)(<inputs>)", d, leaf)
        sizes = {leaf.size(d) for leaf, d in zip(leaves, dims) if d is not None}
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over: at least one of in_dims must not be None")
        if len(sizes) > 1:
            raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sorted(sizes)} for the mapped dimension")
        (size,) = sizes
        if chunk_size is None or chunk_size >= size:
            return _mapped(func, given, leaves, dims, size, out_dims, randomness)
        parts = []
        for start in range(0, size, chunk_size):
            length = min(chunk_size, size - start)
            some = [leaf if d is None else leaf.narrow(d, start, length) for leaf, d in zip(leaves, dims)]
            parts.append(_mapped(func, given, some, dims, length, out_dims, randomness))
        places = tree.broadcast(out_dims, parts[0], "vmap: out_dims")
        return tree.rebuild(parts[0], [ops.cat(list(column), place) for column, place in zip(zip(*map(tree.flatten, parts)), places)])

    return wrapper


def _check_in_dim(what: str, dim: Any, leaf: Any) -> None:
    """Raises ValueError where `dim` is no dimension of the input `leaf`; None fits every input."""
    if dim is None:
        return
    if not isinstance(dim, int):
        raise ValueError(f"{what}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"{what}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -leaf.dim() <= dim < leaf.dim():
        raise ValueError(
            f"{what}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.dim()} so expected in_dim to satisfy "
            f"-{leaf.dim()} <= in_dim < {leaf.dim()}."
        )


def _mapped(func: Callable, given: tuple, leaves: list, dims: list, size: int, out_dims: Any, randomness: str) -> Any:
    """One call of func for the whole batch: on tensors that look like one sample of it (batching/)."""
    name = getattr(func, "__name__", func)
    with Map(size, randomness) as running:
        samples = [leaf if d is None else batched(leaf.movedim(d, 0), running.level) for leaf, d in zip(leaves, dims)]  # [B, *]
        args, kwargs = tree.rebuild(given, samples)
        result = func(*args, **kwargs)
        if randomness == "error" and not ops.equal(running.state, get_rng_state()):
            set_rng_state(running.state)
            raise RuntimeError(ERROR_MODE)
        outputs = tree.flatten(result)
        for output in outputs:
            if not isinstance(output, Tensor):
                raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set out_dims= to None for output?")
        places = tree.broadcast(out_dims, result, "vmap: out_dims")
        joined = []
        for output, place in zip(outputs, places):
            of_batch = isinstance(output, Batched) and output.level == running.level
            if place is None:
                if of_batch:
                    raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
                joined.append(output)
            else:
                value = output.value if of_batch else output.expand(size, *output.shape)
                joined.append(value.movedim(0, place))
    return tree.rebuild(result, joined)


# ---- modules as functions: one is nn.utils.stateless's ----------------------------------------------------------


def stack_module_state(models: Sequence[Any]) -> tuple[dict, dict]:
    """(parameters, buffers) of modules of one class, each stacked along a new first dimension: what vmap takes to run them as an ensemble."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    stacked = {name: ops.stack([p[name].detach() for p in parameters]).requires_grad_(parameters[0][name].requires_grad) for name in parameters[0]}
    return stacked, {name: ops.stack([b[name] for b in buffers]) for name in buffers[0]}


__getattr__ = missing("torch.func")
