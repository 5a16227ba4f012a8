"""Every name by which PyTorch takes an operator's arguments: the samples of its operator database, called by keyword, as functions, methods and in place, and with out=.

    python tests/torch_compare/keyword_cases.py                 every operator, about a minute
    python tests/torch_compare/keyword_cases.py --ops sum,cat   only these

The names come from PyTorch's own signatures (the overloads of `torch.ops.aten`, and Python's for what is written in Python), and NumPy's beside them (axis, keepdims).
A call that PyTorch refuses is left out; one that it takes must be taken here and give its shapes and dtypes. Values are test_families_torch.py's.
"""

from __future__ import annotations

import argparse
import inspect
import itertools
import sys
import warnings

import torch
from error_inputs import Crossing
from torch.testing._internal.common_methods_invocations import op_db

import strided

SAMPLES = 25  # looked at an operator
NUMPY = {"dim": "axis", "keepdim": "keepdims"}
# Left out: `a`, `x` and `x1` for the first operand of elementwise functions (and `x2` for the second) would cost every call; the others are PyTorch's internals.
LEFT_OUT = {"torch.nn.functional.triplet_margin_with_distance_loss", "torch.einsum"}
OUT_LEFT_OUT = {"torch.native_batch_norm", "torch.native_layer_norm"}


def at(library, name):
    """library.name, dots and all; None where it is absent."""
    for part in name.split("."):
        library = getattr(library, part, None)
    return library


def signatures(name, function):
    """Lists of argument names under which the function may be called."""
    found = []
    packet = getattr(torch.ops.aten, name.replace(".", "_"), None)
    for overload in packet.overloads() if packet is not None else ():
        found.append(["input" if a.name == "self" else a.name for a in getattr(packet, overload)._schema.arguments if not a.is_out])
    try:
        found.append(list(inspect.signature(function).parameters))
    except (TypeError, ValueError):
        pass
    for names in list(found):
        if NUMPY.keys() & set(names):
            found.append([NUMPY.get(name, name) for name in names])
    return [names for k, names in enumerate(found) if names not in found[:k] and "a" not in names]


def attempt(function, args, named):
    """(the result, None) or (None, the exception)."""
    try:
        return function(*args, **named), None
    except Exception as error:
        return None, error


def described(result):
    if isinstance(result, (tuple, list)):
        return [described(item) for item in result]
    return (str(result.dtype), tuple(result.shape)) if hasattr(result, "dtype") and hasattr(result, "shape") else type(result).__name__


def copied(values):
    return tuple(v.clone() if isinstance(v, torch.Tensor) else v for v in values)


def forms(op):
    """(what it is called, PyTorch's function, this library's, whether it is a method) for an entry and its other names."""
    for name in (op.name, *(alias.name for alias in op.aliases)):
        yield name, f"torch.{name}", at(torch, name), at(strided, name), False
        if "." not in name:
            for method in (name, name + "_") if op.inplace_variant is not None else (name,):
                yield name, f"Tensor.{method}", getattr(torch.Tensor, method, None), getattr(strided.Tensor, method, None), True


def cases(op):
    """(label, PyTorch's function, this library's, positional arguments, keyword arguments) of an entry, each set of names once."""
    dtype = next((d for d in (torch.float32, torch.int64, torch.bool, torch.complex64) if op.supports_dtype(d, "cpu")), None)
    if dtype is None:
        return
    seen = set()
    for sample in itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES):
        args = sample.input, *sample.args
        for name, label, reference, own, method in forms(op):
            if label in LEFT_OUT or not callable(reference) or own is None:
                continue
            for names in signatures(name, reference):
                if len(names) < len(args) or method and names[0] != "input":
                    continue
                named = dict(zip(names, args)) | {NUMPY[key] if NUMPY.get(key) in names else key: value for key, value in sample.kwargs.items()}
                first = (named.pop("input"),) if method else ()
                key = label, *sorted(named)
                if key in seen:
                    continue
                if attempt(reference, copied(first), named)[1] is None:
                    seen.add(key)
                    yield label, reference, own, first, named


def rows(op):
    """(label, names, what PyTorch gives, what comes out here) for each call of an entry that PyTorch takes."""
    tried = set()
    for label, reference, own, first, named in cases(op):
        expected = attempt(reference, copied(first), named)[0]
        cross = Crossing()
        result, error = attempt(own, cross(copied(first)), cross(named))
        yield label, sorted(named), described(expected), error or described(result)
        several = isinstance(expected, tuple)
        tensors = expected if several else (expected,)
        if first or label in tried or label in OUT_LEFT_OUT or "out" in named or not tensors or not all(isinstance(t, torch.Tensor) for t in tensors):
            continue
        outs = tuple(torch.empty(0, dtype=t.dtype) for t in tensors)
        if attempt(reference, (), named | {"out": outs if several else outs[0]})[1] is None:
            tried.add(label)
            outs = tuple(strided.empty(0, dtype=getattr(strided, str(t.dtype).rpartition(".")[2])) for t in tensors)
            error = attempt(own, (), Crossing()(named) | {"out": outs if several else outs[0]})[1]
            yield label, [*sorted(named), "out"], described(list(tensors)), error or described(list(outs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="")
    wanted = set(filter(None, parser.parse_args().ops.split(",")))
    warnings.simplefilter("ignore")
    calls = wrong = 0
    for op in op_db:
        if wanted and op.name not in wanted or op.name.startswith(("_", "sparse.", "ops.", "jiterator_", "torch.", "masked.")):
            continue
        for label, names, expected, got in rows(op):
            calls += 1
            if got != expected:
                wrong += 1
                text = f"{type(got).__name__}: {str(got).splitlines()[0]}" if isinstance(got, Exception) else got
                print(f"{label}({', '.join(names)})\n  torch {expected}\n  here  {text}", flush=True)
    print(f"{calls - wrong} of {calls} calls taken as by PyTorch")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
