"""`strided number`: exact rounding to every scalar format, and the command's text and JSON. Comparisons with ml_dtypes are of all codes."""

from __future__ import annotations

import json
import os
import pathlib
import struct
import subprocess
import sys
from fractions import Fraction as F

import pytest

from strided.lens.exact import Exact, decimal_text, dyadic_text, hold, neighbours, of_code, parse, scalar_format, scalar_formats, short_text
from strided.lens.number import block_rows, decimal_digits, exactly, in_use, number, table_rows
from support import run_strided


def held(text, name):
    return hold(scalar_format(name), parse(text))


# ---- reading numbers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, value",
    [
        ("0.1", F(1, 10)), ("1/3", F(1, 3)), ("-1/3", F(-1, 3)), ("1e-3", F(1, 1000)), ("2^-24", F(1, 1 << 24)), ("-2**3", F(-8)), ("0x1.8p-3", F(3, 16)),
        ("0x10", F(16)), ("0b101", F(5)), ("0o17", F(15)), (".5", F(1, 2)), ("1_000.5", F(2001, 2)), ("1.5e3/3", F(500)), ("+7", F(7)), ("−2", F(-2)),
    ],
)  # fmt: skip
def test_numbers_as_written(text, value):
    assert parse(text) == Exact("finite", value, value < 0)


def test_infinity_nan_and_minus_zero():
    assert parse("-inf") == Exact("inf", F(0), True) and parse("NaN").kind == "nan" and parse("infinity").kind == "inf"
    assert parse("-0") == Exact("finite", F(0), True) and parse("-0").text == "-0" and parse("0") == Exact("finite", F(0), False)


@pytest.mark.parametrize("text", ["", ".", "abc", "0.1.2", "--1", "1e", "0b12", "0x", "1/0", "1e99999999", "2^99999999", "0^-1", "1/", "nanx"])
def test_what_is_no_number_says_so(text):
    with pytest.raises(ValueError, match="number|zero|exponents|reach"):
        parse(text)


def test_decimal_text_is_exact_or_cut():
    assert decimal_text(F(205, 2048)) == "0.10009765625"
    assert decimal_text(F(1, 3)) == "0." + "3" * 60 + "…"
    assert decimal_text(F(1, 1 << 24)) == "5.9604644775390625e-8" and decimal_text(F(-12)) == "-12" and decimal_text(F(0)) == "0"
    assert decimal_text(F(2**128 - 2**120)) == str(2**128 - 2**120)
    assert decimal_text(F(2, 3), 5) == "0.66666…" and decimal_text(F(1, 8), 5) == "0.125"
    assert len(decimal_text(F(1, 1 << 1074)).replace(".", "").partition("e")[0]) == 751
    assert short_text(F(1, 10240)) == "9.766e-05" and short_text(F(99999)) == "100000" and short_text(F(65504), 5) == "65504"
    assert dyadic_text(F(205, 2048)) == "205 / 2^11" and dyadic_text(F(65536)) == "1 × 2^16"


# ---- rounding -----------------------------------------------------------------------------------


def test_a_tenth_in_bfloat16():
    (one,) = number("0.1", "bfloat16")
    assert one["code"] == "0x3DCD" and one["held"] == "0.10009765625" and one["fields"] == {"sign": "0", "exponent": "01111011", "mantissa": "1001101"}
    assert one["fraction"] == "205/2048" and one["error"] == {"absolute": "9.76562e-05", "relative": "0.000976562", "ulp": "0.2", "exact": "1/10240"}
    assert one["ulp"] == "1/2048" and one["below"] == {"code": "0x3DCC", "value": "0.099609375"} and one["above"] == {"code": "0x3DCE", "value": "0.1005859375"}
    assert one["events"] == ["inexact"] and one["verdict"] == "rounded up"


def test_python_numbers_are_taken_exactly():
    (one,) = number(0.1, "float64")
    assert one["verdict"] == "exact" and one["held"] == "0.1000000000000000055511151231257827021181583404541015625"
    assert number(float("-inf"), "float16")[0]["held"] == "-inf" and number(F(1, 3), "float32")[0]["code"] == "0x3EAAAAAB"


