"""Random x[key] and x[key] = value, told as plain data and run on both libraries: results, dtypes, view or copy, what was written, and errors.

    python tests/torch_compare/indexing_cases.py --count 50000 --seed 0

Keys hold None, ..., slices with steps, ints, bools, int tensors that broadcast, masks, lists, nested lists, 0-d tensors, and what is out of range, too
long or of a wrong kind. Operators with names (gather, index_put) are test_families_torch.py's.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from collections import Counter

import numpy as np

import strided

DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool", "bfloat16")
INDEX_DTYPES = ("int64", "int64", "int64", "int32", "int32", "uint8", "int16", "int8", "float32")


class Item:
    """One part of a key: `make(library)` gives it; `text` shows it."""

    def __init__(self, text, make):
        self.text, self.make = text, make

    def __repr__(self):
        return self.text


def constant(value):
    return Item(repr(value) if value is not Ellipsis else "...", lambda library: value)


def tensor_item(values, dtype):
    return Item(f"tensor({values}, {dtype})", lambda library: library.tensor(values, dtype=getattr(library, dtype)))


def nested(make, shape):
    return [nested(make, shape[1:]) for _ in range(shape[0])] if shape else make()


def slice_item(r, size):
    bound = lambda: r.choice((None, None, r.randint(-size - 2, size + 2)))
    step = r.choice((None, None, None, 1, 2, 3, 7, 2**40, 0, -1)) if r.random() < 0.3 else None
    found = slice(bound(), bound(), step)
    if r.random() < 0.05 and found.start is not None and found.step != 0:  # bounds may be tensors, too (with a step of 0, PyTorch ends in a SystemError)
        start = found.start
        return Item(f"slice(tensor({start}), {found.stop}, {found.step})", lambda library: slice(library.tensor(start), found.stop, found.step))
    return Item(f"slice({found.start}, {found.stop}, {found.step})", lambda library: found)


def integer(r, size):
    """Nearly always in range."""
    if size and r.random() < 0.97:
        return r.randint(-size, size - 1)
    return r.randint(-size - 2, size + 1)


def mask_values(r, shape):
    return nested(lambda: r.random() < 0.5, shape)


def index_shape(r):
    return r.choice(((), (1,), (2,), (2,), (3,), (2, 1), (1, 2), (2, 2), (3, 2), (0,), (1, 1, 2), (2, 0)))


def key_items(r, shape):
    """The parts of a key for a tensor of this shape, and whether it may have too many."""
    items, d = [], 0
    common = r.choice(((2,), (3,), (2, 2), (1,)))
    for _ in range(r.choice((1, 1, 2, 2, 3, 3, 4, 5))):
        size = shape[d] if d < len(shape) else r.randint(1, 3)
        kind = r.random()
        if d >= len(shape) and kind > 0.25 and r.random() < 0.95:
            continue
        if kind < 0.1:
            items.append(constant(None))
        elif kind < 0.18:
            items.append(constant(...))
            d += r.randint(0, max(0, len(shape) - d - 1))
        elif kind < 0.22:
            items.append(constant(r.random() < 0.6) if r.random() < 0.7 else tensor_item(r.random() < 0.6, "bool"))
        elif kind < 0.45:
            items.append(slice_item(r, size))
            d += 1
        elif kind < 0.6:
            items.append(constant(integer(r, size)) if r.random() < 0.9 else Item("numpy int", lambda library, i=integer(r, size): np.int64(i)))
            d += 1
        elif kind < 0.63:
            items.append(tensor_item(integer(r, size) if r.random() < 0.9 else 1.0, r.choice(INDEX_DTYPES[:-2])) if size else constant(0))
            d += 1
        elif kind < 0.8:
            own = common if r.random() < 0.8 else index_shape(r)
            own = tuple(1 if r.random() < 0.1 else n for n in own)[-r.randint(1, 2) :]
            dtype = r.choice(INDEX_DTYPES[:5]) if r.random() < 0.97 else r.choice(INDEX_DTYPES)
            values = nested(lambda: abs(integer(r, size)) if dtype == "uint8" else integer(r, size), own)
            items.append(tensor_item(values, dtype))
            d += 1
        elif kind < 0.88:
            own = common if r.random() < 0.8 else index_shape(r) or (1,)
            values = nested(lambda: integer(r, size), own)
            items.append(constant(tuple(values) if r.random() < 0.1 else values))
            d += 1
        elif kind < 0.92:
            values = mask_values(r, (size if r.random() < 0.95 else size + 1,))
            items.append(constant(values))
            d += 1
        elif kind < 0.995:
            reach = r.choice((1, 1, 2)) if d + 1 < len(shape) else 1
            own = list(shape[d : d + reach]) or [2]
            if r.random() < 0.05:
                own[-1] += 1
            items.append(tensor_item(mask_values(r, own), "bool" if r.random() < 0.93 else "uint8"))
            d += reach
        else:
            items.append(constant(r.choice((1.5, "a", object, 2.0, np.float32(1), {}, b"x", 1j, [1.5], ["a"], [None], [[1], [2, 3]]))))
            d += 1
    kinds = [item.text for item in items]
    if kinds.count("...") > 1 and 2 * len(shape) + kinds.count("None") >= 5:  # a second ... goes past the end, where PyTorch reads strides as sizes
        items = [item for k, item in enumerate(items) if kinds[k] != "..." or k == kinds.index("...")]
    return items or [constant(...)]


class Case:
    """A tensor (dtype, shape, how it is laid out), a key, and for a write a value: what it is like follows from x[key]'s shape."""

    def __init__(self, seed):
        r = random.Random(seed)
        self.seed = seed
        self.dtype = r.choice(DTYPES)
        self.shape = tuple(r.choice((0, 1, 2, 2, 3, 3, 4, 5)) for _ in range(r.choice((0, 1, 1, 2, 2, 3, 3, 3, 4))))
        self.layout = r.choice(("plain", "plain", "transposed", "stepped", "window"))
        self.items = key_items(r, self.shape)
        self.form = "tuple" if len(self.items) > 1 else "single"
        if r.random() < 0.03:
            self.form = "list"
        self.write = r.random() < 0.5
        self.rest = r.random()  # seeds what depends on the shape of x[key]

    def __repr__(self):
        return f"{self.seed}: {self.dtype}{list(self.shape)} {self.layout} [{self.form}: {', '.join(map(repr, self.items))}]{' = ...' if self.write else ''}"

    def tensor(self, library):
        shape = self.shape[::-1] if self.layout == "transposed" else tuple(2 * n + 1 for n in self.shape) if self.layout in ("stepped", "window") else self.shape
        count = int(np.prod(shape)) if shape else 1
        x = (library.arange(count, dtype=library.int64) % (2 if self.dtype == "bool" else 100)).to(getattr(library, self.dtype)).reshape(shape)
        if self.layout == "transposed":
            x = x.permute(*range(len(shape))[::-1]) if shape else x
        elif self.layout == "stepped":
            for d, n in enumerate(self.shape):
                x = x.as_strided((*x.shape[:d], n, *x.shape[d + 1 :]), (*x.stride()[:d], 2 * x.stride(d), *x.stride()[d + 1 :]), x.storage_offset() + x.stride(d))
        elif self.layout == "window":
            for d, n in enumerate(self.shape):
                x = x.narrow(d, 1, n)
        return x

    def key(self, library):
        made = [item.make(library) for item in self.items]
        return made[0] if self.form == "single" else made if self.form == "list" else tuple(made)

    def value(self, library, target):
        """What is written where x[key] has shape `target` (None: it raises)."""
        r = random.Random(self.rest)
        kind = r.random()
        if target is None:
            target = (2,)
        if kind < 0.25:
            return r.choice((7, 2.5, True, -1, 3))
        shape = list(target)
        if r.random() < 0.3 and shape:
            shape = shape[r.randint(0, len(shape)) :]
        shape = [1 if r.random() < 0.2 else n for n in shape]
        if r.random() < 0.15:
            shape = [1] * r.randint(1, 2) + shape
        if r.random() < 0.05 and shape:
            shape[r.randrange(len(shape))] += 1
        if r.random() < 0.02:
            shape = [2, *shape]
        dtype = self.dtype if r.random() < 0.85 else r.choice(DTYPES)
        count = int(np.prod(shape)) if shape else 1
        return ((library.arange(count, dtype=library.int64) * 7 + 3) % 100).to(getattr(library, dtype)).reshape(tuple(shape))


