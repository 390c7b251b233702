"""What goes through Kafka's protocol, at one broker that runs: each of its calls goes wrong too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from provisioning.choices import SampleData
from provisioning.kafka.connection import Connection
from provisioning.services import samples
from tests.provisioning.control.world import access_of, running_broker
from tests.provisioning.faults.estate import Estate
from tests.provisioning.faults.seam import Fault, System

# The fault of a call that changes something, and one of a read.
OF_CHANGES = [Fault.REFUSED, Fault.LOST, Fault.TWICE, Fault.KILLED_BEHIND]
RECORDS = 5


@dataclass(frozen=True)
class Course:
    """One kind, at a topic or group of its own each time."""

    name: str
    prepare: Callable[[Estate, str], None]
    ask: Callable[[Estate, str], None]
    check: Callable[[Estate, str], None]


def connection_of(estate: Estate) -> Connection:
    """The broker, as the service's own user."""
    return access_of(estate.cluster_id).connection


def filled(estate: Estate, name: str) -> None:
    """A topic with some records, which a group of its name has read the first of."""
    estate.ask("POST", f"{estate.path}/topics", {"name": name, "partitions": 1})
    settings = connection_of(estate).settings()
    producer = Producer(settings)
    for _ in range(RECORDS):
        producer.produce(name, b"x", partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer(settings | {"group.id": name})
    consumer.commit(offsets=[TopicPartition(name, 0, 1)], asynchronous=False)
    consumer.close()


def watermarks(estate: Estate, name: str) -> tuple[int, int]:
    """First and next offset of the topic's partition."""
    consumer = Consumer(connection_of(estate).settings() | {"group.id": "looks"})
    try:
        found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(name, 0), 30)
    finally:
        consumer.close()
    return found


def delete_records(estate: Estate, name: str) -> None:
    """The first three."""
    body = {"partitions": [{"partition": 0, "before_offset": 3}]}
    estate.ask("POST", f"{estate.path}/topics/{name}:delete-records", body)


def records_gone(estate: Estate, name: str) -> None:
    """They are, and no others."""
    assert watermarks(estate, name) == (3, RECORDS)


def reset(estate: Estate, name: str) -> None:
    """To the end."""
    estate.ask("POST", f"{estate.path}/groups/{name}/reset-offsets", {"to": "latest"})


def is_reset(estate: Estate, name: str) -> None:
    """The group goes on there."""
    shown = estate.api.get(f"{estate.path}/groups/{name}").json()
    assert [each["committed"] for each in shown["partitions"]] == [RECORDS]


def delete_group(estate: Estate, name: str) -> None:
    """With what it committed."""
    estate.ask("DELETE", f"{estate.path}/groups/{name}")


def group_gone(estate: Estate, name: str) -> None:
    """There is none."""
    assert estate.api.get(f"{estate.path}/groups/{name}").status_code == 404


def want_samples(estate: Estate, name: str) -> None:
    """The cluster is to have the sample topic, and has none."""
    del name
    if samples.has_sample_topic(estate.store):
        gone = estate.store.delete_topic(samples.TOPIC)
        estate.store.purge_topic(gone.id)
    estate.change_row(sample_data=SampleData.WANTED)


def sweep_twice(estate: Estate, name: str) -> None:
    """The topic, then its records."""
    del name
    estate.sweep()
    estate.store.wait_led(samples.TOPIC, 30)
    estate.sweep()


def has_samples(estate: Estate, name: str) -> None:
    """Each record once."""
    sweep_twice(estate, name)
    assert estate.row().sample_data == SampleData.DONE
    assert watermarks(estate, samples.TOPIC) == (0, len(samples.RECORDS))


COURSES = [
    Course("delete-records", filled, delete_records, records_gone),
    Course("reset-offsets", filled, reset, is_reset),
    Course("delete-group", filled, delete_group, group_gone),
    Course("samples", want_samples, sweep_twice, has_samples),
]


@pytest.fixture
def running(estate):
    """The estate's cluster, with a broker."""
    estate.make_cluster()
    estate.mark()
    with estate.seam.beside(), running_broker(estate.cluster_id):
        estate.seam.inside = False
        yield estate
        estate.seam.inside = True


def test_calls_of_brokers_go_wrong_and_nothing_differs_in_the_end(running):
    for course in COURSES:
        course.prepare(running, f"{course.name}-0")
        running.seam.record()
        course.ask(running, f"{course.name}-0")
        calls = list(running.seam.calls)
        running.seam.record(on=False)
        course.check(running, f"{course.name}-0")
        places = [place for place, call in enumerate(calls) if call.system is System.KAFKA]
        assert places, course.name
        for number, place in enumerate(places):
            # Each call in some way, and the last, which is the change, in all.
            ways = OF_CHANGES if place == places[-1] else [OF_CHANGES[number % len(OF_CHANGES)]]
            for fault in ways:
                name = f"{course.name}-{place}-{fault.name}"
                course.prepare(running, name)
                running.seam.arm(place, fault)
                course.ask(running, name)
                running.seam.heal()
                running.seam.record(on=False)
                course.check(running, name)
    assert running.left() == []
