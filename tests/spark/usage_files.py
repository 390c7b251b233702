"""Makes usage files as a metering agent writes them, and also damaged and doubled ones."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from metering.events.keys import data_key
from metering.events.records import USAGE_SCHEMA, encode_usage
from metering.events.store import FolderUsageStore

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

DAY = date(2026, 3, 29)
DAY_START_MS = int(datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC).timestamp()) * 1000
CELL = "local-1"
TOPIC = "0" * 31 + "a"

# Of which an egress counter is.
SERIES = ("cluster_id", "incarnation", "topic_id", "principal")

Value = str | int | bool | None
Row = dict[str, Any]
Input = dict[str, Any]


def ingress(block: int, quantity: int, **other: Value) -> Row:
    """A row of what was written, in the day's first minute unless said otherwise."""
    start = int(other.get("window_start_ms") or DAY_START_MS)
    return {
        "schema_version": 1,
        "cell": CELL,
        "cluster_id": "cl_1",
        "organization_id": "org_1",
        "incarnation": 1,
        "lane_file": 1 + block // 10,
        "block": block,
        "topic_id": TOPIC,
        "partition": 0,
        "principal": "User:app",
        "meter": "ingress_bytes",
        "window_start_ms": start,
        "window_end_ms": start + MINUTE_MS,
        "quantity": quantity,
        "cumulative": None,
        "billed": True,
        "emitted_at_ms": start + 2 * MINUTE_MS,
    } | other


def egress(block: int, quantity: int, cumulative: int, **other: Value) -> Row:
    """A row of what was read."""
    meter = {"meter": "egress_bytes", "partition": None, "cumulative": cumulative}
    return ingress(block, quantity, **other) | meter


def storage(minute: int, minutes: int, quantity: int, **other: Value) -> Row:
    """A row of what was kept, from a minute of the day on."""
    start = DAY_START_MS + minute * MINUTE_MS
    nowhere = dict.fromkeys(("incarnation", "lane_file", "block", "principal"))
    window = {"window_start_ms": start, "window_end_ms": start + minutes * MINUTE_MS}
    return ingress(0, quantity) | {"meter": "storage_byte_minutes"} | nowhere | window | other


class UsageFolder:
    """A usage store in a folder, and the runs over it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.store = FolderUsageStore(root / "usage")

    def path(self, key: str) -> Path:
        """Where a file lies."""
        return self.store.root / key

    def add(self, rows: Sequence[Row], emitted_at_ms: int = DAY_START_MS) -> Input:
        """Writes a file; returns what its manifest would say of it."""
        table = pa.Table.from_pylist(list(rows), schema=USAGE_SCHEMA)
        return self.add_bytes(encode_usage(table), len(rows), emitted_at_ms)

    def add_bytes(self, data: bytes, rows: int, emitted_at_ms: int = DAY_START_MS) -> Input:
        """Writes a file of any content."""
        sha256 = hashlib.sha256(data).hexdigest()
        key = data_key(CELL, emitted_at_ms, sha256)
        self.store.put_new(key, data)
        return {"key": key, "size_bytes": len(data), "sha256": sha256, "rows": rows}

    def run(self, inputs: Iterable[Input], run_id: str = "run_1", day: date = DAY) -> Path:
        """Writes a run's manifest; returns its path."""
        manifest = {
            "version": 1,
            "run_id": run_id,
            "day": day.isoformat(),
            "usage_root": str(self.store.root),
            "inputs": list(inputs),
        }
        path = self.root / f"{run_id}.json"
        path.write_text(json.dumps(manifest))
        return path


