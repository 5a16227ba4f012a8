"""A program's call as one generated function: what the recording has answered is neither asked nor looped over again.

`forward` and `backward` serve the usual kinds of program; what they give None for goes the general way (function.py, gradients.py).
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autograd import anomaly
from ..autograd.graph import accumulator, gradient_edge, next_sequence
from ..kernels.native import new_storage, read_flag, replay
from ..kernels.native_objects import new
from ..ops import indexing
from ..ops.generator import default_generator
from ..tensor import Tensor
from .results import Place, again_from, copied, laid_out, random_state, rebuilt, share_memory, window

if TYPE_CHECKING:
    from .function import Entry

FIRST_TENSOR = 3  # the bases in front: fault words, the generator's state (and, unnumbered, the arena)


class _Text:
    """A function's text, and the objects that its names stand for."""

    def __init__(self, head: str):
        self.lines, self.indent = [head], "    "
        self.names: dict[str, Any] = {"new": new, "Tensor": Tensor, "new_storage": new_storage, "replay": replay}

    def do(self, line: str) -> None:
        self.lines.append(self.indent + line)

    def name(self, value) -> str:
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def run(self, program, bases: dict[int, str], storages: dict[int, str], otherwise: str, numbers: str = "") -> None:
        """Replays the program. bases: expressions of the addresses that it uses; storages: variables of those that it makes or is given. otherwise: what to do
        where a check fails. numbers: the program's, unpacked."""
        if 1 in program.used:
            self.names["error"] = indexing._error
            bases[1] = "error.address"
        if 2 in program.used:
            bases[2] = "generator.address"
        pack = self.name(program.format.pack)
        for number, stage in enumerate(program.stages):
            for base, nbytes in stage.makes:
                name = storages.get(base, f"arena{base}")
                self.do(f"{name} = new_storage({nbytes})")
                bases[base] = f"{name}.data"
            addresses = [bases.get(b, "0") if b in program.used else "0" for b in range(program.bases)]
            self.do(f"bases = {pack}({', '.join(addresses)}{numbers})")
            self.do(f"replay({self.name(stage.code)}, bases)")
            if number == program.checked:
                for base, offset in program.flags:
                    self.do(f"if {self.name(read_flag)}({addresses[base]} + {offset}):")
                    self.do(f"    {otherwise}")
                if 1 in program.used:
                    self.do("words = error.words")
                    self.do("if words[0]:")
                    self.do("    words[0] = words[1] = 0")
                    self.do(f"    {otherwise}")
            for base in stage.drops:
                self.do(f"{storages.get(base, f'arena{base}')} = None")
                del bases[base]

    def wrap(self, name: str, spec, storage: str, offset: int, start: str = "") -> None:
        """A fresh tensor in a storage, `offset` bytes behind its start, or behind `start`."""
        address = (start or f"{storage}.data") + (f" + {offset}" if offset else "")
        self.do(f"{name} = new(Tensor)")
        self.do(f"{name}.spec = {self.name(spec)}; {name}.mem = {storage}; {name}.ptr = {address}")

    def made(self, name: str):
        exec("\n".join(self.lines), self.names)
        return self.names[name]


