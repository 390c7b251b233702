"""Each remote call of each kind of operation goes wrong in each way: nothing differs in the end."""

from __future__ import annotations

import os

import pytest

from provisioning import cells
from tests.provisioning.faults.contents import CONTENTS
from tests.provisioning.faults.courses import CLUSTERS, Course
from tests.provisioning.faults.estate import Estate
from tests.provisioning.faults.net import watched
from tests.provisioning.faults.seam import (
    NOT_OF_COMMITS,
    OF_READS,
    Call,
    Fault,
    System,
)

COURSES = (*CLUSTERS, *CONTENTS)
# Of calls that many kinds make, one in so many faults is tried with each.
EVERY_NTH = 12


def begin(estate: Estate, course: Course) -> None:
    """All is there, and nothing is left to do."""
    estate.seam.record(on=False)
    estate.cluster_id = ""
    if course.own_cluster:
        estate.make_cluster()
    course.prepare(estate)
    estate.mark()


def go(estate: Estate, course: Course) -> None:
    """Asks for it, and lets everybody do what they do."""
    course.ask(estate)
    estate.go_on(course.rounds)


def end(estate: Estate, course: Course) -> None:
    """All of it holds."""
    estate.settle()
    estate.seam.record(on=False)
    estate.check()
    audited, operations = estate.audited(), estate.operations()
    assert audited in course.audits(len(estate.answers))
    course.check(estate)
    assert operations == list(course.operations)
    estate.forget()


def faults_of(calls: list[Call]) -> list[tuple[int, Fault]]:
    """Each way of each call that changes something, and of the first of each read."""
    seen: set[str] = set()
    found = []
    for place, call in enumerate(calls):
        if not call.changes and call.name in seen:
            continue
        seen.add(call.name)
        ways = set(Fault) if call.changes else OF_READS
        if call.system is System.DATABASE:
            ways = ways - NOT_OF_COMMITS
        found += [(place, fault) for fault in Fault if fault in ways]
    return found


def chosen(course: Course, calls: list[Call]) -> list[tuple[int, Fault]]:
    """Those that are tried: all where the environment says so.

    Otherwise all of the changes that this kind alone makes, and of what others do too one in so
    many, not the same ones for each kind.
    """
    every = faults_of(calls)
    if os.environ.get("FRESHET_FAULTS") == "every":
        return every
    turn = COURSES.index(course)
    own = [each for each in every if course.thorough and is_own(calls[each[0]])]
    shared = [each for each in every if each not in own]
    return sorted(own + shared[turn % EVERY_NTH :: EVERY_NTH], key=every.index)


def is_own(call: Call) -> bool:
    """A change, of the cell."""
    return call.changes and call.system in {System.METADATA, System.STORAGE}


@pytest.mark.parametrize("course", COURSES, ids=str)
def test_whatever_goes_wrong_nothing_differs_in_the_end(estate, course):
    begin(estate, course)
    estate.seam.record()
    with watched(estate.seam) as escaped:
        go(estate, course)
    assert escaped == []
    calls = list(estate.seam.calls)
    end(estate, course)
    failed = []
    for place, fault in chosen(course, calls):
        begin(estate, course)
        estate.seam.arm(place, fault)
        try:
            go(estate, course)
            assert estate.seam.struck or not is_own(calls[place])
            end(estate, course)
        except AssertionError as error:
            # All that fail are told at once.
            call = calls[place]
            failed.append(f"{call.system.value} {call.name} ({place}) {fault.value}: {error}"[:900])
            estate.seam.heal()
            estate.seam.record(on=False)
            estate.forget()
    assert not failed, "\n".join(failed)


def test_a_call_beside_the_seam_is_found(estate):
    with watched(estate.seam) as escaped:
        estate.cell.specs()
        cells.cell_store().specs()
    assert escaped == ["Metadata.call at _call"]
