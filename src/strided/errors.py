"""The messages users meet most: PyTorch's sentence first, then the shapes drawn under each other and the way out.

Every function but `check_devices` returns an exception to raise. Plain text, no colours; no tensors are touched here, only shapes and names.
"""

from math import prod


class PackedOperand(NotImplementedError):
    """A kernel was given elements below eight bits as they are stored, several a byte. Operators answer by computing on unpacked ones (ops/packed.py);
    what is not an operator lets it through."""

    def __init__(self, text: str = ""):
        super().__init__(text or "elements stored several a byte cannot be computed with in place: convert them first, as in x.to(torch.float32)")


def draw(names, shapes, marks=()) -> str:
    """Shapes in aligned columns under each other, counted from the right as broadcasting does; `marks`: columns (negative) to point at."""
    ndim = max(map(len, shapes), default=0)
    width = max(map(len, names), default=0)
    columns = [max([len(str(shape[d])) for shape in shapes if len(shape) >= -d] or [0]) for d in range(-ndim, 0)]
    lines = []
    for name, shape in zip(names, shapes):
        missing = ndim - len(shape)
        cells = [" " * w for w in columns[:missing]] + [str(size).rjust(w) for size, w in zip(shape, columns[missing:])]
        separators = ["  "] * missing + [", "] * max(ndim - missing - 1, 0)
        body = "".join(cell + separator for cell, separator in zip(cells, [*separators, ""]))
        gap = len("".join(" " * w + "  " for w in columns[:missing]))
        lines.append(f"  {name.rjust(width)}: {' ' * gap}[{body[gap:]}]")
    if marks:
        row = "  ".join(("^" * w if d in marks else " " * w) for d, w in zip(range(-ndim, 0), columns))
        lines.append(" " * (width + 5) + row.rstrip())
    return "\n".join(lines)


def _fits(a, b) -> bool:
    return all(x == y or x == 1 or y == 1 for x, y in zip(reversed(a), reversed(b)))


def _broadcast_advice(a, b, names) -> str:
    """A small change that makes the shapes broadcast, if there is an obvious one."""
    for (name, own), other in (((names[1], b), a), ((names[0], a), b)):
        if len(own) == len(other) >= 2 and _fits((*own[:-2], own[-1], own[-2]), other):
            return f"{name}.transpose(-2, -1) would fit."
        if len(own) < len(other):
            for d in range(len(own), 0, -1):
                if _fits((*own[:d], *[1] * (len(other) - len(own)), *own[d:]), other):
                    index = ", ".join([":"] * d + ["None"] * (len(other) - len(own)) + ([] if d == len(own) else ["..."]))
                    return f"{name}[{index}] would fit: it puts the missing dimension where the sizes agree."
    return "Insert a dimension of size 1 where one tensor should repeat: x.unsqueeze(d)."


def storage_overflow(shape) -> RuntimeError:
    """The bytes of a tensor of this shape cannot be counted in 64 bits."""
    return RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")


def broadcast_mismatch(a, b, dim, names=("a", "b")) -> RuntimeError:
    """Shapes `a` and `b` do not broadcast at dimension `dim` of their common shape."""
    place = dim - max(len(a), len(b))
    return RuntimeError(
        f"The size of tensor a ({a[place]}) must match the size of tensor b ({b[place]}) at non-singleton dimension {dim}\n"
        f"{draw(names, (a, b), (place,))}\n"
        f"  Sizes are compared from the right: equal, or one of them 1. {_broadcast_advice(tuple(a), tuple(b), names)}"
    )


def matmul_mismatch(a, b, names=("a", "b")) -> RuntimeError:
    """Shapes `a` and `b` cannot be multiplied as matrices (their inner sizes differ)."""
    a, b = tuple(a), tuple(b)
    if not a or not b:
        return RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D\n  For a number use *, as in x * 2.")
    inner_b = -2 if len(b) > 1 else -1
    if len(a) == 1 and len(b) == 1:
        sentence = f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same number of elements, but got {a[0]} and {b[0]} elements respectively"
    elif len(b) == 1:
        rows = prod(a[:-1])
        sentence = f"size mismatch, got input ({rows}), mat ({rows}x{a[-1]}), vec ({b[0]})"
    elif len(b) == 2:
        sentence = f"mat1 and mat2 shapes cannot be multiplied ({prod(a[:-1])}x{a[-1]} and {b[0]}x{b[1]})"
    else:
        batches = max(prod(a[:-2]), prod(b[:-2]))
        sentence = f"Expected size for first two dimensions of batch2 tensor to be: [{batches}, {a[-1]}] but got: [{batches}, {b[-2]}]."
    advice = ""
    if len(b) > 1 and b[-1] == a[-1]:
        advice = f" {names[1]}.transpose(-2, -1) would fit."
    elif len(a) > 1 and a[-2] == b[inner_b]:
        advice = f" {names[0]}.transpose(-2, -1) would fit."
    lines = [
        f"  {names[0]}: {list(a)}   last size {a[-1]}",
        f"  {names[1]}: {list(b)}   {'second to last' if len(b) > 1 else 'only'} size {b[inner_b]}",
    ]
    return RuntimeError(f"{sentence}\n" + "\n".join(lines) + f"\n  A product [..., m, k] @ [..., k, n] needs the two inner sizes k equal.{advice}")