def forward(entry: Entry):
    """`call(again, leaves, numbers)`: a replayed call's result; None where the general way is needed. again: what makes the call once more."""
    program = entry.forward
    if any(not o.spec.numel for o in entry.fresh) or any(not entry.spans[place] for place in entry.early):
        return None
    from .gradients import CompiledFunctionBackward0

    text = _Text("def call(again, leaves, numbers):")
    names = [f"x{place}" for place in range(entry.leaves)]
    if names:
        text.do(f"[{', '.join(names)}] = leaves")
    names += [text.name(t) for t in entry.snapshot.tensors]
    for k, (place, _) in enumerate(entry.given):
        text.do(f"e{k} = {names[place]}._grad")
    names += [f"e{k}" for k in range(len(entry.given))]
    storages = {name: f"m{k}" for k, name in enumerate(entry.result_blocks)}
    otherwise = original = "return again[0](*again[1], **again[2])"
    if entry.written:  # what it writes may be what it reads under another name: asked anew where a tensor has moved
        text.do(f"places = ({''.join(f'{name}.ptr, ' for name in names)})")
        apart = text.name([()])
        text.do(f"if places != {apart}[0]:")
        text.do(f"    if {text.name(share_memory)}([{', '.join(names)}], {text.name(entry.spans)}):")
        text.do(f"        {original}")
        text.do(f"    {apart}[0] = places")
    for place, _ in entry.made:
        if entry.had[place]:  # it was dropped in the recorded call: its memory serves the next one
            text.do(f"{names[place]}._grad = None")
    state, drawn = "None", entry.random and bool(entry.differentiable or entry.checked)  # drawn: a call that is made again has to draw the same numbers
    if entry.random:
        text.names["generator"] = default_generator
        if drawn:
            text.names["random_state"], state = random_state, "again[3]"
            text.do("again = (*again[:3], random_state())")
    if entry.checked and (entry.early or drawn):
        copies = []
        for place in entry.early:
            x, nbytes = names[place], entry.spans[place]
            text.do(f"s{place} = {text.name(copied)}({x}.ptr, {nbytes})")
            copies.append(f"({x}.ptr, s{place}, {nbytes})")
        otherwise = f"return {text.name(again_from)}(again, [{', '.join(copies)}], {state})"
    bases = dict(enumerate([f"{name}.ptr" for name in names], FIRST_TENSOR))
    kept = [f"k{k}" for k in range(len(entry.kept))]
    numbered = dict(enumerate([*storages.values(), *kept], FIRST_TENSOR + len(names)))
    numbers = ", *numbers" if entry.updates else ""
    if entry.random:  # nobody else draws meanwhile
        text.do("bad = True")
        text.do("with generator.lock:")
        text.do("    while True:")
        text.indent = " " * 12
        text.run(program, bases, numbered, "break", numbers)
        text.do("bad = False")
        text.do("break")
        text.indent = " " * 4
        text.do("if bad:")
        text.do(f"    {otherwise}")
    else:
        text.run(program, bases, numbered, otherwise, numbers)
    for place, raised in entry.written:
        text.do(f"{names[place]}.mem.version += {raised}")
    for place, o in entry.made:
        if o is not None:
            if o.region[0] == "tensor":
                given = names[o.region[1]]
                text.wrap("grad", o.spec, f"{given}.mem", o.offset, f"{given}.ptr")
            else:
                text.wrap("grad", o.spec, storages[o.region], o.offset)
        text.do(f"{names[place]}._grad = {'None' if o is None else 'grad'}")
    for k, o in enumerate(entry.fresh):
        text.wrap(f"o{k}", o.spec, storages[o.region], o.offset)
        if o.inference:
            text.do(f"o{k}._inference = True")
    if entry.differentiable or entry.spent:
        _node(text, entry, names, list(storages.values()), CompiledFunctionBackward0)
    fresh = iter(range(len(entry.fresh)))
    results = [f"o{next(fresh)}" if o.fresh else names[o.region[1]] for o in entry.outputs]
    results = [r if o.fresh or o.spec is None else f"{text.name(window)}({r}, {text.name(o)})" for r, o in zip(results, entry.outputs)]
    if type(entry.shape) is Place:
        text.do(f"return {results[entry.shape.number]}")
    else:
        text.do(f"return {text.name(rebuilt)}({text.name(entry.shape)}, [{', '.join(results)}])")
    return text.made("call")


