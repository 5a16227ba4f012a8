"""The runtime's Python objects as IR text: what tensors and nodes of the graph are made of, and the modes of a thread. Fields lie at fixed places, so that a
recorded operator reads and writes them without looking a name up. What is recorded is runtime_record.py's.

Layout behind the 16-byte object header: one pointer a field in the order given here, then the instance's dictionary and its weak references.
"""
from __future__ import annotations

from .runtime_text import Function

TENSOR = (
    "spec", "mem", "ptr", "_tracked", "_node", "_nr", "_grad", "_base", "_hooks", "_inference", "_accumulator", "_seen", "_view_kind", "_retains", "_post_hooks",
)  # fmt: skip
NODE = ("edges", "seq", "saves", "specs", "needs", "hooks", "made_at")
# A thread's modes and what it begins with: autograd's (autograd/modes.py), then dispatch's (dispatch.py).
_MODES = {
    "grad_enabled": "@g_true", "inference": "@g_false", "saved_hooks": "@g_empty", "saved_hooks_disabled": "@g_none", "run": "@g_none",
    "autocast_dtype": "@g_none", "autocast_cache": "@g_none", "depth": "@g_zero", "phase": "@g_forward",
}  # fmt: skip
MODES = tuple(_MODES)
_HEADER = 16
T = {name: _HEADER + 8 * i for i, name in enumerate(TENSOR)}
N = {name: _HEADER + 8 * i for i, name in enumerate(NODE)}
M = {name: _HEADER + 8 * i for i, name in enumerate(MODES)}
TENSOR_DICT, NODE_DICT = _HEADER + 8 * len(TENSOR), _HEADER + 8 * len(NODE)
TENSOR_SIZE, NODE_SIZE, MODES_SIZE = TENSOR_DICT + 16, NODE_DICT + 16, _HEADER + 8 * len(MODES)

# What a new object holds; fields that are not named hold nothing, and reading them is an AttributeError.
_NONE = {"tensor": ("_node", "_grad", "_base", "_hooks", "_accumulator", "_view_kind", "_post_hooks"), "node": ("hooks", "made_at")}
_FALSE = {"tensor": ("_tracked", "_inference", "_retains"), "node": ()}
_ZERO = {"tensor": ("_nr", "_seen"), "node": ()}
# Fields through which a cycle may lead.
_VISITED = {"tensor": ("_node", "_grad", "_base", "_hooks", "_accumulator", "_post_hooks"), "node": ("edges", "saves", "specs", "hooks")}

