"""What somebody who runs the service does at a terminal: roll-ups, invoices, months of usage."""

from __future__ import annotations

import subprocess
import sys
from datetime import date, timedelta

from tests.supervisor.run import ROOT, Run

# A roll-up starts Spark, and the machine may be busy with other suites.
TIMEOUT_S = 420


def run_manage(service: Run, *words: str) -> str:
    """Runs a command of `manage.py` against a running service; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "manage.py", *words],
        cwd=ROOT,
        env=service.environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def roll_up(service: Run, first: date, last: date) -> None:
    """Publishes the usage of days; the last one may not be over."""
    day = first
    while day <= last:
        run_manage(service, "rollup", "--day", day.isoformat(), "--early")
        day += timedelta(days=1)


def issue_invoice(service: Run, organization_id: str, month: str, reason: str) -> None:
    """Issues the invoice of an organization for a month that is not over."""
    of = ("--month", month, "--organization", organization_id)
    run_manage(service, "issue_invoices", *of, "--close-early", reason)


def use_month(service: Run, organization_id: str, month: str) -> None:
    """Makes usage of a past month that costs something."""
    call = f"use_month({organization_id!r}, {month!r})"
    run_manage(service, "shell", "-c", f"from tests.browser.billed import use_month; {call}")
