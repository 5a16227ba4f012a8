"""Writes the type stubs of what is assembled at import, so that editors and type checkers see every name: the top level, class Tensor, nn, linalg, special, fft.

    python tools/stubs.py            # writes them into src/strided
    python tools/stubs.py --check    # ends with 1 if one of them is another one there

Signatures come from the functions themselves, the operators' from the operator table; results that are not one tensor are named here. Parameters
carry no types where the code gives none: tensors take numbers, lists and arrays in many places.
"""
from __future__ import annotations

import functools
import inspect
import re
import sys
import types
from pathlib import Path
from typing import Any

import strided
from strided import namespace
from strided.ops.return_types import TYPES
from strided.ops.table import TABLE

tensor = sys.modules["strided.tensor"]  # (as an attribute of the package that name is the function)
SOURCE = Path(strided.__file__).resolve().parent
_TENSORS = dict.fromkeys(
    """split split_with_sizes split_copy split_with_sizes_copy unsafe_split unsafe_split_with_sizes chunk unsafe_chunk tensor_split hsplit vsplit dsplit unbind
    unbind_copy broadcast_tensors meshgrid var_mean std_mean gradient native_layer_norm lu""".split(), "tuple[Tensor, ...]",
)  # fmt: skip
RESULTS = {**_TENSORS, **dict.fromkeys("equal allclose is_nonzero is_same_size".split(), "bool"), "item": "Any", "type": "Any", "__setitem__": "None"}
RESULTS.update(tolist="Any", numpy="Any", is_conj="bool", is_neg="bool", __complex__="complex", __float__="float", __int__="int", __iter__="Iterator[Tensor]", __init__="None")
_RETURNED = {name: made for name, made in TYPES.items() if not name.startswith("_")}
_OVERLOADS = {
    "size": ("(self) -> Size", "(self, dim: _int) -> _int"),
    "stride": ("(self) -> tuple[_int, ...]", "(self, dim: _int) -> _int"),
}
# Words an annotation may be made of; one with any other word is left out of a stub. Built-in types go by another name, since tensors have methods float(), int(), …
_BUILTIN = {"int", "float", "bool", "str", "bytes", "complex", "type"}
_KNOWN = _BUILTIN | {"None", "Any", "Tensor", "TypedStorage", "UntypedStorage", "Size", "DType", "Device", "Layout", "Spec", "Callable", "tuple", "list", "dict", "object", "Iterator"}
_PROPERTIES = dict.fromkeys("T H mT mH real imag".split(), "Tensor")
_PROPERTIES.update(layout="Any", is_leaf="bool", retains_grad="bool", output_nr="int", grad_fn="Any", dtype="DType", device="Device", shape="Size")
_WRITABLE = {"grad": "Tensor | None", "data": "Tensor", "requires_grad": "bool"}

_HEAD = '''"""{title} Written by tools/stubs.py."""
from builtins import bool as _bool, bytes as _bytes, complex as _complex, float as _float, int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator
from typing import Any, overload
'''


def annotation(value: Any, otherwise: str = "") -> str:
    """An annotation as a stub may write it, `otherwise` where it has none or names what a stub does not know."""
    if value is inspect.Signature.empty:
        return otherwise
    text = value if isinstance(value, str) else "None" if value is None else getattr(value, "__name__", repr(value))
    words = set(re.findall(r"[A-Za-z_][\w.]*", text))
    if not words <= _KNOWN:
        return otherwise
    return re.sub(rf"\b({'|'.join(sorted(_BUILTIN))})\b", r"_\1", text)


def default(value: Any) -> str:
    return repr(value) if value is None or type(value) in (bool, int, str) else "..."


