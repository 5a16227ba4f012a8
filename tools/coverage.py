"""Writes docs/coverage.md: which of the public names of torch that real code uses are here, which refuse and why, which are absent.

    python tools/coverage.py            # writes the page
    python tools/coverage.py --check    # ends with 1 if the page in docs/ is another one

The names are in names.txt beside this file, the reasons in strided/refused.py. It asks whether a name exists, not whether all its arguments work.
"""
from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import strided
from strided.refused import REFUSED, why
from strided.torch_alias import _counterpart

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "coverage.md"
_NOTHING = object()


def names() -> dict[str, int]:
    """Full name → number of code bases that use it."""
    lines = (HERE / "names.txt").read_text().splitlines()
    return {name: int(count) for name, count in (line.split() for line in lines if not line.startswith("#"))}


def lookup(name: str):
    """What stands here under a full name such as "torch.nn.Linear"; _NOTHING if nothing does."""
    value, path = strided, []
    for part in name.split(".")[1:]:
        path.append(part)
        value = getattr(value, part, _NOTHING)
        if value is _NOTHING:  # a module that is only imported by name
            value = _counterpart(".".join(path)) or _NOTHING
        if value is _NOTHING:
            break
    return value


def status(name: str) -> str:
    """ "here", "refused" or "absent"."""
    if name in REFUSED:
        return "refused"
    found = lookup(name)
    if found is not _NOTHING:
        return "refused" if getattr(found, "is_refusal", False) is True else "here"
    return "refused" if why(name) else "absent"


def _by_holder(found: list[str]) -> dict[str, list[str]]:
    groups = defaultdict(list)
    for name in sorted(found):
        holder, _, last = name.rpartition(".")
        groups[holder].append(last)
    return dict(sorted(groups.items()))


def _counts(used: dict[str, int], of: dict[str, str]) -> list[str]:
    lines = ["| used by at least | names | here | refused | absent |", "|---|---|---|---|---|"]
    for least in (20, 10, 5, 2):
        chosen = [of[name] for name, count in used.items() if count >= least]
        lines.append(f"| {least} code bases | {len(chosen)} | {chosen.count('here')} | {chosen.count('refused')} | {chosen.count('absent')} |")
    return lines


def page() -> str:
    """The text of docs/coverage.md, the same for the same code."""
    used = names()
    of = {name: status(name) for name in used}
    chosen = {kind: [name for name in used if of[name] == kind] for kind in ("here", "refused", "absent")}
    groups = defaultdict(list)
    for name, row in REFUSED.items():
        groups[row].append(name)

    lines = ["# Coverage of PyTorch's public names", ""]
    lines += ["Written by `python tools/coverage.py`; a test keeps it current. The names are those that at least two of 48 public code bases use (`tools/names.txt`);"]
    lines += ["of tensors' methods any object's attribute of that name was counted, so that common words (`name`, `values`, `index`) stand too high."]
    lines += ["*Here* means that the name exists; what an argument asks for beyond dense tensors on the CPU raises `NotImplementedError`."]
    lines += ["How well a name does what PyTorch does is what `tests/` and `tests/torch_compare/` assert.", ""]
    lines += _counts(used, of)
    lines += ["", "## Refused", ""]
    lines += ["Left out on purpose. `hasattr` is False for such a name, and who asks for it reads the reason; the few that exist raise when they are called."]
    lines += ["A module stands for all that lies in it. The table is `src/strided/refused.py`.", ""]
    lines += ["| reason | instead | names (`torch.`…) |", "|---|---|---|"]
    for (reason, instead), members in sorted(groups.items(), key=lambda item: (item[0], sorted(item[1]))):
        listed = ", ".join(f"`{name.removeprefix('torch.')}`" for name in sorted(members))
        lines.append(f"| {reason} | {instead} | {listed} |".replace("<", "&lt;"))
    lines += ["", "Of the names in use they cover:", ""]
    lines += [f"- `{holder}`: {' '.join(f'`{last}`' for last in lasts)}" for holder, lasts in _by_holder(chosen["refused"]).items()]
    lines += ["", "## Absent", "", "Not here, without a reason: nobody has written them.", ""]
    lines += [f"- `{holder}`: {' '.join(f'`{last}`' for last in lasts)}" for holder, lasts in _by_holder(chosen["absent"]).items()]
    lines += ["", "## Here", ""]
    lines += [f"- `{holder}`: {' '.join(f'`{last}`' for last in lasts)}" for holder, lasts in _by_holder(chosen["here"]).items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        return int(PAGE.read_text() != text)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