def random_rows(seed: int, count: int = 300) -> list[Row]:
    """Rows that agree with each other, of the day, the evening before and the morning after."""
    draw = random.Random(seed)
    rows = []
    cumulative: dict[tuple[object, ...], int] = {}
    for block in range(count):
        cluster = draw.randrange(3)
        minute = draw.choice([*range(-5, 5), *range(1435, 1445), *(draw.randrange(1440),) * 20])
        common = {
            "cluster_id": f"cl_{cluster}",
            "organization_id": f"org_{cluster % 2}",
            "incarnation": 1 + draw.randrange(2),
            "topic_id": f"{draw.randrange(3):032x}",
            "principal": draw.choice(["User:app", "User:é|:", "User:__freshet", "User:😀"]),
            "window_start_ms": DAY_START_MS + minute * MINUTE_MS,
            "emitted_at_ms": DAY_START_MS + (minute + 3) * MINUTE_MS,
        }
        common["billed"] = common["principal"] != "User:__freshet"
        quantity = draw.choice([0, 1, draw.randrange(1 << 20), (1 << 62) + draw.randrange(1000)])
        kind = draw.randrange(4)
        if kind < 2:
            rows += [
                ingress(block, quantity, partition=partition, **common)
                for partition in range(draw.randrange(1, 4))
            ]
        elif kind == 2:
            series = tuple(
                common[n] for n in ("cluster_id", "incarnation", "topic_id", "principal")
            )
            quantity %= 1 << 30
            cumulative[series] = cumulative.get(series, 0) + quantity
            rows.append(egress(block, quantity, cumulative[series], **common))
        else:
            rows.append(_of_time(draw, block, minute, common))
    return rows


def _of_time(draw: random.Random, block: int, minute: int, common: Row) -> Row:
    """A row of a time meter; the block only makes its identity one of its own."""
    meter = draw.choice(["storage_byte_minutes", "partition_minutes", "broker_seconds"])
    other = {"cluster_id": common["cluster_id"], "organization_id": common["organization_id"]}
    other |= {"topic_id": f"{block:032x}", "meter": meter}
    if meter == "partition_minutes":
        other["partition"] = None
    elif meter == "broker_seconds":
        other |= {"partition": None, "topic_id": "", "incarnation": block + 1, "billed": False}
    minutes = draw.randrange(1, 61 - minute % 60)
    return storage(minute, minutes, draw.randrange(1 << 50), **other)


def sum_files(rows: Iterable[Row]) -> list[Row]:
    """Rows of version 2: of each lane file the sums of its blocks by minute."""
    sums: dict[tuple[object, ...], Row] = {}
    for row in rows:
        if row["block"] is None:
            continue
        key = tuple(value for name, value in row.items() if name not in _SUMMED)
        first = {"schema_version": 2, "block": None, "quantity": 0, "cumulative": None}
        total = sums.setdefault(key, row | first)
        total["quantity"] += row["quantity"]
        if row["cumulative"] is not None:
            total["cumulative"] = max(total["cumulative"] or 0, row["cumulative"])
    return list(sums.values())


_SUMMED = {"schema_version", "block", "quantity", "cumulative", "emitted_at_ms"}


def spoil_rows(seed: int, rows: Sequence[Row]) -> list[Row]:
    """Copies of some rows, and copies of some rows with another value."""
    draw = random.Random(seed)
    extra = []
    for row in draw.sample(rows, len(rows) // 4):
        copies = draw.randrange(1, 4)
        extra += [row | {"emitted_at_ms": row["emitted_at_ms"] + index} for index in range(copies)]
    for row in draw.sample(rows, 8):
        extra.append(row | _contradiction(draw, row))
    return extra


def _contradiction(draw: random.Random, row: Row) -> Row:
    changes: list[Row] = [
        {"quantity": row["quantity"] + 1},
        {"organization_id": "org_other"},
        {"billed": not row["billed"]},
        {"window_end_ms": row["window_end_ms"] + 1},
    ]
    if row["block"] is not None:
        moved = row["window_start_ms"] + draw.choice([-DAY_MS, DAY_MS])
        changes.append({"window_start_ms": moved, "window_end_ms": moved + MINUTE_MS})
    if row["cumulative"] is not None:
        changes.append({"cumulative": row["cumulative"] + 1})
    return draw.choice(changes)


def split_rows(seed: int, rows: Sequence[Row], files: int) -> list[list[Row]]:
    """The rows in random order, in so many files of random length; some may be empty."""
    draw = random.Random(seed)
    shuffled = draw.sample(list(rows), len(rows))
    cuts = sorted(draw.randrange(len(rows) + 1) for _ in range(files - 1))
    return [shuffled[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
