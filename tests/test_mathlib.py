"""Elementary functions in IR: accuracy against higher precision, special values, and that loops over them become vectors."""
import math
import os
import pathlib
import subprocess
import sys

import numpy
import pytest

from strided.kernels import jit, mathlib, mathlib_wide, native

IR = {"f32": "float", "f64": "double"}
NUMPY = {"f32": numpy.float32, "f64": numpy.float64}


def loop(name, kind):
    """A kernel that applies the function to arrays: slots result, operands…, count."""
    arity = 2 if name in mathlib.BINARY else 1
    ir = IR[kind]
    loads = "\n".join(f"  %p{k} = getelementptr {ir}, ptr %a{k}, i64 %i\n  %x{k} = load {ir}, ptr %p{k}" for k in range(arity))
    slots = "\n".join(f"  %s{k} = getelementptr i64, ptr %slots, i64 {k + 1}\n  %a{k} = load ptr, ptr %s{k}" for k in range(arity))
    values = ", ".join(f"{ir} %x{k}" for k in range(arity))
    return mathlib.definitions([name], kind) + f"""
define void @kernel(ptr %desc, ptr %slots, i64 %part, i64 %parts) #0 {{
entry:
  %out = load ptr, ptr %slots
{slots}
  %sn = getelementptr i64, ptr %slots, i64 {arity + 1}
  %n = load i64, ptr %sn
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{loads}
  %y = call {ir} @m_{name}_{kind}({values})
  %q = getelementptr {ir}, ptr %out, i64 %i
  store {ir} %y, ptr %q
  %j = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
attributes #0 = {{ {jit.ATTRIBUTES} }}
"""


def apply(name, kind, *arrays):
    text = loop(name, kind)
    address = jit.compile_kernel(("test mathlib", text), lambda: text)  # the text is the key: the cache on disk does not know this file's versions
    arrays = [numpy.ascontiguousarray(a, NUMPY[kind]) for a in arrays]
    out = numpy.empty_like(arrays[0])
    native.launch(native.pack_desc(address, len(arrays) + 2), out.ctypes.data, *(a.ctypes.data for a in arrays), out.size)
    return out


def ulps(found, exact, kind):
    """Distance in units of the last place of the exact value; infinite where a special value or a sign is wrong."""
    dtype = NUMPY[kind]
    with numpy.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        unit = numpy.spacing(numpy.abs(rounded)).astype(numpy.longdouble)
        distance = numpy.abs(found.astype(numpy.longdouble) - exact) / numpy.where(numpy.isfinite(unit), unit, 1)
    same = (found == rounded) & (numpy.signbit(found) == numpy.signbit(rounded)) | numpy.isnan(found) & numpy.isnan(rounded)
    special = ~numpy.isfinite(rounded) | (rounded == 0)
    distance = numpy.where(same & special, 0, distance)
    return numpy.where(numpy.isnan(distance) | (numpy.signbit(found) != numpy.signbit(rounded)) & ~numpy.isnan(rounded), numpy.inf, distance)


SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1, -1, 2, -2, 0.5, -0.5, 1e-45, -1e-45, 2.0**-126, 3.4028234e38, -3.4028234e38, 88.72284, 88.72283, -103.97, -104, 17, 1e5, -1e7]


def samples(step=40009):
    """Every step-th float32 bit pattern, special values, and dense stretches where the functions turn."""
    rng = numpy.random.default_rng(0)
    patterns = numpy.arange(0, 2**32, step, dtype=numpy.uint64).astype(numpy.uint32).view(numpy.float32)
    dense = [rng.uniform(-a, a, 5000) for a in (1, 2, 5, 12, 90, 1000, 1e5)]
    near_one = 1 + rng.uniform(-1e-3, 1e-3, 5000)
    return numpy.concatenate([a.astype(numpy.float32) for a in (patterns, numpy.array(SPECIAL), *dense, near_one)])


NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh", "atan2": "arctan2", "pow": "power"}
BY_MATH = {"erf": math.erf, "erfc": math.erfc, "lgamma": lambda v: math.inf if v == -math.inf or v <= 0 and v == math.floor(v) else math.lgamma(v)}


