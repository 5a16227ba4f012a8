"""`torch.utils.dlpack`: capsules to and from tensors."""

from ..ops.dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
