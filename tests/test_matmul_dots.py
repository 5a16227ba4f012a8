"""Products by instructions that multiply groups of elements along k: those that this host has run as they are; the others are emulated, so that all but the instruction itself
(packs, tails, tiles, sums, epilogues, the walk) is tested anywhere, and compiled for hosts that have them."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import strided as torch
from strided import dtypes
from strided.kernels import gemm_dots, gemm_ir, gemm_pack, jit, matmul, native
from strided.kernels.gemm_dots import DOTS
from strided.kernels.gemm_text import Function, vector
from test_matmul import EPSILON, NUMPY, layout, operand, values

SHAPES = [(14, 32, 16), (15, 33, 17), (29, 65, 101), (40, 50, 900), (5, 130, 67), (64, 200, 3), (70, 31, 1), (33, 64, 0), (100, 40, 2100)]
WIDE = gemm_pack.Tile(16, (14, 8, 4), 2, True, True, True)
HALF = gemm_pack.Tile(8, (6, 4), 2, True, True, False)
NARROW = gemm_pack.Tile(4, (8, 4), 3, True, True, False)
TILES = gemm_pack.Tile(16, (32, 16), 2, True, True, True)
HOSTS = {  # instruction: its register tile, triple, CPU, what the assembly must contain
    "dpbf16ps": (WIDE, "x86_64-unknown-linux-gnu", "znver4", "vdpbf16ps"),
    "vpdpbusd": (WIDE, "x86_64-unknown-linux-gnu", "znver4", "vpdpbusd"),
    "vpdpwssd": (WIDE, "x86_64-unknown-linux-gnu", "znver4", "vpdpwssd"),
    "pmaddwd": (HALF, "x86_64-unknown-linux-gnu", "haswell", "vpmaddwd"),
    "tdpbf16ps": (TILES, "x86_64-unknown-linux-gnu", "sapphirerapids", "tdpbf16ps"),
    "tdpbssd": (TILES, "x86_64-unknown-linux-gnu", "sapphirerapids", "tdpbssd"),
    "tdpbuud": (TILES, "x86_64-unknown-linux-gnu", "sapphirerapids", "tdpbuud"),
    "tdpfp16ps": (TILES, "x86_64-unknown-linux-gnu", "graniterapids", "tdpfp16ps"),
    "bfdot": (NARROW, "aarch64-unknown-linux-gnu", "neoverse-v1", "bfdot"),
    "bfmmla": (NARROW, "arm64-apple-darwin", "apple-m2", "bfmmla"),
    "sdot": (NARROW, "arm64-apple-darwin", "apple-m1", "sdot"),
    "smmla": (NARROW, "aarch64-unknown-linux-gnu", "neoverse-v1", "smmla"),
}


def tile_of(name):
    return HOSTS[name][0]._replace(dot=name)


def names_of(name):
    """Dtypes (operands, result) that are tried with an instruction."""
    floats = {"bf16": [("bfloat16", "bfloat16"), ("bfloat16", "float32")], "f16": [("float16", "float16"), ("float16", "float32")]}
    whole = {"i8": [("int8", "int8"), ("int8", "int32")], "u8": [("uint8", "uint8"), ("uint8", "int32")], "i16": [("int16", "int16"), ("uint8", "uint8"), ("int8", "int32")]}
    return (floats | whole)[DOTS[name].element]


# ---- emulation --------------------------------------------------------------------------------------------------------------


def number(f, element, value, lanes):
    """An element of a pack as float or i32."""
    i16, i32, f32 = (vector(e, lanes) for e in ("i16", "i32", "float"))
    if element == "bf16":
        wide = f.op(f"zext {i16} {value} to {i32}")
        wide = f.op(f"shl {i32} {wide}, {f.constant('i32', 16, lanes)}")
        return flushed(f, f.op(f"bitcast {i32} {wide} to {f32}"), lanes)
    if element == "f16":
        return f.decode("float16", value, lanes, False)
    return f.op(f"{'zext' if element == 'u8' else 'sext'} {vector('i' + element[1:], lanes)} {value} to {i32}")


def flushed(f, value, lanes):
    """Subnormal numbers become zeros of their sign."""
    i1, i32, f32 = (vector(e, lanes) for e in ("i1", "i32", "float"))
    bits = f.op(f"bitcast {f32} {value} to {i32}")
    exponent = f.op(f"and {i32} {bits}, {f.constant('i32', 0x7F800000, lanes)}")
    normal = f.op(f"icmp ne {i32} {exponent}, {f.constant('i32', 0, lanes)}")
    sign = f.op(f"and {i32} {bits}, {f.constant('i32', -0x80000000, lanes)}")
    kept = f.op(f"select {i1} {normal}, {i32} {bits}, {i32} {sign}")
    return f.op(f"bitcast {i32} {kept} to {f32}")


def added(f, dot, total, a, b, lanes):
    """total + a * b: rounded to nearest even after each, what is subnormal flushed."""
    if dot.element not in ("bf16", "f16"):
        return f.plus("i32", lanes, total, f.times("i32", lanes, a, b))
    return flushed(f, f.plus("float", lanes, total, flushed(f, f.times("float", lanes, a, b), lanes)), lanes)


def define(name, result, arguments, f, value):
    body = "\n".join(["entry:", *f.slots, *f.body, f"  ret {result} {value}".rstrip()])
    return f"define internal {result} @{name}({arguments}) nounwind noinline {{\n{body}\n}}\n"


def emulated_lanes(dot, lanes, name, kinds):
    """An instruction on vectors as an IR function; `kinds` are its arguments' types: sums (which pmaddwd has none of) and operands."""
    f = Function("f", "")
    bits = dot.bits
    count = lanes * dot.group if dot.form == "lanes" else 2 * dot.group
    raw = vector(f"i{bits}", count)
    a, b = (f.op(f"bitcast {kind} %{v} to {raw}") if kind != raw else f"%{v}" for v, kind in zip("ab", kinds[-2:]))
    total, wide = ("%c", kinds[0]) if len(kinds) == 3 else ("zeroinitializer", vector("i32", lanes))
    for t in reversed(range(dot.group)):
        left, right = [], []
        for lane in range(lanes):
            left.append(lane * dot.group + t if dot.form == "lanes" else lane // 2 * dot.group + t)
            right.append(lane * dot.group + t if dot.form == "lanes" else lane % 2 * dot.group + t)
        x, y = (f.op(f"shufflevector {raw} {v}, {raw} poison, <{lanes} x i32> <{', '.join(f'i32 {i}' for i in order)}>") for v, order in ((a, left), (b, right)))
        x = number(f, "u8" if dot.moved else dot.element, x, lanes)
        total = added(f, dot, total, x, number(f, dot.element, y, lanes), lanes)
    return define(name, wide, ", ".join(f"{kind} %{v}" for v, kind in zip("cab"[-len(kinds) :], kinds)), f, total)


def emulated_tiles(dot):
    """The tile instructions over tiles in memory, with rows and bytes a row as they are configured (none: nothing happens)."""
    acc = "float" if dot.element in ("bf16", "f16") else "i32"
    text = ["@tiles = internal global [8192 x i8] zeroinitializer, align 64", "@config = internal global [64 x i8] zeroinitializer, align 64", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"]

    def at(f, tile, offset=0):
        return f.at("i8", "@tiles", f.add(f.mul(f.op(f"zext i8 {tile} to i64"), 1024), offset))

    def size(f, tile, what):
        wide = f.op(f"zext i8 {tile} to i64")
        if what == "rows":
            return f.op(f"zext i8 {f.load('i8', f.at('i8', '@config', f.add(wide, 48)))} to i64")
        return f.op(f"zext i16 {f.load('i16', f.at('i8', '@config', f.add(f.mul(wide, 2), 16)))} to i64")

    def copy(to, source, count):
        return f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {count}, i1 false)"

    f = Function("f", "")
    f.do(copy("@config", "%p", 64))
    text.append(define("ldtilecfg", "void", "ptr %p", f, ""))
    f = Function("f", "")
    for tile in range(0, 64, 8):
        f.store("i64", 0, f.at("i8", "@config", tile))
    text.append(define("tilerelease", "void", "", f, ""))
    f = Function("f", "")
    with f.loop(0, size(f, "%t", "rows")) as r, f.loop(0, size(f, "%t", "bytes")) as c:
        f.store("i8", 0, at(f, "%t", f.add(f.mul(r, 64), c)))
    text.append(define("tilezero", "void", "i8 %t", f, ""))
    f = Function("f", "")
    with f.loop(0, size(f, "%t", "rows")) as r:
        f.do(copy(at(f, "%t", f.mul(r, 64)), f.at("i8", "%p", f.mul(r, "%s")), size(f, "%t", "bytes")))
    text.append(define("tileloadd64", "void", "i8 %t, ptr %p, i64 %s", f, ""))
    f = Function("f", "")
    with f.loop(0, size(f, "%t", "rows")) as r:
        f.do(copy(f.at("i8", "%p", f.mul(r, "%s")), at(f, "%t", f.mul(r, 64)), size(f, "%t", "bytes")))
    text.append(define("tilestored64", "void", "i8 %t, ptr %p, i64 %s", f, ""))
    f = Function("f", "")
    element = f"i{dot.bits}"
    with f.loop(0, size(f, "%d", "rows")) as m, f.loop(0, f.div(size(f, "%a", "bytes"), 4)) as k, f.loop(0, f.div(size(f, "%d", "bytes"), 4)) as n:
        place = at(f, "%d", f.add(f.mul(m, 64), f.mul(n, 4)))
        total = f.load(acc, place)
        for t in range(dot.group):
            x = f.load(element, f.at(element, at(f, "%a", f.add(f.mul(m, 64), f.mul(k, 4))), t))
            y = f.load(element, f.at(element, at(f, "%b", f.add(f.mul(k, 64), f.mul(n, 4))), t))
            total = added(f, dot, total, number(f, dot.element, x, 1), number(f, dot.element, y, 1), 1)
        f.store(acc, total, place)
    text.append(define(dot.name, "void", "i8 %d, i8 %a, i8 %b", f, ""))
    return "\n".join(text)


def emulated(text, dot, tile):
    """The module with functions in the place of the host's instructions."""
    lines, given = [], []
    for line in text.split("\n"):
        name = line.partition("@")[2].partition("(")[0]
        if line.startswith("declare") and ("llvm.aarch64" in name or "llvm.x86" in name):
            if dot.form == "tiles":
                given = ["tiles"]
            else:
                kinds = [k.strip() for k in line.partition("(")[2].rstrip(")").split(",")]
                given.append(emulated_lanes(dot, tile.width, name.replace("llvm.", "emulated."), kinds))
        else:
            lines.append(line.replace("@llvm.aarch64.", "@emulated.aarch64.").replace("@llvm.x86.", "@" if dot.form == "tiles" else "@emulated.x86."))
    assert given
    return "\n".join([emulated_tiles(dot), *lines] if dot.form == "tiles" else [*given, *lines])


@pytest.fixture
def instruction(monkeypatch):
    """Makes products go by one instruction, emulated."""
    before = native.get_num_threads()

    def choose(name):
        tile = tile_of(name)
        if DOTS[name].form == "tiles":
            native.set_num_threads(1)  # there is one set of emulated tiles
        monkeypatch.setattr(matmul, "dot_tile", lambda a, b, problem: tile if a in DOTS[name].dtypes and b in DOTS[name].dtypes else None)
        original = matmul.__dict__["_compiled"]

        def compiled(*key, text):
            if key[0] != "packed" or not key[1].dot:
                return original(*key, text=text)
            whole = emulated(text(), DOTS[name], tile)
            return jit.compile_kernel(("emulated", whole), lambda: whole)  # the text is the key: the cache on disk does not know this file's versions

        monkeypatch.setattr(matmul, "_compiled", compiled)

    yield choose
    native.set_num_threads(before)


# ---- products ---------------------------------------------------------------------------------------------------------------


def multiply(a, b, result, epilogue="", added=None):
    source, target = (getattr(dtypes, {np.dtype(t): n for n, t in ((n, np.dtype(t)) for n, t in NUMPY.items())}[x]) for x in (a.dtype, np.dtype(NUMPY[result])))
    out = np.full((*a.shape[:-1], b.shape[-1]), 77, NUMPY[result])
    kind = float if "float" in result else int
    slots, options = [out.ctypes.data, a.ctypes.data, b.ctypes.data], {}
    if epilogue:
        options["added"] = (target, layout(added))
        slots += [added.ctypes.data, kind(2), kind(3)]
    native.launch(matmul.build_matmul((target, layout(out)), (source, layout(a)), (source, layout(b)), **options), *slots)
    return out


def check(a, b, name, result, epilogue=""):
    added = np.broadcast_to(values(np.random.default_rng(0), (b.shape[-1],), result), (*a.shape[:-1], b.shape[-1])) if epilogue else None
    out = multiply(a, b, result, epilogue, added)
    wide = np.float64 if "float" in name else np.int64
    expected, size = a.astype(wide) @ b.astype(wide), np.abs(a.astype(wide)) @ np.abs(b.astype(wide))
    if epilogue:
        expected, size = 2 * expected + 3 * added.astype(wide), 2 * size + 3 * np.abs(added.astype(wide))
    if wide is np.int64:
        np.testing.assert_array_equal(out, expected.astype(NUMPY[result]))
    else:
        accumulated = EPSILON["float32"] * (a.shape[-1] + 8) * size
        assert (np.abs(out.astype(np.float64) - expected) <= EPSILON[result] * np.abs(expected) * 1.01 + accumulated + 1e-30).all()


@pytest.mark.parametrize("name", HOSTS)
def test_emulated_products(name, instruction):
    instruction(name)
    rng = np.random.default_rng(1)
    for (source, result), epilogue in zip(names_of(name), ("add", "")):
        for (m, n, k), forms in zip(SHAPES, itertools.cycle(("nn", "nt", "tn", "tt", "ss"))):
            check(operand(rng, (), m, k, forms[0], source), operand(rng, (), k, n, forms[1], source), source, result, epilogue)


@pytest.mark.parametrize("name", ["dpbf16ps", "bfmmla", "tdpbf16ps", "vpdpbusd", "smmla"])
@pytest.mark.parametrize("forms", ["nn", "nt", "tn", "tt", "ns", "sn"])
def test_emulated_operands_of_any_strides_and_batches(name, forms, instruction):
    instruction(name)
    rng = np.random.default_rng(2)
    source, result = names_of(name)[1]
    for m, n, k in [(50, 70, 75), (33, 129, 530), (17, 33, 2050)]:
        check(operand(rng, (), m, k, forms[0], source), operand(rng, (), k, n, forms[1], source), source, result)
    a, b = operand(rng, (2, 3), 20, 37, forms[0], source), operand(rng, (2, 3), 37, 41, forms[1], source)
    check(a, b, source, result, "add")


@pytest.mark.parametrize("name", ["dpbf16ps", "tdpbf16ps"])
def test_float32_rounded_to_bfloat16_goes_by_them_too(name, instruction):
    instruction(name)
    rng = np.random.default_rng(3)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        a, b = operand(rng, (), 37, 75, "n", "float32"), operand(rng, (), 75, 61, "t", "float32")
        rounded = [x.astype(ml_dtypes.bfloat16).astype(np.float64) for x in (a, b)]
        a[3, 5] = np.frombuffer(np.int32(0x7F800001).tobytes(), np.float32)[0]  # a NaN whose upper half is an infinity's
        out = multiply(a, b, "float32")
        np.testing.assert_allclose(np.delete(out, 3, 0), np.delete(rounded[0] @ rounded[1], 3, 0), rtol=1e-4, atol=1e-4)
        assert np.isnan(out[3]).all()
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("name", ["dpbf16ps", "bfmmla", "tdpbf16ps"])
def test_subnormal_numbers_count_as_zero_and_others_pass_through(name, instruction):
    instruction(name)
    a, b = np.ones((20, 40), ml_dtypes.bfloat16), np.ones((40, 40), ml_dtypes.bfloat16)
    a[1, 3] = 2.0**-130  # subnormal
    b[3, :] = 2.0**120
    a[2, 0], a[4, 1], a[4, 2] = np.inf, np.inf, -np.inf
    out = multiply(a, b, "float32")
    assert (out[1] == 39).all() and (out[0] == 2.0**120).all() and np.isinf(out[2]).all() and np.isnan(out[4]).all()


@pytest.mark.parametrize("name", ["dpbf16ps", "tdpbf16ps"])
def test_operators_and_epilogues_run_on_them(name, instruction):
    instruction(name)
    torch.manual_seed(0)
    x, w, bias = (torch.randn(*s, dtype=torch.bfloat16) for s in ((3, 37, 45), (70, 45), (70,)))
    exact = x.double() @ w.double().t() + bias.double()
    assert ((torch.nn.functional.linear(x, w, bias).double() - exact).abs() <= 2.0**-8 * exact.abs() + 1e-3).all()
    step = torch.compile(lambda x, w, bias: torch.nn.functional.gelu(torch.nn.functional.linear(x, w, bias)))
    for _ in range(3):
        out = step(x, w, bias)
    np.testing.assert_allclose(out.double().numpy(), torch.nn.functional.gelu(exact).numpy(), rtol=0.02, atol=0.02)


# ---- this host, and others --------------------------------------------------------------------------------------------------


def test_this_hosts_integers_go_by_its_instruction():
    rng = np.random.default_rng(5)
    chosen = gemm_dots.dot_for("int8", "int8", jit.host(), True)
    if chosen is None:
        pytest.skip("this host has no such instruction")
    for m, n, k in SHAPES:
        for forms in ("nn", "tt"):
            check(operand(rng, (), m, k, forms[0], "int8"), operand(rng, (), k, n, forms[1], "int8"), "int8", "int32")
    lowest = np.full((70, 300), -128, np.int8)
    np.testing.assert_array_equal(multiply(lowest, lowest.T, "int32"), 128 * 128 * 300)
    before = native.get_num_threads()
    try:
        native.set_num_threads(3)
        check(operand(rng, (), 130, 301, "n", "int8"), operand(rng, (), 301, 257, "n", "int8"), "int8", "int32", "add")
    finally:
        native.set_num_threads(before)


@pytest.mark.parametrize("name", HOSTS)
def test_they_compile_for_hosts_that_have_them(name):
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    tile, triple, cpu, expected = HOSTS[name]
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2)
    source, result = names_of(name)[0]
    kind = gemm_pack.Kind(source, source, result, result, "add", tile_of(name))
    module = llvm.parse_assembly(gemm_ir.gemm_module(kind, 'nounwind "prefer-vector-width"="512"'))
    module.triple = triple
    assembly = machine.emit_assembly(module)
    assert expected in assembly
    if DOTS[name].form == "tiles":
        assert assembly.count("ldtilecfg") == assembly.count("tilerelease") == 1  # the kernel's own, around all of its work


