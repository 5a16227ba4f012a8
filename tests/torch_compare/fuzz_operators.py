"""Operators on arbitrary layouts, and called wrongly: what PyTorch does and what this library does, by hypothesis.

    python tests/torch_compare/fuzz_operators.py --minutes 10     random examples, in a process of their own so that a crash is seen as one
    python tests/torch_compare/fuzz_operators.py --minutes 10 --seed 3     others
    python tests/torch_compare/fuzz_operators.py --only matmul

A case is plain data: tensors as views of one-dimensional buffers (zero sizes, steps, flips, expanded and overlapping windows, 0-d, up to ten dimensions, huge strides
over single elements), an operator of PROGRAMS, and its arguments. Results, dtypes, what was written, and the kind of exception must be equal; tensors are as they were
after an operation that fails. Values are small integers (halves for floats), so that most sums are exact.
"""

from __future__ import annotations

import argparse
import cmath
import itertools
import math
import subprocess
import sys
import time
import warnings

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import strided

FLOATS, INTEGERS = ("float32", "float64"), ("int64", "int32", "uint8", "int8")
DTYPES = (*FLOATS, *FLOATS, *INTEGERS, "bool", "bfloat16", "float16")


# ---- tensors as data -----------------------------------------------------------------------------------------------------------------


@st.composite
def shapes(draw, largest=4, most=4):
    dims = draw(st.sampled_from((0, 1, 1, 2, 2, 2, 3, 3, most, 10)))
    if dims == 10:
        return tuple(draw(st.lists(st.sampled_from((1, 1, 1, 2)), min_size=10, max_size=10)))
    return tuple(draw(st.lists(st.sampled_from((0, 1, 2, 3, largest, largest, 7)), min_size=dims, max_size=dims)))


@st.composite
def tensors(draw, shape=None, dtype=None):
    """(dtype, seed of its values, steps that make it), steps being view operations on a contiguous tensor that end in `shape`."""
    shape = draw(shapes()) if shape is None else shape
    dtype = draw(st.sampled_from(DTYPES)) if dtype is None else dtype
    kind = draw(st.sampled_from(("plain", "plain", "transposed", "stepped", "offset", "expanded", "window", "flipped", "huge")))
    return dtype, draw(st.integers(0, 99)), shape, kind


def values(dtype, seed, count):
    """Small numbers of the dtype, `count` of them."""
    numbers = [((seed * 31 + k * 17) % 23 - 8) for k in range(count)]
    if dtype == "bool":
        return [n % 3 == 0 for n in numbers]
    if dtype.startswith("uint"):
        return [abs(n) for n in numbers]
    return [n / 2 for n in numbers] if "float" in dtype else numbers


def make(library, spec):
    """The tensor of a specification, and the buffer it is a window of."""
    dtype, seed, shape, kind = spec
    dims = len(shape)

    def fresh(shape):
        return library.tensor(values(dtype, seed, math.prod(shape)), dtype=getattr(library, dtype)).reshape(shape)

    if kind == "transposed" and dims > 1:
        base = fresh(shape[::-1])
        return base.permute(tuple(range(dims))[::-1]), base
    if kind == "stepped" and dims:
        base = fresh((*shape[:-1], shape[-1] * 2 + 1))
        return base[..., 1::2], base
    if kind == "offset" and dims:
        base = fresh((shape[0] + 3, *shape[1:]))
        return base[2 : 2 + shape[0]], base
    if kind == "expanded" and dims:
        base = fresh((1, *shape[1:]))
        return base.expand(shape), base
    if kind == "window" and dims and 0 not in shape:  # elements that share places
        strides = tuple(1 + d % 2 for d in range(dims))
        base = fresh((sum((n - 1) * s for n, s in zip(shape, strides)) + 1 + 2,))
        return base.as_strided(shape, strides, 1), base
    if kind == "flipped" and dims:
        base = fresh(shape)
        return base.flip(0), base
    if kind == "huge" and dims:
        base = fresh(shape)
        return base.as_strided(shape, tuple(2**40 if n == 1 else s for n, s in zip(shape, base.stride()))), base
    base = fresh(shape)
    return base, base


# ---- programs ------------------------------------------------------------------------------------------------------------------------

PROGRAMS = {}  # name -> (strategy of arguments, function(library, tensors, arguments))


