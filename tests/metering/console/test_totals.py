"""What billing reads: totals of a month, the rows behind them, whether it can close."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, ProgrammingError, transaction

from console.base.common.tenancy import organization_scope, system_scope
from metering.models import JudgedHour, UsageRow
from metering.periods import days_of_month, month_span
from metering.services import (
    billable_totals,
    metered_until,
    month_completeness,
    usage_row_ids,
)
from tests.metering.console.world import Used, make_hours_complete, publish_day

pytestmark = pytest.mark.django_db
MONTH = date(2026, 10, 1)
DAY = date(2026, 10, 3)
INGRESS, EGRESS = "ingress_bytes", "egress_bytes"


def test_totals_are_of_published_billed_days_in_order_of_organizations():
    publish_day(
        DAY,
        [
            Used("org_b", "cl_b", INGRESS, 5, hour=1),
            Used("org_b", "cl_b", INGRESS, 7, hour=2, principal="User:other"),
            Used("org_b", "cl_b", INGRESS, 100, billed=False),
            Used("org_a", "cl_a", EGRESS, 3),
        ],
    )
    publish_day(date(2026, 10, 31), [Used("org_a", "cl_a", EGRESS, 2**70)])
    publish_day(date(2026, 11, 1), [Used("org_a", "cl_a", EGRESS, 1000)])
    with system_scope():
        totals = list(billable_totals(MONTH))
        assert [(total.organization_id, total.meter, total.quantity) for total in totals] == [
            ("org_a", EGRESS, 3 + 2**70),
            ("org_b", INGRESS, 12),
        ]
        rows = UsageRow.objects.filter(pk__in=totals[1].row_ids())
        assert sum(row.quantity for row in rows) == 12
        assert {row.granularity for row in rows} == {"day"}
    with organization_scope("org_a"):
        assert [total.organization_id for total in billable_totals(MONTH)] == ["org_a"]
        assert list(billable_totals(MONTH, "org_b")) == []


def test_a_corrected_day_replaces_the_run_and_keeps_its_rows():
    publish_day(DAY, [Used("org_a", "cl_a", INGRESS, 5)])
    with system_scope():
        before = usage_row_ids("org_a", "cl_a", INGRESS, MONTH)
    publish_day(DAY, [Used("org_a", "cl_a", INGRESS, 4)])
    with system_scope():
        assert [total.quantity for total in billable_totals(MONTH)] == [4]
        assert usage_row_ids("org_a", "cl_a", INGRESS, MONTH) != before
        assert UsageRow.objects.get(pk=before[0]).quantity == Decimal(5)


def execute(role, statement):
    with transaction.get_connection(role).cursor() as cursor:
        cursor.execute("SELECT set_config('freshet.organization', '*', true)")
        cursor.execute(statement)


@pytest.mark.parametrize("role", ["default", "owner"])
@pytest.mark.django_db(databases=["default", "owner"], transaction=True)
def test_published_rows_and_finished_runs_never_change(role):
    run = publish_day(DAY, [Used("org_a", "cl_a", INGRESS, 5)])
    refused = ProgrammingError if role == "default" else IntegrityError
    for statement in ("UPDATE metering_usagerow SET quantity = 1", "DELETE FROM metering_usagerow"):
        with pytest.raises(refused), transaction.atomic(using=role):
            execute(role, statement)
    with pytest.raises(IntegrityError, match="only ever added"):
        type(run).objects.using(role).filter(pk=run.pk).update(report={"other": 1})


def test_a_month_closes_when_each_day_is_published_and_each_hour_complete():
    start, end = month_span(MONTH)
    used = [Used("org_a", "cl_a", INGRESS, 5)]
    make_hours_complete("org_a", "cl_a", start, end)
    for day in days_of_month(MONTH):
        with system_scope():
            assert not month_completeness(MONTH).complete
        publish_day(day, used)
    with system_scope():
        assert month_completeness(MONTH).complete
        JudgedHour.objects.filter(hour=start).update(complete=False, reason="lane 3 has a gap")
        month = month_completeness(MONTH)
        assert not month.complete
        assert [(hour.hour, hour.reason) for hour in month.incomplete_hours] == [
            (start, "lane 3 has a gap")
        ]
        assert month_completeness(MONTH, "org_b").complete


def test_a_cluster_that_no_file_speaks_of_keeps_a_month_open():
    start, end = month_span(MONTH)
    for day in days_of_month(MONTH):
        publish_day(day, [])
    make_hours_complete("org_a", "cl_a", start, end)
    with system_scope():
        assert month_completeness(MONTH, clusters=["cl_a"]).complete
        month = month_completeness(MONTH, clusters=["cl_a", "cl_b"])
        assert not month.complete
        assert [hour.cluster_id for hour in month.incomplete_hours] == ["cl_b"]


def test_a_cluster_is_metered_until_its_first_incomplete_hour():
    start, end = month_span(MONTH)
    make_hours_complete("org_a", "cl_a", start, end)
    with system_scope():
        assert metered_until("cl_a") == end
        JudgedHour.objects.filter(hour=end - timedelta(hours=2)).update(complete=False)
        assert metered_until("cl_a") == end - timedelta(hours=2)
        assert metered_until("cl_b") is None
