"""What every recorded operator passes, as IR text: is anything tracked, the node behind a result, a view and its node, a result computed and wrapped.

Each is the usual case of a function of autograd/graph.py, which it calls, before anything has changed, for whatever else there is: views that were written
through, hooks on what is saved, several outputs, anomaly mode.
"""
from __future__ import annotations

from .runtime_objects import NODE_DICT, NODE_SIZE, M, N, T
from .runtime_text import Function

_TYPE_SIZE, _TYPE_VECTORCALL = 32, 56  # tp_basicsize and tp_vectorcall_offset in a type


def _kept(f: Function, value: str) -> str:
    f.run("Py_IncRef", value)
    return value


def _in_python(f: Function, callback: str) -> None:
    """Gives what a Python function makes of the same arguments. (PyObject_Vectorcall is no symbol of Python 3.10: where the function to call is says its type.)"""
    function = f.load(callback)
    offset = f.load(f.load(function, 8), _TYPE_VECTORCALL, "i64")
    target = f.load(f.place(function, offset))
    f.give(f.value(f"call ptr {target}(ptr {function}, ptr %args, i64 %n, ptr %names)"))


def _tuple(f: Function, *items: str) -> str:
    """A tuple of these references, which it takes."""
    made = f.call("PyTuple_New", f"i64 {len(items)}")
    with f.when(f.equal(made, "null")):
        f.give("null")
    for i, item in enumerate(items):
        f.call("PyTuple_SetItem", made, f"i64 {i}", item, type="i32")
    return made


def _edge() -> str:
    """Where a gradient of an input goes: a new reference to (node, number), (accumulator, 0, leaf) or None; null where Python must see to it."""
    f = Function("internal ptr @edge_of(ptr %t) noinline")
    none = f.load("@g_none")
    is_tensor = f.call("is_tensor", "%t", type="i1")
    f.leave(f.value(f"xor i1 {is_tensor}, true"), "nowhere")
    with f.when(f.other(f.load("%t", T["_base"]), none)):
        mem = f.load("%t", T["mem"])
        f.leave(f.equal(mem, "null"), "python")
        f.leave(f.other(f.load(mem, 8), f.load("@g_storage_type")), "python")
        version = f.load(mem, 32, "i64")
        seen = f.call("PyLong_AsLongLong", f.load("%t", T["_seen"]), type="i64")
        f.leave(f.other(version, seen, "i64"), "python")
    f.leave(f.other(f.load("%t", T["_tracked"]), f.load("@g_true")), "nowhere")
    node = f.load("%t", T["_node"])
    f.leave(f.equal(node, "null"), "python")
    with f.when(f.other(node, none)):
        number = f.load("%t", T["_nr"])
        f.leave(f.equal(number, "null"), "python")
        f.give(_tuple(f, _kept(f, node), _kept(f, number)))
    accumulator = f.load("%t", T["_accumulator"])
    f.leave(f.equal(accumulator, none), "python")
    f.leave(f.equal(accumulator, "null"), "python")
    f.give(_tuple(f, _kept(f, accumulator), _kept(f, f.load("@g_zero")), _kept(f, "%t")))
    f.label("nowhere")
    f.run("hold", none, "i64 1")
    f.give(none)
    f.label("python")
    f.run("PyErr_Clear")
    f.give("null")
    return f.text()


def _tracking() -> str:
    """tracking(*tensors)"""
    f = Function("ptr @strided_py_tracking(ptr %self, ptr %args, i64 %n)")
    yes, none = f.load("@g_true"), f.load("@g_none")
    with f.each("%n") as i:
        t = f.load(f.value(f"getelementptr ptr, ptr %args, i64 {i}"))
        with f.when(f.call("is_tensor", t, type="i1")):
            f.leave(f.equal(f.load(t, T["_tracked"]), yes), "found")
            base = f.load(t, T["_base"])
            with f.when(f.other(base, none)):
                with f.when(f.call("is_tensor", base, type="i1")):
                    f.leave(f.equal(f.load(base, T["_tracked"]), yes), "found")
    no = f.load("@g_false")
    f.run("hold", no, "i64 1")
    f.give(no)
    f.label("found")
    modes = f.call("modes")
    with f.when(f.equal(modes, "null")):
        f.give("null")
    f.give(_kept(f, f.load(modes, M["grad_enabled"])))
    return f.text()


