"""What modules written for PyTorch import from here: a number, or a tuple, as a tuple of n."""
from ..functions.conv import tuple_of


def _ntuple(n, name="parse"):
    def parse(value):
        return tuple_of(value, n) if not isinstance(value, (tuple, list)) else tuple(value)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Takes a prefix off the keys of a state dict (and of its metadata) in place: of what was saved from a module inside another, as DataParallel is."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        for key in list(metadata):
            if key and key == prefix.replace(".", ""):
                metadata[""] = metadata.pop(key)
            elif key.startswith(prefix):
                metadata[key[len(prefix) :]] = metadata.pop(key)
