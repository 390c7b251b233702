"""Which hours are complete, as files come: in order, late, twice, damaged, or not at all."""

import random
from datetime import timedelta

import pytest

from console.base.common.tenancy import system_scope
from metering.events.manifests import ClusterEntry
from metering.models import JudgedHour
from metering.periods import HOUR_MS, MINUTE_MS, to_ms
from metering.services import metered_until
from metering.services.ingest import ingest_usage
from tests.metering.console.conftest import NOON
from tests.metering.console.files import Block, remove

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
STEP = 10 * MINUTE_MS
START = NOON - timedelta(hours=5)
S = to_ms(START)
FILES = 20


@pytest.fixture
def born(agent):
    """The agent, whose cluster's broker started at 7:00."""
    agent.started_at_ms = S
    return agent


def emit(agent, number, *, closed=False):
    """The file of the ten minutes of this number; the one of 0 is the cluster's first."""
    since, until = S + number * STEP, S + (number + 1) * STEP
    entry = agent.entry(
        since if number else None,
        until,
        sequences=(number, number),
        times=(since, until),
        storage=(since, until),
        ended=closed,
        closed=closed,
    )
    blocks = [Block(number, since + 1)]
    return agent.emit(START + timedelta(milliseconds=until - S), entry, blocks)


def hours(cluster_id="cl_a"):
    """Whether each hour is complete, by its number."""
    with system_scope():
        rows = JudgedHour.objects.filter(cluster_id=cluster_id).order_by("hour")
        assert all(bool(row.reason) is not row.complete for row in rows)
        return {int((row.hour - START).total_seconds()) // 3600: row.complete for row in rows}


def test_an_hour_is_complete_once_somebody_speaks_of_the_time_after_it(born, store):
    seen = []
    for number in range(8):
        emit(born, number)
        ingest_usage(store=store)
        seen.append(hours())
    assert seen[:5] == [{0: False}] * 5
    # At the full hour nobody knows yet whether clocks agree.
    assert seen[5] == {0: False}
    assert seen[6] == {0: True, 1: False}
    with system_scope():
        assert metered_until("cl_a") == START + timedelta(hours=1)


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_files_does_not_matter(born, store, seed):
    chance = random.Random(seed)
    numbers = list(range(FILES))
    chance.shuffle(numbers)
    for number in numbers:
        emit(born.twin(f"agent-{chance.randrange(3)}"), number)
        if chance.random() < 0.3:
            ingest_usage(store=store)
    ingest_usage(store=store)
    assert hours() == {0: True, 1: True, 2: True, 3: False}


@pytest.mark.parametrize("lost", [1, 8, 11, 12])
def test_a_lost_file_shows_until_another_says_the_same(born, store, lost):
    for number in range(FILES):
        manifest = emit(born, number)
        if number == lost:
            remove(store, manifest.key)
    ingest_usage(store=store)
    missing = [hour for hour, complete in hours().items() if not complete]
    assert {lost // 6} <= set(missing) <= {lost // 6 - 1, lost // 6, lost // 6 + 1, 3}
    emit(born.twin("agent-2"), lost)
    ingest_usage(store=store)
    assert hours() == {0: True, 1: True, 2: True, 3: False}


def test_a_cluster_that_is_gone_has_no_hour_that_waits(born, store):
    for number in range(8):
        emit(born, number, closed=number == 7)
    ingest_usage(store=store)
    assert hours() == {0: True, 1: True}
    with system_scope():
        assert metered_until("cl_a") == START + timedelta(hours=2)


def test_clusters_that_slept_all_the_time_are_complete_too(agent, store):
    for number in range(3):
        since = None if number == 0 else S + number * HOUR_MS
        entry = ClusterEntry(
            cluster_id="cl_sleepy",
            organization_id="org_b",
            since_ms=since,
            as_of_ms=S + (number + 1) * HOUR_MS,
        )
        agent.emit(START + timedelta(hours=number + 1), entry)
    ingest_usage(store=store)
    assert hours("cl_sleepy") == {1: True, 2: False}
    with system_scope():
        owners = JudgedHour.objects.values_list("organization_id", flat=True)
        assert set(owners) == {"org_b"}


def test_a_lane_that_does_not_know_its_beginning_judges_no_hour_of_long_ago(agent, store):
    agent.started_at_ms = 0
    entry = agent.entry(None, S, sequences=(0, 0), times=(0, S))
    agent.emit(START, entry, [Block(0, S - 1)])
    ingest_usage(store=store)
    assert 40 * 24 <= len(hours()) <= 40 * 24 + 2
