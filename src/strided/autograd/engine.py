"""The backward engine: runs a graph from given gradients of its roots, without recursion.

A node runs when every node that uses its outputs has: the uses in the part of the graph at hand are counted first. Among the nodes that are ready, the one
made last goes first. Which operators a gradient is made of is the nodes' business; gradients are summed with `+` and `add_`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from heapq import heappop, heappush, heappushpop

from strided.autograd import anomaly
from strided.autograd.delivery import Waiting, accumulate, after, alone, before, conform, counted, deliver, leaf_hooks, untouched
from strided.autograd.graph import AccumulateGrad, Node, gradient_edge, requires_grad
from strided.autograd.modes import STATE
from strided.autograd.saved import RELEASED
from strided.dispatch import HOOKS, PlanCache, launch, launch_tensor
from strided.kernels.expr import param, trace
from strided.kernels.map import build_map
from strided.layout import Layout
from strided.tensor import Spec, Tensor, empty

# For those who watch training. BEFORE: called with the tensors of each pass that accumulates; what it returns, unless None, is called when the pass is over.
# LOOKS: called with (node, gradients it was given, gradients it gave) after each node, while what the node saved is still there.
BEFORE: list = []
LOOKS: list = []
# Of vmap: asked first by `grad` while maps go on; called with (outputs, inputs, grads, options), it returns the gradients, or None where they have nothing to do with a sample.
MAPPED: list = []

_SUM = trace(lambda held, grad: held + grad, 2)


def run_backward(tensors, grads, retain_graph=False, create_graph=False, inputs=None, accumulate=True) -> list | None:
    """Runs the graph of `tensors` (tensors or GradientEdges) from their gradients `grads`.

    inputs None: every leaf that is reached accumulates into `.grad`. Otherwise only paths to `inputs` are followed, and with `accumulate` their `.grad`
    is added to; without it, their gradients are returned, None where nothing arrived.
    """
    roots = []
    for tensor, grad in zip(tensors, grads):
        edge = tensor if isinstance(tensor, tuple) else gradient_edge(tensor)
        if edge is None:
            raise RuntimeError(f"element {len(roots)} of tensors does not require grad and does not have a grad_fn")
        roots.append((edge[0], edge[1], grad))
    this = _Run(roots, retain_graph)
    nodes = None
    if inputs is not None:
        this.restrict([_input_edge(x, accumulate) for x in inputs], accumulate)
    elif len(roots) == 1 and not (create_graph or anomaly.enabled):
        nodes = _chain(roots[0][0])
    state = STATE
    previous = state.grad_enabled, state.run, state.phase
    over = [hook(tensors) for hook in BEFORE] if BEFORE and accumulate else ()
    state.grad_enabled, state.run, state.phase = create_graph, this, "backward"
    try:
        if nodes is None:
            this.loop(roots)
        else:
            run_chain(nodes, roots.pop()[2], retain_graph)
    finally:
        state.grad_enabled, state.run, state.phase = previous
        for done in over:
            if done is not None:
                done()
    return None if inputs is None else this.results()


def _chain(node: Node) -> list[Node] | None:
    """The nodes from `node` on where each has one output and leads to one other at most, no leaf is reached twice and no hook sees anything; else None."""
    nodes, leaves = [], set()
    following: Node | None = node
    while following is not None:
        node = following
        if node.hooks is not None or type(node) is AccumulateGrad or type(node.specs) is tuple:
            return None
        nodes.append(node)
        following = None
        for edge in node.edges:
            if edge is None:
                continue
            if len(edge) == 3:
                target, _, leaf = edge
                if target.hooks is not None or leaf._hooks or leaf._post_hooks or target in leaves:
                    return None
                leaves.add(target)
            elif following is None:
                following = edge[0]
            else:
                return None
    return nodes


def run_chain(nodes: list[Node], grad, retain_graph: bool) -> None:
    """`_Run.loop` for what `_chain` gives: nothing has to wait for anything."""
    for node in nodes:
        edges = node.edges
        if grad is None and node.skips_undefined:
            results = (None,) * len(edges)
        else:
            if len(edges) == 2:
                node.needs = edges[0] is not None, edges[1] is not None
            elif len(edges) == 1:
                node.needs = _ALL_OF_ONE if edges[0] is not None else _NONE_OF_ONE
            else:
                node.needs = tuple([edge is not None for edge in edges])
            results = node.apply(grad)
            if type(results) is not tuple or len(results) != len(edges):
                results = counted(node, results)
        if LOOKS:
            for look in LOOKS:
                look(node, (grad,), results)
        if not retain_graph:
            if node.holds:
                node.release()
            elif node.saves or node.keeps:
                node.saves = RELEASED
        following = leaves = None
        for edge, grad in zip(edges, results):
            if edge is None or grad is None:
                continue
            if len(edge) == 2:
                if grad.spec is not edge[0].specs:
                    grad = conform(grad, edge[0].specs, node, edge)
                following = grad
            else:
                if grad.spec is not edge[2].spec:
                    grad = conform(grad, edge[2].spec, node, edge)
                if leaves is None:
                    leaves = [(edge[0], edge[2], [grad])]
                else:
                    leaves.append((edge[0], edge[2], [grad]))
        results = grad = None  # a gradient that nobody else holds may become .grad without a copy
        if leaves is not None:
            deliver(leaves)
        grad = following


def _input_edge(x, accumulate: bool):
    if isinstance(x, tuple):
        return x
    edge = gradient_edge(x)
    if edge is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False" if accumulate else "One of the differentiated Tensors does not require grad")
    if accumulate and x._node is not None:
        x.retain_grad()
    return edge


_ALL_OF_ONE, _NONE_OF_ONE = (True,), (False,)


class _Run:
    """One pass over a graph: the gradients on their way, and which nodes matter."""

    __slots__ = ("retain_graph", "buffers", "roots", "uses", "needed", "captures", "terminal", "wanted", "waiting", "__weakref__")

    def __init__(self, roots, retain_graph: bool):
        self.retain_graph = retain_graph
        self.buffers: dict[Node, list] = {}  # node -> gradient of each output, None where none has arrived
        self.roots = [root[0] for root in roots]
        self.uses: dict[Node, int] | None = None  # node -> uses of its outputs that have not delivered yet; counted when asked for
        self.needed: set[Node] | None = None  # nodes on a path to a wanted input; None: all
        self.captures: dict[Node, dict[int, object]] | None = None  # node -> {output number: its total gradient}
        self.terminal: set[Node] | None = None  # captured nodes that need not run themselves
        self.wanted = None
        self.waiting: dict[Node, Waiting] = {}  # node of a leaf -> what will give it a gradient

    def restrict(self, wanted: list, accumulate: bool) -> None:
        """Follow only paths from the roots to the wanted edges."""
        self.wanted, self.captures, self.terminal = wanted, {}, set()
        for node, number, *_ in wanted:
            if not (accumulate and type(node) is AccumulateGrad):
                self.captures.setdefault(node, {})[number] = None
        self.needed = {edge[0] for edge in wanted}
        for node in sorted(self.count(), key=lambda node: node.seq):  # a node is made after the nodes its inputs came from
            if any(edge is not None and edge[0] in self.needed for edge in node.edges):
                self.needed.add(node)
            elif node in self.captures:
                self.terminal.add(node)

    def count(self) -> dict[Node, int]:
        """How often the outputs of each reachable node are used by the others: a node is ready when as many gradients (or None) have come."""
        if self.uses is None:
            uses = self.uses = dict.fromkeys(self.roots, 0)
            stack = list(uses)
            while stack:
                for edge in stack.pop().edges:
                    if edge is not None:
                        node = edge[0]
                        if node in uses:
                            uses[node] += 1
                        else:
                            uses[node] = 1
                            stack.append(node)
        return self.uses

    def results(self) -> list:
        return [self.captures.get(edge[0], {}).get(edge[1]) for edge in self.wanted]

    def visits(self, node: Node) -> bool:
        """Whether this pass comes to the node."""
        return node in self.count() and (self.needed is None or node in self.needed)

    def put(self, node: Node, number: int, grad) -> None:
        """Adds a gradient to what has arrived for an output of a node."""
        slots = self.buffers.get(node)
        if slots is None:
            specs = node.specs
            slots = self.buffers[node] = [None] * len(specs) if type(specs) is tuple else [None]
        if grad is None:
            return
        held = [slots[number]]
        if held[0] is None:
            slots[number] = grad
            return
        slots[number] = None
        if grad.spec is held[0].spec and grad.spec.is_plain and not (HOOKS.active or STATE.grad_enabled) and untouched(held) and grad.mem.owner is None:
            spec = grad.spec
            plan = _sum_plans.get(spec)
            if plan is None:
                operand = spec.dtype, spec.layout
                plan = _sum_plans.put(spec, build_map(_SUM, [operand], [operand, operand]))
            launch(plan, held[0].ptr, held[0].ptr, grad.ptr)
            held[0].mem.version += 1
            slots[number] = held[0]
        elif STATE.grad_enabled or not (held[0].spec.layout.is_dense and held[0].mem.owner is None and alone(held)):
            slots[number] = held[0] + grad
        else:  # nobody else can see it
            slots[number] = held[0].add_(grad)

    def lent(self, node: Node, number: int):
        """What has arrived for an output of a node, if gradients may be added into it in place: nobody else can see it and grad mode is off. Else None."""
        slots = self.buffers.get(node)
        if slots is None or STATE.grad_enabled:
            return None
        held = [slots[number]]
        if held[0] is None:
            return None
        slots[number] = None
        unseen = held[0].spec.layout.is_dense and held[0].mem.owner is None and alone(held)
        slots[number] = held[0]
        return held[0] if unseen else None

    def wait(self, function, targets: tuple, most: int) -> Waiting | None:
        """Where gradients of these leaves (None among them is nobody) may be made together, as several come to each in this pass and nobody looks at single ones: what to add them to.

        `function(items)` gives a gradient for each of `targets`, when one of them wants its own, when `most` items have come, and before code of the user's runs.
        """
        uses = self.uses
        if uses is None or STATE.grad_enabled or LOOKS or anomaly.enabled or any([node is not None and (uses.get(node, 0) < 2 or node in self.waiting) for node in targets]):
            return None
        waiting = Waiting(function, targets, most)
        self.waiting.update({node: waiting for node in targets if node is not None})
        return waiting

    def settle(self, waiting: Waiting) -> None:
        """Makes the gradients that wait."""
        items, waiting.items = waiting.items, []
        if items:
            for node, grad in zip(waiting.targets, waiting.function(items)):
                if node is not None:
                    self.put(node, 0, grad)

    def loop(self, roots) -> None:
        uses, needed, buffers, captures, retain_graph, waiting = self.count(), self.needed, self.buffers, self.captures, self.retain_graph, self.waiting
        heap: list[tuple[int, Node]] = []  # ready nodes, the one made last first
        ready = None  # one more of them: while it is the only one, as in a chain, the heap is not needed
        for node, number, grad in roots:
            if needed is None or node in needed:
                self.put(node, number, grad)
                if not uses[node]:
                    uses[node] = -1  # in line: a node given twice as a root runs once
                    heappush(heap, (-node.seq, node))
        while True:
            if ready is None:
                if not heap:
                    return
                node = heappop(heap)[1]
            elif heap:
                node = heappushpop(heap, (-ready.seq, ready))[1]
            else:
                node = ready
            ready = None
            if waiting and node in waiting:
                self.settle(waiting.pop(node))
            grads = buffers.pop(node)
            if node.hooks is not None:
                grads = before(node, grads)
            if captures is not None and node in captures:
                self.capture(node, grads)
                if node in self.terminal:
                    continue
            if type(node) is AccumulateGrad:
                accumulate(node, grads)
                continue
            edges = node.edges
            if needed is not None:
                node.needs = [edge is not None and edge[0] in needed for edge in edges]
            elif len(edges) == 2:
                node.needs = edges[0] is not None, edges[1] is not None
            elif len(edges) == 1:
                node.needs = _ALL_OF_ONE if edges[0] is not None else _NONE_OF_ONE
            else:
                node.needs = [edge is not None for edge in edges]
            grad = grads[0]
            if grad is not None and len(grads) == 1 and node.hooks is None and not anomaly.enabled:  # `apply`, inline for the usual case
                results = node.apply(grad)
                if type(results) is not tuple or len(results) != len(edges):
                    results = counted(node, results)
                if LOOKS:
                    for look in LOOKS:
                        look(node, grads, results)
                if not retain_graph:  # `release`, likewise
                    if node.holds:
                        node.release()
                    elif node.saves or node.keeps:
                        node.saves = RELEASED
            else:
                results = self.apply(node, grads)
            grads = None
            leaves: list | None = None  # those that have their whole gradient now and whose order nobody can see
            for edge, grad in zip(edges, results):
                if edge is None:
                    continue
                target = edge[0]
                if needed is not None and target not in needed:
                    continue
                if len(edge) == 2:
                    specs = target.specs
                else:
                    leaf = edge[2]
                    specs = leaf.spec
                    if uses[target] == 1 and captures is None and target.hooks is None and not leaf._hooks and not leaf._post_hooks and target not in buffers:
                        if grad is not None:
                            if grad.spec is not specs:
                                grad = conform(grad, specs, node, edge)
                            if leaves is None:
                                leaves = [(target, leaf, [grad])]
                            else:
                                leaves.append((target, leaf, [grad]))
                        continue
                if type(specs) is tuple:
                    if grad is not None and grad.spec is not specs[edge[1]]:
                        grad = conform(grad, specs[edge[1]], node, edge)
                    self.put(target, edge[1], grad)
                else:
                    if grad is not None and grad.spec is not specs:
                        grad = conform(grad, specs, node, edge)
                    if target not in buffers:
                        buffers[target] = [grad]
                    elif grad is not None:
                        self.put(target, 0, grad)
                left = uses[target] = uses[target] - 1
                if not left:
                    if ready is None:
                        ready = target
                    else:
                        heappush(heap, (-target.seq, target))
            results = grad = None  # a gradient that only the buffers hold may become .grad without a copy
            if leaves is not None:
                deliver(leaves)

    def apply(self, node: Node, grads: list) -> tuple:
        """The node's gradients for its inputs, one an edge."""
        edges = node.edges
        if node.skips_undefined and (grads[0] is None if len(grads) == 1 else all(grad is None for grad in grads)):
            results = (None,) * len(edges)
        else:
            try:
                results = node.apply(*grads)
            except Exception:
                if anomaly.enabled:
                    anomaly.explain(node)
                raise
            if type(results) is not tuple or len(results) != len(edges):
                results = counted(node, results)
            if node.hooks is not None and node.hooks.post:
                results = after(node, results, grads)
            if anomaly.enabled and anomaly.check_nan:
                anomaly.check(node, results)
            for look in LOOKS:
                look(node, grads, results)
        if not self.retain_graph:
            node.release()
        return results

    def capture(self, node: Node, grads) -> None:
        numbers = self.captures[node]
        if type(node) is AccumulateGrad:
            grads = [leaf_hooks(node.variable, grads[0])]
        for number in numbers:
            numbers[number] = grads[number]


