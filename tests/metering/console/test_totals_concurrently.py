"""Ingest and publishing at the same time: whoever comes second sees what the first one did."""

import threading
from datetime import date

import pytest
from django.db import connection, connections, transaction

from console.base.common.tenancy import system_scope
from metering.models import RunningMonth
from metering.periods import MINUTE_MS, to_ms
from metering.services.comparing import compare_hours, compare_month
from metering.services.ingest import ingest_usage
from tests.metering.console.conftest import NOON
from tests.metering.console.files import Block
from tests.metering.console.world import Used, publish_day, use_minute

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clock")]
DAY = NOON.date()
MONTH = date(2026, 11, 1)
USED = Used("org_a", "cl_a", "ingress_bytes", 5)
WAIT_S = 30


def total():
    with system_scope():
        row = RunningMonth.objects.filter(cluster_id="cl_a", meter="ingress_bytes").first()
    return int(row.quantity) if row else 0


def in_threads(*works):
    """Runs things at the same time, each with a connection of its own; raises what they raise."""
    threads, errors = [thread_of(work) for work in works], []
    for thread, _ in threads:
        thread.start()
    for thread, its_errors in threads:
        thread.join(WAIT_S)
        errors += its_errors
        assert not thread.is_alive()
    assert errors == []


def overlapping(first, second):
    """Runs `second` in a thread while the transaction of `first` is open, which ends once the
    thread waits for a lock that it holds."""
    thread, errors = thread_of(second)
    with transaction.atomic():
        first()
        thread.start()
        until_somebody_waits_for_a_lock()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert errors == []


def thread_of(work):
    errors: list[Exception] = []

    def run():
        try:
            work()
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    return threading.Thread(target=run), errors


def until_somebody_waits_for_a_lock():
    """Returns once a session of this database waits for an advisory lock."""
    waiting = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
        " WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
    )
    for _ in range(WAIT_S * 100):
        with connection.cursor() as cursor:
            cursor.execute(waiting)
            if cursor.fetchone()[0]:
                return
            cursor.execute("SELECT pg_sleep(0.01)")
    raise AssertionError


def add():
    use_minute(USED, NOON)


def publish(quantity=100):
    publish_day(DAY, [Used("org_a", "cl_a", "ingress_bytes", quantity)])


@pytest.mark.parametrize(("first", "second"), [(publish, add), (add, publish)])
def test_a_published_day_counts_from_its_run_whoever_comes_first(first, second):
    add()
    overlapping(first, second)
    assert total() == 100
    assert compare_month(MONTH).named == compare_hours().named == []


def test_a_transaction_that_is_rolled_back_leaves_no_total():
    add()
    with transaction.atomic():
        add()
        publish()
        transaction.set_rollback(True)
    assert total() == 5
    assert compare_month(MONTH).named == []


def test_files_that_are_taken_in_beside_publishing_count_once(agent, store):
    """Six files of a day, with a publication of that day after each: only sums that agree."""
    quantities = range(1, 7)
    for number in quantities:
        entry = agent.entry(to_ms(NOON), to_ms(NOON) + 60 * MINUTE_MS, sequences=(number, number))
        agent.emit(NOON, entry, [Block(number, to_ms(NOON) + number * MINUTE_MS, (number,))])

    def publish_each():
        for number in quantities:
            publish(number)

    in_threads(publish_each, lambda: ingest_usage(store=store, wait=True))
    assert total() == max(quantities)
    assert compare_month(MONTH).named == compare_hours().named == []
