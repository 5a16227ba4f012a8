"""Which dtype operands of two dtypes give, and which exception: PyTorch's answers, stored; every dtype with every other as tensors, 0-d tensors and Python numbers.

Values are compared where PyTorch is installed (torch_compare/promotion_cases.py, all cases); here a sample of each operation's.
"""
import itertools

import pytest

import strided
from promotion_programs import KINDS, OPERATIONS, letter, outcome, stored

TABLE = stored()
# PyTorch has an error of its own for 0-d operands here, which comes before or after that of the dtypes.
VECTORS_ONLY = {"index_add_", "scatter_"}
# Compared without reserve: what promotes two operands. Of the others, operands that are complex or of PyTorch's wide unsigned formats are left out: which error an
# operator without a kernel for them ends with is not settled.
STRICT = set("add sub mul div pow eq ne ge where cat stack true_divide floor_divide remainder promote_types can_cast result_type copy_ add_".split())
WHOLE = {"promote_types", "can_cast", "result_type"}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_dtypes_are_pytorchs(operation):
    pairs = list(itertools.product(KINDS, KINDS))
    chosen = pairs if operation in WHOLE else pairs[len(operation) % 13 :: 13]
    wrong = []
    for pair in chosen:
        if operation not in STRICT and any("complex" in dtype or dtype in ("uint16", "uint32", "uint64") for _, dtype in pair):
            continue
        if operation in VECTORS_ONLY and "0-d" in (pair[0][0], pair[1][0]):
            continue
        expected = TABLE[operation][pair]
        if expected != "*" and letter(outcome(strided, operation, *pair)) != expected:  # *: PyTorch has no kernel for the format
            wrong.append((pair, expected, outcome(strided, operation, *pair)))
    assert not wrong, wrong[:5]