GLOBALS = """
@g_true = internal global ptr null
@g_false = internal global ptr null
@g_zero = internal global ptr null
@g_empty = internal global ptr null           ; the empty tuple
@g_mortal = internal global i64 0             ; 1 where None, True and small ints count their references (before Python 3.12)
@g_tensor_base = internal global ptr null
@g_node_base = internal global ptr null
@g_modes_type = internal global ptr null
@g_tensor_type = internal global ptr null     ; the class of plain tensors
@g_tuple_type = internal global ptr null
@g_type_type = internal global ptr null
@g_anomaly = internal global i64 0
@g_sequence = internal global i64 0
@g_record = internal global ptr null          ; what records in all cases, in Python
@g_window = internal global ptr null
@g_no_grad = internal global ptr null         ; why a view made without recording may not be written through
@g_forward = internal global ptr null         ; the phase that is not "backward"
@g_saves = internal global ptr null           ; names of attributes
@g_recipe = internal global ptr null
@g_kinds = internal global ptr null
@g_numbers = internal global ptr null
@g_key = internal global ptr null             ; under which a thread's dictionary holds its modes
@g_thread = internal global i64 -1            ; the thread whose modes are at hand
@g_modes = internal global ptr null
@s_named_saves = internal constant [6 x i8] c"saves\\00"
@s_mode = internal constant [25 x i8] c"a mode cannot be deleted\\00"

declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @PyObject_GC_UnTrack(ptr)
declare void @PyObject_GC_Del(ptr)
declare void @PyObject_ClearWeakRefs(ptr)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare ptr @PyThreadState_Get()
declare i64 @PyThreadState_GetID(ptr)
declare ptr @PyThreadState_GetDict()
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyDict_New()
declare ptr @PyObject_GenericGetAttr(ptr, ptr)
declare i32 @PyObject_GenericSetAttr(ptr, ptr, ptr)
declare i32 @PyObject_SetAttr(ptr, ptr, ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare i32 @PyList_Append(ptr, ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i32 @PyUnicode_CompareWithASCIIString(ptr, ptr)

define ptr @strided_set_objects(ptr %true, ptr %false, ptr %zero, ptr %empty, i64 %mortal, ptr %tuple, ptr %type, ptr %key, ptr %no_grad, ptr %forward,
                                ptr %saves, ptr %recipe, ptr %kinds, ptr %numbers) {
  store ptr %true, ptr @g_true
  store ptr %false, ptr @g_false
  store ptr %zero, ptr @g_zero
  store ptr %empty, ptr @g_empty
  store i64 %mortal, ptr @g_mortal
  store ptr %tuple, ptr @g_tuple_type
  store ptr %type, ptr @g_type_type
  store ptr %key, ptr @g_key
  store ptr %no_grad, ptr @g_no_grad
  store ptr %forward, ptr @g_forward
  store ptr %saves, ptr @g_saves
  store ptr %recipe, ptr @g_recipe
  store ptr %kinds, ptr @g_kinds
  store ptr %numbers, ptr @g_numbers
  ret ptr null
}

define ptr @strided_set_types(ptr %tensor, ptr %node, ptr %modes) {
  store ptr %tensor, ptr @g_tensor_base
  store ptr %node, ptr @g_node_base
  store ptr %modes, ptr @g_modes_type
  ret ptr null
}

; a reference more to an object that never dies
define internal void @hold(ptr %o, i64 %times) alwaysinline {
  %m = load i64, ptr @g_mortal
  %k = mul i64 %m, %times
  %c = load i64, ptr %o
  %c2 = add i64 %c, %k
  store i64 %c2, ptr %o
  ret void
}

; nothing is none: fields can be deleted
define internal i1 @is_tensor(ptr %o) noinline {
  %nothing = icmp eq ptr %o, null
  br i1 %nothing, label %no, label %some
no:
  ret i1 false
some:
  %tp = getelementptr i8, ptr %o, i64 8
  %t = load ptr, ptr %tp
  %plain = load ptr, ptr @g_tensor_type
  %same = icmp eq ptr %t, %plain
  br i1 %same, label %yes, label %ask
yes:
  ret i1 true
ask:
  %base = load ptr, ptr @g_tensor_base
  %r = call i32 @PyType_IsSubtype(ptr %t, ptr %base)
  %is = icmp ne i32 %r, 0
  ret i1 %is
}
"""


def _fill(f: Function, kind: str, where: dict[str, int]) -> None:
    """Gives a new object the values that it begins with."""
    for names, constant in ((_NONE[kind], "@g_none"), (_FALSE[kind], "@g_false"), (_ZERO[kind], "@g_zero")):
        if names:
            value = f.load(constant)
            for name in names:
                f.store(value, "%o", where[name])
            f.run("hold", value, f"i64 {len(names)}")


def _drop(f: Function, value: str) -> None:
    """A reference less; most fields hold None."""
    none = f.load("@g_none")
    f.count += 1
    n = f.count
    f.do(f"br i1 {f.equal(value, none)}, label %plain{n}, label %real{n}")
    f.label(f"plain{n}")
    f.run("hold", none, "i64 -1")
    f.go(f"done{n}")
    f.label(f"real{n}")
    f.run("Py_DecRef", value)  # nothing is fine
    f.go(f"done{n}")
    f.label(f"done{n}")


def _kind(kind: str, fields: tuple[str, ...], where: dict[str, int], dictionary: int) -> str:
    """tp_new, tp_traverse, tp_clear and tp_dealloc of a type."""
    made = Function(f"internal ptr @{kind}_alloc(ptr %type) noinline")
    made.do("%o = call ptr @PyType_GenericAlloc(ptr %type, i64 0)")
    with made.when(made.other("%o", "null")):
        _fill(made, kind, where)
    made.give("%o")

    new = Function(f"ptr @strided_{kind}_new(ptr %type, ptr %args, ptr %kwargs)")
    new.give(new.call(f"{kind}_alloc", "%type"))

    visit = Function(f"i32 @strided_{kind}_traverse(ptr %o, ptr %visit, ptr %arg)")
    for place in (*[where[name] for name in _VISITED[kind]], dictionary, 8):
        field = visit.load("%o", place)
        with visit.when(visit.other(field, "null")):
            found = visit.value(f"call i32 %visit(ptr {field}, ptr %arg)")
            with visit.when(visit.other(found, "0", "i32")):
                visit.give(f"i32 {found}")
    visit.give("i32 0")

    clear = Function(f"i32 @strided_{kind}_clear(ptr %o)")
    none = clear.load("@g_none")
    for name in _VISITED[kind]:
        field = clear.load("%o", where[name])
        with clear.when(clear.other(field, "null")):
            clear.run("hold", none, "i64 1")
            clear.store(none, "%o", where[name])
            clear.run("Py_DecRef", field)
    field = clear.load("%o", dictionary)
    clear.store("null", "%o", dictionary)
    clear.run("Py_DecRef", field)
    clear.give("i32 0")

    die = Function(f"void @strided_{kind}_dealloc(ptr %o)")
    die.run("PyObject_GC_UnTrack", "%o")
    weak = die.load("%o", dictionary + 8)
    with die.when(die.other(weak, "null")):
        die.run("PyObject_ClearWeakRefs", "%o")
    for place in [where[name] for name in fields]:
        _drop(die, die.load("%o", place))
    die.run("Py_DecRef", die.load("%o", dictionary))
    type = die.load("%o", 8)
    die.run("PyObject_GC_Del", "%o")
    die.run("Py_DecRef", type)
    die.give("void")
    return "\n".join(f.text() for f in (made, new, visit, clear, die))