def _node(text: _Text, entry: Entry, names, storages, node_class) -> None:
    """What `Entry.hand_out` does with `record`."""
    backward = entry.backward
    tracked = [k for k, o in enumerate(entry.fresh) if o.tracked]
    numbers = {k: number for number, k in enumerate(tracked)}
    specs = tuple([entry.fresh[k].spec for k in tracked])
    for label, value in (("accumulator", accumulator), ("gradient_edge", gradient_edge), ("next_sequence", next_sequence), ("anomaly", anomaly)):
        text.names[label] = value
    text.do(f"node = new({text.name(node_class)})")
    edges = []
    for place in entry.used_up if entry.spent else entry.differentiable:
        x = names[place]
        edges.append(f"({x}._accumulator or accumulator({x}), 0, {x}) if {x}._node is None and {x}._base is None else gradient_edge({x})")
    text.do(f"node.edges = [{', '.join(edges)}]")
    saves = []
    if backward is not None:
        saves = [f"({names[p]}, {names[p]}.mem.version, {names[p]}._node)" for p in backward.reads]
        for p in backward.reads_results:
            o = f"o{p}"
            saves.append(f"(None, {o}.mem.version, {numbers[p]}, {o}.spec, {o}.mem, {o}.ptr)" if p in numbers else f"({o}, {o}.mem.version, {o}._node)")
    text.do(f"node.saves = [{', '.join(saves)}]")
    text.do("node.seq = next_sequence()")
    text.do(f"node.specs = {text.name(specs)}")
    text.do("if anomaly.enabled:")
    text.do("    anomaly.remember(node)")
    text.do(f"node.entry = {text.name(entry)}")
    if entry.spent:
        text.do("node.external = None")
    else:
        kept = ", ".join(f"k{k}" for k in range(len(entry.kept)))
        text.do(f"node.first = None; node.again = again; node.kept = [{kept}]")
        text.do(f"node.external = [{', '.join(names)}]; node.results = [{', '.join(storages)}]")
        text.do(f"node.versions = [{', '.join(f'{name}.mem.version' for name in names)}]")
    for k, number in numbers.items():
        if entry.fresh[k].spec.dtype.is_floating_point or entry.fresh[k].spec.dtype.is_complex:
            text.do(f"o{k}._node = node; o{k}._nr = {number}; o{k}._tracked = True")


def backward(entry: Entry):
    """`call(node, grads)`: the gradients, or None where these grads, or a changed tensor, need the general way; None where every call does."""
    back = entry.backward
    assert back is not None
    program = back.program
    if 2 in program.used or any(o is not None and o.spec is not None and not o.spec.numel for o in back.results):
        return None
    text = _Text("def call(node, grads):")
    grads = [f"g{k}" for k in range(len(back.pattern))]
    text.do(f"[{', '.join(grads)}] = grads")
    text.do(f"if {' or '.join(f'{g} is not None' if spec is None else f'{g} is None' for g, spec in zip(grads, back.pattern))}:")
    text.do("    return None")
    if back.reads or back.reads_results:
        text.do("saves = node.saves")
        for place in range(len(back.reads)):
            text.do(f"if (entry := saves[{place}])[0].mem.version != entry[1]:")
            text.do("    return None")
        for place, number in enumerate(back.reads_results, len(back.reads)):
            storage = "[4]" if entry.fresh[number].tracked else "[0].mem"  # see saved.py: results are kept without themselves
            text.do(f"if (entry := saves[{place}]){storage}.version != entry[1]:")
            text.do("    return None")
    for g, spec in zip(grads, back.pattern):
        if spec is not None:  # with other strides than the recorded one had
            text.do(f"if {g}.spec is not {text.name(spec)}:")
            text.do(f"    {g} = {text.name(laid_out)}({g}, {text.name(spec)})")
    count = entry.count
    text.do("external, results = node.external, node.results")
    kept = [f"k{k}" for k in range(len(entry.kept))]
    if kept:
        text.do(f"[{', '.join(kept)}] = node.take()")
    bases = [f"external[{k}].ptr" for k in range(count)] + [f"results[{k}].data" for k in range(len(entry.result_blocks))]
    bases += [f"{k}.data" for k in kept] + [f"{g}.ptr" for g in grads]
    storages = {**dict(enumerate(kept, FIRST_TENSOR + count + len(entry.result_blocks))), **{base: f"m{base}" for base in back.made}}
    text.run(program, dict(enumerate(bases, FIRST_TENSOR)), storages, "return node.recompute(grads)")
    own = {name: f"results[{k}]" for k, name in enumerate(entry.result_blocks)}
    found = []
    for k, o in enumerate(back.results):
        if o is None:
            found.append("None")
        elif o.region[0] == "grad" and o.spec is None:
            found.append(grads[o.region[1]])
        elif o.region[0] == "grad":
            g = grads[o.region[1]]
            text.do(f"r{k} = new(Tensor)")
            text.do(f"r{k}.spec = {text.name(o.spec)}; r{k}.mem = {g}.mem; r{k}.ptr = {g}.ptr + {o.offset}")
            found.append(f"r{k}")
        else:
            base, offset = back.places.get(o.region, (0, 0))
            text.wrap(f"r{k}", o.spec, own.get(o.region) or storages[base], o.offset + offset)  # of the call's result; made here or kept by the forward pass
            found.append(f"r{k}")
    text.do(f"return ({', '.join(found)}{',' if found else ''})")
    return text.made("call")
