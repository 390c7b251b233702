"""Two roll-ups of a day at a time."""

import threading

import pytest
from django.db import connections

from metering.errors import RollupBusy
from metering.models import RollupPointer, RollupRun
from metering.services.rollup import roll_up
from tests.metering.console.jobs import plain_job
from tests.metering.console.test_rollup import TODAY, emit, home, rows

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("clock", "home")]
__all__ = ["home"]


def test_the_second_learns_who_holds_the_day(agent):
    emit(agent, [0, 1])
    begun, go_on, errors = threading.Event(), threading.Event(), []

    def slow(run, folder, say):
        begun.set()
        assert go_on.wait(timeout=60)
        return plain_job(run, folder, say)

    def first():
        try:
            roll_up(day=TODAY, job=slow)
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert begun.wait(timeout=60)
        run = RollupRun.objects.get()
        with pytest.raises(RollupBusy, match=f"{run.pk} on .*, process [0-9]+ rolls {TODAY} up"):
            roll_up(day=TODAY, job=plain_job)
    finally:
        go_on.set()
        thread.join()
    assert errors == []
    assert RollupRun.objects.count() == 1
    assert rows("day") == {("ingress_bytes", -12): 201}


def test_of_many_at_a_time_one_publishes(agent):
    emit(agent, [0, 1])
    start, outcomes = threading.Barrier(4), []

    def run():
        try:
            start.wait(timeout=60)
            outcomes.append(roll_up(day=TODAY, job=plain_job).state)
        except RollupBusy:
            outcomes.append("busy")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("published") == 1
    assert set(outcomes) <= {"published", "unchanged", "busy"}
    assert RollupPointer.objects.count() == 1
    assert rows("day") == {("ingress_bytes", -12): 201}
