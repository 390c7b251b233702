"""What commands print: tables for people, the API's own objects as JSON for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

GAP = "  "
# Of C0, C1 and the marks that turn text around: a terminal would obey them.
_OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_FRACTION = re.compile(r"(T\d\d:\d\d:\d\d)\.\d+")


def write(text: str = "") -> None:
    """Prints a line."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Prints a line beside the output: it is never part of what a program reads."""
    sys.stderr.write(text + "\n")


def to_json(value: object, *, indent: int | None = 2) -> str:
    """JSON as the API's, but that a terminal obeys nothing in it."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _OBEYED.sub(lambda m: m[0] if m[0] == "\n" else f"\\u{ord(m[0]):04x}", text)


def safe(text: str) -> str:
    """Text that came from others, such that a terminal shows and does not obey it."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown(value: Any) -> str:
    """One value in a table."""
    if value in (None, "", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{safe(str(key))}={shown(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(shown(each) for each in value)
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 1e6 else str(int(value))
    return safe(_FRACTION.sub(r"\1", str(value)))


def pick(row: Mapping[str, Any], path: str) -> Any:
    """A member of a member: `status.phase`."""
    found: Any = row
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def columns_of(spec: str) -> list[tuple[str, str]]:
    """Headings and paths of `name phase:status.phase`."""
    found = []
    for word in spec.split():
        heading, _, path = word.partition(":")
        found.append((heading.replace("_", " ").upper(), path or heading))
    return found


def table(rows: Iterable[Mapping[str, Any]], spec: str) -> list[str]:
    """Lines of a table with a heading; none without rows."""
    columns = columns_of(spec)
    cells = [[shown(pick(row, path)) for _, path in columns] for row in rows]
    return aligned([[heading for heading, _ in columns], *cells]) if cells else []


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """Lines whose columns begin below each other."""
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    return [
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def details(row: Mapping[str, Any]) -> list[str]:
    """One object: a line for each of its values, then a table for each list of objects in it."""
    pairs, lists = _flatten(row, "")
    lines = aligned([[name, shown(value)] for name, value in pairs]) if pairs else []
    for name, items in lists:
        columns = dict.fromkeys(key for item in items for key in item)
        lines += ["", f"{name}:"]
        lines += [f"{GAP}{line}" for line in table(items, " ".join(columns))]
    return lines


def _flatten(
    row: Mapping[str, Any], prefix: str
) -> tuple[list[tuple[str, Any]], list[tuple[str, list[dict[str, Any]]]]]:
    pairs: list[tuple[str, Any]] = []
    lists: list[tuple[str, list[dict[str, Any]]]] = []
    for key, value in row.items():
        name = f"{prefix}{safe(str(key))}"
        if isinstance(value, dict) and value:
            inner_pairs, inner_lists = _flatten(value, f"{name}.")
            pairs += inner_pairs
            lists += inner_lists
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            lists.append((name, value))
        else:
            pairs.append((name, value))
    return pairs, lists
