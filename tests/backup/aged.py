"""A disaster with an aged backup: writing goes on for minutes between the backup and the loss.

It does what `test_rehearsal.py` does in seconds, for longer, and counts: records are written all
the time, brokers are killed, topics and invoices are made, then come the loss, the restore and the
count.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path

from tests.service.api import Api, Connection
from tests.service.scenarios import kill_broker
from tests.service.traffic import LibrdkafkaConsumer, Producer, Reader
from tests.supervisor.run import Run

from . import rehearsal

TOPIC, PARTITIONS = "orders", 3
# Topics and invoices that are made between the backup and the loss.
STEPS = 10
# After these of them a broker is killed, so that incarnations and epochs go on as well.
KILLS = (3, 7)
LEADING = re.compile(r"leading incarnation=(\d+)")


@dataclass
class Summary:
    """The counts of a rehearsal. All fields but the first six must be 0."""

    backup_age_s: int = 0
    records_acknowledged: int = 0
    records_after_backup: int = 0
    broker_starts: int = 0
    invoices_issued: int = 0
    orphans_attached: int = 0
    records_lost: int = 0
    records_twice: int = 0
    records_unacknowledged: int = 0
    orphans_missing: int = 0
    incarnations_twice: int = 0
    epochs_twice: int = 0
    producer_ids_twice: int = 0
    invoice_numbers_twice: int = 0
    invoice_numbers_changed: int = 0
    usage_bytes_wrong: int = 0

    @property
    def failures(self) -> dict[str, int]:
        """The counts that should be 0 and are not."""
        counted = [field.name for field in fields(self)][6:]
        return {name: getattr(self, name) for name in counted if getattr(self, name)}


@dataclass
class Written:
    """What a restore must keep: acknowledged values by topic, invoice numbers by step."""

    acked: dict[str, set[str]] = field(default_factory=dict)
    numbers: dict[int, str] = field(default_factory=dict)


class Disaster:
    """One rehearsal on a service that is up. `say` gets a line at each step."""

    def __init__(self, run: Run, minutes: float, say: Callable[[str], None]) -> None:
        self.run, self.seconds, self.say = run, minutes * 60, say
        self.summary, self.written = Summary(), Written()
        self.backup = run.home.parent / "backup"
        self.api = Api.sign_up(run.address)
        self.debtors = [Api.sign_up(run.address) for _ in range(STEPS + 1)]
        self.cluster_id = self.api.create_cluster("first")
        self.api.create_topic(self.cluster_id, TOPIC, PARTITIONS)
        self.connection: Connection = self.api.connect(self.cluster_id)

    def rehearse(self) -> Summary:
        """Runs the whole rehearsal; returns the counts. Raises where a step cannot be done."""
        self.written.acked[TOPIC] = rehearsal.produce_records(self.connection, TOPIC, "before")
        # What an invoice of an open month says depends on the first day that was metered.
        rehearsal.put_cluster_to_sleep(self.api, self.cluster_id)
        rehearsal.wait_metered(self.api, self.cluster_id, self._stored_bytes())
        rehearsal.run_manage(self.run, "backup", "--to", str(self.backup))
        since = time.monotonic()
        self.say(f"backup taken; writing goes on for {self.seconds:.0f} s")
        self._write_on(since)
        rehearsal.suspend_cluster(self.api, self.cluster_id)
        received = self._stored_bytes()
        rehearsal.wait_metered(self.api, self.cluster_id, received)
        epochs = self._epochs([TOPIC])
        self.run.kill_everything()
        rehearsal.lose_everything_but_storage(self.run)
        self.summary.backup_age_s = int(time.monotonic() - since)
        self.say(f"all but storage lost; the backup is {self.summary.backup_age_s} s old")
        rehearsal.run_manage(self.run, "restore", "--from", str(self.backup))
        self.run.up()
        rehearsal.wake_cluster(self.api, self.cluster_id)
        self._attach_orphans()
        after = self._epochs([TOPIC])
        self.summary.epochs_twice = sum(new <= old for new, old in zip(after, epochs, strict=True))
        self._issue_again()
        self._count_losses()
        return self.summary

    def _write_on(self, since: float) -> None:
        """Writes records all the time; makes a topic and an invoice at each step; kills brokers."""
        load = Producer(self.connection, TOPIC, "load").start()
        for step in range(STEPS):
            self._wait_until(since + self.seconds * step / STEPS)
            name = f"younger-{step}"
            self.api.create_topic(self.cluster_id, name, 1)
            young = rehearsal.produce_records(self.connection, name, f"young{step}")
            self.written.acked[name] = young
            number = rehearsal.issue_invoice(self.run, self.debtors[step])
            self.written.numbers[step] = number
            self.say(f"{name}: {len(young)} records; invoice {number}; {len(load.acked)} of load")
            if step in KILLS:
                kill_broker(self.run, self.cluster_id)
                self.say("a broker was killed")
        self._wait_until(since + self.seconds)
        acked = load.finish()
        self.written.acked[TOPIC] |= acked
        younger = (values for topic, values in self.written.acked.items() if topic != TOPIC)
        self.summary.records_after_backup = len(acked) + sum(map(len, younger))

    def _wait_until(self, until: float) -> None:
        threading.Event().wait(max(until - time.monotonic(), 0))

    def _attach_orphans(self) -> None:
        lost_topics = set(self.written.acked) - {TOPIC}
        rehearsal.wait_for_orphans(self.api, self.cluster_id, len(lost_topics))
        orphans = {
            orphan["name"]: orphan
            for orphan in rehearsal.orphaned_topics(self.api, self.cluster_id)
        }
        self.summary.orphans_missing = len(lost_topics - orphans.keys())
        for name in sorted(lost_topics & orphans.keys()):
            attached = rehearsal.attach_topic(self.api, self.cluster_id, orphans[name]["id"])
            self.summary.orphans_attached += attached["name"] == name
        self.say(f"{self.summary.orphans_attached} orphans attached")

    def _issue_again(self) -> None:
        """Issues a new invoice and the lost ones again, and counts wrong numbers.

        The new one must get a number of its own, the lost ones the numbers that they had.
        """
        fresh = rehearsal.issue_invoice(self.run, self.debtors[STEPS])
        again = {
            step: rehearsal.issue_invoice(self.run, self.debtors[step])
            for step in self.written.numbers
        }
        numbers = [fresh, *again.values()]
        self.summary.invoices_issued = len(numbers)
        self.summary.invoice_numbers_twice = len(numbers) - len(set(numbers))
        changed = (again[step] != number for step, number in self.written.numbers.items())
        self.summary.invoice_numbers_changed = sum(changed)

    def _count_losses(self) -> None:
        """Writes on, reads all records with a client, then counts numbers and usage on storage."""
        self.written.acked[TOPIC] |= rehearsal.produce_records(self.connection, TOPIC, "later")
        for topic, acknowledged in self.written.acked.items():
            self._count_topic(topic, acknowledged)
        rehearsal.suspend_cluster(self.api, self.cluster_id)
        stored = self._stored_bytes()
        try:
            rehearsal.wait_metered(self.api, self.cluster_id, stored)
        except AssertionError:
            metered = rehearsal.ingested_bytes(self.api, self.cluster_id)
            self.summary.usage_bytes_wrong = abs(metered - stored)
        writers = list(self._writers())
        self.summary.producer_ids_twice = sum(len(names) > 1 for names in writers)
        starts = LEADING.findall(self._broker_log())
        self.summary.broker_starts = len(starts)
        self.summary.incarnations_twice = len(starts) - len(set(starts))
        self.summary.records_acknowledged = sum(map(len, self.written.acked.values()))

    def _count_topic(self, topic: str, acknowledged: set[str]) -> None:
        """Reads a topic with a client; counts lost, duplicate and unacknowledged records."""
        group = f"count-{topic}"
        reader = Reader(lambda: LibrdkafkaConsumer(self.connection, topic, group)).start()
        try:
            reader.finish(acknowledged)
        except AssertionError as error:
            self.say(f"{topic}: {error}")
        self.summary.records_lost += len(acknowledged - reader.seen.keys())
        self.summary.records_twice += sum(count > 1 for count in reader.seen.values())
        self.summary.records_unacknowledged += len(reader.seen.keys() - acknowledged)

    def _writers(self) -> Iterator[set[str]]:
        """Yields for each producer id the names of the producers that wrote with it."""
        names_by_writer: dict[int, set[str]] = {}
        for topic, partitions in self._topics().items():
            writers = rehearsal.writers_of(self.run, self.cluster_id, topic, partitions)
            for producer_id, names in writers.items():
                names_by_writer.setdefault(producer_id, set()).update(names)
        yield from names_by_writer.values()

    def _topics(self) -> dict[str, int]:
        return {name: PARTITIONS if name == TOPIC else 1 for name in self.written.acked}

    def _stored_bytes(self) -> int:
        return rehearsal.stored_bytes(self.run, self.cluster_id, self._topics())

    def _epochs(self, topics: list[str]) -> list[int]:
        epochs_of_topics = (
            rehearsal.used_numbers(self.run, self.cluster_id, topic).epochs for topic in topics
        )
        return [epoch for epochs in epochs_of_topics for epoch in epochs]

    def _broker_log(self) -> str:
        folder: Path = self.run.home / "keeper" / "run" / self.cluster_id / "slot-0"
        return (folder / "broker.log").read_text(errors="replace")

    def close(self) -> None:
        """Closes the REST clients."""
        for client in (self.api, *self.debtors):
            client.close()
