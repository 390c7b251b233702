"""Prints what commands show: tables for people, the API's own objects as JSON for programs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

GAP = "  "
# Control characters (C0, C1) and marks that change the direction of text: a terminal obeys them.
_OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_FRACTION = re.compile(r"(T\d\d:\d\d:\d\d)\.\d+")


def print_line(text: str = "") -> None:
    """Prints a line to the standard output."""
    sys.stdout.write(text + "\n")


def print_note(text: str) -> None:
    """Prints a line to the standard error, so that it is no part of what a program reads."""
    sys.stderr.write(text + "\n")


def to_json(value: object, *, indent: int | None = 2) -> str:
    """Returns JSON in which every character that a terminal would obey is escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _OBEYED.sub(lambda m: m[0] if m[0] == "\n" else f"\\u{ord(m[0]):04x}", text)


def escape_controls(text: str) -> str:
    """Returns text with every character escaped that a terminal would obey."""
    return _OBEYED.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def format_value(value: Any) -> str:
    """Returns a value as the text of a cell of a table."""
    if value in (None, "", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(
            f"{escape_controls(str(key))}={format_value(item)}" for key, item in value.items()
        )
    if isinstance(value, list):
        return ", ".join(format_value(item) for item in value)
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 1e6 else str(int(value))
    return escape_controls(_FRACTION.sub(r"\1", str(value)))


def pick_member(row: Mapping[str, Any], path: str) -> Any:
    """Returns a member of a member, such as `status.phase`; None where there is none."""
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def columns_of(spec: str) -> list[tuple[str, str]]:
    """Returns heading and path of each column of a specification: `name phase:status.phase`."""
    columns = []
    for word in spec.split():
        heading, _, path = word.partition(":")
        columns.append((heading.replace("_", " ").upper(), path or heading))
    return columns


def table_lines(rows: Iterable[Mapping[str, Any]], spec: str) -> list[str]:
    """Returns the lines of a table with a heading; none where there are no rows."""
    columns = columns_of(spec)
    cells = [[format_value(pick_member(row, path)) for _, path in columns] for row in rows]
    return align_cells([[heading for heading, _ in columns], *cells]) if cells else []


def align_cells(cells: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of cells, with aligned columns."""
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    return [
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def detail_lines(row: Mapping[str, Any]) -> list[str]:
    """Returns the lines of an object: one for each value, then a table for each list of objects."""
    pairs, lists = _flatten_object(row, "")
    lines = align_cells([[name, format_value(value)] for name, value in pairs]) if pairs else []
    for name, items in lists:
        columns = dict.fromkeys(key for item in items for key in item)
        lines += ["", f"{name}:"]
        lines += [f"{GAP}{line}" for line in table_lines(items, " ".join(columns))]
    return lines


def _flatten_object(
    row: Mapping[str, Any], prefix: str
) -> tuple[list[tuple[str, Any]], list[tuple[str, list[dict[str, Any]]]]]:
    pairs: list[tuple[str, Any]] = []
    lists: list[tuple[str, list[dict[str, Any]]]] = []
    for key, value in row.items():
        name = f"{prefix}{escape_controls(str(key))}"
        if isinstance(value, dict) and value:
            inner_pairs, inner_lists = _flatten_object(value, f"{name}.")
            pairs += inner_pairs
            lists += inner_lists
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            lists.append((name, value))
        else:
            pairs.append((name, value))
    return pairs, lists
