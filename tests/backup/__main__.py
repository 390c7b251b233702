"""A disaster with a backup that has aged: `python -m tests.backup [--minutes N]`.

Starts a service on a home of its own, makes a backup, lets records, topics and invoices be written
for N minutes, removes everything but storage, restores, and counts what was lost or used twice.
Prints the counts; the exit status is 0 where nothing was lost and no number was used twice.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.supervisor.run import Run

from .aged import Disaster

# The agent meters every second, so that the rehearsal does not wait for usage.
FAST = {"FRESHET_USAGE_AGENT_PERIOD_S": "1"}


def main() -> int:
    """Runs the rehearsal; returns 0 where nothing was lost and no number was used twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.backup", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how old the backup becomes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(
        prefix="freshet-rehearsal-", ignore_cleanup_errors=True
    ) as folder:
        run = Run(Path(folder) / "home", extra=FAST)
        try:
            print_line("the service starts")
            run.up()
            disaster = Disaster(run, options.minutes, print_line)
            summary = disaster.rehearse()
            disaster.close()
            run.stop()
        finally:
            if run.started:
                run.kill_everything()
    for name, value in asdict(summary).items():
        print_line(f"{name:24} {value}")
    print_line("holds" if not summary.failures else f"does not hold: {', '.join(summary.failures)}")
    return 1 if summary.failures else 0


def print_line(line: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
