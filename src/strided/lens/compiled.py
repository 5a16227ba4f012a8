"""`strided annotate --compiled`: what compile made of the functions a script gave it.

For each function: the kinds of call that were recorded, how many kernels are left of how many steps, which lines became one kernel and the traffic that
saves, how much temporary memory is left, which numbers every call takes anew, whose derivatives are kept, and why other calls run eagerly. The facts are
`Compiled.report`'s; this file runs the script and words them.
"""
from __future__ import annotations

import json
import linecache
import os
import sys
from typing import Any

from .wording import bytes_text, plural


def report(target: Any, as_json: bool = False) -> int:
    """Runs the target, then prints what was compiled; the script's exit code."""
    from .. import script
    from ..compile.function import LIVE

    output = sys.stdout
    if as_json:
        sys.stdout = sys.stderr
    code = 0
    try:
        script.with_torch(target)
    except SystemExit as leaving:
        code = script.exit_code(leaving)
    except BaseException as error:
        return script.report(error)
    finally:
        sys.stdout.flush()
        sys.stdout = output
    found = [compiled.report() for compiled in sorted(LIVE, key=lambda compiled: compiled.order)]
    found = [facts for facts in found if facts["kinds"] or facts["reasons"]]
    if as_json:
        print(json.dumps({"functions": found}, indent=1))
    else:
        print(text(found))
    return code


def text(functions: list[dict]) -> str:
    """The report for people."""
    if not functions:
        return "Nothing was compiled: the script called no function or module that torch.compile had made."
    return "\n\n".join(_function(facts) for facts in functions)


def _function(facts: dict) -> str:
    lines = [f"{facts['name']}: {plural(len(facts['kinds']), 'kind')} of call recorded"]
    for number, kind in enumerate(facts["kinds"], 1):
        for name in ("forward", "backward"):
            program = kind[name]
            if program is None:
                continue
            label = name if len(facts["kinds"]) == 1 else f"{name}, kind {number}"
            saved = sum(group["saved"] for group in program["fused"])
            lines.append(
                f"  {label}: {plural(program['steps'], 'step')} in {plural(program['kernels'], 'kernel')}, {bytes_text(saved)} less traffic; "
                f"temporary memory {bytes_text(program['temporary'])} in {bytes_text(program['arena'])}"
            )
            for group in program["fused"]:
                lines.append(f"    {group['steps']} steps, one kernel, {bytes_text(group['saved'])} not written and read again")
                lines += [f"      {os.path.basename(path)}:{line}  {linecache.getline(path, line).strip()}" for path, line in group["lines"]]
        if kind["numbers"]:
            names = ", ".join(f"{update['optimizer']} ({plural(update['parameters'], 'parameter')})" for update in kind["updates"])
            lines.append(f"  {plural(kind['numbers'], 'number')} of updates taken anew by every call: {names}")
        for path, line in kind["derivatives"]:
            lines.append(f"  derivative kept in place of the argument: {os.path.basename(path)}:{line}  {linecache.getline(path, line).strip()}")
    lines += [f"  runs eagerly: {reason}" for reason in dict.fromkeys(facts["reasons"])]
    return "\n".join(lines)
