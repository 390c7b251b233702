"""Two ingests at a time, and one that the database leaves."""

import threading

import pytest
from django.db import connection, connections

from console.base.common import locks
from console.base.common.tenancy import system_scope
from metering.models import ProvisionalMinute, UsageFile
from metering.periods import MINUTE_MS, to_ms
from metering.services import absorbing, ingest
from metering.services.ingest import ingest_usage
from tests.metering.console.conftest import NOON
from tests.metering.console.files import Block

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clock")]
T = to_ms(NOON)
FILES = 12


@pytest.fixture
def files(agent):
    """Files whose blocks overlap."""
    for number in range(FILES):
        entry = agent.entry(T, T + 2 * FILES * MINUTE_MS, sequences=(number, number + 5))
        rows = [Block(index, T + index * MINUTE_MS) for index in range(number, number + 6)]
        agent.twin(f"agent-{number}").emit(NOON, entry, rows)


def in_threads(store, count):
    """Runs ingests at the same time; gives what they did."""
    start, done, errors = threading.Barrier(count), [], []

    def run():
        try:
            start.wait(timeout=30)
            done.append(ingest_usage(store=store))
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    return done


def total():
    with system_scope():
        return [int(row.quantity) for row in ProvisionalMinute.objects.all()]


def test_ingests_at_a_time_count_each_block_once(store, files, monkeypatch):
    monkeypatch.setattr(ingest, "BATCH_FILES", 1)
    in_threads(store, 4)
    ingest_usage(store=store)
    assert total() == [1] * (FILES + 5)
    assert UsageFile.objects.count() == FILES


def test_an_ingest_ends_where_another_is_at_it(store, files):
    with system_scope():
        assert locks.try_lock("usage_ingest", "local")
        (done,) = in_threads(store, 1)
    assert (done.files, done.remaining) == (0, FILES)
    assert total() == []
    assert ingest_usage(store=store).files == FILES


def test_a_connection_that_is_cut_costs_nothing(store, files, monkeypatch):
    real, calls = absorbing.absorb_files, []

    def cut(*args, **kwargs):
        calls.append(args)
        absorbed = real(*args, **kwargs)
        if len(calls) == 2:
            connection.connection.close()
        return absorbed

    monkeypatch.setattr(ingest, "absorb_files", cut)
    monkeypatch.setattr(ingest, "BATCH_FILES", 5)
    with pytest.raises(Exception, match="closed"):
        ingest_usage(store=store)
    connections.close_all()
    # The files of the first transaction stay, and those of the second one are not there at all.
    assert UsageFile.objects.count() == 5
    assert set(total()) == {1}
    monkeypatch.setattr(ingest, "absorb_files", real)
    assert ingest_usage(store=store).files == FILES - 5
    assert total() == [1] * (FILES + 5)
