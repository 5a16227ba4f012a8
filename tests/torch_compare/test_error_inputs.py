"""Wrong input, a part of error_inputs.py's samples: the exception's type, the numbers and the shapes are PyTorch's, and nearly always the first line."""
import pytest

pytest.importorskip("torch")
from error_inputs import first_line, rows

OPERATORS = """add eq maximum logical_and clamp_max isclose gather index_select take masked_select scatter index_add masked_fill where unbind roll narrow hsplit chunk amax
aminmax max mean kthvalue median linspace logspace cat stack tile diff trapezoid neg nn.functional.conv1d nn.functional.conv2d nn.functional.max_pool2d nn.functional.avg_pool2d
nn.functional.adaptive_avg_pool2d nn.functional.prelu nn.functional.multi_margin_loss nn.functional.triplet_margin_loss nn.functional.softshrink""".split()


def test_wrong_input_ends_as_in_pytorch():
    found = list(rows(OPERATORS))
    lacking = [f"{op.name}: {first_line(expected)} | {type(got).__name__}: {first_line(got)}" for op, expected, got, same, complete in found if not (same and complete)]
    assert len(found) > 100
    assert not lacking, "\n".join(lacking)
    assert sum(first_line(got) == first_line(expected) for _, expected, got, *_ in found) >= 0.95 * len(found)
