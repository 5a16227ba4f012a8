"""Second derivatives on PyTorch's operator samples: this library's own `gradcheck` and `gradgradcheck`, and the numbers beside PyTorch's.

    python tests/torch_compare/gradgrad_cases.py                     every operator that PyTorch differentiates twice, in scope of error_inputs.py, float64
    python tests/torch_compare/gradgrad_cases.py --ops prod,cumprod  only these
    python tests/torch_compare/gradgrad_cases.py --slow              the whole Jacobian of every sample in place of random directions

An operator passes when all of its samples do. Samples that PyTorch itself cannot differentiate are left out. Checking against central differences finds a
backward function that is wrong; comparing with PyTorch finds the conventions (at ties, kinks and zeros) that differences cannot see.
"""

from __future__ import annotations

import argparse
import sys
import time
import types
import warnings
from collections import Counter

import numpy as np
import torch
from error_inputs import Crossing, function_of, in_scope
from torch.testing._internal.common_methods_invocations import op_db

import strided
from strided.autograd.gradcheck import GradcheckError


def entries(names=()):
    """The entries of the operator database that PyTorch differentiates twice in float64: those named, else all in scope."""
    for op in op_db:
        if in_scope(op) and (not names or op.name in names) and op.supports_autograd and op.supports_gradgrad and op.supports_dtype(torch.float64, "cpu"):
            yield op


def tensors_in(library, value):
    if isinstance(value, library.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for item in value for t in tensors_in(library, item)]


