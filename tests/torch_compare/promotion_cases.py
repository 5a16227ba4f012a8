"""Every pair of number formats × {tensor, 0-d tensor, Python number} through the operators that promote: result dtype, values and exception type against PyTorch's.

    python tests/torch_compare/promotion_cases.py                 everything, some minutes
    python tests/torch_compare/promotion_cases.py --ops add,cat   only these
    python tests/torch_compare/promotion_cases.py --write         only write PyTorch's dtypes as tests/golden/promotion.json, which test_promotion.py checks without it

The operands' values are in range of every format they may land in: what a cast does beyond that is test_scalar_functions.py's.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch

import strided

sys.path.insert(0, str(Path(__file__).parents[1]))
from promotion_programs import GOLDEN, KINDS, OPERATIONS, codes_of, outcome

EXACT = 0.0
ROUNDED = {"xlogy", "pow", "pow_", "atan2", "hypot", "lerp", "addcmul", "remainder", "dot"}  # several roundings, which PyTorch may do in the narrow format
TOLERANCES = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-7, "complex64": 1e-6, "float64": 1e-14, "complex128": 1e-14}


def same(want, have, tolerance):
    """Equal values; floats to a relative tolerance, nan equal to nan."""
    if isinstance(want, (list, tuple)):
        return isinstance(have, type(want)) and len(want) == len(have) and all(same(w, h, tolerance) for w, h in zip(want, have))
    if type(want) is not type(have):
        return False
    if isinstance(want, complex):
        return same(want.real, have.real, tolerance * 2) and same(want.imag, have.imag, tolerance * 2)
    if isinstance(want, float):
        return want == have or want != want and have != have or math.isclose(want, have, rel_tol=tolerance, abs_tol=tolerance)
    return want == have


def difference(operation, left, right):
    """None, or (PyTorch's outcome, ours) where they differ; and PyTorch's outcome."""
    want, have = outcome(torch, operation, left, right), outcome(strided, operation, left, right)
    if want is not None and want[0] == "absent":  # PyTorch has no kernel for the format: what this library does with it is its own business
        return want, have, True
    dtype = want[0].rpartition(".")[2] if isinstance(want, tuple) and isinstance(want[0], str) else ""
    return want, have, same(want, have, TOLERANCES.get(dtype, EXACT) if operation in ROUNDED or dtype.startswith("complex") else EXACT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="")
    parser.add_argument("--show", type=int, default=3, help="differences printed an operation")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [name for name in given.ops.split(",") if name] or list(OPERATIONS)
    if given.write:
        GOLDEN.write_text(json.dumps({name: codes_of([outcome(torch, name, *pair) for pair in itertools.product(KINDS, KINDS)]) for name in OPERATIONS}, indent=0) + "\n")
        return 0
    count = Counter()
    for name in names:
        bad = []
        for left, right in itertools.product(KINDS, KINDS):
            want, have, equal = difference(name, left, right)
            count.update(cases=1, equal=equal)
            if not equal:
                bad.append(f"  {left} {right}\n    torch {str(want)[:200]}\n    here  {str(have)[:200]}")
        if bad:
            print(f"{name}: {len(bad)} differ", *bad[: given.show], sep="\n", flush=True)
    print(f"{count['equal']} of {count['cases']} cases equal")
    return 0 if count["equal"] == count["cases"] else 1


if __name__ == "__main__":
    sys.exit(main())
