"""Rows of version 2: sums over lane files that ended, and over nothing else."""

import pytest

from metering.events.records import FILES_VERSION
from metering.events.times import MINUTE_MS
from tests.metering.agent.world import World

TOPIC = "0" * 31 + "1"
ALICE = "User:alice"


@pytest.fixture
def world(tmp_path):
    """A cluster whose broker runs, and agents that make sums."""
    world = World(tmp_path, versions=(FILES_VERSION,))
    world.cell.add_cluster("c1")
    world.cell.start("c1")
    world.cell.create_topic("c1", TOPIC)
    return world


def fill(world, blocks):
    """A file of a lane is filled, a block a minute, and split."""
    for number in range(blocks):
        world.cell.produce("c1", (TOPIC, 0, ALICE, number + 1))
        world.cell.now_ms += MINUTE_MS
    world.cell.roll("c1")
    world.cell.split("c1")


def lane_entries(world):
    """The entries of lanes in all manifests, in order."""
    return [
        lane
        for manifest in world.manifests()
        for cluster in manifest.clusters
        for lane in cluster.lanes
    ]


def test_a_file_counts_once_it_has_ended_though_nothing_follows(world):
    world.cell.produce("c1", (TOPIC, 0, ALICE, 10))
    world.cell.produce("c1", (TOPIC, 0, ALICE, 5))
    world.agent().run_pass()
    assert world.billed_usage() == {}
    # The broker ends it by its age, and writes nothing into the next one but a checkpoint.
    world.cell.roll("c1")
    world.agent().run_pass()
    assert world.billed_usage() == world.cell.true_usage()
    assert sum(world.billed_usage().values()) == 15


def test_a_row_has_all_of_a_minute_and_the_counter_at_its_end(world):
    for _ in range(3):
        world.cell.produce("c1", (TOPIC, 0, ALICE, 10))
        world.cell.consume("c1", TOPIC, ALICE, 7)
    world.cell.now_ms += MINUTE_MS
    world.cell.consume("c1", TOPIC, ALICE, 7)
    world.cell.roll("c1")
    world.agent().run_pass()
    rows = sorted(
        (row["meter"], row["window_start_ms"], row["quantity"], row["cumulative"])
        for row in world.rows()
        if row["lane_file"] is not None
    )
    first, second = sorted({start for _, start, _, _ in rows})
    assert rows == [
        ("egress_bytes", first, 21, 21),
        ("egress_bytes", second, 7, 28),
        ("ingress_bytes", first, 30, None),
    ]


def test_files_behind_lost_ones_name_blocks_of_their_entry(world):
    fill(world, 3)
    fill(world, 2)
    fill(world, 1)
    # An agent of a copy of this cell metered the first two.
    world.cell.drop_indexes("c1", 1, below_file=2)
    world.agent().run_pass()
    (entry,) = [lane for lane in lane_entries(world) if lane.files]
    (last,) = entry.files
    assert (last.file, last.first_sequence) == (2, entry.first_sequence)
    assert last.last_sequence <= entry.last_sequence
    lost = {usage for usage in world.cell.true_usage() if usage[2] < 2}
    assert world.billed_usage().keys() == world.cell.true_usage().keys() - lost


def test_a_file_that_goes_while_it_is_read_is_not_summed_up(world, monkeypatch):
    fill(world, 4)
    fill(world, 1)
    fill(world, 1)
    cell = world.cell
    cell.blocks_read = 2
    read_lane, readings = cell.read_lane, []

    def read_and_drop(*args, **given):
        readings.append(read_lane(*args, **given))
        # After a part of the first file was read.
        if len(readings) == 1:
            cell.drop_indexes("c1", 1, below_file=1)
        return readings[-1]

    monkeypatch.setattr(cell, "read_lane", read_and_drop)
    agent = world.agent()
    agent.run_pass()
    assert readings[1].gap is not None
    # No sum of a half, which would take the place of what the other agent recorded.
    assert not [usage for usage in world.billed_usage() if usage[2] == 0]
    assert world.metrics.error_count("lane") == 1
    agent.run_pass()
    rest = {place: size for place, size in cell.true_usage().items() if place[2] > 0}
    assert world.billed_usage() == rest
