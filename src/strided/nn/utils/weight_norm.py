"""Weight normalisation: w = g·v / ‖v‖, recomputed before each forward."""
from ... import ops
from ..parameter import Parameter


def _norm(v, dim):
    """The 2-norm over every dimension but `dim` (None: over all), with the dimensions kept."""
    dims = list(range(v.dim()))
    if dim is not None:
        dims.remove(dim % v.dim())
    return (v * v).sum(dims, keepdim=True).sqrt() if dims else v.abs()


class WeightNorm:
    """The forward pre-hook."""

    def __init__(self, name, dim):
        self.name = name
        self.dim = dim

    def compute_weight(self, module):
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / _norm(v, self.dim))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Replaces a parameter by its length `name_g` and direction `name_v`."""
    if any(isinstance(h, WeightNorm) and h.name == name for h in module._forward_pre_hooks.values()):
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim if dim is None or dim >= 0 else dim % getattr(module, name).dim())
    weight = getattr(module, name)
    del module._parameters[name]
    length = _norm(weight.detach(), hook.dim)
    module.register_parameter(name + "_g", Parameter(length.reshape(()) if hook.dim is None else length))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module, name="weight"):
    """Undoes `weight_norm`: the parameter comes back with its present value."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            weight = hook.compute_weight(module)
            delattr(module, name)
            del module._parameters[name + "_g"], module._parameters[name + "_v"]
            setattr(module, name, Parameter(ops.clone(weight.detach())))
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
