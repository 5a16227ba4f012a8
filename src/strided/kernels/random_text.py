"""The IR text of random fills: uniform, normal, integers, permutations and what is made of them, as PyTorch's CPU generator defines them.

The definitions are in the comments beside them; the engine they draw from is in random_engine.py, the call that runs a fill in random.py.
"""
from __future__ import annotations

import math
from collections.abc import Callable

from . import jit
from .random import FRESH, HAS_SPARE, NEXT, SPARE, N
from .random_engine import chunks, elementwise, engine_text, kernel, loop, unit, wide
from .scalar import Code, Value, call, fma, intrinsic, polynomial, select, sqrt

# ---- uniform and what is made of it -------------------------------------------------------------------------------------

def uniform_text(kind: str) -> str:
    """u·(high - low) + low, one fused multiply-add; what rounds to `high` becomes `low`. The bounds are rounded to the type first."""
    setup = {"float": "  %a = fptrunc double %low to float\n  %b = fptrunc double %high to float\n  %w = fsub float %b, %a",
             "double": "  %a = fadd double %low, 0x8000000000000000\n  %b = fadd double %high, 0x8000000000000000\n  %w = fsub double %b, %a"}[kind]

    def value(code):
        a, b, w = (Value(code, name, kind) for name in ("%a", "%b", "%w"))
        r = fma(unit(code, kind), w, a)
        return select(r == b, a, r)

    return elementwise("low:double high:double", 1 if kind == "float" else 2, value, setup)


def bernoulli_text(kind: str) -> str:
    """`one` where a 53-bit uniform is below p, else 0. kind: "float", "double" or "i8"."""

    def value(code):
        hit = unit(code, "double") < Value(code, "%p", "double")
        if kind == "i8":
            return hit.to("i8")
        return select(hit, Value(code, "%one", "double").to(kind), 0.0)

    return elementwise("p:double one:double", 2, value)


def _by_double(formula: Callable[..., Value]) -> Callable[[str], str]:
    """The text of a fill that is a formula of a 53-bit uniform and two parameters in float64, rounded to the kind at the end."""

    def text(kind: str) -> str:
        def value(code):
            return formula(unit(code, "double"), Value(code, "%p", "double"), Value(code, "%q", "double")).to(kind)

        return "declare double @log1p(double)\ndeclare double @log(double)\ndeclare double @tan(double)\n" + elementwise("p:double q:double", 2, value)

    return text


# p = -1/rate
exponential_text = _by_double(lambda u, p, q: p * call("log1p", -u))
# p = log(1 - probability), as the caller's libm gives it
geometric_text = _by_double(lambda u, p, q: intrinsic("ceil", call("log", u) / call("log1p", -p)))
# p = median, q = sigma
cauchy_text = _by_double(lambda u, p, q: fma(call("tan", (u - 0.5) * math.pi), q, p))


def integers_text(kind: str) -> str:
    """base + draw mod range. kind "i32": range < 2^28 from one word, by a reciprocal in float64 (exact after one correction); "i64": from two words."""

    def one_word(code):
        code.lines.append("  %word_at = getelementptr inbounds i32, ptr %words, i64 %i_e\n  %word = load i32, ptr %word_at\n  %wide = zext i32 %word to i64")
        v, extent = Value(code, "%wide", "i64"), Value(code, "%range", "i64")
        quotient = (v.to("double") * Value(code, "%inverse", "double")).to("i64")
        r = v - quotient * extent
        r = select(r < 0, r + extent, r)
        return select(r >= extent, r - extent, r) + Value(code, "%first", "i64")

    def two_words(code):
        return code.emit("i64", f"urem i64 {wide(code).name}, %range") + Value(code, "%first", "i64")

    if kind == "i64":
        return elementwise("range:i64 first:i64", 2, two_words)
    return elementwise("range:i64 first:i64", 1, one_word, "  %rangef = sitofp i64 %range to double\n  %inverse = fdiv double 1.0, %rangef")


def bits_text(kind: str) -> str:
    """The draws themselves as int64: one word ("i32") or two ("i64"), masked."""

    def value(code):
        if kind == "i64":
            return wide(code) & Value(code, "%mask", "i64")
        code.lines.append("  %word_at = getelementptr inbounds i32, ptr %words, i64 %i_e\n  %word = load i32, ptr %word_at\n  %wide = zext i32 %word to i64")
        return Value(code, "%wide", "i64") & Value(code, "%mask", "i64")

    return elementwise("mask:i64", 1 if kind == "i32" else 2, value)


