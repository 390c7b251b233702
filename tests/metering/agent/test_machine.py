"""Whatever happens, in whatever order: what counts in usage files is the truth, once, or it shows.

A cell with a cluster lives through random writes, restarts, kills, deletions, while agents are
killed at any step, run side by side, lose their progress, are away for long, and usage files get
lost. At the end all lanes end and an agent runs undisturbed. Then, of every usage file that was not
lost: rows say the same wherever they are said twice, they are the truth exactly where nothing was
lost, never more, and every hour of which something is missing is incomplete.
"""

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from metering.agent.rules import Rule
from metering.agent.storage import byte_minutes, live_spans, partition_minutes
from metering.events.keys import manifest_key
from metering.events.times import HOUR_MS, MINUTE_MS, floor_to
from tests.metering.agent.world import START, World, crash

CLUSTER = "c1"
TOPICS = [f"{number:032x}" for number in (1, 2)]
WHO = st.sampled_from(["User:alice", "User:bob", "User:__freshet"])
SIZES = st.integers(1, 1000)


class Metering(RuleBasedStateMachine):
    """See the module."""

    # Of the rows that agents make, one agent after the other.
    versions: tuple[int, ...] = (1,)

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.world = World(self.folder, self.versions)
        self.cell = self.world.cell
        self.agents = {}
        self.lost = []
        self.loses = self.deletes = True

    def teardown(self):
        try:
            self.finish()
        finally:
            shutil.rmtree(self.folder)

    @initialize(loses=st.booleans(), deletes=st.booleans())
    def begin(self, loses, deletes):
        # Lives without losses and deletions reach further.
        self.loses, self.deletes = loses, deletes
        self.cell.add_cluster(CLUSTER)
        self.cell.start(CLUSTER)
        self.cell.create_topic(CLUSTER, TOPICS[0], partitions=2, retention_ms=3 * HOUR_MS)

    @property
    def cluster(self):
        return self.cell.clusters[CLUSTER]

    @property
    def runs(self):
        return self.cluster.live is not None

    @property
    def deleted(self):
        return self.cluster.spec.state == "deleted"

    def topics(self):
        return [topic.id for topic in self.cluster.topics.values() if topic.deleted_at_ms is None]

    # The cluster.

    @precondition(lambda self: self.runs and self.topics())
    @rule(data=st.data(), who=WHO, size=SIZES)
    def produce(self, data, who, size):
        topic = data.draw(st.sampled_from(self.topics()))
        self.cell.produce(CLUSTER, (topic, 0, who, size), (topic, 1, who, size + 1))

    @precondition(lambda self: self.runs and self.topics())
    @rule(data=st.data(), who=WHO, size=SIZES)
    def consume(self, data, who, size):
        self.cell.consume(CLUSTER, data.draw(st.sampled_from(self.topics())), who, size)

    @precondition(lambda self: self.runs and self.topics())
    @rule(blocks=st.integers(1, 6), who=WHO, passed=st.integers(0, 10 * MINUTE_MS))
    def work(self, blocks, who, passed):
        """A file is filled and split."""
        for number in range(blocks):
            self.cell.produce(CLUSTER, (self.topics()[0], 0, who, number + 1))
            self.cell.consume(CLUSTER, self.topics()[0], who, 1)
        self.cell.roll(CLUSTER)
        self.cell.split(CLUSTER)
        self.cell.now_ms += passed

    @precondition(lambda self: self.runs)
    @rule()
    def roll(self):
        self.cell.roll(CLUSTER)

    @precondition(lambda self: not self.deleted)
    @rule()
    def split(self):
        self.cell.split(CLUSTER)

    @precondition(lambda self: self.runs)
    @rule(tail_survives=st.booleans())
    def kill(self, tail_survives):
        self.cell.kill(CLUSTER, tail_survives=tail_survives)

    @precondition(lambda self: self.runs)
    @rule()
    def close(self):
        self.cell.close(CLUSTER)

    @precondition(lambda self: not self.runs and not self.deleted)
    @rule()
    def start(self):
        self.cell.start(CLUSTER)

    @precondition(lambda self: not self.deleted and len(self.cluster.topics) < 2)
    @rule(internal=st.booleans())
    def create_topic(self, internal):
        self.cell.create_topic(CLUSTER, TOPICS[1], partitions=2, internal=internal)

    @precondition(lambda self: self.deletes and self.topics())
    @rule(data=st.data())
    def delete_topic(self, data):
        self.cell.delete_topic(CLUSTER, data.draw(st.sampled_from(self.topics())))

    @precondition(lambda self: self.deletes and not self.deleted)
    @rule()
    def delete(self):
        self.cell.delete(CLUSTER)

    @precondition(lambda self: self.deleted)
    @rule()
    def restore(self):
        self.cell.restore(CLUSTER)

    @rule(passed=st.sampled_from([1, 999, 20_000, MINUTE_MS, 7 * MINUTE_MS, HOUR_MS]))
    def wait(self, passed):
        self.cell.now_ms += passed

    # Agents.

    @rule(number=st.integers(0, 1))
    def meter(self, number):
        agent = self.agents.setdefault(number, self.world.agent())
        agent.run_pass()

    @rule(number=st.integers(0, 1), step=st.integers(0, 12))
    def meter_and_die(self, number, step):
        agent = self.agents.setdefault(number, self.world.agent())
        self.world.fuse.left = step
        crash(agent)
        self.world.fuse.left = None
        del self.agents[number]

    @rule()
    def lose_progress(self):
        shutil.rmtree(self.world.progress, ignore_errors=True)
        self.agents.clear()

    @precondition(lambda self: self.loses and not self.lost)
    @rule(data=st.data(), which=st.sampled_from(["data", "manifest", "both", "harmed"]))
    def lose_a_file(self, data, which):
        manifests = self.world.manifests()
        if not manifests:
            return
        gone = data.draw(st.sampled_from(manifests))
        self.lost.append(gone)
        paths = {
            "data": [gone.key],
            "manifest": [manifest_key(gone.key)],
            "both": [gone.key, manifest_key(gone.key)],
            "harmed": [],
        }[which]
        for path in paths:
            (self.world.store.root / path).unlink()
        if which == "harmed":
            (self.world.store.root / gone.key).write_bytes(b"PAR1")

    @invariant()
    def nothing_is_said_that_is_not_true(self):
        if CLUSTER in self.cell.clusters:
            truth = self.cell.true_usage()
            for place, quantity in self.world.billed_usage().items():
                assert quantity <= truth.get(place, 0), place

    # The end.

    def finish(self):
        if CLUSTER not in self.cell.clusters:
            return
        if self.deleted:
            self.cell.restore(CLUSTER)
        if not self.runs:
            self.cell.start(CLUSTER)
        self.cell.close(CLUSTER)
        end = floor_to(self.cell.now_ms, HOUR_MS) + HOUR_MS
        self.cell.now_ms = end + 2 * MINUTE_MS
        self.world.agent().run_pass()
        billed, truth = self.world.billed_usage(), self.cell.true_usage()
        complete = self.world.complete_hours(CLUSTER)
        assert billed.keys() <= truth.keys()
        for place, quantity in truth.items():
            missing = quantity - billed.get(place, 0)
            assert missing >= 0, place
            assert not missing or not complete[floor_to(place[-1], HOUR_MS)], place
        if not self.lost:
            assert billed == truth
            assert [hour for hour, whole in complete.items() if not whole] == [end]
        self.check_time(complete)

    def check_time(self, complete):
        """Storage and partition time of the complete hours, and never more than there was."""
        for meter, most in (
            ("partition_minutes", self.most_partitions()),
            ("storage_byte_minutes", self.most_stored()),
        ):
            totals: dict[tuple[object, int], int] = {}
            for (_, topic, _, since, _), quantity in self.world.time_rows(meter).items():
                place = (topic, floor_to(since, HOUR_MS))
                totals[place] = totals.get(place, 0) + quantity
            for place, quantity in totals.items():
                assert quantity <= most.get(place, 0), (meter, place)
            # Of a topic that is deleted manifests go too, before they may have been read.
            exact = {
                place
                for place in most
                if complete.get(place[1])
                and (
                    meter == "partition_minutes"
                    or self.cluster.topics[place[0]].deleted_at_ms is None
                )
            }
            assert {place: totals.get(place, 0) for place in exact} == {
                place: most[place] for place in exact
            }

    def hours(self):
        return range(START, self.cell.now_ms, HOUR_MS)

    def most_partitions(self):
        return {
            (topic.id, hour): partition_minutes(topic, spans)
            for topic in self.cluster.topics.values()
            for hour in self.hours()
            if (spans := live_spans((hour, hour + HOUR_MS), topic, self.cluster.spec.deletions))
        }

    def most_stored(self):
        most: dict[tuple[object, int], int] = {}
        for topic in self.cluster.topics.values():
            for place in {*self.cluster.segments, *self.cluster.let_go, *self.cell.remembered}:
                if place[0] != topic.id:
                    continue
                for hour in self.hours():
                    spans = live_spans((hour, hour + HOUR_MS), topic, self.cluster.spec.deletions)
                    kept = self.cell.stored(CLUSTER, place)
                    rule = Rule(topic.retention_ms, topic.retention_bytes)
                    key = (topic.id, hour)
                    most[key] = most.get(key, 0) + byte_minutes(kept, rule, spans)
        return most


class MeteringOfFiles(Metering):
    """The same with rows that are sums over lane files."""

    versions = (2,)


class MeteringOfBoth(Metering):
    """The same with agents that are upgraded, and go back."""

    versions = (1, 2, 2, 1)


for machine in (Metering, MeteringOfFiles, MeteringOfBoth):
    machine.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestMetering = Metering.TestCase
TestMeteringOfFiles = MeteringOfFiles.TestCase
TestMeteringOfBoth = MeteringOfBoth.TestCase
