"""`torch.utils._pytree`: nests of containers as flat lists and back, with containers of one's own. Libraries register theirs here."""
from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

PyTree = Any  # a name that signatures mention


class NodeDef(NamedTuple):
    """A container: flatten_fn(value) -> (children, context), unflatten_fn(children, context) -> value."""

    flatten_fn: Callable
    unflatten_fn: Callable


_REGISTERED: dict[type, NodeDef] = {}
SUPPORTED_NODES = _REGISTERED


def register_pytree_node(
    cls: type,
    flatten_fn: Callable,
    unflatten_fn: Callable,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable | None = None,
    from_dumpable_context: Callable | None = None,
    flatten_with_keys_fn: Callable | None = None,
) -> None:
    """Makes `cls` a container: flatten_fn(value) -> (children, context), unflatten_fn(children, context) -> value. Names and keys are accepted."""
    if cls in _REGISTERED:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _REGISTERED[cls] = NodeDef(flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _dict_flatten(d: dict) -> tuple[list, list]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict) -> tuple[list, list]:
    return list(d.items()), list(d)


def _dict_unflatten(values: Iterable, keys: list) -> dict:
    return dict(zip(keys, values))


def _list_flatten(items: list) -> tuple[list, None]:
    return list(items), None


def _tuple_flatten(items: tuple) -> tuple[list, Any]:
    return list(items), type(items) if hasattr(items, "_fields") else None


def _tuple_unflatten(values: Iterable, kind: Any) -> tuple:
    return tuple(values) if kind is None else kind(*values)


def _ordered(values: Iterable, keys: list) -> collections.OrderedDict:
    return collections.OrderedDict(zip(keys, values))


register_pytree_node(tuple, _tuple_flatten, _tuple_unflatten)
register_pytree_node(list, _list_flatten, lambda values, _: list(values))
register_pytree_node(dict, _dict_flatten, _dict_unflatten)
register_pytree_node(collections.OrderedDict, _dict_flatten, _ordered)
register_pytree_node(
    collections.defaultdict,
    lambda d: (list(d.values()), (d.default_factory, list(d))),
    lambda values, context: collections.defaultdict(context[0], zip(context[1], values)),
)
register_pytree_node(collections.deque, lambda d: (list(d), d.maxlen), lambda values, longest: collections.deque(values, longest))


def _kind(value: Any) -> type | None:
    """The registered type that a value is an instance of, itself and no subclass; named tuples are tuples. None for a leaf."""
    if type(value) in _REGISTERED:
        return type(value)
    return tuple if isinstance(value, tuple) and hasattr(value, "_fields") else None


def _get_node_type(tree: Any) -> type:
    """The registered type that a value is of; a leaf's own type."""
    return _kind(tree) or type(tree)


class TreeSpec:
    """The structure of a nest: the container's type (None: a leaf), its context, and its children's structures."""

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]):
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_leaves = 1 if type is None else sum(child.num_leaves for child in children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def unflatten(self, leaves: Iterable) -> Any:
        return tree_unflatten(leaves, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self.children_specs) == (other.type, other.context, other.children_specs)

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves))

    def __repr__(self) -> str:
        return "*" if self.type is None else f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


def LeafSpec() -> TreeSpec:
    """The structure of a leaf."""
    return TreeSpec(None, None, [])


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeSpec]:
    """(leaves, structure) of a nest. `is_leaf` may stop at a container."""
    kind = None if is_leaf is not None and is_leaf(tree) else _kind(tree)
    if kind is None:
        return [tree], LeafSpec()
    children, context = _REGISTERED[kind].flatten_fn(tree)
    leaves, specs = [], []
    for child in children:
        found, spec = tree_flatten(child, is_leaf)
        leaves += found
        specs.append(spec)
    return leaves, TreeSpec(kind, context, specs)


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> Any:
    """The nest of this structure with these leaves. Raises ValueError where their number differs."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds {treespec.num_leaves} "
            f"items ({treespec})."
        )
    stream = iter(leaves)

    def build(spec: TreeSpec) -> Any:
        if spec.type is None:
            return next(stream)
        children = [build(child) for child in spec.children_specs]
        return _REGISTERED[spec.type].unflatten_fn(children, spec.context)

    return build(treespec)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list:
    """The leaves of a nest."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure of a nest."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The nest with `func` of every leaf (and of the leaves of other nests of its structure)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_leaves(rest, is_leaf) for rest in rests]
    return tree_unflatten([func(*row) for row in zip(leaves, *others)], spec)


def tree_map_(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Calls `func` for every leaf; returns the nest as it is."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kind: Any, func: Callable, tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The nest with `func` of every leaf of a type (or of types)."""
    return tree_map(lambda leaf: func(leaf) if isinstance(leaf, kind) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether `pred` holds for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))
