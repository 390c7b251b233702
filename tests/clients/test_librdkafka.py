"""confluent-kafka and kcat, both over librdkafka."""

import subprocess
import time
from typing import Any

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
TIMEOUT_S = 120


@pytest.fixture
def admin(broker):
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def result(futures):
    (future,) = futures.values()
    return future.result()


def create(admin, topic, partitions=1, **config):
    result(admin.create_topics([NewTopic(topic, partitions, config=config)]))


def produce(broker, topic, values, *, keyed=False, **settings):
    producer = Producer({"bootstrap.servers": broker.bootstrap, **settings})
    delivered = []
    for value in values:
        key = value if keyed else None
        producer.produce(topic, value, key, on_delivery=lambda e, m: delivered.append((e, m)))
    assert producer.flush(TIMEOUT_S) == 0
    assert [error for error, _ in delivered if error] == []
    return [message for _, message in delivered]


def make_consumer(broker, group, **settings):
    given = {"bootstrap.servers": broker.bootstrap, "group.id": group}
    return Consumer({**given, "auto.offset.reset": "earliest", **settings})


def take(consumer, count):
    messages: list[Any] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(messages) < count and time.monotonic() < deadline:
        for message in consumer.consume(count - len(messages), timeout=1):
            assert message.error() is None, message.error()
            messages.append(message)
    assert len(messages) == count
    return messages


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_as_sent(broker, admin, topic, group, codec):
    create(admin, topic, 3)
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "compression.type": codec, "linger.ms": 20}
    )
    sent = {}
    for n in range(300):
        record = (f"key {n % 7}".encode(), b"value %d " % n * 30, [("h", b"%d" % n), ("h", None)])
        timestamp = 1_700_000_000_000 + n
        producer.produce(topic, record[1], record[0], headers=record[2], timestamp=timestamp)
        sent[timestamp] = record
    assert producer.flush(TIMEOUT_S) == 0
    consumer = make_consumer(broker, group)
    consumer.subscribe([topic])
    got = {}
    last: dict[int, int] = {}
    for message in take(consumer, 300):
        kind, timestamp = message.timestamp()
        assert kind == TIMESTAMP_CREATE_TIME
        got[timestamp] = (message.key(), message.value(), message.headers())
        assert message.offset() == last.get(message.partition(), -1) + 1
        last[message.partition()] = message.offset()
    consumer.close()
    assert got == sent


def test_large_records_and_empty_ones(broker, topic, group):
    values = [b"x" * 900_000, b"", None, b"y" * 500_000]
    produce(broker, topic, values)
    consumer = make_consumer(broker, group)
    consumer.subscribe([topic])
    assert [message.value() for message in take(consumer, 4)] == values
    consumer.close()


def test_records_beyond_the_topics_limit_are_refused(broker, admin, topic):
    create(admin, topic, **{"max.message.bytes": "10000"})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    outcomes = []
    producer.produce(topic, b"x" * 20_000, on_delivery=lambda e, m: outcomes.append(e.name()))
    assert producer.flush(TIMEOUT_S) == 0
    assert outcomes == ["MSG_SIZE_TOO_LARGE"]


def test_topics_from_creation_to_deletion(broker, admin, topic):
    create(admin, topic, 2, **{"retention.ms": "3600000"})
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        create(admin, topic)
    assert len(admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions) == 2
    result(admin.create_partitions([NewPartitions(topic, 5)]))
    assert len(admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions) == 5
    with pytest.raises(KafkaException, match="INVALID_PARTITIONS"):
        result(admin.create_partitions([NewPartitions(topic, 4)]))
    result(admin.delete_topics([topic]))
    assert topic not in admin.list_topics(timeout=TIMEOUT_S).topics
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        result(admin.delete_topics([topic]))


def test_topic_that_is_made_again_is_empty(broker, admin, topic, group):
    create(admin, topic)
    produce(broker, topic, [b"old"] * 10)
    result(admin.delete_topics([topic]))
    create(admin, topic)
    (message,) = produce(broker, topic, [b"new"])
    assert message.offset() == 0
    consumer = make_consumer(broker, group)
    consumer.subscribe([topic])
    assert [message.value() for message in take(consumer, 1)] == [b"new"]
    consumer.close()


def test_configs_are_read_modified_and_written(admin, topic):
    create(admin, topic, **{"retention.ms": "3600000"})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = result(admin.describe_configs([resource]))
    assert entries["retention.ms"].value == "3600000"
    assert not entries["retention.ms"].is_default
    assert entries["cleanup.policy"].is_default
    assert {"min.insync.replicas", "unclean.leader.election.enable"} <= entries.keys()
    change = ConfigEntry("segment.bytes", "2097152", incremental_operation=AlterConfigOpType.SET)
    removal = ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
    changed = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change, removal])
    result(admin.incremental_alter_configs([changed]))
    entries = result(admin.describe_configs([resource]))
    assert entries["segment.bytes"].value == "2097152"
    assert entries["retention.ms"].is_default
    wrong = ConfigEntry("retention.ms", "soon", incremental_operation=AlterConfigOpType.SET)
    with pytest.raises(KafkaException, match="INVALID_CONFIG"):
        result(
            admin.incremental_alter_configs(
                [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[wrong])]
            )
        )
    node = ConfigResource(ResourceType.BROKER, "0")
    assert result(admin.describe_configs([node]))["num.partitions"].value == "1"


