"""Writes checkpoint.pt and checkpoint_legacy.pt: what PyTorch 2.13 itself saved. Needs torch; the tests that read them do not.

    python tests/golden/make_checkpoints.py
"""

from __future__ import annotations

import pathlib
import zipfile
from collections import OrderedDict

import torch

HERE = pathlib.Path(__file__).parent


def contents():
    base = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    parameter = torch.nn.Parameter(torch.tensor([1.5, -2.0]))
    tagged = torch.nn.Parameter(torch.tensor([3.0]), requires_grad=False)
    tagged.tag = "kept"
    numbers = {name: torch.tensor([1, 0, 1]).to(getattr(torch, name)) for name in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 uint16 uint32 uint64".split()}
    layer = torch.nn.BatchNorm1d(2)
    return {
        "base": base, "view": base.t()[1:], "parameter": parameter, "tagged": tagged, "numbers": numbers, "requires": torch.ones(2, requires_grad=True),
        "state_dict": layer.state_dict(), "size": base.shape, "dtype": torch.bfloat16, "device": torch.device("cpu"), "layout": torch.strided,
        "meta": torch.empty(2, 3, device="meta"), "scalar": torch.tensor(2.5), "empty": torch.empty(0, 4), "storage": torch.tensor([7.0, 8.0]).untyped_storage(),
        "plain": [1, -(2**40), 2.5, "ü", b"\x00\xff", None, True, (1, (2,)), {3}, 1j, OrderedDict(a=1), bytearray(b"xy"), 10**30],
    }  # fmt: skip


if __name__ == "__main__":
    torch.save(contents(), HERE / "checkpoint_full.pt")
    with zipfile.ZipFile(HERE / "checkpoint_full.pt") as full, zipfile.ZipFile(HERE / "checkpoint.pt", "w", zipfile.ZIP_DEFLATED) as packed:
        for info in full.infolist():  # compressed: half the size in the repository, and a form that load must take too
            packed.writestr(info.filename, full.read(info))
    (HERE / "checkpoint_full.pt").unlink()
    legacy = {"weight": torch.arange(4.0).reshape(2, 2), "step": 3}
    legacy["view"] = legacy["weight"][1]
    torch.save(legacy, HERE / "checkpoint_legacy.pt", _use_new_zipfile_serialization=False)
