"""`torch.utils.benchmark`: statements timed with care (`Timer`), what came out (`Measurement`), several of them as a table (`Compare`).

    from torch.utils.benchmark import Timer
    print(Timer("x @ x", globals={"x": torch.randn(256, 256)}).blocked_autorange())
"""

from ...refused import missing as _missing
from .compare import Colorize, Compare
from .measurement import Measurement, TaskSpec, ordered_unique, select_unit, set_torch_threads, trim_sigfig, unit_to_english
from .timer import Language, Timer, timer

__all__ = [
    "Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit", "set_torch_threads", "timer", "trim_sigfig", "unit_to_english",
]  # fmt: skip

__getattr__ = _missing("torch.utils.benchmark")