def _attributes() -> str:
    """Sets a node's keywords (but for `saves`), which lie in args from `first` on; false with the error set where one cannot be."""
    f = Function("internal i1 @set_attributes(ptr %node, ptr %args, i64 %first, ptr %names) noinline")
    with f.when(f.equal("%names", "null")):
        f.give("i1 true")
    count = f.call("PyTuple_Size", "%names", type="i64")
    type = f.load("%node", 8)
    plain = f.equal(f.load(type, _TYPE_SIZE, "i64"), str(NODE_SIZE), "i64")
    table = f.variable("ptr", "null")
    with f.when(plain):  # the class has no slots of its own
        made = f.call("PyDict_New")
        with f.when(f.equal(made, "null")):
            f.give("i1 false")
        f.store(made, table)
        f.store(made, "%node", NODE_DICT)
    with f.each(count) as i:
        name = f.call("PyTuple_GetItem", "%names", f"i64 {i}")
        order = f.call("PyUnicode_CompareWithASCIIString", name, "@s_named_saves", type="i32")
        with f.when(f.other(order, "0", "i32")):
            value = f.load(f.value(f"getelementptr ptr, ptr %args, i64 {f.value(f'add i64 %first, {i}')}"))
            bad = f.variable("i32")
            with f.when(plain):
                f.store("i32 " + f.call("PyDict_SetItem", f.load(table), name, value, type="i32"), bad)
            with f.when(f.value(f"xor i1 {plain}, true")):
                f.store("i32 " + f.call("PyObject_SetAttr", "%node", name, value, type="i32"), bad)
            with f.when(f.other(f.load(bad, type="i32"), "0", "i32")):
                f.give("i1 false")
    f.give("i1 true")
    return f.text()


def _node() -> str:
    """A node of a class with its edges and saved entries (references that it takes) and the spec of its one output, numbered; null with the error set."""
    f = Function("internal ptr @node_of(ptr %class, ptr %edges, ptr %saves, ptr %spec) noinline")
    node = f.call("node_alloc", "%class")
    with f.when(f.equal(node, "null")):
        f.run("Py_DecRef", "%edges")
        f.run("Py_DecRef", "%saves")
        f.give("null")
    f.store("%edges", node, N["edges"])
    f.store("%saves", node, N["saves"])
    f.store(_kept(f, "%spec"), node, N["specs"])
    number = f.load("@g_sequence", type="i64")
    f.store("i64 " + f.value(f"add i64 {number}, 1"), "@g_sequence")
    f.store(f.call("PyLong_FromLongLong", f"i64 {number}"), node, N["seq"])
    f.give(node)

    hang = Function("internal void @hang_on(ptr %t, ptr %node) noinline")
    before = hang.load("%t", T["_node"])
    hang.store(_kept(hang, "%node"), "%t", T["_node"])
    flag = hang.load("%t", T["_tracked"])
    hang.store(_kept(hang, hang.load("@g_true")), "%t", T["_tracked"])
    hang.run("Py_DecRef", flag)
    hang.run("Py_DecRef", before)
    hang.give("void")

    ask = Function("internal i1 @is_node_class(ptr %class) noinline")
    with ask.when(ask.other(ask.load("%class", 8), ask.load("@g_type_type"))):
        ask.give("i1 false")
    is_node = ask.call("PyType_IsSubtype", "%class", ask.load("@g_node_base"), type="i32")
    ask.give("i1 " + ask.other(is_node, "0", "i32"))
    return f.text() + hang.text() + ask.text()


def _saved() -> str:
    """What a node keeps of a tensor: a new reference to an entry as autograd/saved.py describes them; null where Python must see to it."""
    f = Function("internal ptr @saved_of(ptr %t, ptr %output) noinline")
    none = f.load("@g_none")
    with f.when(f.equal("%t", none)):
        f.give(_kept(f, none))
    is_tensor = f.call("is_tensor", "%t", type="i1")
    f.leave(f.value(f"xor i1 {is_tensor}, true"), "python")
    mem = f.load("%t", T["mem"])
    f.leave(f.equal(mem, "null"), "python")
    f.leave(f.other(f.load(mem, 8), f.load("@g_storage_type")), "python")
    f.leave(f.equal(f.load("%t", T["_inference"]), f.load("@g_true")), "python")
    spec, place, node = (f.load("%t", T[name]) for name in ("spec", "ptr", "_node"))
    for field in (spec, place, node):
        f.leave(f.equal(field, "null"), "python")
    version = f.call("PyLong_FromLongLong", "i64 " + f.load(mem, 32, "i64"))
    with f.when(f.equal("%t", "%output")):
        f.give(_tuple(f, _kept(f, none), version, _kept(f, f.load("@g_zero")), _kept(f, spec), _kept(f, mem), _kept(f, place)))
    f.give(_tuple(f, _kept(f, "%t"), version, _kept(f, node)))
    f.label("python")
    f.give("null")
    return f.text()


