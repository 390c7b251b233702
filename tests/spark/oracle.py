"""The roll-up in plain Python, from the same files, as simple as possible: the tests' oracle.

It shares no code with `spark_usage`, neither schema nor rules nor hash. Where the two disagree, one
of them is wrong.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

PLACE = ("cell", "cluster_id", "organization_id", "topic_id", "principal", "meter", "billed")
OUTPUT = (
    "cell",
    "cluster_id",
    "organization_id",
    "topic_id",
    "principal",
    "meter",
    "window_start_ms",
    "window_end_ms",
    "quantity",
    "billed",
    "source_rows",
)
MAY_BE_NULL = {"incarnation", "lane_file", "block", "partition", "principal", "cumulative"}

Row = dict[str, Any]


@dataclass(frozen=True)
class RollUp:
    """The result that a run must have. Rows are sorted by all columns."""

    hours: list[Row]
    days: list[Row]
    quarantine: list[Row]
    damaged: set[str]
    rows_read: int
    rows_distinct: int
    duplicates: int
    superseded: int
    conflicts: int
    control_totals: dict[str, str]
    content_sha256: str


def roll_up(manifest: Path, clusters: frozenset[str] | None = None) -> RollUp:
    """Rolls a run's inputs up, or of a day that is too large at once the rows of some clusters."""
    run = json.loads(manifest.read_text())
    rows: list[Row] = []
    damaged = set()
    for entry in run["inputs"]:
        sound = _sound_rows(Path(run["usage_root"], entry["key"]), entry, clusters)
        if sound is None:
            damaged.add(entry["key"])
        else:
            rows += sound
    by_identity: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        by_identity[_identity(row)].append(row)
    # A lane file that is summed up is billed by its sums alone.
    summed = {_lane_file(row) for row in rows if row["schema_version"] == 2}
    agreeing, superseded = [], 0
    for copies in filter(_agree, by_identity.values()):
        if _is_of_block(copies[0]) and _lane_file(copies[0]) in summed:
            superseded += len(copies)
        else:
            agreeing.append(copies[0])
    disagreeing = [copies for copies in by_identity.values() if not _agree(copies)]
    day = datetime.fromisoformat(run["day"]).replace(tzinfo=UTC)
    day_start = round(day.timestamp()) * 1000
    of_day = [row for row in agreeing if 0 <= row["window_start_ms"] - day_start < DAY_MS]
    hours = _sums(of_day, HOUR_MS)
    days = _sums(of_day, DAY_MS)
    quarantine = [row for copies in disagreeing for row in copies]
    return RollUp(
        hours=hours,
        days=days,
        quarantine=sorted_rows(quarantine),
        damaged=damaged,
        rows_read=len(rows),
        rows_distinct=len(agreeing),
        duplicates=len(rows) - len(agreeing) - len(quarantine) - superseded,
        superseded=superseded,
        conflicts=len(disagreeing),
        control_totals=_totals(of_day),
        content_sha256=content_sha256({"hours": hours, "days": days}),
    )


def sorted_rows(rows: Iterable[Row]) -> list[Row]:
    """Rows in an order that only their content decides."""
    return sorted(rows, key=lambda row: [(value is not None, str(value)) for value in row.values()])


def content_sha256(tables: Mapping[str, Sequence[Row]]) -> str:
    """The order-independent hash of roll-up tables, as `spark_usage/README.md` defines it."""
    lines = []
    for name in sorted(tables):
        sums = [0, 0, 0, 0]
        for row in tables[name]:
            digest = hashlib.sha256(b"".join(map(_counted, (row[key] for key in OUTPUT)))).digest()
            for part in range(4):
                sums[part] += int.from_bytes(digest[8 * part : 8 * part + 8], "big")
        lines.append(":".join([name, str(len(tables[name])), *map(str, sums)]))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _counted(value: object) -> bytes:
    text = (str(value).lower() if isinstance(value, bool) else str(value)).encode()
    return f"{len(text)}:".encode() + text


def _sound_rows(
    path: Path, stated: Mapping[str, Any], clusters: frozenset[str] | None
) -> list[Row] | None:
    """A file's rows, or None if they may not count."""
    try:
        data = path.read_bytes()
        if (len(data), hashlib.sha256(data).hexdigest()) != (
            stated["size_bytes"],
            stated["sha256"],
        ):
            return None
        table = pq.read_table(io.BytesIO(data))
        count = table.num_rows
        if clusters is not None:
            table = table.filter(pc.is_in(table["cluster_id"], pa.array(sorted(clusters))))
        rows: list[Row] = table.to_pylist()
    except (OSError, ValueError):
        return None
    if count != stated["rows"] or not all(map(_is_whole, rows)):
        return None
    return rows


def _is_whole(row: Row) -> bool:
    version = row["schema_version"]
    if version not in (1, 2):
        return False
    if any(value is None for name, value in row.items() if name not in MAY_BE_NULL):
        return False
    lane = None not in (row["incarnation"], row["lane_file"], row["principal"])
    lane = lane and (row["block"] is None) == (version == 2)
    match row["meter"]:
        case "ingress_bytes":
            return lane and row["partition"] is not None
        case "egress_bytes":
            return lane and row["cumulative"] is not None
        case "storage_byte_minutes" | "partition_minutes" | "broker_seconds":
            return (version, row["block"], row["lane_file"]) == (1, None, None)
    return True


def _is_of_block(row: Row) -> bool:
    return row["schema_version"] == 1 and row["meter"] in ("ingress_bytes", "egress_bytes")


def _lane_file(row: Row) -> tuple[object, ...]:
    return row["cell"], row["cluster_id"], row["incarnation"], row["lane_file"]


def _identity(row: Row) -> tuple[object, ...]:
    return (
        row["cell"],
        row["cluster_id"],
        row["incarnation"],
        row["lane_file"],
        row["block"],
        row["topic_id"],
        row["partition"],
        row["principal"],
        row["meter"],
        row["window_start_ms"] if row["block"] is None else None,
    )


def _agree(copies: Sequence[Row]) -> bool:
    first = copies[0] | {"emitted_at_ms": None}
    return all(copy | {"emitted_at_ms": None} == first for copy in copies)


def _sums(rows: Iterable[Row], unit_ms: int) -> list[Row]:
    sums: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        place = tuple(row[name] or "" if name == "principal" else row[name] for name in PLACE)
        total = sums[(*place, row["window_start_ms"] // unit_ms * unit_ms)]
        total[0] += row["quantity"]
        total[1] += 1
    result = []
    for (*values, start), (quantity, count) in sums.items():
        summed: Row = dict(zip(PLACE, values, strict=True))
        summed |= {"window_start_ms": start, "window_end_ms": int(str(start)) + unit_ms}
        summed |= {"quantity": quantity, "source_rows": count}
        result.append({name: summed[name] for name in OUTPUT})
    return sorted_rows(result)


def _totals(rows: Iterable[Row]) -> dict[str, str]:
    totals: dict[str, int] = defaultdict(int)
    for row in rows:
        totals[row["meter"]] += row["quantity"]
    return {meter: str(total) for meter, total in totals.items()}