class Host:
    """A host by its features."""

    def __init__(self, arch, bits, *features):
        self.arch, self.vector_bits, self.features = arch, bits, frozenset(features)


@pytest.mark.parametrize("granted", [True, False])
def test_the_choice_follows_the_hosts_features(granted, monkeypatch):
    monkeypatch.setattr(gemm_dots, "permitted", lambda: granted)
    sapphire = Host("x86_64", 512, "+amx-tile", "+amx-bf16", "+amx-int8", "+avx512bf16", "+avx512vnni", "+avx512bw")
    choice = lambda dtype, host, tiles=True, other=None: getattr(gemm_dots.dot_for(dtype, other or dtype, host, tiles), "name", None)
    assert choice("bfloat16", sapphire) == ("tdpbf16ps" if granted else "dpbf16ps")
    assert choice("int8", sapphire) == ("tdpbssd" if granted else "vpdpbusd")
    assert choice("uint8", sapphire) == ("tdpbuud" if granted else "vpdpwssd")
    assert choice("bfloat16", sapphire, tiles=False) == "dpbf16ps"
    assert choice("float32", sapphire) is choice("float16", sapphire) is choice("bfloat16", sapphire, other="float16") is None
    assert choice("float32_bf16", sapphire, False) == "dpbf16ps"
    assert choice("bfloat16", Host("x86_64", 512, "+avx512vnni", "+avx512bw")) is None
    assert choice("int16", Host("x86_64", 512, "+avx512bw")) == "pmaddwd"
    assert choice("int8", Host("x86_64", 256, "+avx2", "+avxvnni")) == "vpdpbusd"
    assert choice("int8", Host("x86_64", 256, "+avx2")) == "pmaddwd"
    assert choice("int8", Host("x86_64", 128)) is None
    assert choice("bfloat16", Host("aarch64", 128, "+bf16", "+i8mm", "+dotprod")) == "bfmmla"
    assert choice("int8", Host("aarch64", 128, "+bf16", "+i8mm", "+dotprod")) == "smmla"
    assert choice("int8", Host("aarch64", 128, "+dotprod")) == "sdot"