def _record() -> str:
    """record(cls, inputs, outputs, saves=(), **attributes)"""
    f = Function("ptr @strided_py_record(ptr %self, ptr %args, i64 %n, ptr %names)")
    argument = lambda i: f.load("%args", 8 * i)
    f.leave(f.value("icmp slt i64 %n, 3"), "python")
    f.leave(f.value("icmp sgt i64 %n, 4"), "python")
    f.leave(f.other(f.load("@g_anomaly", type="i64"), "0", "i64"), "python")
    cls, inputs, output = argument(0), argument(1), argument(2)
    f.leave(f.value(f"xor i1 {f.call('is_node_class', cls, type='i1')}, true"), "python")
    tuples = f.load("@g_tuple_type")
    f.leave(f.other(f.load(inputs, 8), tuples), "python")
    f.leave(f.value(f"xor i1 {f.call('is_tensor', output, type='i1')}, true"), "python")
    spec = f.load(output, T["spec"])
    f.leave(f.equal(spec, "null"), "python")
    saves = f.variable("ptr", "null")
    with f.when(f.equal("%n", "4", "i64")):
        f.store(argument(3), saves)
    with f.when(f.other("%names", "null")):
        count = f.call("PyTuple_Size", "%names", type="i64")
        with f.each(count) as i:
            order = f.call("PyUnicode_CompareWithASCIIString", f.call("PyTuple_GetItem", "%names", f"i64 {i}"), "@s_named_saves", type="i32")
            with f.when(f.equal(order, "0", "i32")):
                f.store(f.load(f.value(f"getelementptr ptr, ptr %args, i64 {f.value(f'add i64 %n, {i}')}")), saves)
    several = f.variable()
    given = f.load(saves)
    with f.when(f.other(given, "null")):
        f.leave(f.other(f.load(given, 8), tuples), "python")
        f.store("i64 " + f.call("PyTuple_Size", given, type="i64"), several)
    kept = f.load(several, type="i64")
    entries = f.variable("ptr", "null")
    with f.when(f.equal(kept, "0", "i64")):
        f.store(_kept(f, f.load("@g_empty")), entries)
    with f.when(f.other(kept, "0", "i64")):
        modes = f.call("modes")
        with f.when(f.equal(modes, "null")):
            f.give("null")
        f.leave(f.other(f.load(modes, M["saved_hooks"]), f.load("@g_empty")), "python")
        made = f.call("PyList_New", f"i64 {kept}")
        with f.when(f.equal(made, "null")):
            f.give("null")
        f.store(made, entries)
        with f.each(kept) as i:
            entry = f.call("saved_of", f.call("PyTuple_GetItem", given, f"i64 {i}"), output)
            with f.when(f.equal(entry, "null")):
                f.run("Py_DecRef", made)
                f.go("python")
            f.call("PyList_SetItem", made, f"i64 {i}", entry, type="i32")
    count = f.call("PyTuple_Size", inputs, type="i64")
    edges = f.call("PyTuple_New", f"i64 {count}")
    with f.when(f.equal(edges, "null")):
        f.run("Py_DecRef", f.load(entries))
        f.give("null")
    with f.each(count) as i:
        edge = f.call("edge_of", f.call("PyTuple_GetItem", inputs, f"i64 {i}"))
        with f.when(f.equal(edge, "null")):
            f.run("Py_DecRef", f.load(entries))
            f.run("Py_DecRef", edges)
            f.go("python")
        f.call("PyTuple_SetItem", edges, f"i64 {i}", edge, type="i32")
    node = f.call("node_of", cls, edges, f.load(entries), spec)
    with f.when(f.equal(node, "null")):
        f.give("null")
    set = f.call("set_attributes", node, "%args", "i64 %n", "%names", type="i1")
    with f.when(f.value(f"xor i1 {set}, true")):
        f.run("Py_DecRef", node)
        f.give("null")
    f.run("hang_on", output, node)
    f.give(node)
    f.label("python")
    f.run("PyErr_Clear")
    _in_python(f, "@g_record")
    return f.text()


