"""`torch.testing`: comparing tensors with tolerances that fit their dtypes, and saying where they differ."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import dtypes
from .ops import TABLE
from .refused import missing as _missing
from .tensor import Tensor

# (rtol, atol) by dtype; exact for everything else.
_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5), dtypes.float64: (1e-7, 1e-7),
}  # fmt: skip
_LOOSE = {dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8)}  # assert_allclose's


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True, msg: str = "") -> None:
    """`assert_close` without its checks of dtype and device, by its deprecated name."""
    if not isinstance(actual, Tensor):
        actual = TABLE["tensor"].call(actual)
    if not isinstance(expected, Tensor):
        expected = TABLE["tensor"].call(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_LOOSE.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = (max(values) for values in zip(*pairs))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True, check_dtype=False, check_stride=False, msg=msg or None)


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
    check_device: bool = True, check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False, msg: Any = None,
) -> None:  # fmt: skip
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere, and dtypes, shapes and devices agree.

    Takes tensors, numbers, and sequences or mappings of them. Without tolerances those of the dtype hold.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(f"Both rtol and atol must be either specified or unspecified, but got rtol={rtol} and atol={atol} instead.")
    options = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "check_device": check_device, "check_dtype": check_dtype, "check_stride": check_stride}
    problem = _difference(actual, expected, options)
    if problem is not None:
        raise AssertionError(msg(problem) if callable(msg) else msg if msg is not None else problem)


def _difference(actual, expected, options) -> str | None:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if set(actual) != set(expected):
            missing, more = (sorted(keys, key=str) for keys in (set(expected) - set(actual), set(actual) - set(expected)))
            return f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {more}"
        return next((f"{p}\n\nThe failure occurred for item [{k!r}]" for k in expected if (p := _difference(actual[k], expected[k], options))), None)
    if isinstance(expected, Sequence) and isinstance(actual, Sequence) and not isinstance(expected, str):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
        return next((f"{p}\n\nThe failure occurred for item [{i}]" for i, (a, e) in enumerate(zip(actual, expected)) if (p := _difference(a, e, options))), None)
    if isinstance(expected, Tensor) != isinstance(actual, Tensor) and not all(isinstance(v, Tensor | bool | int | float) for v in (actual, expected)):
        return f"Object comparison failed: {actual!r} and {expected!r} cannot be compared as tensors"
    if not isinstance(expected, Tensor) and not isinstance(actual, Tensor):
        if not isinstance(expected, bool | int | float) or not isinstance(actual, bool | int | float):
            return None if actual == expected else f"Object comparison failed: {actual!r} != {expected!r}"
        a, e = (TABLE["scalar_tensor"].call(v, dtype=dtypes.float64 if isinstance(v, float) else dtypes.scalar_dtype(v)) for v in (actual, expected))
        return _tensor_difference(a, e, options, "Scalars are not close!")
    if not isinstance(expected, Tensor) or not isinstance(actual, Tensor):
        actual, expected = (v if isinstance(v, Tensor) else TABLE["scalar_tensor"].call(v) for v in (actual, expected))
    return _tensor_difference(actual, expected, options, "Tensor-likes are not close!")


def _tensor_difference(actual: Tensor, expected: Tensor, options, title: str) -> str | None:
    for name, check in (("shape", True), ("dtype", options["check_dtype"]), ("device", options["check_device"])):
        if check and title.startswith("Tensor") and getattr(actual, name) != getattr(expected, name):
            return f"The values for attribute '{name}' do not match: {getattr(actual, name)} != {getattr(expected, name)}."
    if options["check_stride"] and actual.stride() != expected.stride():
        return f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}."
    rtol, atol = options["rtol"], options["atol"]
    if rtol is None:
        pairs = [_TOLERANCES.get(t.dtype, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = max(p[0] for p in pairs), max(p[1] for p in pairs)
    common = dtypes.promote(actual.dtype, expected.dtype)
    a, e = actual.detach().to(common), expected.detach().to(common)
    if common.is_floating_point or common.kind != "bool":
        close = TABLE["isclose"].call(a, e, rtol=rtol, atol=atol, equal_nan=options["equal_nan"])
    else:
        close = a == e
    if bool(close.all()):
        return None
    if title.startswith("Scalar"):
        return f"{title}\n\nExpected {expected.item()} but got {actual.item()}.\nAbsolute difference: {abs(actual.item() - expected.item())} (up to {atol} allowed)"
    wrong = int((~close).sum())
    wide = dtypes.float64
    difference = (a.to(wide) - e.to(wide)).abs().masked_fill(close, -1.0)
    at = int(difference.nan_to_num(float("inf"), float("inf")).argmax())
    place, rest = [], at
    for size in reversed(difference.shape):
        place.append(rest % size)
        rest //= size
    relative = difference / e.to(wide).abs()
    return (
        f"{title}\n\nMismatched elements: {wrong} / {close.numel()} ({100 * wrong / close.numel():.1f}%)\n"
        f"Greatest absolute difference: {float(difference.flatten()[at])} at index {tuple(reversed(place))} (up to {atol} allowed)\n"
        f"Relative difference there: {float(relative.flatten()[at])} (up to {rtol} allowed)"
    )


__getattr__ = _missing("torch.testing")
