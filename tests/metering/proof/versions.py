"""Which version of its rows each lane file has: rows of its blocks (1), sums over it (2), or both.

It works on the folder by the documented format alone, without the project's code.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq

from tests.metering.proof.usage_folder import UsageFile
from tests.metering.proof.verdict import Billed

BLOCKS, SUMS = 1, 2
# (cluster, incarnation, number of the file)
LaneFile = tuple[str, int, int]
COLUMNS = (
    *("schema_version", "cluster_id", "incarnation", "lane_file", "block", "topic_id"),
    *("partition", "principal", "meter", "window_start_ms", "quantity", "billed"),
)


@dataclass(frozen=True)
class Versions:
    """The lane files that have rows of each version, and how many distinct rows there are."""

    files: dict[int, set[LaneFile]] = field(default_factory=lambda: defaultdict(set))
    rows: Counter[int] = field(default_factory=Counter)

    @property
    def both(self) -> set[LaneFile]:
        """Lane files with rows of both versions, of which the sums count."""
        return self.files[BLOCKS] & self.files[SUMS]

    def details(self) -> dict[str, int]:
        """Figures for whoever reads the result."""
        return {
            "lane_files_by_blocks": len(self.files[BLOCKS]),
            "lane_files_summed": len(self.files[SUMS]),
            "lane_files_with_both": len(self.both),
            "rows_of_blocks": self.rows[BLOCKS],
            "rows_of_sums": self.rows[SUMS],
        }


def read_versions(files: Iterable[UsageFile]) -> Versions:
    """The versions of all rows of lanes in usage files."""
    versions = Versions()
    for row in _distinct_rows(files):
        version = row["schema_version"]
        versions.rows[version] += 1
        versions.files[version].add(_lane_file(row))
    return versions


def sums_beside_blocks(files: Iterable[UsageFile]) -> Billed:
    """What is billed of lane files that one manifest sums up, and of which another covers blocks.

    Until they are rolled up, so much may be missing from the minutes, which cannot tell how much of
    such a sum they have already.
    """
    files = list(files)
    beside = set(_beside_blocks(files))
    sums: Counter[tuple[str, str, str, str]] = Counter()
    for row in _distinct_rows(files):
        if row["schema_version"] == SUMS and row["billed"] and _lane_file(row) in beside:
            whose = (row["cluster_id"], row["meter"], row["topic_id"], row["principal"])
            sums[whose] += row["quantity"]
    return sums


def _beside_blocks(files: Iterable[UsageFile]) -> Iterator[LaneFile]:
    """Lane files with blocks that an entry covers which does not sum them up."""
    entries = [
        ((cluster["cluster_id"], lane["incarnation"]), lane)
        for file in files
        for cluster in file.said["clusters"]
        for lane in cluster["lanes"]
    ]
    of_lane: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for lane, entry in entries:
        of_lane[lane].append(entry)
    for lane, entry in entries:
        for summed in entry.get("files", ()):
            number, first, last = summed
            if any(
                other["first_sequence"] <= last
                and other["last_sequence"] >= first
                and summed not in other.get("files", ())
                for other in of_lane[lane]
            ):
                yield (*lane, number)


def _distinct_rows(files: Iterable[UsageFile]) -> Iterator[dict[str, Any]]:
    """Rows of lanes in sound files, equal ones once."""
    seen = set()
    for file in filter(UsageFile.is_sound, files):
        for row in pq.read_table(file.data, columns=list(COLUMNS)).to_pylist():
            key = tuple(row[name] for name in COLUMNS)
            if row["lane_file"] is not None and key not in seen:
                seen.add(key)
                yield row


def _lane_file(row: dict[str, Any]) -> LaneFile:
    return row["cluster_id"], row["incarnation"], row["lane_file"]
