"""`torch.version`: what scripts compare against."""
from . import __version__ as strided_version  # noqa: F401

__version__ = "2.13.0+strided"
cuda = hip = xpu = None
debug = False
git_version = "unknown"
