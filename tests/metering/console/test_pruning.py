"""What is old goes, what somebody may ask for stays."""

from datetime import timedelta

import pytest

from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.models import FileCoverage, RollupRun, UsageFile, UsageRow
from metering.services.pruning import (
    FILES_KEPT,
    FOLDERS_KEPT,
    prune_files,
    prune_folders,
    prune_usage,
)
from metering.services.rollup import roll_up, work_folder
from tests.metering.console.jobs import plain_job
from tests.metering.console.test_rollup import TODAY, emit, home

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "home")]
__all__ = ["home"]
DAY = timedelta(days=1)


def test_folders_of_old_runs_go_and_their_rows_stay(agent, clock):
    emit(agent, [0])
    run = roll_up(day=TODAY, job=plain_job)
    clock.now += FOLDERS_KEPT - 2 * DAY
    assert prune_folders() == 0
    clock.now += 3 * DAY
    assert prune_usage() == (1, 0)
    assert not work_folder(run).parent.exists()
    with system_scope():
        assert UsageRow.objects.current().exists()
    assert prune_usage() == (0, 0)


def test_conflicting_rows_a_run_that_runs_and_what_is_no_run_stay(agent, clock):
    emit(agent, [0])
    emit(agent.twin("agent-2"), [0], quantity=7)
    conflicting = roll_up(day=TODAY, job=plain_job)
    running = RollupRun.objects.create(cell=config().cell.id, day=TODAY)
    work_folder(running).mkdir()
    other = config().usage.rollups / "notes"
    other.mkdir()
    clock.now += FOLDERS_KEPT + 2 * DAY
    assert prune_folders() == 0
    assert work_folder(conflicting).exists()
    assert work_folder(running).exists()
    assert other.exists()


def test_what_is_known_of_files_goes_after_twenty_five_months(agent, clock):
    emit(agent, [0])
    roll_up(day=TODAY, job=plain_job)
    clock.now += FILES_KEPT - 2 * DAY
    assert prune_files() == 0
    clock.now += 4 * DAY
    assert prune_files() == 1
    with system_scope():
        assert not UsageFile.objects.exists()
        assert not FileCoverage.objects.exists()
