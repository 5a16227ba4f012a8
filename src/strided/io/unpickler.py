"""Reads pickles without executing them: an interpreter of pickle's opcodes that builds plain data and calls only what an allow-list holds.

Holds the interpreter and its limits. What may be called is allowed.py's business, where the bytes come from serialization.py's. Nothing is ever
imported because a pickle names it; containers are filled only if they are plain ones; nothing can be set on a class, function or module.
"""

from __future__ import annotations

import pickle
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict, defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

UnpicklingError = pickle.UnpicklingError
DEPTH = 100  # tuples nested deeper than this are no keys: hashing them would use up the stack
ITEMS = 10_000
_TABLES = (dict, OrderedDict, Counter, defaultdict)
_PLAIN = frozenset((str, int, float, bool, bytes, complex, type(None)))
_U16, _U32, _I32, _U64, _F64 = (struct.Struct(form) for form in ("<H", "<I", "<i", "<Q", ">d"))


class Allowed:
    """What a pickle may name. `find(module, name)` returns the object or raises; `calls(object)`: whether it may be called, by
    `call(object, args)`; `makes(class)`: whether NEWOBJ may make one; `build(object, state)` gives an object other than an OrderedDict its state, or raises."""

    def find(self, module: str, name: str) -> Any:
        raise NotImplementedError

    def calls(self, function: Any) -> bool:
        raise NotImplementedError

    def call(self, function: Any, args: tuple) -> Any:
        raise NotImplementedError

    def makes(self, kind: Any) -> bool:
        raise NotImplementedError

    def build(self, target: Any, state: Any) -> None:
        raise NotImplementedError


def check_key(key: Any) -> Any:
    """The key, if it can be hashed without harm. Raises UnpicklingError."""
    if type(key) in _PLAIN:
        return key
    level, seen = [key], 0
    for _ in range(DEPTH):
        level = [item for inner in level if isinstance(inner, (tuple, frozenset)) for item in inner]
        seen += len(level)
        if not level:
            return key
        if seen > ITEMS:  # a few tuples that hold each other twice over and over would take for ever to hash
            break
    raise UnpicklingError(f"a key of tuples nested more than {DEPTH} deep, or with more than {ITEMS:,} entries")


