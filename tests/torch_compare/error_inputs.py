"""PyTorch's samples of wrong input (`error_inputs` of its operator database) handed to both libraries: the same exception type, the same numbers and shapes.

    python tests/torch_compare/error_inputs.py                      every operator in scope, about a minute
    python tests/torch_compare/error_inputs.py --ops add,gather     only these
    python tests/torch_compare/error_inputs.py --lines              first lines that differ are failures, too

A sample that PyTorch takes without an exception is left out. Tensors cross through NumPy, storage by storage, so that operands that share memory, overlap
or walk it in odd strides still do. Compared are the exception's type and the numbers and shapes in the first line of PyTorch's message. Values are test_families_torch.py's.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter

import torch
from torch.testing._internal.common_methods_invocations import op_db

import strided

# Without a reference value (random, uninitialised, in need of storage tricks), or no part of dense tensor work.
LEFT_OUT = set(
    """bernoulli cauchy empty empty_like empty_permuted empty_strided exponential geometric log_normal multinomial new_empty new_empty_strided normal rand_like randint
    randint_like randn randn_like uniform resize_ resize_as_ to_sparse item svd_lowrank pca_lowrank slice chalf max_pool2d_with_indices_backward native_dropout_backward
    nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d nn.functional.feature_alpha_dropout nn.functional.fractional_max_pool2d
    nn.functional.fractional_max_pool3d nn.functional.rrelu nn.functional.multi_head_attention_forward""".split()
)
LEFT_OUT_STARTS = ("sparse.", "signal.windows.", "_", "ops.", "jiterator_", "torch.", "masked.", "fft.", "segment_reduce", "nn.functional.scaled_dot_product_efficient")
LEFT_OUT_VARIANTS = {"partial_views", "decomposed", "grad_oriented", "singular"}


def in_scope(op):
    """Whether an entry has values that can be compared."""
    return not (op.name in LEFT_OUT or op.name.startswith(LEFT_OUT_STARTS) or op.variant_test_name in LEFT_OUT_VARIANTS)


def entries(names=()):
    """The entries of the operator database that are compared: those named, else all in scope."""
    for op in op_db:
        wanted = op.name in names if names else in_scope(op)
        if wanted and op.error_inputs_func is not None:
            yield op


class Crossing:
    """torch values as this library's; one storage there becomes one buffer here, with views of it where torch has views."""

    def __init__(self):
        self.buffers, self.tensors = {}, {}

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            if id(value) not in self.tensors:
                self.tensors[id(value)] = self.tensor(value)
            return self.tensors[id(value)]
        if isinstance(value, torch.device):
            return str(value)
        if isinstance(value, torch.nn.Module):  # a distance, say: without parameters
            return getattr(strided.nn, type(value).__name__)()
        if getattr(value, "__module__", None) == "torch.nn.functional":
            return getattr(strided.nn.functional, value.__name__)
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return getattr(strided, str(value).rpartition(".")[2])
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(map(self, value))
        return value

    def tensor(self, x):
        dtype = getattr(strided, str(x.dtype).rpartition(".")[2])
        if x.device.type == "meta":
            return strided.empty_strided(tuple(x.shape), x.stride(), dtype=dtype, device="meta")
        if x.is_sparse:
            raise NotImplementedError("sparse tensors do not cross")
        storage = x.untyped_storage()
        key = storage.data_ptr() or id(x), dtype
        if key not in self.buffers:
            data = torch.tensor([], dtype=torch.uint8).set_(storage).clone().numpy()
            whole = len(data) // x.element_size()
            self.buffers[key] = strided.from_numpy(data[: whole * x.element_size()]).view(dtype) if whole else strided.empty(0, dtype=dtype)
        t = self.buffers[key].as_strided(tuple(x.shape), x.stride(), x.storage_offset())
        if x.requires_grad:
            t = t.detach().requires_grad_(True)
        return t


def function_of(op):
    """This library's function for an entry, called as the entry is; None where it is absent."""
    name = op.name
    if name == "einsum":
        return lambda tensors, equation: strided.einsum(equation, *tensors)
    if name.endswith("polygamma"):
        return lambda x, n, **options: strided.polygamma(n, x, **options)
    if name == "where":
        return lambda x, condition, other, **options: strided.where(condition, x, other, **options)
    if name == "nn.functional.embedding":
        return lambda weight, index, **options: strided.nn.functional.embedding(index, weight, **options)
    if name in ("T", "H", "mT", "mH"):
        return lambda x: getattr(x, name)
    found = strided
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if callable(found) else getattr(strided.Tensor, name, None)


def outcome(function, *args, **options):
    """The exception a call ends with, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(*args, **options)
    except Exception as error:
        return error
    return None


def first_line(error):
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else ""


def facts(text):
    """The numbers and the shapes a text names: '3', '-1', '2,3'."""
    shapes = {re.sub(r"\s", "", found) for found in re.findall(r"[\[(]\s*(-?\d+(?:\s*,\s*-?\d+)*)\s*,?\s*[\])]", text)}
    return shapes | set(re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w]|\.\d)", text))


def compare(op, sample):
    """(torch's exception, ours, same type, nothing missing), or None where torch raises nothing."""
    given = sample.sample_input
    crossing = Crossing()
    args, options = crossing([given.input, *given.args]), crossing(given.kwargs)  # first: what fails may have written
    expected = outcome(op, given.input, *given.args, **given.kwargs)
    if expected is None:
        return None
    function = function_of(op)
    got = AttributeError(f"no {op.name}") if function is None else outcome(function, *args, **options)
    same = type(got) is type(expected)
    return expected, got, same, same and facts(first_line(expected)) <= facts(str(got))


def rows(names=()):
    """(entry, expected, got, same type, nothing missing) for each sample."""
    for op in entries(names):
        torch.manual_seed(0)
        for sample in op.error_inputs("cpu"):
            found = compare(op, sample)
            if found is not None:
                yield op, *found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="")
    parser.add_argument("--lines", action="store_true")
    given = parser.parse_args()
    count = Counter()
    for op, expected, got, same, complete in rows(set(filter(None, given.ops.split(",")))):
        equal = same and first_line(got) == first_line(expected)
        count.update(samples=1, same=same, complete=complete, equal=equal)
        if not complete or given.lines and not equal:
            print(f"{op.name} {op.variant_test_name}\n  torch: {type(expected).__name__}: {first_line(expected)}\n  here:  {type(got).__name__}: {first_line(got)}")
    total = count["samples"]
    for name, what in (("same", "the exception's type is equal"), ("complete", "and every number and shape is there"), ("equal", "and the first line is equal")):
        print(f"{count[name]:5d} of {total} = {100 * count[name] / total:5.1f} %  {what}")
    return 0 if count["same"] >= 0.95 * total and count["complete"] >= 0.9 * total else 1


if __name__ == "__main__":
    sys.exit(main())
