"""What a keeper reads of a broker: lag in records and seconds, and how little that takes."""

import asyncio
import struct
import threading
import time
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from brokers import Broker
from provisioning.cell.samples import groups_at
from provisioning.cell.status.groups import groups_in
from provisioning.cell.status.kept import Brokers, KeptPictures
from provisioning.cell.status.picture import topics_in
from provisioning.cell.status.reader import StatusReader
from tests.gateway.raw import Raw
from tests.provisioning.kafka.hostile import join_alone
from tests.provisioning.keeper.world import CLUSTER, LIMIT_S, World, until
from tests.provisioning.survivors import kill_survivors

NOW_MS = 1_700_000_000_000
BYTES_PER_S_MAX = 1024
OFFSET_COMMIT = 8


@pytest.fixture(scope="module")
def broker():
    with Broker(
        listener={"metrics": "127.0.0.1:0"}, groups={"initial_rebalance_delay_ms": 0}
    ) as running:
        yield running


def create(broker, topic, partitions=1, **config):
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(topic, partitions, config=config)])[topic].result(LIMIT_S)
    return admin


def produce(broker, topic, times_ms, *, partition=0, compression="none"):
    """Produces one record for each time, all in one batch."""
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "compression.type": compression,
        "linger.ms": 500,
    }
    producer = Producer(settings)
    for time_ms in times_ms:
        producer.produce(topic, b"x" * 100, partition=partition, timestamp=time_ms)
    assert producer.flush(LIMIT_S) == 0


def commit(broker, group, offsets):
    """Commits offsets by partition for a group without members."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    places = [TopicPartition(topic, number, at) for (topic, number), at in offsets.items()]
    answer = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)])
    entries = answer[group].result(LIMIT_S).topic_partitions
    assert [entry.error for entry in entries if entry.error] == []


@asynccontextmanager
async def reading(broker):
    reader = StatusReader(broker.metrics_address)
    try:
        yield reader
    finally:
        reader.close()


async def shown(reader, group, holds):
    """Reads until something holds of a group at `NOW_MS`; returns the group."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            assert await reader.read(timeout_s=LIMIT_S)
            groups = groups_at({"groups": groups_in([reader.picture])}, NOW_MS)
            named = [entry for entry in groups if entry["group"] == group]
            if holds(named[0] if named else None):
                return named[0] if named else None
            await asyncio.sleep(0.05)


def lags(group):
    return {
        (entry["topic"], entry["partition"]): (entry["lag"], entry["lag_seconds"])
        for entry in group["partitions"]
    }


def seen(broker, group, expected):
    """Waits until the lag of a group in records and seconds, by partition, is this."""

    async def scenario():
        async with reading(broker) as reader:
            return await shown(reader, group, lambda entry: entry and lags(entry) == expected)

    return asyncio.run(scenario())


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lag_is_records_and_age_of_the_first_waiting_record(broker, compression):
    topic = f"lag-{compression}"
    create(broker, topic, 2)
    produce(
        broker,
        topic,
        [NOW_MS - 60_000 + 1000 * n for n in range(10)],
        compression=compression,
    )
    produce(broker, topic, [NOW_MS - 5_000], partition=1)
    commit(broker, topic, {(topic, 0): 4, (topic, 1): 1})
    group = seen(broker, topic, {(topic, 0): (6, 56.0), (topic, 1): (0, 0.0)})
    assert (group["lag"], group["lag_seconds"], group["state"]) == (6, 56.0, "Empty")
    assert (group["partitions"][0]["committed"], group["partitions"][0]["end"]) == (4, 10)
    commit(broker, topic, {(topic, 0): 0})
    seen(broker, topic, {(topic, 0): (10, 60.0), (topic, 1): (0, 0.0)})
    # It is behind again with the next record, and as old as that.
    produce(broker, topic, [NOW_MS - 2_000], partition=1)
    seen(broker, topic, {(topic, 0): (10, 60.0), (topic, 1): (1, 2.0)})


