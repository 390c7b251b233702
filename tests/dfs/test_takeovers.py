"""Brokers over two mounts of a GlusterFS take over from each other, and nothing is lost."""

import contextlib
import signal

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from tests.brokers.test_several_brokers import (
    PARTITIONS,
    SLOTS,
    TIMEOUT_S,
    TOPIC,
    Load,
    assert_nothing_lost,
    create_topic,
    leaders_of,
    metadata_of,
    nodes_of,
    wait_spread,
)
from tests.dfs.brokers import LateClient, bootstrap_of, leaders
from tests.supervisor.run import wait_until

pytestmark = pytest.mark.full("stores")

STOOD_DOWN = 3


@contextlib.contextmanager
def loaded(brokers, note_pause):
    """Runs a load, which goes on after the block; then nothing of it is lost."""
    bootstrap = bootstrap_of(brokers)
    load = Load(bootstrap)
    try:
        wait_for_more(load)
        yield load
        wait_for_more(load)
    finally:
        load.end()
    note_pause(load)
    assert_nothing_lost(load, bootstrap, gap_max_s=TIMEOUT_S)


def wait_for_more(load):
    """Waits until each partition has had some more records."""
    due = len(load.acked) + 20 * PARTITIONS
    wait_until(lambda: len(load.acked) > due, "records are produced")


def kill(first, second):
    """The next broker starts where the first one was killed."""
    first.kill()
    second.start()


def stop(first, second):
    """The next broker starts where the first one was stopped."""
    assert first.stop() == 0, first.log.read_text()
    second.start()


def pause(first, second):
    """The next broker starts while the first one is paused, which then wakes up."""
    late = LateClient(first, partition=0)
    first.signal(signal.SIGSTOP)
    late.send()
    second.start()
    first.signal(signal.SIGCONT)
    assert late.is_refused()
    assert first.wait() == STOOD_DOWN, first.log.read_text()


@pytest.mark.parametrize(
    ("end", "state"), [(kill, "sealed"), (pause, "sealed"), (stop, "closed")], ids=lambda a: a
)
def test_the_next_broker_over_the_other_mount_has_all(one_slot, note_pause, end, state):
    first, second = one_slot.broker(0, mount=0), one_slot.broker(0, mount=1)
    with first, contextlib.ExitStack() as stack:
        create_topic(first, replicas=1)
        with loaded([first, second], note_pause) as load:
            stack.push(second)  # which ends it, if it was started
            end(first, second)
            assert one_slot.states()[0] == state
    one_slot.assert_stored(load)


@pytest.fixture
def brokers(three_slots):
    """Slot → its broker, by turns over one mount and the other; all lead partitions."""
    running = {slot: three_slots.broker(slot, mount=slot % 2) for slot in range(SLOTS)}
    with contextlib.ExitStack() as stack:
        for broker in running.values():
            stack.enter_context(broker)
        wait_until(
            lambda: all(len(nodes_of(broker)) == SLOTS for broker in running.values()),
            "each broker knows the others",
        )
        create_topic(running[0], replicas=SLOTS)
        wait_spread(running)
        yield running


def stop_all(brokers):
    for broker in brokers.values():
        assert broker.stop() == 0, broker.log.read_text()


def test_survivors_take_over_from_a_killed_broker(three_slots, brokers, note_pause):
    dead = metadata_of(brokers[0]).controller_id
    survivors = set(brokers) - {dead}
    survivor = brokers[min(survivors)]
    with loaded(brokers.values(), note_pause) as load:
        brokers[dead].kill()
        wait_until(lambda: set(leaders_of(survivor)) == survivors, "the survivors lead")
        wait_for_more(load)
        brokers[dead].start()
        wait_spread(brokers)
    stop_all(brokers)
    three_slots.assert_stored(load)


def test_a_paused_broker_that_was_fenced_acknowledges_nothing(three_slots, brokers, note_pause):
    paused = leaders(brokers[0])[0]
    survivors = set(brokers) - {paused}
    survivor = brokers[min(survivors)]
    late = LateClient(brokers[paused], partition=0)
    with loaded(brokers.values(), note_pause) as load:
        brokers[paused].signal(signal.SIGSTOP)
        late.send()
        wait_until(lambda: set(leaders_of(survivor)) == survivors, "the survivors lead")
        brokers[paused].signal(signal.SIGCONT)
        assert late.is_refused()
        assert brokers[paused].wait() == STOOD_DOWN
        brokers[paused].start()
        wait_spread(brokers)
    stop_all(brokers)
    three_slots.assert_stored(load)


def test_a_broker_that_stops_hands_over_first(three_slots, brokers, note_pause):
    with loaded(brokers.values(), note_pause) as load:
        stopped = metadata_of(brokers[0]).controller_id
        assert brokers[stopped].stop() == 0, brokers[stopped].log.read_text()
        rest = {slot: broker for slot, broker in brokers.items() if slot != stopped}
        wait_spread(rest, sorted(rest))
        wait_for_more(load)
        brokers[stopped].start()
        wait_spread(brokers)
    # Nobody took it for dead: it closed its lane itself.
    assert three_slots.states()[:SLOTS].count("closed") == 1
    stop_all(brokers)
    three_slots.assert_stored(load)


def test_partitions_move_between_mounts_as_a_client_asks(three_slots, brokers, note_pause):
    admin = KafkaAdminClient(bootstrap_servers=brokers[0].bootstrap)
    with contextlib.closing(admin), loaded(brokers.values(), note_pause):
        before = leaders(brokers[0])
        # Each node leads as many as before: else the controller moves partitions by itself.
        moved = {index: (node + 1) % SLOTS for index, node in before.items()}
        replicas = {
            TopicPartition(TOPIC, index): [node, (node + 1) % SLOTS, (node + 2) % SLOTS]
            for index, node in moved.items()
        }
        assert admin.alter_partition_reassignments(replicas) == dict.fromkeys(replicas)
        wait_until(
            lambda: all(leaders(broker) == moved for broker in brokers.values()), "all have moved"
        )
    stop_all(brokers)
