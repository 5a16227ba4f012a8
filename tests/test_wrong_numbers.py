"""Numbers of a wrong kind or count: floats where ints are asked for, lists of another length, zeros. Exceptions in PyTorch's words, before a kernel is given them.

Holds no shapes or dtypes that do not fit (test_wrong_input.py).
"""
import math

import pytest

import strided as torch
import strided.nn as nn
import strided.nn.functional as F

a = torch.arange(12.0).view(3, 4)


@pytest.mark.parametrize(
    "name, argument, call",
    [
        ("diag", "diagonal", lambda: torch.diag(a, 1.0)),
        ("diagonal", "offset", lambda: a.diagonal(1.0)),
        ("tril", "diagonal", lambda: a.tril(1.0)),
        ("triu", "diagonal", lambda: a.triu(1.5)),
        ("triu_", "diagonal", lambda: a.clone().triu_(1.5)),
        ("topk", "k", lambda: a.topk(1.5)),
        ("topk", "k", lambda: a.topk(2.0)),
        ("kthvalue", "k", lambda: a.kthvalue(1.5)),
        ("multinomial", "num_samples", lambda: a.multinomial(4.0, replacement=True)),
        ("multinomial", "num_samples", lambda: a.multinomial(2.0)),
        ("conv1d", "groups", lambda: F.conv1d(torch.ones(1, 2, 4), torch.ones(2, 2, 1), groups=1.0)),
    ],
)
def test_a_float_is_no_int(name, argument, call):
    with pytest.raises(TypeError, match=rf"^{name}\(\): argument '{argument}'( \(position \d\))? must be int, not float"):
        call()


@pytest.mark.parametrize(
    "name, argument, call",
    [
        ("split_with_sizes", "split_sizes", lambda: a.split([1.0, 2.0])),
        ("pad", "pad", lambda: F.pad(a, (1.0, 1))),
        ("conv1d", "stride", lambda: F.conv1d(torch.ones(1, 2, 4), torch.ones(2, 2, 1), stride=1.5)),
        ("conv2d", "padding", lambda: F.conv2d(torch.ones(1, 2, 4, 4), torch.ones(2, 2, 1, 1), padding=[1.0, 1])),
        ("conv_transpose1d", "dilation", lambda: F.conv_transpose1d(torch.ones(1, 2, 4), torch.ones(2, 2, 1), dilation=None)),
    ],
)
def test_a_float_in_a_list_is_no_int(name, argument, call):
    with pytest.raises(TypeError, match=rf"^{name}\(\): argument '{argument}' must be tuple of ints"):
        call()


def test_tensors_of_one_int_are_ints():
    one = torch.tensor(1)
    assert torch.diag(a, one).tolist() == [1, 6, 11]
    assert a.topk(one).values.tolist() == [[3], [7], [11]]
    assert a.tril(one)[0].tolist() == [0, 1, 0, 0]
    assert [part.shape for part in a.split([one, 2])] == [(1, 4), (2, 4)]
    assert F.pad(a, (one, 0)).shape == (3, 5)
    assert F.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 1), stride=one + 1).shape == (1, 1, 2)


