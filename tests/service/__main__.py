"""The acceptance of the whole service: `python -m tests.service [--long] [--minutes N]`.

Starts the service on a home of its own, runs every scenario, prints what holds, and stops it.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from tests.supervisor.run import Run

from . import scenarios
from .hostile import a_hostile_client_harms_nobody
from .running import running_service

Result = TypeVar("Result")

SHORT_S = 4.0


def main() -> int:
    """Runs all scenarios; returns the exit status, 0 when all of them hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.service", description=__doc__)
    parser.add_argument("--long", action="store_true", help="load for minutes, not seconds")
    parser.add_argument("--minutes", type=float, default=10.0, help="how many, with --long")
    parser.add_argument("--only", default="", help="only scenarios with this in their name")
    given = parser.parse_args()
    seconds = given.minutes * 60 if given.long else SHORT_S
    with contextlib.ExitStack() as stack:
        run = run_step("first_start", partial(stack.enter_context, running_service()))
        for name, scenario in steps(run, seconds).items():
            if given.only in name:
                run_step(name, scenario)
        run_step("everybody_is_gone", stack.close)
    return 0


def steps(run: Run, seconds: float) -> dict[str, Callable[[], object]]:
    """The scenarios by name, in order."""
    return {
        "records_once_through_a_kill": partial(
            scenarios.records_once_through_a_kill, run, min(seconds, 60)
        ),
        "other_organizations_get_nothing": partial(scenarios.other_organizations_get_nothing, run),
        "groups_of_any_name_are_served": partial(scenarios.groups_of_any_name_are_served, run),
        "one_request_is_followed": partial(scenarios.one_request_is_followed, run),
        "sleeps_and_wakes": partial(scenarios.sleeps_and_wakes, run),
        "clients_outlive_the_control_plane": partial(
            scenarios.clients_outlive_the_control_plane, run, seconds
        ),
        "a_hostile_client_harms_nobody": partial(
            a_hostile_client_harms_nobody,
            run,
            seconds,
            say=lambda line: sys.stdout.write(f"{line}\n"),
        ),
        "a_budget_stops_producers": partial(scenarios.a_budget_stops_producers, run),
        "all_is_there_after_kill_9": partial(scenarios.all_is_there_after_kill_9, run),
    }


def run_step(name: str, scenario: Callable[[], Result]) -> Result:
    """Runs a scenario, prints how long it took, and returns its result."""
    begun = time.monotonic()
    sys.stdout.write(f"{name} ...\n")
    sys.stdout.flush()
    result = scenario()
    sys.stdout.write(f"{name}: holds ({time.monotonic() - begun:.1f} s)\n")
    return result


if __name__ == "__main__":
    sys.exit(main())
