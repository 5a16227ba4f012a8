"""`torch.utils.flop_counter`: the FLOPs of matrix products and convolutions, by module, as PyTorch counts them.

    with FlopCounterMode() as counter:
        model(x).sum().backward()
    counter.get_total_flops()

A multiply and an add count 1 each; nothing else counts (`strided annotate` counts all arithmetic). What PyTorch's counter does not know on the CPU is counted here
as on a GPU: fused attention, and the steps of an LSTM. Counting of one operator is autograd/products.py's work.
"""
from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import engine
from ..autograd.graph import next_sequence
from ..autograd.products import attention_backward_flops, attention_flops, convolution_backward_flops, convolution_flops, multiplies, products
from ..dispatch import CONTEXT, opened, positional, surround
from ..nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..refused import missing

__all__ = ["FlopCounterMode", "addmm_flop", "baddbmm_flop", "bmm_flop", "conv_flop_count", "convert_num_with_suffix", "mm_flop", "sdpa_backward_flop_count", "sdpa_flop_count"]

_SUFFIXES = ("", "K", "M", "B", "T")


class _Operator(str):
    """The name that PyTorch's counter tells an operator by, such as "aten.addmm"."""

    def __repr__(self) -> str:
        return str(self)


class FlopCounterMode:
    """Context manager that counts the FLOPs of all products inside, backward passes included.

    depth: how many levels of modules the table shows (None: all). display: print it at the end. What happens in a module's call, and in the backward pass of
    what it computed, counts for it and for those around it; everything counts for "Global". Compiled functions run operator by operator meanwhile.
    """

    def __init__(self, mods: Any = None, depth: int | None = 2, display: bool = True, custom_mapping: dict | None = None):
        if custom_mapping:
            raise NotImplementedError("FlopCounterMode: custom_mapping is not here, operators have no overloads to map; add the FLOPs of your own operators to get_total_flops()")
        if mods is not None:
            import warnings

            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[str, int]] = {}

    # ---- collecting -----------------------------------------------------------------------------------------------------------

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts = {}
        self._counts: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._names: dict[int, str] = {}
        self._modules: list[Any] = []  # kept alive, so that their ids stay their own
        self._path: list[str] = ["Global"]
        self._starts, self._paths = [0], [("Global",)]  # what recorded nodes with these and later numbers belong to
        self._waiting: list[tuple[str, int]] = []  # counted since the last node of a backward pass
        self._thread = threading.get_ident()
        self._around = surround(self._operator, eager=True)
        self._around.__enter__()
        self._handles = [register_module_forward_pre_hook(self._enter_module), register_module_forward_hook(self._leave_module, always_call=True)]
        engine.LOOKS.append(self._node)
        return self

    def __exit__(self, *error: object) -> None:
        engine.LOOKS.remove(self._node)
        for handle in self._handles:
            handle.remove()
        self._around.__exit__()
        self._settle(tuple(self._path))
        self.flop_counts = {name: dict(counts) for name, counts in self._counts.items()}
        if self.display:
            print(self.get_table(self.depth))

    def _operator(self, entry: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        if threading.get_ident() != self._thread:
            return function

        def counted(*args: Any, **kwargs: Any) -> Any:
            if not multiplies(entry):
                return opened(entry, function, args, kwargs)
            result = function(*args, **kwargs)
            found = products(entry, *positional(function, args, kwargs), result) or []
            self._waiting += [(_Operator(f"aten.{name}"), flops) for name, flops in found if name not in ("mv", "dot")]  # PyTorch counts neither
            if CONTEXT.phase != "backward":
                self._settle(tuple(self._path))
            return result

        counted.__wrapped__ = function  # type: ignore[attr-defined]
        return counted

    def _settle(self, path: tuple[str, ...]) -> None:
        for name, flops in self._waiting:
            for module in dict.fromkeys(path):
                self._counts[module][name] += flops
        self._waiting.clear()

    def _enter_module(self, module: Any, args: Any) -> None:
        if id(module) not in self._names:
            self._name(module, type(module).__name__)
        self._move([*self._path, self._names[id(module)]])

    def _leave_module(self, module: Any, args: Any, result: Any) -> None:
        if self._path[-1] == self._names.get(id(module)):
            self._move(self._path[:-1])

    def _name(self, module: Any, name: str) -> None:
        self._names[id(module)] = name
        self._modules.append(module)
        for key, child in module.named_children():
            if id(child) not in self._names:
                self._name(child, f"{name}.{key}")

    def _move(self, path: list[str]) -> None:
        self._path = path
        self._starts.append(next_sequence())
        self._paths.append(tuple(path))

    def _node(self, node: Any, grads: Any, results: Any) -> None:
        if self._waiting:
            self._settle(self._paths[bisect_right(self._starts, node.seq) - 1])

    # ---- what was found -------------------------------------------------------------------------------------------------------

    def get_total_flops(self) -> int:
        """FLOPs of everything that was counted."""
        return sum(self.get_flop_counts().get("Global", {}).values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """{module's name: {operator's name ("aten.mm"): FLOPs}}; "Global" has all."""
        return self.flop_counts or {"Global": {}}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text: a row a module, below it its operators."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        counts = self.get_flop_counts()
        rows: list[tuple[str, str, str]] = []

        def add(name: str, level: int) -> None:
            own = counts[name]
            rows.append((" " * level + name, *_told(sum(own.values()), total)))
            rows.extend((" " * level + f" - {operator}", *_told(flops, total)) for operator, flops in own.items())

        names = [name for name in sorted(counts) if name != "Global"]
        shown = not any(sum(counts[name].values()) == total for name in names)  # "Global" says nothing that a module around all does not
        if shown:
            add("Global", 0)
        for name in names:
            level = name.count(".") + 1
            if depth is None or level <= depth:
                add(name, level - 1 + shown)
        return _text(("Module", "FLOP", "% Total"), rows)


def _told(flops: int, total: int) -> tuple[str, str]:
    return convert_num_with_suffix(flops, get_suffix_str(total)), f"{flops / total:.2%}" if total else "0%"


def get_suffix_str(number: int) -> str:
    """The largest unit in which a number has at least one digit: "", "K", "M", "B" or "T"."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """1234567 in "M" is "1.235M"."""
    return f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}{suffix}"


def _text(titles: tuple[str, str, str], rows: Sequence[tuple[str, str, str]]) -> str:
    widths = [max(len(row[k]) for row in (titles, *rows)) for k in range(3)]
    lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in (titles, *rows)]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


# ---- formulas over shapes -----------------------------------------------------------------------------------------------------


def mm_flop(a_shape: Sequence[int], b_shape: Sequence[int], *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """[m, k] by [k, n]."""
    return 2 * math.prod(a_shape) * b_shape[-1]


def addmm_flop(self_shape: Sequence[int], a_shape: Sequence[int], b_shape: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """`mm_flop`: what is added counts nothing."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape: Sequence[int], b_shape: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """[b, m, k] by [b, k, n]."""
    return 2 * math.prod(a_shape) * b_shape[-1]


def baddbmm_flop(self_shape: Sequence[int], a_shape: Sequence[int], b_shape: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """`bmm_flop`: what is added counts nothing."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Sequence[int], w_shape: Sequence[int], out_shape: Sequence[int], transposed: bool = False) -> int:
    """A convolution of [N, C, S..] with [F, C/groups, K..] → [N, F, O..], or its transpose."""
    return convolution_flops(x_shape, w_shape, out_shape, transposed)


def conv_backward_flop_count(grad_out_shape: Sequence[int], x_shape: Sequence[int], w_shape: Sequence[int], output_mask: Sequence[bool] = (True, True), transposed: bool = False) -> int:
    """Its gradients for input and weight, those that output_mask asks for."""
    return convolution_backward_flops(grad_out_shape, x_shape, w_shape, output_mask, transposed)


def sdpa_flop_count(query_shape: Sequence[int], key_shape: Sequence[int], value_shape: Sequence[int]) -> int:
    """Attention over [b, h, L, E], [b, h, S, E] and [b, h, S, V]: two products."""
    return attention_flops(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Sequence[int], query_shape: Sequence[int], key_shape: Sequence[int], value_shape: Sequence[int]) -> int:
    """Its gradient: five products, as the scores are computed again."""
    return attention_backward_flops(query_shape, key_shape, value_shape)


__getattr__ = missing("torch.utils.flop_counter")