def _modes() -> str:
    """The modes of the running thread, borrowed, and the object through which Python reads and sets them."""
    die = Function("void @strided_modes_dealloc(ptr %o)")
    for name in MODES:
        die.run("Py_DecRef", die.load("%o", M[name]))
    type = die.load("%o", 8)
    die.run("PyObject_Free", "%o")
    die.run("Py_DecRef", type)
    die.give("void")

    find = Function("internal ptr @find_modes(i64 %id) noinline")
    table = find.call("PyThreadState_GetDict")
    with find.when(find.equal(table, "null")):
        find.run("PyErr_SetString", find.load("@g_runtime_error"), "@s_args")
        find.give("null")
    key = find.load("@g_key")
    held = find.variable("ptr", "null")
    known = find.call("PyDict_GetItemWithError", table, key)
    find.store(known, held)
    find.run("Py_IncRef", known)
    with find.when(find.equal(known, "null")):
        made = find.call("_PyObject_New", find.load("@g_modes_type"))
        with find.when(find.equal(made, "null")):
            find.give("null")
        for name, constant in _MODES.items():
            value = find.load(constant)
            find.run("Py_IncRef", value)
            find.store(value, made, M[name])
        bad = find.call("PyDict_SetItem", table, key, made, type="i32")
        with find.when(find.other(bad, "0", "i32")):
            find.run("Py_DecRef", made)
            find.give("null")
        find.store(made, held)
    found = find.load(held)
    before = find.load("@g_modes")
    find.store(found, "@g_modes")  # held: while a thread ends, its dictionary is gone before the last of its code has run
    find.store("i64 %id", "@g_thread")
    find.run("Py_DecRef", before)  # may run code, and another thread meanwhile: what is at hand may no longer be what was found
    find.give(found)

    now = Function("internal ptr @modes() noinline")
    id = now.call("PyThreadState_GetID", now.call("PyThreadState_Get"), type="i64")
    with now.when(now.equal(id, now.load("@g_thread", type="i64"), "i64")):
        now.give(now.load("@g_modes"))
    now.give(now.call("find_modes", f"i64 {id}"))

    get = Function("ptr @strided_state_get(ptr %self, ptr %name)")
    modes = get.call("modes")
    with get.when(get.equal(modes, "null")):
        get.give("null")
    get.give(get.call("PyObject_GenericGetAttr", modes, "%name"))

    put = Function("i32 @strided_state_set(ptr %self, ptr %name, ptr %value)")
    with put.when(put.equal("%value", "null")):
        put.run("PyErr_SetString", put.load("@g_type_error"), "@s_mode")
        put.give("i32 -1")
    modes = put.call("modes")
    with put.when(put.equal(modes, "null")):
        put.give("i32 -1")
    put.give("i32 " + put.call("PyObject_GenericSetAttr", modes, "%name", "%value", type="i32"))
    return "\n".join(f.text() for f in (die, find, now, get, put))


def _tensor_of() -> str:
    """A plain tensor of a spec over a storage; the arguments are borrowed."""
    f = Function("internal ptr @tensor_of(ptr %spec, ptr %mem, ptr %ptr) noinline")
    f.do("%o = call ptr @tensor_alloc(ptr %type)".replace("%type", f.load("@g_tensor_type")))
    with f.when(f.other("%o", "null")):
        for name in ("spec", "mem", "ptr"):
            f.run("Py_IncRef", f"%{name}")
            f.store(f"%{name}", "%o", T[name])
    f.give("%o")
    return f.text()


def objects_ir() -> str:
    return GLOBALS + _kind("tensor", TENSOR, T, TENSOR_DICT) + _kind("node", NODE, N, NODE_DICT) + _modes() + _tensor_of()