# ---- the public calls ---------------------------------------------------------------------------


def _sequence_of(value) -> tuple:
    """A tensor or a GradientEdge alone stands for a sequence of one."""
    if isinstance(value, Tensor) or hasattr(value, "output_nr"):
        return (value,)
    return tuple(value)


def make_grads(outputs: Sequence, grads: Sequence, batched: bool = False) -> list:
    """The gradients to start from: those given, checked against the outputs; 1 for a scalar where none is given."""
    made = []
    for number, (out, grad) in enumerate(zip(outputs, grads)):
        edge = out if isinstance(out, tuple) else None
        spec = out.spec if edge is None else edge[0].output_spec(edge[1])
        if isinstance(grad, Tensor):
            shape = grad.spec.shape[1:] if batched else grad.spec.shape
            if shape != spec.shape:
                raise RuntimeError(f"Mismatch in shape: grad_output[{number}] has a shape of {grad.spec.shape} and output[{number}] has a shape of {spec.shape}.")
            if grad.spec.dtype.is_complex != spec.dtype.is_complex:
                raise RuntimeError(
                    "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                    f"grad_output[{number}] has a dtype of {grad.spec.dtype} and output[{number}] has a dtype of {spec.dtype}."
                )
            made.append(grad)
        elif grad is not None:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        elif edge is None and not requires_grad(out):
            made.append(None)
        elif spec.numel != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        elif spec.dtype.is_floating_point:
            made.append(_one(spec))
        elif spec.dtype.is_complex:  # PyTorch has no answer: 1 is the one gradient that makes a complex result mean its real part
            warnings.warn(
                f"grad can be implicitly created only for real scalar outputs but got {spec.dtype}: the gradient is that of the real part. "
                "Call backward on result.real or result.abs(), or pass a gradient, to say which number is meant.", stacklevel=3,
            )  # fmt: skip
            made.append(empty(spec.shape, spec.dtype, spec.device).fill_(1))
        else:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {spec.dtype}")
    return made


