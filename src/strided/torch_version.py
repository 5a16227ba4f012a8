"""`torch.torch_version`: versions that compare as versions do, so that `torch.__version__ >= "2.4"` holds in 2.13. Order: PyPA's version specifiers (PEP 440)."""
from __future__ import annotations

from typing import Any

_PHASES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_FINAL = 3


def _key(version: str) -> tuple | None:
    """What orders versions: epoch, numbers, phase, its number, post-release, development release, local label. None for text that is no version."""
    import re

    found = re.fullmatch(
        r"v?(?:(\d+)!)?(\d+(?:\.\d+)*)(?:[-_.]?(alpha|beta|preview|pre|rc|a|b|c)[-_.]?(\d*))?(?:-(\d+)|[-_.]?(post|rev|r)[-_.]?(\d*))?(?:[-_.]?(dev)[-_.]?(\d*))?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
        version.strip().lower(),
    )
    if found is None:
        return None
    epoch, numbers, phase, phase_number, bare_post, post, post_number, dev, dev_number, local = found.groups()
    release = [int(n) for n in numbers.split(".")]
    while len(release) > 1 and release[-1] == 0:  # 2.0 and 2.0.0 are one
        release.pop()
    order = _PHASES[phase] if phase else -1 if dev and not (bare_post or post) else _FINAL  # a development release comes before everything of its number
    return (
        int(epoch or 0), tuple(release), order, int(phase_number or 0), int(bare_post or post_number or 0) if bare_post or post else -1, int(dev_number or 0) if dev else float("inf"),
        tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split("[-_.]", local)) if local else (),
    )  # fmt: skip


class TorchVersion(str):
    """A version as text that compares with text, and with sequences such as (2, 4), as a version. Text that is no version is compared letter by letter."""

    __slots__ = ()

    def _keys(self, other: Any) -> tuple[Any, Any] | None:
        if isinstance(other, str):
            text = str.__str__(other)
        elif isinstance(other, (tuple, list)):
            text = ".".join(map(str, other))
        elif hasattr(other, "release"):  # a Version of the package packaging
            text = str(other)
        else:
            return None
        mine, its = _key(str.__str__(self)), _key(text)
        return (str.__str__(self), text) if mine is None or its is None else (mine, its)

    def __lt__(self, other: Any) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] < keys[1]

    def __le__(self, other: Any) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] <= keys[1]

    def __gt__(self, other: Any) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] > keys[1]

    def __ge__(self, other: Any) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] >= keys[1]

    def __eq__(self, other: Any) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] == keys[1]

    def __ne__(self, other: Any) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] != keys[1]

    __hash__ = str.__hash__
