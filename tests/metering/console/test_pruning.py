"""What is old goes, what somebody may ask for stays."""

from datetime import timedelta
from pathlib import Path

import pytest

from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.choices import HoursIn
from metering.events.keys import data_key, log_key, manifest_key
from metering.models import FileCoverage, RollupRun, UsageFile, UsageRow
from metering.periods import FILES_KEPT, to_ms
from metering.services.pruning import FOLDERS_KEPT, prune_files, prune_folders, prune_usage
from metering.services.rollup import roll_up
from metering.services.run_folders import HOURS, MANIFEST, RunFolder, run_store
from tests.metering.console.conftest import NOON
from tests.metering.console.jobs import plain_job
from tests.metering.console.test_rollup import TODAY, emit, home

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "home")]
__all__ = ["home"]
DAY = timedelta(days=1)


def test_folders_of_old_runs_go_and_their_rows_stay(agent, clock):
    emit(agent, [0])
    run = roll_up(day=TODAY, job=plain_job)
    emit(agent.twin("agent-2"), [1])
    corrected = roll_up(day=TODAY, job=plain_job)
    clock.now += FOLDERS_KEPT - 2 * DAY
    assert prune_folders() == 0
    clock.now += 3 * DAY
    assert prune_usage() == (1, 0)
    assert not Path(RunFolder(run.day, run.pk).path("")).exists()
    # Hours of the day are read from the other one.
    assert Path(RunFolder(run.day, corrected.pk).path(HOURS)).exists()
    with system_scope():
        assert UsageRow.objects.current().exists()
    assert prune_usage() == (0, 0)


def test_hours_go_after_twenty_five_months(agent, clock):
    emit(agent, [0])
    roll_up(day=TODAY, job=plain_job)
    clock.now += FILES_KEPT - 2 * DAY
    assert prune_folders() == 0
    clock.now += 3 * DAY
    assert prune_folders() == 1
    assert list(run_store().list("")) == []


def test_the_folder_of_a_run_whose_hours_are_rows_goes(agent, clock):
    emit(agent, [0])
    roll_up(day=TODAY, job=job_of_the_release_before)
    clock.now += FOLDERS_KEPT + 2 * DAY
    assert prune_folders() == 1


def job_of_the_release_before(run, folder, say):
    run.hours_in = HoursIn.TABLE
    return plain_job(run, folder, say)


def test_conflicting_rows_a_run_that_runs_and_what_is_no_run_stay(agent, clock):
    emit(agent, [0])
    emit(agent.twin("agent-2"), [0], quantity=7)
    conflicting = roll_up(day=TODAY, job=plain_job)
    running = RollupRun.objects.create(cell=config().cell.id, day=TODAY)
    RunFolder(running.day, running.pk).write(MANIFEST, b"{}")
    run_store().put_new("notes", b"of somebody")
    before = list(run_store().list(""))
    clock.now += FOLDERS_KEPT + 2 * DAY
    assert prune_folders() == 0
    assert list(run_store().list("")) == before
    assert any(f"/run_id={conflicting.pk}/" in key for key in before)


def test_files_and_what_is_known_of_them_go_after_twenty_five_months(agent, store, clock):
    emit(agent, [0])
    roll_up(day=TODAY, job=plain_job)
    statement = log_key(config().cell.id, TODAY, "cl_a")
    store.put_new(statement, b"{}")
    store.put_new(data_key(config().cell.id, to_ms(NOON) + 1, "0" * 16), b"never taken in")
    clock.now += FILES_KEPT - 2 * DAY
    young = emit(agent, [1], at=clock.now)
    assert prune_files() == 0
    assert len(list(store.list(""))) == 6
    clock.now += 4 * DAY
    assert prune_files() == 1
    assert list(store.list("")) == [manifest_key(young.key), young.key]
    with system_scope():
        assert not UsageFile.objects.exists()
        assert not FileCoverage.objects.exists()
