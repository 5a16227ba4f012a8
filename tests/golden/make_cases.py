"""What PyTorch does in the first cases of torch_compare's generators, as checksums, for where it is not installed: python tests/golden/make_cases.py writes cases.json.

indexing_cases.py: outcomes of x[key] and x[key] = value; repr_cases.py: printed text.
"""

import importlib.util
import json
import pathlib
import zlib

HERE = pathlib.Path(__file__).parent
COUNTS = {"indexing": 1000, "repr": 500}


def load(name):
    """The generator `name`_cases.py as a module."""
    spec = importlib.util.spec_from_file_location(f"golden_{name}", HERE.parent / "torch_compare" / f"{name}_cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcome(name, module, seed, library):
    """What case number `seed` does in a library, as text."""
    return module.Case(seed).text(library) if name == "repr" else repr(module.run(seed, library))


def checksum(text):
    return f"{zlib.crc32(text.encode()):08x}"


if __name__ == "__main__":
    import torch

    found = {name: "".join(checksum(outcome(name, load(name), seed, torch)) for seed in range(count)) for name, count in COUNTS.items()}
    (HERE / "cases.json").write_text(json.dumps(found, indent=1) + "\n")