# ---- normal -----------------------------------------------------------------------------------------------------------

NORMAL_DECLARATIONS = "".join(f"declare double @{name}(double)\n" for name in ("log", "log1p", "sin", "cos", "exp"))


def _log_cephes(x: Value) -> Value:
    """log of float32 x > 0: Cephes' polynomial, every multiply-add fused."""
    bits = x.bits()
    e = ((bits >> 23) - 0x7F).to("float") + 1.0
    x = ((bits & 0x807FFFFF) | 0x3F000000).floating()
    low = x < 0.707106781186547524
    e = e - select(low, x.code.value(1.0, x.type), 0.0)
    x = (x - 1.0) + select(low, x, 0.0)
    z = x * x
    y = polynomial(
        x, 7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
        3.3333331174e-1,
    )  # fmt: skip
    y = fma(y * x, z, e * -2.12194440e-4)
    y = fma(-z, 0.5, y)
    return fma(e, 0.693359375, x + y)


def _sin_cos_cephes(x: Value) -> tuple[Value, Value]:
    """sin and cos of float32 0 <= x < 2π: Cephes' polynomials, every multiply-add fused."""
    j = ((x * 1.27323954473516).to("i32") + 1) & -2
    y = j.to("float")
    for part in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):
        x = fma(y, part, x)
    z = x * x
    c = polynomial(z, 2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2) * z
    c = fma(c, z, -(z * 0.5)) + 1.0
    s = fma(polynomial(z, -1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1) * z, x, x)
    swap = (j & 2) != 0
    sine, cosine = select(swap, c, s), select(swap, s, c)
    return (sine.bits() ^ ((j & 4) << 29)).floating(), (cosine.bits() ^ ((~(j - 2) & 4) << 29)).floating()


def _block_float(width: int) -> str:
    """Box-Muller on `width`/8 blocks of 16 words at %words + 16·i -> numbers at %out. A block's first 8 give radii, its last 8 angles."""
    vector, blocks = f"<{width} x float>", width // 8
    lanes = ", ".join(f"i32 {k}" for k in range(width))
    lines = []

    def gather(name, half):
        for b in range(blocks):
            lines.append(f"  %{name}p{b} = getelementptr inbounds i32, ptr %from, i64 {16 * b + 8 * half}\n  %{name}{b} = load <8 x i32>, ptr %{name}p{b}, align 4")
        if blocks == 1:
            return f"%{name}0"
        lines.append(f"  %{name} = shufflevector <8 x i32> %{name}0, <8 x i32> %{name}1, <16 x i32> <{lanes}>")
        return f"%{name}"

    code = Code()
    ints = f"<{width} x i32>"
    first, second = (Value(code, gather(name, half), ints) for half, name in enumerate(("first", "second")))
    u1 = 1.0 - (first & 0xFFFFFF).to("float") * 2.0**-24
    u2 = (second & 0xFFFFFF).to("float") * 2.0**-24
    radius = sqrt(_log_cephes(u1) * -2.0)
    s, c = _sin_cos_cephes(u2 * (2.0 * math.pi))
    std, mean = Value(code, "%std", vector), Value(code, "%mean", vector)
    results = [fma(radius * c, std, mean), fma(radius * s, std, mean)]
    stores = []
    for half, r in enumerate(results):
        for b in range(blocks):
            name = f"%r{half}{b}"
            picked = ", ".join(f"i32 {8 * b + k}" for k in range(8))
            stores.append(f"  {name} = shufflevector {vector} {r.name}, {vector} poison, <8 x i32> <{picked}>")
            stores.append(f"  {name}p = getelementptr inbounds float, ptr %to, i64 {16 * b + 8 * half}\n  store <8 x float> {name}, ptr {name}p, align 4")
    return (
        f"define internal void @block{width}(ptr %from, ptr %to, {vector} %mean, {vector} %std) alwaysinline #0 {{\n"
        + "\n".join(lines + code.lines + stores) + "\n  ret void\n}\n"
    )  # fmt: skip


