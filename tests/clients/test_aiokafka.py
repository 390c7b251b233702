"""aiokafka, which asks for old versions of every API."""

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

TIMEOUT_S = 120


async def take(consumer, count):
    records: list[Any] = []
    while len(records) < count:
        record = await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
        records.append(record)
    return records


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_sent(broker, topic, codec):
    async def run():
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap, compression_type=codec, linger_ms=20
        )
        await producer.start()
        sent = [(b"key %d" % n, b"value %d " % n * 20, (("h", b"%d" % n),)) for n in range(200)]
        waits = [await producer.send(topic, v, k, headers=list(h)) for k, v, h in sent]
        await asyncio.gather(*waits)
        await producer.stop()
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
        )
        await consumer.start()
        got = [(r.key, r.value, tuple(r.headers)) for r in await take(consumer, 200)]
        await consumer.stop()
        assert got == sent

    asyncio.run(run())


def test_group_commits_and_goes_on(broker, topic, group):
    async def run():
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)
        await producer.start()
        for n in range(10):
            await producer.send_and_wait(topic, b"%d" % n)
        settings = {
            "bootstrap_servers": broker.bootstrap,
            "group_id": group,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        consumer = AIOKafkaConsumer(topic, **settings)
        await consumer.start()
        assert [r.value for r in await take(consumer, 4)] == [b"0", b"1", b"2", b"3"]
        partition = TopicPartition(topic, 0)
        await consumer.commit({partition: 4})
        await consumer.stop()
        consumer = AIOKafkaConsumer(topic, **settings)
        await consumer.start()
        assert (await take(consumer, 6))[0].value == b"4"
        await consumer.commit()
        assert await consumer.committed(partition) == 10
        assert await consumer.end_offsets([partition]) == {partition: 10}
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        await consumer.stop()
        await producer.stop()

    asyncio.run(run())


def test_topics_groups_and_configs(broker, topic, group):
    async def run():
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(topic, 2, 1, topic_configs={"retention.ms": "77777"})])
        assert topic in await admin.list_topics()
        await admin.create_partitions({topic: NewPartitions(3)})
        (described,) = await admin.describe_topics([topic])
        assert len(described["partitions"]) == 3
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        assert "77777" in str(await admin.describe_configs([resource]))
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=broker.bootstrap, group_id=group, enable_auto_commit=False
        )
        await consumer.start()
        await consumer.commit({TopicPartition(topic, 0): 0})
        assert group in {listed[0] for listed in await admin.list_consumer_groups()}
        offsets = await admin.list_consumer_group_offsets(group)
        assert offsets[TopicPartition(topic, 0)].offset == 0
        await consumer.stop()
        await admin.delete_topics([topic])
        assert topic not in await admin.list_topics()
        await admin.close()

    asyncio.run(run())