def _hang() -> str:
    """hang(cls, recipes, kinds, numbers, operands, result): the node of a pointwise operator behind its result; False where Python must see to it.

    recipes: {which operands want a gradient, as bits: what to save and how gradients follow}. What the others are is said in ops/pointwise_nodes.py.
    """
    f = Function("ptr @strided_py_hang(ptr %self, ptr %args, i64 %n)")
    with f.when(f.other("%n", "6", "i64")):
        f.give(f.call("arg_error", "i64 6"))
    cls, recipes, kinds, numbers, operands, output = (f.load("%args", 8 * i) for i in range(6))
    f.leave(f.other(f.load("@g_anomaly", type="i64"), "0", "i64"), "python")
    f.leave(f.value(f"xor i1 {f.call('is_node_class', cls, type='i1')}, true"), "python")
    f.leave(f.value(f"xor i1 {f.call('is_tensor', output, type='i1')}, true"), "python")
    tuples = f.load("@g_tuple_type")
    f.leave(f.other(f.load(operands, 8), tuples), "python")
    modes = f.call("modes")
    with f.when(f.equal(modes, "null")):
        f.give("null")
    f.leave(f.other(f.load(modes, M["saved_hooks"]), f.load("@g_empty")), "python")
    none = f.load("@g_none")
    count = f.call("PyTuple_Size", operands, type="i64")
    edges, wanted = f.call("PyTuple_New", f"i64 {count}"), f.variable()
    with f.when(f.equal(edges, "null")):
        f.give("null")
    with f.each(count) as i:
        edge = f.call("edge_of", f.call("PyTuple_GetItem", operands, f"i64 {i}"))
        f.leave(f.equal(edge, "null"), "back")
        f.call("PyTuple_SetItem", edges, f"i64 {i}", edge, type="i32")
        with f.when(f.other(edge, none)):
            f.store("i64 " + f.value(f"or i64 {f.load(wanted, type='i64')}, {f.value(f'shl i64 1, {i}')}"), wanted)
    number = f.call("PyLong_FromLongLong", "i64 " + f.load(wanted, type="i64"))
    recipe = f.call("PyDict_GetItemWithError", recipes, number)
    f.run("Py_DecRef", number)
    f.leave(f.equal(recipe, "null"), "back")
    f.run("Py_IncRef", recipe)  # the table may be emptied while code runs in between: a collection of garbage, another thread
    saves = f.call("PyObject_GetAttr", recipe, f.load("@g_saves"))
    f.leave(f.equal(saves, "null"), "dropped")
    f.run("Py_DecRef", saves)  # the recipe holds it
    f.leave(f.other(f.load(saves, 8), tuples), "dropped")
    several = f.call("PyTuple_Size", saves, type="i64")
    entries = f.call("PyList_New", "i64 0")
    f.leave(f.equal(entries, "null"), "dropped")
    with f.each(several) as i:
        place = f.call("PyLong_AsLongLong", f.call("PyTuple_GetItem", saves, f"i64 {i}"), type="i64")
        kept = f.variable_at_entry("ptr")
        f.store("null", kept)
        with f.when(f.equal(place, count, "i64")):
            f.store(f.call("saved_of", output, output), kept)
        with f.when(f.other(place, count, "i64")):
            operand = f.call("PyTuple_GetItem", operands, f"i64 {place}")
            f.store(none, kept)
            with f.when(f.call("is_tensor", operand, type="i1")):
                f.store(f.call("saved_of", operand, output), kept)
        entry = f.load(kept)
        with f.when(f.equal(entry, "null")):
            f.run("Py_DecRef", entries)
            f.go("dropped")
        with f.when(f.other(entry, none)):  # numbers are kept elsewhere
            f.call("PyList_Append", entries, entry, type="i32")
            f.run("Py_DecRef", entry)
    node = f.call("node_of", cls, edges, entries, f.load(output, T["spec"]))
    with f.when(f.equal(node, "null")):
        f.run("Py_DecRef", recipe)
        f.give("null")
    bad = "0"
    for name, value in (("@g_recipe", recipe), ("@g_kinds", kinds), ("@g_numbers", numbers)):
        bad = f.value(f"or i32 {bad}, {f.call('PyObject_SetAttr', node, f.load(name), value, type='i32')}")
    f.run("Py_DecRef", recipe)
    with f.when(f.other(bad, "0", "i32")):
        f.run("Py_DecRef", node)
        f.give("null")
    f.run("hang_on", output, node)
    f.run("Py_DecRef", node)
    f.give(_kept(f, f.load("@g_true")))
    f.label("dropped")
    f.run("Py_DecRef", recipe)
    f.go("back")
    f.label("back")
    f.run("PyErr_Clear")
    f.run("Py_DecRef", edges)
    f.go("python")
    f.label("python")
    f.give(_kept(f, f.load("@g_false")))
    return f.text()