class Unpickler:
    """One pickle from `data`, starting at `position` (after `load`, where it ended). `persistent(pid)` answers for persistent ids (storages)."""

    def __init__(self, data: Any, allowed: Allowed, persistent: Callable[[Any], Any], position: int = 0, encoding: str = "utf-8"):
        self.data, self.position, self.allowed, self.persistent, self.encoding = memoryview(data), position, allowed, persistent, encoding
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.protocol = 0
        self.running = True

    def load(self) -> Any:
        """The object. Raises UnpicklingError for a pickle that is damaged or asks for what is not allowed; errors of allowed functions pass through it."""
        handlers, data, size = _HANDLERS, self.data, self.data.nbytes
        start = self.position
        try:
            while self.running:
                place = self.position
                if place >= size:
                    raise EOFError(f"Ran out of input: the pickle does not end within its {size - start:,} bytes")
                handler = handlers.get(data[place])
                if handler is None:
                    raise UnpicklingError(f"Unsupported operand {data[place]}")
                self.position = place + 1
                handler(self)
            return self.stack.pop()
        except (UnpicklingError, EOFError, NotImplementedError, RuntimeError, MemoryError):
            raise
        except (IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
            raise UnpicklingError(f"damaged pickle at byte {place:,} of {size:,}: {type(error).__name__}: {error}") from None

    # ---- reading ----

    def take(self, count: int) -> memoryview:
        """The next bytes."""
        start, end = self.position, self.position + count
        if count < 0:
            raise UnpicklingError(f"a length of {count} at byte {start:,}")
        if end > self.data.nbytes:
            raise EOFError(f"Ran out of input: {count:,} bytes are announced at byte {start:,} of {self.data.nbytes:,}")
        self.position = end
        return self.data[start:end]

    def number(self, form: struct.Struct) -> Any:
        return form.unpack(self.take(form.size))[0]

    def line(self) -> str:
        start = self.position
        end = start
        while True:
            chunk = bytes(self.data[end : end + 256])
            found = chunk.find(b"\n")
            if found >= 0:
                self.position = end + found + 1
                return bytes(self.data[start : end + found]).decode("utf-8")
            if len(chunk) < 256:
                raise EOFError("Ran out of input: the pickle ends inside a name")
            end += 256

    def pop_mark(self) -> list[Any]:
        if not self.marks:
            raise UnpicklingError("damaged pickle: no mark on the stack")
        items, self.stack = self.stack, self.marks.pop()
        return items

    # ---- what is guarded ----

    def do_global(self) -> None:
        module = self.line()
        self.push_global(module, self.line())

    def do_stack_global(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise UnpicklingError("STACK_GLOBAL requires str")
        self.push_global(module, name)

    def push_global(self, module: str, name: str) -> None:
        if self.protocol < 3:
            module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))  # Python 2's names, as old protocols spell them
        self.stack.append(self.allowed.find(module, name))

    def do_reduce(self) -> None:
        args, function = self.stack.pop(), self.stack.pop()
        if not self.allowed.calls(function):
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {type(function)}")
        if type(args) is not tuple:
            raise UnpicklingError(f"a call needs a tuple of arguments, but got {type(args)}")
        self.stack.append(self.allowed.call(function, args))

    def do_newobj(self) -> None:
        args, kind = self.stack.pop(), self.stack.pop()
        self.make(kind, args, {})

    def do_newobj_ex(self) -> None:
        keywords, args, kind = self.stack.pop(), self.stack.pop(), self.stack.pop()
        self.make(kind, args, keywords)

    def make(self, kind: Any, args: Any, keywords: Any) -> None:
        if not self.allowed.makes(kind):
            raise UnpicklingError(f"Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got {kind if isinstance(kind, type) else type(kind)}")
        self.stack.append(kind.__new__(kind, *args, **keywords))

    def do_build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if type(target) is not OrderedDict:
            self.allowed.build(target, state)
        elif type(state) is dict:
            target.__dict__.update(state)
        else:
            raise UnpicklingError(f"an OrderedDict's state is a dict, but got {type(state)}")

    def do_persistent(self) -> None:
        pid = self.stack.pop()
        if type(pid) is not tuple or not pid or pid[0] not in ("storage", b"storage"):
            raise UnpicklingError(f"Only persistent_load of storage is allowed, but got {pid[0] if type(pid) is tuple and pid and type(pid[0]) is str else type(pid)}")
        self.stack.append(self.persistent(pid))

    def do_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.fill((key, value))

    def do_setitems(self) -> None:
        self.fill(self.pop_mark())

    def fill(self, items: Any) -> None:
        table = self.stack[-1]
        if type(table) not in _TABLES:
            raise UnpicklingError(f"Can only SETITEMS for dict, collections.OrderedDict, collections.Counter, but got {type(table)}")
        if len(items) % 2:
            raise UnpicklingError("damaged pickle: a key without its value")
        for place in range(0, len(items), 2):
            table[check_key(items[place])] = items[place + 1]

    def do_append(self) -> None:
        item = self.stack.pop()
        self.list_on_top().append(item)

    def do_appends(self) -> None:
        items = self.pop_mark()
        self.list_on_top().extend(items)

    def list_on_top(self) -> list[Any]:
        target = self.stack[-1]
        if type(target) is not list:
            raise UnpicklingError(f"Can only append to lists, but got {type(target)}")
        return target

    def do_additems(self) -> None:
        items, target = self.pop_mark(), self.stack[-1]
        if type(target) is not set:
            raise UnpicklingError(f"Can only add to sets, but got {type(target)}")
        target.update(map(check_key, items))

    # ---- plain data ----

    def do_proto(self) -> None:
        self.protocol = self.take(1)[0]
        if self.protocol > pickle.HIGHEST_PROTOCOL:
            raise UnpicklingError(f"unsupported pickle protocol: {self.protocol}")

    def do_stop(self) -> None:
        self.running = False

    def do_mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def do_tuple(self) -> None:
        items = tuple(self.pop_mark())
        self.stack.append(items)

    def do_tuple_of(self, count: int) -> None:
        if len(self.stack) < count:
            raise UnpicklingError("damaged pickle: the stack is empty")
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def do_pop(self) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.pop_mark()

    def do_put(self, place: int) -> None:
        self.memo[place] = self.stack[-1]

    def do_get(self, place: int) -> None:
        if place not in self.memo:
            raise UnpicklingError(f"Memo value not found at index {place}")
        self.stack.append(self.memo[place])

    def do_dict(self) -> None:
        items = self.pop_mark()
        self.stack.append({})
        self.fill(items)

    def do_text(self, count: int) -> None:
        self.stack.append(str(self.take(count), "utf-8", "surrogatepass"))

    def do_old_text(self, count: int) -> None:
        data = bytes(self.take(count))
        self.stack.append(data if self.encoding == "bytes" else data.decode(self.encoding))

    def do_long(self, count: int) -> None:
        self.stack.append(int.from_bytes(self.take(count), "little", signed=True))


