"""Ingest of usage files: 1,000 tenants with one agent and with eight, and one idle cluster.

A PostgreSQL of its own, with the settings that it comes with and the roles of production; files in
a folder. Each tenant has a cluster of ten topics, whose storage and partitions are metered each
minute, and which is written to and read from. Each agent writes a file a minute for its part of the
clusters. What is measured is `ingest_usage` with all that it does: minutes, running totals,
coverage, complete hours.

A pass takes in the files of a minute, as in the service; then one takes in a backlog of minutes, as
after a time in which ingest was away. A minute of usage that takes 3 s is 20 × real time: the CPU
time of both processes, ingest and PostgreSQL, counts beside the time, since they may share a core.
The idle cluster has 1,000 topics, and a file a minute.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.database import Execute, migrated_database
from tests.bench.report import Report, progress, spread
from tests.bench.sides import FRESHET, WORK, chosen

if TYPE_CHECKING:
    from metering.events.manifests import ClusterEntry
    from metering.events.store import FolderUsageStore

SIDES = (FRESHET,)
# Minutes that are taken in one by one, and at once.
ROUNDS = 10
BACKLOG = 10
TENANTS, TOPICS, AGENTS = 1_000, 10, (1, 8)
IDLE_TOPICS = 1_000
# How many topics of each cluster are written to and read from in a minute.
ACTIVE = 3
CELL = "local"
# A day that is not published.
BEGAN = datetime(2026, 10, 1, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
AIM_TIMES_REAL = 20


@dataclass
class Tenants:
    """Clusters whose usage some agents write: the n-th cluster's is the n-th agent's, modulo."""

    name: str
    clusters: int
    topics: int
    active: int
    agents: int
    minutes: int = 0
    ids: list[str] = field(default_factory=list)

    def write_minute(self, store: FolderUsageStore) -> int:
        """Writes the files of the next minute; returns how many rows they have."""
        start_ms = _ms(BEGAN + self.minutes * MINUTE)
        rows = 0
        for agent in range(self.agents):
            mine = range(agent, self.clusters, self.agents)
            columns = [row for n in mine for row in self._rows(n, start_ms)]
            rows += _put(
                store,
                f"{self.name}-{agent}",
                columns,
                [self._entry(n, start_ms) for n in mine],
                {f"{self._id(n)}/{_topic(t)}": f"t-{t}" for n in mine for t in range(self.topics)},
                start_ms,
            )
        self.minutes += 1
        return rows

    def rows_of_a_day(self) -> int:
        """How many rows a roll-up of a whole day publishes: one for each topic, principal, meter
        and cluster."""
        day = replace(self, clusters=1)
        places = set()
        for day.minutes in range(1440):
            for row in day._rows(0, 0):
                places.add((row["topic_id"], row.get("principal"), row["meter"]))
        return self.clusters * len(places)

    def _id(self, number: int) -> str:
        return f"cl_{self.name}_{number}"

    def _rows(self, number: int, start_ms: int) -> Iterator[dict[str, Any]]:
        place = {"cluster_id": self._id(number), "organization_id": f"org_{self.name}_{number}"}
        for topic in range(self.topics):
            for meter in ("storage_byte_minutes", "partition_minutes"):
                yield place | {
                    "topic_id": _topic(topic),
                    "meter": meter,
                    "quantity": 10**9 + topic if meter.startswith("s") else 1,
                    "partition": 0 if meter.startswith("s") else None,
                }
        for topic in range(self.active):
            for meter in ("ingress_bytes", "egress_bytes"):
                yield place | {
                    "topic_id": _topic((topic + self.minutes) % self.topics),
                    "meter": meter,
                    "quantity": 10**6 + topic,
                    "principal": f"User:cred_{topic}",
                    "incarnation": 1,
                    "lane_file": self.minutes,
                    "block": self.minutes + 1,
                    "partition": 0 if meter.startswith("i") else None,
                }

    def _entry(self, number: int, start_ms: int) -> ClusterEntry:
        from metering.events.manifests import (  # noqa: PLC0415
            ClusterEntry,
            LaneEntry,
            StorageEntry,
        )

        end_ms = start_ms + 60_000
        lane = LaneEntry(
            incarnation=1,
            started_at_ms=_ms(BEGAN),
            ended=False,
            first_sequence=self.minutes + 1,
            last_sequence=self.minutes + 1,
            since_ms=start_ms,
            until_ms=end_ms,
        )
        return ClusterEntry(
            cluster_id=self._id(number),
            organization_id=f"org_{self.name}_{number}",
            since_ms=start_ms if self.minutes else None,
            as_of_ms=end_ms,
            lanes=(lane,) if self.active else (),
            storage=StorageEntry(since_ms=start_ms, until_ms=end_ms),
            closed=False,
        )


@dataclass
class Samples:
    """What minutes of usage took, in milliseconds a minute."""

    took: list[float] = field(default_factory=list)
    # Of this process and of PostgreSQL's.
    cpu: list[float] = field(default_factory=list)


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: `rounds` minutes are taken in one by one."""
    rounds = rounds or ROUNDS
    chosen(SIDES, only)
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)))
    folder = WORK / "ingest"
    shutil.rmtree(folder, ignore_errors=True)
    details: dict[str, Any] = {
        "tenants": TENANTS,
        "topics_of_each": TOPICS,
        "rounds": rounds,
        "aim_times_real": AIM_TIMES_REAL,
    }
    slowest = 0.0
    for agents in AGENTS:
        with migrated_database() as execute, _moved_clock() as clock:
            tenants = Tenants("t", TENANTS, TOPICS, ACTIVE, agents)
            one_by_one, backlog, rows = _measure(tenants, folder / f"{agents}", clock, rounds)
            details[f"agents_{agents}"] = {
                "rows_a_minute": rows,
                "published_rows_a_day": tenants.rows_of_a_day(),
                "ms_a_minute": spread(one_by_one.took, 0),
                "cpu_ms_a_minute": spread(one_by_one.cpu, 0),
                "times_real": _times_real(one_by_one.took),
                "times_real_of_a_core": _times_real(one_by_one.cpu),
                "backlog_minutes": BACKLOG,
                "backlog_ms_a_minute": round(backlog.took[0]),
                "backlog_times_real": _times_real(backlog.took),
                "backlog_times_real_of_a_core": _times_real(backlog.cpu),
            }
            slowest = max(slowest, statistics.median(one_by_one.cpu))
            progress(f"{agents} agents: {details[f'agents_{agents}']}")
            _check(execute, rounds + BACKLOG)
    with migrated_database(), _moved_clock() as clock:
        idle = Tenants("idle", 1, IDLE_TOPICS, 0, 1)
        one_by_one, backlog, rows = _measure(idle, folder / "idle", clock, rounds)
        details["idle"] = {
            "rows_a_file": rows,
            "ms_a_file": spread(one_by_one.took, 1),
            "cpu_ms_a_file": spread(one_by_one.cpu, 1),
            "backlog_ms_a_file": round(backlog.took[0], 1),
        }
    return Report(
        bench="ingest",
        value=round(60_000 / slowest, 1),
        unit="x real time of a core",
        peer=None,
        details=details,
    )