def normal_float_text() -> str:
    """n >= 16 normals: every element gets a word; blocks of 16 turn theirs into numbers; a rest redoes the last 16 from 16 new words."""
    width = 16 if jit.host().vector_bits >= 512 else 8
    splats = "  %mean1 = fptrunc double %meand to float\n  %std1 = fptrunc double %stdd to float\n"
    for w in {8, width}:
        for name in ("mean", "std"):
            splats += f"  %{name}in{w} = insertelement <{w} x float> poison, float %{name}1, i64 0\n"
            splats += f"  %{name}{w} = shufflevector <{w} x float> %{name}in{w}, <{w} x float> poison, <{w} x i32> zeroinitializer\n"

    def blocks(w, start, stop, tag, before, after):
        step = f"""
  %at_{tag} = mul nuw nsw i64 %i_{tag}, {2 * w}
  %src_{tag} = getelementptr inbounds i32, ptr %words, i64 %at_{tag}
  %pos_{tag} = add i64 %base, %at_{tag}
  %dst_{tag} = getelementptr inbounds float, ptr %out, i64 %pos_{tag}
  call void @block{w}(ptr %src_{tag}, ptr %dst_{tag}, <{w} x float> %mean{w}, <{w} x float> %std{w})"""
        return loop(start, stop, step, tag, before, after)

    # the chunk is a multiple of both widths, so only the last one leaves single blocks (and words that the rest redoes)
    body = f"  %wide = sdiv i64 %m, {2 * width}\n" + blocks(width, "0", "%wide", "w", "chunk", "singles")
    body += f"\n  %from_b = mul i64 %wide, {width // 8}\n  %upto = sdiv i64 %m, 16\n" + blocks(8, "%from_b", "%upto", "b", "singles", "chunk_end")
    rest = """
  %over = and i64 %n, 15
  %exact = icmp eq i64 %over, 0
  br i1 %exact, label %end, label %redo
redo:
  call void @draw(ptr %s, ptr %words, i64 16)
  %tail = add i64 %n, -16
  %last = getelementptr inbounds float, ptr %out, i64 %tail
  call void @block8(ptr %words, ptr %last, <8 x float> %mean8, <8 x float> %std8)
  br label %end
end:
  ret void"""
    functions = "".join(_block_float(w) for w in sorted({8, width}))
    return functions + kernel("s:ptr out:ptr n:i64 meand:double stdd:double", chunks(1, body, splats) + rest)


def normal_double_text() -> str:
    """As for float32, with libm's functions in float64 and two words an element."""
    code = Code()
    mean, std = Value(code, "%mean", "double"), Value(code, "%std", "double")
    code.lines.append("  %p1 = getelementptr inbounds double, ptr %to, i64 %i_j\n  %d1 = load double, ptr %p1")
    code.lines.append("  %p2 = getelementptr inbounds double, ptr %p1, i64 8\n  %d2 = load double, ptr %p2")
    radius = sqrt(call("log", 1.0 - Value(code, "%d1", "double")) * -2.0)
    angle = Value(code, "%d2", "double") * (2.0 * math.pi)
    c = fma(radius * call("cos", angle), std, mean)
    s = fma(radius * call("sin", angle), std, mean)
    code.lines.append(f"  store double {c.name}, ptr %p1\n  store double {s.name}, ptr %p2")
    block = (
        "define internal void @block(ptr %to, double %mean, double %std) #0 {\nentry:\n"
        + loop("0", "8", "\n".join(code.lines), "j", "entry", "done") + "\n  ret void\n}\n"
    )  # fmt: skip
    conversion = Code()
    u = unit(conversion, "double")
    uniform = (
        "define internal void @units(ptr %words, ptr %to, i64 %m) #0 {\nentry:\n"
        + loop("0", "%m", "\n".join(conversion.lines) + f"\n  %p = getelementptr inbounds double, ptr %to, i64 %i_e\n  store double {u.name}, ptr %p", "e", "entry", "done")
        + "\n  ret void\n}\n"
    )
    step = """
  %at = shl i64 %i_b, 4
  %pos = add i64 %base, %at
  %dst = getelementptr inbounds double, ptr %out, i64 %pos
  call void @block(ptr %dst, double %mean, double %std)"""
    body = """
  %start = getelementptr inbounds double, ptr %out, i64 %base
  call void @units(ptr %words, ptr %start, i64 %m)
  %upto = sdiv i64 %m, 16""" + loop("0", "%upto", step, "b", "chunk", "chunk_end")
    rest = """
  %over = and i64 %n, 15
  %exact = icmp eq i64 %over, 0
  br i1 %exact, label %end, label %redo
redo:
  call void @draw(ptr %s, ptr %words, i64 32)
  %tail = add i64 %n, -16
  %last = getelementptr inbounds double, ptr %out, i64 %tail
  call void @units(ptr %words, ptr %last, i64 16)
  call void @block(ptr %last, double %mean, double %std)
  br label %end
end:
  ret void"""
    return NORMAL_DECLARATIONS + block + uniform + kernel("s:ptr out:ptr n:i64 mean:double std:double", chunks(2, body) + rest)


