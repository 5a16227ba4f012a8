"""1,000 random keys of indexing_cases.py, which runs any number by hand, on both libraries."""
import pytest

pytest.importorskip("torch")
from indexing_cases import difference


def test_random_cases_do_the_same():
    different = [found for seed in range(1000) if (found := difference(seed)) is not None]
    assert not different, "\n".join(map(str, different[:5]))
