"""Writing IR text for the matmul kernels: a function builder with loops and branches, and the number formats in registers.

Holds no kernel. Loop counters and accumulators are stack slots in the text; LLVM's SROA turns them into registers.
"""
from __future__ import annotations

from contextlib import contextmanager

from . import smallfloats
from .formats import ENCODINGS, SMALL_INTS, InBody

# dtype name -> (type in memory, type of the accumulator)
TYPES = {
    "float32": ("float", "float"), "float64": ("double", "double"), "bfloat16": ("i16", "float"), "float16": ("i16", "float"),
    "int8": ("i8", "i32"), "uint8": ("i8", "i32"), "int16": ("i16", "i32"), "int32": ("i32", "i32"), "int64": ("i64", "i64"),
    "bool": ("i8", "i32"), "uint16": ("i16", "i32"), "uint32": ("i32", "i32"), "uint64": ("i64", "i64"),
    **dict.fromkeys(ENCODINGS, ("i8", "float")), **dict.fromkeys(SMALL_INTS, ("i8", "i32")),
    "float32_tf32": ("float", "float"), "float32_bf16": ("float", "float"),  # float32 in memory, rounded when it is read (precision.py)
}  # fmt: skip
DROPPED = {"float32_tf32": 13, "float32_bf16": 16}  # bits of float32's mantissa that are rounded away
# Loops that are short, or of vectors already, are left as they are written: unrolling, unswitching and vectorising them takes the compiler longer than all the rest.
AS_WRITTEN = " optsize"
SIZES = {"float": 4, "double": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8}
SUFFIX = {"float": "f32", "double": "f64", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64"}


def vector(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


def mangled(element: str, lanes: int) -> str:
    """The type as intrinsics spell it: v16f32."""
    return SUFFIX[element] if lanes == 1 else f"v{lanes}{SUFFIX[element]}"


def is_float(element: str) -> bool:
    return element in ("float", "double")


class Function:
    """The text of one function. `op` adds an instruction with a result, `do` one without; operands are strings or integers."""

    def __init__(self, name: str, arguments: str, attributes: str = "nounwind", linkage: str = "internal"):
        self.head = f"define {linkage} void @{name}({arguments}) {attributes} {{"
        self.slots: list[str] = []
        self.body: list[str] = []
        self.declared: set[str] = set()
        self.count = 0

    def text(self) -> str:
        return "\n".join([self.head, "entry:", *self.slots, *self.body, "  ret void", "}"])

    def name(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def do(self, text: str) -> None:
        self.body.append("  " + text)

    def op(self, text: str) -> str:
        result = self.name()
        self.body.append(f"  {result} = {text}")
        return result

    # ---- integers ----
    def add(self, a, b):
        return a if b == 0 else b if a == 0 else self.op(f"add nsw i64 {a}, {b}")

    def sub(self, a, b):
        return self.op(f"sub nsw i64 {a}, {b}")

    def mul(self, a, b):
        return a if b == 1 else b if a == 1 else self.op(f"mul nsw i64 {a}, {b}")

    def div(self, a, b):
        return self.op(f"udiv i64 {a}, {b}")

    def rem(self, a, b):
        return self.op(f"urem i64 {a}, {b}")

    def ceil_div(self, a, b):
        return self.div(self.add(a, self.sub(b, 1)), b)

    def min(self, a, b):
        return self.call("i64", "llvm.smin.i64", f"i64 {a}", f"i64 {b}")

    def share(self, total):
        """This part's share of `total` items: (first, behind the last)."""
        return self.div(self.mul(total, "%part"), "%parts"), self.div(self.mul(total, self.add("%part", 1)), "%parts")

    def compare(self, how: str, a, b):
        return self.op(f"icmp {how} i64 {a}, {b}")

    def both(self, *conditions):
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.op(f"and i1 {result}, {condition}")
        return result

    # ---- memory ----
    def at(self, element: str, pointer, index):
        return self.op(f"getelementptr inbounds {element}, ptr {pointer}, i64 {index}")

    def load(self, type_: str, pointer, align=None):
        return self.op(f"load {type_}, ptr {pointer}" + (f", align {align}" if align else ""))

    def store(self, type_: str, value, pointer, align=None):
        self.do(f"store {type_} {value}, ptr {pointer}" + (f", align {align}" if align else ""))

    def variable(self, type_: str, start=None, align=None):
        self.count += 1
        slot = f"%s{self.count}"
        self.slots.append(f"  {slot} = alloca {type_}" + (f", align {align}" if align else ""))
        if start is not None:
            self.store(type_, start, slot)
        return slot

    # ---- calls ----
    def call(self, result: str, function: str, *arguments: str):
        kinds = ", ".join(a.rsplit(" ", 1)[0].replace(" noalias", "") for a in arguments)
        if function.startswith("llvm."):
            self.declared.add(f"declare {result} @{function}({kinds})")
        text = f"call {result} @{function}({', '.join(arguments)})"
        if result == "void":
            self.do(text)
            return None
        return self.op(text)

    # ---- control ----
    def label(self, label: str) -> None:
        self.body.append(f"{label}:")

    @contextmanager
    def loop(self, start, stop, step=1):
        """`for i in range(start, stop, step)`; yields i."""
        self.count += 1
        tag = f"l{self.count}"
        slot = self.variable("i64", start)
        self.do(f"br label %{tag}.head")
        self.label(f"{tag}.head")
        i = self.load("i64", slot)
        go = self.compare("slt", i, stop)
        self.do(f"br i1 {go}, label %{tag}.body, label %{tag}.end")
        self.label(f"{tag}.body")
        yield i
        self.store("i64", self.op(f"add nsw i64 {i}, {step}"), slot)
        self.do(f"br label %{tag}.head")
        self.label(f"{tag}.end")

    @contextmanager
    def when(self, condition):
        self.count += 1
        tag = f"w{self.count}"
        self.do(f"br i1 {condition}, label %{tag}.then, label %{tag}.end")
        self.label(f"{tag}.then")
        yield
        self.do(f"br label %{tag}.end")
        self.label(f"{tag}.end")

    def choose(self, condition, yes, no) -> None:
        """if / else; `yes` and `no` are functions that emit the branches."""
        self.count += 1
        tag = f"c{self.count}"
        self.do(f"br i1 {condition}, label %{tag}.yes, label %{tag}.no")
        for branch, emit in (("yes", yes), ("no", no)):
            self.label(f"{tag}.{branch}")
            emit()
            self.do(f"br label %{tag}.end")
        self.label(f"{tag}.end")

    # ---- vectors ----
    def splat(self, element: str, value, lanes: int):
        if lanes == 1:
            return value
        type_ = vector(element, lanes)
        first = self.op(f"insertelement {type_} poison, {element} {value}, i64 0")
        return self.op(f"shufflevector {type_} {first}, {type_} poison, <{lanes} x i32> zeroinitializer")

    def constant(self, element: str, value, lanes: int) -> str:
        return str(value) if lanes == 1 else "<" + ", ".join([f"{element} {value}"] * lanes) + ">"

    def lanes_below(self, count, lanes: int):
        """Mask of the lanes whose number is below `count` (i64)."""
        wide = self.splat("i64", count, lanes)
        numbers = "<" + ", ".join(f"i64 {i}" for i in range(lanes)) + ">"
        return self.op(f"icmp slt <{lanes} x i64> {numbers}, {wide}")

    def fma(self, element: str, lanes: int, a, b, c, fused: bool = True):
        type_ = vector(element, lanes)
        if is_float(element):
            if fused:
                name = f"llvm.fma.{mangled(element, lanes)}"
                self.declared.add(f"declare {type_} @{name}({type_}, {type_}, {type_})")
                return self.op(f"call {type_} @{name}({type_} {a}, {type_} {b}, {type_} {c})")
            return self.op(f"fadd {type_} {c}, {self.op(f'fmul {type_} {a}, {b}')}")
        return self.op(f"add {type_} {c}, {self.op(f'mul {type_} {a}, {b}')}")

    def plus(self, element: str, lanes: int, a, b):
        return self.op(f"{'fadd' if is_float(element) else 'add'} {vector(element, lanes)} {a}, {b}")

    def times(self, element: str, lanes: int, a, b):
        return self.op(f"{'fmul' if is_float(element) else 'mul'} {vector(element, lanes)} {a}, {b}")

    # ---- number formats ----
    def decode(self, dtype: str, value, lanes: int, native_half: bool):
        """Memory -> accumulator type. 16-bit floats become float32 exactly; small integers are widened."""
        memory, wide = TYPES[dtype]
        if dtype in DROPPED:
            return self._rounded(value, lanes, DROPPED[dtype])
        if memory == wide:
            return value
        if dtype == "bfloat16":
            bits = self.op(f"zext {vector('i16', lanes)} {value} to {vector('i32', lanes)}")
            bits = self.op(f"shl {vector('i32', lanes)} {bits}, {self.constant('i32', 16, lanes)}")
            return self.op(f"bitcast {vector('i32', lanes)} {bits} to {vector('float', lanes)}")
        if dtype == "float16":
            return self._decode_half(value, lanes, native_half)
        if dtype in ENCODINGS:
            return smallfloats.decode(ENCODINGS[dtype], InBody(self.op).at(value, vector("i8", lanes))).name
        how = "zext" if dtype[0] in "ub" else "sext"
        return self.op(f"{how} {vector(memory, lanes)} {value} to {vector(wide, lanes)}")

    def encode(self, dtype: str, value, lanes: int, native_half: bool):
        """Accumulator -> memory: rounded to nearest even once for 16-bit floats; integers wrap."""
        memory, wide = TYPES[dtype]
        if memory == wide:
            return value
        if dtype == "bfloat16":
            return self._encode_bfloat(value, lanes)
        if dtype == "float16":
            return self._encode_half(value, lanes, native_half)
        if dtype in ENCODINGS:
            return smallfloats.encode(ENCODINGS[dtype], InBody(self.op).at(value, vector("float", lanes))).name
        if dtype == "bool":  # whether any product was true
            some = self.op(f"icmp ne {vector(wide, lanes)} {value}, {self.constant(wide, 0, lanes)}")
            return self.op(f"zext {vector('i1', lanes)} {some} to {vector(memory, lanes)}")
        if dtype in SMALL_INTS:  # the low bits stay, extended to the byte
            unused = 32 - SMALL_INTS[dtype].bits
            high = self.op(f"shl {vector(wide, lanes)} {value}, {self.constant('i32', unused, lanes)}")
            value = self.op(f"{'ashr' if SMALL_INTS[dtype].is_signed else 'lshr'} {vector(wide, lanes)} {high}, {self.constant('i32', unused, lanes)}")
        return self.op(f"trunc {vector(wide, lanes)} {value} to {vector(memory, lanes)}")

    def _rounded(self, value, lanes, dropped):
        """float32 to nearest even without its last `dropped` bits of mantissa, by carrying into the kept ones. Infinities stay, NaN stays NaN."""
        i32, f32 = vector("i32", lanes), vector("float", lanes)
        const = lambda v: self.constant("i32", v, lanes)
        bits = self.op(f"bitcast {f32} {value} to {i32}")
        odd = self.op(f"and {i32} {self.op(f'lshr {i32} {bits}, {const(dropped)}')}, {const(1)}")
        up = self.op(f"add {i32} {bits}, {self.op(f'add {i32} {odd}, {const((1 << dropped - 1) - 1)}')}")
        kept = self.op(f"bitcast {i32} {self.op(f'and {i32} {up}, {const(-1 << dropped)}')} to {f32}")
        nan = self.op(f"fcmp uno {f32} {value}, {value}")
        return self.op(f"select {vector('i1', lanes)} {nan}, {f32} {value}, {f32} {kept}")

    def _encode_bfloat(self, value, lanes):
        i32, f32, i16 = vector("i32", lanes), vector("float", lanes), vector("i16", lanes)
        bits = self.op(f"bitcast {f32} {value} to {i32}")
        odd = self.op(f"and {i32} {self.op(f'lshr {i32} {bits}, ' + self.constant('i32', 16, lanes))}, {self.constant('i32', 1, lanes)}")
        up = self.op(f"add {i32} {bits}, {self.op(f'add {i32} {odd}, ' + self.constant('i32', 0x7FFF, lanes))}")
        nan = self.op(f"fcmp uno {f32} {value}, {value}")
        quiet = self.constant("i32", 0x7FC00000, lanes)
        chosen = self.op(f"select {vector('i1', lanes)} {nan}, {i32} {quiet}, {i32} {up}")
        return self.op(f"trunc {i32} {self.op(f'lshr {i32} {chosen}, ' + self.constant('i32', 16, lanes))} to {i16}")

    def _decode_half(self, value, lanes, native):
        i32, f32, i16, half = vector("i32", lanes), vector("float", lanes), vector("i16", lanes), vector("half", lanes)
        if native:
            return self.op(f"fpext {half} {self.op(f'bitcast {i16} {value} to {half}')} to {f32}")
        const = lambda v: self.constant("i32", v, lanes)
        wide = self.op(f"zext {i16} {value} to {i32}")
        sign = self.op(f"shl {i32} {self.op(f'and {i32} {wide}, {const(0x8000)}')}, {const(16)}")
        rest = self.op(f"shl {i32} {self.op(f'and {i32} {wide}, {const(0x7FFF)}')}, {const(13)}")
        # Scaling by 2^112 re-biases the exponent and normalises subnormals in one exact multiplication.
        scaled = self.op(f"fmul {f32} {self.op(f'bitcast {i32} {rest} to {f32}')}, {self.constant('float', '0x46F0000000000000', lanes)}")
        bits = self.op(f"bitcast {f32} {scaled} to {i32}")
        special = self.op(f"icmp uge {i32} {rest}, {const(0x0F800000)}")
        bits = self.op(f"select {vector('i1', lanes)} {special}, {i32} {self.op(f'or {i32} {rest}, {const(0x7F800000)}')}, {i32} {bits}")
        return self.op(f"bitcast {i32} {self.op(f'or {i32} {bits}, {sign}')} to {f32}")

    def _encode_half(self, value, lanes, native):
        i32, f32, i16, half = vector("i32", lanes), vector("float", lanes), vector("i16", lanes), vector("half", lanes)
        if native:
            return self.op(f"bitcast {half} {self.op(f'fptrunc {f32} {value} to {half}')} to {i16}")
        const = lambda v: self.constant("i32", v, lanes)
        pick = lambda c, a, b: self.op(f"select {vector('i1', lanes)} {c}, {i32} {a}, {i32} {b}")
        bits = self.op(f"bitcast {f32} {value} to {i32}")
        sign = self.op(f"lshr {i32} {self.op(f'and {i32} {bits}, {const(-2147483648)}')}, {const(16)}")
        mag = self.op(f"and {i32} {bits}, {const(0x7FFFFFFF)}")
        odd = self.op(f"and {i32} {self.op(f'lshr {i32} {mag}, {const(13)}')}, {const(1)}")
        normal = self.op(f"add {i32} {mag}, {const(0xFFF - (112 << 23))}")
        normal = self.op(f"lshr {i32} {self.op(f'add {i32} {normal}, {odd}')}, {const(13)}")
        # Below 2^-14: adding 0.5 makes the FPU itself round to the subnormal's last place.
        small = self.op(f"fadd {f32} {self.op(f'bitcast {i32} {mag} to {f32}')}, {self.constant('float', '5.000000e-01', lanes)}")
        small = self.op(f"sub {i32} {self.op(f'bitcast {f32} {small} to {i32}')}, {const(0x3F000000)}")
        result = pick(self.op(f"icmp ult {i32} {mag}, {const(0x38800000)}"), small, normal)
        result = pick(self.op(f"icmp uge {i32} {mag}, {const(0x477FF000)}"), const(0x7C00), result)
        result = pick(self.op(f"icmp ugt {i32} {mag}, {const(0x7F800000)}"), const(0x7E00), result)
        return self.op(f"trunc {i32} {self.op(f'or {i32} {result}, {sign}')} to {i16}")


def transposed(f: Function, element: str, rows: list[str]) -> list[str]:
    """Transposes n vectors of n lanes in log2(n) rounds: each swaps the off-diagonal halves of 2x2 blocks of growing size."""
    n = len(rows)
    type_ = vector(element, n)
    size = 1
    while size < n:
        low = [i if not i & size else n + i - size for i in range(n)]
        high = [i + size if not i & size else n + i for i in range(n)]
        out = list(rows)
        for i in range(n):
            if not i & size:
                for target, lanes in ((i, low), (i + size, high)):
                    order = ", ".join(f"i32 {lane}" for lane in lanes)
                    out[target] = f.op(f"shufflevector {type_} {rows[i]}, {type_} {rows[i + size]}, <{n} x i32> <{order}>")
        rows, size = out, size * 2
    return rows


def masked_load(f: Function, memory: str, lanes: int, pointer: str, mask: str) -> str:
    type_, bits = vector(memory, lanes), vector("i1", lanes)
    suffix = f"v{lanes}{ {'float': 'f32', 'double': 'f64'}.get(memory, memory) }"
    return f.call(type_, f"llvm.masked.load.{suffix}.p0", f"ptr align {SIZES[memory]} {pointer}", f"{bits} {mask}", f"{type_} zeroinitializer")


def masked_store(f: Function, memory: str, lanes: int, value: str, pointer: str, mask: str) -> None:
    type_, bits = vector(memory, lanes), vector("i1", lanes)
    suffix = f"v{lanes}{ {'float': 'f32', 'double': 'f64'}.get(memory, memory) }"
    f.call("void", f"llvm.masked.store.{suffix}.p0", f"{type_} {value}", f"ptr align {SIZES[memory]} {pointer}", f"{bits} {mask}")


def module(*functions: Function, extra: str = "") -> str:
    declared = sorted(set().union(*(f.declared for f in functions)))
    return "\n".join(declared) + "\n" + extra + "\n" + "\n\n".join(f.text() for f in functions) + "\n"
