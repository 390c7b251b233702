"""What an agent makes of a cell's clusters, pass by pass."""

import shutil

import pytest

from metering.agent.agent import Share
from metering.agent.rows import PRINCIPAL_CHARS_MAX
from metering.events.times import HOUR_MS, MINUTE_MS
from tests.metering.agent.world import START, World

T1 = "0" * 31 + "1"
T2 = "0" * 31 + "2"
ALICE = "User:alice"


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def running(world):
    """A cluster with a topic of two partitions, whose broker runs."""
    world.cell.add_cluster("c1")
    world.cell.start("c1")
    world.cell.create_topic("c1", T1, partitions=2)
    return world


def test_covered_blocks_become_rows_and_the_last_one_waits(running):
    cell = running.cell
    cell.produce("c1", (T1, 0, ALICE, 10), (T1, 1, ALICE, 5))
    cell.consume("c1", T1, ALICE, 7)
    running.agent().run_pass()
    assert running.lane_rows() == cell.true_rows()
    assert len(cell.true_rows()) == 2
    cell.roll("c1")
    running.agent().run_pass()
    assert running.lane_rows() == cell.true_rows()
    rows = [row for row in running.rows() if row["meter"] == "egress_bytes"]
    assert [(row["quantity"], row["cumulative"], row["billed"]) for row in rows] == [(7, 7, True)]
    assert running.manifests()[-1].topics == {f"c1/{T1}": "topic-01"}


def test_principals_that_postgresql_does_not_store_are_named_apart(running):
    """Brokers of release 0.1.0 refused no user's name."""
    odd = ["User:a\0b", "User:a\ufffdb", "User:" + "x" * 32_000]
    for size, principal in enumerate([ALICE, *odd]):
        running.cell.produce("c1", (T1, 0, principal, 10 + size))
    running.cell.roll("c1")
    running.agent().run_pass()
    named = {row["quantity"]: row["principal"] for row in running.rows() if row["block"]}
    assert (named[10], named[12]) == (ALICE, odd[1])
    assert len(set(named.values())) == len(odd) + 1
    assert "\0" not in "".join(named.values())
    assert max(map(len, named.values())) == PRINCIPAL_CHARS_MAX


def test_more_rows_than_a_file_takes_are_written_in_several(running):
    for _ in range(40):
        running.cell.produce("c1", (T1, 0, ALICE, 1))
    running.cell.roll("c1")
    running.agent().run_pass()
    manifests = running.manifests()
    assert len(manifests) > 3
    assert max(manifest.rows for manifest in manifests) <= 11
    assert running.lane_rows() == running.cell.true_rows()


def test_the_service_and_internal_topics_are_not_billed(running):
    running.cell.create_topic("c1", T2, internal=True)
    running.cell.produce("c1", (T1, 0, ALICE, 1), (T1, 0, "User:__freshet", 2), (T2, 0, ALICE, 4))
    running.cell.roll("c1")
    running.agent().run_pass()
    billed = {row["quantity"]: row["billed"] for row in running.rows() if row["block"]}
    assert billed == {1: True, 2: False, 4: False}


def test_indexes_go_once_they_are_recorded(running):
    cell = running.cell
    for _ in range(3):
        cell.produce("c1", (T1, 0, ALICE, 1))
        cell.roll("c1")
        cell.split("c1")
    agent = running.agent()
    agent.run_pass()
    lane = cell.clusters["c1"].lanes[1]
    assert sorted(lane.split - lane.dropped) == [2]
    assert running.lane_rows() == cell.true_rows()


def test_nothing_new_makes_no_file(running):
    agent = running.agent()
    agent.run_pass()
    before = len(running.manifests())
    running.cell.now_ms += MINUTE_MS
    agent.run_pass()
    assert len(running.manifests()) == before


def test_a_new_topic_is_named_once(running):
    agent = running.agent()
    agent.run_pass()
    before = len(running.manifests())
    running.cell.create_topic("c1", T2)
    for _ in range(3):
        running.cell.now_ms += MINUTE_MS // 4
        agent.run_pass()
        assert len(running.manifests()) == before + 1


def test_a_quiet_cluster_is_complete_hour_by_hour(running):
    agent = running.agent()
    while running.cell.now_ms < START + 3 * HOUR_MS + 5 * MINUTE_MS:
        agent.run_pass()
        running.cell.now_ms += MINUTE_MS
    assert list(running.complete_hours("c1").values()) == [True, True, True, False]


def test_a_sleeping_cluster_is_looked_at_once_an_hour(running):
    agent = running.agent()
    running.cell.produce("c1", (T1, 0, ALICE, 100))
    running.cell.close("c1")
    agent.run_pass()
    running.cell.looks.clear()
    while running.cell.now_ms < START + 5 * HOUR_MS + 5 * MINUTE_MS:
        agent.run_pass()
        running.cell.now_ms += MINUTE_MS
    assert len(running.cell.looks) == 5
    assert list(running.complete_hours("c1").values()) == [True] * 5 + [False]
    storage = running.time_rows("storage_byte_minutes")
    assert sum(storage.values()) == 100 * (5 * 60 - 8)


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_the_seconds_of_an_idle_broker_count_until_it_ends(running, ending):
    agent, cell = running.agent(), running.cell
    for _ in range(15):
        agent.run_pass()
        cell.now_ms += MINUTE_MS // 4
    # Nothing was to be recorded in the last passes.
    assert running.time_rows("broker_seconds") == {}
    if ending == "stopped":
        cell.close("c1")
    else:
        cell.kill("c1", tail_survives=True)
        cell.split("c1")
    for _ in range(3):
        agent.run_pass()
        cell.now_ms += HOUR_MS
    # To the last pass in which it ran.
    assert sum(running.time_rows("broker_seconds").values()) == 14 * 15


