"""PyTorch's module database (`module_db`) run on both libraries: repr, state dict keys, forward results and every gradient.

    python tests/torch_compare/module_cases.py                          every module of the database, float32 and float64, about two minutes
    python tests/torch_compare/module_cases.py --modules nn.LSTM,nn.GRU only these
    python tests/torch_compare/module_cases.py --dtype float32          only this number format

A module is built on both sides from the same arguments, its parameters and buffers are copied from PyTorch's, and both draw their random
numbers from the same seed. Compared are: the repr, the keys of the state dict, results, gradients of all inputs and parameters, and the buffers
after the call. The samples of wrong input in the database are handed over as well. Operators are compared by test_families_torch.py.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import importlib
import sys
import traceback
import warnings
from collections import Counter

import torch
from error_inputs import Crossing, facts, first_line
from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

import strided

TOLERANCE = {torch.float32: (2e-5, 1e-5), torch.float64: (1e-9, 1e-10)}
# Sums over thousands of products in another order.
LOOSE = {"nn.Conv3d", "nn.ConvTranspose3d", "nn.Conv2d", "nn.ConvTranspose2d", "nn.LazyConv3d", "nn.LazyConvTranspose3d"}


class Translating(Crossing):
    """`Crossing`, for modules and functions of torch.nn among the arguments as well."""

    def __call__(self, value):
        if isinstance(value, torch.nn.Module):
            return counterpart_of(value)
        if callable(value) and getattr(torch.nn.functional, getattr(value, "__name__", ""), None) is value:
            return getattr(strided.nn.functional, value.__name__)
        if callable(value) and getattr(torch, getattr(value, "__name__", ""), None) is value:
            return getattr(strided, value.__name__)
        if isinstance(value, torch.nn.LinearCrossEntropyOptions):
            return strided.nn.LinearCrossEntropyOptions(**{f.name: self(getattr(value, f.name)) for f in dataclasses.fields(value)})
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            return strided.nn.utils.rnn.PackedSequence(*(None if part is None else self(part) for part in value))
        if isinstance(value, torch.Generator):
            raise NotImplementedError("generators do not cross")
        return super().__call__(value)


def counterpart_of(module):
    """A module of this library in the state of a torch module: its own attributes are copied, its children translated."""
    cls = getattr(importlib.import_module(type(module).__module__.replace("torch", "strided", 1)), type(module).__name__)
    ours = cls.__new__(cls)
    strided.nn.Module.__init__(ours)
    translate = Translating()
    for name, value in vars(module).items():
        if name not in vars(ours) or name == "training":
            object.__setattr__(ours, name, translate(value))
    for name, value in module._parameters.items():
        ours.register_parameter(name, None if value is None else strided.nn.Parameter(translate(value.detach().clone()), value.requires_grad))
    for name, value in module._buffers.items():
        ours.register_buffer(name, None if value is None else translate(value.clone()))
    for name, child in module._modules.items():
        ours.add_module(name, None if child is None else counterpart_of(child))
    return ours


def constructed(info, given, dtype):
    """(torch's module, ours), from one set of constructor arguments."""
    options = dict(given.kwargs)
    options.update(device="cpu", dtype=dtype)
    try:
        theirs = info.module_cls(*given.args, **options)
    except TypeError:  # a module without parameters takes no dtype
        options = dict(given.kwargs)
        theirs = info.module_cls(*given.args, **options)
    translate = Translating()
    cls = getattr(strided.nn, info.module_cls.__name__, None)
    if cls is None:
        raise AttributeError(f"no nn.{info.module_cls.__name__}")
    torch.manual_seed(1), strided.manual_seed(1)
    ours = cls(*translate(list(given.args)), **translate(options))
    return theirs, ours


def copy_state(theirs, ours):
    with torch.no_grad(), strided.no_grad():
        for (name, a), (other, b) in zip(theirs.state_dict().items(), ours.state_dict().items(), strict=True):
            assert name == other, f"state dict keys: {other} here, {name} there"
            assert tuple(a.shape) == tuple(b.shape), f"{name}: shape {tuple(b.shape)} here, {tuple(a.shape)} there"
            b.copy_(strided.from_numpy(a.detach().numpy().copy()))


def tensors_of(value):
    """The tensors of a result, in order."""
    if isinstance(value, (torch.Tensor, strided.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for part in value for t in tensors_of(part)] if isinstance(value, (list, tuple)) else []


def differ(what, a, b, rtol, atol):
    """Raises AssertionError unless our tensor a has PyTorch's values b, its shape and dtype."""
    if (a is None) != (b is None):
        raise AssertionError(f"{what}: {'nothing' if a is None else 'a tensor'} here, {'nothing' if b is None else 'a tensor'} there")
    if a is None:
        return
    assert tuple(a.shape) == tuple(b.shape), f"{what}: shape {tuple(a.shape)} here, {tuple(b.shape)} there"
    assert str(a.dtype) == str(b.dtype), f"{what}: {a.dtype} here, {b.dtype} there"
    try:
        torch.testing.assert_close(torch.from_numpy(a.detach().numpy().copy()), b.detach(), rtol=rtol, atol=atol, equal_nan=True)
    except AssertionError as error:
        raise AssertionError(f"{what}: {' '.join(str(error).split())[:300]}") from None


def as_leaves(value):
    """The same arguments with every tensor a leaf, so that gradients arrive at them."""
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return type(value)(value.data.detach().requires_grad_(value.data.requires_grad), *value[1:])
    if isinstance(value, torch.Tensor):
        return value if value.is_leaf else value.detach().requires_grad_()
    if isinstance(value, dict):
        return {key: as_leaves(part) for key, part in value.items()}
    return type(value)(map(as_leaves, value)) if isinstance(value, (list, tuple)) else value


def run(module, args, options, library):
    library.manual_seed(2)
    result = module(*args, **options)
    outs = [t for t in tensors_of(result) if t.requires_grad]
    if outs:
        library.manual_seed(3)  # the cotangents
        torch.manual_seed(3)
        weights = [torch.randn(tuple(t.shape), dtype=torch.float64).to(getattr(torch, str(t.dtype).rpartition(".")[2])) for t in outs]
        if library is strided:
            weights = [strided.from_numpy(w.numpy().copy()) for w in weights]
        library.autograd.backward(outs, weights)
    return result


def compare(info, sample, dtype, training):
    """Raises where the two libraries differ on a sample."""
    rtol, atol = TOLERANCE[dtype]
    if info.name in LOOSE and dtype == torch.float32:
        rtol, atol = 1e-4, 1e-4
    theirs, ours = constructed(info, sample.constructor_input, dtype)
    theirs.train(training), ours.train(training)
    assert repr(ours) == repr(theirs), f"repr: {ours!r} here, {theirs!r} there"
    given = sample.forward_input
    args, options = as_leaves(given.args), as_leaves(given.kwargs)
    if info.is_lazy:  # the first call gives the parameters their shapes
        assert list(ours.state_dict()) == list(theirs.state_dict())
        translate = Translating()
        theirs(*copy.deepcopy(args), **copy.deepcopy(options)), ours(*translate(list(args)), **translate(options))
        assert repr(ours) == repr(theirs), f"repr: {ours!r} here, {theirs!r} there"
    assert list(ours.state_dict()) == list(theirs.state_dict()), "state dict keys"
    copy_state(theirs, ours)
    translate = Translating()
    here, here_options = translate(list(args)), translate(options)
    try:
        expected = run(theirs, args, options, torch)
    except Exception as error:  # PyTorch refuses this sample: so must we
        with_ours = caught(run, ours, here, here_options, strided)
        assert type(with_ours) is type(error) and first_line(with_ours) == first_line(error), f"{with_ours!r} here, {error!r} there"
        return
    result = run(ours, here, here_options, strided)
    got, wanted = tensors_of(result), tensors_of(expected)
    assert type(result).__name__ == type(expected).__name__, f"result: {type(result).__name__} here, {type(expected).__name__} there"
    assert len(got) == len(wanted), f"{len(got)} results here, {len(wanted)} there"
    for i, (a, b) in enumerate(zip(got, wanted)):
        differ(f"result {i}", a, b, rtol, atol)
        assert a.stride() == b.stride(), f"result {i}: strides {a.stride()} here, {b.stride()} there"
        assert a.requires_grad == b.requires_grad, f"result {i}: requires_grad {a.requires_grad} here, {b.requires_grad} there"
    for i, (a, b) in enumerate(zip(tensors_of([here, here_options]), tensors_of([list(args), options]), strict=True)):
        differ(f"gradient of input {i}", a.grad, b.grad, 10 * rtol, 10 * atol)
    for (name, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        differ(f"gradient of {name}", a.grad, b.grad, 10 * rtol, 10 * atol)
    for (name, a), (_, b) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        differ(f"buffer {name}", a, b, rtol, atol)


def compare_error(info, sample, dtype):
    """Raises unless wrong input ends with PyTorch's exception type and all its numbers."""
    given = sample.module_error_input
    at_construction = sample.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR

    def outcome(library):
        translate = Translating() if library is strided else copy.deepcopy
        try:
            module = getattr(library.nn, info.module_cls.__name__)(*translate(list(given.constructor_input.args)), **translate(given.constructor_input.kwargs))
            if not at_construction:
                module(*translate(list(given.forward_input.args)), **translate(given.forward_input.kwargs))
        except Exception as error:
            return error
        return None

    got, expected = outcome(strided), outcome(torch)
    if expected is None:
        return
    assert type(got) is type(expected), f"{type(got).__name__}: {first_line(got)} here, {type(expected).__name__}: {first_line(expected)} there"
    assert facts(first_line(expected)) <= facts(str(got)), f"{first_line(got)} here, {first_line(expected)} there"


def infos(names=()):
    for info in module_db:
        if not names or info.name in names:
            yield info


def rows(names=(), dtypes=(torch.float32, torch.float64)):
    """(module's name, description, None or the exception) for every sample."""
    for info in infos(names):
        for dtype in dtypes:
            if dtype not in info.supported_dtypes("cpu"):
                continue
            for training in (True, False) if info.train_and_eval_differ else (True,):
                torch.manual_seed(0)
                for i, sample in enumerate(info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)):
                    if sample.forward_input is None:
                        continue
                    yield info.name, f"{i} {sample.desc} {dtype} {'training' if training else 'evaluating'}", caught(compare, info, sample, dtype, training)
            if info.module_error_inputs_func is not None:
                for i, sample in enumerate(info.module_error_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=True)):
                    yield info.name, f"wrong input {i} {dtype}", caught(compare_error, info, sample, dtype)


def caught(function, *args):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*args)
    except Exception as error:
        return error
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", default="")
    parser.add_argument("--dtype", default="float32,float64")
    parser.add_argument("--trace", action="store_true", help="print a traceback of each exception")
    given = parser.parse_args()
    count = Counter()
    for name, what, error in rows(set(filter(None, given.modules.split(","))), [getattr(torch, d) for d in given.dtype.split(",")]):
        kind = "wrong inputs" if what.startswith("wrong") else "inputs"
        count.update({kind: 1, f"equal {kind}": error is None})
        if error is not None:
            print(f"{name} {what}: {type(error).__name__}: {str(error)[:400]}")
            if given.trace:
                traceback.print_exception(error)
    for kind in ("inputs", "wrong inputs"):
        if count[kind]:
            print(f"{count[f'equal {kind}']} of {count[kind]} module {kind} = {100 * count[f'equal {kind}'] / count[kind]:.1f} %")
    return 0 if count["equal inputs"] >= 0.98 * count["inputs"] else 1


if __name__ == "__main__":
    sys.exit(main())