def program(name, count=1, arguments=st.just(()), same=None, dtypes=None, shape=None):
    """Registers a program. count: how many tensors it takes; same: how their shapes go together."""

    def register(function):
        PROGRAMS[name] = count, arguments, same, dtypes, shape, function
        return function

    return register


def calls(names, count, arguments=st.just(()), **facts):
    for name in names.split():
        program(name, count, arguments, **facts)(lambda library, xs, given, name=name: getattr(library, name)(*xs, *given))


def methods(names, count, arguments=st.just(()), **facts):
    for name in names.split():
        program("." + name, count, arguments, **facts)(lambda library, xs, given, name=name: getattr(xs[0], name)(*xs[1:], *given))


DIM = st.integers(-4, 4)
SIZE = st.integers(-1, 5)
FLAG = st.booleans()
NUMBER = st.sampled_from((0, 1, -1, 2, 3.5, True, -0.5))

calls("neg abs sign sqrt exp square floor ceil round trunc relu sigmoid isnan isfinite logical_not bitwise_not reciprocal tanh signbit positive", 1)
calls("add sub mul div maximum minimum eq lt ge pow remainder floor_divide fmod atan2 logical_and logical_xor bitwise_and bitwise_or fmax copysign", 2, same="broadcast")
calls("add mul sub div eq lt pow remainder", 1, st.tuples(NUMBER))
methods("add_ mul_ sub_ div_ copy_ logical_and_ bitwise_xor_ remainder_ eq_ fmod_", 2, same="broadcast")
methods("add_ mul_ fill_ clamp_ pow_ masked_fill", 1, st.tuples(NUMBER))
methods("neg_ abs_ zero_ sqrt_ exp_ relu_ floor_ sigmoid_ t_ squeeze_", 1)
calls("where", 3, same="broadcast")
calls("lerp addcmul", 3, same="broadcast", dtypes=FLOATS)
calls("sum mean prod any all amax amin max min argmax argmin std var logsumexp median nansum count_nonzero cumsum cumprod cummax softmax log_softmax sort argsort flip unbind nonzero", 1)
calls("sum mean prod any all amax amin max min argmax argmin std var logsumexp median cumsum cumprod cummax softmax log_softmax sort argsort unbind mode", 1, st.tuples(DIM))
methods("flip", 1, st.tuples(DIM))
calls("sum mean amax amin var", 1, st.tuples(st.lists(DIM, max_size=3), FLAG))
calls("squeeze unsqueeze t ravel clone numel tril triu trace diag flatten", 1)
calls("squeeze unsqueeze tril triu diag flatten unbind roll diff", 1, st.tuples(st.integers(-4, 4)))
calls("transpose movedim flatten narrow_copy diagonal roll swapaxes", 1, st.tuples(DIM, DIM))
calls("select chunk split tensor_split repeat_interleave topk kthvalue", 1, st.tuples(DIM, DIM))
calls("narrow unflatten", 1, st.tuples(DIM, SIZE, SIZE))
methods("reshape view expand repeat tile permute", 1, st.tuples(st.lists(SIZE, max_size=5)))
methods("unfold", 1, st.tuples(DIM, SIZE, SIZE))
methods("as_strided", 1, st.tuples(st.lists(st.integers(-1, 3), max_size=3), st.lists(st.integers(-1, 3), max_size=3), st.integers(-1, 4)))
calls("matmul", 2, same="matmul", dtypes=(*FLOATS, "int64", "bfloat16"))
calls("mm bmm mv dot outer inner vdot", 2, dtypes=(*FLOATS, "int64"))
calls("norm", 1, st.tuples(st.sampled_from((1, 2, float("inf"), 0, 3)), DIM), dtypes=FLOATS)
calls("cdist", 2, dtypes=FLOATS)


@program("cat", 2, st.tuples(DIM))
def _(library, xs, given):
    return library.cat(xs, *given)


@program("stack", 2, st.tuples(DIM), same="same")
def _(library, xs, given):
    return library.stack(xs, *given)


INDEX = st.tuples(DIM, st.lists(st.integers(-3, 5), max_size=4))


@program("index_select", 1, INDEX)
def _(library, xs, given):
    return library.index_select(xs[0], given[0], library.tensor(given[1], dtype=library.int64))


