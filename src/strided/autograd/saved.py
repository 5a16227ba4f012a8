"""Tensors saved for backward: kept with the version they had, checked when taken out again.

Also the hooks that may pack them otherwise (`saved_tensors_hooks`, `save_on_cpu`). Which tensors are saved is the operators' choice.
"""

from __future__ import annotations

from strided.autograd.modes import STATE, no_grad
from strided.autograd.refusals import operation_name
from strided.tensor import Tensor, wrap


class _Released:
    """Stands where saved tensors were, once the graph has been freed."""

    def error(self) -> RuntimeError:
        return RuntimeError(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved "
            "intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
            "backward through the graph a second time or if you need to access saved tensors after calling backward."
        )


RELEASED = _Released()

# A saved tensor is one tuple, since saving happens in every recorded operator:
#   input   (tensor, version, its node then)
#   output  (None, version, output number, spec, storage, address)   holding the output itself would close a cycle output → node → output
#   packed  (unpack, packed value, is it an output, its node or leaf or None, output number)


def save(saves: tuple, outputs) -> list:
    """What a node keeps for the tensors `saves`; those that are among `outputs` are kept without their history."""
    if STATE.saved_hooks:
        return [_pack(s, outputs) for s in saves]
    several = type(outputs) is tuple or type(outputs) is list
    entries = []
    for s in saves:
        if s is None:
            entries.append(None)
        elif s._inference:
            raise RuntimeError(
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by "
                "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead "
                "of `torch.inference_mode()`."
            )
        elif s is outputs:
            entries.append((None, s.mem.version, 0, s.spec, s.mem, s.ptr))
        elif several and (number := _output_number(s, outputs)) is not None:
            entries.append((None, s.mem.version, number, s.spec, s.mem, s.ptr))
        else:
            entries.append((s, s.mem.version, s._node))
    return entries


def _output_number(s, outputs) -> int | None:
    if s is outputs:
        return 0
    if type(outputs) is tuple or type(outputs) is list:
        for number, out in enumerate(outputs):
            if s is out:
                return number
    return None


def unpack(entry, node):
    """The tensor an entry stands for, with the history it had when saved."""
    if entry is None:
        return None
    first, version = entry[0], entry[1]
    if first is None:
        _, _, number, spec, storage, ptr = entry
        if storage.version != version:
            raise _modified(spec, node, number, storage.version, version)
        return attached(wrap(spec, storage, ptr), node, number)
    if len(entry) == 5:
        return _unpack_packed(entry, node)
    current = first.mem.version
    if current != version:
        raise _modified(first.spec, first._node, first._nr, current, version)
    if first._node is not entry[2]:  # detached in place since: the history it had then is what counts
        return attached(wrap(first.spec, first.mem, first.ptr), entry[2], first._nr)
    return first


def attached(tensor, node, number: int = 0):
    """`tensor`, freshly made, as output `number` of `node`."""
    if node is not None:
        tensor._tracked, tensor._node, tensor._nr = True, node, number
    return tensor


_TYPE_NAMES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "uint8": "Byte", "int8": "Char", "int16": "Short",
    "int32": "Int", "int64": "Long", "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def type_name(dtype) -> str:
    """What PyTorch's older messages call a tensor of this dtype."""
    return f"torch.{_TYPE_NAMES.get(dtype.name, dtype.name)}Tensor"


def _modified(spec, node, number: int, current: int, expected: int) -> RuntimeError:
    origin = "" if node is None else f", which is output {number} of {operation_name(node.name())},"
    return RuntimeError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: [{type_name(spec.dtype)} {list(spec.shape)}]{origin} "
        f"is at version {current}; expected version {expected} instead. Hint: enable anomaly detection to find the operation that failed to compute "
        "its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


# ---- saved tensor hooks -------------------------------------------------------------------------


class saved_tensors_hooks:
    """Inside, tensors saved for backward go through `pack_hook(tensor) -> anything`, and back through `unpack_hook(anything) -> tensor`."""

    def __init__(self, pack_hook, unpack_hook):
        self.pair = pack_hook, unpack_hook

    def __enter__(self):
        if STATE.saved_hooks_disabled is not None:
            raise RuntimeError(STATE.saved_hooks_disabled)
        STATE.saved_hooks = (*STATE.saved_hooks, self.pair)

    def __exit__(self, *exc):
        STATE.saved_hooks = STATE.saved_hooks[:-1]


class save_on_cpu(saved_tensors_hooks):
    """Saved tensors are kept as copies in main memory. On the cpu device that is where they are: a copy is made all the same."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda tensor: (tensor.device, tensor.clone()), lambda packed: packed[1].to(packed[0]))


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Inside, tensors saved for backward may be written in place afterwards: the backward pass, which must run inside too, sees what was saved.

    Each saved tensor is copied as it is saved (PyTorch copies as it is written). Entering it gives an object whose `clear()` drops the copies.
    """

    _inside = False

    def __init__(self):
        self.copies: dict[int, Tensor] = {}
        super().__init__(self._pack, self._unpack)

    def _pack(self, tensor):
        self.copies[key := len(self.copies)] = tensor.clone()
        return key

    def _unpack(self, key):
        if key not in self.copies:
            raise RuntimeError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was originally recorded.")
        return self.copies[key]

    def clear(self) -> None:
        self.copies.clear()

    def __enter__(self):
        if allow_mutation_on_saved_tensors._inside:
            raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
        super().__enter__()
        allow_mutation_on_saved_tensors._inside = True
        return self

    def __exit__(self, *exc):
        allow_mutation_on_saved_tensors._inside = False
        self.clear()
        super().__exit__(*exc)


class disable_saved_tensors_hooks:
    """Inside, entering `saved_tensors_hooks` raises `error_message`."""

    def __init__(self, error_message: str):
        self.message = error_message

    def __enter__(self):
        self.previous = STATE.saved_hooks_disabled
        STATE.saved_hooks_disabled = self.message

    def __exit__(self, *exc):
        STATE.saved_hooks_disabled = self.previous


def _pack(s, outputs):
    if s is None:
        return None
    number = _output_number(s, outputs)
    pack_hook, unpack_hook = STATE.saved_hooks[-1]
    given = s if number is None else wrap(s.spec, s.mem, s.ptr)
    version = given.mem.version
    with no_grad():
        packed = pack_hook(given)
    if given.mem.version != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by in-place operations as "
            "this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on the input to a pack hook."
        )
    if number is not None:
        return unpack_hook, packed, True, None, number
    leaf = s if s._tracked else None
    return unpack_hook, packed, False, s._node or leaf, s._nr


def _unpack_packed(entry, node):
    unpack_hook, packed, is_output, source, number = entry
    with no_grad():
        tensor = unpack_hook(packed)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}")
    if is_output:
        source = node
    if source is None or tensor is source:
        return tensor
    made = wrap(tensor.spec, tensor.mem, tensor.ptr)
    if isinstance(source, Tensor):  # a leaf: the unpacked data stands for it, a leaf as well, and gradients go to the leaf itself
        made._tracked, made._accumulator = True, source._accumulator
        return made
    return attached(made, source, number)
