"""How far a job is: kept in its run's row while it runs, and shown to staff."""

from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.db.models import QuerySet

from metering.models import RollupRun
from metering.services.progress import JobProgress, parse_progress, running_jobs
from metering.services.rollup import roll_up
from tests.metering.console.jobs import plain_job
from tests.metering.console.test_rollup import TODAY, emit, home, rows
from tests.metering.console.test_rollup_command import command

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "home")]
__all__ = ["home"]
CELL = "local"
LATER = timedelta(minutes=3)
LINE = "stage 4 of 6: write hours and days: 18 of 64 tasks, 2750000 rows and 181403648 bytes read"


@pytest.mark.parametrize(
    ("line", "progress"),
    [
        ("stage 1 of 6: find 12 usage files\n", JobProgress(1, 6, "find 12 usage files")),
        (LINE, JobProgress(4, 6, "write hours and days", 18, 64, 2750000, 181403648)),
        ("some rows are incomplete: looking at each file", None),
        ("WARN stage 1 of 6: of another program", None),
    ],
)
def test_lines_of_a_job_say_how_far_it_is(line, progress):
    assert parse_progress(line) == progress


def test_staff_see_how_far_a_running_job_is(agent, clock):
    emit(agent, [0, 1])
    jobs, texts = [], []

    def job(run, folder, say):
        jobs.append(running_jobs(CELL)[0])
        clock.now += LATER
        say(LINE)
        say("looking at each file")
        jobs.append(running_jobs(CELL)[0])
        texts.append(command("usage_status"))
        return plain_job(run, folder, say)

    assert "running jobs: none" in command("usage_status")
    run = roll_up(day=TODAY, job=job)
    begun, later = jobs
    assert (begun.id, begun.job, begun.day, begun.progress) == (run.pk, "rollup", TODAY, None)
    assert later.progress == parse_progress(LINE)
    assert later.reported_at == begun.reported_at + LATER
    assert "running jobs: 1" in texts[0]
    assert "stage 4 of 6: write hours and days, 18 of 64 tasks, 2750000 rows" in texts[0]
    # A run that is over keeps how far it came, and is no running one.
    assert running_jobs(CELL) == []
    assert RollupRun.objects.get().progress["what"] == "all of it"


def test_a_job_goes_on_where_its_progress_cannot_be_kept(agent, monkeypatch):
    emit(agent, [0, 1])
    said: list[str] = []
    update = QuerySet.update

    def failing(self, **values):
        if "progress" in values:
            raise DatabaseError
        return update(self, **values)

    monkeypatch.setattr(QuerySet, "update", failing)
    assert roll_up(day=TODAY, job=plain_job, say=said.append).state == "published"
    assert "stage 1 of 1: all of it" in said
    assert rows("day") == {("ingress_bytes", -12): 201}
