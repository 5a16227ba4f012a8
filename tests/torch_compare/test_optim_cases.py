"""A part of optim_cases.py: one optimiser of each kind over all its inputs, and every wrong input."""
import pytest

pytest.importorskip("torch")
from optim_cases import infos, options_of, rows

OPTIMISERS = "ASGD Adafactor Adamax LBFGS Rprop SGD".split()


def test_optimisers_do_the_same():
    found = list(rows(OPTIMISERS))
    different = [f"{name} {what}: {error}" for name, what, error in found if error is not None]
    assert len(found) > 100
    assert not different, "\n".join(different)


def test_every_optimiser_is_compared():
    assert {info.optim_cls.__name__ for info in infos()} == set(
        "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD".split()
    )
    assert sum(1 for info in infos() for _ in options_of(info)) > 200
