"""Which faults are tried: all of them, or those that `tried.json` names.

That file covers each call with each of its faults at least once, whichever kind of operation makes
it, and the death of each kind behind each of its changes of the cell, whose rows are not committed
by then. `FRESHET_FAULTS=choose` writes it anew from what all kinds call. Everyday tests try one in
five of these, always the same ones, with some of each kind of operation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.provisioning.faults.seam import NOT_OF_COMMITS, OF_READS, Call, Fault, System

FILE = Path(__file__).parent / "tried.json"
EVERYDAY_IS_ONE_IN = 5
# System and name of a call, which of them in its course it is, and what goes wrong.
Trial = tuple[str, int, str]


def trials_of(calls: list[Call]) -> dict[Trial, tuple[int, Fault]]:
    """Each way of each change, and of the first of each read, with the call's place."""
    seen: dict[str, int] = {}
    found: dict[Trial, tuple[int, Fault]] = {}
    for place, call in enumerate(calls):
        name = name_of(call)
        number = seen.get(name, 0)
        seen[name] = number + 1
        if not call.changes and number:
            continue
        ways = set(Fault) if call.changes else OF_READS
        if call.system is System.DATABASE:
            ways = ways - NOT_OF_COMMITS
        found |= {(name, number, way.value): (place, way) for way in Fault if way in ways}
    return found


def name_of(call: Call) -> str:
    """As `tried.json` names it."""
    return f"{call.system.value} {call.name}" + ("" if call.changes else " (read)")


def choose(courses: Mapping[str, Iterable[Trial]]) -> dict[str, list[Trial]]:
    """Of each kind's trials those to try: a call's fault where it costs least, in short courses."""
    chosen = {
        course: {trial for trial in trials if _is_always(trial)}
        for course, trials in courses.items()
    }
    covered = {(name, way) for trials in chosen.values() for name, _, way in trials}
    for course, trials in sorted(courses.items(), key=lambda each: len(list(each[1]))):
        for name, number, way in trials:
            if (name, way) not in covered:
                covered.add((name, way))
                chosen[course].add((name, number, way))
    return {course: sorted(trials) for course, trials in sorted(chosen.items())}


def _is_always(trial: Trial) -> bool:
    name, number, way = trial
    of_cell = name.startswith("metadata ") and not name.endswith(" (read)")
    return of_cell and number == 0 and way == Fault.KILLED_BEHIND.value


def split(course: int, trials: list[Trial]) -> tuple[list[Trial], list[Trial]]:
    """The trials of the everyday tests, and all others; `course` is the kind's place among all.

    A call has up to eight ways to go wrong, one behind the other: each fifth of them is another way
    from call to call, and kinds begin with another one each.
    """
    first = course % min(EVERYDAY_IS_ONE_IN, len(trials) or 1)
    everyday = trials[first::EVERYDAY_IS_ONE_IN]
    return everyday, [trial for trial in trials if trial not in everyday]


def tried() -> dict[str, list[Trial]]:
    """What the file names, by course."""
    read = json.loads(FILE.read_text())
    return {
        course: [(str(name), int(number), str(way)) for name, number, way in trials]
        for course, trials in read.items()
    }


def write(chosen: Mapping[str, list[Trial]]) -> None:
    """Writes the file, a trial a line."""
    courses = []
    for course, trials in chosen.items():
        lines = ",\n".join(f"    {json.dumps(trial)}" for trial in trials)
        courses.append(f"  {json.dumps(course)}: [\n{lines}\n  ]")
    FILE.write_text("{\n" + ",\n".join(courses) + "\n}\n")
