"""`torch.ao.quantization`: the marks where PyTorch would quantise a model. Until it is converted they are identities, and nothing is converted here.

Weights are quantised as blocks (docs/block_formats.md).
"""
from __future__ import annotations

from typing import Any

from ..nn.module import Module
from ..refused import missing
from ..tensor import Tensor


class QuantStub(Module):
    """Where tensors become quantised: the tensor itself in a model of floats."""

    def __init__(self, qconfig: Any = None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Tensor) -> Tensor:
        return x


class DeQuantStub(QuantStub):
    """Where tensors become floats again: the tensor itself in a model of floats."""


class QuantWrapper(Module):
    """A module between two such marks."""

    def __init__(self, module: Module):
        super().__init__()
        self.add_module("quant", QuantStub())
        self.add_module("dequant", DeQuantStub())
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Tensor) -> Tensor:
        return self.dequant(self.module(self.quant(X)))


__getattr__ = missing("torch.ao.quantization")