def test_arm_features_are_those_of_every_core(tmp_path, monkeypatch):
    monkeypatch.setattr(jit.sys, "platform", "linux")
    listing = tmp_path / "cpuinfo"
    listing.write_text("processor\t: 0\nFeatures\t: fp asimd asimddp bf16 i8mm\n\nprocessor\t: 1\nFeatures\t: fp asimd asimddp i8mm\n")
    assert jit.arm_features(str(listing)) == {"+dotprod", "+i8mm"}
    listing.write_text("processor : 0\n")
    assert jit.arm_features(str(listing)) == jit.arm_features(str(tmp_path / "none")) == set()


def test_asking_for_the_tile_registers_never_fails():
    assert gemm_dots.permitted() in (True, False)
    assert gemm_dots.permitted() is gemm_dots.permitted()  # asked once


@pytest.mark.parametrize("left", [torch.int8, torch.uint8])
def test_int_mm_keeps_all_bits(left):
    torch.manual_seed(1)
    a, b = torch.randint(-128 if left is torch.int8 else 0, 128, (19, 301)).to(left), torch.randint(-128, 128, (40, 301)).to(torch.int8).t()
    out = torch._int_mm(a, b)
    assert out.dtype is torch.int32 and torch.equal(out.long(), a.long() @ b.long())
    assert torch._int_mm(a[:1], b).tolist() == out[:1].tolist() and torch._int_mm(a[:, :0], b[:0]).sum() == 0
    kept = torch.empty(19, 40, dtype=torch.int32)
    assert torch._int_mm(a, b, out=kept) is kept and torch.equal(kept, out)
    assert torch._int_mm(a.to("meta"), b.to("meta")).shape == (19, 40)


@pytest.mark.parametrize(
    ("shapes", "dtypes_", "sentence"),
    [
        (((2, 3), (3, 2)), ("float32", "int8"), "int_mm_out_cpu: Expected self dtype to be int8 or uint8 but got float"),
        (((2, 3), (3, 2)), ("int8", "float32"), "int_mm_out_cpu: Expected mat2 dtype to be of type int8 but got float"),
        (((2, 3), (2, 2)), ("int8", "int8"), "int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got 3 and 2"),
        (((3,), (3, 2)), ("int8", "int8"), "int_mm_out_cpu: Expected self to be of dimension 2 but got 1"),
    ],
)
def test_int_mm_refuses_in_pytorchs_words(shapes, dtypes_, sentence):
    a, b = (torch.ones(shape, dtype=getattr(torch, dtype)) for shape, dtype in zip(shapes, dtypes_))
    with pytest.raises(RuntimeError) as error:
        torch._int_mm(a, b)
    assert str(error.value).startswith(sentence)
