"""repr, str and format of random tensors under random print options, on both libraries: the same text.

    python tests/torch_compare/repr_cases.py --count 20000 --seed 0

Tensors of every dtype both know, 0 to 5 dimensions, empty ones, values of one or many magnitudes, nan, inf, signed zeros; leaves, results, views, meta.
Tensor subclasses and parameters are test_printing_torch.py's.
"""

from __future__ import annotations

import argparse
import random
import sys

import numpy as np

import strided

FLOATS = ("float32", "float32", "float64", "float16", "bfloat16")
OTHERS = ("int64", "int64", "int32", "int16", "int8", "uint8", "bool", "uint16", "uint32", "uint64")


class Case:
    """A tensor as plain data, and the print options it is shown with."""

    def __init__(self, seed):
        r, self.seed = random.Random(seed), seed
        self.dtype = r.choice(FLOATS if r.random() < 0.65 else OTHERS)
        long = r.random() < 0.12
        self.shape = tuple(r.choice((0, 1, 2, 3, 4, 5, 7, 8)) if not long else r.choice((1, 2, 6, 7, 9, 40)) for _ in range(r.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5))))
        if r.random() < 0.06:
            self.shape = (r.choice((999, 1000, 1001, 1500, 30)),) if r.random() < 0.5 else (r.choice((40, 2)), r.choice((26, 600)))
        while np.prod(self.shape) > 4000:
            self.shape = self.shape[1:]
        self.how = r.choice(("normal", "normal", "whole", "mixed", "huge", "tiny", "uniform", "zeros", "few", "decimals"))
        self.strange = r.choice((0, 0, 0, 0.05, 0.3, 1.0))
        self.options = {}
        if r.random() < 0.5:
            pick = lambda name, *values: self.options.__setitem__(name, r.choice(values)) if r.random() < 0.4 else None
            pick("precision", 0, 1, 2, 3, 4, 6, 8, 12)
            pick("threshold", 0, 5, 20, 100, 1000, float("inf"))
            pick("edgeitems", 1, 2, 3, 5)
            pick("linewidth", 1, 10, 30, 60, 80, 120, 200)
            pick("sci_mode", True, False, None)
            if r.random() < 0.1:
                self.options["profile"] = r.choice(("default", "short", "full"))
        self.role = r.choice(("plain", "plain", "plain", "leaf", "result", "view", "transposed", "meta", "expanded"))
        self.form = r.choice(("repr", "repr", "repr", "str", "format"))

    def __repr__(self):
        return f"{self.seed}: {self.dtype}{list(self.shape)} {self.how} strange {self.strange} {self.role} {self.form} {self.options}"

    def values(self):
        g, shape = np.random.RandomState(self.seed), self.shape
        if self.dtype == "bool":
            return g.random_sample(shape) < 0.5
        if self.dtype not in FLOATS:
            unsigned, bits = self.dtype.startswith("u"), int(self.dtype.lstrip("uint"))
            high = 2 ** (bits - (not unsigned)) - 1
            reach = min(high, int(g.choice([1, 9, 100, 10**6, high])))
            return g.randint(0 if unsigned else -reach, reach, shape, dtype=self.dtype)
        x = g.standard_normal(shape)  # RandomState: its numbers are the same in every NumPy
        if self.how == "whole":
            x = np.round(x * g.choice([1, 10, 1000, 1e7, 1e9]))
        elif self.how == "mixed":
            x = x * 10.0 ** g.randint(-6, 7, shape)
        elif self.how == "huge":
            x = x * g.choice([1e4, 1e5, 1e8, 1e9, 1e20])
        elif self.how == "tiny":
            x = x * g.choice([1e-3, 1e-4, 1e-5, 1e-20, 1e-40])
        elif self.how == "uniform":
            x = g.random_sample(shape)
        elif self.how == "zeros":
            x = x * (g.random_sample(shape) < 0.3) * 1.0
        elif self.how == "few":
            x = g.choice([0.0, -0.0, 1.0, 0.5, 1000.0, 1e-4, 0.0001, 1e8, 1000.5, 99999.99, 1.00005], shape)
        elif self.how == "decimals":
            x = np.round(x, int(g.randint(1, 5)))
        x = np.asarray(x)
        if self.strange:
            x = np.where(g.random_sample(shape) < self.strange, g.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], shape), x)
        with np.errstate(over="ignore"):
            return x.astype("float32" if self.dtype == "bfloat16" else self.dtype)

    def tensor(self, library):
        values = np.ascontiguousarray(self.values())
        if self.role == "meta":
            return library.empty(self.shape, dtype=getattr(library, self.dtype), device="meta")
        x = library.from_numpy(values.copy().reshape(self.shape)).to(getattr(library, self.dtype))
        if self.role in ("leaf", "result", "view") and self.dtype in FLOATS:
            x.requires_grad_()
        if self.role == "result":
            return x * 1
        if self.role == "view":
            return x.unsqueeze(0) if self.seed % 2 else x.reshape(-1)
        if self.role == "transposed" and x.ndim > 1:
            return x.transpose(0, -1)
        if self.role == "expanded":
            return x.expand(2, *self.shape)
        return x

    def text(self, library):
        library.set_printoptions(profile="default", sci_mode=None)
        try:
            library.set_printoptions(**self.options)
            x = self.tensor(library)
            return repr(x) if self.form == "repr" else str(x) if self.form == "str" else f"{x}"
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        finally:
            library.set_printoptions(profile="default", sci_mode=None)


def difference(seed):
    """(case, torch's text, ours) where they differ, else None."""
    import torch

    case = Case(seed)
    want, have = case.text(torch), case.text(strided)
    return None if want == have else (case, want, have)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--show", type=int, default=20)
    given = parser.parse_args()
    different = 0
    for seed in range(given.seed, given.seed + given.count):
        found = difference(seed)
        if found is not None:
            different += 1
            if different <= given.show:
                print(f"{found[0]}\n--- torch\n{found[1][:700]}\n--- here\n{found[2][:700]}")
    print(f"{given.count - different} of {given.count} equal")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
