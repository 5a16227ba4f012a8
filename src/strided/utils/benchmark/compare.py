"""`Compare`: measurements as a table, a row a sub-label, a column a description, a block a number of threads."""
from __future__ import annotations

import enum
from collections.abc import Sequence

from .measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english


class Colorize(enum.Enum):
    """What times are coloured by: nothing, all of a table's columns, or each row by itself."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


_GREEN, _BOLD, _YELLOW, _RED, _END = "\033[92m", "\033[1m", "\033[93m", "\033[91m", "\033[0m"


class Compare:
    """A table of measurements, one a label. Measurements of one task are merged."""

    def __init__(self, results: Sequence[Measurement]):
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim, self._colorize, self._warn = False, Colorize.NONE, False

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results: Sequence[Measurement]) -> None:
        """Adds measurements. Raises ValueError for anything else."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Shows as many digits as mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Marks the best times green, and those far off yellow and red, of a column or (rowwise) of a row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Shows how far times spread where it is a tenth of the median or more."""
        self._warn = True

    def print(self) -> None:
        print(self)

    def _render(self) -> list[str]:
        groups: dict[str, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            groups.setdefault(result.task_spec.label or result.task_spec.stmt, []).append(result)
        return [self._table(label, group) for label, group in groups.items()]

    def _table(self, label: str, group: list[Measurement]) -> str:
        unit, scale = select_unit(min(result.median for result in group))
        has_env = len({result.env for result in group}) > 1
        columns = ordered_unique(result.task_spec.description for result in group)
        rows = ordered_unique((result.task_spec.num_threads, f"({result.env}) " * has_env + result.as_row_name) for result in group)
        cells = {((r.task_spec.num_threads, f"({r.env}) " * has_env + r.as_row_name), r.task_spec.description): r for r in group}
        rows.sort(key=lambda row: row[0])
        digits = {description: max(self._digits(r, scale) for (_, d), r in cells.items() if d == description) for description in columns}
        texts = {key: f"{self._shown(r, scale):.{digits[key[1]]}f}" + self._spread(r) for key, r in cells.items()}
        widths = {d: max(len(d or ""), *(len(text) for (_, other), text in texts.items() if other == d)) for d in columns}
        names = ["      " + name + "  " for _, name in rows] + [f"{n} threads: " for n, _ in rows]
        width = max(map(len, names))
        head = " " * width + "".join(f"|  {(d or ''):>{widths[d]}}  " for d in columns)
        lines = [f"[{f' {label} ':-^{len(head.rstrip()) - 2}}]", head.rstrip() if any(columns) else ""]
        threads = None
        for row in rows:
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(head.rstrip()), "-"))
            line = f"{'      ' + row[1]:<{width}}"
            for d in columns:
                text = texts.get((row, d), "")
                line += f"|  {self._painted(f'{text:>{widths[d]}}', cells, row, d)}  "
            lines.append(line[:-2] if line.endswith("  ") else line)
        notes = [f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._warn and any(r.has_warnings for r in group):
            notes.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join([*lines, "", *notes, ""])

    def _shown(self, result: Measurement, scale: float) -> float:
        value = result.median / scale
        return trim_sigfig(value, result.significant_figures) if self._trim else value

    def _digits(self, result: Measurement, scale: float) -> int:
        """Digits behind the point."""
        value = self._shown(result, scale)
        if not self._trim:
            return 1
        before = len(str(int(value))) if value >= 1 else 0
        return max(result.significant_figures - before, 0)

    def _spread(self, result: Measurement) -> str:
        return f" (! {result.iqr / result.median * 100:.0f}%)" if self._warn and result.has_warnings else ""

    def _painted(self, text: str, cells: dict, row: tuple, description: str | None) -> str:
        result = cells.get((row, description))
        if result is None or self._colorize is Colorize.NONE:
            return text
        others = [r for (other, d), r in cells.items() if (other == row if self._colorize is Colorize.ROWWISE else d == description)]
        ratio = result.median / min(r.median for r in others)
        for limit, start in ((1.05, _GREEN + _BOLD), (1.25, _GREEN), (2, ""), (5, _YELLOW)):
            if ratio <= limit:
                return f"{start}{text}{_END}" if start else text
        return f"{_RED}{text}{_END}"
