"""`torch.utils.tensorboard`: scalars and text written as event files by the `tensorboard` package, which must be installed, as with PyTorch.

Images, histograms and graphs are refused by name.
"""
from __future__ import annotations

import os
import socket
import time
from typing import Any

try:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error.msg}: torch.utils.tensorboard writes through the tensorboard package; pip install tensorboard", name=error.name) from None


class SummaryWriter:
    """Writes event files into `log_dir` (default: runs/<date>_<host><comment>)."""

    def __init__(self, log_dir: Any = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""):
        self.log_dir = str(log_dir) if log_dir else os.path.join("runs", time.strftime("%b%d_%H-%M-%S_") + socket.gethostname() + comment)
        self._writer = EventFileWriter(self.log_dir, max_queue, flush_secs, filename_suffix)

    def _add(self, summary: Any, step: int | None, walltime: float | None) -> None:
        self._writer.add_event(Event(wall_time=time.time() if walltime is None else walltime, step=0 if step is None else int(step), summary=summary))

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None, **_: Any) -> None:
        """One number of a curve; a tensor of one element counts as its number."""
        self._add(Summary(value=[Summary.Value(tag=tag, simple_value=float(scalar_value))]), global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict[str, Any], global_step: int | None = None, walltime: float | None = None) -> None:
        """Several curves under one tag."""
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step, walltime)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __getattr__(self, name: str):
        if name.startswith("add_"):
            raise NotImplementedError(f"SummaryWriter.{name} is not supported: scalars are (add_scalar, add_scalars)")
        raise AttributeError(name)