@pytest.mark.parametrize(
    "text, name, code, events",
    [
        ("65519", "float16", 0x7BFF, {"inexact"}), ("65520", "float16", 0x7C00, {"overflow", "inexact"}), ("-1e9", "float16", 0xFC00, {"overflow", "inexact"}),
        ("2^-25", "float16", 0, {"inexact", "underflow"}), ("2^-24", "float16", 1, {"subnormal"}), ("-1e-9", "float16", 0x8000, {"inexact", "underflow"}),
        ("1e6", "float8_e4m3fn", 0x7E, {"saturated", "inexact"}), ("-inf", "float8_e4m3fn", 0xFE, {"saturated", "inexact"}), ("449", "float8_e4m3fn", 0x7E, {"inexact"}),
        ("61440", "float8_e5m2", 0x7C, {"overflow", "inexact"}), ("61439", "float8_e5m2", 0x7B, {"inexact"}),
        ("241", "float8_e4m3fnuz", 0x7F, {"inexact"}), ("248", "float8_e4m3fnuz", 0x80, {"overflow", "invalid"}), ("-1e-9", "float8_e4m3fnuz", 0, {"inexact", "underflow"}),
        ("2.5", "float4_e2m1fn", 4, {"inexact"}), ("3.5", "float4_e2m1fn", 6, {"inexact"}), ("0.25", "float4_e2m1fn", 0, {"inexact", "underflow"}),
        ("100", "float6_e3m2fn", 0x1F, {"saturated", "inexact"}), ("1.5", "float8_e8m0fnu", 0x80, {"inexact"}), ("0", "float8_e8m0fnu", 0, {"invalid", "inexact"}),
        ("300.7", "int8", 0x2C, {"overflow", "inexact"}), ("-1.5", "int8", 0xFF, {"inexact"}), ("0.9", "uint8", 0, {"inexact", "underflow"}), ("255", "uint8", 0xFF, set()),
        ("9", "int4", 9, {"overflow", "inexact"}), ("1 + 0", "int4", None, None),
    ],
)  # fmt: skip
def test_the_edges_of_formats(text, name, code, events):
    if code is None:
        with pytest.raises(ValueError):
            held(text, name)
        return
    found = held(text, name)
    assert found.code == code and set(found.events) - {"inexact"} == events - {"inexact"}
    if name != "float8_e8m0fnu":
        assert ("inexact" in found.events) == ("inexact" in events)


@pytest.mark.parametrize("name", [n for n in in_use() if scalar_format(n).bits <= 16])
def test_every_code_is_held_exactly_and_neighbours_are_adjacent(name):
    form = scalar_format(name)
    values = []
    for code in range(1 << form.bits) if form.bits <= 8 else [*range(0, 1 << 16, 41), form.largest_code, 0x8000, (1 << 16) - 1]:
        one = of_code(form, code)
        if one.kind != "finite":
            continue
        again = hold(form, Exact("finite", one.value, one.negative))
        assert again.code == code and not set(again.events) - {"subnormal", "invalid"}, (code, again)
        values.append(one.value)
    ordered = sorted(set(values))
    for low, high in zip(ordered, ordered[1:]):
        above = neighbours(hold(form, Exact("finite", low, low < 0)))[1]
        below = neighbours(hold(form, Exact("finite", high, high < 0)))[0]
        assert low < above.value <= high and low <= below.value < high and (form.bits > 8 or above.value == high and below.value == low)
    assert max(ordered) == form.largest and (form.bits > 8 or min(ordered) == form.lowest) and of_code(form, form.largest_code).value == form.largest


