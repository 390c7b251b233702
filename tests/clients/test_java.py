"""Kafka's own tools. Each run of one costs a second or two of CPU, so there are few.

The everyday ones are a producer, a consumer and an administrator; other clients do the rest too.
"""

import json
import re

import pytest

from tests.peer.kafka import java_tool

TOOLS = "org.apache.kafka.tools"
full = pytest.mark.full
# Codecs that the tests of other clients go through too.
REST = ("gzip", "snappy", "lz4")


def tool(broker, name, *arguments, check=True, text_in=None):
    full = name if name.startswith("kafka.") else f"{TOOLS}.{name}"
    done = java_tool(
        full,
        *("--bootstrap-server", broker.bootstrap),
        *arguments,
        text_in=text_in,
        check=check,
        heap="256m",
    )
    return done.stdout + ("" if check else done.stderr)


def test_topics(broker, topic):
    tool(
        broker,
        "TopicCommand",
        *("--create", "--topic", topic, "--partitions", "3", "--replication-factor", "1"),
        *("--config", "retention.ms=3600000"),
    )
    described = tool(broker, "TopicCommand", "--describe", "--topic", topic)
    assert "PartitionCount: 3" in described
    assert "retention.ms=3600000" in described
    tool(broker, "TopicCommand", "--alter", "--topic", topic, "--partitions", "4")
    assert topic in tool(broker, "TopicCommand", "--list").split()
    tool(broker, "TopicCommand", "--delete", "--topic", topic)
    said = tool(broker, "TopicCommand", "--describe", "--topic", topic, check=False)
    assert "does not exist as expected" in said


@pytest.mark.parametrize("codec", ["zstd", *(pytest.param(codec, marks=full) for codec in REST)])
def test_console_producer_compresses(broker, topic, codec):
    lines = "".join(f"{codec} {n}\n" for n in range(200))
    arguments = ("--topic", topic, "--compression-codec", codec)
    tool(broker, "ConsoleProducer", *arguments, text_in=lines)
    got = tool(
        broker,
        "consumer.ConsoleConsumer",
        *("--topic", topic, "--from-beginning", "--max-messages", "200"),
    )
    assert got == lines


@full
def test_load_tools_and_groups(broker, topic, group, tmp_path):
    settings = tmp_path / "producer.properties"
    settings.write_text("acks=all\nlinger.ms=1\ncompression.type=none\n")
    sent = tool(
        broker,
        "ProducerPerformance",
        *("--topic", topic, "--num-records", "5000", "--record-size", "100"),
        *("--throughput", "-1", "--command-config", str(settings)),
    )
    assert re.search(r"^5000 records sent", sent, re.MULTILINE)
    read = tool(
        broker,
        "ConsumerPerformance",
        *("--topic", topic, "--num-records", "5000", "--group", group, "--timeout", "30000"),
    )
    assert re.search(r", 5000, ", read), read
    about = ("consumer.group.ConsumerGroupCommand", "--group", group)
    described = tool(broker, *about, "--describe")
    row = next(line.split() for line in described.splitlines() if topic in line)
    assert row[3:6] == ["5000", "5000", "0"], described
    tool(
        broker,
        *about,
        *("--reset-offsets", "--to-offset", "100", "--topic", topic, "--execute"),
    )
    described = tool(broker, *about, "--describe", "--offsets")
    row = next(line.split() for line in described.splitlines() if topic in line)
    assert row[3:6] == ["100", "5000", "4900"], described
    assert group in tool(broker, "consumer.group.ConsumerGroupCommand", "--list").split()
    assert f"{topic}:0:5000" in tool(broker, "GetOffsetShell", "--topic", topic)
    tool(broker, *about, "--delete")


@full
def test_configs(broker, topic):
    tool(broker, "TopicCommand", "--create", "--topic", topic)
    about = ("kafka.admin.ConfigCommand", "--entity-type", "topics", "--entity-name", topic)
    added = "retention.ms=7200000,cleanup.policy=[delete]"
    tool(broker, *about, "--alter", "--add-config", added)
    everything = tool(broker, *about, "--describe", "--all")
    assert "retention.ms=7200000" in everything
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=7200000" in everything
    assert "min.insync.replicas" in everything
    node = ("kafka.admin.ConfigCommand", "--entity-type", "brokers", "--entity-name", "0")
    assert "auto.create.topics.enable" in tool(broker, *node, "--describe", "--all")


@full
def test_acls(broker, topic):
    about = ("--topic", topic)
    rule = ("--allow-principal", "User:alice", "--operation", "Read", "--operation", "Describe")
    tool(broker, "AclCommand", "--add", *rule, *about)
    listed = tool(broker, "AclCommand", "--list", *about)
    assert "principal=User:alice" in listed
    assert "operation=READ" in listed
    tool(broker, "AclCommand", "--remove", "--force", *about)
    assert "alice" not in tool(broker, "AclCommand", "--list", *about)


def test_versions_are_understood(broker):
    versions = tool(broker, "BrokerApiVersionsCommand")
    assert "Produce(0): 0 to" in versions
    assert "ApiVersions(18): 0 to 4" in versions


@full
def test_quotas(broker):
    about = ("kafka.admin.ConfigCommand", "--entity-type", "users", "--entity-name", "carol")
    rates = "producer_byte_rate=1048576,request_percentage=12.5"
    tool(broker, *about, "--alter", "--add-config", rates)
    described = tool(broker, *about, "--describe")
    assert "Quota configs for user-principal 'carol'" in described
    assert "producer_byte_rate=1048576.0" in described
    assert "request_percentage=12.5" in described
    tool(broker, *about, "--alter", "--delete-config", "producer_byte_rate,request_percentage")
    assert "producer_byte_rate" not in tool(broker, *about, "--describe")


@full
def test_delete_records(broker, topic, tmp_path):
    tool(broker, "TopicCommand", "--create", "--topic", topic, "--partitions", "1")
    tool(broker, "ConsoleProducer", "--topic", topic, text_in="a\nb\nc\n")
    offsets_file = tmp_path / "offsets.json"
    place = {"topic": topic, "partition": 0, "offset": 2}
    offsets_file.write_text(json.dumps({"version": 1, "partitions": [place]}))
    said = tool(broker, "DeleteRecordsCommand", "--offset-json-file", str(offsets_file))
    assert "low_watermark: 2" in said
    reader = ("consumer.ConsoleConsumer", "--topic", topic, "--from-beginning")
    assert tool(broker, *reader, "--max-messages", "1") == "c\n"
