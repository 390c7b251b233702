"""The steps of a disaster. Each is a function on a service that runs or is stopped."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from brokers.metadata import CellStore
from tests.brokers.logscan import LogScan
from tests.service.api import Api, Connection
from tests.service.traffic import LibrdkafkaConsumer, Producer, Reader
from tests.supervisor.run import ROOT, Run, wait_until

COMMAND_TIMEOUT_S = 600
RECORDS = 60
# The agent meters every second; a lane that ended is metered at its next pass.
METERED_S = 400
WITHIN_S = 300
MONTH = datetime.now(UTC).strftime("%Y-%m")


@dataclass(frozen=True)
class Numbers:
    """Numbers that must never be used twice, as storage and metadata show them."""

    incarnations: frozenset[int]
    epochs: tuple[int, ...]


def run_manage(run: Run, *arguments: str, status: int = 0) -> str:
    """Runs `manage.py` on the service's home; checks its exit status; returns its output."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=run.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_TIMEOUT_S,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == status, printed
    return printed


def produce_records(connection: Connection, topic: str, name: str) -> set[str]:
    """Writes records with an idempotent producer; returns the acknowledged values."""
    producer = Producer(connection, topic, name).start()
    wait_until(lambda: len(producer.acked) >= RECORDS, f"{RECORDS} records of {name} are acked")
    return producer.finish()


def read_all(connection: Connection, topic: str, group: str, expected: set[str]) -> None:
    """Reads a topic from its beginning; fails unless each value comes, and no other one."""
    reader = Reader(lambda: LibrdkafkaConsumer(connection, topic, group)).start()
    reader.finish(expected)
    assert set(reader.seen) == expected


def put_cluster_to_sleep(api: Api, cluster_id: str) -> None:
    """Puts the cluster to sleep; the next client that connects wakes it."""
    api.finish(api.call("POST", f"/clusters/{cluster_id}:sleep"))
    wait_until(lambda: api.phase(cluster_id) == "asleep", "the cluster sleeps", WITHIN_S)


def suspend_cluster(api: Api, cluster_id: str) -> None:
    """Suspends the cluster, so that all of its usage is in lanes that have ended."""
    api.finish(api.call("POST", f"/clusters/{cluster_id}:suspend"))
    wait_until(lambda: api.phase(cluster_id) == "suspended", "the cluster is suspended", WITHIN_S)


def cell_of(run: Run) -> Path:
    """Returns the folder of the cell's data."""
    return run.home / "cell"


def scan_log(run: Run, cluster_id: str) -> LogScan:
    """Returns the cluster's log, read from storage by code that is independent of the engine."""
    cell = cell_of(run)
    return LogScan(cell / "dfs", cell / "bucket", cell / "metadata.sqlite", cluster_id)


def stored_bytes(run: Run, cluster_id: str, topics: dict[str, int]) -> int:
    """Returns the bytes of all batches of topics. `topics`: name → number of partitions."""
    log = scan_log(run, cluster_id)
    return sum(
        batch.size
        for topic, partitions in topics.items()
        for index in range(partitions)
        for batch in log.batches(topic, index)
    )


def ingested_bytes(api: Api, cluster_id: str) -> int:
    """Returns the billed bytes that clients wrote this month, as REST shows them."""
    first = f"{MONTH}-01T00:00:00Z"
    path = f"/usage?cluster_id={cluster_id}&from={first}&granularity=month&meter=ingress_bytes"
    items: list[dict[str, Any]] = api.call("GET", path)["items"]
    # The service's own writes, such as offsets of groups, are counted but not billed.
    return sum(item["quantity"] for item in items if item["billed"])


def wait_metered(api: Api, cluster_id: str, expected: int) -> None:
    """Waits until the usage is exactly `expected` bytes."""
    wait_until(
        lambda: ingested_bytes(api, cluster_id) == expected, f"{expected} bytes metered", METERED_S
    )


def used_numbers(run: Run, cluster_id: str, topic: str) -> Numbers:
    """Returns the incarnations on storage and the leader epochs in the metadata."""
    lanes = cell_of(run) / "dfs" / cluster_id / "lanes"
    store = CellStore(cell_of(run) / "metadata.sqlite").cluster(cluster_id)
    return Numbers(
        frozenset(int(folder.name) for folder in lanes.iterdir()),
        tuple(partition.leader_epoch for partition in store.partitions(topic)),
    )


def writers_of(run: Run, cluster_id: str, topic: str, partitions: int) -> dict[int, set[str]]:
    """Returns for each producer id of a topic the names of the producers that wrote with it."""
    log = scan_log(run, cluster_id)
    names_by_writer: dict[int, set[str]] = defaultdict(set)
    for index in range(partitions):
        for batch in log.batches(topic, index):
            names = {(record.value or b"").decode().split("-")[0] for record in batch.records()}
            names_by_writer[batch.producer_id] |= names
    return dict(names_by_writer)


def values_of(run: Run, cluster_id: str, topic: str) -> set[str]:
    """Returns every value in a topic's log."""
    return {
        (record.value or b"").decode() for _, record in scan_log(run, cluster_id).records(topic)
    }


def issue_invoice(run: Run, api: Api) -> str:
    """Issues the organization's invoice of this month; returns its number."""
    organization = api.call("GET", "/organizations/current")["id"]
    arguments = ("--month", MONTH, "--organization", organization, "--close-early", "Rehearsal.")
    run_manage(run, "issue_invoices", *arguments)
    (number,) = invoice_numbers(api)
    return number


def invoice_numbers(api: Api) -> list[str]:
    """Returns the numbers of all invoices that the organization sees."""
    return [item["number"] for item in api.call("GET", "/invoices")["items"]]


def lose_everything_but_storage(run: Run) -> None:
    """Deletes the database, metadata, queue and secrets, but not the shared storage."""
    home = run.home
    for folder in ("postgres", "redis", "beat"):
        shutil.rmtree(home / folder)
    for file in (*cell_of(run).glob("metadata.sqlite*"), home / "secret_key"):
        file.unlink()
    (cell_of(run) / "secret").unlink()


def wake_cluster(api: Api, cluster_id: str) -> None:
    """Wakes the cluster: its broker finds the topics that the metadata lacks."""
    api.call("POST", f"/clusters/{cluster_id}:wake")
    wait_until(lambda: api.phase(cluster_id) == "running", "the cluster is awake", WITHIN_S)


def orphaned_topics(api: Api, cluster_id: str) -> list[dict[str, Any]]:
    """Returns the orphaned topics: those on storage that the metadata does not know."""
    topics: list[dict[str, Any]] = api.call("GET", f"/clusters/{cluster_id}/orphaned-topics")[
        "items"
    ]
    return topics


def attach_topic(api: Api, cluster_id: str, topic_id: str) -> dict[str, Any]:
    """Makes an orphaned topic one of the cluster's topics again."""
    attached: dict[str, Any] = api.call(
        "POST", f"/clusters/{cluster_id}/orphaned-topics/{topic_id}:attach", {}
    )
    return attached


def mode_of(path: Path) -> int:
    """Returns the permission bits of a file or folder."""
    return path.stat().st_mode & 0o777


def wait_for_orphans(api: Api, cluster_id: str, count: int) -> None:
    """Waits until a broker has found `count` orphaned topics."""
    wait_until(
        lambda: len(orphaned_topics(api, cluster_id)) == count,
        f"{count} younger topics found",
        WITHIN_S,
    )
