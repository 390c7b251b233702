"""Slots: what was used in a window of time, stored once.

Storage, partition and broker time are computed from what is stored at the moment of reading, and
compaction or a merge of segments may leave less to see later. So the first agent that measures a
window stores the result under a key that can be taken only once. An agent that comes later, or
after a crash, uses what is stored there. A cluster's slots form a chain: each begins where the one
before it ends.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metering.events.errors import UsageFormatError
from metering.events.records import TIME_METERS, Meter
from metering.events.times import HOUR_MS, MINUTE_MS

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SlotRow:
    """How much of a meter of time was used in the slot's window; see `records` for the columns."""

    meter: str
    topic_id: str = ""
    partition: int = -1
    """-1 where the row belongs to no partition."""
    incarnation: int = -1
    """-1 where the row belongs to no broker."""
    quantity: int
    billed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A window [start, end) of whole minutes within one hour, and its rows in order."""

    cell: str
    cluster_id: str
    window_start_ms: int
    window_end_ms: int
    rows: tuple[SlotRow, ...]


def encode_slot(slot: Slot) -> bytes:
    """The slot as JSON; equal slots give equal bytes. Raises `UsageFormatError`."""
    _check_window(slot.window_start_ms, slot.window_end_ms)
    rows = [
        [row.meter, row.topic_id, row.partition, row.incarnation, row.quantity, row.billed]
        for row in sorted(slot.rows)
    ]
    plain = {
        "version": VERSION,
        "cell": slot.cell,
        "cluster_id": slot.cluster_id,
        "window_start_ms": slot.window_start_ms,
        "window_end_ms": slot.window_end_ms,
        "rows_sha256": _digest(rows),
        "rows": rows,
    }
    return json.dumps(plain, separators=(",", ":")).encode()


def parse_slot(data: bytes) -> Slot:
    """A slot from its JSON. Raises `UsageFormatError`."""
    try:
        plain = json.loads(data)
        if plain["version"] != VERSION:
            message = f"a slot of version {plain['version']!r}, this release knows {VERSION}"
            raise UsageFormatError(message)
        start, end = int(plain["window_start_ms"]), int(plain["window_end_ms"])
        _check_window(start, end)
        if plain["rows_sha256"] != _digest(plain["rows"]):
            message = "the rows of a slot are damaged"
            raise UsageFormatError(message)
        return Slot(
            cell=str(plain["cell"]),
            cluster_id=str(plain["cluster_id"]),
            window_start_ms=start,
            window_end_ms=end,
            rows=tuple(_parse_row(row) for row in plain["rows"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, UsageFormatError):
            raise
        message = f"not a slot: {type(error).__name__}: {error}"
        raise UsageFormatError(message) from error


def _parse_row(plain: Sequence[Any]) -> SlotRow:
    meter, topic_id, partition, incarnation, quantity, billed = plain
    if Meter(meter) not in TIME_METERS:
        message = f"{meter} is no meter of time"
        raise UsageFormatError(message)
    return SlotRow(
        meter=meter,
        topic_id=topic_id,
        partition=partition,
        incarnation=incarnation,
        quantity=quantity,
        billed=billed,
    )


def _check_window(start_ms: int, end_ms: int) -> None:
    if (
        start_ms % MINUTE_MS
        or end_ms % MINUTE_MS
        or not 0 <= start_ms < end_ms <= start_ms - start_ms % HOUR_MS + HOUR_MS
    ):
        message = f"{start_ms}..{end_ms} are no whole minutes of one hour"
        raise UsageFormatError(message)


def _digest(rows: object) -> str:
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()