def test_records_that_are_gone_are_passed_over(broker):
    admin = create(broker, "gap")
    produce(broker, "gap", [NOW_MS - 60_000 + 1000 * n for n in range(10)])
    commit(broker, "gap", {("gap", 0): 2})
    seen(broker, "gap", {("gap", 0): (8, 58.0)})
    admin.delete_records([TopicPartition("gap", 0, 7)])[TopicPartition("gap", 0)].result(LIMIT_S)
    seen(broker, "gap", {("gap", 0): (8, 53.0)})


def test_an_assigned_partition_without_a_commit_counts_from_the_log_start(broker):
    create(broker, "uncommitted", 2)
    produce(broker, "uncommitted", [NOW_MS - 9_000, NOW_MS - 8_000])
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "uncommitted",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.subscribe(["uncommitted"])

    left = threading.Event()

    def poll_until_left():
        # A poll that waits while its consumer is closed goes on waiting.
        while not left.is_set():
            consumer.poll(0.1)
        consumer.close()

    async def scenario():
        expected = {("uncommitted", 0): (2, 9.0), ("uncommitted", 1): (0, 0.0)}
        async with reading(broker) as reader:
            polling = asyncio.create_task(asyncio.to_thread(poll_until_left))
            group = await shown(
                reader, "uncommitted", lambda entry: entry and lags(entry) == expected
            )
            left.set()
            await polling
            return group

    group = asyncio.run(scenario())
    assert [entry["committed"] for entry in group["partitions"]] == [None, None]
    (member,) = group["members"]
    assert member["host"] == "127.0.0.1"
    assert member["assignments"] == [
        {"topic": "uncommitted", "partition": 0},
        {"topic": "uncommitted", "partition": 1},
    ]


def test_a_deleted_topic_and_a_deleted_group_are_gone(broker):
    admin = create(broker, "kept")
    create(broker, "deleted")
    for topic in ("kept", "deleted"):
        produce(broker, topic, [NOW_MS - 3_000])
    commit(broker, "outlives", {("kept", 0): 0, ("deleted", 0): 0})

    async def scenario():
        async with reading(broker) as reader:
            both = {("kept", 0): (1, 3.0), ("deleted", 0): (1, 3.0)}
            await shown(reader, "outlives", lambda entry: entry and lags(entry) == both)
            admin.delete_topics(["deleted"])["deleted"].result(LIMIT_S)
            # The deleted topic can be restored, and then the group goes on where it was.
            unknown = {("kept", 0): (1, 3.0), ("deleted", 0): (None, None)}
            group = await shown(reader, "outlives", lambda entry: lags(entry) == unknown)
            assert (group["lag"], group["lag_seconds"]) == (1, None)
            admin.delete_consumer_groups(["outlives"])["outlives"].result(LIMIT_S)
            await shown(reader, "outlives", lambda entry: entry is None)

    asyncio.run(scenario())


def test_a_group_that_commits_all_the_time_has_an_age_all_the_time(broker):
    create(broker, "busy")
    produce(broker, "busy", [NOW_MS - 60_000 + n for n in range(500)])
    commit(broker, "busy", {("busy", 0): 0})

    async def scenario():
        async with reading(broker) as reader:
            known = {("busy", 0): (500, 60.0)}
            await shown(reader, "busy", lambda entry: entry and lags(entry) == known)
            committed = 0
            while committed < 20:
                committed += 1
                await asyncio.to_thread(commit, broker, "busy", {("busy", 0): committed})
                assert await reader.read(timeout_s=LIMIT_S)
                groups = groups_at({"groups": groups_in([reader.picture])}, NOW_MS)
                (group,) = (entry for entry in groups if entry["group"] == "busy")
                ((lag, age),) = lags(group).values()
                # A lag and an age of one moment.
                assert age == pytest.approx((60_000 - (500 - lag)) / 1000)
            await shown(reader, "busy", lambda entry: lags(entry) == {("busy", 0): (480, 59.98)})

    asyncio.run(scenario())


def text(content):
    encoded = content if isinstance(content, bytes) else content.encode()
    return struct.pack(">h", len(encoded)) + encoded