def parameters(function: Any, drop: tuple[str, ...] = (), first: str | None = None) -> list[str]:
    """The parameters of a function, each as a stub writes it; `first`: another name for the first one."""
    found, star = [], False
    members = [p for p in inspect.signature(function).parameters.values() if p.name not in drop]
    for i, p in enumerate(members):
        if p.kind is p.KEYWORD_ONLY and not star:
            found.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        name = first if first and not i and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) else p.name
        if first and not i and p.kind is p.VAR_POSITIONAL:
            found.append(first)
        mark = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
        noted = "" if name == "self" else annotation(p.annotation)
        given = "" if p.default is p.empty else default(p.default)
        found.append(mark + name + (f": {noted}" if noted else "") + ((f" = {given}" if noted else f"={given}") if given else ""))
        if p.kind is p.POSITIONAL_ONLY and (i + 1 == len(members) or members[i + 1].kind is not p.POSITIONAL_ONLY):
            found.append("/")
    return found


def summary(function: Any) -> str:
    """The first line of a docstring, as a body."""
    line = (inspect.getdoc(function) or "").strip().partition("\n")[0]
    return f'\n    r"""{line}"""' if line and '"""' not in line and not line.endswith(('"', "\\")) else " ..."


def definition(name: str, given: list[str], result: str, function: Any) -> str:
    return f"def {name}({', '.join(given)}) -> {result}:{summary(function)}"


def shape_of(name: str) -> Any:
    """The function whose parameters an operator has: a generic form `name_` or `name_copy` passes its own on."""
    call = TABLE[name].call
    kinds = [p.kind for p in inspect.signature(call).parameters.values()]
    base = name.removesuffix("_") if name.endswith("_") else name.removesuffix("_copy")
    base = {"unsafe_split": "split", "unsafe_chunk": "chunk", "unsafe_split_with_sizes": "split_with_sizes"}.get(base, base)
    return TABLE[base].call if inspect.Parameter.VAR_POSITIONAL in kinds and base != name and base in TABLE else call


def operator(entry: Any, name: str, method: bool) -> list[str]:
    """An operator as a function or a method of that name (its own, or an alias)."""
    function = shape_of(entry.name)
    given = parameters(function, ("out",) if method or entry.name.endswith("_") else (), "self" if method else None)
    if entry.out and not method and not any(p.startswith("out") for p in given):
        star = any(p.startswith("*") and not p.startswith("**") for p in given)
        at = len(given) - bool(given and given[-1].startswith("**"))
        given[at:at] = ["out=None"] if star else ["*", "out=None"]
    if entry.name in ("max", "min", "median", "nanmedian"):
        head = given[0]
        forms = [f"{head}, dim: _int, keepdim: _bool = ...", head] + ([f"{head}, other: Tensor"] if entry.name in ("max", "min") else [])
        results = [f"_{entry.name}", "Tensor", "Tensor"]
        return [f"@overload\n{definition(name, [form], result, entry.call)}" for form, result in zip(forms, results)]
    result = RESULTS.get(entry.name) or (f"_{entry.name}" if entry.name in TYPES else "Tensor")
    return [definition(name, given, re.sub(rf"\b({'|'.join(sorted(_BUILTIN))})\b", r"_\1", result), entry.call)]


def plain(name: str, function: Any, first: str | None = None) -> str:
    """A function that is no operator."""
    result = annotation(inspect.signature(function).return_annotation, "")
    if name in RESULTS:
        result = annotation(RESULTS[name], "Any")
    return definition(name, parameters(function, ("f",) if first else (), first), result or "Any", function)


def named_tuples() -> list[str]:
    lines = []
    for name, made in sorted(_RETURNED.items()):
        fields = "".join(f"\n    @property\n    def {field}(self) -> Tensor: ..." for field in made.__match_args__)
        lines.append(f"class _{name}(tuple[Tensor, ...]):{fields}")
    return lines


_ARITHMETIC = re.compile(r"__[ri]?(add|sub|mul|truediv|floordiv|mod|pow|matmul|and|or|xor|lshift|rshift|div)__|__(neg|pos|abs|invert|lt|le|gt|ge|eq|ne|getitem|reversed)__")


