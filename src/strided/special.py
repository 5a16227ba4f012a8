"""`torch.special`: the operators of that namespace, and the top level's functions that it repeats under its own names."""
from .ops.table import TABLE as _TABLE
from .ops.table import functions as _functions
from .refused import missing as _missing

_SHARED = "digamma erf erfc erfinv exp2 expm1 i0 log1p log_softmax logit logsumexp polygamma round sinc softmax xlogy"
_OTHER = {"expit": "sigmoid", "psi": "digamma", "gammaln": "lgamma", "multigammaln": "mvlgamma", "gammainc": "igamma", "gammaincc": "igammac"}

globals().update({name: _TABLE[_OTHER.get(name, name)].call for name in [*_SHARED.split(), *_OTHER] if _OTHER.get(name, name) in _TABLE})
globals().update(_functions("special"))

__getattr__ = _missing("torch.special")
