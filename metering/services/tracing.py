"""From a rolled-up row back to the usage files and lanes that it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metering.events.records import LANE_METERS
from metering.models import FileCoverage, UsageRow
from metering.periods import to_ms
from metering.services.totals import UsageFileRef


@dataclass(frozen=True, slots=True)
class LaneRange:
    """Blocks of a lane; times in milliseconds since 1970, (since, until]."""

    incarnation: int
    first_sequence: int
    last_sequence: int
    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class TracedFile:
    """A usage file that may hold a part of a row, and which part of the cluster's usage it holds.

    Of a meter of time there are no lanes: `window_ms` is the time that the file tells of.
    """

    file: UsageFileRef
    lanes: list[LaneRange]
    window_ms: tuple[int, int] | None


def trace_row(row: UsageRow) -> list[TracedFile]:
    """The files behind a row, by key: of its run's inputs, those that speak of its time."""
    start_ms, end_ms = to_ms(row.window_start), to_ms(row.window_end)
    inputs = {each["key"]: UsageFileRef(**each) for each in row.run.inputs}
    found = FileCoverage.objects.filter(
        organization_id=row.organization_id,
        cluster_id=row.cluster_id,
        until_ms__gte=start_ms,
        since_ms__lt=end_ms,
    )
    traced = []
    for key, entry in found.order_by("file_id").values_list("file_id", "entry"):
        if key not in inputs:
            continue
        file = _traced(inputs[key], entry, row.meter, start_ms, end_ms)
        if file is not None:
            traced.append(file)
    return traced


def _traced(
    file: UsageFileRef, entry: dict[str, Any], meter: str, start_ms: int, end_ms: int
) -> TracedFile | None:
    if meter in LANE_METERS:
        lanes = [
            LaneRange(*(lane[name] for name in LaneRange.__slots__))
            for lane in entry["lanes"]
            if lane["first_sequence"] <= lane["last_sequence"]
            and lane["since_ms"] < end_ms
            and lane["until_ms"] >= start_ms
        ]
        return TracedFile(file, lanes, None) if lanes else None
    storage = entry["storage"]
    if storage and max(storage["since_ms"], start_ms) < min(storage["until_ms"], end_ms):
        return TracedFile(file, [], (storage["since_ms"], storage["until_ms"]))
    return None
