"""The report of `python -m brokers inspect` on a cluster's storage, for people and as JSON."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brokers import _core
from brokers.errors import StorageError
from brokers.locations import local_path

EXIT_SOUND = 0
EXIT_DAMAGED = 4

Row = Sequence[object]


def inspect_storage(
    settings: str, *, verify: bool, lane: int | None, topic: str | None, as_json: bool
) -> int:
    """Writes a report of the storage to standard output; returns the status to exit with.

    The status is 4 where something is damaged. Raises `StorageError` where there is no storage.
    """
    check_storage(settings)
    text = _core.inspect(settings, verify=verify, lane=lane, topic=topic)
    report = json.loads(text)
    if as_json:
        sys.stdout.write(json.dumps(report, indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in describe_report(report))
    return EXIT_DAMAGED if report["damage"] or report["damaged_batches"] else EXIT_SOUND


def check_storage(settings: str) -> None:
    """Raises `StorageError` where storage is missing, because opening it would create it."""
    storage = tomllib.loads(settings)["storage"]
    for name in ("dfs", "bucket", "metadata"):
        path = local_path(storage[name])
        if path is not None and not path.exists():
            message = f"storage.{name}: {storage[name]} does not exist"
            raise StorageError(message)


def describe_report(report: dict[str, Any]) -> Iterator[str]:
    """The report as lines for people."""
    yield f"cluster {report['cluster']}"
    for lane in report["lanes"]:
        yield ""
        yield from describe_lane(lane)
    if report["partitions"]:
        yield ""
        yield from describe_partitions(report["partitions"])
    if report["objects"]:
        yield ""
        heading = ("object", "segments", "chunks", "record bytes")
        rows = [(o["key"], o["segments"], o["chunks"], o["bytes"]) for o in report["objects"]]
        yield from format_table(heading, rows)
    yield ""
    checked = "every checksum" if report["verified"] else "structure only; --verify reads records"
    yield f"{len(report['damage'])} damaged ({checked})"
    for damage in report["damage"]:
        yield f"DAMAGED {damage['file']}: {damage['what']}"
    for batch in report["damaged_batches"]:
        offsets = f"offsets {batch['first_offset']} to {batch['next_offset'] - 1}"
        yield (
            f"DAMAGED {batch['topic']}-{batch['partition']}, {offsets}: sent in this state, and "
            f"stored before such batches were refused: {batch['what']}"
        )


def describe_lane(lane: dict[str, Any]) -> Iterator[str]:
    """A lane with its files."""
    owner = lane["owner"]
    held = "no readable token" if owner is None else f"token of {owner}"
    parts = [f"lane {lane['incarnation']}", lane["state"] or "unknown to the metadata store", held]
    parts.append(f"sure up to block {lane['durable_sequence']}")
    if lane["end"] is not None:
        parts.append(f"ends at block {lane['end']['sequence']} of file {lane['end']['file']}")
    if lane["seal"] is not None:
        parts.append(f"SEAL holds {lane['seal']['blocks']} blocks")
    if recycled := lane["spares"]:
        parts.append(f"{recycled} recycled files")
    yield ", ".join(parts)
    if lane["others"]:
        yield f"  other files: {', '.join(lane['others'])}"
    heading = ("file", "bytes", "used", "blocks", "kinds", "batches", "record bytes", "written")
    rows = [
        (
            Path(f["file"]).name,
            f["bytes"],
            f["used_bytes"],
            f"{f['first_sequence']}-{f['last_sequence']}",
            describe_kinds(f["blocks"]),
            f["batches"],
            f["record_bytes"],
            last_written(f),
        )
        for f in lane["files"]
    ]
    rows += [
        (
            Path(f["file"]).name,
            "-",
            "-",
            f"{f['first_sequence']}-{f['last_sequence']}",
            describe_kinds(f["blocks"]),
            "-",
            f["record_bytes"],
            last_written(f),
        )
        for f in lane["leftovers"]
    ]
    if rows:
        yield from format_table(heading, rows)


def last_written(file: dict[str, Any]) -> str:
    """When the last of a file's blocks was written, in UTC."""
    if file["written_ms"] is None:
        return "-"
    last_s = file["written_ms"][1] // 1000
    return datetime.fromtimestamp(last_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def describe_partitions(partitions: list[dict[str, Any]]) -> Iterator[str]:
    """Partitions with the manifest that counts."""
    heading = ("topic", "partition", "leader", "epoch", "lanes", "manifest", "offsets", "segments")
    further = ("record bytes", "compacted to", "damaged")
    rows = [
        (
            p["topic"] or p["topic_id"],
            p["partition"],
            "-" if p["leader"] is None else p["leader"],
            "-" if p["epoch"] is None else p["epoch"],
            ",".join(map(str, p["extents"])) or "-",
            p["manifest"] or "-",
            f"{p['log_start']}-{p['covered_end']}",
            p["segments"],
        )
        for p in partitions
    ]
    rests = [(p["bytes"], p["compacted_until"] or "-", p["damaged"]) for p in partitions]
    yield from format_table(
        (*heading, *further),
        [(*row, *rest) for row, rest in zip(rows, rests, strict=True)],
    )


def describe_kinds(blocks: dict[str, int]) -> str:
    """How many blocks of each kind."""
    return " ".join(f"{kind}:{count}" for kind, count in blocks.items()) or "-"


def format_table(heading: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Columns as wide as their widest cell, numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [
        max(len(row[at]) for row in [list(map(str, heading)), *cells]) for at in range(len(heading))
    ]
    numeric = [all(isinstance(row[at], int) for row in rows) for at in range(len(heading))]
    for row in [list(map(str, heading)), *cells]:
        aligned = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        yield "  " + "  ".join(aligned).rstrip()