def _window() -> str:
    """window(base, spec, address, cls, **attributes): a view, recorded where its base is tracked"""
    f = Function("ptr @strided_py_window(ptr %self, ptr %args, i64 %n, ptr %names)")
    argument = lambda i: f.load("%args", 8 * i)
    f.leave(f.other("%n", "4", "i64"), "python")
    base, spec, place, cls = (argument(i) for i in range(4))
    none, yes = f.load("@g_none"), f.load("@g_true")
    f.leave(f.value(f"xor i1 {f.call('is_tensor', base, type='i1')}, true"), "python")
    mem = f.load(base, T["mem"])
    f.leave(f.equal(mem, "null"), "python")
    f.leave(f.other(f.load(mem, 8), f.load("@g_storage_type")), "python")
    f.leave(f.equal(f.load(base, T["_inference"]), yes), "python")
    modes = f.call("modes")
    with f.when(f.equal(modes, "null")):
        f.give("null")
    recording = f.equal(f.load(modes, M["grad_enabled"]), yes)
    kind = f.variable("ptr", f.load(base, T["_view_kind"]))
    with f.when(f.equal(f.load(kind), none)):
        with f.when(f.value(f"xor i1 {recording}, true")):
            f.leave(f.equal(f.load(modes, M["inference"]), yes), "python")
            f.store(f.load("@g_no_grad"), kind)
    with f.when(f.other(f.load(kind), none)):
        f.leave(recording, "python")
    above = f.load(base, T["_base"])
    root = f.value(f"select i1 {f.equal(above, none)}, ptr {base}, ptr {above}")
    f.leave(f.value(f"xor i1 {f.call('is_tensor', root, type='i1')}, true"), "python")
    own = f.equal(f.load(base, T["_tracked"]), yes)
    either = f.value(f"or i1 {own}, {f.equal(f.load(root, T['_tracked']), yes)}")
    tracked = f.value(f"and i1 {either}, {recording}")
    edge = f.variable("ptr", "null")
    with f.when(tracked):
        f.leave(f.other(f.load("@g_anomaly", type="i64"), "0", "i64"), "python")
        f.leave(f.value(f"xor i1 {f.call('is_node_class', cls, type='i1')}, true"), "python")
        found = f.call("edge_of", base)
        f.leave(f.equal(found, "null"), "python")
        f.store(found, edge)
    view = f.call("tensor_of", spec, mem, place)
    with f.when(f.equal(view, "null")):
        f.run("Py_DecRef", f.load(edge))
        f.give("null")
    f.run("hold", none, "i64 -1")
    f.store(_kept(f, root), view, T["_base"])
    version = f.load(mem, 32, "i64")
    with f.when(f.other(version, "0", "i64")):
        f.run("hold", f.load("@g_zero"), "i64 -1")
        f.store(f.call("PyLong_FromLongLong", f"i64 {version}"), view, T["_seen"])
    with f.when(f.other(f.load(kind), none)):
        f.run("hold", none, "i64 -1")
        f.store(_kept(f, f.load(kind)), view, T["_view_kind"])
    with f.when(tracked):
        edges = f.call("PyTuple_New", "i64 1")
        with f.when(f.equal(edges, "null")):
            f.run("Py_DecRef", f.load(edge))
            f.run("Py_DecRef", view)
            f.give("null")
        f.call("PyTuple_SetItem", edges, "i64 0", f.load(edge), type="i32")
        node = f.call("node_of", cls, edges, _kept(f, f.load("@g_empty")), spec)
        with f.when(f.equal(node, "null")):
            f.run("Py_DecRef", view)
            f.give("null")
        set = f.call("set_attributes", node, "%args", "i64 4", "%names", type="i1")
        with f.when(f.value(f"xor i1 {set}, true")):
            f.run("Py_DecRef", node)
            f.run("Py_DecRef", view)
            f.give("null")
        f.run("hang_on", view, node)
        f.run("Py_DecRef", node)
    f.give(view)
    f.label("python")
    f.run("PyErr_Clear")
    _in_python(f, "@g_window")
    return f.text()


