"""What somebody who watches a run does for each operator and each node of a backward pass, as IR text: looks for infinities and NaN, and notes on nodes which
line made them. Nothing in it is worth saying in most calls; what may be, goes on in Python (lens/watch.py). The kernels that look are kernels/finite.py's.
"""
from __future__ import annotations

from .runtime_objects import M, N, T
from .runtime_text import Function

GLOBALS = """
@g_trail = internal global i64 0           ; what was called since a step began
@g_watching = internal global i64 0        ; the thread that is watched
declare i64 @PyThread_get_thread_ident()
declare ptr @PyFrame_GetCode(ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
"""


def _scan() -> str:
    """scan(kinds, value): what the kernels of `kinds` ({spec: (descriptor, elements), or None where there is nothing to look for}) answer for a tensor or for the tensors
    of a tuple, together; -1 where a spec is not among them."""
    one = Function("internal i64 @scan_one(ptr %kinds, ptr %t) noinline")
    nothing = one.value(f"xor i1 {one.call('is_tensor', '%t', type='i1')}, true")
    with one.when(nothing):
        one.give("i64 0")
    spec = one.load("%t", T["spec"])
    with one.when(one.equal(spec, "null")):
        one.give("i64 0")
    facts = one.call("PyDict_GetItemWithError", "%kinds", spec)
    with one.when(one.equal(facts, "null")):
        one.run("PyErr_Clear")
        one.give("i64 -1")
    with one.when(one.equal(facts, one.load("@g_none"))):
        one.give("i64 0")
    slots, answer = one.value("alloca [3 x i64]"), one.variable()
    desc = one.call("PyBytes_AsString", one.call("PyTuple_GetItem", facts, "i64 0"))
    address = one.call("PyLong_AsLongLong", one.load("%t", T["ptr"]), type="i64")
    with one.when(one.equal(address, "-1", "i64")):  # none, or of no memory
        one.run("PyErr_Clear")
        one.give("i64 -1")
    one.store(f"i64 {address}", slots)
    one.store("i64 " + one.call("PyLong_AsLongLong", one.call("PyTuple_GetItem", facts, "i64 1"), type="i64"), slots, 8)
    one.store(answer, slots, 16)
    one.do(f"call void {one.load(desc)}(ptr {desc}, ptr {slots}, i64 0, i64 1)")
    one.give("i64 " + one.load(answer, type="i64"))

    all = Function("internal i64 @scan_all(ptr %kinds, ptr %value) noinline")
    is_tuple = all.equal(all.load("%value", 8), all.load("@g_tuple_type"))
    with all.when(all.value(f"xor i1 {is_tuple}, true")):
        all.give("i64 " + all.call("scan_one", "%kinds", "%value", type="i64"))
    found = all.variable()
    with all.each(all.call("PyTuple_Size", "%value", type="i64")) as i:
        held = all.call("scan_one", "%kinds", all.call("PyTuple_GetItem", "%value", f"i64 {i}"), type="i64")
        all.store("i64 " + all.value(f"or i64 {all.load(found, type='i64')}, {held}"), found)
    all.give("i64 " + all.load(found, type="i64"))

    f = Function("ptr @strided_py_scan(ptr %self, ptr %args, i64 %n)")
    with f.when(f.other("%n", "2", "i64")):
        f.give(f.call("arg_error", "i64 2"))
    f.give(f.call("PyLong_FromLongLong", "i64 " + f.call("scan_all", f.load("%args"), f.load("%args", 8), type="i64")))
    return one.text() + all.text() + f.text()


def _is_node() -> str:
    f = Function("internal i1 @is_node(ptr %o) noinline")
    nothing = f.value(f"or i1 {f.equal('%o', 'null')}, {f.equal('%o', f.load('@g_none'))}")
    with f.when(nothing):
        f.give("i1 false")
    r = f.call("PyType_IsSubtype", f.load("%o", 8), f.load("@g_node_base"), type="i32")
    f.give("i1 " + f.other(r, "0", "i32"))
    return f.text()


def _slow(f: Function, callback: str) -> None:
    f.give(f.value(f"call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr {callback}, ptr {f.load('%args')}, ptr {f.load('%args', 8)}, ptr {f.load('%args', 16)}, ptr null)"))


def _node() -> str:
    """look(node, grads, results) of a tuple (kinds, marks, in Python): the latter where results hold specials, or marks are known."""
    f = Function("ptr @strided_py_look(ptr %self, ptr %args, i64 %n)")
    kinds, marks, python = (f.call("PyTuple_GetItem", "%self", f"i64 {i}") for i in range(3))
    found = f.call("scan_all", kinds, f.load("%args", 16), type="i64")
    known = f.call("PyDict_Size", marks, type="i64")
    with f.when(f.equal(f.value(f"or i64 {found}, {known}"), "0", "i64")):
        f.give(f.call("none"))
    _slow(f, python)
    return f.text()


