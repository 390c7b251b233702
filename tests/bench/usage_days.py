"""A day of usage files, as large as a bench asks for, with rows as an agent writes them."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from metering.events.keys import data_key
from metering.events.records import USAGE_SCHEMA, Meter, encode_usage
from metering.events.store import FolderUsageStore
from tests.bench.report import progress

DAY = date(2026, 3, 29)
DAY_START_MS = int(datetime(DAY.year, DAY.month, DAY.day, tzinfo=UTC).timestamp()) * 1000
MINUTE_MS = 60_000
MINUTES = 1440
RUN_ID = "run_bench"

CELL = "bench-1"
CLUSTERS = [f"cl_{number:016d}" for number in range(50)]
ORGANIZATIONS = [f"org_{number:016d}" for number in range(20)]
TOPICS = [f"{number:032x}" for number in range(1000)]
PRINCIPALS = [f"User:application-{number}" for number in range(4)]
INGRESS, EGRESS, STORAGE = Meter.INGRESS_BYTES, Meter.EGRESS_BYTES, Meter.STORAGE_BYTE_MINUTES
# Of ten blocks six are of what was written, three of what was read; one row in ten is of storage.
METERS = [INGRESS] * 6 + [EGRESS] * 3 + [STORAGE]
ROWS_A_BLOCK = 6
# One file in so many is there twice, from two agents that did not know of each other.
TWICE_EVERY = 20


# One file in so many is there again with other quantities in a tenth of its rows.
CONTRADICTED_EVERY = 100


def make_day(folder: Path, rows: int, *, skewed: bool = False, contradicted: bool = False) -> Path:
    """Writes about `rows` rows, a file for each minute; returns the path of a run's manifest.

    `skewed`: one cluster has half of all rows. `contradicted`: one row in a hundred is there twice
    more, and a tenth of these differ.
    """
    run = folder / "run.json"
    if run.exists():
        return run
    store = FolderUsageStore(folder / "usage")
    draw = random.Random(rows)
    rows_a_minute = round(rows / MINUTES / (1 + 1 / TWICE_EVERY))
    inputs = []
    for minute in range(MINUTES):
        emitted_at_ms = DAY_START_MS + (minute + 2) * MINUTE_MS
        columns = minute_columns(draw, minute, rows_a_minute, skewed=skewed)
        copies = 2 if minute % TWICE_EVERY == 0 else 1
        inputs += [_write_file(store, columns, emitted_at_ms + copy) for copy in range(copies)]
        if contradicted and minute % CONTRADICTED_EVERY == CONTRADICTED_EVERY // 2:
            other = _contradicted(columns)
            inputs.append(_write_file(store, other, emitted_at_ms + copies))
        if minute % 480 == 479:
            progress(f"{folder.name}: usage files of {minute + 1} minutes of {MINUTES}")
    manifest = {
        "version": 1,
        "run_id": RUN_ID,
        "day": DAY.isoformat(),
        "usage_root": str(store.root),
        "inputs": inputs,
    }
    run.write_text(json.dumps(manifest))
    return run


def _contradicted(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """The same rows, with another quantity in each tenth."""
    quantities = [
        quantity + (place % 10 == 0)
        for place, quantity in enumerate(columns["quantity"].to_pylist())
    ]
    return columns | {"quantity": pa.array(quantities, pa.int64())}


def minute_columns(
    draw: random.Random, minute: int, count: int, *, skewed: bool = False
) -> dict[str, pa.Array]:
    """The rows of one minute, all but the time of emission; no two have one identity."""
    rows = range(count)
    groups = [row // ROWS_A_BLOCK for row in rows]
    meters = [METERS[group % 10] for group in groups]
    clusters = [0 if skewed and group % 2 else group % len(CLUSTERS) for group in groups]
    first_block = minute * (count // ROWS_A_BLOCK + 1)
    start = DAY_START_MS + minute * MINUTE_MS
    quantities = [draw.getrandbits(24) for _ in rows]

    def where(lane: Callable[[int], int], *others: Meter) -> list[int | None]:
        return [None if meters[row] in others else lane(row) for row in rows]

    # Rows of one block differ by their topic, and so do those of storage in one minute.
    topics = [(row % ROWS_A_BLOCK + groups[row]) % len(TOPICS) for row in rows]
    return {
        "schema_version": pa.array([1] * count, pa.int32()),
        "cell": _texts([0] * count, [CELL]),
        "cluster_id": _texts(clusters, CLUSTERS),
        "organization_id": _texts(
            [cluster % len(ORGANIZATIONS) for cluster in clusters], ORGANIZATIONS
        ),
        "incarnation": pa.array(where(lambda row: 1 + clusters[row], STORAGE), pa.int64()),
        "lane_file": pa.array(where(lambda _: 1 + minute // 3, STORAGE), pa.int64()),
        "block": pa.array(where(lambda row: first_block + groups[row], STORAGE), pa.int64()),
        "topic_id": _texts(topics, TOPICS),
        "partition": pa.array(where(lambda row: row // 6000, EGRESS), pa.int32()),
        "principal": _texts(where(lambda row: groups[row] % 4, STORAGE), PRINCIPALS),
        "meter": _texts([_PLACES[meter] for meter in meters], list(Meter)),
        "window_start_ms": pa.array([start] * count, pa.int64()),
        "window_end_ms": pa.array([start + MINUTE_MS] * count, pa.int64()),
        "quantity": pa.array(quantities, pa.int64()),
        "cumulative": pa.array(where(lambda row: quantities[row], INGRESS, STORAGE), pa.int64()),
        "billed": pa.array([True] * count),
    }


_PLACES = {meter: place for place, meter in enumerate(Meter)}


def _texts(places: Sequence[int | None], texts: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(places, pa.int32()), pa.array(map(str, texts), pa.string())
    )


def _write_file(
    store: FolderUsageStore, columns: dict[str, pa.Array], emitted_at_ms: int
) -> dict[str, Any]:
    rows = len(columns["quantity"])
    emitted = pa.array([emitted_at_ms] * rows, pa.int64())
    table = pa.table(columns | {"emitted_at_ms": emitted}).select(USAGE_SCHEMA.names)
    data = encode_usage(table)
    sha256 = hashlib.sha256(data).hexdigest()
    key = data_key(CELL, emitted_at_ms, sha256)
    store.put_new(key, data)
    return {"key": key, "size_bytes": len(data), "sha256": sha256, "rows": rows}
