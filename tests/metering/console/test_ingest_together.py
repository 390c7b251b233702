"""Files that are taken in together leave what they leave one by one, bad ones among them too."""

import random
from dataclasses import replace

import pytest

from console.base.common.tenancy import system_scope
from metering import models
from metering.choices import FileState
from metering.periods import MINUTE_MS, to_ms
from metering.services import ingest
from metering.services.comparing import compare_hours, compare_month
from metering.services.ingest import ingest_usage
from tests.metering.console.conftest import NOON
from tests.metering.console.files import Block, Window
from tests.metering.console.world import TOPIC_ID

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
T = to_ms(NOON)
MINUTES = 6
# With the columns that say when something was written, which differ.
TABLES = {
    models.ProvisionalMinute: (),
    models.RunningMonth: (),
    models.RunningDay: (),
    models.RunningHour: (),
    models.MonthPart: (),
    models.ProvisionalPart: (),
    models.LaneCoverage: ("changed_at",),
    models.ClusterCoverage: (),
    models.JudgedHour: (),
    models.TopicName: (),
    models.FileCoverage: (),
    models.UsageFile: ("found_at", "tried_at"),
}


def write_files(agent, chance):
    """Files of three clusters by two agents each, which overlap; the last cluster ends."""
    for number in range(MINUTES):
        start = T + number * MINUTE_MS
        for cluster in ("cl_a", "cl_b", "cl_c"):
            for name in ("agent-1", "agent-2"):
                of_cluster = replace(
                    agent,
                    cluster_id=cluster,
                    name=name,
                    topics={TOPIC_ID: f"orders-{number // 2}", "b" * 32: "b"},
                )
                first = max(0, number - chance.randrange(3))
                span = (T + first * MINUTE_MS, start + MINUTE_MS)
                of_cluster.emit(
                    NOON,
                    of_cluster.entry(
                        span[0] if first else None,
                        span[1],
                        sequences=(first, number),
                        storage=span,
                        closed=cluster == "cl_c" and number == MINUTES - 1,
                    ),
                    [
                        Block(
                            block,
                            T + block * MINUTE_MS,
                            (block + 1, 2**62),
                            principal=f"User:{block % 3}",
                            billed=block % 4 > 0,
                        )
                        for block in range(first, number + 1)
                    ],
                    [
                        Window(T + n * MINUTE_MS, T + (n + 1) * MINUTE_MS, 10 + n)
                        for n in range(first, number + 1)
                    ],
                )


def write_bad_files(agent):
    """One that Python refuses, and two that PostgreSQL does, of a cluster of their own."""
    bad = replace(agent, cluster_id="cl_bad")
    entry = bad.entry(None, T + MINUTE_MS, sequences=(0, 0))
    bad.emit(NOON, entry, [Block(0, T, (-1,))])
    bad.twin("agent\0").emit(NOON, entry, [Block(0, T)])
    bad.twin("agent-3").emit(NOON, entry, [Block(0, T, topic_id="0" * 33)])


def everything():
    """The rows of all tables, in the order of their keys."""
    rows = {}
    with system_scope():
        for model, left_out in TABLES.items():
            names = [f.name for f in model._meta.concrete_fields if f.name not in left_out]
            rows[model] = sorted(map(repr, model._default_manager.values_list(*names)))
    return rows


def forget_everything():
    with system_scope():
        for model in reversed(TABLES):
            model._default_manager.all().delete()
        models.IngestState.objects.all().delete()


@pytest.mark.parametrize("with_bad", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_files_together_leave_what_they_leave_one_by_one(agent, store, monkeypatch, seed, with_bad):
    write_files(agent, random.Random(seed))
    if with_bad:
        write_bad_files(agent)
    results, counts = [], []
    for at_once in (1, 7, 500):
        monkeypatch.setattr(ingest, "BATCH_FILES", at_once)
        done = ingest_usage(store=store)
        counts.append((done.files, done.damaged, done.rows))
        results.append(everything())
        assert compare_month(NOON.date().replace(day=1)).named == compare_hours().named == []
        forget_everything()
    assert counts[0] == counts[1] == counts[2]
    assert counts[0][:2] == (MINUTES * 6, 3 if with_bad else 0)
    for model, rows in results[0].items():
        assert rows, model
        assert rows == results[1][model] == results[2][model], model
    assert sum(FileState.DAMAGED in row for row in results[0][models.UsageFile]) == counts[0][1]


def test_a_batch_of_good_files_is_written_by_as_few_statements_as_one(
    agent, store, django_assert_max_num_queries, monkeypatch
):
    """However many agents there are, what a pass writes it writes at once."""
    for number in range(40):
        of_cluster = replace(agent, cluster_id=f"cl_{number}", name=f"agent-{number}")
        entry = of_cluster.entry(None, T + MINUTE_MS, sequences=(0, 0), storage=(T, T + MINUTE_MS))
        of_cluster.emit(NOON, entry, [Block(0, T)], [Window(T, T + MINUTE_MS, 5)])
    with django_assert_max_num_queries(42):
        assert ingest_usage(store=store).files == 40


@pytest.mark.parametrize(
    "principal",
    ['User:"quoted"', "User:back\\slash\\", "User:{a,b}", "User:NULL", "NULL", " ", "é\n"],
)
def test_names_of_any_characters_are_kept(agent, store, principal):
    entry = agent.entry(None, T + MINUTE_MS, sequences=(0, 0))
    agent.emit(NOON, entry, [Block(0, T, principal=principal), Block(0, T, principal="User:b")])
    assert ingest_usage(store=store).files == 1
    with system_scope():
        names = models.ProvisionalMinute.objects.values_list("principal", flat=True)
        assert set(names) == {principal, "User:b"}
