"""Numbers of an optimiser's update that change from step to step (learning rate, corrections of the first steps) as operands of a program.

While a call is recorded, `Watched` is told of each update and of the numbers its rules are given; their slots become `Number`s, which every replay fills anew. Where they come
from is not recorded but asked: `ask` runs the optimiser's own Python, with its rules answering only what they would have been given. So a schedule, a count
of steps, a learning rate that is a tensor are respected, and computed by the very code that an eager step runs. What is launched is recording.py's business.
"""
from __future__ import annotations

from threading import get_ident
from typing import Any, NamedTuple

from ..autograd import no_grad
from ..kernels.recipes import LISTENERS
from ..kernels.unchanged import unchanged


class Number(NamedTuple):
    """A slot that takes the program's number at `place`."""

    place: int


class Update(NamedTuple):
    """One group's update: what to ask for its numbers."""

    optimizer: Any
    group: dict
    members: list  # (parameter, None, state)


class Watched:
    """What a recording keeps of updates: `updates` to be asked, `rules` that they call, `numbers` that those were given; `plain`: groups whose updates cannot be asked."""

    def __init__(self):
        self.updates: list[Update] = []
        self.rules: list[tuple] = []
        self.numbers: list[float] = []
        self.plain: list[dict] = []
        self.now: tuple | None = None  # numbers of the rule that launches now: the first, and how many
        self.inside = self.launched = self.read = self.counting = False
        self.reason: str | None = None  # why the call cannot be replayed

    def update(self, optimizer, group, members) -> None:
        """Runs a group's update."""
        rules, numbers = len(self.rules), len(self.numbers)
        self.inside, self.launched, self.read = True, False, False
        try:
            optimizer._update_all(group, members)
        finally:
            self.inside = False
        if self.launched:  # more than rules: asking would do that as well, and what was read may have decided it
            del self.rules[rules:], self.numbers[numbers:]
            self.plain.append(group)
            if self.read:
                self.reason = f"{type(optimizer).__name__} reads a tensor's value"
        else:
            self.updates.append(Update(optimizer, group, [(p, None, state) for p, _, state in members]))

    def rule(self, what: tuple, values) -> bool:
        if self.inside:
            self.now = len(self.numbers), len(values)
            self.rules.append(what)
            self.numbers += map(float, values)
        return False

    def ruled(self) -> None:
        self.now = None

    def counts(self, by_value, members):
        self.counting = True
        try:
            return by_value(members, "step")
        finally:
            self.counting = False

    def may_read(self, address: int, steps) -> bool:
        """Whether a number that Python reads now is one that will be asked for: a count of steps, or what no recorded step has touched (a learning rate)."""
        fine = self.counting or self.inside and not any(address in step.slots for step in steps)
        self.read |= fine
        return fine


class _Asked:
    """Stands where an update's rules would run and keeps what they are given."""

    def __init__(self):
        self.rules: list[tuple] = []
        self.numbers: list[float] = []
        self.ahead: dict[int, int] = {}  # a parameter's state → steps that the call takes before the one that is asked about

    def rule(self, what: tuple, values) -> bool:
        self.rules.append(what)
        self.numbers += map(float, values)
        return True

    def counts(self, by_value, members):
        first = id(members[0][2])
        self.ahead[first] = ahead = self.ahead.get(first, 0) + 1
        return [(step + ahead, those) for step, those in by_value(members, "step")]


def ask(updates: list[Update], rules: list[tuple]) -> list[float] | None:
    """The numbers that the updates' rules would be given now; None where those would be other rules, or for other parameters, than the recorded ones."""
    asked = _asked(updates)
    return None if asked is None or asked.rules != rules else asked.numbers


def constant(updates: list[Update], rules: list[tuple]) -> tuple[Any, list[float], list] | None:
    """(a native function that says whether the numbers are still the present ones, the numbers, what the function looks at), where nothing but plain options of this package's optimisers
    decides them; None elsewhere."""
    options = [(update.group, key, value) for update in updates for key, value in update.group.items() if key != "params"]
    simple = lambda value: isinstance(value, (int, float, str, bool, type(None))) or isinstance(value, tuple) and all(map(simple, value))
    package = __name__.partition(".")[0]
    if any(type(update.optimizer).__module__.partition(".")[0] != package for update in updates) or not all(simple(value) for *_, value in options):
        return None
    asked = _asked(updates)
    if asked is None or asked.ahead or asked.rules != rules:  # counts of steps change
        return None
    return unchanged(dicts=options), asked.numbers, options


def _asked(updates: list[Update]) -> _Asked | None:
    thread = get_ident()
    asked = LISTENERS[thread] = _Asked()
    try:
        with no_grad():
            for update in updates:
                update.optimizer._update_all(update.group, update.members)
    except Exception:
        return None  # the call that is made in full says what is wrong
    finally:
        del LISTENERS[thread]
    return asked
