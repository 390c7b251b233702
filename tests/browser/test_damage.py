"""A damaged batch of an earlier release, from the disk to whoever deletes it in the console."""

from __future__ import annotations

import base64
import contextlib
import logging
import os
import re
import signal
import time
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Locator, expect
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from brokers.metadata import CellStore
from tests.brokers.damaging import damage_batch
from tests.brokers.lanes import PartitionId
from tests.browser.visitor import CLUSTER, TIMEOUT_MS, Visitor
from tests.service.api import Connection, Credential
from tests.service.running import wait_with_tasks
from tests.service.scenarios import broker_of, brokers_of, kill_broker
from tests.service.traffic import librdkafka_settings
from tests.supervisor.run import Run, wait_until

# Two brokers are killed and replaced, on a machine that may be slow.
pytestmark = pytest.mark.timeout(600)

TIMEOUT_S = TIMEOUT_MS // 1000
BATCHES, BATCH_RECORDS = 4, 3
# The second of the batches is damaged.
DAMAGED, NEXT = BATCH_RECORDS, 2 * BATCH_RECORDS
END = BATCHES * BATCH_RECORDS
# Long enough that librdkafka compresses it.
PADDING = "x" * 200


@dataclass(frozen=True)
class Log:
    """The one partition of a topic that this test made, as the cell has it."""

    run: Run
    cluster_id: str
    topic: str

    @property
    def store(self) -> CellStore:
        """The metadata store of the cell."""
        return CellStore(self.run.home / "cell/metadata.sqlite")

    @property
    def lanes(self) -> Path:
        """The folder of the cluster's lanes."""
        return self.run.home / "cell/dfs" / self.cluster_id / "lanes"

    @property
    def partition(self) -> PartitionId:
        """The partition by its topic's id."""
        kafka_id = self.store.cluster(self.cluster_id).topic(self.topic).id
        return PartitionId(uuid.UUID(bytes=base64.urlsafe_b64decode(kafka_id + "==")), 0)

    def metrics(self) -> dict[str, list[Any]]:
        """The samples of the broker's metrics by name; none while no broker answers."""
        status = self.store.status(self.cluster_id)
        if status is None or not status.brokers:
            return {}
        try:
            address = f"http://{status.brokers[0].metrics}/metrics"
            with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
                families = text_string_to_metric_families(answer.read().decode())
                return {family.name: family.samples for family in families}
        except OSError:
            return {}

    def named_in(self, metrics: dict[str, list[Any]]) -> int | None:
        """Where the broker's metrics say that the lowest damaged batch begins."""
        samples = metrics.get("freshet_damaged_batch_first_offset", [])
        labels = {"topic": self.topic, "partition": "0"}
        return next((int(sample.value) for sample in samples if sample.labels == labels), None)


@contextlib.contextmanager
def broker_away(run: Run, cluster_id: str) -> Iterator[None]:
    """Kills the cluster's broker by SIGKILL; the keeper is held still, and replaces it afterwards.

    Waits at the end until another broker runs.
    """
    keeper = run.children()["keeper"]
    killed = broker_of(run, cluster_id)
    os.kill(keeper.pid, signal.SIGSTOP)
    try:
        os.kill(killed.pid, signal.SIGKILL)
        wait_until(lambda: not brokers_of(run, cluster_id), "the killed broker has ended")
        yield
        assert not brokers_of(run, cluster_id), "the keeper was not held still"
    finally:
        os.kill(keeper.pid, signal.SIGCONT)
    broker_of(run, cluster_id)


def value_of(offset: int) -> str:
    """The first word of a record's value."""
    return f"record-{offset}"


def make_log(visitor: Visitor, run: Run) -> Log:
    """Makes a topic with one partition in the first cluster, and writes batches to it by gzip."""
    clusters = visitor.read("/clusters")["items"]
    (cluster,) = [cluster for cluster in clusters if cluster["name"] == CLUSTER]
    path = f"/clusters/{cluster['id']}"
    # It sorts behind the sample topic, which snippets name.
    topic = f"old-{time.monotonic_ns()}"
    visitor.change("POST", f"{path}/topics", {"name": topic, "partitions": 1, "configs": {}})
    made = visitor.change("POST", f"{path}/credentials", {"name": topic, "role": "full"})
    credential = Credential(made["username"], made["password"], made["mechanism"])
    connection = Connection(cluster["bootstrap_servers"], credential)
    more = {"compression.type": "gzip", "batch.num.messages": BATCH_RECORDS, "linger.ms": 60_000}
    settings = librdkafka_settings(connection, **more)
    producer = Producer(settings, logger=logging.getLogger("producer"))
    for offset in range(END):
        producer.produce(topic, f"{value_of(offset)} {PADDING}", partition=0)
        if offset % BATCH_RECORDS == BATCH_RECORDS - 1:
            assert producer.flush(TIMEOUT_S) == 0
    return Log(run, cluster["id"], topic)


def incident_of(visitor: Visitor, log: Log) -> dict[str, Any] | None:
    """The incident of the topic's damaged batch, as REST shows it to this person."""
    incidents: list[dict[str, Any]] = visitor.read("/incidents")["items"]
    title = f"A batch of {log.topic} is damaged"
    return next((incident for incident in incidents if incident["title"] == title), None)


def shown_incident(visitor: Visitor, log: Log) -> Locator:
    """The same on the page of incidents, which is open."""
    return visitor.page.get_by_role("article", name=f"A batch of {log.topic} is damaged")