def reference(name, *arrays):
    wide = [a.astype(numpy.float64) for a in arrays]
    if name in BY_MATH:
        return numpy.array([BY_MATH[name](v) for v in wide[0]], numpy.longdouble)
    with numpy.errstate(all="ignore"):
        if name == "pow":
            wide = [a.astype(numpy.longdouble) for a in wide]
        return getattr(numpy, NAMES.get(name, name))(*wide).astype(numpy.longdouble)


OTHERWISE = {"erfinv", "digamma", "trigamma", "ndtr"}  # held to errors of another kind below
ONE_OPERAND = sorted(set(mathlib.FLOAT) - mathlib.BINARY - OTHERWISE)


@pytest.mark.parametrize("name", ONE_OPERAND)
def test_float32(name):
    x = samples()
    distance = ulps(apply(name, "f32", x), reference(name, x), "f32")
    worst = distance.argmax()
    assert distance[worst] <= 2, (x[worst], distance[worst])


WIDE = pytest.mark.skipif(not jit.host().features.issuperset(mathlib_wide.NEEDS), reason="functions on sixteen lanes are AVX-512's")


@WIDE
@pytest.mark.parametrize("name, most", [("exp", 1.02), ("exp2", 1.02), ("erf", 0.7), ("tanh", 0.8)])
def test_float32_on_sixteen_lanes(name, most):
    """Tighter than the common functions; those are compiled here as for a host without such instructions. An element's value is the same wherever it lies."""
    x = samples()
    found, exact = apply(name, "f32", x), reference(name, x)
    distance = numpy.where(numpy.abs(exact) > 1e-30, ulps(found, exact, "f32"), 0)
    assert distance.max() <= most
    for n in (1, 7, 16, 33):
        pieces = numpy.concatenate([apply(name, "f32", x[i : i + n]) for i in range(0, 300, n)])
        assert (pieces[:300].view("u4") == found[:300].view("u4")).all()


@WIDE
@pytest.mark.parametrize("name", sorted(set(mathlib_wide.FUNCTIONS) - OTHERWISE))
def test_float32_without_sixteen_lanes(name, monkeypatch):
    host = jit.host()
    monkeypatch.setattr(jit, "_host", jit.Host(host.triple, host.cpu, ",".join(sorted(f for f in host.features if not f.startswith("+avx512")))))
    x = samples()
    assert "<16 x float>" not in mathlib.definitions([name], "f32")
    assert ulps(apply(name, "f32", x), reference(name, x), "f32").max() <= 2


@pytest.mark.parametrize("lanes", ["as they are", "eight"])
def test_ndtr(lanes, monkeypatch):
    """Within one or two units in the last place of numbers from 1/2 to 1, exactly 0 and 1 far out, where its product with x must be: gelu is made of it."""
    if lanes == "eight":
        host = jit.host()
        monkeypatch.setattr(jit, "_host", jit.Host(host.triple, host.cpu, ",".join(sorted(f for f in host.features if not f.startswith("+avx512")))))
    for kind, type in (("f32", numpy.float32), ("f64", numpy.float64)):
        x = numpy.concatenate([numpy.linspace(-9, 9, 30_011), numpy.random.default_rng(3).standard_normal(20_000)]).astype(type)
        exact = numpy.array([math.erfc(-v * math.sqrt(0.5)) / 2 for v in x.astype(numpy.float64)])
        assert numpy.abs(apply("ndtr", kind, x) - exact).max() <= numpy.finfo(type).eps / (1 if lanes == "eight" else 2)
        ends = apply("ndtr", kind, numpy.array([-math.inf, -1e30, -50, 0, 50, 1e30, math.inf, math.nan], type))
        assert ends[:7].tolist() == [0, 0, 0, 0.5, 1, 1, 1] and math.isnan(ends[7])


def test_wider_neighbours():
    """Beside float64 fewer elements go together; their values are the same."""
    from strided import dtypes
    from strided.kernels import expr as E
    from strided.kernels.map import build_map
    from strided.layout import Layout

    x, zero, out = numpy.linspace(-6, 6, 1003, dtype=numpy.float32), numpy.zeros(1003), numpy.empty(1003)
    line = Layout.contiguous((1003,))
    desc = build_map(E.tanh(E.param(0)) + E.param(1), [(dtypes.float64, line)], [(dtypes.float32, line), (dtypes.float64, line)])
    native.launch(desc, out.ctypes.data, x.ctypes.data, zero.ctypes.data)
    assert (out == apply("tanh", "f32", x)).all()


