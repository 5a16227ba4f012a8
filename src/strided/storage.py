"""`torch.storage`: the two classes of storages. They are defined in tensor.py."""
from .tensor import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
