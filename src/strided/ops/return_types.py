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
_LINALG = """cholesky_ex: L info; eigh: eigenvalues eigenvectors; inv_ex: inverse info; ldl_factor: LD pivots; ldl_factor_ex: LD pivots info;
    lstsq: solution residuals rank singular_values; lu: P L U; lu_factor: LU pivots; lu_factor_ex: LU pivots info; qr: Q R; slogdet: sign logabsdet;
    solve_ex: result info; svd: U S Vh; eig: eigenvalues eigenvectors"""
for _row in _LINALG.split(";"):
    _name, _fields = _row.strip().split(": ")
    TYPES["linalg_" + _name] = _make("linalg_" + _name, tuple(_fields.split()))
for _name, _fields in {"geqrf": "a tau", "lu_unpack": "P L U", "_lu_with_info": "LU pivots info", "qr": "Q R", "slogdet": "sign logabsdet", "svd": "U S V"}.items():
    TYPES[_name] = _make(_name, tuple(_fields.split()))
for _name, _fields in {"frexp": "mantissa exponent", "histogram": "hist bin_edges", "histogramdd": "hist bin_edges"}.items():
    TYPES[_name] = _make(_name, tuple(_fields.split()))
TYPES["triangular_solve"] = _make("triangular_solve", ("solution", "cloned_coefficient"))
globals().update(TYPES)