def wait_for_incident(visitor: Visitor, log: Log, state: str) -> None:
    """Sweeps until the incident of the topic's damaged batch has the state."""

    def has_state() -> bool:
        incident = incident_of(visitor, log)
        return incident is not None and incident["state"] == state

    tasks = ("incidents.sweep_incidents",)
    wait_with_tasks(log.run, tasks, has_state, f"the incident is {state}", TIMEOUT_S)


def assert_messages(visitor: Visitor, log: Log, offsets: list[int]) -> None:
    """Looks at the topic's messages from the oldest on, and expects exactly these."""
    visitor.open(f"/clusters/{log.cluster_id}/topics/{log.topic}?from=oldest")
    rows = visitor.page.get_by_role("grid", name="Messages").get_by_role("row")
    expect(rows).to_have_count(1 + len(offsets), timeout=TIMEOUT_MS)
    for place, offset in enumerate(offsets, start=1):
        expect(rows.nth(place)).to_contain_text(f"{value_of(offset)} ")


def wait_until_named(log: Log, after: float) -> float:
    """Waits until a broker names the damage whose incarnation is later than `after`; returns that.

    The broker has read no segment for it.
    """
    metrics: dict[str, list[Any]] = {}

    def is_named() -> bool:
        nonlocal metrics
        metrics = log.metrics()
        return incarnation_in(metrics) > after and log.named_in(metrics) == DAMAGED

    wait_until(is_named, f"a broker later than {after} names the damaged batch", TIMEOUT_S)
    assert [sample.value for sample in metrics["freshet_unread_bytes"]] == [0]
    read = metrics["freshet_rewrite_read_bytes"]
    assert [sample.value for sample in read if sample.labels["job"] == "check"] == [0]
    return incarnation_in(metrics)


def incarnation_in(metrics: dict[str, list[Any]]) -> float:
    """Which start of a broker the metrics are of; 0 while no broker answers."""
    return next((sample.value for sample in metrics.get("freshet_incarnation", [])), 0)


def delete_up_to_it(visitor: Visitor, log: Log) -> None:
    """Deletes the damaged batch and what lies before it, on the page of the topic's partitions."""
    page = visitor.page
    visitor.open(f"/clusters/{log.cluster_id}/topics/{log.topic}/partitions")
    row = page.get_by_role("table", name="Partitions").get_by_role("row").nth(1)
    expect(row).to_contain_text(f"at offset {DAMAGED}", timeout=TIMEOUT_MS)
    button = row.get_by_role("button", name="Delete partition 0 up to its damaged batch")
    expect(button).to_have_text("Delete up to it")
    button.click()
    panel = page.get_by_role("dialog", name=f"Delete up to a damaged batch of {log.topic}")
    visitor.sees(f"The batch at offset {DAMAGED} of partition 0 cannot be decoded.", within=panel)
    panel.get_by_role("button", name="Show what will be deleted").click()
    good = f"{DAMAGED} good records"
    visitor.sees(f"Up to {good} before the batch are deleted with it.", within=panel)
    goes = panel.get_by_role("table", name="What goes").get_by_role("row").nth(1)
    expect(goes).to_contain_text(f"0 to {NEXT - 1}")
    action = f"Delete {good} and the batch"
    panel.get_by_role("button", name=action).click()
    dialog = page.get_by_role("dialog", name="Delete up to the damaged batch")
    confirm = dialog.get_by_role("button", name=action)
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill(log.topic)
    confirm.click()
    visitor.sees(f"Partition 0 begins at {NEXT}")
    expect(button).to_have_count(0, timeout=TIMEOUT_MS)


def test_a_damaged_batch_is_named_remembered_and_deleted(visitor, service):
    log = make_log(visitor, service)
    wrote = incarnation_in(log.metrics())
    with broker_away(service, log.cluster_id):
        damage_batch(log.lanes, log.partition, DAMAGED)
    split = wait_until_named(log, after=wrote)

    wait_for_incident(visitor, log, "open")
    visitor.open("/")
    visitor.page.get_by_role("link", name=re.compile(r"^\d+ incidents?$")).click()
    incident = shown_incident(visitor, log)
    visitor.sees(re.compile("^Open$"), within=incident)
    place = f"The topic {log.topic} of the cluster {CLUSTER} has a damaged batch: partition 0, "
    visitor.sees(f"{place}offset {DAMAGED}.", within=incident)

    # No lane has it any more that a later broker could find it in.
    wait_until(
        lambda: len({file.parent for file in log.lanes.glob("*/*.wal")}) == 1,
        "the lane with the damaged batch is split and gone",
    )
    kill_broker(service, log.cluster_id)
    wait_until_named(log, after=split)

    assert_messages(visitor, log, [*range(DAMAGED), *range(NEXT, END)])
    skipped = f"{BATCH_RECORDS} offsets ({DAMAGED}–{NEXT - 1}) of partition 0"
    visitor.sees(f"{skipped} cannot be decoded: skipped")

    delete_up_to_it(visitor, log)
    metrics = log.metrics()
    assert metrics
    assert log.named_in(metrics) is None
    wait_for_incident(visitor, log, "closed")
    visitor.open("/incidents")
    visitor.sees(re.compile("^Over$"), within=shown_incident(visitor, log))
    assert_messages(visitor, log, list(range(NEXT, END)))
    expect(visitor.page.get_by_text("cannot be decoded")).to_have_count(0)
