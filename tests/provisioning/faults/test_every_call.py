"""Each remote call of each kind of operation goes wrong in each way: nothing differs in the end."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping

import pytest

from provisioning import cells
from tests.provisioning.faults import choosing
from tests.provisioning.faults.choosing import Trial
from tests.provisioning.faults.contents import CONTENTS
from tests.provisioning.faults.courses import CLUSTERS, Course
from tests.provisioning.faults.net import watched
from tests.provisioning.faults.seam import Call, Fault
from tests.provisioning.faults.world import World

COURSES = (*CLUSTERS, *CONTENTS)
WANTED = os.environ.get("FRESHET_FAULTS", "")
# What each kind may have go wrong, where `tried.json` is written anew.
_recorded: dict[str, list[Trial]] = {}


def begin(world: World, course: Course) -> None:
    """All is there, and nothing is left to do."""
    world.seam.record(on=False)
    world.cluster_id = ""
    if course.own_cluster:
        world.make_cluster()
    course.prepare(world)
    world.mark()


def go(world: World, course: Course) -> None:
    """Asks for it, and lets everybody do what they do."""
    course.ask(world)
    world.go_on(course.rounds)


def end(world: World, course: Course) -> None:
    """All of it holds."""
    world.settle()
    world.seam.record(on=False)
    world.check()
    audited, operations = world.audited(), world.operations()
    assert audited in course.audits(len(world.answers))
    course.check(world)
    assert operations == list(course.operations)
    world.forget()


def recorded(world: World, course: Course) -> list[Call]:
    """The calls of a course in which nothing goes wrong: all of them go through the seam."""
    begin(world, course)
    world.seam.record()
    with watched(world.seam) as escaped:
        go(world, course)
    assert escaped == []
    calls = list(world.seam.calls)
    end(world, course)
    return calls


def wanted(course: Course, every: Mapping[Trial, tuple[int, Fault]]) -> list[Trial]:
    """The trials of a course: all where the environment says so, otherwise those of the file."""
    if WANTED == "every":
        return list(every)
    if WANTED == "choose":
        _recorded[course.name] = list(every)
        choosing.write(choosing.choose(_recorded))
        return []
    tried = choosing.tried()
    covered = {(name, way) for trials in tried.values() for name, _, way in trials}
    assert {(name, way) for name, _, way in every} <= covered, "run with FRESHET_FAULTS=choose"
    return tried[course.name]


@pytest.mark.parametrize("tier", ["everyday", pytest.param("full", marks=pytest.mark.full)])
@pytest.mark.parametrize("course", COURSES, ids=str)
def test_whatever_goes_wrong_nothing_differs_in_the_end(world, course, tier):
    calls = recorded(world, course)
    every = choosing.trials_of(calls)
    everyday, others = choosing.split(COURSES.index(course), wanted(course, every))
    failed = []
    for trial in everyday if tier == "everyday" else others:
        place, fault = every[trial]
        begin(world, course)
        world.seam.arm(place, fault)
        try:
            go(world, course)
            assert world.seam.struck
            end(world, course)
        except AssertionError as error:
            # All that fail are told at once.
            where = traceback.extract_tb(error.__traceback__)[-1]
            failed.append(f"{trial} ({place}): {error} ({where.name}: {where.line})"[:900])
            world.seam.heal()
            world.seam.record(on=False)
            world.forget()
    assert not failed, "\n".join(failed)


def test_everyday_tests_try_each_fault_and_each_kind_of_operation():
    tried = choosing.tried()
    split = {
        course.name: choosing.split(place, tried[course.name])
        for place, course in enumerate(COURSES)
    }
    everyday = [each for some, _ in split.values() for each in some]
    assert all(some for some, _ in split.values())
    assert {way for _, _, way in everyday} == {way.value for way in Fault}
    assert len(everyday) <= 0.25 * sum(map(len, tried.values()))
    for name, (some, others) in split.items():
        assert sorted([*some, *others]) == sorted(tried[name])


def test_a_call_beside_the_seam_is_found(world):
    with watched(world.seam) as escaped:
        world.cell.specs()
        cells.cell_store().specs()
    assert escaped == ["Metadata.call at _call"]
