"""Whether an object is as a manifest wants it: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def holds(wanted: Any, found: Any) -> bool:  # noqa: ANN401 (JSON)
    """Whether everything that is wanted is found; what else is found does not matter.

    In a list the order counts, and there is nothing else: lists of objects are ours as a whole.
    """
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            holds(value, found.get(name)) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list) and len(wanted) == len(found) and all(map(holds, wanted, found))
        )
    return bool(wanted == found)


def differing(wanted: Any, found: Any, path: str = "") -> list[str]:  # noqa: ANN401 (JSON)
    """Where an object is not as it is wanted, for people; secrets are not shown."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return [
            each
            for name, value in wanted.items()
            for each in differing(value, found.get(name), f"{path}.{name}")
        ]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [
            each
            for number, value in enumerate(wanted)
            for each in differing(value, found[number], f"{path}[{number}]")
        ]
    return [] if holds(wanted, found) else [path.removeprefix(".")]