def _push(make: Callable[[Unpickler], Any]) -> Callable[[Unpickler], None]:
    def push(u: Unpickler) -> None:
        value = make(u)  # first: it may change which stack is the present one
        u.stack.append(value)

    return push


_HANDLERS: dict[int, Callable[[Unpickler], None]] = {
    code[0]: handler
    for code, handler in (
        (pickle.PROTO, Unpickler.do_proto), (pickle.STOP, Unpickler.do_stop), (pickle.FRAME, lambda u: u.take(8) and None),
        (pickle.MARK, Unpickler.do_mark), (pickle.POP, Unpickler.do_pop), (pickle.POP_MARK, lambda u: u.pop_mark() and None), (pickle.DUP, _push(lambda u: u.stack[-1])),
        (pickle.GLOBAL, Unpickler.do_global), (pickle.STACK_GLOBAL, Unpickler.do_stack_global), (pickle.REDUCE, Unpickler.do_reduce),
        (pickle.NEWOBJ, Unpickler.do_newobj), (pickle.NEWOBJ_EX, Unpickler.do_newobj_ex), (pickle.BUILD, Unpickler.do_build), (pickle.BINPERSID, Unpickler.do_persistent),
        (pickle.NONE, _push(lambda u: None)), (pickle.NEWTRUE, _push(lambda u: True)), (pickle.NEWFALSE, _push(lambda u: False)),
        (pickle.BININT, _push(lambda u: u.number(_I32))), (pickle.BININT1, _push(lambda u: u.take(1)[0])), (pickle.BININT2, _push(lambda u: u.number(_U16))),
        (pickle.LONG1, lambda u: u.do_long(u.take(1)[0])), (pickle.LONG4, lambda u: u.do_long(u.number(_I32))), (pickle.BINFLOAT, _push(lambda u: u.number(_F64))),
        (pickle.SHORT_BINUNICODE, lambda u: u.do_text(u.take(1)[0])), (pickle.BINUNICODE, lambda u: u.do_text(u.number(_U32))), (pickle.BINUNICODE8, lambda u: u.do_text(u.number(_U64))),
        (pickle.SHORT_BINSTRING, lambda u: u.do_old_text(u.take(1)[0])), (pickle.BINSTRING, lambda u: u.do_old_text(u.number(_I32))),
        (pickle.SHORT_BINBYTES, _push(lambda u: bytes(u.take(u.take(1)[0])))), (pickle.BINBYTES, _push(lambda u: bytes(u.take(u.number(_U32))))),
        (pickle.BINBYTES8, _push(lambda u: bytes(u.take(u.number(_U64))))), (pickle.BYTEARRAY8, _push(lambda u: bytearray(u.take(u.number(_U64))))),
        (pickle.EMPTY_TUPLE, _push(lambda u: ())), (pickle.TUPLE, Unpickler.do_tuple), (pickle.TUPLE1, lambda u: u.do_tuple_of(1)),
        (pickle.TUPLE2, lambda u: u.do_tuple_of(2)), (pickle.TUPLE3, lambda u: u.do_tuple_of(3)),
        (pickle.EMPTY_LIST, _push(lambda u: [])), (pickle.LIST, _push(lambda u: u.pop_mark())), (pickle.APPEND, Unpickler.do_append), (pickle.APPENDS, Unpickler.do_appends),
        (pickle.EMPTY_DICT, _push(lambda u: {})), (pickle.DICT, Unpickler.do_dict), (pickle.SETITEM, Unpickler.do_setitem), (pickle.SETITEMS, Unpickler.do_setitems),
        (pickle.EMPTY_SET, _push(lambda u: set())), (pickle.ADDITEMS, Unpickler.do_additems), (pickle.FROZENSET, _push(lambda u: frozenset(map(check_key, u.pop_mark())))),
        (pickle.BINPUT, lambda u: u.do_put(u.take(1)[0])), (pickle.LONG_BINPUT, lambda u: u.do_put(u.number(_U32))), (pickle.MEMOIZE, lambda u: u.do_put(len(u.memo))),
        (pickle.BINGET, lambda u: u.do_get(u.take(1)[0])), (pickle.LONG_BINGET, lambda u: u.do_get(u.number(_U32))),
    )
}  # fmt: skip
