"""Autocast for composites. An operator's rule is in its table entry; a function made of operators states its own with `under_autocast`."""
import functools

from ... import dispatch


class _Rule:
    """What dispatch reads of a table entry."""

    def __init__(self, name, autocast):
        self.name, self.autocast = name, autocast


def under_autocast(autocast):
    """Decorates a composite: inside an autocast region its tensor arguments are cast first, by the rule "lower" or "float32"."""

    def decorate(function):
        rule = _Rule(function.__name__, autocast)

        @functools.wraps(function)
        def inside(*args, **kwargs):
            context = dispatch.CONTEXT
            if context.autocast_dtype is not None and not context.depth and dispatch.autocast_arguments is not None:
                args, kwargs = dispatch.autocast_arguments(rule, args, kwargs)
            return function(*args, **kwargs)

        return inside

    return decorate
