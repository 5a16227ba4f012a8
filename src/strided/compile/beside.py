"""Derivatives computed beside the function: a gradient g·f'(x) whose x was kept for it alone becomes g·d, d = f'(x) being written where f(x) is computed.

So the forward kernel, which has x in registers and shares with f what is costly (an exponential, an error function), keeps d instead of x, and the gradient is
one multiplication. This file rewrites steps; joining them to their neighbours is fuse.py's.
"""
from __future__ import annotations

from ..kernels import expr as E
from ..kernels.map import build_map
from ..kernels.recipes import Recipe
from .fuse import Bits, Kernel, Operand, decode, substitute_params
from .program import Step, fresh, names


def beside(steps: list[Step], recipes: dict, lasting: set, steady, sizes: dict[tuple, int], told: list) -> list[Step]:
    """The steps with such gradients rewritten. recipes and sizes get entries for what is new, told the functions' lines; the other arguments are `fuse`'s."""
    users: dict[tuple, list[int]] = {}
    for number, step in enumerate(steps):
        for name in dict.fromkeys(names(step)):
            users.setdefault(name, []).append(number)
    steps = list(steps)
    for region, touching in users.items():
        if len(touching) != 3 or region[0] != "block" or region in lasting or not steady(region):
            continue
        _, first, last = touching
        function, gradient = decode(steps[first], recipes), decode(steps[last], recipes)
        if function is None or gradient is None or not (_plain(function, region, sizes) and _plain(gradient, region, sizes)):
            continue
        own = next(i for i, o in enumerate(gradient.ins) if o.in_memory and o.place[0] == region)
        found = _factor(gradient, own)
        if found is None or any(_is_map(steps[k], recipes) for k in users[function.outs[0].place[0]][1:2]):  # its result is computed in there: with two results it could not be
            continue
        other, factor = found
        kept = fresh(sizes)
        sizes[kept] = sizes[region]
        if steps[first].line is not None and steps[first].line not in told:
            told.append(steps[first].line)
        x = next(i for i, o in enumerate(function.ins) if o.in_memory and o.place[0] == region)
        written = Operand((kept, 0), function.ins[x].kind, function.ins[x].layout)
        factor = substitute_params(factor, {own: E.param(x)})
        steps[first] = _step(function._replace(exprs=(*function.exprs, factor), outs=(*function.outs, written)), recipes)
        ins = [o._replace(place=(kept, 0)) if i == own else o for i, o in enumerate(gradient.ins)]
        steps[last] = _step(gradient._replace(exprs=(E.param(other) * E.param(own),), ins=tuple(ins)), recipes)
    return steps


def _plain(kernel: Kernel, region, sizes) -> bool:
    """Whether it is a map with one result that reads the region, floats and nothing else in it, whole and once."""
    reads = [o for o in kernel.ins if o.in_memory and o.place[0] == region]
    if kernel.dims is not None or len(kernel.outs) != 1 or len(reads) != 1 or any(o.kind == "index" for o in kernel.ins):
        return False
    (o,), out = reads, kernel.outs[0]
    if type(o.kind) is Bits or o.kind.name not in ("float32", "float64") or out.kind is not o.kind or out.place[0] == region:
        return False
    return o.place[1] == 0 and o.layout.is_dense and o.layout.numel * o.kind.itemsize == sizes.get(region)


def _is_map(step: Step, recipes) -> bool:
    return decode(step, recipes) is not None


def _step(kernel: Kernel, recipes) -> Step:
    outs, ins = [(o.kind, o.layout) for o in kernel.outs], [(o.kind, o.layout) for o in kernel.ins]
    descriptor = build_map(kernel.exprs, outs, ins)
    recipes[descriptor] = Recipe(kernel.exprs, tuple(outs), tuple(ins), (None,) * len(ins), None)
    places = tuple(o.place for o in (*kernel.outs, *kernel.ins))
    return Step(descriptor, places, kernel.lines[0], tuple(o.place[0] for o in kernel.outs))


def _factor(kernel: Kernel, own: int):
    """(g, d) where the kernel's expression is input g times an expression d of input `own` alone that is costly; None where it is not."""
    expr = kernel.exprs[0]
    inputs = E.free_inputs(expr)
    others = [i for i in inputs if i != own]
    if own not in inputs or len(others) != 1 or kernel.ins[others[0]].kind is not kernel.ins[own].kind or kernel.ins[others[0]].place[0] == kernel.ins[own].place[0]:
        return None
    other = others[0]
    coefficients: dict = {}  # of the nodes that depend on g; None: one
    for node in E.topological((expr,)):
        if node.op == "param" and node.data == other:
            coefficients[node] = None
            continue
        inside = [a for a in node.args if a in coefficients]
        if not inside:
            continue
        if node.op == "mul" and len(inside) == 1:
            rest = node.args[1] if node.args[0] is inside[0] else node.args[0]
            coefficients[node] = rest if coefficients[inside[0]] is None else coefficients[inside[0]] * rest
        elif node.op == "cast" and node.data == kernel.ins[own].kind.name:
            coefficients[node] = coefficients[inside[0]]
        elif node.op in ("add", "sub") and len(inside) == 2:
            a, b = (E.constant(1.0) if coefficients[x] is None else coefficients[x] for x in node.args)
            coefficients[node] = a + b if node.op == "add" else a - b
        elif node.op == "neg":
            coefficients[node] = E.constant(-1.0) if coefficients[inside[0]] is None else -coefficients[inside[0]]
        else:
            return None
    factor = coefficients.get(expr)
    if factor is None or E.free_inputs(factor) != (own,) or not any(n.op in E.COSTLY for n in E.topological((factor,))):
        return None
    return other, factor
