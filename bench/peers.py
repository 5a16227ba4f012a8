"""The libraries that bench/all.py measures beside strided, each where it is installed: how it spells a row, and how its call is made to finish.

A peer is made in the process that measures, which may use as many cores as threads are measured (all.py sees to it). `available()` gives the peers and,
for those that are missing, the reason. Nothing is installed here.
"""
from __future__ import annotations

import importlib
import importlib.util
import shutil
from collections.abc import Callable
from typing import Any


class Peer:
    """One library: `call(row)` is the row's work in it as a call that has finished when it returns, or None where it has none."""

    name = ""
    version = ""

    def call(self, row) -> Callable[[], Any] | None:
        if row.operation is None:
            return None
        operation, shapes, settings = row.operation
        return self.operation(operation, shapes, settings)

    def operation(self, name: str, shapes, settings) -> Callable[[], Any] | None:
        raise NotImplementedError


class Torch(Peer):
    name = "torch"

    def __init__(self, threads: int):
        import torch

        torch.set_num_threads(threads)
        self.torch, self.version = torch, torch.__version__

    def call(self, row):
        return None if row.compiled else (row.theirs or row.make)(self.torch)


class TorchCompiled(Peer):
    """torch.compile: the rows that are about compiling, and with `everything` all others as well (some ten seconds of compiling each)."""

    name = "torch.compile"

    def __init__(self, threads: int, everything: bool = False):
        if not any(shutil.which(name) for name in ("c++", "g++", "clang++")):
            raise ImportError("it needs a C++ compiler")
        import torch

        torch.set_num_threads(threads)
        self.torch, self.version, self.everything = torch, torch.__version__, everything

    def call(self, row):
        if row.compiled:
            return row.make(self.torch)
        if self.everything and row.operation is not None:
            return self.torch.compile(row.make(self.torch))
        return None


def _arrays(shapes):
    import numpy as np

    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]


class NumPy(Peer):
    name = "numpy"

    def __init__(self, threads: int):
        import numpy

        self.np, self.version = numpy, numpy.__version__

    def operation(self, name, shapes, settings):
        np = self.np
        if name not in ("add", "mul", "exp", "matmul", "linear", "softmax"):
            return None
        x, *others = _arrays(shapes)
        y = others[0] if others else None

        def softmax():
            e = np.exp(x - x.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)

        return {"add": lambda: x + y, "mul": lambda: x * y, "exp": lambda: np.exp(x), "matmul": lambda: x @ y, "linear": lambda: x @ y.T, "softmax": softmax}[name]


class Jax(Peer):
    name = "jax"

    def __init__(self, threads: int):
        import jax

        self.jax, self.version = jax, jax.__version__

    def operation(self, name, shapes, settings):
        jax, np = self.jax, self.jax.numpy
        operands = [np.asarray(a) for a in _arrays(shapes)]

        def normal(x):
            return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

        def attend(q, k, v):  # [B, H, L, E] -> [B, L, H, E], as jax has it
            return jax.nn.dot_product_attention(*(t.transpose(0, 2, 1, 3) for t in (q, k, v)), is_causal=settings.get("causal", False))

        functions = {
            "add": np.add, "mul": np.multiply, "exp": np.exp, "gelu": lambda x: jax.nn.gelu(x, approximate=False), "silu": jax.nn.silu,
            "softmax": lambda x: jax.nn.softmax(x, -1), "layer_norm": normal, "rms_norm": lambda x: x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-7),
            "matmul": np.matmul, "linear": lambda x, w: x @ w.T, "attention": attend,
        }  # fmt: skip
        if name not in functions:
            return None
        run = jax.jit(functions[name])
        return lambda: run(*operands).block_until_ready()