def _operator() -> str:
    """see(entry, args, result) of a tuple (kinds, marks, in Python, roles, trails, learn, sys._getframe, 2, "f_lasti").

    roles: {entry: None (not looked at), 0, True where Python sees calls with two tensors of different kinds, or anything else where it sees every call}.
    A node's line is that of the first frame outwards that is the user's. The way there is the same at each step: it is remembered in `trails` by what was called
    since the step began; `learn(key, frame)` finds it the first time.
    """
    f = Function("ptr @strided_py_see(ptr %self, ptr %args, i64 %n)")
    kinds, marks, python, roles, trails, learn, getframe, two, lasti = (f.call("PyTuple_GetItem", "%self", f"i64 {i}") for i in range(9))
    entry, result = f.load("%args"), f.load("%args", 16)
    none = f.load("@g_none")
    role = f.call("PyDict_GetItemWithError", roles, entry)
    f.leave(f.equal(role, none), "nothing")
    f.leave(f.other(f.call("PyThread_get_thread_ident", type="i64"), f.load("@g_watching", type="i64"), "i64"), "nothing")
    is_tensor = f.call("is_tensor", result, type="i1")
    with f.when(is_tensor):
        node = f.load(result, T["_node"])
        with f.when(f.call("is_node", node, type="i1")):
            modes = f.call("modes")
            with f.when(f.equal(modes, "null")):
                f.give("null")
            with f.when(f.equal(f.load(modes, M["phase"]), f.load("@g_forward"))):
                # Who called the operator's public form, which is behind dispatch.hooked_call.
                frame = f.value(f"call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr {getframe}, ptr {two}, ptr null)")
                with f.when(f.equal(frame, "null")):
                    f.give("null")
                code = f.call("PyFrame_GetCode", frame)
                f.run("Py_DecRef", code)
                place = f.call("PyObject_GetAttr", frame, lasti)
                at = f.call("PyLong_AsLongLong", place, type="i64")
                f.run("Py_DecRef", place)
                trail = f.load("@g_trail", type="i64")
                for word in (f.value(f"ptrtoint ptr {entry} to i64"), f.value(f"ptrtoint ptr {code} to i64"), at):
                    mixed = f.value(f"mul i64 {f.value(f'xor i64 {trail}, {word}')}, -7046029254386353131")
                    trail = f.value(f"xor i64 {mixed}, {f.value(f'lshr i64 {mixed}, 29')}")
                f.store(f"i64 {trail}", "@g_trail")
                key = f.call("PyLong_FromLongLong", f"i64 {trail}")
                made_at = f.variable_at_entry("ptr")
                known = f.call("PyDict_GetItemWithError", trails, key)
                f.run("Py_IncRef", known)
                f.store(known, made_at)
                with f.when(f.equal(known, "null")):
                    f.store(f.value(f"call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr {learn}, ptr {key}, ptr {frame}, ptr null)"), made_at)
                f.run("Py_DecRef", key)
                f.run("Py_DecRef", frame)
                found = f.load(made_at)
                with f.when(f.equal(found, "null")):
                    f.give("null")
                before = f.load(node, N["made_at"])
                f.store(found, node, N["made_at"])
                f.run("Py_DecRef", before)
    with f.when(f.equal(role, f.load("@g_true"))):
        operands = f.load("%args", 8)
        f.leave(f.value(f"icmp slt i64 {f.call('PyTuple_Size', operands, type='i64')}, 2"), "scan")
        pair = [f.call("PyTuple_GetItem", operands, f"i64 {i}") for i in range(2)]
        both = f.value(f"and i1 {f.call('is_tensor', pair[0], type='i1')}, {f.call('is_tensor', pair[1], type='i1')}")
        f.leave(f.value(f"xor i1 {both}, true"), "scan")
        f.leave(f.equal(f.load(pair[0], T["spec"]), f.load(pair[1], T["spec"])), "scan")
        f.go("python")
    f.leave(f.other(role, f.load("@g_zero")), "python")
    f.go("scan")
    f.label("scan")
    is_tuple = f.equal(f.load(result, 8), f.load("@g_tuple_type"))
    f.leave(f.value(f"xor i1 {f.value(f'or i1 {is_tensor}, {is_tuple}')}, true"), "python")
    held = f.call("scan_all", kinds, result, type="i64")
    f.leave(f.other(f.value(f"or i64 {held}, {f.call('PyDict_Size', marks, type='i64')}"), "0", "i64"), "python")
    f.go("nothing")
    f.label("nothing")
    f.give(f.call("none"))
    f.label("python")
    _slow(f, python)

    begin = Function("ptr @strided_py_begin_trail(ptr %self, ptr %args, i64 %n)")
    begin.store("i64 0", "@g_trail")
    begin.store("i64 " + begin.call("PyThread_get_thread_ident", type="i64"), "@g_watching")
    begin.give(begin.call("none"))
    return f.text() + begin.text()


def watch_ir() -> str:
    return GLOBALS + _scan() + _is_node() + _node() + _operator()
