"""Offsets by time, resets by time and retention by time, by nine client libraries.

The answers are those of Apache Kafka, which `make test-all` asks too.
"""

import time
from dataclasses import replace

import pytest

from tests.clients.by_time.programs import ALL_CODECS, programs
from tests.clients.by_time.scenario import (
    END,
    START_MS,
    assert_finds_offsets,
    assert_produces,
    assert_resets,
    batches,
)
from tests.clients.by_time.tap import tapped
from tests.clients.by_time.topics import create_topic, log_bounds, wait_for_start
from tests.clients.servers import BrokerServer
from tests.ports import free_ports

HOUR_MS = 3_600_000
# What `make test` has of each library; the rest needs programs that it does not build, or is more
# of the same.
EVERYDAY = {
    "sarama-1.45": ("none", "gzip"),
    "librdkafka": ("zstd",),
    "kafka-python": ("gzip",),
    "aiokafka": ("snappy",),
    "java": ("lz4",),
}
EVERYDAY_RETENTION = ("sarama-1.45", "librdkafka")
CODECS = {
    **dict.fromkeys(("librdkafka", "kafka-python", "aiokafka", "java"), ALL_CODECS),
    **{name: program.codecs for name, program in programs().items()},
}


def case(name, codec, everyday):
    return pytest.param(name, codec, marks=() if everyday else pytest.mark.full)


each_library_and_codec = pytest.mark.parametrize(
    ("library", "codec"),
    [
        case(name, codec, codec in EVERYDAY.get(name, ()))
        for name, codecs in CODECS.items()
        for codec in codecs
    ],
    indirect=["library"],
)
# For retention a batch is its largest timestamp, whatever the codec.
each_library = pytest.mark.parametrize(
    ("library", "codec"),
    [
        case(name, EVERYDAY.get(name, codecs)[0], name in EVERYDAY_RETENTION)
        for name, codecs in CODECS.items()
    ],
    indirect=["library"],
)


@each_library_and_codec
def test_offsets_go_by_the_records_times(bootstrap, library, codec, topic):
    create_topic(bootstrap, topic)
    assert_produces(library, bootstrap, topic, codec)
    assert_finds_offsets(library, bootstrap, topic)


@each_library_and_codec
def test_resets_go_by_the_records_times(bootstrap, library, codec, topic, group):
    create_topic(bootstrap, topic)
    assert_produces(library, bootstrap, topic, codec)
    assert_resets(library, bootstrap, topic, group)


@each_library
def test_retention_goes_by_the_records_times(quick_bootstrap, library, codec, topic, group):
    bootstrap, now_ms = quick_bootstrap, time.time_ns() // 1_000_000
    kept, later = f"{topic}-kept", f"{topic}-later"
    create_topic(bootstrap, kept)
    for name in (topic, later):
        create_topic(bootstrap, name, HOUR_MS)
    assert_produces(library, bootstrap, kept, codec)
    old, new = batches(now_ms - 2 * HOUR_MS), batches(now_ms - HOUR_MS // 2)
    library.produce(bootstrap, topic, old, codec)
    wait_for_start(bootstrap, topic, END)
    library.produce(bootstrap, topic, new, codec)
    # Once what came after the new ones has gone, these were looked at too.
    library.produce(bootstrap, later, old, codec)
    wait_for_start(bootstrap, later, END)
    assert log_bounds(bootstrap, topic) == (END, 2 * END)
    # The others are in segments by now, where Freshet has them.
    assert log_bounds(bootstrap, kept) == (0, END)
    assert_finds_offsets(library, bootstrap, kept)
    assert_resets(library, bootstrap, kept, group)


def test_java_resets_by_the_age_of_records(bootstrap, java, topic, group):
    """`auto.offset.reset=by_duration`, with hours between the records: a test may take a while."""
    create_topic(bootstrap, topic)
    now_ms = time.time_ns() // 1_000_000
    records = [
        replace(record, timestamp=now_ms - (6 - n) * HOUR_MS)
        for n, record in enumerate(batches()[0])
    ]
    assert java.produce(bootstrap, topic, [records], "gzip") == [0, 1, 2, 3, 4]
    # Aged 6, 5, 4, 3 and 2 hours.
    assert java.read_since(bootstrap, topic, f"{group}-1", "PT4H30M", 3) == [2, 3, 4]


def test_this_sarama_leaves_the_largest_timestamp_unset(tmp_path, topic):
    """From 1.45.1 on it does not, and so would not show what the broker makes of it."""
    (port,) = free_ports(1)
    settings = {"listener": {"advertised": f"127.0.0.1:{port}"}}
    with BrokerServer(tmp_path, **settings) as server, tapped(port, server.bootstrap) as tap:
        programs()["sarama-1.45"].produce(f"127.0.0.1:{port}", topic, batches(), "none")
    first_ms, unset = (number.to_bytes(8, signed=True) for number in (START_MS, -1))
    assert first_ms + unset in tap.sent
