"""Operators called by keyword, a part of keyword_cases.py's: names, NumPy's names and out= are taken as PyTorch takes them."""
import pytest

pytest.importorskip("torch")
from keyword_cases import op_db, rows

OPERATORS = """sum mean amax argmax any std cat softmax log_softmax gather scatter index_add index_select cumsum sort topk kthvalue median squeeze unsqueeze select transpose
tensor_split hsplit unbind clamp_min where diag permute_copy special.i0e special.xlog1py linalg.cond cholesky_solve ormqr isin resize_as_ sum_to_size""".split()


@pytest.mark.filterwarnings("ignore")
def test_keywords_are_pytorchs():
    found = [row for op in op_db if op.name in OPERATORS for row in rows(op)]
    assert len(found) > 150
    assert not [row for row in found if row[2] != row[3]]