def facts_of(x, whole):
    """What is compared of a result: dtype, shape, values; where it is a window of `whole`, its strides and start, too."""
    if not hasattr(x, "untyped_storage"):
        return type(x).__name__
    shares = x.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr() and whole.untyped_storage().nbytes() > 0
    window = (tuple(x.stride()), x.storage_offset()) if shares else None
    return str(x.dtype), tuple(x.shape), x.tolist(), window


def outcome(case, library, target=None):
    """What the case does in a library: facts of its result, or the error's type and first line; for a write x as it is afterwards."""
    x = case.tensor(library)
    before = x.tolist()
    try:
        if case.write:
            x[case.key(library)] = case.value(library, target)
            return "wrote", x.tolist()
        return "read", *facts_of(x[case.key(library)], x)
    except Exception as error:
        lines = str(error).strip().splitlines()
        if library is strided and x.tolist() != before:
            return type(error).__name__, "a failing write has written"
        return type(error).__name__, lines[0].rstrip() if lines else ""


def gradients(case, library):
    """The gradients through x[key] or x[key] = value, and the name of a read's node; None where there are none."""
    if case.dtype not in ("float32", "float64"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            target = tuple(case.tensor(library)[case.key(library)].shape)
            x = case.tensor(library).clone().requires_grad_()
            y, value = x * 1, None
            if case.write:
                value = case.value(library, target)
                if hasattr(value, "dtype") and value.is_floating_point():
                    value = value.clone().requires_grad_()
                y[case.key(library)] = value
            else:
                y = y[case.key(library)]
            (y * (library.arange(y.numel()).reshape(y.shape) + 1)).sum().backward()
        except Exception as error:
            return type(error).__name__, str(error).partition("\n")[0].rstrip()
    return x.grad.tolist(), value.grad.tolist() if hasattr(value, "grad") and value.grad is not None else None, None if case.write else type(y.grad_fn).__name__


def run(seed, library):
    """The outcome of case number `seed` in a library."""
    case, target = Case(seed), None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.write:
            try:
                target = tuple(case.tensor(library)[case.key(library)].shape)
            except Exception:
                target = None
        return outcome(case, library, target)


def difference(seed):
    """(case, torch's outcome, ours) where they differ, else None."""
    import torch

    want, have = run(seed, torch), run(seed, strided)
    return None if repr(want) == repr(have) else (Case(seed), want, have)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--show", type=int, default=40)
    given = parser.parse_args()
    different, kinds = 0, Counter()
    for seed in range(given.seed, given.seed + given.count):
        found = difference(seed)
        if found is not None:
            different += 1
            case, want, have = found
            kinds[want[0], have[0]] += 1
            if different <= given.show:
                print(f"{case}\n  torch: {str(want)[:300]}\n  here:  {str(have)[:300]}")
    print(f"{given.count - different} of {given.count} equal {dict(kinds) or ''}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
