"""`OptimizedModule`: what `compile` returns for a module. Attributes are the original's; the state dict's names get `_orig_mod.` in front."""
from ..nn.module import Module


class OptimizedModule(Module):
    """Calls the original module, compiled. The original is the attribute (and only child) `_orig_mod`; `compiled` says how its calls run."""

    _own = frozenset(("_orig_mod", "compiled", "training", "forward"))

    def __init__(self, module, compiled):
        super().__init__()
        self._orig_mod = module
        object.__setattr__(self, "compiled", compiled)

    @property
    def training(self):
        return self._orig_mod.training

    @training.setter
    def training(self, value):
        if "_orig_mod" in self._modules:  # not yet in Module.__init__
            self._orig_mod.training = value

    def forward(self, *args, **kwargs):
        return self.compiled(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name, value):
        if name in self._own or "_orig_mod" not in self.__dict__.get("_modules", ()):
            super().__setattr__(name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name):
        delattr(self._orig_mod, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self._orig_mod)})