def commit_raw(raw, group, metadata, partition=0):
    """Commits offset 0 of the topic `hostile`, as no library does; returns the error codes."""
    entry = struct.pack(">iq", partition, 0) + text(metadata)
    topic = text("hostile") + struct.pack(">i", 1) + entry
    body = text(group) + struct.pack(">i", -1) + text("") + struct.pack(">qi", -1, 1) + topic
    raw.send(OFFSET_COMMIT, 2, body)
    return struct.unpack(">h", raw.receive()[-2:])[0]


def test_hostile_names_and_bytes_cost_nobody_a_status(broker):
    create(broker, "hostile")
    produce(broker, "hostile", [NOW_MS - 1_000])
    names = ['"],["g",1', "nul\0and\nlines", "é" * 4_000, "\0" * 8_000]
    raw = Raw.plain(int(broker.bootstrap.rpartition(":")[2]))
    with raw.socket:
        join_alone(raw, "hostile-bytes", b"\xff\xfe" * 30_000)
        far = struct.pack(">hi", 0, 1) + text("hostile") + struct.pack(">iii", 2, 0, 2**31 - 1)
        join_alone(raw, "hostile-partitions", far, protocol_type="connect")
        committed = [name for name in names if commit_raw(raw, name, "\0" * 4_000) == 0]
        commit_raw(raw, "hostile-metadata", "m" * 32_000)
        assert committed[:2] == names[:2]

        async def scenario():
            async with reading(broker) as reader:
                one = {("hostile", 0): (1, 1.0)}
                for name in committed[:2]:
                    await shown(reader, name, lambda entry: entry and lags(entry) == one)
                group = await shown(reader, "hostile-partitions", lambda entry: entry)
                assert lags(group).keys() == {("hostile", 0)}, "one that exists"
                group = await shown(reader, "hostile-bytes", lambda entry: entry)
                assert group["partitions"] == []
                assert reader.picture.complete
                shown_names = {entry["group"] for entry in groups_in([reader.picture])}
                for name in committed:
                    # What is too long for a name is cut, and one group hides no other.
                    assert name.encode()[:1024].decode(errors="ignore") in shown_names

        asyncio.run(scenario())


def test_counters_are_those_of_topics(broker):
    create(broker, "counted")
    produce(broker, "counted", [NOW_MS] * 3)

    def used_by(picture, kind, name):
        return next((used for of, *used in picture.entries(kind).values() if of == name), [0])[0]

    async def scenario():
        async with reading(broker) as reader, asyncio.timeout(LIMIT_S):
            # A request counts for its client once it is answered, a moment after its records do.
            while (
                topics_in([reader.picture]).get("counted", [0, 0, 0])[2] != 3
                or used_by(reader.picture, "l", "rdkafka") <= 300
            ):
                assert await reader.read(timeout_s=LIMIT_S)
                await asyncio.sleep(0.05)
            bytes_in, bytes_out, _ = topics_in([reader.picture])["counted"]
            assert bytes_in > 300
            assert bytes_out == 0
            assert used_by(reader.picture, "u", "User:ANONYMOUS") > 300

    asyncio.run(scenario())


GROUPS, PER_GROUP, LOOKS = 100, 10, 8
PAGES, PAGE_POLLS_EVERY_S, PAGES_BYTES_PER_S_MAX = 10, 2.0, 20 * 1024


def test_an_idle_cluster_with_many_groups_behind_costs_next_to_nothing(tmp_path):
    """100 groups, and 1,000 partitions of which they have read nothing; then ten pages open."""
    world = World(tmp_path, stop_brokers_on_exit=True, scrape_interval_ms=1_000)
    world.loop["sample_interval_ms"] = 5_000

    def counted(name):
        lines = world.metrics.render().splitlines()
        (line,) = (line for line in lines if line.startswith(f"freshet_keeper_{name}_total"))
        return int(float(line.split()[-1]))

    async def scenario():
        async with world.keeping():
            world.want()
            world.wake()
            status = await world.running()
            await asyncio.to_thread(fall_behind, world, status.kafka)

            reader = StatusReader(status.metrics)
            before = await all_known(reader)
            # The keeper, too, has read all of it when it has looked twice more.
            looks = counted("scrapes")
            await until(lambda: counted("scrapes") >= looks + 2)
            looks, moved, began_s = counted("scrapes"), counted("status_bytes"), time.monotonic()
            await until(lambda: counted("scrapes") >= looks + LOOKS)
            per_s = (counted("status_bytes") - moved) / (time.monotonic() - began_s)
            print(f"{per_s:.0f} bytes/s")  # noqa: T201
            assert per_s < BYTES_PER_S_MAX
            # Nor is anything to be written to the metadata store.
            assert await all_known(reader) == before
            reader.close()
            await watched_by_ten(status.metrics, before)

    try:
        asyncio.run(scenario())
    finally:
        kill_survivors(tmp_path / "keeper/run")


