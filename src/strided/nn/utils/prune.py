"""`nn.utils.prune`: parameters with entries masked to zero. A pruned parameter `name` is kept as `name_orig`, its mask as the buffer `name_mask`, and their
product, made anew before every call of the module, is the attribute `name`.

Each method says which entries of what is left go (`compute_mask`); methods on one parameter are combined by a `PruningContainer`.
"""
import abc
from collections.abc import Iterable
from numbers import Integral, Real

from ... import ops
from ...autograd.modes import no_grad
from .convert_parameters import parameters_to_vector


class BasePruningMethod(abc.ABC):
    """What all methods share: applying a mask, adding themselves to a module, and going away again.

    A subclass has `compute_mask(t, default_mask) -> mask` (ones and zeros of t's shape, within `default_mask`) and PRUNING_TYPE: "unstructured" (it is shown
    the entries that are left), "structured" (the slices along `self.dim` that have any left) or "global" (everything).
    """

    _tensor_name: str

    def __call__(self, module, inputs):
        """Before the module runs: the attribute is the product of parameter and mask."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abc.abstractmethod
    def compute_mask(self, t, default_mask):
        """The new mask for importances t, of its shape."""

    def apply_mask(self, module):
        """Parameter times mask, recorded."""
        name = getattr(self, "_tensor_name", None)
        assert name is not None, f"Module {module} has to be pruned"
        mask, original = getattr(module, name + "_mask"), getattr(module, name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prunes `module`'s parameter `name`, beside what has been pruned of it before. importance_scores: what to rank by instead of the parameter."""
        found = [(key, hook) for key, hook in module._forward_pre_hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
        assert len(found) <= 1, f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
        method = cls(*args, **kwargs)
        method._tensor_name = name
        original = getattr(module, name + "_orig" if found else name)
        importance = getattr(module, name) if importance_scores is None else importance_scores
        assert importance.shape == original.shape, f"importance_scores should have the same shape as parameter {name} of {module}"
        with no_grad():
            if found:
                container = PruningContainer(found[0][1], method) if not isinstance(found[0][1], PruningContainer) else found[0][1]
                if container is found[0][1]:
                    container.add_pruning_method(method)
                try:
                    mask = container.compute_mask(importance.detach(), getattr(module, name + "_mask").detach().clone())
                except Exception:
                    container._pruning_methods = container._pruning_methods[:-1]
                    raise
                del module._forward_pre_hooks[found[0][0]]
                method = container
            else:
                mask = method.compute_mask(importance.detach(), ops.ones_like(original.detach()))
                del module._parameters[name]
                module.register_parameter(name + "_orig", original)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """A pruned copy of a tensor, without a module."""
        scores = t if importance_scores is None else importance_scores
        assert scores.shape == t.shape, "importance_scores should have the same shape as tensor t"
        default_mask = ops.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default_mask)

    def remove(self, module):
        """Makes pruning permanent: the parameter has its old name again, with its zeros in it. (Its hook is the caller's to take off.)"""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter: each new one is asked about what those before have left."""

    def __init__(self, *args):
        self._pruning_methods = ()
        if not isinstance(args, Iterable):
            args = (args,)
        if len(args) == 1 and not isinstance(args[0], BasePruningMethod) and isinstance(args[0], Iterable):
            args = tuple(args[0])
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Appends a method for the same parameter."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods = (*self._pruning_methods, method)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t, default_mask):
        """default_mask with what the last method takes of what it leaves."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left = mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError("Pruning methods of PRUNING_TYPE 'structured' need to have the attribute `dim` defined.")
            dim = method.dim % t.dim()
            kept = mask.sum([d for d in range(t.dim()) if d != dim]) != 0
            left = tuple(kept if d == dim else slice(None) for d in range(t.dim()))
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise AttributeError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        new = mask.clone()
        new[left] = method.compute_mask(t[left], default_mask=mask[left]).to(mask.dtype)
        return new


