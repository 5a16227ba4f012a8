"""What pooling and convolution refuse, in PyTorch's words and order: numbers of dimensions, empty sizes, windows and steps that are not positive.

Only shapes and numbers are looked at, before any work. The arithmetic of output sizes is pooling.py's and conv.py's.
"""
from __future__ import annotations

from operator import index

from ...errors import c_name, type_name

_WORDS = {1: "one int", 2: "two ints", 3: "three ints"}
_AXES = ("T", "H", "W")


def _labelled(letter, values):
    values = (1, *values) if len(values) == 1 else values
    return " ".join(f"{letter}{axis}: {value}" for axis, value in zip(_AXES[-len(values) :], values))


def window_sizes(name, n, kernel, stride):
    """Each is one number or one a dimension."""
    for what, value in (("kernel_size", kernel), ("stride", stride)):
        if isinstance(value, (tuple, list)) and len(value) not in (0, 1, n):
            if n == 1:
                raise RuntimeError(f"{name}() argument '{what}' should contain one int (got {len(value)})")
            raise RuntimeError(f"{name}: {what} must {'either ' if what == 'kernel_size' else 'either be omitted, '}be a single int, or a tuple of {_WORDS[n]}")


def _ndim(name, n, x):
    if x.dim() in (n + 1, n + 2):
        return
    if name == "max_pool1d":
        raise RuntimeError(f"max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{list(x.shape)}")
    if n == 1:
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {x.dim()}-dimensional tensor for argument #1 'self' (while checking arguments for {name})")
    if name == "avg_pool2d" and x.dim() < n + 1:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-max(x.dim(), 1)}, {max(x.dim(), 1) - 1}], but got -3)")
    raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input\n  {name} got {x.dim()} dimensions: {list(x.shape)}")


