"""The Mersenne Twister as IR text, and the loops that random fills are built from: draw a chunk of words, turn each into a number.

The state's layout is in random.py, the distributions are in random_text.py.
"""
from __future__ import annotations

from collections.abc import Callable

from .random import BUFFER, NEXT, M, N
from .scalar import Code, Value, constant

CHUNK = 2048  # elements a step: the drawn words are still in the first-level cache when they are turned into numbers


def loop(start: str, stop: str, body: str, tag: str, before: str, after: str) -> str:
    """A counted loop over %i_<tag> in [start, stop); falls into label `after`. `before` is the label that control comes from."""
    return f"""
  %any_{tag} = icmp slt i64 {start}, {stop}
  br i1 %any_{tag}, label %loop_{tag}, label %{after}
loop_{tag}:
  %i_{tag} = phi i64 [ {start}, %{before} ], [ %next_{tag}, %loop_{tag} ]
{body}
  %next_{tag} = add nuw nsw i64 %i_{tag}, 1
  %more_{tag} = icmp slt i64 %next_{tag}, {stop}
  br i1 %more_{tag}, label %loop_{tag}, label %{after}
{after}:"""


def _twist_step(tag: str, far: int, near_offset: int = 1) -> str:
    """state[i] = state[i + far] ^ twist(state[i], state[i + near_offset])."""
    i = f"%i_{tag}"
    return f"""
  %at_{tag} = getelementptr inbounds i32, ptr %s, i64 {i}
  %near_{tag} = getelementptr inbounds i32, ptr %at_{tag}, i64 {near_offset}
  %far_{tag} = getelementptr inbounds i32, ptr %at_{tag}, i64 {far}
  %u_{tag} = load i32, ptr %at_{tag}
  %v_{tag} = load i32, ptr %near_{tag}
  %f_{tag} = load i32, ptr %far_{tag}
  %high_{tag} = and i32 %u_{tag}, -2147483648
  %low_{tag} = and i32 %v_{tag}, 2147483647
  %y_{tag} = or i32 %high_{tag}, %low_{tag}
  %half_{tag} = lshr i32 %y_{tag}, 1
  %bit_{tag} = and i32 %v_{tag}, 1
  %mask_{tag} = sub i32 0, %bit_{tag}
  %xor_{tag} = and i32 %mask_{tag}, -1727483681
  %w_{tag} = xor i32 %half_{tag}, %xor_{tag}
  %r_{tag} = xor i32 %f_{tag}, %w_{tag}
  store i32 %r_{tag}, ptr %at_{tag}"""


def engine_text() -> str:
    """`@refill(state)`: the next 624 words; `@draw(state, to, n)`: n words in order; `@draw32`, `@draw64`: one number (64 bits: high word first)."""
    code = Code()
    y = Value(code, "%raw", "i32")
    y = y ^ (y >> 11)
    y = y ^ ((y << 7) & 0x9D2C5680)
    y = y ^ ((y << 15) & 0xEFC60000)
    y = y ^ (y >> 18)
    temper = """
  %from = getelementptr inbounds i32, ptr %s, i64 %i_d
  %to = getelementptr inbounds i32, ptr %out, i64 %i_d
  %raw = load i32, ptr %from
""" + "\n".join(code.lines) + f"\n  store i32 {y.name}, ptr %to"
    return f"""
define internal void @refill(ptr noalias %s) noinline #0 {{
entry:{loop("0", str(N - M), _twist_step("a", M), "a", "entry", "second")}
{loop(str(N - M), str(N - 1), _twist_step("b", M - N), "b", "second", "third")}
  br label %last
last:
  %i_c = phi i64 [ {N - 1}, %third ]
{_twist_step("c", M - N, 1 - N)}
  %out = getelementptr inbounds i8, ptr %s, i64 {BUFFER}
{loop("0", str(N), temper, "d", "last", "done")}
  %next = getelementptr inbounds i8, ptr %s, i64 {NEXT}
  store i64 0, ptr %next
  ret void
}}

define internal void @draw(ptr noalias %s, ptr noalias %to, i64 %n) noinline #0 {{
entry:
  %next = getelementptr inbounds i8, ptr %s, i64 {NEXT}
  %buffer = getelementptr inbounds i8, ptr %s, i64 {BUFFER}
  br label %head
head:
  %done = phi i64 [ 0, %entry ], [ %done2, %copy ]
  %left = sub i64 %n, %done
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %check, label %end
check:
  %at0 = load i64, ptr %next
  %used = icmp uge i64 %at0, {N}
  br i1 %used, label %fill, label %copy
fill:
  call void @refill(ptr %s)
  br label %copy
copy:
  %at = phi i64 [ %at0, %check ], [ 0, %fill ]
  %there = sub i64 {N}, %at
  %m = call i64 @llvm.smin.i64(i64 %there, i64 %left)
  %bytes = shl i64 %m, 2
  %source = getelementptr inbounds i32, ptr %buffer, i64 %at
  %target = getelementptr inbounds i32, ptr %to, i64 %done
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 %bytes, i1 false)
  %at2 = add i64 %at, %m
  store i64 %at2, ptr %next
  %done2 = add i64 %done, %m
  br label %head
end:
  ret void
}}

define internal i32 @draw32(ptr noalias %s) alwaysinline #0 {{
entry:
  %next = getelementptr inbounds i8, ptr %s, i64 {NEXT}
  %at0 = load i64, ptr %next
  %used = icmp uge i64 %at0, {N}
  br i1 %used, label %fill, label %read
fill:
  call void @refill(ptr %s)
  br label %read
read:
  %at = phi i64 [ %at0, %entry ], [ 0, %fill ]
  %buffer = getelementptr inbounds i8, ptr %s, i64 {BUFFER}
  %source = getelementptr inbounds i32, ptr %buffer, i64 %at
  %v = load i32, ptr %source
  %at2 = add i64 %at, 1
  store i64 %at2, ptr %next
  ret i32 %v
}}

define internal i64 @draw64(ptr noalias %s) alwaysinline #0 {{
  %high = call i32 @draw32(ptr %s)
  %low = call i32 @draw32(ptr %s)
  %h = zext i32 %high to i64
  %l = zext i32 %low to i64
  %h32 = shl i64 %h, 32
  %v = or i64 %h32, %l
  ret i64 %v
}}

define internal double @draw53(ptr noalias %s) alwaysinline #0 {{
  %w = call i64 @draw64(ptr %s)
  %k = and i64 %w, {(1 << 53) - 1}
  %f = sitofp i64 %k to double
  %u = fmul double %f, {constant(2.0**-53, 'double')}
  ret double %u
}}
"""


