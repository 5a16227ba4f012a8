"""State dicts of a module: writing, reading, and the messages when the two sides disagree.

A mixin of `Module`. Files are not here (io/), hooks are registered in hooks.py.
"""
import collections
import itertools

from ..autograd.modes import no_grad
from ..tensor import Tensor
from .parameter import Parameter, is_lazy

EXTRA = "_extra_state"


class _IncompatibleKeys(collections.namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What load_state_dict returns."""

    __slots__ = ()

    def __repr__(self):
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


class StateDict:
    """`state_dict`, `load_state_dict` and extra state of `Module`."""

    def get_extra_state(self):
        """State besides tensors that belongs in the state dict; override together with `set_extra_state`."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state):
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    # ---- writing -------------------------------------------------------------------------------

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """Dotted name → tensor of all parameters and persistent buffers. The tensors share memory with the module."""
        if args:  # the older positional form
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = collections.OrderedDict()
            destination._metadata = collections.OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        return self._finish_state_dict(destination, prefix, local_metadata)

    def _finish_state_dict(self, destination, prefix, local_metadata):
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        """Writes this module's own members only. Subclasses may override."""
        for name, value in self._persistent():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def _persistent(self):
        """(name, tensor) of the parameters and buffers that belong in a state dict."""
        buffers = ((n, b) for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set)
        return [(n, t) for n, t in itertools.chain(self._parameters.items(), buffers) if t is not None]

    # ---- reading -------------------------------------------------------------------------------

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies (or with `assign` takes over) the tensors of `state_dict` into this module and all below it.

        Returns the missing and the unexpected keys. Raises RuntimeError when shapes disagree and, if `strict`, when keys do.
        """
        if not isinstance(state_dict, collections.abc.Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = collections.OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        self._load_tree(state_dict, "", metadata, (strict, missing, unexpected, errors), assign)
        if strict:
            if unexpected:
                errors.insert(0, f"Unexpected key(s) in state_dict: {_quoted(unexpected)}. ")
            if missing:
                errors.insert(0, f"Missing key(s) in state_dict: {_quoted(missing)}. ")
        if errors:
            raise RuntimeError("Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(errors)))
        return _IncompatibleKeys(missing, unexpected)

    def _load_tree(self, state_dict, prefix, metadata, report, assign):
        strict, missing, unexpected, errors = report
        local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
        if assign:
            local_metadata["assign_to_params_buffers"] = assign
        self._load_from_state_dict(state_dict, prefix, local_metadata, True, missing, unexpected, errors)
        for name, child in self._modules.items():
            if child is not None:
                child_prefix = prefix + name + "."
                own = {k: v for k, v in state_dict.items() if k.startswith(child_prefix)}
                child._load_tree(own, child_prefix, metadata, report, assign)
        incompatible = _IncompatibleKeys(missing, unexpected)
        for hook in self._load_state_dict_post_hooks.values():
            if hook(self, incompatible) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                    "if incompatible_keys need to be modified, it should be done inplace."
                )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Reads this module's own members only, and reports what does not fit. Subclasses may override."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, own in self._persistent():
            key = prefix + name
            if key in state_dict:
                self._load_member(name, key, own, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        self._load_extra(state_dict, prefix + EXTRA, strict, missing_keys, unexpected_keys)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + EXTRA and not self._owns(key[len(prefix) :]):
                    unexpected_keys.append(key)

    def _owns(self, name):
        """Whether a name below this module leads to a child module or to one of the persistent members."""
        first, *rest = name.split(".", 1)
        return first in self._modules if rest else first in dict(self._persistent())

    def _load_extra(self, state_dict, key, strict, missing_keys, unexpected_keys):
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _load_member(self, name, key, own, value, assign, error_msgs):
        if not isinstance(value, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
                f"but received {type(value)}"
            )
            return
        if is_lazy(own) and is_lazy(value):  # neither has a shape: there is nothing to copy
            return
        if own.ndim == 0 and value.shape == (1,):  # scalars were once saved as vectors of one element
            value = value[0]
        if value.shape != own.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {own.shape}."
            )
            return
        try:
            self._take(name, own, value) if assign else self._copy(own, value)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are {own.size()} and '
                f"whose dimensions in the checkpoint are {value.size()}, an exception occurred : {error.args}."
            )

    @staticmethod
    def _copy(own, value):
        with no_grad():
            own.copy_(value)

    def _take(self, name, own, value):
        """`assign=True`: the module holds the given tensor from now on."""
        if isinstance(own, Parameter):
            value = (
                value.requires_grad_(own.requires_grad)
                if isinstance(value, Parameter)
                else Parameter(value, requires_grad=own.requires_grad)
            )
        setattr(self, name, value)


def _quoted(keys):
    return ", ".join(f'"{key}"' for key in keys)
