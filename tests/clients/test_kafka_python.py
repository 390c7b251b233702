"""kafka-python."""

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic, OffsetSpec
from kafka.errors import (
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

TIMEOUT_S = 120


@pytest.fixture
def admin(broker):
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def make_consumer(broker, topic, **settings):
    given = {"auto_offset_reset": "earliest", "consumer_timeout_ms": TIMEOUT_S * 1000}
    return KafkaConsumer(topic, bootstrap_servers=broker.bootstrap, **given, **settings)


def take(consumer, count):
    # The count first: `zip` asks its arguments in order, and the consumer would wait.
    records = [record for _, record in zip(range(count), consumer, strict=False)]
    assert len(records) == count
    return records


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_sent(broker, topic, codec):
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap, compression_type=codec, linger_ms=20
    )
    sent = []
    for n in range(200):
        record = (f"key {n}".encode(), b"value %d " % n * 20, [("h", b"%d" % n)])
        producer.send(topic, record[1], record[0], headers=record[2])
        sent.append(record)
    producer.flush()
    producer.close()
    consumer = make_consumer(broker, topic)
    got = [(r.key, r.value, [tuple(h) for h in r.headers]) for r in take(consumer, 200)]
    consumer.close()
    assert got == sent


def test_group_commits_and_goes_on(broker, admin, topic, group):
    admin.create_topics([NewTopic(topic, 2, 1)])
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for n in range(20):
        producer.send(topic, b"%d" % n, partition=n % 2).get(TIMEOUT_S)
    settings = {"group_id": group, "enable_auto_commit": False, "max_poll_records": 10}
    consumer = make_consumer(broker, topic, **settings)
    first = {int(record.value) for record in take(consumer, 10)}
    consumer.commit()
    consumer.close()
    consumer = make_consumer(broker, topic, **settings)
    rest = {int(record.value) for record in take(consumer, 10)}
    consumer.commit()
    assert first | rest == set(range(20))
    partitions = [TopicPartition(topic, p) for p in range(2)]
    ends = consumer.end_offsets(partitions)
    assert {p: consumer.committed(p) for p in partitions} == ends
    assert consumer.beginning_offsets(partitions) == dict.fromkeys(partitions, 0)
    consumer.close()
    producer.close()
    described = admin.describe_groups([group])
    assert next(iter(described.values()))["group_state"] in {"Empty", "Stable"}
    assert group in {listed["group_id"] for listed in admin.list_groups()}


def test_topics_and_configs(admin, topic):
    admin.create_topics([NewTopic(topic, 2, 3, topic_configs={"retention.ms": "1000000"})])
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([NewTopic(topic, 2, 1)])
    (described,) = admin.describe_topics([topic])
    assert len(described["partitions"]) == 2
    admin.create_partitions({topic: NewPartitions(4)})
    assert len(admin.describe_topics([topic])[0]["partitions"]) == 4
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    assert "1000000" in str(admin.describe_configs([resource]))
    changed = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "2000000"})
    admin.alter_configs([changed])
    assert "2000000" in str(admin.describe_configs([resource]))
    wrong = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "soon"})
    assert "retention.ms" in str(admin.alter_configs([wrong])["topic"][topic])
    admin.delete_topics([topic])
    assert topic not in admin.list_topics()
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_offsets_are_listed(broker, admin, topic):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    for n in range(5):
        producer.send(topic, b"x", timestamp_ms=1_700_000_000_000 + n).get(TIMEOUT_S)
    producer.close()
    partition = TopicPartition(topic, 0)
    listed = admin.list_partition_offsets({partition: OffsetSpec.LATEST})
    assert listed[partition].offset == 5
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap)
    offsets = consumer.offsets_for_times({partition: 1_700_000_000_003})
    assert offsets[partition].offset == 3
    consumer.close()


def test_cluster_is_described(broker, admin):
    described = admin.describe_cluster()
    (node,) = described["brokers"]
    assert f"{node['host']}:{node['port']}" == broker.bootstrap
