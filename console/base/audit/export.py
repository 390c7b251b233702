"""The audit log as a file, sent while it is read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from asgiref.sync import sync_to_async

from console.base.audit.names import names_of
from console.base.audit.reading import page_behind
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope

PAGE_ENTRIES = 1_000
JSONL, CSV = "jsonl", "csv"
CONTENT_TYPES = {JSONL: "application/x-ndjson", CSV: "text/csv; charset=utf-8"}
COLUMNS = (
    *("id", "created_at", "action", "actor_kind", "actor_id", "actor_name", "source"),
    *("target_type", "target_id", "request_id", "address", "detail"),
)
# What a spreadsheet takes for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")

Shown = dict[str, Any]


async def export(
    *,
    organization_id: str,
    wanted: Mapping[str, Any],
    kind: str,
    show: Callable[[AuditEntry, str], Shown],
) -> AsyncIterator[bytes]:
    """The file's parts, oldest entry first. `show` gives an entry with its actor's name as JSON.

    Each page is read in a transaction of its own, so a slow reader holds none open.
    """
    write = _csv if kind == CSV else _jsonl
    if kind == CSV:
        yield _row(COLUMNS)
    behind: AuditEntry | None = None
    while True:
        page, behind = await sync_to_async(_read)(organization_id, wanted, behind, show)
        if page:
            yield b"".join(write(each) for each in page)
        if len(page) < PAGE_ENTRIES:
            return


def _read(
    organization_id: str,
    wanted: Mapping[str, Any],
    behind: AuditEntry | None,
    show: Callable[[AuditEntry, str], Shown],
) -> tuple[list[Shown], AuditEntry | None]:
    with organization_scope(organization_id):
        entries = page_behind(
            organization_id=organization_id, wanted=wanted, behind=behind, limit=PAGE_ENTRIES
        )
        names = names_of(entries)
    shown = [show(entry, names[entry.actor_kind, entry.actor_id]) for entry in entries]
    return shown, entries[-1] if entries else behind


def _jsonl(entry: Shown) -> bytes:
    return json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _csv(entry: Shown) -> bytes:
    flat = {
        **entry,
        **{f"actor_{name}": value for name, value in entry["actor"].items()},
        **{f"target_{name}": value for name, value in entry["target"].items()},
        "detail": json.dumps(entry["detail"], ensure_ascii=False),
    }
    return _row([_harmless(str(flat[name])) for name in COLUMNS])


def _row(values: tuple[str, ...] | list[str]) -> bytes:
    """One line of RFC 4180."""
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue().encode()


def _harmless(text: str) -> str:
    """A text that a spreadsheet shows instead of computing it: names come from others."""
    return f"'{text}" if text.startswith(FORMULA) else text