def _measure(
    tenants: Tenants, folder: Path, clock: list[datetime], rounds: int
) -> tuple[Samples, Samples, int]:
    """Takes minutes in one by one, the first one unmeasured, then a backlog at once."""
    from metering.events.store import FolderUsageStore  # noqa: PLC0415

    store = FolderUsageStore(folder / "usage")
    one_by_one, backlog, rows = Samples(), Samples(), 0
    for number in range(rounds + 1):
        rows = tenants.write_minute(store)
        clock[0] = BEGAN + tenants.minutes * MINUTE
        _ingest(store, tenants.agents, one_by_one if number else Samples())
    for _ in range(BACKLOG):
        tenants.write_minute(store)
    clock[0] = BEGAN + tenants.minutes * MINUTE
    _ingest(store, tenants.agents * BACKLOG, backlog, minutes=BACKLOG)
    return one_by_one, backlog, rows


def _ingest(store: FolderUsageStore, files: int, samples: Samples, *, minutes: int = 1) -> None:
    from metering.services.ingest import ingest_usage  # noqa: PLC0415

    cpu, began = _cpu_s(), time.perf_counter()
    done = ingest_usage(store=store, limit_s=3600)
    if (done.files, done.damaged) != (files, 0):
        message = f"{done} instead of {files} files"
        raise RuntimeError(message)
    samples.took.append(1000 * (time.perf_counter() - began) / minutes)
    samples.cpu.append(1000 * (_cpu_s() - cpu) / minutes)


def _check(execute: Execute, minutes: int) -> None:
    """Raises `RuntimeError` where the totals are not those of the files."""
    expected = (minutes + 1) * TENANTS * TOPICS
    statement = "SELECT sum(quantity) FROM metering_running{} WHERE meter = 'partition_minutes'"
    for table in ("month", "day", "hour"):
        ((counted,),) = execute(statement.format(table))
        if counted != expected:
            message = f"{counted} partition-minutes in the totals of a {table}, not {expected}"
            raise RuntimeError(message)


def _put(
    store: FolderUsageStore,
    agent: str,
    rows: list[dict[str, Any]],
    entries: list[ClusterEntry],
    topics: dict[str, str],
    start_ms: int,
) -> int:
    import pyarrow as pa  # noqa: PLC0415

    from metering.events.keys import data_key, manifest_key  # noqa: PLC0415
    from metering.events.manifests import UsageManifest, encode_manifest  # noqa: PLC0415
    from metering.events.records import USAGE_SCHEMA, encode_usage  # noqa: PLC0415

    at_ms = start_ms + 60_000
    common = dict.fromkeys(USAGE_SCHEMA.names) | {
        "schema_version": 1,
        "cell": CELL,
        "billed": True,
        "window_start_ms": start_ms,
        "window_end_ms": at_ms,
        "emitted_at_ms": at_ms,
    }
    data = encode_usage(pa.Table.from_pylist([common | row for row in rows], schema=USAGE_SCHEMA))
    manifest = UsageManifest(
        cell=CELL,
        key=data_key(CELL, at_ms, hashlib.sha256(data + agent.encode()).hexdigest()),
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        rows=len(rows),
        window_start_ms=start_ms,
        window_end_ms=at_ms,
        emitted_at_ms=at_ms,
        agent=agent,
        clusters=tuple(entries),
        topics=topics,
    )
    store.put_new(manifest.key, data)
    store.put_new(manifest_key(manifest.key), encode_manifest(manifest))
    return len(rows)


def _cpu_s() -> float:
    """The CPU seconds of this process and of PostgreSQL's session that it has."""
    from django.db import connection  # noqa: PLC0415

    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    of_session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(of_session[11]) + int(of_session[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def _moved_clock() -> Iterator[list[datetime]]:
    """Sets the control plane's clock to the first item of the list."""
    from django.utils import timezone  # noqa: PLC0415

    shown, real = [BEGAN], timezone.now
    timezone.now = lambda: shown[0]
    try:
        yield shown
    finally:
        timezone.now = real


def _times_real(samples: Sequence[float]) -> float:
    return round(60_000 / statistics.median(samples), 1)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _topic(number: int) -> str:
    return f"{number:032x}"
