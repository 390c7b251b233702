"""What opens an incident, what closes it, and that nothing happens twice."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.incidents import restarts, rules
from console.incidents.choices import IncidentKind, IncidentState
from console.incidents.rules import Advance, Begin, Facts, Forget, Known

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
CLUSTER = rules.ClusterFact(
    id="cl_a", organization_id="org_a", name="orders", phase="running", message="", crashing=False
)
HEALTH = rules.HealthFact(
    AT,
    held=False,
    unhealthy=0,
    wanted=9,
    platform="",
    machines=[],
    etcd_file_bytes=69,
    etcd_in_use_bytes=10,
    etcd_quota_bytes=100,
)
WELL = Facts(
    at=AT,
    cell="local",
    cell_answers=True,
    clusters=[CLUSTER],
    operations=[],
    usage=[],
    oldest_task_at=None,
    health=HEALTH,
)
OPEN, CLOSED, SUSPECTED = IncidentState.OPEN, IncidentState.CLOSED, IncidentState.SUSPECTED


def operation(age):
    return rules.OperationFact("op_a", "org_a", "cl_a", "create_cluster", AT - age)


def told(**fields):
    return replace(WELL, health=replace(HEALTH, **fields))


ILL = {
    "held": told(held=True, unhealthy=7),
    "machine": told(machines=["node-1"]),
    "platform": told(platform="no answer"),
    "size": told(etcd_file_bytes=70),
    "space": replace(WELL, out_of_space=True),
    "silent": told(told_at=AT - rules.KEEPER_SILENT),
    "failed": replace(WELL, clusters=[replace(CLUSTER, phase="failed", message="refused")]),
    "crashing": replace(WELL, clusters=[replace(CLUSTER, crashing=True)]),
    "cell": replace(WELL, clusters=[], cell_answers=False),
    "operation": replace(WELL, operations=[operation(rules.OPERATION_STUCK)]),
    "tasks": replace(WELL, oldest_task_at=AT - rules.TASKS_DELAYED),
    "usage": replace(WELL, usage=[rules.UsageFact("org_a", "cl_a", 2, AT - 5 * 60 * MINUTE)]),
}


def changed(facts, *known, later=timedelta(0)):
    return rules.changes(
        rules.findings(facts),
        known,
        at=AT + later,
        cell_answers=facts.cell_answers,
        keeper_speaks=facts.keeper_speaks,
        size_known=facts.size_known,
    )


def known(facts, state=OPEN, since=AT, **fields):
    (found,) = rules.findings(facts)
    incident = Known("inc_a", found.kind, found.subject, state, since, found.text)
    return replace(incident, **fields)


def test_what_is_well_has_no_incident():
    young = replace(
        WELL,
        operations=[operation(rules.OPERATION_STUCK - MINUTE)],
        oldest_task_at=AT - rules.TASKS_DELAYED + MINUTE,
    )
    assert rules.findings(WELL) == rules.findings(young) == []
    assert changed(WELL) == []


@pytest.mark.parametrize("ill", ILL)
def test_what_is_ill_has_one(ill):
    (change,) = changed(ILL[ill])
    assert isinstance(change, Begin)
    patient = change.finding.kind in rules.SUSPECTED_FOR
    assert change.state is (SUSPECTED if patient else OPEN)
    assert change.finding.title
    assert change.finding.text
    # What concerns everybody names nobody.
    everybody = {"cell", "tasks", "held", "machine", "platform", "silent", "size", "space"}
    assert (change.finding.organization_id is None) == (ill in everybody)


@pytest.mark.parametrize("ill", ILL)
def test_a_second_look_changes_nothing(ill):
    assert changed(ILL[ill], known(ILL[ill])) == []


@pytest.mark.parametrize("ill", ILL)
def test_what_is_well_again_closes_it(ill):
    (change,) = changed(WELL, known(ILL[ill]))
    assert change == Advance("inc_a", CLOSED, rules.IT_IS_OVER)


@pytest.mark.parametrize("ill", ["cell", "tasks", "platform", "silent"])
def test_what_passes_at_once_is_told_to_nobody(ill):
    suspected = known(ILL[ill], SUSPECTED)
    assert changed(WELL, suspected) == [Forget("inc_a")]
    assert changed(ILL[ill], suspected) == []
    (lasted,) = changed(ILL[ill], suspected, later=MINUTE)
    assert (lasted.id, lasted.state) == ("inc_a", OPEN)


def test_what_comes_back_soon_is_the_same_story():
    closed = known(ILL["failed"], CLOSED)
    again = changed(ILL["failed"], closed, later=MINUTE)
    assert again == [Advance("inc_a", OPEN, rules.IT_IS_BACK)]
    (anew,) = changed(ILL["failed"], closed, later=rules.SAME_STORY + MINUTE)
    assert isinstance(anew, Begin)
    assert changed(WELL, closed) == []


def test_a_new_reason_goes_on_with_the_story():
    ill = replace(WELL, clusters=[replace(CLUSTER, phase="failed", message="another")])
    (change,) = changed(ill, known(ILL["failed"]))
    assert change == Advance("inc_a", OPEN, "another")
    # It came back and nothing new is known of it.
    assert changed(ILL["failed"], known(ILL["failed"], text=rules.IT_IS_BACK)) == []


def test_from_not_knowing_follows_nothing():
    crashing = known(ILL["failed"])
    away = replace(WELL, clusters=[], cell_answers=False)
    kinds = {getattr(each, "id", None) for each in changed(away, crashing)}
    assert kinds == {None}
    # What PostgreSQL tells of is known all the same.
    stuck = known(ILL["operation"], id="inc_b")
    assert Advance("inc_b", CLOSED, rules.IT_IS_OVER) in changed(away, stuck)


@pytest.mark.parametrize("ill", ["held", "machine", "platform"])
def test_from_a_keepers_silence_follows_nothing_but_that_it_is_silent(ill):
    silent = replace(ILL["silent"])
    for facts in (silent, replace(WELL, health=None)):
        assert Advance("inc_a", CLOSED, rules.IT_IS_OVER) not in changed(facts, known(ILL[ill]))


def test_what_makes_room_in_a_metadata_store_is_said():
    (free,) = rules.findings(told(etcd_file_bytes=90, etcd_in_use_bytes=49))
    assert "defragmentation" in free.text
    (used,) = rules.findings(told(etcd_file_bytes=90, etcd_in_use_bytes=50))
    assert "larger quota" in used.text
    # That it grows on is no news; that it is full is, also where nothing else is known.
    assert changed(told(etcd_file_bytes=99), known(ILL["size"])) == []
    (full,) = changed(replace(ILL["silent"], out_of_space=True), known(ILL["size"]))[1:]
    assert (full.id, full.state) == ("inc_a", OPEN)
    assert "NOSPACE" in full.text


def test_a_metadata_store_without_a_quota_is_never_full():
    boundless = told(etcd_file_bytes=1 << 50, etcd_quota_bytes=0)
    assert rules.findings(boundless) == []
    assert changed(boundless, known(ILL["size"])) == [Advance("inc_a", CLOSED, rules.IT_IS_OVER)]


@pytest.mark.parametrize(
    "facts",
    [
        ILL["silent"],
        told(etcd_file_bytes=0),
        replace(WELL, out_of_space=None),
        replace(WELL, health=None),
    ],
)
@pytest.mark.parametrize("ill", ["size", "space"])
def test_where_its_size_is_not_known_a_full_metadata_store_stays_one(facts, ill):
    assert Advance("inc_a", CLOSED, rules.IT_IS_OVER) not in changed(facts, known(ILL[ill]))


STATES = st.sampled_from(list(IncidentState))
KEYS = st.sampled_from(
    [
        (IncidentKind.BROKERS_CRASHING, "cl_a"),
        (IncidentKind.BROKERS_CRASHING, "cl_b"),
        (IncidentKind.CELL_UNREACHABLE, "local"),
    ]
)
KNOWN = st.lists(
    st.tuples(KEYS, STATES, st.integers(0, 30)), max_size=4, unique_by=lambda each: each[0]
)


@given(st.sampled_from([WELL, *ILL.values()]), KNOWN)
def test_after_the_changes_nothing_is_left_to_do(facts, before):
    incidents = {
        key: Known(f"inc_{place}", key[0], key[1], state, AT - age * MINUTE, "")
        for place, (key, state, age) in enumerate(before)
    }
    at = AT + MINUTE
    for _ in range(2):
        found = rules.findings(facts)
        made = rules.changes(
            found, list(incidents.values()), at=at, cell_answers=facts.cell_answers
        )
        for change in made:
            incidents = after(incidents, change, at)
        at += MINUTE
    wrong = {finding.key for finding in rules.findings(facts)}
    opened = {incident.key for incident in incidents.values() if incident.state is OPEN}
    assert wrong <= opened
    unknown = set() if facts.cell_answers else rules.OF_CLUSTERS
    assert {key for key in opened - wrong if key[0] not in unknown} == set()


def after(incidents, change, at):
    """What there is once a change is made."""
    match change:
        case Begin(found, state):
            new = Known(f"new {found.subject}", found.kind, found.subject, state, at, found.text)
            return {**incidents, (found.kind, found.subject): new}
        case Forget(name):
            return {key: incident for key, incident in incidents.items() if incident.id != name}
        case Advance(name, state, text):
            return {
                key: replace(incident, state=state, text=text, since=at)
                if incident.id == name
                else incident
                for key, incident in incidents.items()
            }


def looked(*looks):
    """What is known after looks `(minute, count)`."""
    now_known = None
    for minute, count in looks:
        now_known = restarts.seen(now_known, count, AT + minute * MINUTE)
    return now_known, AT + looks[-1][0] * MINUTE


@pytest.mark.parametrize(
    ("looks", "crashing"),
    [
        ([(0, 0)], False),
        ([(0, 1)], False),
        ([(0, 1), (1, 2), (2, 3)], True),
        # All of it between two looks.
        ([(0, 1), (1, 4)], True),
        # Now and then is no loop.
        ([(0, 1), (60, 2), (120, 3)], False),
        # What a cluster that runs for long had before this was looked at says nothing.
        ([(0, 50)], False),
        # It has been quiet.
        ([(0, 1), (1, 2), (2, 3), (6, 3)], True),
        ([(0, 1), (1, 2), (2, 3), (8, 3)], False),
        # It slept, woke up and crashed again.
        ([(0, 1), (1, 2), (2, 1)], True),
        ([(0, 1), (1, 2), (2, 0), (3, 1)], False),
    ],
)
def test_a_crash_loop_is_restarts_that_follow_on_each_other(looks, crashing):
    assert restarts.crashing(*looked(*looks)) is crashing