def normal_scalar_text(kind: str, log_normal: bool = False) -> str:
    """One at a time in float64: r = sqrt(-2·log1p(-u2)), angle 2π·u1; r·cos is the number, r·sin the spare that the next one takes."""
    code = Code()
    code.lines.append("  %u1 = call double @draw53(ptr %s)\n  %u2 = call double @draw53(ptr %s)")
    radius = sqrt(call("log1p", -Value(code, "%u2", "double")) * -2.0)
    angle = Value(code, "%u1", "double") * (2.0 * math.pi)
    spare = radius * call("sin", angle)
    number = radius * call("cos", angle)
    finish = Code()
    z = fma(Value(finish, "%z", "double"), Value(finish, "%std", "double"), Value(finish, "%mean", "double"))
    z = (call("exp", z) if log_normal else z).to(kind)
    number_name = z.name.replace("%v", "%f")
    make, last = "\n".join(code.lines), "\n".join(finish.lines).replace("%v", "%f")
    return NORMAL_DECLARATIONS + kernel("s:ptr out:ptr n:i64 mean:double std:double", f"""
  %spare_at = getelementptr inbounds i8, ptr %s, i64 {SPARE}
  %has_at = getelementptr inbounds i8, ptr %s, i64 {HAS_SPARE}
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i2, %tail ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %step, label %end
step:
  %has = load i64, ptr %has_at
  %old = load double, ptr %spare_at
  %use = icmp ne i64 %has, 0
  %flip = xor i64 %has, 1
  store i64 %flip, ptr %has_at
  br i1 %use, label %tail, label %make
make:
{make}
  store double {spare.name}, ptr %spare_at
  br label %tail
tail:
  %z = phi double [ %old, %step ], [ {number.name}, %make ]
{last}
  %place = getelementptr inbounds {kind}, ptr %out, i64 %i
  store {kind} {number_name}, ptr %place
  %i2 = add i64 %i, 1
  br label %head
end:
  ret void""")


# ---- orders and choices -----------------------------------------------------------------------------------------------

def permutation_text(long: bool) -> str:
    """int64 0 … n-1 shuffled: element i changes places with a later one (short), or comes from an earlier one (long, 64-bit draws)."""
    if long:
        step = """
  %r = call i64 @draw64(ptr %s)
  %count = add i64 %i_p, 1
  %z = urem i64 %r, %count
  %here = getelementptr inbounds i64, ptr %out, i64 %i_p
  %there = getelementptr inbounds i64, ptr %out, i64 %z
  %b = load i64, ptr %there
  store i64 %b, ptr %here
  store i64 %i_p, ptr %there"""
        stop = "%n"
    else:
        step = """
  %r = call i32 @draw32(ptr %s)
  %count = sub i64 %n, %i_p
  %count32 = trunc i64 %count to i32
  %z32 = urem i32 %r, %count32
  %z = zext i32 %z32 to i64
  %here = getelementptr inbounds i64, ptr %out, i64 %i_p
  %there = getelementptr inbounds i64, ptr %here, i64 %z
  %a = load i64, ptr %here
  %b = load i64, ptr %there
  store i64 %b, ptr %here
  store i64 %a, ptr %there"""
        stop = "%last"
    order = "\n  %at = getelementptr inbounds i64, ptr %out, i64 %i_o\n  store i64 %i_o, ptr %at"
    shuffle = "\n  %last = sub i64 %n, 1" + loop("0", stop, step, "p", "shuffle", "end") + "\n  ret void"
    return kernel("s:ptr out:ptr n:i64", loop("0", "%n", order, "o", "entry", "shuffle") + shuffle)