def kernel(slots: str, body: str) -> str:
    """The kernel function: `slots` names what each slot holds as "name:type" ("ptr", "double" or "i64")."""
    loads = []
    for k, slot in enumerate(slots.split()):
        name, type = slot.split(":")
        loads.append(f"  %slot_{name} = getelementptr inbounds i64, ptr %slots, i64 {k}\n  %{name} = load {type}, ptr %slot_{name}")
    return "define void @kernel(ptr %desc, ptr %slots, i64 %part, i64 %parts) #0 {\nentry:\n" + "\n".join(loads) + f"\n{body}\n}}\n"


def chunks(words: int, body: str, setup: str = "") -> str:
    """Steps of at most CHUNK elements: draws `words` words an element to %words, then runs `body`, a loop over [0, %m) that ends in label `chunk_end`.

    %base is the index of the chunk's first element.
    """
    return f"""
  %words = alloca i32, i64 {CHUNK * words}, align 64
{setup}
  br label %chunk_head
chunk_head:
  %base = phi i64 [ 0, %entry ], [ %base2, %chunk_end ]
  %left = sub i64 %n, %base
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %chunk, label %finish
chunk:
  %m = call i64 @llvm.smin.i64(i64 %left, i64 {CHUNK})
  %nwords = mul i64 %m, {words}
  call void @draw(ptr %s, ptr %words, i64 %nwords)
{body}
  %base2 = add i64 %base, %m
  br label %chunk_head
finish:"""


def unit(code: Code, kind: str) -> Value:
    """Uniform in [0, 1) from the words of element %i_e: 24 bits for float, 53 for double (the word drawn first is the high one)."""
    if kind == "float":
        code.lines.append("  %word_at = getelementptr inbounds i32, ptr %words, i64 %i_e\n  %word = load i32, ptr %word_at")
        return (Value(code, "%word", "i32") & 0xFFFFFF).to("float") * 2.0**-24
    return (wide(code) & ((1 << 53) - 1)).to("double") * 2.0**-53


def wide(code: Code) -> Value:
    """The 64-bit draw of element %i_e. Hosts are little endian: the word drawn first was loaded as the low half."""
    code.lines.append("  %word_at = getelementptr inbounds i64, ptr %words, i64 %i_e\n  %pair = load i64, ptr %word_at")
    pair = Value(code, "%pair", "i64")
    return (pair << 32) | (pair >> 32)


def elementwise(slots: str, words: int, value: Callable[[Code], Value], setup: str = "") -> str:
    """A fill whose every element comes from its own one or two words. `value` may read %words at %i_e and the parameter slots."""
    code = Code()
    result = value(code)
    store = f"""
  %index = add i64 %base, %i_e
  %place = getelementptr inbounds {result.type}, ptr %out, i64 %index
  store {result.type} {result.name}, ptr %place"""
    body = loop("0", "%m", "\n".join(code.lines) + store, "e", "chunk", "chunk_end")
    return kernel(f"s:ptr out:ptr n:i64 {slots}", chunks(words, body, setup) + "\n  ret void")
