"""A disaster, step by step. Each step is a function of a service that runs or is stopped."""

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
# The agent looks every second; a lane that ended is metered at the next look.
METERED_S = 400
WITHIN_S = 300
MONTH = datetime.now(UTC).strftime("%Y-%m")


@dataclass(frozen=True)
class Numbers:
    """What must never be used twice, as storage and metadata show it."""

    incarnations: frozenset[int]
    epochs: tuple[int, ...]


def manage(run: Run, *arguments: str, status: int = 0) -> str:
    """Runs `manage.py` on the service's home; gives what it said. Wants an exit status."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=run.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_TIMEOUT_S,
    )
    said = done.stdout + done.stderr
    assert done.returncode == status, said
    return said


def produce(connection: Connection, topic: str, name: str) -> set[str]:
    """Writes some records with an idempotent producer; gives those that were acknowledged."""
    producer = Producer(connection, topic, name).start()
    wait_until(lambda: len(producer.acked) >= RECORDS, f"{RECORDS} records of {name} are acked")
    return producer.finish()


def read_all(connection: Connection, topic: str, group: str, wanted: set[str]) -> None:
    """Reads a topic from its beginning: each of these records once, and no other."""
    reader = Reader(lambda: LibrdkafkaConsumer(connection, topic, group)).start()
    reader.finish(wanted)
    assert set(reader.seen) == wanted


def put_to_sleep(api: Api, cluster_id: str) -> None:
    """Stops the cluster's brokers; whoever connects next wakes it."""
    api.finish(api.call("POST", f"/clusters/{cluster_id}:sleep"))
    wait_until(lambda: api.phase(cluster_id) == "asleep", "the cluster sleeps", WITHIN_S)


def suspend(api: Api, cluster_id: str) -> None:
    """Stops the cluster's brokers, so that all that was used is in lanes that ended."""
    api.finish(api.call("POST", f"/clusters/{cluster_id}:suspend"))
    wait_until(lambda: api.phase(cluster_id) == "suspended", "the cluster is suspended", WITHIN_S)


def cell_of(run: Run) -> Path:
    """Where the cell's data lies."""
    return run.home / "cell"


def scan(run: Run, cluster_id: str) -> LogScan:
    """The cluster's log, read from storage by code that is not the engine's."""
    cell = cell_of(run)
    return LogScan(cell / "dfs", cell / "bucket", cell / "metadata.sqlite", cluster_id)


def stored_bytes(run: Run, cluster_id: str, topics: dict[str, int]) -> int:
    """Bytes of all batches of these topics, by their number of partitions."""
    log = scan(run, cluster_id)
    return sum(
        batch.size
        for topic, partitions in topics.items()
        for index in range(partitions)
        for batch in log.batches(topic, index)
    )


def ingested_bytes(api: Api, cluster_id: str) -> int:
    """What REST shows as received of clients, this month."""
    first = f"{MONTH}-01T00:00:00Z"
    path = f"/usage?cluster_id={cluster_id}&from={first}&granularity=month&meter=ingress_bytes"
    items: list[dict[str, Any]] = api.call("GET", path)["items"]
    # What the service itself writes, such as offsets of groups, is counted and not billed.
    return sum(item["quantity"] for item in items if item["billed"])


def wait_metered(api: Api, cluster_id: str, wanted: int) -> None:
    """Waits until usage is this, to the byte."""
    wait_until(
        lambda: ingested_bytes(api, cluster_id) == wanted, f"{wanted} bytes metered", METERED_S
    )


def numbers(run: Run, cluster_id: str, topic: str) -> Numbers:
    """Incarnations on storage and leader epochs in the metadata."""
    lanes = cell_of(run) / "dfs" / cluster_id / "lanes"
    store = CellStore(cell_of(run) / "metadata.sqlite").cluster(cluster_id)
    return Numbers(
        frozenset(int(folder.name) for folder in lanes.iterdir()),
        tuple(partition.leader_epoch for partition in store.partitions(topic)),
    )


def writers(run: Run, cluster_id: str, topic: str, partitions: int) -> dict[int, set[str]]:
    """Names of the producers that wrote as each producer id."""
    log = scan(run, cluster_id)
    found: dict[int, set[str]] = defaultdict(set)
    for index in range(partitions):
        for batch in log.batches(topic, index):
            names = {(record.value or b"").decode().split("-")[0] for record in batch.records()}
            found[batch.producer_id] |= names
    return dict(found)


def values(run: Run, cluster_id: str, topic: str) -> set[str]:
    """Every value of a topic's log."""
    return {(record.value or b"").decode() for _, record in scan(run, cluster_id).records(topic)}


def issue_invoice(run: Run, api: Api) -> str:
    """Issues the organisation's invoice of this month; gives its number as people see it."""
    organization = api.call("GET", "/organizations/current")["id"]
    wanted = ("--month", MONTH, "--organization", organization, "--close-early", "Rehearsal.")
    manage(run, "issue_invoices", *wanted)
    (number,) = invoice_numbers(api)
    return number


def invoice_numbers(api: Api) -> list[str]:
    """Numbers of all invoices that the organisation sees."""
    return [item["number"] for item in api.call("GET", "/invoices")["items"]]


def lose_everything_but_storage(run: Run) -> None:
    """Database, metadata, queue and secrets are gone. Shared storage is not."""
    home = run.home
    for folder in ("postgres", "redis", "beat"):
        shutil.rmtree(home / folder)
    for file in (*cell_of(run).glob("metadata.sqlite*"), home / "secret_key"):
        file.unlink()
    (cell_of(run) / "secret").unlink()


def wake(api: Api, cluster_id: str) -> None:
    """Has a broker start, which finds what the metadata lacks."""
    api.call("POST", f"/clusters/{cluster_id}:wake")
    wait_until(lambda: api.phase(cluster_id) == "running", "the cluster is awake", WITHIN_S)


def orphans(api: Api, cluster_id: str) -> list[dict[str, Any]]:
    """Topics on storage that the metadata does not know."""
    found: list[dict[str, Any]] = api.call("GET", f"/clusters/{cluster_id}/orphaned-topics")[
        "items"
    ]
    return found


def attach(api: Api, cluster_id: str, topic_id: str) -> dict[str, Any]:
    """Makes one of them a topic of the cluster again."""
    attached: dict[str, Any] = api.call(
        "POST", f"/clusters/{cluster_id}/orphaned-topics/{topic_id}:attach", {}
    )
    return attached


def mode_of(path: Path) -> int:
    """Permissions of a file or folder."""
    return path.stat().st_mode & 0o777


def wait_for_orphans(api: Api, cluster_id: str, count: int) -> None:
    """Waits until a broker has found so many."""
    wait_until(
        lambda: len(orphans(api, cluster_id)) == count, f"{count} younger topics found", WITHIN_S
    )