class Program:
    """One sample on one library: `leaves` that require grad, and `outputs(*leaves)`, those of its results that have gradients."""

    def __init__(self, library, op, function, sample, given):
        self.library, self.op, self.function, self.sample, self.given = library, op, function, sample, given
        self.leaves = [t for t in tensors_in(library, given) if t.requires_grad]

    def outputs(self, *leaves):
        """What gradcheck calls: the results with gradients."""
        replaced = {id(old): new for old, new in zip(self.leaves, leaves)}
        (first, *rest), options = self.rebuilt(self.given, replaced)
        result = self.speaking(self.op.gradcheck_wrapper)(self.function, first, *rest, **options)
        if self.sample.output_process_fn_grad is not None:
            result = self.speaking(self.sample.output_process_fn_grad)(result)
        return tuple(t for t in tensors_in(self.library, result) if t.requires_grad)

    def speaking(self, function):
        """A function of the operator database whose `torch` is the library."""
        if self.library is torch:
            return function
        names = {**function.__globals__, "torch": self.library}
        same = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        same.__kwdefaults__ = function.__kwdefaults__
        return same

    def rebuilt(self, value, replaced):
        if isinstance(value, self.library.Tensor):
            return replaced.get(id(value), value)
        if isinstance(value, dict):
            return {key: self.rebuilt(item, replaced) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            items = [self.rebuilt(item, replaced) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return value

    def derivatives(self):
        """First and second derivatives as arrays, for gradients of the outputs and of the gradients that are the same numbers on every library."""
        library, random = self.library, np.random.default_rng(0)
        outputs = self.outputs(*self.leaves)
        if not outputs:
            return None
        like = lambda t: library.from_numpy(numbers(random, t)).reshape(tuple(t.shape)).to(t.dtype)
        seeds = [like(out).requires_grad_() for out in outputs]
        first = library.autograd.grad(outputs, self.leaves, seeds, create_graph=True, allow_unused=True)
        found = [array(g, x) for g, x in zip(first, self.leaves)]
        weights = [like(x) for x in self.leaves]  # all are drawn, so that one gradient that is None does not move the others' numbers
        linear = [(g, w) for g, w in zip(first, weights) if g is not None and g.requires_grad]
        inputs = [*self.leaves, *seeds]
        second = library.autograd.grad([g for g, _ in linear], inputs, [w for _, w in linear], allow_unused=True) if linear else [None] * len(inputs)
        return found + [array(g, x) for g, x in zip(second, inputs)]


def numbers(random, t):
    values = random.standard_normal(tuple(t.shape))
    if "complex" in str(t.dtype):
        values = values + 1j * random.standard_normal(tuple(t.shape))
    return np.asarray(values, dtype=str(t.dtype).rpartition(".")[2].replace("bfloat16", "float32"))


def array(gradient, like):
    """The gradient's values; zeros where there is none."""
    if gradient is None:
        return np.zeros(tuple(like.shape))
    gradient = gradient.detach()
    if "complex" in str(gradient.dtype):
        return gradient.resolve_conj().resolve_neg().numpy()
    return (gradient.float() if "bfloat16" in str(gradient.dtype) else gradient).numpy()


def program_there(op, sample):
    return Program(torch, op, op, sample, ([sample.input, *sample.args], sample.kwargs))


def program_here(op, sample):
    crossing = Crossing()
    function = (lambda x: x.clone().zero_()) if op.name == "zero_" else function_of(op)
    return Program(strided, op, function, sample, (crossing([sample.input, *sample.args]), crossing(sample.kwargs)))


def compare(op, sample):
    """What differs from PyTorch's derivatives, as text; "" where nothing does, None where PyTorch has none."""
    try:
        expected = program_there(op, sample).derivatives()
    except RuntimeError:
        return None
    if expected is None:
        return None
    got = program_here(op, sample).derivatives()
    if got is None:
        return "no output requires grad"
    if len(got) != len(expected):
        return f"{len(got)} derivatives, PyTorch has {len(expected)}"
    rtol = 1e-6 if min(want.dtype.itemsize for want in expected) >= 8 else 1e-2
    for place, (want, have) in enumerate(zip(expected, got)):
        if not np.allclose(have, want, rtol=rtol, atol=rtol / 100 * max(1.0, abs(want[np.isfinite(want)]).max(initial=0)), equal_nan=True):
            return f"derivative {place} of {len(expected)} is off by {np.nanmax(abs(have - want))}"
    return ""


def passes(op, program, name, fast):
    """ "" or what a library's own gradcheck (or gradgradcheck) finds."""
    options = {"fast_mode": fast, "check_undefined_grad": False, "nondet_tol": max(op.gradcheck_nondet_tol, 1e-12)}
    try:
        getattr(program.library.autograd, name)(program.outputs, tuple(program.leaves), **options)
    except RuntimeError as error:
        if program.library is strided and not isinstance(error, GradcheckError):
            raise
        return f"{name}: {first_line(error)}"  # PyTorch's check fails with other errors, too, as for casts
    return ""


def judge(op, sample, fast=True):
    """ "" for a sample that passes, else why it does not, None for one that PyTorch has no derivatives of.

    PyTorch's own check may fail where it differs (a derivative that it has wrong) or where differences do (at a kink, below double precision).
    """
    text = compare(op, sample)
    if text is None:
        return None
    checks = [name for name in ("gradcheck", "gradgradcheck") if text or passes(op, program_here(op, sample), name, fast)]
    if not checks:
        return ""
    there = [passes(op, program_there(op, sample), name, fast) for name in checks]
    if text:
        return "" if any(there) and not any(passes(op, program_here(op, sample), name, fast) for name in checks) else text
    return "" if all(there) else passes(op, program_here(op, sample), checks[0], fast)


def first_line(error):
    return (str(error).strip().splitlines() or [""])[0][:150]


def rows(names=(), limit=None, fast=True):
    """(operator's name, samples that pass, what the others say) for each operator; at most `limit` samples of one."""
    for op in entries(names):
        good, wrong = 0, Counter()
        torch.manual_seed(0)
        taken = 0
        for sample in op.sample_inputs("cpu", torch.float64, requires_grad=True):
            if taken == limit:
                break
            if sample.kwargs.get("dropout_p"):
                continue
            try:
                text = judge(op, sample, fast)
                if text is None:
                    continue
                taken += 1
            except Exception as error:
                text = f"{type(error).__name__}: {first_line(error)}"
            good += not text
            wrong.update([text] if text else [])
        yield op.name + (":" + op.variant_test_name if op.variant_test_name else ""), good, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="")
    parser.add_argument("--limit", type=int, help="samples an operator")
    parser.add_argument("--slow", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    count, started = Counter(), time.time()
    for name, good, wrong in rows(set(filter(None, given.ops.split(","))), given.limit, not given.slow):
        bad = sum(wrong.values())
        count.update(samples=good + bad, good=good, operators=bool(good + bad), whole=bool(good) and not bad)
        if bad:
            print(f"{name:45} {good:4d} of {good + bad:4d}  {'; '.join(text for text, _ in wrong.most_common(2))}", flush=True)
    share = count["whole"] / max(count["operators"], 1)
    print(f"{count['whole']} of {count['operators']} operators pass whole = {100 * share:.1f} %, {count['good']} of {count['samples']} samples; {time.time() - started:.0f} s")
    return 0 if share >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
