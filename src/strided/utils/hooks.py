"""`utils.hooks`: the handle that registering a hook returns."""
from ..nn.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
