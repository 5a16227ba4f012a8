"""The `strided` command: reads its arguments and hands over. Every subcommand is a function elsewhere.

Imports nothing heavy: `strided inspect` must start in the time Python itself needs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = """\
usage: strided <command> [options]

Tensors, autograd and number formats in plain Python, with every line's cost in view.

commands:
  run       run a PyTorch script on this package           strided run train.py --steps 10
  annotate  run it and show shapes, copies and FLOPs        strided annotate attention.py
  inspect   what a checkpoint's weights are and take        strided inspect model.safetensors
  number    what a number becomes in a format               strided number 0.1 --dtype bfloat16
  error     what real weights lose in other formats         strided error model.safetensors --formats mxfp4,int4-g128
  bench     how close work comes to this machine's limits   strided bench

  strided <command> --help    the command's options, with examples
  strided --version
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. argv: the words behind `strided` (default: sys.argv's). A reader that goes away (`| head`) ends it quietly with 1."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _command(words)
        finally:  # also where --help leaves by SystemExit. A script that is run is flushed by Python, as it always is
            if words[:1] != ["run"] and sys.stdout is not None and not sys.stdout.closed:
                sys.stdout.flush()
    except BrokenPipeError:
        _discard()
        return 1


def _discard() -> None:
    """Send what is still to be written nowhere, so that Python's last flush does not meet the closed pipe again."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())


def _command(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(USAGE, end="", file=sys.stdout if words else sys.stderr)
        return 0 if words else 2
    command, rest = words[0], words[1:]
    if command in ("-V", "--version"):
        return version()
    if command == "run":
        return run(rest)
    if command == "annotate":
        import strided.lens.annotate as annotate

        return annotate.main(rest)
    if command == "inspect":
        import strided.lens.inspect as inspect

        return inspect.main(rest)
    if command == "error":
        import strided.lens.error as error

        return error.main(rest)
    if command == "number":
        import strided.lens.number as number

        return number.main(rest)
    if command == "bench":
        import strided.lens.bench as bench

        return bench.main(rest)
    print(f"strided: no command {command!r}; there are run, annotate, inspect, number, error and bench (strided --help)", file=sys.stderr)
    return 2


def version() -> int:
    """Print this package's version and the PyTorch interface it follows."""
    from importlib.metadata import version as installed

    import strided

    print(f"strided {installed('strided')} (torch.__version__ under it: {strided.__version__})")
    return 0


def run(words: Sequence[str]) -> int:
    """`strided run [--full-traceback] script.py [args…]`, or -m module, or -c code; `-` runs standard input."""
    import argparse
    import os

    import strided.script as script

    parser = argparse.ArgumentParser(
        prog="strided run",
        usage="strided run [-h] [--full-traceback] [--watch [--html FILE]] (script.py | -m module | -c code | -) [args …]",
        description="Run a PyTorch script with `torch` meaning strided: its arguments, exit code and tracebacks are Python's own.",
        epilog="""examples:
  strided run train.py --steps 10         torch, torch.nn, torch.utils.data, … resolve to strided
  strided run -m package.train --steps 10
  strided run -c 'import torch; print(torch.arange(6).view(2, 3).stride())'
  strided run --watch train.py            say what goes wrong in training: NaN and where it came from, dead units, …
  strided run --watch --html run.html train.py
  strided run --full-traceback train.py   keep this package's own frames in tracebacks""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full-traceback", action="store_true", help="show strided's own frames in tracebacks (folded by default)")
    parser.add_argument("--watch", action="store_true", help="look at losses, gradients and results while training, and report what went wrong at the end")
    parser.add_argument("--html", metavar="FILE", help="with --watch: also write a page with the loss and every layer's gradient norm over the steps")
    script.add_target(parser)
    options = parser.parse_args(words)
    target = script.target_of(options, parser)
    if options.html is not None and not options.watch:
        parser.error("--html is where --watch writes its page: give both")
    if target.kind == "script" and target.name != "-":
        try:
            open(target.name, "rb").close()
        except IsADirectoryError:
            pass
        except OSError as error:
            print(f"strided run: can't open file '{os.path.abspath(target.name)}': [Errno {error.errno}] {error.strerror}", file=sys.stderr)
            return 2
    if options.watch:
        from strided.lens.watch_run import run as watched

        return watched(target, options.full_traceback, options.html)
    return script.run(target, options.full_traceback)


if __name__ == "__main__":
    sys.exit(main())