def _small() -> str:
    """new(cls), tensor(spec, storage, address), next_sequence(), launch_tensor(desc, spec, *slots), and the setters of what Python provides"""
    new = Function("ptr @strided_py_new(ptr %self, ptr %args, i64 %n)")
    new.leave(new.other("%n", "1", "i64"), "wrong")
    cls = new.load("%args")
    with new.when(new.call("is_node_class", cls, type="i1")):
        new.give(new.call("node_alloc", cls))
    kind = new.load(cls, 8)
    is_type = new.call("PyType_IsSubtype", kind, new.load("@g_type_type"), type="i32")
    new.leave(new.equal(is_type, "0", "i32"), "wrong")
    is_tensor = new.call("PyType_IsSubtype", cls, new.load("@g_tensor_base"), type="i32")
    with new.when(new.other(is_tensor, "0", "i32")):
        new.give(new.call("tensor_alloc", cls))
    new.go("wrong")
    new.label("wrong")
    new.give(new.call("arg_error", "i64 1"))

    tensor = Function("ptr @strided_py_tensor(ptr %self, ptr %args, i64 %n)")
    with tensor.when(tensor.other("%n", "3", "i64")):
        tensor.give(tensor.call("arg_error", "i64 3"))
    tensor.give(tensor.call("tensor_of", *(tensor.load("%args", 8 * i) for i in range(3))))

    number = Function("ptr @strided_py_next_sequence(ptr %self, ptr %args, i64 %n)")
    now = number.load("@g_sequence", type="i64")
    number.store("i64 " + number.value(f"add i64 {now}, 1"), "@g_sequence")
    number.give(number.call("PyLong_FromLongLong", f"i64 {now}"))

    launch = Function("ptr @strided_py_launch_tensor(ptr %self, ptr %args, i64 %n)")
    slots = launch.value("alloca [64 x ptr]")
    launch.leave(launch.value("icmp slt i64 %n, 2"), "wrong")
    launch.leave(launch.value("icmp sgt i64 %n, 64"), "wrong")
    launch.store(launch.load("%args"), slots)
    rest = launch.value("sub i64 %n, 2")
    launch.run("llvm.memmove.p0.p0.i64", launch.place(slots, 8), launch.place("%args", 16), f"i64 {launch.value(f'shl i64 {rest}, 3')}", "i1 false")
    mem = launch.call("strided_launch_new", "%self", slots, f"i64 {launch.value('sub i64 %n, 1')}")
    with launch.when(launch.equal(mem, "null")):
        launch.give("null")
    place = launch.call("PyLong_FromLongLong", "i64 " + launch.load(mem, 16, "i64"))
    made = launch.call("tensor_of", launch.load("%args", 8), mem, place)
    launch.run("Py_DecRef", mem)
    launch.run("Py_DecRef", place)
    launch.give(made)
    launch.label("wrong")
    launch.give(launch.call("arg_error", "i64 2"))

    setters = []
    for name, place in (("tensor_type", "g_tensor_type"), ("record", "g_record"), ("window", "g_window")):
        f = Function(f"ptr @strided_py_set_{name}(ptr %self, ptr %args, i64 %n)")
        with f.when(f.other("%n", "1", "i64")):
            f.give(f.call("arg_error", "i64 1"))
        value = f.load("%args")
        before = f.load(f"@{place}")
        f.store(_kept(f, value), f"@{place}")
        f.run("Py_DecRef", before)
        f.give(f.call("none"))
        setters.append(f)
    anomaly = Function("ptr @strided_py_set_anomaly(ptr %self, ptr %args, i64 %n)")
    with anomaly.when(anomaly.other("%n", "1", "i64")):
        anomaly.give(anomaly.call("arg_error", "i64 1"))
    anomaly.store("i64 " + anomaly.call("PyLong_AsLongLong", anomaly.load("%args"), type="i64"), "@g_anomaly")
    anomaly.give(anomaly.call("none"))
    return "\n".join(f.text() for f in (new, tensor, number, launch, *setters, anomaly))


def record_ir() -> str:
    return _edge() + _tracking() + _attributes() + _node() + _saved() + _record() + _hang() + _window() + _small()
