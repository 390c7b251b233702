"""`manage.py rollup` with the real Spark, once from end to end; and what else staff see."""

import os
import signal
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from metering.checks import AgentSilent, IngestStopped, check_metering
from metering.models import RollupRun
from metering.periods import DAY, HOUR_MS, MINUTE_MS
from metering.services import spark
from metering.services.ingest import ingest_usage
from metering.services.rollup import roll_up
from tests.metering.console.conftest import NOON
from tests.metering.console.files import Block, Window, overwrite
from tests.metering.console.jobs import plain_job
from tests.metering.console.test_rollup import TODAY, T, emit, home, rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock", "home")]
__all__ = ["home"]
MINUTE = timedelta(minutes=1)


def command(*words):
    out = StringIO()
    call_command(*words, stdout=out, no_color=True)
    return out.getvalue()


def test_a_day_goes_through_spark_and_comes_to_what_plain_python_comes_to(agent, store):
    emit(agent, [0, 1, 13], windows=[Window(T, T + 5 * MINUTE_MS, 2**62)])
    emit(agent.twin("agent-2"), [1, 13])
    emit(agent, [0], incarnation=2)
    harmed = emit(agent, [5], incarnation=3)
    overwrite(store, harmed.key, b"x")
    free = [Block(0, T, (5,), principal='User:"a,b"\n', billed=False)]
    agent.incarnation = 4
    agent.emit(NOON, agent.entry(T, T + HOUR_MS, sequences=(0, 0)), free)
    out = command("rollup", "--day", str(TODAY))
    assert "stage 1 of" in out
    assert "published 4 hours in files and 3 days" in out
    assert f"damaged_input: {harmed.key}" in out
    assert rows("day") == {("ingress_bytes", -12): 301, ("storage_byte_minutes", -12): 2**62}
    # The same rows, whoever rolls up: by their hash nothing is new.
    assert roll_up(day=TODAY, job=plain_job).state == "unchanged"
    assert "published" in command("rollup", "--list")


@pytest.fixture
def job_script(monkeypatch, tmp_path):
    """Has the child run this instead of the job."""
    root = tmp_path / "other code"
    jobs = root / "spark_usage" / "jobs"
    jobs.mkdir(parents=True)
    for folder in (jobs, jobs.parent):
        (folder / "__init__.py").touch()
    monkeypatch.setattr(spark, "ROOT", root)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return (jobs / "rollup.py").write_text


def test_a_job_that_fails_says_why(agent, job_script):
    emit(agent, [0])
    job_script("raise SystemExit('the coffee is cold')")
    with pytest.raises(CommandError, match="status 1:\nthe coffee is cold"):
        command("rollup", "--day", str(TODAY))
    assert "the coffee is cold" in RollupRun.objects.get().error


def test_a_job_that_ends_without_a_report_did_not_end_well(agent, job_script):
    emit(agent, [0])
    job_script("")
    with pytest.raises(CommandError, match="left no report"):
        command("rollup", "--day", str(TODAY))


def test_an_interrupt_ends_the_job_and_publishes_nothing(agent, job_script):
    """The child is one that would wait for ever."""
    emit(agent, [0])
    script = "import os, signal, sys\nprint(os.getpid(), file=sys.stderr, flush=True)\n"
    job_script(f"{script}signal.pause()\n")
    children = []

    def interrupt(line):
        if line.isdigit():
            children.append(int(line))
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        roll_up(day=TODAY, say=interrupt)
    assert RollupRun.objects.get().state == "interrupted"
    with pytest.raises(ProcessLookupError):
        os.kill(children[0], 0)


def test_the_command_refuses_what_cannot_be(clock):
    for words, message in [
        (("--day", str(clock.now.date())), "ends at midnight UTC"),
        (("--day", str(TODAY), "--cell", "elsewhere"), "knows the cell local"),
        (("--day", "yesterday"), "invalid"),
        ((), "required"),
    ]:
        with pytest.raises(CommandError, match=message):
            command("rollup", *words)


def test_staff_see_how_far_the_meter_is(agent, store, clock):
    assert "last ingest: never" in command("usage_status")
    clock.now = NOON + DAY
    emit(agent, [0])
    harmed = emit(agent, [4])
    overwrite(store, harmed.key, b"x")
    ingest_usage()
    out = command("usage_status")
    assert "age of the newest usage file: 86400 s" in out
    assert f"days without a roll-up: {TODAY}" in out
    assert f"{harmed.key}: it has another size or digest" in out
    assert "2026-11-20 12:00 cl_a: no manifest" in out


def test_probes_see_an_ingest_that_stopped_and_an_agent_that_is_silent(agent, clock):
    check_metering()
    emit(agent, [0])
    clock.now = NOON + 10 * MINUTE
    ingest_usage()
    check_metering()
    clock.now = NOON + 16 * MINUTE
    with pytest.raises(IngestStopped):
        check_metering()
    ingest_usage()
    with pytest.raises(AgentSilent):
        check_metering()