def pool(name, n, x, kernel, stride, padding, dilation, plain=True):
    """A pooling over the last n dimensions of x, its window given by tuples of n numbers. plain: without indices (max_pool1d words it otherwise)."""
    _ndim(name, n, x)
    shape = list(x.shape)
    empty = 0 in shape[-n - 1 :]
    if name == "max_pool1d":
        if empty:
            raise RuntimeError(f"max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{shape}")
        for what, (value,), least in (("kernel_size", kernel, 1), ("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1)):
            if value < least and plain:
                raise RuntimeError(f"max_pool1d() {what} must be {'greater than zero' if least else 'non-negative'}, but got {value}")
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    for what, letter, values in (("kernel size", "k", kernel), ("stride", "d", stride), ("dilation", "dilation", dilation)):
        if min(values) <= 0:
            raise RuntimeError(f"{what} should be greater than zero, but got {_labelled(letter, values)}")
    for p, k, d in zip(padding, kernel, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2 or name == "max_pool1d" and plain and p > k // 2:
            if name == "max_pool1d" and plain:
                raise RuntimeError(f"max_pool1d() padding should be at most half of kernel size, but got padding={p} and kernel_size={k}")
            raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}")
    if empty and n == 3:  # PyTorch says dimension 0 whichever it is
        name = "max_pool3d_with_indices_out_cpu_template" if name == "max_pool3d" else name
        raise RuntimeError(f"{name}(): Expected input's non-batch dimensions to have positive length, but input has a shape of {shape} and non-batch dimension 0 has length zero!")
    if empty:
        shown = [*shape[:-1], 1, shape[-1]] if n == 1 else shape
        raise RuntimeError(f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{shown}")
    if any(p > k // 2 for p, k in zip(padding, kernel)):  # a dilated window may reach over it, but PyTorch takes none
        if n == 3:
            shown = f"kT: {kernel[0]} kW: {kernel[2]} kH: {kernel[1]} padT: {padding[0]} padW: {padding[2]} padH: {padding[1]}"
        else:
            (ph, pw), (kh, kw) = ((0, *padding), (1, *kernel)) if n == 1 else (padding, kernel)
            shown = f"padW = {pw}, padH = {ph}, kW = {kw}, kH = {kh}"
        raise RuntimeError(f"pad should be smaller than or equal to half of kernel size, but got {shown}")


def pool_result(name, n, x, kernel, outs):
    """The sizes that come out of it."""
    if min(outs) >= 1 and not (name == "avg_pool3d" and any(k > s for k, s in zip(kernel, x.shape[-3:]))):  # there padding does not help
        return
    if name == "max_pool1d":
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {outs[0]}")
    if name == "avg_pool3d":
        raise RuntimeError(f"input image ({' '.join(f'{a}: {s}' for a, s in zip(_AXES, x.shape[-3:]))}) smaller than kernel size ({_labelled('k', kernel)})")
    kept = x.shape[-n - 1 : x.dim() - n]
    before, after = ((1, x.shape[-1]), (1, *outs)) if n == 1 else (tuple(x.shape[-n:]), tuple(outs))
    raise RuntimeError(f"Given input size: ({'x'.join(map(str, (*kept, *before)))}). Calculated output size: ({'x'.join(map(str, (*kept, *after)))}). Output size is too small")


def adaptive(kind, n, x, output_size):
    """adaptive_max or adaptive_avg (`kind`) pooling of the last n dimensions of x."""
    name, shape = f"adaptive_{kind}_pool{n}d", list(x.shape)
    many = isinstance(output_size, (tuple, list))
    if n == 1:
        if many and len(output_size) != 1:
            raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got {len(output_size)})")
        _ndim(name, 1, x)
    else:
        if many and len(shape) <= len(output_size):
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
        if many and len(output_size) != n:
            raise RuntimeError(f"{name}: output_size must be {n}" if kind == "avg" else f"{name}(): internal error: output_size.size() must be {n}")
        if x.dim() not in (n + 1, n + 2):
            raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{':' if kind == 'max' else ''} {shape}")
    inserted = [*shape[:-1], 1, shape[-1]] if n == 1 and kind == "avg" else shape
    for d in range(x.dim() - n, x.dim()):
        if not shape[d]:
            shown = "adaptive_avg_pool2d" if n == 1 and kind == "avg" else name
            raise RuntimeError(
                f"{shown}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {inserted} with dimension {d + len(inserted) - len(shape)} being empty"
            )
    sizes = [size if out is None else out for size, out in zip(shape[-n:], output_size if many else (output_size,) * n)]
    if min(sizes) < 0 and kind == "avg":
        first, *rest = (1, *sizes) if n == 1 else sizes
        raise RuntimeError(f"adaptive_avg_pool{max(n, 2)}d: elements of output_size must be greater than or equal to 0 but received {{{first}, {','.join(map(str, rest))}}}")
    if min(sizes) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {[*shape[:-n], *([1] if n == 1 else []), *sizes]}")


def steps(name, n, label, value):
    """A convolution's stride, padding or dilation as n ints, from one or from n. Raises TypeError for others than ints, RuntimeError for another number of them."""
    if type(value) is int:  # most calls
        return (value,) * n
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if any(isinstance(item, bool) or not hasattr(item, "__index__") for item in given):
        raise TypeError(f"{name}(): argument '{label}' must be tuple of ints, not {type(value).__name__}")
    if len(given) not in (1, n):
        raise RuntimeError(f"expected {label} to be a single integer value or a list of {n} values to match the convolution dimensions, but got {label}={list(given)}")
    return tuple(map(index, given)) * (n if len(given) == 1 else 1)


def groups_of(name, value):
    """A convolution's number of groups. Raises TypeError for others than ints, RuntimeError below 1."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}(): argument 'groups' must be int, not {type(value).__name__}")
    if value <= 0:
        raise RuntimeError("non-positive groups is not supported")
    return index(value)


def positive_steps(stride, padding, dilation):
    """RuntimeError for steps that no convolution takes."""
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")


def blocks(kernel, dilation, stride, padding):
    """What unfold and fold refuse of their windows. Each is (height, width)."""
    for label, short, (height, width) in (("kernel size", "kernel", kernel), ("stride", "stride", stride), ("dilation", "dilation", dilation)):
        if height <= 0 or width <= 0:
            raise RuntimeError(f"{label} should be greater than zero, but got {short}_height: {height} {short}_width: {width}")
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got pad_height: {padding[0]} pad_width: {padding[1]}")


def one_dtype(x, weight, bias, transposed=False):
    """Of a convolution's operands. PyTorch words it differently for a transposed one."""
    if bias is not None and bias.dtype is not x.dtype:
        raise RuntimeError(f"Input type ({c_name(x.dtype)}) and bias type ({c_name(bias.dtype)}) should be the same\n  Convert one of them: bias.to({x.dtype}).")
    if transposed and weight.dtype is not x.dtype and (x.dtype.name in ("float32", "bfloat16") or x.dtype.is_complex):
        library = "" if x.dtype.is_complex else " or input should be a MKLDNN tensor and weight is a dense tensor"
        raise RuntimeError(f"Input type ({type_name(x.dtype)}) and weight type ({type_name(weight.dtype)}) should be the same{library}\n  Convert one of them: weight.to({x.dtype}).")
    if weight.dtype is not x.dtype:
        raise RuntimeError(f"expected scalar type {x.dtype.scalar_name} but found {weight.dtype.scalar_name}\n  Input and weight need one dtype: weight.to({x.dtype}).")


def convolution(n, x, weight, bias, stride, padding, dilation, groups):
    """A convolution over the last n dimensions of x, its steps given by tuples; `padding` may be a word."""
    shape = list(x.shape) if x.dim() == n + 2 else [1, *x.shape]
    weights = list(weight.shape)
    one_dtype(x, weight, bias)
    positive_steps(stride, (0,) if isinstance(padding, str) else padding, dilation)
    if weight.dim() != n + 2:
        if weight.dim() < 3:
            raise RuntimeError("weight should have at least three dimensions")
        raise RuntimeError(f"Expected {weight.dim()}-dimensional input for {weight.dim()}-dimensional weight{weights}, but got {len(shape)}-dimensional input of size {shape} instead")
    if weights[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {weights} instead")
    if weights[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size [{weights}] instead")
    if shape[1] != weights[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {weights}, expected input{shape} to have {weights[1] * groups} channels, but got {shape[1]} channels instead"
        )
    if bias is not None and list(bias.shape) != weights[:1]:
        raise RuntimeError(f"Given weight of size {weights}, expected bias to be 1-dimensional with {weights[0]} elements, but got bias of size {list(bias.shape)} instead")