_one_plans = PlanCache()
_sum_plans = PlanCache()  # of a gradient added into another, by their spec


def _one(spec: Spec) -> Tensor:
    """A fresh 1 of the kind of a one-element tensor: the gradient of a result with respect to itself."""
    if HOOKS.listeners or not spec.is_plain:
        return empty(spec.shape, spec.dtype, spec.device).fill_(1)
    found = _one_plans.get(spec)
    if found is None:
        target = spec.with_layout(Layout.contiguous(spec.shape))
        found = _one_plans.put(spec, (build_map(param(0), [(target.dtype, target.layout)], [("param", "f64")], result_bytes=target.nbytes), target))
    return launch_tensor(found[0], found[1], 1.0)


def backward_of(tensor: Tensor, retain_graph: bool, create_graph: bool) -> None:
    """`backward` of one tensor from the gradient 1, without anything that needs to be checked."""
    spec = tensor.spec
    plain = tensor._tracked and spec.numel == 1 and spec.dtype.is_floating_point
    run_backward((tensor,), (_one(spec),) if plain else make_grads((tensor,), (None,)), retain_graph, create_graph)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None) -> None:
    """Accumulates the gradients of `tensors` with respect to the graph's leaves into their `.grad`.

    tensors: a tensor or a sequence. grad_tensors: one gradient each, of its shape; may be left out for one-element tensors. retain_graph: keep saved
    tensors for a second pass (default: create_graph). create_graph: record the backward pass, for higher derivatives. inputs: accumulate only
    into these. Errors: RuntimeError for a tensor that requires no grad, for shapes that differ, for a graph already freed.
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    tensors = _sequence_of(tensors)
    if inputs is not None:
        inputs = _sequence_of(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    grads = (None,) * len(tensors) if grad_tensors is None else _sequence_of(grad_tensors)
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    grads = make_grads(tensors, grads)
    run_backward(tensors, grads, create_graph if retain_graph is None else retain_graph, create_graph, inputs)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None, is_grads_batched=False, materialize_grads=False) -> tuple:
    """The gradients of `outputs` with respect to `inputs`, as a tuple of tensors; `.grad` is left alone.

    grad_outputs: one gradient an output, of its shape (with is_grads_batched, a leading batch dimension more). allow_unused: None for an input that the
    outputs do not depend on, instead of an error; materialize_grads: zeros for it.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outputs, inputs = _sequence_of(outputs), _sequence_of(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grads = (None,) * len(outputs) if grad_outputs is None else _sequence_of(grad_outputs)
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    if is_grads_batched:
        return _batched_grad(outputs, inputs, make_grads(outputs, grads, batched=True), create_graph, allow_unused, materialize_grads)
    if MAPPED:
        options = {"create_graph": create_graph, "allow_unused": allow_unused, "materialize_grads": materialize_grads}
        found = MAPPED[-1](outputs, inputs, grads, options)
        if found is not None:
            return found
    grads = make_grads(outputs, grads)
    found = run_backward(outputs, grads, create_graph if retain_graph is None else retain_graph, create_graph, inputs, accumulate=False)
    for number, result in enumerate(found):
        if result is None and not allow_unused:
            raise RuntimeError(f"The differentiated Tensor at index {number} appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.")
        if result is None and materialize_grads:
            spec = inputs[number].spec
            found[number] = empty(spec.shape, spec.dtype, spec.device).zero_()
    return tuple(found)


def _batched_grad(outputs, inputs, grads, create_graph, allow_unused, materialize_grads) -> tuple:
    """One pass an entry of the batch, stacked: what vmap over the gradients would give."""
    batch = grads[0].spec.shape[0]
    rows = [grad(outputs, inputs, [g[row] for g in grads], True, create_graph, allow_unused=allow_unused, materialize_grads=materialize_grads) for row in range(batch)]
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows))


def stack(tensors: Sequence):
    """Tensors of one shape along a new first dimension."""
    spec = tensors[0].spec
    out = empty((len(tensors), *spec.shape), spec.dtype, spec.device)
    for row, tensor in enumerate(tensors):
        out[row] = tensor
    return out
