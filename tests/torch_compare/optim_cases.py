"""PyTorch's optimiser database (`optim_db`) run on both libraries: parameters after 20 steps, states, and wrong input.

    python tests/torch_compare/optim_cases.py                        every optimiser, float64, about a minute
    python tests/torch_compare/optim_cases.py --optims Adam,LBFGS    only these

Each of an optimiser's inputs is also run with foreach, fused, differentiable, maximize and capturable where PyTorch accepts them. Twenty steps are taken
on a small network in float64 on both sides: parameters must agree within 1e-6 relative, and so must every tensor of the state. After half of the steps
the state dicts change sides through PyTorch's file format and back. Schedules are compared in test_optim_torch.py.
"""

from __future__ import annotations

import argparse
import copy
import io
import sys
import warnings
from collections import Counter

import torch
from error_inputs import Crossing, first_line
from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

import strided
import strided.optim

STEPS, TOLERANCE = 20, 1e-6
LOOSE = {"Muon": 2e-2}  # its matrix products run in bfloat16, and each library adds them up in its own order


def options_of(info):
    """(description, keyword arguments) of every input, with every way of stepping that PyTorch takes."""
    for given in info.optim_inputs_func(device="cpu", dtype=torch.float64):
        yield given.desc, given.kwargs
        for flag in ("foreach", "fused", "differentiable"):
            tensor_rate = isinstance(given.kwargs.get("lr"), torch.Tensor) or isinstance(given.kwargs.get("betas", (0,))[0], torch.Tensor)
            if flag in info.supported_impls and not (flag == "foreach" and tensor_rate) and flag not in given.kwargs:
                yield f"{given.desc} {flag}", {**given.kwargs, flag: True}


def train(library, info, kwargs, exchange):
    """[parameters after the steps], state dict. `exchange(state dict)` stands half-way."""
    torch.manual_seed(0)
    name = info.optim_cls.__name__
    shapes = [(5, 4), (4, 3), (3, 2)] if name == "Muon" else [(5, 4), (4,), (4, 3), (3,), ()]
    values = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    x = torch.randn(8, 5, dtype=torch.float64)
    if library is strided:
        values, x = [strided.from_numpy(v.numpy().copy()) for v in values], strided.from_numpy(x.numpy().copy())
        kwargs = Crossing()(kwargs)
    kwargs = copy.deepcopy(kwargs)
    parameters = [v.requires_grad_() for v in values]
    differentiable = kwargs.get("differentiable")
    given = [p.clone() for p in parameters] if differentiable else parameters
    if differentiable:
        for p in given:
            p.retain_grad()

    def closure():
        w = [p.clone() for p in given] if differentiable else given  # what a product keeps for its gradient must not be written over
        if name == "Muon":
            loss = ((x @ w[0]).tanh() @ w[1] @ w[2]).pow(2).mean()
        else:
            loss = ((x @ w[0] + w[1]).tanh() @ w[2] + w[3] - w[4]).pow(2).mean()
        loss = loss + sum((p * p).sum() for p in w) / 4  # a well-conditioned minimum: otherwise L-BFGS enlarges the last bits' differences
        grads = library.autograd.grad(loss, given, create_graph=bool(differentiable))
        for p, g in zip(given, grads):
            p.grad = g
        return loss

    optimizer = getattr(library.optim, name)(given, **kwargs)
    for i in range(STEPS):
        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        if i == STEPS // 2 and not differentiable:
            state = exchange(optimizer.state_dict())
            optimizer = getattr(library.optim, name)(given, **kwargs)
            optimizer.load_state_dict(state)
    result = list(given)
    if differentiable:  # the last parameters depend on the first ones through all the steps
        try:
            result += library.autograd.grad(sum(p.sum() for p in given), parameters, allow_unused=True)
        except RuntimeError:  # PyTorch's Adamax, Rprop and centered RMSprop write over what their own gradient needs
            assert library is torch
    return result, optimizer.state_dict()


def through_file(writer, reader):
    """A state dict written by one library, read by the other, and brought back."""

    def exchange(state):
        first, second = io.BytesIO(), io.BytesIO()
        writer.save(state, first)
        reader.save(reader.load(io.BytesIO(first.getvalue()), weights_only=True), second)
        return writer.load(io.BytesIO(second.getvalue()), weights_only=True)

    return exchange