@program("gather", 1, INDEX)
def _(library, xs, given):
    dims = xs[0].ndim
    index = library.tensor(given[1], dtype=library.int64).reshape((-1,) + (1,) * max(dims - 1, 0)) if dims else library.tensor(given[1], dtype=library.int64)
    return library.gather(xs[0], given[0], index)


@program("scatter_", 1, st.tuples(DIM, st.lists(st.integers(-2, 4), max_size=3), NUMBER))
def _(library, xs, given):
    index = library.tensor(given[1], dtype=library.int64).reshape((-1,) + (1,) * max(xs[0].ndim - 1, 0))
    return xs[0].scatter_(given[0], index, given[2])


@program("index_add_", 2, INDEX)
def _(library, xs, given):
    return xs[0].index_add_(given[0], library.tensor(given[1], dtype=library.int64), xs[1])


@program("index_fill_", 1, st.tuples(DIM, st.lists(st.integers(-3, 4), max_size=3), NUMBER))
def _(library, xs, given):
    return xs[0].index_fill_(given[0], library.tensor(given[1], dtype=library.int64), given[2])


@program("take", 1, st.tuples(st.lists(st.integers(-9, 9), max_size=4)))
def _(library, xs, given):
    return library.take(xs[0], library.tensor(given[0], dtype=library.int64))


@program("masked_select", 2, same="broadcast")
def _(library, xs, given):
    return library.masked_select(xs[0], xs[1] > 0)


@program("masked_fill_", 2, st.tuples(NUMBER), same="broadcast")
def _(library, xs, given):
    return xs[0].masked_fill_(xs[1] > 0, given[0])


@program("masked_scatter_", 2, same="same")
def _(library, xs, given):
    return xs[0].masked_scatter_(xs[1] > 0, xs[1])


KEY = st.lists(st.one_of(st.none(), st.integers(-3, 3), st.builds(slice, st.none() | st.integers(-3, 4), st.none() | st.integers(-3, 4), st.none() | st.integers(1, 3)), st.just(Ellipsis)), max_size=4)


@program("getitem", 1, st.tuples(KEY))
def _(library, xs, given):
    return xs[0][tuple(given[0])]


@program("setitem", 1, st.tuples(KEY, NUMBER))
def _(library, xs, given):
    xs[0][tuple(given[0])] = given[1]


@program("setitem of a part of itself", 1, st.tuples(KEY, KEY))
def _(library, xs, given):
    xs[0][tuple(given[0])] = xs[0][tuple(given[1])].clone()


@program("add out", 3)
def _(library, xs, given):
    return library.add(xs[0], xs[1], out=xs[2])


@program("sum out", 2, st.tuples(DIM), dtypes=FLOATS)
def _(library, xs, given):
    return library.sum(xs[0], *given, out=xs[1])


@program("cumsum_", 1, st.tuples(DIM))
def _(library, xs, given):
    return xs[0].cumsum_(*given)


@program("layer_norm", 1, dtypes=FLOATS)
def _(library, xs, given):
    return library.nn.functional.layer_norm(xs[0], tuple(xs[0].shape[-1:]))


@program("linear", 2, dtypes=FLOATS)
def _(library, xs, given):
    return library.nn.functional.linear(*xs)


@program("cast", 1, st.tuples(st.sampled_from(DTYPES)))
def _(library, xs, given):
    return xs[0].to(getattr(library, given[0]))


@program("contiguous", 1)
def _(library, xs, given):
    return xs[0].contiguous()


@program("backward", 2, same="broadcast", dtypes=FLOATS)
def _(library, xs, given):
    leaves = [x.detach().requires_grad_() for x in xs]
    (leaves[0] * leaves[1] + leaves[0]).sum().backward()
    return [leaf.grad for leaf in leaves]


@program("backward of an overlapping window", 1, dtypes=FLOATS)
def _(library, xs, given):
    leaf = xs[0].detach().clone().requires_grad_()
    (leaf.expand(2, *leaf.shape) ** 2).sum().backward()
    return leaf.grad


# Calls that are wrong in kind: an argument that no operator takes there.
WRONG = (None, "a", 1.5, 2**70, -(2**70), [], (), {}, object, 1j, [None], ["a"], b"x", float("nan"), 2**31, -(2**63), [2**40], slice(1))
COUNTED = set("arange eye full histc linspace one_hot ones repeat_interleave tensor_split zeros".split())  # 2**31 is no mistake there, but more than fits in memory


