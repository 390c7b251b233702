"""Traces a rolled-up row back to the usage files and lanes that it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from metering.events.manifests import ClusterEntry, LaneEntry, LaneFile
from metering.events.records import LANE_METERS
from metering.models import FileCoverage, UsageRow
from metering.periods import to_ms
from metering.services.completeness import entries_of
from metering.services.totals import UsageFileRef, present_files


@dataclass(frozen=True, slots=True)
class LaneRange:
    """Blocks of a lane with their times (since, until], in milliseconds since 1970.

    `files`: the lane files whose rows there are sums over all of the file, of version 2. The other
    blocks have rows of their own, which do not count where another file has a sum of their file.
    """

    incarnation: int
    first_sequence: int
    last_sequence: int
    since_ms: int
    until_ms: int
    files: tuple[LaneFile, ...] = ()


@dataclass(frozen=True, slots=True)
class TracedFile:
    """A usage file that may have a part of a row, and what it covers of the row's cluster.

    For a meter of time there are no lanes, and `window_ms` is the time that the file covers.
    """

    file: UsageFileRef
    lanes: list[LaneRange]
    window_ms: tuple[int, int] | None


def trace_row(row: UsageRow) -> list[TracedFile]:
    """The files behind a row, by key: those of its run's inputs that cover its time."""
    start_ms, end_ms = to_ms(row.window_start), to_ms(row.window_end)
    read = {file["key"]: UsageFileRef(**file) for file in row.run.inputs}
    inputs = {file.key: file for file in present_files(read)}
    coverages = FileCoverage.objects.filter(
        organization_id=row.organization_id,
        cluster_id=row.cluster_id,
        until_ms__gte=start_ms,
        since_ms__lt=end_ms,
    )
    traced = []
    for key, plain in coverages.order_by("file_id").values_list("file_id", "entry"):
        if key not in inputs:
            continue
        for entry in entries_of(plain):
            file = _trace_file(inputs[key], entry, row.meter, start_ms, end_ms)
            if file is not None:
                traced.append(file)
    return traced


def _trace_file(
    file: UsageFileRef, entry: ClusterEntry, meter: str, start_ms: int, end_ms: int
) -> TracedFile | None:
    if meter in LANE_METERS:
        lanes = [
            _lane_range(lane)
            for lane in entry.lanes
            if lane.first_sequence <= lane.last_sequence
            and lane.since_ms < end_ms
            and lane.until_ms >= start_ms
        ]
        return TracedFile(file, lanes, None) if lanes else None
    storage = entry.storage
    if storage and max(storage.since_ms, start_ms) < min(storage.until_ms, end_ms):
        return TracedFile(file, [], (storage.since_ms, storage.until_ms))
    return None


def _lane_range(lane: LaneEntry) -> LaneRange:
    return LaneRange(**{name: getattr(lane, name) for name in LaneRange.__slots__})
