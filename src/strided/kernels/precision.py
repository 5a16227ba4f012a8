"""What operands of float32 products are rounded to before they are multiplied: the mode, and how a kernel's name for its operands says it.

Products of rounded operands are exact in float32 (11 times 11 bits, 8 times 8), and sums are float32's: only the operands lose digits. Matrices in
memory stay as they are; the rounding happens where a kernel reads them. In mode "ieee" nothing is rounded and no kernel knows of the modes.
"""
from __future__ import annotations

from . import native

MODES = {"ieee": "", "tf32": "float32_tf32", "bf16": "float32_bf16"}  # mode: the kernels' name for float32 read that way
LEVELS = {"highest": "ieee", "high": "tf32", "medium": "bf16"}  # what set_float32_matmul_precision calls them
_state = {"mode": "ieee", "level": "highest"}


def mode() -> str:
    """The mode of this process's float32 products: "ieee", "tf32" or "bf16"."""
    return _state["mode"]


def level() -> str:
    """What set_float32_matmul_precision was given last (or the switches of CUDA, which share it, made of it)."""
    return _state["level"]


def set_level(name: str, here: bool = True) -> None:
    """Sets the level; with `here`, the mode that belongs to it, too."""
    if here:
        set_mode(LEVELS[name])
    _state["level"] = name


def set_mode(name: str) -> None:
    """Sets the mode. Plans carry how their operands are read: they are made anew."""
    if name not in MODES:
        raise RuntimeError(f"Unknown precision: {name}: choose {', '.join(map(repr, MODES))}")
    if name != _state["mode"]:
        _state["mode"] = name
        native.clear_plans()


def operand(name: str) -> str:
    """The kernels' name for an operand of a product: float32 under a mode that rounds it, all other dtypes their own."""
    return MODES[_state["mode"]] or name if name == "float32" else name