def _wrong(name, count):
    values = st.tuples(st.sampled_from([value for value in WRONG if name not in COUNTED or value != 2**31]))

    @program(f"wrong {name}", count, values)
    def _(library, xs, given):
        return getattr(library, name)(*xs, *given)

    @program(f"wrong first {name}", 0, values)
    def _(library, xs, given):
        return getattr(library, name)(*given)


for _name in """sum mean softmax cumsum sort argmax transpose squeeze unsqueeze flatten narrow select split chunk cat stack index_select gather reshape permute expand_copy add mul
    pow where clamp matmul norm flip roll topk unbind movedim tril diag one_hot linspace arange zeros ones eye full masked_fill masked_select take repeat_interleave
    tensor_split unflatten var prod amax any logsumexp clone zeros_like exp bmm mm dot cross outer broadcast_to atleast_2d meshgrid cartesian_prod bincount histc
    searchsorted bucketize unique nonzero count_nonzero einsum tensordot diff gradient trapezoid isin""".split():
    if hasattr(torch, _name):
        _wrong(_name, 1)


@st.composite
def cases(draw, only=None):
    names = [name for name in PROGRAMS if only is None or only in name]
    name = draw(st.sampled_from(names))
    count, arguments, same, dtypes, shape, _ = PROGRAMS[name]
    dtype = draw(st.sampled_from(dtypes)) if dtypes else None
    specs = []
    first = draw(shapes())
    for place in range(count):
        if place == 0 or same is None:
            own = first if place == 0 else draw(st.one_of(st.just(first), shapes()))
        elif same == "same":
            own = first
        elif same == "matmul":
            own = (*first[:-2], first[-1], draw(st.integers(0, 3))) if len(first) > 1 and draw(FLAG) else draw(shapes())
        else:  # broadcast: some sizes 1, some leading dimensions left out
            own = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in first)[draw(st.integers(0, min(1, len(first)))) :]
            if draw(st.integers(0, 12)) == 0:
                own = draw(shapes())
        if math.prod(own) > 3000:
            own = own[:2]
        specs.append(draw(tensors(own, dtype)))
    return name, specs, draw(arguments)


# ---- running -------------------------------------------------------------------------------------------------------------------------


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        if value.numel() > 100000:
            return str(value.dtype), tuple(value.shape)
        return str(value.dtype), tuple(value.shape), (value.double() if value.is_floating_point() else value).tolist()
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(type(value).__name__)


