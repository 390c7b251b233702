"""Which facts open and close an incident, and that a second look changes nothing."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.incidents import restarts, rules
from console.incidents.choices import IncidentKind, IncidentState
from console.incidents.facts import (
    ClusterFact,
    DamageFact,
    HealthFact,
    InvoicesFact,
    MeterFact,
    OperationFact,
    UsageFact,
)
from console.incidents.rules import Advance, Begin, Facts, Forget, Known

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
CLUSTER = ClusterFact(
    id="cl_a", organization_id="org_a", name="orders", phase="running", message="", crashing=False
)
HEALTH = HealthFact(
    AT,
    held=False,
    unhealthy=0,
    desired=9,
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
    return OperationFact("op_a", "org_a", "cl_a", "create_cluster", AT - age)


def reporting(**fields):
    return replace(WELL, health=replace(HEALTH, **fields))


DAMAGE = DamageFact("cl_a", "orders", 3, 94)
ILL = {
    "damage": reporting(damaged=[DAMAGE]),
    "held": reporting(held=True, unhealthy=7),
    "machine": reporting(machines=["node-1"]),
    "platform": reporting(platform="no answer"),
    "size": reporting(etcd_file_bytes=70),
    "space": replace(WELL, out_of_space=True),
    "silent": reporting(reported_at=AT - rules.KEEPER_SILENT),
    "failed": replace(WELL, clusters=[replace(CLUSTER, phase="failed", message="refused")]),
    "crashing": replace(WELL, clusters=[replace(CLUSTER, crashing=True)]),
    "cell": replace(WELL, clusters=[], cell_answers=False),
    "operation": replace(WELL, operations=[operation(rules.OPERATION_STUCK)]),
    "tasks": replace(WELL, oldest_task_at=AT - rules.TASKS_DELAYED),
    "invoices": replace(WELL, invoices=[InvoicesFact("2026-10", 3, "")]),
    "month": replace(WELL, invoices=[InvoicesFact("2026-10", 0, "A day has no roll-up.")]),
    "totals": replace(WELL, meter=MeterFact(totals_differ=True, days=[])),
    "log": replace(WELL, meter=MeterFact(totals_differ=False, days=[date(2026, 10, 3)])),
    "usage": replace(WELL, usage=[UsageFact("org_a", "cl_a", 2, AT - 5 * 60 * MINUTE)]),
}


def changed(facts, *known, later=timedelta(0)):
    return rules.decide_changes(
        rules.find_problems(facts), known, at=AT + later, certainty=facts.certainty
    )


def incident_of(facts, state=OPEN, since=AT, **fields):
    (finding,) = rules.find_problems(facts)
    incident = Known("inc_a", finding.kind, finding.subject, state, since, finding.text)
    return replace(incident, **fields)


def test_healthy_facts_have_no_incident():
    young = replace(
        WELL,
        operations=[operation(rules.OPERATION_STUCK - MINUTE)],
        oldest_task_at=AT - rules.TASKS_DELAYED + MINUTE,
    )
    assert rules.find_problems(WELL) == rules.find_problems(young) == []
    assert changed(WELL) == []


@pytest.mark.parametrize("ill", ILL)
def test_each_fault_has_one_incident(ill):
    (change,) = changed(ILL[ill])
    assert isinstance(change, Begin)
    waits = change.finding.kind in rules.SUSPECTED_FOR
    assert change.state is (SUSPECTED if waits else OPEN)
    assert change.finding.title
    assert change.finding.text
    # An incident of the service as a whole names no tenant.
    everybody = {
        *("cell", "tasks", "held", "machine", "platform", "silent", "size", "space"),
        *("invoices", "month", "totals", "log"),
    }
    assert (change.finding.organization_id is None) == (ill in everybody)


@pytest.mark.parametrize("ill", ILL)
def test_a_second_look_changes_nothing(ill):
    assert changed(ILL[ill], incident_of(ILL[ill])) == []


@pytest.mark.parametrize("ill", ILL)
def test_a_fault_that_is_over_closes_its_incident(ill):
    (change,) = changed(WELL, incident_of(ILL[ill]))
    assert change == Advance("inc_a", CLOSED, rules.IT_IS_OVER)


@pytest.mark.parametrize("ill", ["cell", "tasks", "platform", "silent"])
def test_a_fault_that_passes_at_once_is_shown_to_nobody(ill):
    suspected = incident_of(ILL[ill], SUSPECTED)
    assert changed(WELL, suspected) == [Forget("inc_a")]
    assert changed(ILL[ill], suspected) == []
    (lasted,) = changed(ILL[ill], suspected, later=MINUTE)
    assert (lasted.id, lasted.state) == ("inc_a", OPEN)


def test_a_fault_that_comes_back_soon_opens_its_incident_again():
    closed = incident_of(ILL["failed"], CLOSED)
    again = changed(ILL["failed"], closed, later=MINUTE)
    assert again == [Advance("inc_a", OPEN, rules.IT_IS_BACK)]
    (anew,) = changed(ILL["failed"], closed, later=rules.SAME_STORY + MINUTE)
    assert isinstance(anew, Begin)
    assert changed(WELL, closed) == []


def test_a_new_reason_is_an_update_of_the_same_incident():
    ill = replace(WELL, clusters=[replace(CLUSTER, phase="failed", message="another")])
    (change,) = changed(ill, incident_of(ILL["failed"]))
    assert change == Advance("inc_a", OPEN, "another")
    # It came back for the same reason: that is no further update.
    assert changed(ILL["failed"], incident_of(ILL["failed"], text=rules.IT_IS_BACK)) == []


def test_an_unknown_fact_changes_no_incident():
    crashing = incident_of(ILL["failed"])
    away = replace(WELL, clusters=[], cell_answers=False)
    kinds = {getattr(change, "id", None) for change in changed(away, crashing)}
    assert kinds == {None}
    # What PostgreSQL knows does not depend on the cell.
    stuck = incident_of(ILL["operation"], id="inc_b")
    assert Advance("inc_b", CLOSED, rules.IT_IS_OVER) in changed(away, stuck)


@pytest.mark.parametrize("ill", ["held", "machine", "platform"])
def test_a_silent_keeper_closes_no_incident_of_its_cell(ill):
    silent = replace(ILL["silent"])
    for facts in (silent, replace(WELL, health=None)):
        assert Advance("inc_a", CLOSED, rules.IT_IS_OVER) not in changed(
            facts, incident_of(ILL[ill])
        )


def test_the_text_says_what_makes_room_in_a_metadata_store():
    (free,) = rules.find_problems(reporting(etcd_file_bytes=90, etcd_in_use_bytes=49))
    assert "defragmentation" in free.text
    (used,) = rules.find_problems(reporting(etcd_file_bytes=90, etcd_in_use_bytes=50))
    assert "larger quota" in used.text
    # Further growth is no update. That it is full is one, also while the keeper is silent.
    assert changed(reporting(etcd_file_bytes=99), incident_of(ILL["size"])) == []
    (full,) = changed(replace(ILL["silent"], out_of_space=True), incident_of(ILL["size"]))[1:]
    assert (full.id, full.state) == ("inc_a", OPEN)
    assert "NOSPACE" in full.text


def test_a_metadata_store_without_a_quota_is_never_full():
    boundless = reporting(etcd_file_bytes=1 << 50, etcd_quota_bytes=0)
    assert rules.find_problems(boundless) == []
    assert changed(boundless, incident_of(ILL["size"])) == [
        Advance("inc_a", CLOSED, rules.IT_IS_OVER)
    ]


@pytest.mark.parametrize(
    "facts",
    [
        ILL["silent"],
        reporting(etcd_file_bytes=0),
        replace(WELL, out_of_space=None),
        replace(WELL, health=None),
    ],
)
@pytest.mark.parametrize("ill", ["size", "space"])
def test_where_its_size_is_not_known_a_full_metadata_store_stays_one(facts, ill):
    assert Advance("inc_a", CLOSED, rules.IT_IS_OVER) not in changed(facts, incident_of(ILL[ill]))


def test_an_incident_of_a_damaged_batch_says_where_it_lies():
    (finding,) = rules.find_problems(ILL["damage"])
    assert (finding.cluster_id, finding.organization_id) == ("cl_a", "org_a")
    for part in ("orders", "partition 3", "offset 94"):
        assert part in finding.text
    # The next one of the same partition is an update, that of another one is another incident.
    (change,) = changed(
        reporting(damaged=[replace(DAMAGE, offset=200)]), incident_of(ILL["damage"])
    )
    assert (change.id, change.state) == ("inc_a", OPEN)
    assert "offset 200" in change.text
    others = [replace(DAMAGE, partition=4), replace(DAMAGE, topic="another")]
    assert len({batch.subject for batch in (DAMAGE, *others)}) == 3
    long = replace(DAMAGE, topic="x" * 249, cluster_id="cl_" + "a" * 26, partition=2**31 - 1)
    assert len(long.subject) <= rules.SUBJECT_CHARS_MAX
    # A cluster that is not active any more has none.
    gone = reporting(damaged=[replace(DAMAGE, cluster_id="cl_gone")])
    assert rules.find_problems(gone) == []


@pytest.mark.parametrize(
    "facts",
    [
        # Its brokers have not been asked since the keeper began, or know of more than is reported.
        reporting(damage_unknown=["cl_a"]),
        # Its keeper began while it slept.
        replace(WELL, clusters=[replace(CLUSTER, phase="asleep")]),
        replace(WELL, clusters=[], cell_answers=False),
        replace(WELL, health=None),
        ILL["silent"],
    ],
)
def test_where_damage_is_not_known_its_incident_stays(facts):
    assert Advance("inc_a", CLOSED, rules.IT_IS_OVER) not in changed(
        facts, incident_of(ILL["damage"])
    )


def test_a_sleeping_clusters_damage_stays_an_incident():
    asleep = replace(ILL["damage"], clusters=[replace(CLUSTER, phase="asleep")])
    assert changed(asleep, incident_of(ILL["damage"])) == []


def test_an_incident_of_invoices_says_how_many_are_missing_or_why_all_are():
    (some,) = rules.find_problems(ILL["invoices"])
    assert some.text.startswith("3 organizations have no invoice of 2026-10; the others have")
    (one,) = rules.find_problems(replace(WELL, invoices=[InvoicesFact("2026-10", 1, "")]))
    assert one.text.startswith("1 organization has no invoice of 2026-10")
    (nobody,) = rules.find_problems(ILL["month"])
    assert nobody.text.startswith("Nobody gets an invoice of 2026-10: A day has no roll-up. ")
    # Each month has an incident of its own.
    months = [InvoicesFact(month, 1, "") for month in ("2026-09", "2026-10")]
    both = rules.find_problems(replace(WELL, invoices=months))
    assert len({finding.key for finding in both}) == 2


def test_an_incident_of_usage_says_what_differs():
    days = [date(2026, 10, 3), date(2026, 10, 5)]
    (both,) = rules.find_problems(replace(WELL, meter=MeterFact(totals_differ=True, days=days)))
    assert both.text.startswith("Running totals are not what their rows sum to. What usage files")
    assert "2026-10-03, 2026-10-05" in both.text
    assert rules.find_problems(replace(WELL, meter=MeterFact(totals_differ=False, days=[]))) == []


STATES = st.sampled_from(list(IncidentState))
KEYS = st.sampled_from(
    [
        (IncidentKind.BROKERS_CRASHING, "cl_a"),
        (IncidentKind.BROKERS_CRASHING, "cl_b"),
        (IncidentKind.CELL_UNREACHABLE, "local"),
    ]
)
KNOWN = st.lists(
    st.tuples(KEYS, STATES, st.integers(0, 30)), max_size=4, unique_by=lambda incident: incident[0]
)


@given(st.sampled_from([WELL, *ILL.values()]), KNOWN)
def test_after_the_changes_nothing_is_left_to_do(facts, before):
    incidents = {
        key: Known(f"inc_{place}", key[0], key[1], state, AT - age * MINUTE, "")
        for place, (key, state, age) in enumerate(before)
    }
    lasting = max(rules.SUSPECTED_FOR.values())
    at = AT + lasting
    for _ in range(2):
        present = rules.find_problems(facts)
        changes = rules.decide_changes(
            present, list(incidents.values()), at=at, certainty=facts.certainty
        )
        for change in changes:
            incidents = apply_change(incidents, change, at)
        at += lasting
    wrong = {finding.key for finding in rules.find_problems(facts)}
    opened = {incident.key for incident in incidents.values() if incident.state is OPEN}
    assert wrong <= opened
    unknown = set() if facts.cell_answers else rules.OF_CLUSTERS
    assert {key for key in opened - wrong if key[0] not in unknown} == set()


def apply_change(incidents, change, at):
    """Returns the incidents after a change was made."""
    match change:
        case Begin(finding, state):
            new = Known(
                f"new {finding.subject}", finding.kind, finding.subject, state, at, finding.text
            )
            return {**incidents, (finding.kind, finding.subject): new}
        case Forget(name):
            return {key: incident for key, incident in incidents.items() if incident.id != name}
        case Advance(name, state, text):
            return {
                key: replace(incident, state=state, text=text, since=at)
                if incident.id == name
                else incident
                for key, incident in incidents.items()
            }


def restarts_after(*looks):
    """Returns the restarts after sweeps that read `(minute, count)`, and when the last one was."""
    seen = None
    for minute, count in looks:
        seen = restarts.count_restarts(seen, count, AT + minute * MINUTE)
    return seen, AT + looks[-1][0] * MINUTE


@pytest.mark.parametrize(
    ("looks", "crashing"),
    [
        ([(0, 0)], False),
        ([(0, 1)], False),
        ([(0, 1), (1, 2), (2, 3)], True),
        # All restarts happened between two sweeps.
        ([(0, 1), (1, 4)], True),
        # Now and then is no loop.
        ([(0, 1), (60, 2), (120, 3)], False),
        # Restarts from before the first sweep say nothing.
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
    assert restarts.is_crash_loop(*restarts_after(*looks)) is crashing
