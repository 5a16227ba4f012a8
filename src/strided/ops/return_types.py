"""`torch.return_types`: the named tuples that operators with several results return, printed as PyTorch prints them."""
from __future__ import annotations


def _make(name: str, fields: tuple[str, ...]) -> type:
    def __new__(cls, items):
        items = tuple(items)
        if len(items) != len(fields):
            raise TypeError(f"torch.return_types.{name}() takes a {len(fields)}-sequence ({len(items)}-sequence given)")
        return tuple.__new__(cls, items)

    def __repr__(self):
        return f"torch.return_types.{name}(\n" + ",\n".join(f"{field}={value!r}" for field, value in zip(fields, self)) + ")"

    def __reduce__(self):
        return type(self), (tuple(self),)

    body = {"__slots__": (), "__new__": __new__, "__repr__": __repr__, "__reduce__": __reduce__, "n_fields": len(fields), "n_sequence_fields": len(fields)}
    for i, field in enumerate(fields):
        body[field] = property(lambda self, i=i: self[i])
    made = type(name, (tuple,), {**body, "__module__": "torch.return_types", "__match_args__": fields})
    return made


_VALUES = ("values", "indices")
TYPES = {name: _make(name, _VALUES) for name in "max min sort topk kthvalue median nanmedian mode cummax cummin".split()}
TYPES["aminmax"] = _make("aminmax", ("min", "max"))
globals().update(TYPES)