def run(library, case):
    """(what came out or the exception's name and line, the tensors' buffers afterwards)"""
    name, specs, given = case
    made = [make(library, spec) for spec in specs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = plain(PROGRAMS[name][-1](library, [x for x, _ in made], given))
        except Exception as error:
            found = "raised", type(error).__name__, (str(error).strip().splitlines() or [""])[0]
    return found, [plain(base) for _, base in made]


def close(want, have, loose):
    if isinstance(want, (list, tuple)):
        return isinstance(have, (list, tuple)) and len(want) == len(have) and all(close(w, h, loose) for w, h in zip(want, have))
    if isinstance(want, float) and isinstance(have, float):
        return want == have or want != want and have != have or math.isclose(want, have, rel_tol=loose, abs_tol=loose)
    if isinstance(want, complex) and isinstance(have, complex):  # to the number's size: one part may be what is left of a difference
        if not cmath.isfinite(want):
            return close((want.real, want.imag), (have.real, have.imag), loose)
        return want == have or cmath.isclose(want, have, rel_tol=loose, abs_tol=loose)
    return type(want) is type(have) and want == have


def tolerance(specs):
    dtypes = {spec[0] for spec in specs}
    return 2e-2 if "bfloat16" in dtypes else 4e-3 if "float16" in dtypes else 1e-5


READS_PAST = {"median", "kthvalue"}  # PyTorch's copy of an expanded tensor is too short for them: they read beyond it
OUT = {"sum out", "add out"}
SHARED_OUT = {"sum out"}  # PyTorch takes a dimension of out= whose elements share one place for a reduced one: sum(dim=0) of [3, 4] gives the sum of all twelve. Refused here

LENIENT = {"TypeError", "RuntimeError", "ValueError", "IndexError", "NotImplementedError", "OverflowError"}


def raised(outcome):
    return isinstance(outcome, tuple) and outcome[:1] == ("raised",)


def undefined(case):
    """Whether the values are not defined: elements that share places are written and read in no given order, or an out= grows beyond its memory.

    (A tensor that grows takes new memory here, so that other windows of the old one stay as they are; PyTorch's move along.)
    """
    name, specs, _ = case
    if name in OUT:
        return any(spec[3] == "window" for spec in specs) or specs[-1][3] not in ("plain", "flipped")
    return (name.endswith("_") or name == "setitem of a part of itself") and specs[0][3] == "window"


def difference(case):
    """None, or the two outcomes as text."""
    name, specs, _ = case
    if name in READS_PAST and specs[0][3] == "expanded":
        return None
    if name.endswith("chunk") and any(isinstance(value, int) and value > 2**20 for value in case[2]) and any(0 in spec[2] for spec in specs[:1]):
        return None  # that many windows of nothing are made by both sides, until memory ends
    want, have = run(torch, case), run(strided, case)
    expected, got = want[0], have[0]
    if raised(expected) and ("not implemented for" in expected[2] or "does not support bool input" in expected[2]):
        return None  # PyTorch has no kernel for the dtype
    if undefined(case) and not raised(expected) and not raised(got):
        return None
    if name in SHARED_OUT and specs[-1][3] == "expanded" and not raised(expected) and raised(got) and got[2].startswith("unsupported operation: more than one element"):
        return None
    if name in (".expand", ".as_strided") and not raised(expected) and min(expected[1], default=0) < 0:  # PyTorch makes a negative size where another is 0
        return None
    if raised(expected):
        if not raised(got):
            return None if name.startswith("wrong") else f"torch {expected}\nhere  {got}"
        lenient = name.startswith("wrong") or expected[2].startswith("setStorage") or expected[1] == "SystemError"  # PyTorch stumbles over what it made itself
        if got[1] != expected[1] and not (lenient and got[1] in LENIENT):
            return f"torch {expected}\nhere  {got}"
    elif not close(expected, got, tolerance(specs)):
        return f"torch {expected}\nhere  {got}"
    if raised(got):  # PyTorch may have written a part
        before = [plain(make(strided, spec)[1]) for spec in specs]
        return None if close(before, have[1], 0.0) else f"the operation failed, and wrote: {got} {have[1]}"
    if not close(want[1], have[1], tolerance(specs)):
        return f"written: torch {want[1]}\n         here  {have[1]}"
    return None


def shown(case):
    name, specs, given = case
    return f"{name} on {', '.join(f'{dtype}{list(shape)} {kind} (seed {seed})' for dtype, seed, shape, kind in specs)} with {given!r}"


def fuzz(minutes, only, first, found):
    """Random examples until the time is over, from seeds that follow `first`; each new kind of difference is printed."""
    end = time.monotonic() + minutes * 60
    count = 0
    for number in itertools.count():
        if time.monotonic() > end:
            return count

        @seed(first * 1000 + number)
        @settings(max_examples=300, deadline=None, database=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
        @given(cases(only))
        def examples(case):
            nonlocal count
            if time.monotonic() > end:
                return
            count += 1
            print("\r" + shown(case)[:300], end="", file=sys.stderr, flush=True)
            text = difference(case)
            if text is not None:
                kind = case[0], *[line.split("(")[0][:40] + (line.split("'")[3] if line.count("'") > 3 else "") for line in text.splitlines()]
                if kind not in found:
                    found[kind] = text
                    print(f"\n{shown(case)}", *(line[:600] for line in text.splitlines()), sep="\n", flush=True)

        examples()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--only")
    parser.add_argument("--seed", type=int, default=0, help="another one, other examples")
    parser.add_argument("--inside", action="store_true", help="run here, not in a process of its own")
    given = parser.parse_args()
    if given.inside:
        found = {}
        count = fuzz(given.minutes, given.only, given.seed, found)
        print(f"\n{count} examples, {len(found)} kinds of difference")
        return 1 if found else 0
    command = [sys.executable, __file__, "--inside", "--minutes", str(given.minutes), "--seed", str(given.seed), *(["--only", given.only] if given.only else [])]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1) or "Traceback (most recent call last)" in done.stderr:
        print(f"crashed ({done.returncode}) in: {done.stderr.rpartition(chr(13))[2][-2000:]}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
