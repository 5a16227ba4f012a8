"""Row folds over images [N, C, S..] with one number a channel beside them, in whatever order the image lies: what batch, group and instance norm are made of.

Holds `ChannelFold`, its plans and results; the expressions are normalization.py's, the kernel is kernels/fold.py's.
"""
from __future__ import annotations

from ... import errors
from ...dispatch import PlanCache, meta_storage
from ...formats import suggested
from ...kernels import expr as E
from ...kernels.fold import plan_fold
from ...kernels.native import new_storage
from ...layout import Layout
from ...ops.folding import check_dtype
from ...tensor import Spec, Tensor, wrap

_SCALAR = {float: ("param", "f64"), int: ("param", "i64")}


class ChannelFold:
    """Expressions with reductions over an image and numbers of its channels, one an output.

    ins, outs: what each operand and result is: "x" like the image, "c" one element a channel, "p" one a channel of a sample, "g" one a group of a sample, "n" a
    number (operands may be numbers anyway). over: what is folded: "channel" all elements of a channel, "place" those of one sample, "group" those of a group of
    channels of a sample. like: the operand whose memory format results like the image have.
    """

    def __init__(self, name: str, function, ins: str, outs: str, over: str, like: int = 0):
        self.name, self.ins, self.outs, self.over, self.like = name, ins.split(), outs.split(), over, like
        exprs = E.trace(function, len(self.ins))
        self.exprs = exprs if isinstance(exprs, tuple) else (exprs,)
        self.flops = sum(map(E.flops, self.exprs))
        self.plans = PlanCache()

    def __call__(self, operands: tuple, dtypes: tuple, groups: int = 1, into: tuple = ()) -> list[Tensor]:
        """The outputs, unrecorded; dtypes: one an output; the last outputs are written `into` these tensors instead."""
        key = (groups, dtypes, *[o.spec if isinstance(o, Tensor) else type(o) for o in operands], *[t.spec for t in into])
        found = self.plans.get(key)
        if found is None:
            found = self.plans.put(key, self._plan(operands, dtypes, groups, into))
        plan, specs = found
        results = []
        for spec in specs:
            memory = new_storage(spec.nbytes) if plan is not None else meta_storage(spec)
            results.append(wrap(spec, memory, memory.data))
        if plan is not None:
            plan.launch(*[t.ptr for t in results], *[t.ptr for t in into], *[o.ptr if isinstance(o, Tensor) else o for o in operands])
            for t in into:
                t.mem.version += 1
        return results

    def _plan(self, operands, dtypes, groups, into):
        tensors = [o for o in operands if isinstance(o, Tensor)]
        device = errors.check_devices(self.name, tensors)
        check_dtype(self.name, *tensors)
        image = operands[self.like].spec.layout
        batch, channels, *space = image.shape
        ones = (1,) * len(space)
        split = lambda layout: layout.split_dim(1, (groups, channels // groups))  # [N, G, C/G, S..]
        dims = {"channel": (0, *range(3, 3 + len(space))), "place": tuple(range(3, 3 + len(space))), "group": tuple(range(2, 3 + len(space)))}[self.over]
        whole = split(image).shape
        given = {
            "x": split,
            "c": lambda layout: split(Layout.of((1, channels, *ones), (0, *layout.strides, *(0,) * len(space)))),
            "p": lambda layout: split(Layout.of((batch, channels, *ones), (channels, 1, *(0,) * len(space)))),
            "g": lambda layout: Layout.of((batch, groups, 1, *ones), (groups, 1, 0, *(0,) * len(space))),
        }
        fresh = {"x": suggested(image).layout(image.shape), "c": Layout.contiguous((channels,)), "p": Layout.contiguous((batch, channels)), "g": Layout.contiguous((batch, groups))}
        specs = [Spec.of(fresh[kind], dtype, device) for kind, dtype in zip(self.outs, dtypes)]
        outs = [(spec.dtype, given[kind](spec.layout)) for kind, spec in zip(self.outs, [*specs, *[t.spec for t in into]])]
        if device.type == "meta":
            return None, specs
        ins = [(o.dtype, given[kind](o.spec.layout).expand(whole)) if isinstance(o, Tensor) else _SCALAR[type(o)] for kind, o in zip(self.ins, operands)]
        return plan_fold(self.exprs, dims, outs, ins, result_bytes=specs[0].nbytes), specs
