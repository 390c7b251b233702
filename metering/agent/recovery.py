"""Rebuilds progress from manifests, for clusters whose record is lost.

Of each chain of coverage only the part before its first gap counts. What may be missing is read
again, as far as it is still on storage, and yields the same rows.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from dataclasses import replace

from metering.agent.progress import ClusterProgress, LaneProgress
from metering.events.errors import UsageFormatError
from metering.events.manifests import ClusterEntry, LaneEntry
from metering.events.store import UsageStore, list_manifests, read_manifest
from metering.events.times import DAY_MS

LOGGER = logging.getLogger(__name__)

# Months close three days after their end, so older usage is invoiced, and not needed again.
LOOK_BACK_MS = 40 * DAY_MS


def recover_progress(
    store: UsageStore, cell: str, clusters: Collection[str], *, now_ms: int
) -> dict[str, ClusterProgress]:
    """The progress of those of `clusters` that a manifest names, by cluster. Raises `OSError`."""
    entries: dict[str, list[ClusterEntry]] = {}
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
    return {cluster_id: progress_of(of_cluster) for cluster_id, of_cluster in entries.items()}


def progress_of(entries: Iterable[ClusterEntry]) -> ClusterProgress:
    """The progress of one cluster, from its entries in manifests. `entries` must not be empty."""
    ordered = sorted(entries, key=lambda entry: (entry.since_ms or 0, entry.as_of_ms))
    lanes: dict[int, list[LaneEntry]] = {}
    as_of_ms: int | None = None
    for entry in ordered:
        if as_of_ms is None or (entry.since_ms or 0) <= as_of_ms:
            as_of_ms = max(as_of_ms or 0, entry.as_of_ms)
        for lane in entry.lanes:
            lanes.setdefault(lane.incarnation, []).append(lane)
    return ClusterProgress(
        organization_id=max(ordered, key=lambda entry: entry.as_of_ms).organization_id,
        as_of_ms=as_of_ms,
        storage_until_ms=_measured_until(ordered),
        closed=any(entry.closed for entry in ordered),
        lanes={number: _lane_progress(coverages) for number, coverages in lanes.items()},
    )


def _lane_progress(entries: list[LaneEntry]) -> LaneProgress:
    started = min(entry.started_at_ms for entry in entries)
    lane = LaneProgress(started_at_ms=started, until_ms=started, alive_ms=started)
    for entry in sorted(
        entries, key=lambda coverage: (coverage.first_sequence, coverage.last_sequence)
    ):
        if entry.first_sequence <= lane.sequence + 1 and entry.last_sequence >= lane.sequence:
            # Its end is left out, so that the lane is looked at once more: some of its records may
            # not be split yet.
            until_ms = max(lane.until_ms, entry.until_ms)
            # Its broker wrote the blocks of an entry after the entry before. That it ran longer is
            # not known: until a lane ends, it is covered up to the moment of reading.
            wrote_ms = lane.alive_ms if _is_empty(entry) else max(lane.alive_ms, entry.since_ms)
            files = [file.last_sequence for file in entry.files]
            lane = replace(
                lane,
                sequence=entry.last_sequence,
                until_ms=until_ms,
                alive_ms=wrote_ms,
                # Where it is not known, the next file goes on in version 1, which is always right.
                whole=entry.last_sequence in files or (lane.whole and _is_empty(entry)),
            )
    return lane


def _is_empty(entry: LaneEntry) -> bool:
    return entry.last_sequence < entry.first_sequence


def _measured_until(entries: Iterable[ClusterEntry]) -> int | None:
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
