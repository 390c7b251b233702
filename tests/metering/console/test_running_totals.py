"""Running totals are what the rows that count sum to: after every step, in whatever order."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.base.common.tenancy import organization_scope, system_scope
from metering.choices import PART_METERS
from metering.models import (
    MonthPart,
    ProvisionalMinute,
    ProvisionalPart,
    RollupPointer,
    RunningDay,
    RunningHour,
    RunningMonth,
    TotalsCheck,
    UsageRow,
)
from metering.periods import HOUR
from metering.services.comparing import check_running_totals, compare_hours, compare_month
from metering.services.month_usage import day_totals, month_totals
from metering.services.running import months_with_usage
from tests.metering.console.world import Used, publish_day, use_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]

# The last day of a month, and the days around it: today is the 20th.
MONTHS = (date(2026, 10, 1), date(2026, 11, 1))
DAYS = tuple(date(2026, 10, 30) + timedelta(days=number) for number in range(4))
MIDNIGHT = datetime(2026, 10, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
CLUSTERS = {"cl_a": "org_a", "cl_b": "org_a", "cl_c": "org_b"}
TOPICS = ("a" * 32, "b" * 32, "")
PRINCIPALS = ("User:a", "User:o'brien, \u202e&=%2F", "")
METERS = (*PART_METERS, "broker_seconds")


def usages(quantity):
    """A use of anything by anybody."""
    return st.builds(
        lambda cluster_id, **place: Used(CLUSTERS[cluster_id], cluster_id, **place),
        cluster_id=st.sampled_from(sorted(CLUSTERS)),
        meter=st.sampled_from(METERS),
        quantity=quantity,
        topic_id=st.sampled_from(TOPICS),
        principal=st.sampled_from(PRINCIPALS),
        billed=st.sampled_from([True, True, True, False]),
        hour=st.integers(0, 23),
    )


quantities = st.one_of(st.integers(1, 9), st.integers(1, 2**70))
# Windows of up to two hours, of which some cross midnight and the month's end.
additions = st.tuples(
    st.just("use"),
    usages(quantities),
    st.integers(0, 4 * 24 * 60 - 121),
    st.sampled_from([1, 1, 60, 120]),
)
# A correction of a day is one more run of it; a run may be empty, or early.
publications = st.tuples(
    st.just("publish"),
    st.sampled_from(DAYS),
    st.lists(usages(st.one_of(st.just(0), quantities)), max_size=4),
    st.sampled_from([False, False, True]),
)
stories = st.lists(st.one_of(additions, additions, publications), min_size=1, max_size=12)


def perform(step):
    if step[0] == "use":
        _, used, minute, minutes = step
        use_minute(used, MIDNIGHT + minute * MINUTE, minutes=minutes)
    else:
        _, day, used, early = step
        final = RollupPointer.objects.filter(day=day, early=False).exists()
        publish_day(day, used, early=early and not final)


def counted():
    """(organization, cluster, topic, principal, meter, day) → quantity, from rows, row by row."""
    runs = {pointer.day: pointer.run_id for pointer in RollupPointer.objects.filter(early=False)}
    sums: Counter[tuple[str, str, str, str, str, date]] = Counter()
    for row in UsageRow.objects.filter(granularity="day", billed=True):
        if runs.get(row.window_start.date()) == row.run_id:
            place = (row.organization_id, row.cluster_id, row.topic_id, row.principal, row.meter)
            sums[*place, row.window_start.date()] += int(row.quantity)
    for minute in ProvisionalMinute.objects.filter(billed=True):
        if minute.minute.date() not in runs:
            place = (
                minute.organization_id,
                minute.cluster_id,
                minute.topic_id,
                minute.principal,
                minute.meter,
            )
            sums[*place, minute.minute.date()] += int(minute.quantity)
    return sums, runs


def summed(items):
    """Sums of (key, quantity) without those of 0."""
    sums: Counter[tuple[object, ...]] = Counter()
    for key, quantity in items:
        sums[key] += quantity
    return {key: total for key, total in sums.items() if total}


def parts(rows, period):
    return summed(
        ((row.cluster_id, getattr(row, period), row.kind, row.name, meter), getattr(row, meter))
        for row in rows
        for meter in PART_METERS
    )


def assert_totals_are_sums():
    """Compares every total with sums that are made in Python, and so with no statement of ours."""
    sums, runs = counted()
    facts = [(*key, quantity) for key, quantity in sums.items()]
    assert summed(
        ((row.organization_id, row.cluster_id, row.meter, row.month), row.quantity)
        for row in RunningMonth.objects.all()
    ) == summed(
        ((owner, cluster, meter, day.replace(day=1)), n)
        for owner, cluster, _, _, meter, day, n in facts
    )
    assert summed(
        ((row.organization_id, row.cluster_id, row.meter, row.day), row.quantity)
        for row in RunningDay.objects.all()
    ) == summed(((owner, cluster, meter, day), n) for owner, cluster, _, _, meter, day, n in facts)
    of_parts = [
        (cluster, day, kind, name, meter, n)
        for _, cluster, topic, principal, meter, day, n in facts
        for kind, name in (("topic", topic), ("principal", principal))
        if meter in PART_METERS
    ]
    assert parts(MonthPart.objects.all(), "month") == summed(
        ((cluster, day.replace(day=1), *place), n) for cluster, day, *place, n in of_parts
    )
    assert parts(ProvisionalPart.objects.all(), "day") == summed(
        ((cluster, day, *place), n) for cluster, day, *place, n in of_parts if day not in runs
    )
    minutes = ProvisionalMinute.objects.filter(
        billed=True, meter__in=["storage_byte_minutes", "partition_minutes"]
    )
    assert summed(
        ((row.cluster_id, row.meter, row.hour), row.quantity) for row in RunningHour.objects.all()
    ) == summed(
        ((row.cluster_id, row.meter, row.minute.replace(minute=0)), row.quantity) for row in minutes
    )


def assert_nothing_differs():
    assert [compare_month(month).named for month in MONTHS] == [[], []]
    assert compare_hours().named == []


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(story=stories)
def test_after_every_step_totals_are_what_rows_sum_to(clock, story):
    clock.now = datetime(2026, 11, 3, 1, tzinfo=UTC)
    with system_scope(), transaction.atomic():
        for step in story:
            perform(step)
            assert_totals_are_sums()
        assert_nothing_differs()
        for month in months_with_usage():
            call_command("running_totals", "--rebuild", "--month", f"{month:%Y-%m}", stdout=Quiet())
        assert_totals_are_sums()
        transaction.set_rollback(True)


class Quiet:
    """Takes what a command prints."""

    def write(self, text):
        pass


@pytest.fixture
def month():
    """A published day, and minutes of another."""
    publish_day(DAYS[2], [Used("org_a", "cl_a", "ingress_bytes", 100)])
    minute = datetime(2026, 11, 2, 12, tzinfo=UTC)
    use_minute(Used("org_a", "cl_a", "ingress_bytes", 7), minute)
    use_minute(Used("org_a", "cl_a", "storage_byte_minutes", 60), minute, minutes=60)
    use_minute(Used("org_b", "cl_c", "egress_bytes", 9), minute)
    return MONTHS[1]


def test_totals_are_read_by_organization(month):
    with system_scope():
        assert month_totals(month, ["org_a", "org_b", "org_c"]) == {
            "org_a": {("cl_a", "ingress_bytes"): 107, ("cl_a", "storage_byte_minutes"): 60},
            "org_b": {("cl_c", "egress_bytes"): 9},
            "org_c": {},
        }
    with organization_scope("org_b"):
        assert month_totals(month, ["org_a", "org_b"])["org_a"] == {}
        assert day_totals("org_a", month) == {}
        assert day_totals("org_b", month) == {
            ("cl_c", "egress_bytes"): {date(2026, 11, 2): 9},
        }


def test_an_early_run_changes_no_total(month):
    with system_scope():
        before = month_totals(month, ["org_a"])
        used = [Used("org_a", "cl_a", "ingress_bytes", 3)]
        publish_day(date(2026, 11, 2), used, early=True)
        assert month_totals(month, ["org_a"]) == before
        use_minute(used[0], datetime(2026, 11, 2, 13, tzinfo=UTC))
        assert month_totals(month, ["org_a"])["org_a"]["cl_a", "ingress_bytes"] == 110
        publish_day(date(2026, 11, 2), used)
        assert month_totals(month, ["org_a"]) == {"org_a": {("cl_a", "ingress_bytes"): 103}}
        assert_nothing_differs()


SPOILED: dict[str, Callable[[], Any]] = {
    "metering_runningmonth": lambda: RunningMonth.objects.get(cluster_id="cl_c"),
    "metering_runningday": lambda: RunningDay.objects.get(day=DAYS[2]),
    "metering_runninghour": lambda: RunningHour.objects.get(cluster_id="cl_a"),
}


@pytest.mark.parametrize("table", sorted(SPOILED))
def test_a_total_that_is_wrong_is_found_reported_and_left_as_it_is(month, table, clock, caplog):
    clock.now = datetime(2026, 11, 3, 1, tzinfo=UTC)
    check = check_running_totals()
    assert check is not None
    assert (check.differing, check.differences) == (0, [])
    # Once a night.
    assert check_running_totals() is None
    with system_scope():
        spoiled = SPOILED[table]()
        type(spoiled).objects.filter(pk=spoiled.pk).update(quantity=spoiled.quantity + 1)
    clock.now += timedelta(days=1)
    check = check_running_totals()
    assert check is not None
    assert check.differing == 1
    (difference,) = check.differences
    assert difference.startswith(f"{table} {spoiled.organization_id} {spoiled.cluster_id}")
    (logged,) = [one for one in caplog.records if one.message == "usage.totals_differ"]
    assert (logged.levelname, logged.differing) == ("ERROR", 1)
    assert TotalsCheck.objects.count() == 2
    with pytest.raises(CommandError, match="1 totals are not what their rows sum to"):
        call_command("running_totals", stdout=Quiet())
    call_command("running_totals", "--rebuild", stdout=Quiet())
    with system_scope():
        assert type(spoiled).objects.get(pk=spoiled.pk).quantity == spoiled.quantity
        assert_totals_are_sums()


def test_a_part_that_is_wrong_is_found(month):
    with system_scope():
        MonthPart.objects.filter(kind="topic", cluster_id="cl_a").update(egress_bytes=5)
        ProvisionalPart.objects.filter(kind="principal", cluster_id="cl_c").delete()
    comparison = compare_month(month)
    assert comparison.differing == 2
    assert [difference.table for difference in comparison.named] == [
        "metering_monthpart",
        "metering_provisionalpart",
    ]
    missing = comparison.named[1]
    assert (missing.kept, missing.summed) == ((), (0, 9, 0, 0))


def test_a_check_waits_for_the_nights_roll_ups(month, clock):
    clock.now = datetime(2026, 11, 3, 0, 10, tzinfo=UTC)
    assert check_running_totals() is None
    clock.now += HOUR
    assert check_running_totals() is not None