def multinomial_text(kind: str) -> str:
    """For each row of weights: its running sum over the total, the last made 1; then a lower-bound search a sample with a 53-bit uniform."""
    searched = "%c" if kind == "double" else "%wide"
    widen = "" if kind == "double" else f"  %wide = fpext {kind} %c to double\n"
    scale = f"""
  %sp = getelementptr inbounds {kind}, ptr %sums, i64 %i_n
  %sv = load {kind}, ptr %sp
  %sn = fdiv {kind} %sv, %total2
  store {kind} %sn, ptr %sp"""
    return kernel("s:ptr weights:ptr sums:ptr out:ptr rows:i64 columns:i64 samples:i64", f"""
  %last = sub i64 %columns, 1
  br label %row
row:
  %i = phi i64 [ 0, %entry ], [ %i2, %row_end ]
  %more_rows = icmp slt i64 %i, %rows
  br i1 %more_rows, label %sum_start, label %end
sum_start:
  %skip = mul i64 %i, %columns
  %w = getelementptr inbounds {kind}, ptr %weights, i64 %skip
  br label %sum
sum:
  %j = phi i64 [ 0, %sum_start ], [ %j2, %sum ]
  %total = phi {kind} [ 0.0, %sum_start ], [ %total2, %sum ]
  %wp = getelementptr inbounds {kind}, ptr %w, i64 %j
  %x = load {kind}, ptr %wp
  %total2 = fadd {kind} %total, %x
  %cp = getelementptr inbounds {kind}, ptr %sums, i64 %j
  store {kind} %total2, ptr %cp
  %j2 = add nuw nsw i64 %j, 1
  %more = icmp slt i64 %j2, %columns
  br i1 %more, label %sum, label %scale
scale:{loop("0", "%columns", scale, "n", "scale", "scaled")}
  %lp = getelementptr inbounds {kind}, ptr %sums, i64 %last
  store {kind} 1.0, ptr %lp
  br label %sample
sample:
  %k = phi i64 [ 0, %scaled ], [ %k2, %found ]
  %more_samples = icmp slt i64 %k, %samples
  br i1 %more_samples, label %draw, label %row_end
draw:
  %u = call double @draw53(ptr %s)
  br label %search
search:
  %low = phi i64 [ 0, %draw ], [ %low2, %halve ]
  %high = phi i64 [ %columns, %draw ], [ %high2, %halve ]
  %open = icmp slt i64 %low, %high
  br i1 %open, label %halve, label %found
halve:
  %both = add i64 %low, %high
  %mid = lshr i64 %both, 1
  %mp = getelementptr inbounds {kind}, ptr %sums, i64 %mid
  %c = load {kind}, ptr %mp
{widen}  %below = fcmp olt double {searched}, %u
  %after = add i64 %mid, 1
  %low2 = select i1 %below, i64 %after, i64 %low
  %high2 = select i1 %below, i64 %high, i64 %mid
  br label %search
found:
  %at0 = mul i64 %i, %samples
  %at = add i64 %at0, %k
  %op = getelementptr inbounds i64, ptr %out, i64 %at
  store i64 %low, ptr %op
  %k2 = add i64 %k, 1
  br label %sample
row_end:
  %i2 = add i64 %i, 1
  br label %row
end:
  ret void""")


def seed_text() -> str:
    """Knuth's initialisation from the seed's low 32 bits; forgets the spare normal."""
    return kernel("s:ptr seed:i64", f"""
  %x0 = trunc i64 %seed to i32
  store i32 %x0, ptr %s
  br label %loop
loop:
  %j = phi i32 [ 1, %entry ], [ %j2, %loop ]
  %x = phi i32 [ %x0, %entry ], [ %y, %loop ]
  %high = lshr i32 %x, 30
  %mixed = xor i32 %x, %high
  %scaled = mul i32 %mixed, 1812433253
  %y = add i32 %scaled, %j
  %at = zext i32 %j to i64
  %place = getelementptr inbounds i32, ptr %s, i64 %at
  store i32 %y, ptr %place
  %j2 = add i32 %j, 1
  %more = icmp ult i32 %j2, {N}
  br i1 %more, label %loop, label %end
end:
  %next = getelementptr inbounds i8, ptr %s, i64 {NEXT}
  store i64 {FRESH}, ptr %next
  %has = getelementptr inbounds i8, ptr %s, i64 {HAS_SPARE}
  store i64 0, ptr %has
  ret void""")


TEXTS: dict[str, Callable[..., str]] = {
    "uniform": uniform_text, "bernoulli": bernoulli_text, "exponential": exponential_text, "geometric": geometric_text, "cauchy": cauchy_text,
    "integers": integers_text, "bits": bits_text, "normal_blocks": lambda kind: normal_float_text() if kind == "float" else normal_double_text(),
    "normal_scalar": normal_scalar_text, "log_normal": lambda kind: normal_scalar_text(kind, log_normal=True),
    "permutation": lambda kind: permutation_text(kind == "long"), "multinomial": multinomial_text, "seed": lambda kind: seed_text(),
}  # fmt: skip


def module_text(name: str, kind: str) -> str:
    """The whole IR module of one fill."""
    return f"{engine_text()}{TEXTS[name](kind)}\nattributes #0 = {{ {jit.ATTRIBUTES} }}\n"
