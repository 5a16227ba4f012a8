"""Running a script under `Watch`, and its report at the end: on standard error, so that what the script prints stays as it is."""
from __future__ import annotations

import os
import sys
from typing import Any


def run(target: Any, full_traceback: bool = False, html: str | None = None) -> int:
    """The script's exit code. A script that fails or is interrupted is reported on, too."""
    from .. import script
    from .watch import Watch
    from .watch_report import page, text

    if html is not None and not os.path.isdir(os.path.dirname(os.path.abspath(html))):
        print(f"strided run: can't write {html!r}: there is no such folder", file=sys.stderr)
        return 2
    watch = Watch()
    with watch:
        code = script.run(target, full_traceback)
    print(text(watch), file=sys.stderr)
    if html is not None:
        with open(html, "w", encoding="utf-8") as file:
            file.write(page(watch, os.path.basename(target.name)))
        print(f"watch: curves are in {html}", file=sys.stderr)
    return code