def differ(what, a, b, tolerance):
    a, b = (None if t is None else torch.from_numpy(t.detach().numpy().copy()) if isinstance(t, strided.Tensor) else t.detach() for t in (a, b))
    assert (a is None) == (b is None), f"{what}: {a} here, {b} there"
    if a is None:
        return
    assert a.shape == b.shape and a.dtype == b.dtype, f"{what}: {a.shape} {a.dtype} here, {b.shape} {b.dtype} there"
    error = ((a - b).abs() / b.abs().clamp(min=1e-3)).max().item() if a.numel() else 0.0
    assert error <= tolerance, f"{what}: relative difference {error:.2e}"


def same_state(name, a, b, tolerance):
    if isinstance(b, (list, tuple)):
        assert len(a) == len(b), f"state {name}: {len(a)} entries here, {len(b)} there"
        for x, y in zip(a, b):
            same_state(name, x, y, tolerance)
    elif isinstance(b, (torch.Tensor, float)) or isinstance(a, strided.Tensor):
        x, y = (t if isinstance(t, (torch.Tensor, strided.Tensor)) else torch.tensor(float(t), dtype=torch.float64) for t in (a, b))
        x, y = (t.to(torch.float64 if isinstance(t, torch.Tensor) else strided.float64) for t in (x, y))
        differ(f"state {name}", x, y, tolerance)
    else:
        assert a == b, f"state {name}: {a} here, {b} there"


def compare(info, kwargs):
    """Raises where the two libraries differ."""
    tolerance = LOOSE.get(info.optim_cls.__name__, TOLERANCE)
    expected, other = train(torch, info, kwargs, copy.deepcopy)
    got, state = train(strided, info, kwargs, through_file(strided, torch))
    for i, (a, b) in enumerate(zip(got, expected)):
        differ(f"tensor {i}", a, b, tolerance)
    assert state["state"].keys() == other["state"].keys(), "numbers in the state"
    for number, entries in other["state"].items():
        ours = state["state"][number]
        assert set(ours) == set(entries), f"state of {number}: {sorted(ours)} here, {sorted(entries)} there"
        for name, value in entries.items():
            if name not in ("al", "H_diag", "prev_loss", "t", "ro"):
                same_state(name, ours[name], value, 10 * tolerance)
    for a, b in zip(state["param_groups"], other["param_groups"], strict=True):
        assert list(a) == list(b), f"group: {list(a)} here, {list(b)} there"


def compare_error(info, sample):
    """Raises unless wrong input ends with PyTorch's exception and first line (a warning counts as one)."""
    given = sample.optimizer_error_input

    def outcome(library):
        params, kwargs = given.params, given.kwargs
        if params is None:
            params = [torch.nn.Parameter(torch.ones(1, 1))]
        if library is strided:
            cross = Parameters()
            params, kwargs = cross(params), cross(kwargs)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                optimizer = getattr(library.optim, info.optim_cls.__name__)(params, **kwargs)
                if sample.error_on == OptimizerErrorEnum.STEP_ERROR:
                    optimizer.step(lambda: 1)
        except Exception as error:
            return error
        return None

    got, expected = outcome(strided), outcome(torch)
    if expected is not None:
        assert type(got) is type(expected) and first_line(got) == first_line(expected), f"{got!r} here, {expected!r} there"


class Parameters(Crossing):
    """`Crossing` that keeps parameters parameters, one for one."""

    def tensor(self, x):
        ours = super().tensor(x)
        if isinstance(x, torch.nn.Parameter):
            ours = strided.nn.Parameter(ours.detach())
        if x.grad is not None:
            ours.grad = super().tensor(x.grad)
        return ours


def infos(names=()):
    for info in optim_db:
        name = info.optim_cls.__name__
        if name != "SparseAdam" and (not names or name in names):
            yield info


def rows(names=()):
    """(optimiser, description, None or the exception) for every input and every wrong input."""
    for info in infos(names):
        name = info.optim_cls.__name__
        for description, kwargs in options_of(info):
            yield name, description, caught(compare, info, kwargs)
        for sample in info.optim_error_inputs_func("cpu", torch.float64):
            yield name, f"wrong input: {sample.optimizer_error_input.desc}", caught(compare_error, info, sample)


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
    parser.add_argument("--optims", default="")
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args()
    count = Counter()
    for name, what, error in rows(set(filter(None, given.optims.split(",")))):
        kind = "wrong inputs" if what.startswith("wrong") else "inputs"
        count.update({kind: 1, f"equal {kind}": error is None})
        if error is not None:
            print(f"{name} {what}: {type(error).__name__}: {str(error)[:300]}")
            if given.trace:
                import traceback

                traceback.print_exception(error)
    for kind in ("inputs", "wrong inputs"):
        print(f"{count[f'equal {kind}']} of {count[kind]} optimiser {kind}")
    return 0 if count["equal inputs"] == count["inputs"] else 1


if __name__ == "__main__":
    sys.exit(main())
