"""Chooses which faults the tests try: all of them, or those that `tried.json` names.

That file covers each call with each of its faults at least once, whichever kind of operation makes
the call. For each kind it also has the death of the process right after the first time that the
kind makes a change of the cell's store, when the rows of the database are not committed yet.
`FRESHET_FAULTS=choose` writes the file anew from the recorded calls of all kinds. Everyday tests
try one in five of its faults, always the same ones, with some of each kind of operation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.provisioning.faults.seam import NOT_OF_COMMITS, OF_READS, Call, Fault, System

FILE = Path(__file__).parent / "tried.json"
EVERYDAY_IS_ONE_IN = 5
# System and name of a call, its number among the calls of this name in its course (from 0), and the
# value of the `Fault` that happens to it.
Trial = tuple[str, int, str]


def trials_of(calls: list[Call]) -> dict[Trial, tuple[int, Fault]]:
    """Returns the trials of a course: every fault of each call that changes something, and of the
    first call of each read. Each has the place of its call in `calls`, from 0.
    """
    counts: dict[str, int] = {}
    trials: dict[Trial, tuple[int, Fault]] = {}
    for place, call in enumerate(calls):
        name = name_of(call)
        number = counts.get(name, 0)
        counts[name] = number + 1
        if not call.changes and number:
            continue
        ways = set(Fault) if call.changes else OF_READS
        if call.system is System.DATABASE:
            ways = ways - NOT_OF_COMMITS
        trials |= {(name, number, way.value): (place, way) for way in Fault if way in ways}
    return trials


def name_of(call: Call) -> str:
    """Returns the name that `tried.json` has for a call."""
    return f"{call.system.value} {call.name}" + ("" if call.changes else " (read)")


def choose_trials(courses: Mapping[str, Iterable[Trial]]) -> dict[str, list[Trial]]:
    """Chooses the trials of each course that `tried.json` shall have.

    A fault of a call that several courses make is tried in the one with the fewest trials, which
    takes the least time.
    """
    chosen = {
        course: {trial for trial in trials if _is_always(trial)}
        for course, trials in courses.items()
    }
    covered = {(name, way) for trials in chosen.values() for name, _, way in trials}
    for course, trials in sorted(courses.items(), key=lambda item: len(list(item[1]))):
        for name, number, way in trials:
            if (name, way) not in covered:
                covered.add((name, way))
                chosen[course].add((name, number, way))
    return {course: sorted(trials) for course, trials in sorted(chosen.items())}


def _is_always(trial: Trial) -> bool:
    name, number, way = trial
    of_cell = name.startswith("metadata ") and not name.endswith(" (read)")
    return of_cell and number == 0 and way == Fault.KILLED_BEHIND.value


def split_trials(course: int, trials: list[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Returns the trials of the everyday tests, and all others.

    `course` is the place of the course among all courses, from 0. Up to eight faults of one call
    follow each other in `trials`. Every fifth trial is therefore another fault from call to call,
    and each course begins with another one than the course before.
    """
    first = course % min(EVERYDAY_IS_ONE_IN, len(trials) or 1)
    everyday = trials[first::EVERYDAY_IS_ONE_IN]
    return everyday, [trial for trial in trials if trial not in everyday]


def read_tried_trials() -> dict[str, list[Trial]]:
    """Reads the trials that the file names, by course."""
    content = json.loads(FILE.read_text())
    return {
        course: [(str(name), int(number), str(way)) for name, number, way in trials]
        for course, trials in content.items()
    }


def write_tried_trials(chosen: Mapping[str, list[Trial]]) -> None:
    """Writes the file with one trial per line."""
    courses = []
    for course, trials in chosen.items():
        lines = ",\n".join(f"    {json.dumps(trial)}" for trial in trials)
        courses.append(f"  {json.dumps(course)}: [\n{lines}\n  ]")
    FILE.write_text("{\n" + ",\n".join(courses) + "\n}\n")