class Identity(BasePruningMethod):
    """Prunes nothing, but gives the parameter its mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """amount: how many entries go, or (a float) which share of them."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone()
        if count:
            mask.view(-1)[self._least(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Entries chosen by chance."""

    def _least(self, t, count):
        return ops.topk(ops.rand_like(t).view(-1), k=count).indices

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """The entries of the smallest absolute value."""

    def _least(self, t, count):
        return ops.topk(ops.abs(t).view(-1), k=count, largest=False).indices

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(BasePruningMethod):
    """Whole slices along `dim`. amount: how many of them go, or which share."""

    PRUNING_TYPE = "structured"

    def _mask(self, t, default_mask, keep):
        """Ones in the slices that `keep` (an index of dimension dim) names, within the default mask."""
        mask = ops.zeros_like(t)
        mask[tuple(keep if d == self.dim % t.dim() else slice(None) for d in range(t.dim()))] = 1
        return mask * default_mask.to(dtype=mask.dtype)

    def _checked_count(self, t):
        if t.dim() <= 1:
            raise ValueError(
                f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {t.shape} with {t.dim()} dims"
            )
        if not -t.dim() <= self.dim < t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        return _count(self.amount, t.shape[self.dim])


class RandomStructured(_Structured):
    """Slices chosen by chance."""

    def __init__(self, amount, dim=-1):
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t, default_mask):
        count = self._checked_count(t)
        if count == 0:
            return default_mask
        chances = ops.rand(t.shape[self.dim])
        return self._mask(t, default_mask, chances > ops.kthvalue(chances, k=count).values)

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """The slices of the smallest n-norm (a number, "fro", "nuc" or an infinity)."""

    def __init__(self, amount, n, dim=-1):
        _check_amount(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t, default_mask):
        count = self._checked_count(t)
        if count == 0:
            return default_mask
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = ops.norm(t, p=self.n, dim=others)
        return self._mask(t, default_mask, ops.topk(norms, k=t.shape[self.dim] - count, largest=True).indices)

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """A mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        assert default_mask.shape == self.mask.shape, f"the mask is {list(self.mask.shape)}, the parameter {list(default_mask.shape)}"
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


def _check_amount(amount):
    if not isinstance(amount, Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or not isinstance(amount, Integral) and amount > 1:
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _count(amount, size):
    """How many of `size` go."""
    if isinstance(amount, Integral):
        if amount > size:
            raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
        return amount
    return round(amount * size)


# ---- functions ----------------------------------------------------------------------------------------------------------------------


def identity(module, name):
    """Gives the parameter a mask of ones. Returns the module, as all of these do."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prunes entries chosen by chance: `amount` of them, or that share."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prunes the entries of the smallest absolute value (or importance)."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prunes slices along `dim` chosen by chance."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prunes the slices along `dim` of the smallest n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module, name, mask):
    """Prunes where the mask is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prunes several parameters, [(module, name)], ranked together. importance_scores: {(module, name): tensor}. kwargs: the method's."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}'
        )
    tensors = [getattr(module, name) for module, name in parameters]
    with no_grad():
        scores = parameters_to_vector([importance_scores.get(key, t) for key, t in zip(parameters, tensors)])
        masks = parameters_to_vector([getattr(module, name + "_mask", ops.ones_like(t)) for (module, name), t in zip(parameters, tensors)])
        mask = PruningContainer(method).compute_mask(scores.detach(), masks)
    start = 0
    for (module, name), t in zip(parameters, tensors):
        custom_from_mask(module, name, mask[start : start + t.numel()].view_as(t))
        start += t.numel()


def remove(module, name):
    """Makes the pruning of a parameter permanent and takes mask and hook away."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module):
    """Whether any parameter of the module or of one inside it is pruned."""
    return any(isinstance(hook, BasePruningMethod) for _, inner in module.named_modules() for hook in inner._forward_pre_hooks.values())