def test_lost_progress_loses_no_seconds_in_which_a_broker_wrote(running):
    cell = running.cell
    for _ in range(12):
        cell.produce("c1", (T1, 0, ALICE, 100))
        running.agent().run_pass()
        cell.now_ms += MINUTE_MS // 4
    cell.kill("c1", tail_survives=False)
    cell.split("c1")
    shutil.rmtree(running.progress)
    for _ in range(3):
        running.agent().run_pass()
        cell.now_ms += HOUR_MS
    seconds = sum(running.time_rows("broker_seconds").values())
    # All but what may have been after the last blocks that were recorded, and no more than it ran.
    assert 9 * 15 <= seconds <= 12 * 15


def test_down_for_a_day_an_agent_catches_up(running):
    cell = running.cell
    running.agent().run_pass()
    for _ in range(30):
        cell.produce("c1", (T1, 0, ALICE, 3))
        cell.roll("c1")
        cell.split("c1")
        cell.now_ms += HOUR_MS
    running.agent().run_pass()
    assert running.lane_rows() == cell.true_rows()
    assert list(running.complete_hours("c1").values())[:30] == [True] * 30
    assert max(manifest.rows for manifest in running.manifests()) <= 11


def test_a_damaged_lane_stops_neither_the_other_lanes_nor_the_other_clusters(running):
    cell = running.cell
    cell.produce("c1", (T1, 0, ALICE, 1))
    cell.kill("c1", tail_survives=True)
    cell.start("c1")
    cell.clusters["c1"].lanes[1].damaged = True
    cell.produce("c1", (T1, 0, ALICE, 2))
    cell.roll("c1")
    cell.add_cluster("c2")
    cell.start("c2")
    agent = running.agent()
    while cell.now_ms < START + HOUR_MS + 5 * MINUTE_MS:
        agent.run_pass()
        cell.now_ms += MINUTE_MS
    assert {row[9] for row in running.lane_rows()} == {2}
    assert running.metrics.error_count("lane") > 0
    assert not running.complete_hours("c1")[START]
    assert running.complete_hours("c2")[START]
    cell.clusters["c1"].lanes[1].damaged = False
    cell.split("c1")
    agent.run_pass()
    assert running.lane_rows() == cell.true_rows()
    assert running.complete_hours("c1")[START]


def test_usage_of_an_unknown_topic_waits_until_it_is_known(running):
    running.cell.produce("c1", (T2, 0, ALICE, 1))
    running.cell.roll("c1")
    agent = running.agent()
    agent.run_pass()
    assert running.lane_rows() == set()
    assert running.metrics.error_count("lane") == 1
    running.cell.create_topic("c1", T2)
    agent.run_pass()
    assert running.lane_rows() == running.cell.true_rows()


def test_a_lane_is_marked_once_all_of_it_is_recorded(running):
    cell, agent = running.cell, running.agent()
    cell.produce("c1", (T1, 0, ALICE, 10))
    agent.run_pass()
    assert cell.clusters["c1"].marked == set()
    cell.close("c1")
    cell.start("c1")
    for _ in range(5):
        cell.now_ms += HOUR_MS
        agent.run_pass()
    assert cell.clusters["c1"].marked == {1}
    assert running.lane_rows() == cell.true_rows()


def test_agents_share_clusters(world):
    names = [f"c{n}" for n in range(20)]
    for name in names:
        world.cell.add_cluster(name)
    for index in range(3):
        world.agent(Share(3, index)).run_pass()
    reported = [entry.cluster_id for manifest in world.manifests() for entry in manifest.clusters]
    assert sorted(reported) == sorted(names)


def test_a_cluster_that_is_gone_is_closed_once(running):
    agent = running.agent()
    running.cell.delete("c1")
    agent.run_pass()
    running.cell.now_ms += 2 * HOUR_MS
    agent.run_pass()
    running.cell.purge("c1")
    agent.run_pass()
    agent.run_pass()
    running.agent().run_pass()
    closed = [
        entry for manifest in running.manifests() for entry in manifest.clusters if entry.closed
    ]
    assert [entry.organization_id for entry in closed] == ["org_1"]
    running.cell.now_ms += 3 * HOUR_MS
    assert all(running.complete_hours("c1").values())


def test_a_deleted_cluster_is_covered_though_its_lane_never_ended(running):
    cell = running.cell
    cell.produce("c1", (T1, 0, ALICE, 1))
    cell.produce("c1", (T1, 0, ALICE, 2))
    lane = cell.clusters["c1"].live
    cell.clusters["c1"].status = None
    cell._spec("c1", state="deleted", since=cell.now_ms)
    agent = running.agent()
    while cell.now_ms < START + 2 * HOUR_MS + 5 * MINUTE_MS:
        agent.run_pass()
        cell.now_ms += MINUTE_MS
    assert {row[9] for row in running.lane_rows()} == {1}
    assert list(running.complete_hours("c1").values()) == [True, True, False]
    # Restored, its lane is sealed by the next broker with the block that was not sure.
    cell.restore("c1")
    cell._live("c1").end(lane.last, "sealed")
    cell.start("c1")
    agent.run_pass()
    assert {row[9] for row in running.lane_rows()} == {1, 2}
    assert running.lane_rows() == cell.true_rows()
