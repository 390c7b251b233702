"""The audit log as a file of JSON lines or CSV, which is sent while it is read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from asgiref.sync import sync_to_async

from console.base.audit.names import TargetName, names_of, targets_of
from console.base.audit.reading import page_behind
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope

PAGE_ENTRIES = 1_000
JSONL, CSV = "jsonl", "csv"
CONTENT_TYPES = {JSONL: "application/x-ndjson", CSV: "text/csv; charset=utf-8"}
COLUMNS = (
    *("id", "created_at", "action", "actor_kind", "actor_id", "actor_name", "source"),
    *("target_type", "target_id", "target_name", "target_cluster"),
    *("request_id", "address", "detail"),
)
# A spreadsheet takes a cell that begins with one of these for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")

# The JSON members of an entry.
EntryJson = dict[str, Any]
Show = Callable[[AuditEntry, str, TargetName], EntryJson]


async def export_entries(
    *,
    organization_id: str,
    filters: Mapping[str, Any],
    kind: str,
    show: Show,
) -> AsyncIterator[bytes]:
    """Yields the bytes of the file, oldest entry first, of the entries that match `filters`.

    `kind` is `JSONL` or `CSV`. `show` makes the JSON members of an entry, its actor's name and its
    target's. Each page is read in a transaction of its own, so that a slow client holds none open.
    """
    write = _csv_line if kind == CSV else _json_line
    if kind == CSV:
        yield _csv_row(COLUMNS)
    behind: AuditEntry | None = None
    while True:
        page, behind = await sync_to_async(_read_page)(organization_id, filters, behind, show)
        if page:
            yield b"".join(write(entry) for entry in page)
        if len(page) < PAGE_ENTRIES:
            return


def _read_page(
    organization_id: str,
    filters: Mapping[str, Any],
    behind: AuditEntry | None,
    show: Show,
) -> tuple[list[EntryJson], AuditEntry | None]:
    """Returns the page of entries behind an entry, and the page's last entry."""
    with organization_scope(organization_id):
        entries = page_behind(
            organization_id=organization_id, filters=filters, behind=behind, limit=PAGE_ENTRIES
        )
        names, targets = names_of(entries), targets_of(entries)
    shown = [
        show(entry, names[entry.actor_kind, entry.actor_id], target)
        for entry, target in zip(entries, targets, strict=True)
    ]
    return shown, entries[-1] if entries else behind


def _json_line(entry: EntryJson) -> bytes:
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _csv_line(entry: EntryJson) -> bytes:
    flat = {
        **entry,
        **{f"actor_{name}": value for name, value in entry["actor"].items()},
        **{f"target_{name}": value for name, value in entry["target"].items()},
        "detail": json.dumps(entry["detail"], ensure_ascii=False),
    }
    return _csv_row([_as_text_cell(str(flat[name])) for name in COLUMNS])


def _csv_row(values: tuple[str, ...] | list[str]) -> bytes:
    """Returns one line of CSV (RFC 4180)."""
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue().encode()


def _as_text_cell(text: str) -> str:
    """Returns a text that no spreadsheet runs as a formula: others may have chosen the names."""
    return f"'{text}" if text.startswith(FORMULA) else text
