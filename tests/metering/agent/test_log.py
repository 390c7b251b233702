"""What agents state of the log, against what was written; and that only what is known is stated."""

import pytest

from metering.agent.log import gap_of
from metering.events.errors import UsageFormatError
from metering.events.keys import log_key, log_prefix
from metering.events.log import encode_statement, parse_statement
from metering.events.times import DAY_MS, HOUR_MS, MINUTE_MS, day_of, day_start_ms
from tests.metering.agent.world import CELL, START, World

TODAY = day_of(START)
DAY_START = day_start_ms(TODAY)
MIDNIGHT = DAY_START + DAY_MS
TOPIC, OTHER = "0" * 32, "1" * 32


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    world.cell.add_cluster("cl_1")
    world.cell.start("cl_1")
    world.cell.create_topic("cl_1", TOPIC, partitions=2)
    return world


def at(world, now_ms):
    world.cell.now_ms = now_ms


def write(world, *entries):
    world.cell.produce("cl_1", *((t, p, "User:a", n) for t, p, n in entries))


def split(world):
    world.cell.roll("cl_1")
    world.cell.split("cl_1")


def statement(world, day=TODAY, cluster="cl_1"):
    return parse_statement(world.store.get(log_key(CELL, day, cluster)))


def stated(world, day=TODAY):
    return {
        (partition.topic_id, partition.partition): partition.bytes
        for partition in statement(world, day).partitions
    }


def test_a_day_is_stated_when_it_is_over_and_all_of_it_is_split(world):
    agent = world.agent()
    write(world, (TOPIC, 0, 5), (TOPIC, 1, 7))
    split(world)
    at(world, MIDNIGHT - MINUTE_MS)
    write(world, (TOPIC, 0, 11))
    agent.run_pass()
    at(world, MIDNIGHT + 3 * MINUTE_MS)
    agent.run_pass()
    # The last file is not split yet, so nobody can say what it holds.
    assert list(world.store.list(log_prefix(CELL, TODAY))) == []
    split(world)
    agent.run_pass()
    assert stated(world) == {(TOPIC, 0): 16, (TOPIC, 1): 7}
    assert statement(world).gap == ""
    first = world.store.get(log_key(CELL, TODAY, "cl_1"))
    at(world, MIDNIGHT + HOUR_MS)
    world.agent().run_pass()
    assert world.store.get(log_key(CELL, TODAY, "cl_1")) == first


def test_a_file_across_midnight_counts_to_the_day_of_its_last_block(world):
    agent = world.agent()
    at(world, MIDNIGHT - 1)
    write(world, (TOPIC, 0, 5), (TOPIC, 1, 7))
    at(world, MIDNIGHT)
    write(world, (TOPIC, 0, 11))
    split(world)
    at(world, MIDNIGHT + 2 * MINUTE_MS)
    agent.run_pass()
    assert stated(world) == {(TOPIC, 1): 7}
    at(world, MIDNIGHT + DAY_MS + 2 * MINUTE_MS)
    agent.run_pass()
    assert stated(world, day_of(MIDNIGHT)) == {(TOPIC, 0): 16}


def test_what_retention_let_go_is_remembered_and_what_was_deleted_is_said_to_be_gone(world):
    world.cell.create_topic("cl_1", OTHER)
    write(world, (TOPIC, 0, 5), (OTHER, 0, 9))
    split(world)
    world.cell.retain("cl_1", TOPIC, 0, 1)
    world.agent().run_pass()
    world.cell.delete_topic("cl_1", OTHER)
    at(world, MIDNIGHT + 2 * MINUTE_MS)
    # Another agent, which never saw the topic's segments.
    world.agent().run_pass()
    assert stated(world) == {(TOPIC, 0): 5}
    assert statement(world).gone_topics == (OTHER,)


def test_days_that_an_agent_missed_are_stated_as_far_as_manifests_remember(world):
    write(world, (TOPIC, 0, 5))
    split(world)
    world.cell.close("cl_1")
    at(world, MIDNIGHT + DAY_MS + HOUR_MS)
    world.agent().run_pass()
    assert stated(world) == {(TOPIC, 0): 5}
    assert stated(world, day_of(MIDNIGHT)) == {}
    assert gap_of(
        since_ms=DAY_START,
        until_ms=MIDNIGHT,
        as_of_ms=DAY_START + 96 * HOUR_MS,
        unsplit_since_ms=MIDNIGHT,
    ).startswith("it was made 3 days, 0:00:00 after the day")


def test_a_deleted_cluster_whose_last_records_were_never_split_says_so(world):
    write(world, (TOPIC, 0, 5))
    world.cell.kill("cl_1", tail_survives=True)
    world.cell.delete("cl_1")
    at(world, MIDNIGHT + 2 * MINUTE_MS)
    world.agent().run_pass()
    assert "never came into objects" in statement(world).gap


def test_a_lane_that_cannot_be_read_delays_the_statement(world):
    write(world, (TOPIC, 0, 5))
    world.cell.close("cl_1")
    world.agent().run_pass()
    at(world, MIDNIGHT + 2 * MINUTE_MS)
    lane = world.cell.clusters["cl_1"].lanes[1]
    agent = world.agent()
    lane.damaged = True
    agent.run_pass()
    assert list(world.store.list(log_prefix(CELL, TODAY))) == []
    lane.damaged = False
    agent.run_pass()
    assert stated(world) == {(TOPIC, 0): 5}


def test_two_agents_state_a_day_once(world):
    write(world, (TOPIC, 0, 5))
    world.cell.close("cl_1")
    at(world, MIDNIGHT + 2 * MINUTE_MS)
    one, other = world.agent(), world.agent()
    one.run_pass()
    other.run_pass()
    assert len(list(world.store.list(log_prefix(CELL, TODAY)))) == 1


def test_statements_are_read_back_and_others_refused(world):
    write(world, (TOPIC, 0, 5), (TOPIC, 1, 7))
    split(world)
    at(world, MIDNIGHT + 2 * MINUTE_MS)
    world.agent().run_pass()
    stored = statement(world)
    assert parse_statement(encode_statement(stored)) == stored
    good = encode_statement(stored)
    for bad in (
        b"",
        b"[]",
        good.replace(b'"version":1', b'"version":2'),
        good.replace(b",5]", b",-5]"),
        good.replace(b'"gap":"",', b""),
    ):
        with pytest.raises(UsageFormatError):
            parse_statement(bad)