def members(cls: type) -> list[str]:
    """Every attribute and method of a class, sorted."""
    table = {name: entry for entry in TABLE.values() if entry.method for name in (entry.name, *entry.aliases)} if cls is tensor.Tensor else {}
    lines = []
    for name, value in sorted(vars(cls).items()):
        if name in ("__module__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__hash__", "__slots__") or type(value).__name__ == "_RefusedAttribute":
            continue
        if type(value).__name__ == "member_descriptor":
            lines.append(f"{name}: Any")
        elif isinstance(value, property):
            if name in _WRITABLE:
                lines.append(f"{name}: {annotation(_WRITABLE[name])}")
            else:
                noted = annotation(inspect.signature(value.fget).return_annotation) or "Any"
                lines.append(f"@property\n{definition(name, ['self'], annotation(_PROPERTIES.get(name, inspect.Signature.empty)) or noted, value)}")
        elif isinstance(value, staticmethod):
            cls_first = name == "__new__"
            lines.append(("" if cls_first else "@staticmethod\n") + plain(name, value.__func__))
        elif name in table and not name.startswith("__"):
            lines += operator(table[name], name, True)
        elif cls is tensor.Tensor and name in _OVERLOADS:
            lines += [f"@overload\ndef {name}{form}: ..." for form in _OVERLOADS[name]]
        elif cls is tensor.Tensor and _ARITHMETIC.fullmatch(name):
            other = [] if re.fullmatch(r"__(neg|pos|abs|invert|reversed)__", name) else ["other: Any"]
            ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            lines.append(f"def {name}({', '.join(['self', *other])}) -> Tensor: ...{ignored}")
        elif name in ("__eq__", "__reduce_ex__", "__init__"):
            lines.append(f"def {name}(self, *args: Any, **kwargs: Any) -> None: ..." if name == "__init__" else f"def {name}(self, other: Any) -> Any: ...")
        elif callable(value):
            lines.append(plain(name, value, "self"))
        elif name.startswith("_") or value is None:
            lines.append(f"{name}: Any")
        else:
            lines.append(f"{name}: _{type(value).__name__}")
    annotated = [f"{name}: Any" if annotation(noted) == "" else f"{name}: {annotation(noted)}" for name, noted in vars(cls).get("__annotations__", {}).items() if name not in vars(cls)]
    return annotated + lines


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


def tensor_stub() -> str:
    """The text of tensor.pyi."""
    parts = [_HEAD.format(title="What a tensor is, with every method and attribute that operators give it.")]
    parts += ["from .dtypes import Device as Device, DType as DType\nfrom .kernels.native import Storage as Storage, new_storage as new_storage, wrap_storage as wrap_storage"]
    parts += ["from .layout import Layout as Layout, Size as Size, wrap_dim as wrap_dim\n"]
    for name, value in vars(tensor).items():
        if name in ("Spec", "Tensor", "TypedStorage", "UntypedStorage"):
            parts.append(f"class {name}:\n" + "\n".join(indented(line) for line in members(value)) + "\n")
        elif isinstance(value, types.FunctionType) and value.__module__ == tensor.__name__:
            parts.append(plain(name, value))
        elif name == "META_ADDRESS" or name.startswith("_SPEC"):
            parts.append(f"{name}: Any")
    parts += named_tuples()
    return "\n".join(parts) + "\n"


@functools.cache
def _written() -> dict[int, tuple[str, str]]:
    """id of every class and function → (module, name) where its source defines it, whatever its public name is."""
    for module in (strided, strided.nn, strided.nn.functional):
        [getattr(module, name) for name in dir(module)]  # loads what they load when first asked
    found = {}
    for where, module in sorted(sys.modules.items()):
        if where.startswith("strided.") and getattr(module, "__file__", None):
            defined = set(re.findall(r"^(?:class|def) (\w+)", Path(module.__file__).read_text(), re.M))
            found.update({id(value): (where, name) for name, value in vars(module).items() if name in defined and isinstance(value, (type, types.FunctionType)) and _of(value, where)})
    return found


