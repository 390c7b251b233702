"""What many organizations spent, read at once from their running totals."""

from datetime import UTC, date, datetime

from billing.rating import Spent
from billing.spending import spent_by_organization
from console.base.common.tenancy import organization_scope, system_scope
from metering.services.month_usage import month_totals
from tests.billing.budgets.spending import (
    FREE_INGRESS,
    INGRESS_A_CENT,
    cluster_of,
    spend_cents,
    use_bytes,
)
from tests.metering.console.world import Used, publish_day

MONTH = date(2026, 11, 1)
DAYS = [datetime(2026, 11, day, 12, tzinfo=UTC) for day in (1, 20, 30)]
EDGES = [
    datetime(2026, 10, 31, 23, 59, tzinfo=UTC),
    datetime(2026, 12, 1, tzinfo=UTC),
]


def totals(*organization_ids):
    with system_scope():
        return month_totals(MONTH, organization_ids)


def test_a_day_counts_from_its_minutes_until_it_is_published(at, tenant, other_tenant):
    for number, moment in enumerate([*DAYS, *EDGES]):
        for organization in (tenant, other_tenant):
            use_bytes(organization.id, 10**number, minute=moment)
            use_bytes(organization.id, 5, minute=moment, billed=False)
    expected = {
        organization.id: {(cluster_of(organization.id), "ingress_bytes"): 111}
        for organization in (tenant, other_tenant)
    }
    assert totals(tenant.id, other_tenant.id) == expected
    assert totals(tenant.id) == {tenant.id: expected[tenant.id]}
    used = Used(tenant.id, cluster_of(tenant.id), "ingress_bytes", 3_000)
    unbilled = Used(tenant.id, cluster_of(tenant.id), "broker_seconds", 7, billed=False)
    for quantity in (3_000, 4_000):
        corrected = Used(used.organization_id, used.cluster_id, used.meter, quantity)
        publish_day(date(2026, 11, 20), [corrected, unbilled])
        expected[tenant.id] = {(cluster_of(tenant.id), "ingress_bytes"): 101 + quantity}
        # The whole day is published: the other organization used nothing of it.
        expected[other_tenant.id] = {(cluster_of(other_tenant.id), "ingress_bytes"): 101}
        assert totals(tenant.id, other_tenant.id) == expected


def test_who_used_nothing_spent_nothing(at, tenant, other_tenant):
    spend_cents(tenant.id, 25)
    with system_scope():
        spent = spent_by_organization(date(2026, 11, 17), [tenant.id, other_tenant.id])
    assert spent == {tenant.id: Spent(25, 0), other_tenant.id: Spent(0, 0)}


def test_an_organizations_scope_shows_its_own(at, tenant, other_tenant):
    use_bytes(other_tenant.id, FREE_INGRESS + INGRESS_A_CENT)
    with organization_scope(tenant.id):
        shown = month_totals(MONTH, [tenant.id, other_tenant.id])
    assert shown == {tenant.id: {}, other_tenant.id: {}}


def test_what_has_no_price_keeps_nobody_from_their_budgets(at, tenant, other_tenant, caplog):
    spend_cents(tenant.id, 25)
    spend_cents(other_tenant.id, 30)
    use_bytes(tenant.id, 1_000, meter="unheard_of")
    use_bytes(other_tenant.id, 7, meter="broker_seconds")
    with system_scope():
        spent = spent_by_organization(MONTH, [tenant.id, other_tenant.id])
    assert spent == {tenant.id: Spent(25, 0), other_tenant.id: Spent(30, 0)}
    (logged,) = [
        record for record in caplog.records if record.message == "spending.unpriced_meters"
    ]
    assert (logged.levelname, logged.organization, logged.meters) == (
        "ERROR",
        tenant.id,
        ["unheard_of"],
    )