@pytest.mark.parametrize("label", ["stride", "padding", "dilation", "output_padding"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_steps_of_a_convolution_are_one_or_one_a_dimension(label, n):
    x, w = torch.ones(1, 2, *[5] * n), torch.ones(2, 2, *[1] * n)
    functions = [getattr(F, f"conv_transpose{n}d")] + ([] if label == "output_padding" else [getattr(F, f"conv{n}d")])
    for function in functions:
        for count in {0, 2, 3, 4, 2 * n} - {n}:
            value = [1] * count
            with pytest.raises(RuntimeError) as told:
                function(x, w, **{label: value})
            assert str(told.value) == f"expected {label} to be a single integer value or a list of {n} values to match the convolution dimensions, but got {label}={value}"
        if label != "output_padding":
            same = [function(x, w, **{label: value}) for value in (1, [1], (1,) * n)]
            assert torch.equal(same[0], same[1]) and torch.equal(same[0], same[2])
    module = nn.Conv2d(2, 2, 1, padding=(1, 1, 1, 1)) if n == 2 and label == "padding" else None
    if module is not None:  # four sides, as other libraries take them
        with pytest.raises(RuntimeError, match="expected padding to be a single integer value or a list of 2 values"):
            module(x)


IMAGE = torch.ones(1, 4, 4, 4)


@pytest.mark.parametrize(
    "told, call",
    [
        ("non-positive stride is not supported", lambda: F.conv_transpose2d(IMAGE, torch.ones(4, 1, 1, 1), stride=0)),
        ("negative padding is not supported", lambda: F.conv_transpose2d(IMAGE, torch.ones(4, 1, 1, 1), padding=-1)),
        ("dilation should be greater than zero, but got [0, 0]", lambda: F.conv2d(IMAGE, torch.ones(1, 4, 1, 1), dilation=0)),
        ("Given groups=3, expected weight to be divisible by 3 at dimension 0, but got weight of size [[4, 1, 1, 1]] instead", lambda: F.conv_transpose2d(IMAGE, torch.ones(4, 1, 1, 1), groups=3)),
        ("Expected num groups to be greater than 0, got 0", lambda: F.group_norm(IMAGE, 0)),
        ("pixel_shuffle expects a positive upscale_factor, but got 0", lambda: F.pixel_shuffle(IMAGE, 0)),
        ("pixel_unshuffle expects a positive downscale_factor, but got -1", lambda: F.pixel_unshuffle(IMAGE, -1)),
        ("Number of groups to divide channels in must be positive. Value of groups:0", lambda: F.channel_shuffle(IMAGE, 0)),
        ("Input and output sizes should be greater than 0, but got input (H: 4, W: 4) output (H: 0, W: 0)", lambda: F.interpolate(IMAGE, 0)),
        ("Input and output sizes should be greater than 0, but got input (W: 4) and output (W: -4)", lambda: F.interpolate(IMAGE[0], scale_factor=-1)),
        ("kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 0", lambda: F.unfold(IMAGE, 0)),
        ("stride should be greater than zero, but got stride_height: 0 stride_width: 0", lambda: F.fold(torch.ones(1, 4, 9), (4, 4), 2, stride=0)),
        ("padding should be non-negative, but got pad_height: -1 pad_width: -1", lambda: F.unfold(IMAGE, 2, padding=-1)),
        ("contracted dimensions need to match", lambda: torch.tensordot(a, a, dims=([0], [1]))),
    ],
)
def test_what_cannot_be_divided_by(told, call):
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value).startswith(told)


def test_a_probability_that_is_no_number():
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got nan"):
        F.dropout(a, math.nan)


@pytest.mark.parametrize("decimals", [309, -309, 2**40, -(2**63)])
def test_more_decimals_than_a_float_has(decimals):
    assert a.round(decimals=decimals).isnan().all()


def test_gradient_over_steps_of_zero():
    x = torch.arange(4.0)
    for order in (1, 2):
        assert torch.gradient(x, spacing=0.0, edge_order=order)[0].tolist() == [math.inf] * 4


@pytest.mark.parametrize(
    "told, call",
    [
        ("clamp(): argument 'max' (position 3) must be Number, not str", lambda: a.clamp(1, "x")),
        ("masked_fill(): argument 'value' (position 3) must be Number, not str", lambda: a.masked_fill(a > 0, "x")),
        ("lerp(): argument 'weight' (position 3) must be Number, not str", lambda: torch.lerp(a, a, "x")),
        ("arange(): argument 'end' (position 2) must be Number, not str", lambda: torch.arange(0, "x")),
        ("linspace(): argument 'start' (position 1) must be Number, not str", lambda: torch.linspace("a", 1, 3)),
    ],
)
def test_an_argument_that_is_no_number_is_named(told, call):
    with pytest.raises(TypeError) as error:
        call()
    assert str(error.value).startswith(told)


@pytest.mark.parametrize("value", ["x", None, [1], {}])
def test_operands_that_nobody_knows(value):
    kind = type(value).__name__
    for sign, call in (("+", lambda: a + value), ("-", lambda: a - value), ("*", lambda: a * value), ("/", lambda: a / value)):
        with pytest.raises(TypeError) as told:
            call()
        assert str(told.value) == f"unsupported operand type(s) for {sign}: 'Tensor' and '{kind}'"
    b = a.clone()
    with pytest.raises(TypeError, match="unsupported operand"):
        b += value
    assert torch.equal(a, b)


def test_the_other_operand_is_asked_in_place_too():
    class Other:
        def __radd__(self, tensor):
            return "added"

    b = a.clone()
    b += Other()
    assert b == "added"


def test_a_module_out_of_meta():
    with pytest.raises(NotImplementedError, match=r"^Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty\(\) instead of torch.nn.Module.to\(\)"):
        nn.Linear(2, 2, device="meta").to("cpu")


@pytest.mark.parametrize("sections", [2**70, -(2**70)])
def test_sections_that_64_bits_do_not_count(sections):
    with pytest.raises(ValueError, match="Overflow when unpacking long"):
        torch.tensor_split(a, sections)