@pytest.mark.parametrize("name", sorted(set(mathlib.DOUBLE) - mathlib.BINARY - OTHERWISE))
def test_float64(name):
    rng = numpy.random.default_rng(2)
    patterns = rng.integers(0, 2**64, 3000, dtype=numpy.uint64).view(numpy.float64)
    dense = [rng.uniform(-a, a, 3000) for a in (1, 2, 6, 30, 720)]
    x = numpy.concatenate([patterns, SPECIAL, [5e-324, 2.0**-1022, 1.7976931348623157e308, 709.78, 709.79, -745, -746], *dense, 10 ** rng.uniform(-18, 0, 3000)])
    if name in BY_MATH:
        exact = numpy.array([BY_MATH[name](v) for v in x], numpy.longdouble)
    else:
        with numpy.errstate(all="ignore"):
            exact = getattr(numpy, NAMES.get(name, name))(x.astype(numpy.longdouble))  # 64 bits of significand on x86, 53 elsewhere
    distance = ulps(apply(name, "f64", x), exact, "f64")
    worst = distance.argmax()
    assert distance[worst] <= 2.5, (x[worst], distance[worst])


@pytest.mark.parametrize("name", sorted(mathlib.LIBM - mathlib.BINARY))
def test_float64_by_libm(name):
    x = numpy.linspace(0.1, 20, 50)
    assert apply(name, "f64", x) == pytest.approx([getattr(math, name)(v) for v in x], rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("kind", ("f32", "f64"))
def test_digamma(kind):
    """Known values, the recurrence ψ(x+1) = ψ(x) + 1/x, the reflection, and the poles."""
    euler = 0.5772156649015329
    x = numpy.array([1, 0.5, 0.25, 2, 10])
    known = [-euler, -euler - 2 * math.log(2), -euler - math.pi / 2 - 3 * math.log(2), 1 - euler, sum(1 / k for k in range(1, 10)) - euler]
    assert apply("digamma", kind, x) == pytest.approx(known, rel=1e-6 if kind == "f32" else 1e-14)
    if kind == "f64":
        x = numpy.linspace(-9.9, 30, 397) + 0.0137
        assert apply("digamma", kind, x + 1) == pytest.approx(apply("digamma", kind, x) + 1 / x, abs=1e-12)
    special = apply("digamma", kind, numpy.array([0.0, -0.0, -1, math.inf, -math.inf, math.nan]))
    assert special[0] == -math.inf and special[1] == math.inf and numpy.isnan(special[[2, 4, 5]]).all() and special[3] == math.inf


@pytest.mark.parametrize("kind", ("f32", "f64"))
def test_trigamma(kind):
    """Known values, the recurrence ψ1(x) = ψ1(x+1) + 1/x², the reflection."""
    x = numpy.array([1, 0.5, 0.25, 2, 10, -0.5, 1e4])
    squares = math.pi**2 / 6
    known = [squares, 3 * squares, 17.197329154507110, squares - 1, squares - sum(1 / k**2 for k in range(1, 10)), 3 * squares + 4, 1.0000500016666667e-4]
    assert apply("trigamma", kind, x) == pytest.approx(known, rel=1e-6 if kind == "f32" else 1e-14)
    x = numpy.linspace(-9.9, 30, 397) + 0.0137
    exact = apply("trigamma", "f64", x)
    assert apply("trigamma", "f64", x + 1) + 1 / x**2 == pytest.approx(exact, rel=1e-12)
    assert apply("trigamma", "f32", x) == pytest.approx(exact, rel=2e-4)
    special = apply("trigamma", kind, numpy.array([0.0, math.inf, math.nan]))
    assert special[0] == math.inf and special[1] == 0 and numpy.isnan(special[2])


@pytest.mark.parametrize("name", ("atan2", "pow", "fmod"))
def test_float32_two_operands(name):
    rng = numpy.random.default_rng(1)
    grid = numpy.meshgrid(SPECIAL, SPECIAL)
    random = [rng.integers(0, 2**32, 20000, dtype=numpy.uint64).astype(numpy.uint32).view(numpy.float32) for _ in range(2)]
    moderate = rng.uniform(0, 10, 20000), rng.uniform(-30, 30, 20000)
    whole = rng.integers(-20, 20, 20000), rng.integers(-9, 9, 20000)
    x, y = (numpy.concatenate([a.astype(numpy.float32) for a in (grid[k].ravel(), random[k], moderate[k], whole[k])]) for k in range(2))
    distance = ulps(apply(name, "f32", x, y), reference(name, x, y), "f32")
    worst = distance.argmax()
    assert distance[worst] <= {"atan2": 2, "pow": 0.51, "fmod": 0}[name], (x[worst], y[worst], distance[worst])


def test_exact_powers():
    x = numpy.arange(1, 3000, dtype=numpy.float32)
    assert (apply("pow", "f32", x, numpy.full_like(x, 2)) == x * x).all()
    assert (apply("pow", "f32", x, numpy.full_like(x, 0.5)) == numpy.sqrt(x)).all()
    assert (apply("exp2", "f32", numpy.arange(-149, 128)) == numpy.ldexp(numpy.float32(1), numpy.arange(-149, 128))).all()
    assert (apply("log2", "f32", numpy.ldexp(numpy.float32(1), numpy.arange(-149, 128))) == numpy.arange(-149, 128)).all()


@pytest.mark.parametrize("kind", ("f32", "f64"))
def test_erfinv(kind):
    y = numpy.concatenate([numpy.linspace(-3, 3, 3001), [0.0, 1e-8, -1e-5]])
    if kind == "f64":
        x = numpy.array([math.erf(v) for v in y])
        slope = numpy.exp(-y * y) * 2 / math.sqrt(math.pi)
        allowed = 8 * numpy.spacing(numpy.abs(y)) + 2 * numpy.spacing(numpy.abs(x)) / slope
    else:
        x = numpy.array([math.erf(v) for v in y]).astype(numpy.float32)
        y = apply("erfinv", "f64", x.astype(numpy.float64))
        allowed = 2 * numpy.spacing(numpy.abs(y).astype(numpy.float32))
    assert (numpy.abs(apply("erfinv", kind, x).astype(numpy.float64) - y) <= allowed).all()
    special = apply("erfinv", kind, numpy.array([1.0, -1, 1.5, math.nan, -0.0]))
    assert special[0] == math.inf and special[1] == -math.inf and numpy.isnan(special[2:4]).all() and numpy.signbit(special[4])


@pytest.mark.parametrize("name", sorted(set(mathlib.FLOAT) - {"fmod"}))
def test_loops_become_vectors(name):
    """No call is left in the loop, and on x86 it works on the host's widest registers."""
    text = jit.assembly(loop(name, "f32"))
    assert not [line for line in text.splitlines() if "\tcall" in line or "\tbl\t" in line]
    if jit.host().arch == "x86_64" and jit.host().vector_bits > 128:
        assert ("zmm" if jit.host().vector_bits == 512 else "ymm") in text


def test_definitions():
    text = mathlib.definitions(["tanh", "exp", "exp"], "f32")
    assert text.count("define internal float @m_exp_f32(") == 1 and text.count("define internal float @m_tanh_f32(") == 1
    assert text == mathlib.definitions({"exp", "tanh"}, "f32")
    with pytest.raises(NotImplementedError, match="no f32 definition of 'zeta'"):
        mathlib.definitions(["zeta"], "f32")


@pytest.mark.skipif(sys.platform != "linux", reason="perf is Linux's")
def test_perf_is_told_the_names_of_kernels(tmp_path):
    """Linux's perf looks up compiled code in /tmp/perf-PID.map: one line an entry point, its address, its size and the kernel's key."""
    code = "import os, strided; strided.set_num_threads(1); strided.ones(70000).add_(strided.ones(70000)); print(os.getpid())"
    where = dict(os.environ, STRIDED_PERF_MAP="1", STRIDED_CACHE_DIR=str(tmp_path))
    pid = subprocess.run([sys.executable, "-c", code], env=where, capture_output=True, text=True, check=True).stdout.strip()
    path = pathlib.Path(f"/tmp/perf-{pid}.map")
    lines = [line.split(" ", 3) for line in path.read_text().splitlines()]
    path.unlink()
    assert all(int(address, 16) > 4096 and int(size, 16) > 0 for address, size, _, _ in lines)
    assert any("('map', 'param:0;param:1;add 0 1>2'" in name for *_, name in lines)