class OnnxRuntime(Peer):
    """One node of an ONNX model a row, run on bound buffers as its users run it."""

    name = "onnxruntime"
    nodes = {"add": "Add", "mul": "Mul", "exp": "Exp", "gelu": "Gelu", "softmax": "Softmax", "layer_norm": "LayerNormalization", "rms_norm": "RMSNormalization", "matmul": "MatMul", "linear": "Gemm"}

    def __init__(self, threads: int):
        import onnx
        import onnxruntime

        self.onnx, self.runtime, self.threads, self.version = onnx, onnxruntime, threads, onnxruntime.__version__

    def operation(self, name, shapes, settings):
        if name not in self.nodes:
            return None
        helper, kind, arrays = self.onnx.helper, self.onnx.TensorProto.FLOAT, _arrays(shapes)
        n = shapes[0][-1]
        inputs, weights = [f"x{i}" for i in range(len(arrays))], {}
        if name in ("layer_norm", "rms_norm"):
            weights = dict(zip(("w", "b"), _arrays([(n,)] * (2 if name == "layer_norm" else 1))))
        attributes = {"axis": -1} if name in ("softmax", "layer_norm", "rms_norm") else {"transB": 1} if name == "linear" else {}
        node = helper.make_node(self.nodes[name], [*inputs, *weights], ["y"], **attributes)
        values = [helper.make_tensor_value_info(i, kind, a.shape) for i, a in zip(inputs, arrays)]
        constants = [self.onnx.numpy_helper.from_array(a, w) for w, a in weights.items()]
        graph = helper.make_graph([node], "row", values, [helper.make_tensor_value_info("y", kind, None)], constants)
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads = self.threads
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23 if name == "rms_norm" else 20)], ir_version=10)
        session = self.runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        fed = dict(zip(inputs, (self.runtime.OrtValue.ortvalue_from_numpy(a) for a in arrays)))
        return lambda: session.run_with_ort_values(["y"], fed)


class Tinygrad(Peer):
    name = "tinygrad"

    def __init__(self, threads: int):
        if shutil.which("clang") is None:
            raise ImportError("its CPU device needs clang")
        import tinygrad

        self.Tensor, self.jit = tinygrad.Tensor, tinygrad.TinyJit
        self.version = importlib.metadata.version("tinygrad")

    def operation(self, name, shapes, settings):
        Tensor = self.Tensor
        operands = [Tensor(a).realize() for a in _arrays(shapes)]
        functions = {
            "add": lambda x, y: x + y, "mul": lambda x, y: x * y, "exp": lambda x: x.exp(), "gelu": lambda x: x.gelu(), "silu": lambda x: x.silu(),
            "softmax": lambda x: x.softmax(-1), "layer_norm": lambda x: x.layernorm(), "matmul": lambda x, y: x @ y, "linear": lambda x, w: x @ w.T,
            "attention": lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=settings.get("causal", False)),
        }  # fmt: skip
        if name not in functions:
            return None
        run = self.jit(lambda *xs: functions[name](*xs).realize())
        return lambda: run(*operands)


PEERS = {p.name: p for p in (Torch, TorchCompiled, NumPy, Jax, OnnxRuntime, Tinygrad)}
NEEDS = {"torch": ("torch",), "torch.compile": ("torch",), "numpy": ("numpy",), "jax": ("jax",), "onnxruntime": ("onnxruntime", "onnx"), "tinygrad": ("tinygrad",)}


def available(threads: int, wanted=(), compile_everything: bool = False) -> tuple[list[Peer], dict[str, str]]:
    """The peers that are installed (of `wanted`, if given), and why the others are not here."""
    peers, missing = [], {}
    for name, kind in PEERS.items():
        if wanted and name not in wanted:
            continue
        absent = [module for module in NEEDS[name] if importlib.util.find_spec(module) is None]
        if absent:
            missing[name] = f"{' and '.join(absent)} not installed"
            continue
        try:
            peers.append(kind(threads, compile_everything) if kind is TorchCompiled else kind(threads))
        except Exception as error:  # a peer that is broken here is a line of the report, not the end of it
            missing[name] = f"{type(error).__name__}: {error}"
    if not wanted or "llama.cpp" in wanted:
        missing["llama.cpp"] = "has no call for a single row; its whole models are measured by its own llama-bench"
    return peers, missing