def view_incompatible(shape, strides, target) -> RuntimeError:
    """No strides show a tensor of `shape` walked with `strides` as `target`."""
    return RuntimeError(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). "
        "Use .reshape(...) instead.\n"
        f"{draw(('shape', 'stride'), (shape, strides))}\n"
        f"  wanted: {list(target)}\n"
        "  A view only joins dimensions that follow each other in memory (stride of one = size x stride of the next). "
        ".reshape(...) copies where it must; .contiguous().view(...) says so."
    )


def invalid_reshape(shape, numel, source=None) -> RuntimeError:
    """`shape` does not hold `numel` elements. source: the tensor's own shape, where known."""
    shape = list(shape)
    lines = [f"shape '{shape}' is invalid for input of size {numel}"]
    known = prod(size for size in shape if size != -1)
    product = " x ".join(str(size) for size in shape if size != -1) or "1"
    if source is not None:
        lines.append(f"  input: {list(source)} = {numel} elements")
    if -1 in shape:
        lines.append(f"  wanted: {shape}, but {numel} is not a multiple of {product}{f' = {known}' if len(shape) > 2 else ''}")
    else:
        lines.append(f"  wanted: {shape} = {known} elements")
        for d in range(len(shape) - 1, -1, -1):
            others = known // shape[d] if shape[d] else 0
            if others and numel % others == 0:
                fixed = [*shape[:d], numel // others, *shape[d + 1 :]]
                lines.append(f"  {fixed} would fit; -1 in one place lets the size be computed.")
                break
    return RuntimeError("\n".join(lines))


def type_name(dtype) -> str:
    """What PyTorch calls a CPU tensor of a dtype: torch.FloatTensor, CPUBFloat16Type."""
    kind = dtype.scalar_name
    return f"CPU{kind}Type" if kind in ("BFloat16", "Bool") or kind.startswith(("Complex", "UInt", "Float8")) else f"torch.{kind}Tensor"


def expand_too_short(shape, target, dtype=None) -> RuntimeError:
    """`expand` to fewer dimensions than the tensor has."""
    kind = "torch.FloatTensor" if dtype is None else type_name(dtype)
    return RuntimeError(
        f"expand({kind}{{{list(shape)}}}, size={list(target)}): the number of sizes provided ({len(target)}) must be greater or equal to "
        f"the number of dimensions in the tensor ({len(shape)})"
    )


def expand_mismatch(shape, target, dim) -> RuntimeError:
    """`expand` would change a size that is not 1."""
    own = shape[dim - len(target) + len(shape)]
    return RuntimeError(
        f"The expanded size of the tensor ({target[dim]}) must match the existing size ({own}) at non-singleton dimension {dim}.  "
        f"Target sizes: {list(target)}.  Tensor sizes: {list(shape)}\n"
        f"{draw(('tensor', 'target'), (tuple(shape), tuple(target)), (dim - len(target),))}\n"
        "  Only sizes of 1 can be expanded; -1 keeps a size."
    )


def mixed_parameters(dtype, given) -> RuntimeError | None:
    """A normalisation's parameters have other dtypes than its input (`given`: theirs, None where there is none). None: they do not, or all are float32 beside 16 bits."""
    given = [d for d in given if d is not None]
    other = next((d for d in given if d is not dtype), None)
    if other is None or given[0] is dtype and not dtype.is_floating_point:  # an integer input: there is no kernel
        return None
    if given[0] is dtype:
        sentence = f"expected scalar type {dtype.scalar_name} but found {other.scalar_name}"
    elif any(d.name != "float32" for d in given):
        sentence = "mixed dtype (CPU): expect parameter to have scalar type of Float"
    elif dtype.name not in ("float16", "bfloat16"):
        sentence = "mixed dtype (CPU): all inputs must share same datatype."
    else:
        return None
    return RuntimeError(f"{sentence}\n  input: {dtype}, parameters: {', '.join(map(str, given))}\n  Convert one of them: module.to({dtype}); parameters of float32 go with an input of 16 bits.")


def dtype_mismatch(a, b, names=("a", "b")) -> RuntimeError:
    """Two operands of a matrix product have different dtypes."""
    wider = a if a.bits >= b.bits and a.is_floating_point or not b.is_floating_point else b
    name = names[1] if wider is a else names[0]
    return RuntimeError(
        f"expected m1 and m2 to have the same dtype, but got: {c_name(a)} != {c_name(b)}\n"
        f"  {names[0]}: {a}\n  {names[1]}: {b}\n"
        f"  Convert one of them: {name}.to({wider})."
    )


def added_dtype_mismatch(input, weight, bias) -> RuntimeError:
    """A linear layer's operands have different dtypes: its input and weight, or its bias."""
    names = ("mat1 and mat2", input, weight) if input is not weight else ("self and mat2", bias, weight)
    sentence = f"{names[0]} must have the same dtype, but got {names[1].scalar_name} and {names[2].scalar_name}"
    culprit = "input" if input is not weight else "bias"
    return RuntimeError(f"{sentence}\n   input: {input}\n  weight: {weight}\n    bias: {bias}\n  Convert the {culprit}: {culprit}.to({weight}).")


_C_NAMES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long int", "float32": "float", "float64": "double",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def c_name(dtype) -> str:
    return _C_NAMES.get(dtype.name, dtype.name)


def check_devices(name, tensors):
    """The one device of several tensors; 0-d CPU tensors mix with any. Raises RuntimeError naming both devices."""
    device = tensors[0].device
    for t in tensors[1:]:
        if t.device != device:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {device} and {t.device}!"
                f"\n  in {name}: " + ", ".join(f"{list(x.shape)} on {x.device}" for x in tensors) + f"\n  Move one of them: x.to('{device}')."
            )
    return device