def test_offsets_are_found_by_end_and_by_time(broker, admin, topic):
    create(admin, topic)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for n in range(10):
        producer.produce(topic, b"%d" % n, timestamp=1_700_000_000_000 + n * 1000)
        assert producer.flush(TIMEOUT_S) == 0
    partition = TopicPartition(topic, 0)

    def offset(spec):
        asked = admin.list_offsets({partition: spec}, isolation_level=IsolationLevel.READ_COMMITTED)
        return result(asked).offset

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 10
    assert offset(OffsetSpec.max_timestamp()) == 9
    assert offset(OffsetSpec.for_timestamp(1_700_000_003_500)) == 4
    assert offset(OffsetSpec.for_timestamp(1_800_000_000_000)) == -1


def assigned(consumers, count):
    """Polls all members until every one of them has partitions, `count` together."""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        for consumer in consumers:
            consumer.poll(0.05)
        held = [consumer.assignment() for consumer in consumers]
        if all(held) and sum(map(len, held)) == count:
            return held
    message = f"not balanced: {held}"
    raise AssertionError(message)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_group_shares_partitions_and_ends_at_lag_0(broker, admin, topic, group, strategy):
    create(admin, topic, 4)
    settings = {"partition.assignment.strategy": strategy, "enable.auto.commit": False}
    members = [make_consumer(broker, group, **settings) for _ in range(2)]
    for member in members:
        member.subscribe([topic])
    held = assigned(members, 4)
    assert {p.partition for part in held for p in part} == {0, 1, 2, 3}
    # Keys spread the records, so that each member has some to commit.
    produce(broker, topic, [b"%d" % n for n in range(200)], keyed=True, **{"linger.ms": 5})
    seen: list[int] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(seen) < 200 and time.monotonic() < deadline:
        for member in members:
            for message in member.consume(100, timeout=0.1):
                assert message.error() is None
                seen.append(int(message.value()))
    assert sorted(seen) == list(range(200))
    for member in members:
        member.commit(asynchronous=False)
    description = result(admin.describe_consumer_groups([group]))
    assert description.state.name == "STABLE"
    assert len(description.members) == 2
    lags = []
    for place in members[0].committed(
        [TopicPartition(topic, p) for p in range(4)], timeout=TIMEOUT_S
    ):
        _, end = members[0].get_watermark_offsets(place, timeout=TIMEOUT_S)
        lags.append(end - place.offset if end else 0)
    assert lags == [0, 0, 0, 0]
    members[1].close()
    assert len(assigned(members[:1], 4)[0]) == 4
    members[0].close()


def test_offsets_of_a_group_are_reset_and_the_group_deleted(broker, admin, topic, group):
    create(admin, topic)
    produce(broker, topic, [b"%d" % n for n in range(20)])
    consumer = make_consumer(broker, group, **{"enable.auto.commit": False})
    consumer.subscribe([topic])
    take(consumer, 20)
    consumer.commit(asynchronous=False)
    consumer.close()
    assert group in {g.group_id for g in admin.list_consumer_groups().result().valid}
    place = TopicPartition(topic, 0, 5)
    moved = ConsumerGroupTopicPartitions(group, [place])
    result(admin.alter_consumer_group_offsets([moved]))
    asked = ConsumerGroupTopicPartitions(group)
    (committed,) = result(admin.list_consumer_group_offsets([asked])).topic_partitions
    assert committed.offset == 5
    consumer = make_consumer(broker, group)
    consumer.subscribe([topic])
    assert take(consumer, 15)[0].value() == b"5"
    consumer.close()
    result(admin.delete_consumer_groups([group]))
    with pytest.raises(KafkaException, match="GROUP_ID_NOT_FOUND"):
        result(admin.delete_consumer_groups([group]))


def test_cluster_is_described(broker, admin):
    cluster = admin.describe_cluster().result()
    assert len(cluster.cluster_id) == 22
    assert [f"{node.host}:{node.port}" for node in cluster.nodes] == [broker.bootstrap]


def kcat(broker, *arguments, text=None):
    done = subprocess.run(
        ["kcat", "-b", broker.bootstrap, *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kcat_lists_produces_and_consumes(broker, topic):
    lines = [f"{codec} {n}" for codec in CODECS for n in range(50)]
    for codec in CODECS:
        mine = "".join(f"{line}\n" for line in lines if line.startswith(codec))
        kcat(broker, "-P", "-t", topic, "-z", codec, text=mine)
    assert kcat(broker, "-C", "-t", topic, "-o", "beginning", "-e", "-q").split("\n")[:-1] == lines
    assert kcat(broker, "-C", "-t", topic, "-o", "-10", "-e", "-q").split("\n")[:-1] == lines[-10:]
    assert f'topic "{topic}" with 1 partitions' in kcat(broker, "-L", "-t", topic)
    assert kcat(broker, "-Q", "-t", f"{topic}:0:-1").strip() == f"{topic} [0] offset 250"


def test_kcat_consumes_in_a_group(broker, topic, group):
    kcat(broker, "-P", "-t", topic, text="a\nb\n")
    first = kcat(broker, "-G", group, "-X", "auto.offset.reset=earliest", "-c", "2", "-q", topic)
    assert first == "a\nb\n"
    kcat(broker, "-P", "-t", topic, text="c\n")
    assert kcat(broker, "-G", group, "-c", "1", "-q", topic) == "c\n"
