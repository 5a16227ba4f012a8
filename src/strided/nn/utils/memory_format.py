"""Weights of convolutions laid out channels last."""
from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d


def _convert(module, kinds, memory_format):
    for inner in module.modules():
        if isinstance(inner, kinds):
            inner.weight.data = inner.weight.detach().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Lays the weights of all 2-D convolutions in a module out in a memory format, as channels_last. Returns the module."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """The same for 3-D convolutions and channels_last_3d."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