@pytest.mark.parametrize("name", [n for n, form in scalar_formats().items() if form.bits <= 16 and not form.is_integer])
def test_codes_and_midpoints_agree_with_ml_dtypes(name):
    numpy, ml_dtypes = pytest.importorskip("numpy"), pytest.importorskip("ml_dtypes")
    form = scalar_format(name)
    their = numpy.float16 if name == "float16" else getattr(ml_dtypes, name)
    unsigned = numpy.uint16 if form.bits == 16 else numpy.uint8
    with numpy.errstate(all="ignore"):
        decoded = numpy.arange(1 << form.bits, dtype=unsigned).view(their).astype(numpy.float64)
    finite = []
    for code, value in list(enumerate(decoded.tolist()))[:: 1 if form.bits <= 8 else 7]:
        one = of_code(form, code)
        assert one.kind == ("nan" if value != value else "inf" if value in (float("inf"), -float("inf")) else "finite")
        if one.kind == "finite":
            assert one.value == F(value) and one.text.startswith("-") == (str(value)[0] == "-")
            finite.append(value)
    if name == "float8_e8m0fnu":
        return  # ml_dtypes refuses what is no positive number; halves are PyTorch's there
    ordered = sorted(set(finite))[:: max(1, len(set(finite)) // 2000)]
    points = [(a + b) / 2 for a, b in zip(ordered, ordered[1:])]
    expected = numpy.array(points, dtype=numpy.float32).astype(their).view(unsigned).tolist()
    exact = numpy.array(points, dtype=numpy.float32).astype(numpy.float64).tolist()
    assert [hold(form, Exact("finite", F(p), p < 0)).code for p in exact] == expected


def test_float32_and_float64_agree_with_struct():
    for text in ("0.1", "1/3", "2^-149", "2^-150", "1e-45", "16777217", "3.4e38", "1e-310", "2.5e-324", "-7.3"):
        value = float(parse(text).value)
        assert held(text, "float64").code == struct.unpack("<Q", struct.pack("<d", value))[0]
        assert hold(scalar_format("float32"), Exact("finite", F(value), value < 0)).code == struct.unpack("<I", struct.pack("<f", value))[0]
    assert held("1.00000000000000011102230246251565404236316680908203126", "float64").code == 0x3FF0000000000001  # above the half, once rounded


def test_tf32_is_float32_with_ten_bits():
    one = held("1/3", "tf32")
    assert one.value == F(1365, 4096) and one.code == 0x3EAAAAAB >> 13 and scalar_format("tf32").bits == 19
    assert not scalar_format("tf32").storage and held("1e39", "tf32").kind == "inf"


# ---- the command ---------------------------------------------------------------------------------


def test_the_command_in_full():
    code, out, err = run_strided("number", "0.1", "--dtype", "bfloat16")
    assert code == 0 and err == ""
    for text in ("0     01111011  1001101    0x3DCD", "0.10009765625  =  205 / 2^11", "+0.2 ulp", "0.099609375  0x3DCC", "0.1005859375  0x3DCE", "infinity    held"):
        assert text in out


def test_side_by_side_and_all():
    code, out, _ = run_strided("number", "70000", "--dtype", "float16,int8", "-d", "float8_e4m3fn")
    assert code == 0 and "overflows to inf" in out and "saturates" in out and "wraps" in out and "0 11111 0000000000" in out
    code, out, _ = run_strided("number", "-1/3", "--all", "--json")
    rows = json.loads(out)
    assert code == 0 and [row["format"] for row in rows] == in_use() and rows[0]["asked"] == "-1/3"
    assert {row["format"]: row["code"] for row in rows}["float32"] == "0xBEAAAAAB"


def test_codes_and_double_rounding():
    code, out, _ = run_strided("number", "0x3dcd", "--bits", "-d", "bf16")
    assert code == 0 and "0.10009765625" in out
    code, _, err = run_strided("number", "0x1ff", "--bits", "-d", "float8_e5m2")
    assert code == 2 and "more than the 8 bits of float8_e5m2" in err
    between = "1.000488281250000001"  # just above half: once rounded it goes up, through float32 it is a tie and goes down
    code, out, _ = run_strided("number", between, "-d", "float16")
    assert "rounded twice" in out and "0x3C01" in out and "0x3C00" in out


def test_the_table():
    code, out, _ = run_strided("number", "--table")
    assert code == 0 and len(out.splitlines()) == len(in_use()) + len(block_rows()) + 3
    assert {r["format"]: (r["bits"], r["element"], r["group"], r["scale"]) for r in block_rows()}["mxfp4"] == (4.25, "float4_e2m1fn", 32, "float8_e8m0fnu")
    rows = {row["format"]: row for row in table_rows()}
    assert rows["float8_e4m3fn"]["largest"] == "448" and rows["bfloat16"]["eps"] == "0.0078125" and not rows["float4_e2m1fn"]["nan"]
    assert rows["float16"]["smallest"] == "5.9604644775390625e-8" and rows["float32"]["decimal_digits"] == 6
    assert decimal_digits(scalar_format("float64")) == 15
    assert json.loads(run_strided("number", "--table", "--json")[1]) == {"scalar": table_rows(), "block": block_rows()}


@pytest.mark.parametrize(
    "words, said",
    [
        (["0.1", "-d", "bflot16"], "no number format 'bflot16'; near it: bfloat16"), (["abc"], "'abc' is not a number"), ([], "give a number"),
        (["0.1", "--table"], "leave the number out"), (["0.1", "-0.2/3"], "two numbers"), (["0.1", "-d", "mxfp4"], "one alone is a float4_e2m1fn"), (["zz", "--bits"], "is no code"),
        (["0.1", "--all", "-d", "float16"], "leave --dtype out"),
    ],
)  # fmt: skip
def test_wrong_words(words, said):
    code, out, err = run_strided("number", *words)
    assert code == 2 and said in err and "Traceback" not in err


def test_limits_are_those_of_finfo():
    import strided

    for name in in_use():
        form = scalar_format(name)
        if not form.storage or form.is_integer:
            continue
        info = strided.finfo(getattr(strided, name))
        assert form.largest == F(info.max) and form.smallest_normal == F(info.smallest_normal) and form.bits == info.bits
        if name != "float8_e5m2fnuz":  # there finfo follows PyTorch, whose eps is half the gap
            assert form.eps == F(info.eps)


def test_the_documentation_shows_what_the_command_prints():
    root = pathlib.Path(__file__).parent.parent
    done = subprocess.run([sys.executable, str(root / "tools" / "rounding.py"), "--check"], capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert done.returncode == 0, "docs/rounding.md is not current: python tools/rounding.py\n" + done.stderr


@pytest.mark.parametrize("name", [n for n in in_use() if scalar_format(n).storage and n != "float64"])
def test_the_command_says_what_a_cast_does(name):
    import strided

    form, dtype = scalar_format(name), getattr(strided, name)
    specials = [] if form.is_integer else [float("inf"), float("-inf"), float("nan")]
    top, low = min(float(form.largest), 3e38), float(form.smallest)
    given = [0.0, -0.0, 1.0, -1.0, 0.1, -0.3, 2.5, -3.5, 7.0, 100.7, -200.2, 300.0, 1e5, -7e4, low, low / 2, low * 0.75, low * 1.5, top, -top, top * 1.01, top * 1.1, *specials]
    if form.is_integer:
        given = [v for v in given if abs(v) < 2**31]
    x = strided.tensor(given, dtype=strided.float32)
    y = x.to(dtype)
    for value, found in zip(x.tolist(), y.to(strided.uint64 if name == "uint64" else strided.int64).tolist() if form.is_integer else y.double().tolist()):
        asked = exactly(value)
        held = hold(form, asked._replace(negative=str(value)[0] == "-"))
        if held.kind == "finite":
            assert F(found) == held.value and (not form.negative_zero or held.value or str(found)[0] == ("-" if held.negative else "0")), (value, found, held)
        else:
            assert found != found if held.kind == "nan" else found == float("-inf" if held.negative else "inf"), (value, found, held)