async def watched_by_ten(metrics, groups):
    """Ten pages of groups are open, each asking as often as the console does."""
    async with counting(metrics) as (address, moved):
        brokers, pictures = Brokers(CLUSTER, ((0, address),)), KeptPictures()

        def look(number):
            return pictures.look(brokers, lambda table: table.whole(groups[number]["group"]))

        async def watch(number, ends_at):
            # Nobody opened them at the same moment.
            await asyncio.sleep(number * PAGE_POLLS_EVERY_S / PAGES)
            while time.monotonic() < ends_at:
                assert await asyncio.to_thread(look, number) == groups[number]
                await asyncio.sleep(PAGE_POLLS_EVERY_S)

        assert await asyncio.to_thread(look, 0) == groups[0]
        first, began_s = sum(moved), time.monotonic()
        ends_at = began_s + LOOKS
        await asyncio.gather(*(watch(number, ends_at) for number in range(PAGES)))
        per_s = (sum(moved) - first) / (time.monotonic() - began_s)
        print(f"{PAGES} pages: {first} bytes once, then {per_s:.0f} bytes/s")  # noqa: T201
        assert per_s < PAGES_BYTES_PER_S_MAX


@asynccontextmanager
async def counting(address):
    """A way to an address by which the bytes are counted; yields its own, and their numbers."""
    moved: list[int] = []
    host, _, port = address.rpartition(":")

    async def pass_on(reader, writer):
        try:
            while content := await reader.read(65_536):
                moved.append(len(content))
                writer.write(content)
                await writer.drain()
        finally:
            writer.close()

    async def serve(reader, writer):
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        ways = (pass_on(reader, far_writer), pass_on(far_reader, writer))
        await asyncio.gather(*ways, return_exceptions=True)
        for end in (writer, far_writer):
            with suppress(OSError):
                await end.wait_closed()

    serving = []
    server = await asyncio.start_server(
        lambda *streams: serving.append(asyncio.ensure_future(serve(*streams))), "127.0.0.1", 0
    )
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", moved
    await asyncio.gather(*serving)


async def all_known(reader):
    """Waits until the times of all waiting records are known. Returns the groups."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            assert await reader.read(timeout_s=LIMIT_S)
            groups = groups_in([reader.picture])
            partitions = [entry for group in groups for entry in group["partitions"]]
            if sum(bool(entry["since_ms"]) for entry in partitions) == GROUPS * PER_GROUP:
                return groups
            await asyncio.sleep(0.1)


def fall_behind(world, bootstrap):
    """Commits offset 0 of ten partitions each for 100 groups, after a record in all partitions."""
    settings = world.login(bootstrap)
    admin = AdminClient(settings)
    admin.create_topics([NewTopic("orders", GROUPS * PER_GROUP)])["orders"].result(LIMIT_S)
    producer = Producer(settings)
    for number in range(GROUPS * PER_GROUP):
        producer.produce("orders", b"x", partition=number)
    assert producer.flush(LIMIT_S) == 0
    requested: dict[str, Future[ConsumerGroupTopicPartitions]] = {}
    for group in range(GROUPS):
        partitions = range(group * PER_GROUP, (group + 1) * PER_GROUP)
        places = [TopicPartition("orders", number, 0) for number in partitions]
        request = ConsumerGroupTopicPartitions(f"group-{group}", places)
        requested |= admin.alter_consumer_group_offsets([request])
    for answer in requested.values():
        answer.result(LIMIT_S)