def _of(value: Any, where: str) -> bool:
    """Whether a value comes from a module (classes with a public name of torch's do not say so)."""
    return value.__module__ == where or not value.__module__.startswith("strided")


def stub(title: str, names: dict[str, Any]) -> str:
    """The text of a stub for a module that has these names."""
    imports, lines = [], []
    for name, value in sorted(names.items()):
        entry = _OPERATORS.get(id(value))
        where, own = (None, "") if entry else _written().get(id(value), (None, ""))
        if entry is not None:
            lines += operator(entry, name, False)
        elif isinstance(value, types.ModuleType):
            holder, _, last = value.__name__.rpartition(".")
            imports.append(f"from {holder} import {last} as {name}" if holder.startswith("strided") else f"import {value.__name__} as {name}")
        elif where is not None and where != "strided.namespace":
            imports.append(f"from {where} import {own} as {own}")
            lines += [f"{name} = {own}"] if own != name else []
        elif isinstance(value, types.FunctionType):
            lines.append(plain(name, value))
        elif value is None or type(value) in (bool, int, float, str):
            lines.append(f"{name}: " + ("None" if value is None else f"_{type(value).__name__}"))
        else:  # an instance, or a class made by a function: what it is an instance or a subclass of is written somewhere
            kinds = value.__mro__ if isinstance(value, type) else type(value).__mro__
            where, own = next((_written()[id(kind)] for kind in kinds if id(kind) in _written()), (None, "Any"))
            imports += [f"from {where} import {own} as {own}"] if where else []
            lines.append(f"class {name}({own}): ..." if where and isinstance(value, type) else f"{name}: {own}")
    text = "\n".join(lines)
    annotated = {"strided.dtypes": "Device DType", "strided.layout": "Layout Size", "strided.tensor": "Tensor TypedStorage UntypedStorage " + " ".join(f"_{name}" for name in sorted(_RETURNED))}
    for where, words in annotated.items():
        used = [word for word in words.split() if re.search(rf"\b{word}\b", text)]
        imports += [f"from {where} import {', '.join(f'{word} as {word}' for word in used)}"] if used else []
    return "\n".join([_HEAD.format(title=title), *sorted(set(imports)), "", *lines]) + "\n"


_OPERATORS = {id(entry.call): entry for entry in TABLE.values()}


def public(module: types.ModuleType) -> dict[str, Any]:
    """The public names of a module, without the modules that it uses itself."""
    found = {name: getattr(module, name) for name in dir(module) if not name.startswith("_") and name != "FAMILIES"}
    return {name: value for name, value in found.items() if not isinstance(value, types.ModuleType)}


def package_stub() -> str:
    names = {**namespace.NAMES, **{name: getattr(strided, name) for name in (*strided._ROOMS, *strided._FROM_ROOMS, "__version__")}}
    return stub("The names at the top level of the package.", names)


def nn_stub() -> str:
    return stub("Modules, parameters, functions, initialisers.", {name: getattr(strided.nn, name) for name in strided.nn.__all__})


STUBS = {
    SOURCE / "__init__.pyi": package_stub,
    SOURCE / "tensor.pyi": tensor_stub,
    SOURCE / "nn" / "__init__.pyi": nn_stub,
    SOURCE / "nn" / "functional.pyi": lambda: stub("Functions on tensors, as torch.nn.functional has them.", public(strided.nn.functional)),
    SOURCE / "linalg.pyi": lambda: stub("Linear algebra, as torch.linalg has it.", public(strided.linalg)),
    SOURCE / "special.pyi": lambda: stub("Special functions, as torch.special has them.", public(strided.special)),
    SOURCE / "fft.pyi": lambda: stub("Fourier transforms, as torch.fft has them.", public(strided.fft)),
}


def main() -> int:
    stale = [path for path, text in STUBS.items() if not path.exists() or path.read_text() != text()]
    if "--check" in sys.argv[1:]:
        return int(bool(stale))
    for path in stale:
        path.write_text(STUBS[path]())
    return 0


if __name__ == "__main__":
    sys.exit(main())
