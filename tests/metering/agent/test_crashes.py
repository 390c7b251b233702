"""The same story, with an agent killed at every step: in the end the true usage counts, once."""

import shutil

import pytest

from metering.events.keys import manifest_key
from metering.events.times import HOUR_MS, MINUTE_MS
from tests.metering.agent.world import START, World, crash

TOPIC = "0" * 31 + "1"
ALICE = "User:alice"
# Of rows: those of agents one after the other. Mixed: upgrades, and ways back.
EVERY_VERSION = pytest.mark.parametrize(
    "versions", [(1,), (2,), (1, 2), (2, 1, 1, 2)], ids=["blocks", "files", "mixed", "back"]
)
# More than any of the stories has.
STEPS = 400


def work(world, blocks):
    """A file of a lane is filled and split."""
    for number in range(blocks):
        world.cell.produce("c1", (TOPIC, number % 2, ALICE, number + 1))
        world.cell.consume("c1", TOPIC, ALICE, 10)
    world.cell.roll("c1")
    world.cell.split("c1")


def begin(folder, versions=(1,)):
    world = World(folder, versions)
    world.cell.add_cluster("c1")
    world.cell.start("c1")
    world.cell.create_topic("c1", TOPIC, partitions=2)
    return world


def story(world):
    """Yields whenever an agent may run."""
    for blocks in (3, 1, 5):
        # Two files, so that there is an index to drop.
        work(world, blocks)
        work(world, 1)
        yield
        world.cell.now_ms += 7 * MINUTE_MS
    world.cell.kill("c1", tail_survives=False)
    world.cell.start("c1")
    work(world, 2)
    yield
    world.cell.split("c1")
    world.cell.close("c1")
    world.cell.now_ms = START + HOUR_MS + 2 * MINUTE_MS
    yield


def check(world):
    assert world.billed_usage() == world.cell.true_usage()
    assert world.complete_hours("c1")[START]
    # The first 15 minutes of each byte are those after its own minute; nothing is deleted.
    stored = sum(world.time_rows("storage_byte_minutes").values())
    assert stored == STORED


def stored_minutes():
    """Byte-minutes of the story until the first hour's end, by hand."""
    sizes = {7: 1 + 2 + 3 + 1, 14: 1 + 1, 21: 1 + 2 + 3 + 4 + 5 + 1, 28: 1 + 2}
    return sum(size * (60 - (minute + 1)) for minute, size in sizes.items())


STORED = stored_minutes()


@EVERY_VERSION
def test_undisturbed(tmp_path, versions):
    world = begin(tmp_path, versions)
    agent = world.agent()
    for _ in story(world):
        agent.run_pass()
    check(world)


@EVERY_VERSION
@pytest.mark.parametrize("lose", [False, True], ids=["restarted", "progress lost"])
def test_killed_at_every_step(tmp_path, lose, versions):
    passes = 0
    for step in range(0, STEPS, 3 if lose else 1):
        world = begin(tmp_path / str(step), versions)
        agent, killed = world.agent(), False
        world.fuse.left = step
        for _ in story(world):
            if crash(agent):
                killed = True
                if lose:
                    shutil.rmtree(world.progress, ignore_errors=True)
                agent = world.agent()
                agent.run_pass()
        check(world)
        shutil.rmtree(tmp_path / str(step))
        if not killed:
            break
        passes += 1
    assert 10 < passes < STEPS


@EVERY_VERSION
def test_a_second_agent_changes_nothing(tmp_path, versions):
    world = begin(tmp_path, versions)
    agents = [world.agent(), world.agent()]
    for turn, _ in enumerate(story(world)):
        agents[turn % 2].run_pass()
        if turn != 2:
            agents[1 - turn % 2].run_pass()
    check(world)


@EVERY_VERSION
def test_two_agents_in_step_changes_nothing(tmp_path, versions):
    """Each agent is killed after its usage file, so that both write the same blocks."""
    world = begin(tmp_path, versions)
    for _ in story(world):
        for step in (3, 5, 6):
            world.fuse.left = step
            crash(world.agent())
            world.fuse.left = None
    world.agent().run_pass()
    check(world)


def files(folder):
    """How many usage files the undisturbed story makes."""
    world = begin(folder)
    agent = world.agent()
    for _ in story(world):
        agent.run_pass()
    return len(world.manifests())


def test_each_lost_file_shows(tmp_path):
    count = files(tmp_path / "count")
    assert count > 5
    for place in range(count):
        world = begin(tmp_path / str(place))
        agent = world.agent()
        for _ in story(world):
            agent.run_pass()
        gone = world.manifests()[place]
        (world.store.root / manifest_key(gone.key)).unlink()
        assert not world.complete_hours("c1")[START]
        assert world.lane_rows() <= world.cell.true_rows()
        # Another agent, without progress, says again what is still there, and no more.
        shutil.rmtree(world.progress)
        world.agent().run_pass()
        missing = world.cell.true_rows() - world.lane_rows()
        assert not missing or not world.complete_hours("c1")[START]


def test_storage_waits_until_all_records_of_its_time_are_in_segments(tmp_path):
    world = begin(tmp_path)
    world.cell.produce("c1", (TOPIC, 0, ALICE, 7))
    agent = world.agent()
    for _ in range(30):
        world.cell.now_ms += MINUTE_MS
        agent.run_pass()
    world.cell.roll("c1")
    world.cell.split("c1")
    agent.run_pass()
    windows = world.time_rows("storage_byte_minutes")
    # Written in the eighth minute; measured a minute late, in steps of five minutes.
    assert sum(windows.values()) == 7 * (35 - 8)
