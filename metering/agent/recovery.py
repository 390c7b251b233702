"""Progress made anew from what manifests say, for clusters whose record is lost.

Of each chain only the part without a gap counts, from its start on: what may be missing is read
again, and yields the same rows, as far as it is still there.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace

from metering.agent.progress import ClusterProgress, LaneProgress
from metering.events.errors import UsageFormatError
from metering.events.manifests import ClusterCoverage, LaneCoverage
from metering.events.store import UsageStore, list_manifests, read_manifest
from metering.events.times import DAY_MS

LOGGER = logging.getLogger(__name__)

# Months close three days after their end: what is older is settled.
LOOK_BACK_MS = 40 * DAY_MS


def recover(
    store: UsageStore, cell: str, clusters: Collection[str], *, now_ms: int
) -> dict[str, ClusterProgress]:
    """The progress of such of these clusters as a manifest speaks of. Raises `OSError`."""
    entries: dict[str, list[ClusterCoverage]] = {}
    since_ms = max(0, now_ms - LOOK_BACK_MS)
    for key in list_manifests(store, cell, since_ms=since_ms, until_ms=now_ms + DAY_MS):
        try:
            manifest = read_manifest(store, key, verify=True)
        except (UsageFormatError, FileNotFoundError) as error:
            LOGGER.warning("%s does not count: %s", key, error)
            continue
        for entry in manifest.clusters:
            if entry.cluster_id in clusters:
                entries.setdefault(entry.cluster_id, []).append(entry)
    return {cluster_id: progress_of(spoken) for cluster_id, spoken in entries.items()}


def progress_of(entries: Iterable[ClusterCoverage]) -> ClusterProgress:
    """The progress of one cluster from all that manifests say of it."""
    spoken = sorted(entries, key=lambda each: (each.since_ms or 0, each.as_of_ms))
    lanes: dict[int, list[LaneCoverage]] = {}
    as_of_ms: int | None = None
    for entry in spoken:
        if as_of_ms is None or (entry.since_ms or 0) <= as_of_ms:
            as_of_ms = max(as_of_ms or 0, entry.as_of_ms)
        for lane in entry.lanes:
            lanes.setdefault(lane.incarnation, []).append(lane)
    return ClusterProgress(
        organization_id=max(spoken, key=lambda each: each.as_of_ms).organization_id,
        as_of_ms=as_of_ms,
        storage_until_ms=_measured(spoken),
        closed=any(entry.closed for entry in spoken),
        lanes={number: _lane(each) for number, each in lanes.items()},
    )


def _lane(entries: list[LaneCoverage]) -> LaneProgress:
    started = min(each.started_at_ms for each in entries)
    lane = LaneProgress(started_at_ms=started, until_ms=started, alive_ms=started)
    for each in sorted(entries, key=lambda entry: (entry.first_sequence, entry.last_sequence)):
        if each.first_sequence <= lane.sequence + 1 and each.last_sequence >= lane.sequence:
            # Its end is left out: it is looked at once more, also for what is not split yet.
            until_ms = max(lane.until_ms, each.until_ms)
            lane = replace(lane, sequence=each.last_sequence, until_ms=until_ms)
    return lane


def _measured(entries: Iterable[ClusterCoverage]) -> int | None:
    spans = sorted(
        (entry.storage.since_ms, entry.storage.until_ms) for entry in entries if entry.storage
    )
    if not spans:
        return None
    reached = spans[0][0]
    for since, until in spans:
        if since > reached:
            break
        reached = max(reached, until)
    return reached
