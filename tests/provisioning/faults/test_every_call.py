"""Makes each remote call of each kind of operation go wrong in each way.

Whatever goes wrong, the result must be the same in the end.
"""

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
REQUESTED = os.environ.get("FRESHET_FAULTS", "")
# All trials of each course, by its name, while `tried.json` is written anew.
_recorded: dict[str, list[Trial]] = {}


def prepare_course(world: World, course: Course) -> None:
    """Prepares the cluster, and waits until nothing is left to do."""
    world.seam.record(on=False)
    world.cluster_id = ""
    if course.own_cluster:
        world.make_cluster()
    course.prepare(world)
    world.mark()


def run_course(world: World, course: Course) -> None:
    """Sends the course's request, and runs workers, the keeper and sweeps."""
    course.ask(world)
    world.go_on(course.rounds)


def check_course(world: World, course: Course) -> None:
    """Waits until nothing is left to do, and checks the result."""
    world.settle()
    world.seam.record(on=False)
    world.check()
    audited, operations = world.audited(), world.operations()
    assert audited in course.audits(len(world.answers))
    course.check(world)
    assert operations == list(course.operations)
    world.forget()


def record_calls(world: World, course: Course) -> list[Call]:
    """Returns the calls of a course in which nothing goes wrong, and checks that all of them went
    through the seam.
    """
    prepare_course(world, course)
    world.seam.record()
    with watched(world.seam) as escaped:
        run_course(world, course)
    assert escaped == []
    calls = list(world.seam.calls)
    check_course(world, course)
    return calls


def choose_trials(course: Course, every: Mapping[Trial, tuple[int, Fault]]) -> list[Trial]:
    """Returns the trials of a course: all where the environment says so, otherwise the file's."""
    if REQUESTED == "every":
        return list(every)
    if REQUESTED == "choose":
        _recorded[course.name] = list(every)
        choosing.write_tried_trials(choosing.choose_trials(_recorded))
        return []
    tried = choosing.read_tried_trials()
    covered = {(name, way) for trials in tried.values() for name, _, way in trials}
    assert {(name, way) for name, _, way in every} <= covered, "run with FRESHET_FAULTS=choose"
    return tried[course.name]


@pytest.mark.parametrize("tier", ["everyday", pytest.param("full", marks=pytest.mark.full)])
@pytest.mark.parametrize("course", COURSES, ids=str)
def test_whatever_goes_wrong_nothing_differs_in_the_end(world, course, tier):
    calls = record_calls(world, course)
    every = choosing.trials_of(calls)
    everyday, others = choosing.split_trials(COURSES.index(course), choose_trials(course, every))
    failed = []
    for trial in everyday if tier == "everyday" else others:
        place, fault = every[trial]
        prepare_course(world, course)
        world.seam.arm(place, fault)
        try:
            run_course(world, course)
            assert world.seam.struck
            check_course(world, course)
        except AssertionError as error:
            # The test goes on, to report all failed trials together.
            where = traceback.extract_tb(error.__traceback__)[-1]
            failed.append(f"{trial} ({place}): {error} ({where.name}: {where.line})"[:900])
            world.seam.heal()
            world.seam.record(on=False)
            world.forget()
    assert not failed, "\n".join(failed)


def test_everyday_tests_try_each_fault_and_each_kind_of_operation():
    tried = choosing.read_tried_trials()
    split = {
        course.name: choosing.split_trials(place, tried[course.name])
        for place, course in enumerate(COURSES)
    }
    everyday = [trial for some, _ in split.values() for trial in some]
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
