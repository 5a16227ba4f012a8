"""Runs a user's script, module or code text as Python itself would, with `torch` meaning this package.

Holds the command-line form of a target, its execution as `__main__`, and tracebacks that show the user's frames and fold
ours. Holds no command (cli.py) and no listening to operators (lens/).
"""

from __future__ import annotations

import io
import os
import re
import sys
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from strided.torch_alias import inherit, install

if TYPE_CHECKING:
    import argparse

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Target(NamedTuple):
    """What to run: kind is "script", "module" or "code"; name the path ("-": standard input), the module's name or the code; args its arguments."""

    kind: str
    name: str
    args: list[str]


def add_target(parser: argparse.ArgumentParser, code: str = "run code given as text") -> None:
    """Let a command's parser end in `script.py [args…]`, `-m module [args…]` or `-c code [args…]`, as python's own does. code: what --help says of the last."""
    # "A...": one argument, then everything behind it untouched, options included. (REMAINDER would swallow our own options too.)
    parser.add_argument("-m", dest="module", nargs="A...", metavar="module", help="run a module, found as python -m finds it")
    parser.add_argument("-c", dest="code", nargs="A...", metavar="code", help=code)
    script = parser.add_argument("script", nargs="A...", metavar="script.py", help="the script and its arguments")
    script.required = False
    refuse = parser.error

    def error(message: str) -> NoReturn:
        for option in ("-m", "-c"):
            if message.startswith(f"argument {option}: expected"):
                refuse(f"Argument expected for the {option} option")
        refuse(message)

    parser.error = error  # type: ignore[method-assign]


def target_of(options: argparse.Namespace, parser: argparse.ArgumentParser) -> Target:
    """The target that the parsed options name; ends in the parser's own error if they name none."""
    for kind, words in (("module", options.module), ("code", options.code), ("script", options.script)):
        if words:
            return Target(kind, words[0], words[1:])
    parser.error("nothing to run: give a script, -m module or -c code")


def run(target: Target, full_traceback: bool = False) -> int:
    """Run the target to its end; the exit code Python would give. An uncaught exception is printed and gives 1, Ctrl-C 130."""
    try:
        with_torch(target)
    except SystemExit as leaving:
        return exit_code(leaving)
    except BaseException as error:
        return report(error, full_traceback)
    return 0


def with_torch(target: Target) -> ModuleType:
    """Install the alias and execute the target; whatever it raises is raised. The alias stays: exit handlers may import."""
    install()
    inherit()
    return execute(target)


def execute(target: Target) -> ModuleType:
    """Execute the target as `__main__`, with sys.argv and sys.path[0] as Python sets them. Returns the module it ran as."""
    if target.kind == "script" and target.name == "-":
        return _execute_source(sys.stdin.buffer.read(), "<stdin>", ["-", *target.args], "")
    if target.kind == "script" and not os.path.isdir(target.name):
        with io.open_code(os.path.abspath(target.name)) as file:
            source: bytes | str = file.read()
        # Python resolves links before it takes the folder, so that a linked script finds its neighbours.
        path = os.path.abspath(target.name)
        return _execute_source(source, path, [target.name, *target.args], os.path.dirname(os.path.realpath(target.name)))
    if target.kind == "code":
        return _execute_source(target.name, "<string>", ["-c", *target.args], "")
    import runpy

    sys.argv = [target.name, *target.args]
    sys.path[0] = os.path.abspath(target.name) if target.kind == "script" else os.getcwd()
    try:
        if target.kind == "script":  # a folder or an archive with a __main__.py
            names = runpy.run_path(target.name, run_name="__main__")
        else:
            names = runpy.run_module(target.name, run_name="__main__", alter_sys=True)
    except ImportError as error:
        if not _raised_by(error, runpy):
            raise
        raise SystemExit(f"strided: {error}") from None  # there is no such module: one line, as python says it
    module = ModuleType("__main__")
    module.__dict__.update(names)
    return module


def _raised_by(error: BaseException, module: ModuleType) -> bool:
    """Whether it was that module's own code that raised it, rather than what it called."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals is vars(module)


def _execute_source(source: bytes | str, path: str, argv: list[str], folder: str) -> ModuleType:
    module = ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__, __annotations__={}, __loader__=None)
    if path not in ("<string>", "<stdin>"):
        module.__file__ = path
    sys.argv = argv
    sys.path[0] = folder
    sys.modules["__main__"] = module  # stays there: pickling, multiprocessing and exit handlers look it up
    if path == "<string>" and sys.version_info >= (3, 13):
        _remember_lines(path, str(source))
    code: CodeType = compile(source, path, "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module


def _remember_lines(path: str, source: str) -> None:
    """From Python 3.13 on, tracebacks show the lines of -c code; linecache is where they look."""
    import linecache

    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)


# ---- how a run ended ------------------------------------------------------------------------


def exit_code(leaving: SystemExit) -> int:
    """The process's exit code for a SystemExit, as Python has it: None is 0, an int itself, anything else is printed and is 1."""
    code = leaving.code
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code)
    print(code, file=sys.stderr)
    return 1


