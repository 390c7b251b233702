"""JSON that others wrote: each member once, and nested only so deeply."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NoReturn

# How many objects and lists may lie within each other. Much less than what Python can walk.
DEPTH_MAX = 100
# So much of a long name stands in a message.
NAME_CHARS_MAX = 100


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401 (as `json.loads`)
    """The value of a JSON text.

    Raises `ValueError` for other texts, for `NaN` and infinities, for an object that names a member
    twice (which of them counts is everybody's guess), and for more than `DEPTH_MAX` levels.
    """
    try:
        value = json.loads(text, object_pairs_hook=_members, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    _require_shallow(value)
    return value


TOO_DEEP = f"nested too deeply: at most {DEPTH_MAX} levels are read"


def _members(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                message = f"`{name[:NAME_CHARS_MAX]}` is named twice in one object"
                raise ValueError(message)
            seen.add(name)
    return members


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is no JSON"
    raise ValueError(message)


def _require_shallow(value: object) -> None:
    """Raises `ValueError` beyond `DEPTH_MAX`. Walks level by level, without recursion."""
    level: list[object] = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError(TOO_DEEP)
