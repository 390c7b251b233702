"""What a usage file adds to the provisional minutes. Pure.

A block of a lane counts once, from the first file that covers it: a file adds the blocks that its
manifest covers and no earlier file did. The same holds for windows of storage, partition and broker
time. Rows of version 2 are sums over a lane file: they count where all of its blocks are new. Where
some are not, its day is too low here until it is rolled up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from metering.events.manifests import UsageManifest
from metering.periods import MINUTE_MS

# [low, high).
Span = tuple[int, int]
# Cluster id and incarnation; and the number of a file of that lane.
Lane = tuple[str, int]
LaneFileKey = tuple[str, int, int]

KEY = ["organization_id", "cluster_id", "topic_id", "principal", "meter", "billed"]
WINDOW = ["window_start_ms", "window_end_ms"]
# With `KEY` and `WINDOW` these identify a row, so that copies in one file count once.
IDENTITY = ["incarnation", "lane_file", "block", "partition"]
_LANE_FILE = ["cluster_id", "incarnation", "lane_file"]
_FILES = pa.schema(zip(_LANE_FILE, [pa.string(), pa.int64(), pa.int64()], strict=True))
_SPANS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("incarnation", pa.int64()),
        ("low", pa.int64()),
        ("high", pa.int64()),
    ]
)
# The incarnation of spans of time, which belong to a cluster and not to a lane.
_ANY = -1


@dataclass(frozen=True, slots=True)
class Additions:
    """What a file adds, as columns of equal length. A window has whole `minutes`."""

    organization_id: list[str]
    cluster_id: list[str]
    topic_id: list[str]
    principal: list[str]
    meter: list[str]
    billed: list[bool]
    window_start_ms: list[int]
    minutes: list[int]
    quantity: list[int]

    def __len__(self) -> int:
        return len(self.quantity)


def lanes_of(manifest: UsageManifest) -> dict[Lane, Span]:
    """The blocks [low, high) of each lane that a manifest covers."""
    return {
        (cluster.cluster_id, lane.incarnation): (lane.first_sequence, lane.last_sequence + 1)
        for cluster in manifest.clusters
        for lane in cluster.lanes
        if lane.last_sequence >= lane.first_sequence
    }


def fresh_files(manifest: UsageManifest, lanes: Mapping[Lane, Sequence[Span]]) -> list[LaneFileKey]:
    """The lane files that a manifest has sums of, and all of whose blocks lie in `lanes`."""
    return [
        (cluster.cluster_id, lane.incarnation, file.file)
        for cluster in manifest.clusters
        for lane in cluster.lanes
        for file in lane.files
        if any(
            low <= file.first_sequence and file.last_sequence < high
            for low, high in lanes.get((cluster.cluster_id, lane.incarnation), ())
        )
    ]


def windows_of(manifest: UsageManifest) -> dict[str, Span]:
    """By cluster, the time of storage, partitions and brokers that a manifest covers, in ms."""
    return {
        cluster.cluster_id: (cluster.storage.since_ms, cluster.storage.until_ms)
        for cluster in manifest.clusters
        if cluster.storage is not None and cluster.storage.until_ms > cluster.storage.since_ms
    }


def subtract_spans(span: Span, covered: Iterable[Span]) -> list[Span]:
    """The parts of a span that no span in `covered` overlaps, in order."""
    low, high = span
    parts = []
    for start, end in sorted(covered):
        if start > low:
            parts.append((low, min(start, high)))
        low = max(low, end)
        if low >= high:
            break
    if low < high:
        parts.append((low, high))
    return [part for part in parts if part[0] < part[1]]


def additions(
    rows: pa.Table,
    *,
    lanes: Mapping[Lane, Sequence[Span]],
    windows: Mapping[str, Sequence[Span]],
    files: Sequence[LaneFileKey] = (),
) -> Additions:
    """What rows of a usage file add, limited to blocks in `lanes`, `files`, and times in `windows`.

    Raises `ValueError` for a quantity below zero or a window of no whole minutes.
    """
    _check_rows(rows)
    rows = rows.set_column(
        rows.schema.get_field_index("principal"),
        "principal",
        pc.fill_null(rows.column("principal"), ""),
    )
    has_block, of_lane = (pc.is_valid(rows.column(name)) for name in ("block", "lane_file"))
    blocks = [(*lane, *span) for lane, spans in lanes.items() for span in spans]
    times = [(cluster, _ANY, *span) for cluster, spans in windows.items() for span in spans]
    counted = pa.concat_tables(
        [
            _rows_within(rows.filter(has_block), blocks, "block"),
            _rows_of_files(rows.filter(pc.and_not(of_lane, has_block)), files),
            _rows_within(rows.filter(pc.invert(of_lane)), times, "window_start_ms"),
        ]
    )
    once = counted.group_by([*KEY, *WINDOW, *IDENTITY]).aggregate([("quantity", "min")])
    total = once.group_by([*KEY, *WINDOW]).aggregate([("quantity_min", "sum")])
    return _as_columns(total)


def _rows_within(
    rows: pa.Table, spans: Sequence[tuple[str, int, int, int]], column: str
) -> pa.Table:
    """The rows whose `column` lies in a span of their lane (blocks) or cluster (times)."""
    by_lane = column == "block"
    columns = list(zip(*spans, strict=True)) or [()] * len(_SPANS)
    span_table = pa.table([list(column_values) for column_values in columns], schema=_SPANS)
    keys = ["cluster_id", "incarnation"] if by_lane else ["cluster_id"]
    if not by_lane:
        span_table = span_table.drop_columns(["incarnation"])
    joined = rows.join(span_table, keys=keys, join_type="inner")
    low, high, value = (joined.column(name) for name in ("low", "high", column))
    inside = pc.and_(pc.greater_equal(value, low), pc.less(value, high))
    if not by_lane:
        inside = pc.and_(inside, pc.less_equal(joined.column("window_end_ms"), high))
    return joined.filter(inside).select([*KEY, *WINDOW, *IDENTITY, "quantity"])


def _rows_of_files(rows: pa.Table, files: Sequence[LaneFileKey]) -> pa.Table:
    """The rows of whole lane files that are among `files`."""
    columns = list(zip(*files, strict=True)) or [()] * len(_FILES)
    counted = pa.table([list(column) for column in columns], schema=_FILES)
    joined = rows.join(counted, keys=_LANE_FILE, join_type="inner")
    return joined.select([*KEY, *WINDOW, *IDENTITY, "quantity"])


def _check_rows(rows: pa.Table) -> None:
    if rows.num_rows == 0:
        return
    if pc.min(rows.column("quantity")).as_py() < 0:
        message = "a quantity is below zero"
        raise ValueError(message)
    start, end = rows.column("window_start_ms"), rows.column("window_end_ms")
    length = pc.subtract(end, start)
    whole = pc.and_(_is_multiple(start), _is_multiple(length))
    if not pc.all(pc.and_(whole, pc.greater(length, 0))).as_py():
        message = "a window is not of whole minutes"
        raise ValueError(message)


def _is_multiple(values: pa.ChunkedArray) -> pa.ChunkedArray:
    floor = pc.multiply(pc.divide(values, MINUTE_MS), MINUTE_MS)
    return pc.equal(values, floor)


def _as_columns(total: pa.Table) -> Additions:
    start, end = total.column("window_start_ms"), total.column("window_end_ms")
    return Additions(
        organization_id=total.column("organization_id").to_pylist(),
        cluster_id=total.column("cluster_id").to_pylist(),
        topic_id=total.column("topic_id").to_pylist(),
        principal=total.column("principal").to_pylist(),
        meter=total.column("meter").to_pylist(),
        billed=total.column("billed").to_pylist(),
        window_start_ms=start.to_pylist(),
        minutes=pc.divide(pc.subtract(end, start), MINUTE_MS).to_pylist(),
        quantity=total.column("quantity_min_sum").to_pylist(),
    )
