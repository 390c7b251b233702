"""The service that the tests of a session share: it starts once, and each test signs up anew."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from console.programs.supervisor.processes import is_running
from tests.supervisor.run import Run, wait_until

# The agent meters what ended within a second, not within fifteen.
SETTINGS = {"FRESHET_USAGE_AGENT_PERIOD_S": "1"}
# A worker needs less for them.
TASKS_EVERY_S = 1.0


@contextmanager
def running_service() -> Iterator[Run]:
    """All of Freshet, up on an empty home. It stops in order at the end and leaves no process."""
    # A short path, because it holds Unix sockets; for the rest see tests/supervisor/conftest.py.
    with tempfile.TemporaryDirectory(prefix="freshet-", ignore_cleanup_errors=True) as folder:
        run = Run(Path(folder) / "home", extra=SETTINGS)
        try:
            yield run.up()
            everybody_is_gone(run)
        finally:
            if run.started:
                run.kill_everything()


@contextmanager
def up_again(run: Run) -> Iterator[None]:
    """Starts the service again after a test that stops or kills it, also where the test failed."""
    try:
        yield
    finally:
        if not run.is_up:
            run.kill_everything()
            run.up()


def everybody_is_gone(run: Run) -> None:
    """Checks that no child process and no broker is left after a stop."""
    children = run.children()
    assert run.stop() == 0
    assert not any(is_running(child) for child in children.values())
    wait_until(lambda: not run.brokers(), "no broker is left")


def wait_with_tasks(
    run: Run, tasks: Sequence[str], holds: Callable[[], bool], what: str, timeout_s: float = 120
) -> None:
    """Waits until something holds that periodic tasks bring about.

    It sends the tasks again and again, as if the scheduler had found them due.
    """
    from celery import Celery  # noqa: PLC0415 (takes a moment to load, and few tests need it)

    due = time.monotonic()

    def asked() -> bool:
        nonlocal due
        if time.monotonic() >= due:
            for name in tasks:
                app.send_task(name)
            due = time.monotonic() + TASKS_EVERY_S
        return holds()

    broker = f"redis+socket://{run.home}/redis/redis.sock"
    with Celery(broker=broker, set_as_current=False) as app:
        wait_until(asked, what, timeout_s)