def report(error: BaseException, full_traceback: bool = False) -> int:
    """Print an uncaught exception as Python would, with frames of this package folded unless asked for; its exit code."""
    _explain(error)
    folded = None if full_traceback else fold(error)
    if full_traceback:
        error.__traceback__ = _user_part(error.__traceback__)
    sys.stdout.flush()
    sys.excepthook(type(error), error, error.__traceback__)
    if folded and sys.excepthook is sys.__excepthook__:
        print(folded, file=sys.stderr)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _explain(error: BaseException) -> None:
    """Python drops the reason that a module gives when `from torch.… import name` meets a name that it refuses: put it back."""
    if not isinstance(error, ImportError):
        return
    found = re.match(r"cannot import name '(\w+)' from '(?:torch|strided)((?:\.\w+)*)'", error.msg or "")
    if found:
        from .refused import why

        row = why(f"torch{found[2]}.{found[1]}")
        if row is not None:
            error.msg = f"cannot import name '{found[1]}' from 'torch{found[2]}': {row[0]}; {row[1]}"


def fold(error: BaseException) -> str | None:
    """Leave only the user's frames in the exception's traceback, and in those of its causes.

    Returns a line saying how many frames of this package were folded at its end, and the submodule they ran in; or None.
    """
    frames = _frames(error.__traceback__)
    below = [frame for frame in _fold_one(error, set()) if frame.f_code.co_filename != PACKAGE + "torch_alias.py"]
    if not below:
        return None
    try:
        inside = _submodule(frames, below)
    except Exception:  # a module of the user's may be half built, or its __repr__ broken: their own error comes first
        inside = None
    folded = "1 strided frame" if len(below) == 1 else f"{len(below)} strided frames"
    return f"[{'in ' + inside + '; ' if inside else ''}{folded} folded, --full-traceback shows {'it' if len(below) == 1 else 'them'}]"


def _fold_one(error: BaseException, seen: set[int]) -> list[FrameType]:
    """Fold one exception and, recursively, what it came from. Returns the folded frames below the last kept one."""
    seen.add(id(error))
    frames, below = _split(error.__traceback__)
    rebuilt: TracebackType | None = None
    for entry in reversed(frames):
        rebuilt = TracebackType(rebuilt, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = rebuilt
    before: list[BaseException | None] = [error.__cause__, error.__context__, *getattr(error, "exceptions", ())]
    for earlier in before:
        if earlier is None or id(earlier) in seen:
            continue
        _fold_one(earlier, seen)
        if earlier is error.__context__ and earlier is not error.__cause__ and earlier.__traceback__ is None:
            error.__suppress_context__ = True  # raised and caught inside this package: none of the user's business
    return below


def _split(trace: TracebackType | None) -> tuple[list[TracebackType], list[FrameType]]:
    """The user's entries of a traceback, and the frames below the last of them."""
    kept: list[TracebackType] = []
    below: list[FrameType] = []
    inside = True  # above the user's first frame stand this module's own, and perhaps runpy's
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if path.startswith(PACKAGE):
            inside = True
        elif inside and _is_library(path):
            pass  # a library that this package called
        else:
            inside = False
        if inside:
            if kept and path.startswith(PACKAGE):
                below.append(trace.tb_frame)
        else:
            kept.append(trace)
            below.clear()
        trace = trace.tb_next
    return kept, below


def _user_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the user's first frame on."""
    kept, _ = _split(trace)
    return kept[0] if kept else None


def _is_library(path: str) -> bool:
    """Whether a file belongs to the standard library or to a package that this one is built on."""
    if path.startswith("<frozen ") or any(f"{os.sep}site-packages{os.sep}{name}{os.sep}" in path for name in ("numpy", "llvmlite", "ml_dtypes", "rich")):
        return True
    return path.startswith(os.path.dirname(os.__file__) + os.sep) and f"{os.sep}site-packages{os.sep}" not in path


def _frames(trace: TracebackType | None) -> list[FrameType]:
    frames = []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


def _submodule(frames: list[FrameType], below: list[FrameType]) -> str | None:
    """`Linear(in_features=4, …) at "layers.2.up"`: the innermost module of the folded frames, and its path from the outermost running one."""

    def modules(of: list[FrameType]) -> list[Any]:
        owners = [frame.f_locals.get("self") for frame in of]
        return [owner for owner in owners if hasattr(type(owner), "named_modules")]

    running, inner = modules(frames), modules(below)
    if not inner:
        return None
    path = next((name for name, module in running[0].named_modules() if module is inner[-1]), "")
    text = " ".join(repr(inner[-1]).split())
    text = text if len(text) <= 80 else type(inner[-1]).__name__
    return f'{text} at "{path}"' if path else text
