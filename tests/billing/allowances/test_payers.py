"""Who pays for an organization, from when until when."""

from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import DatabaseError, transaction

from billing.allowances.links import organizations_of_payers, payers_of_month
from billing.allowances.payers import account_fingerprint, assign_payer, payer_of, remove_payer
from billing.choices import PayerKind
from billing.models import Payer, PayerOrganization
from console.base.accounts.choices import TrafficLimitKind, TrafficLimitSource
from console.base.accounts.models import TrafficLimit
from console.base.accounts.services import set_traffic_limit
from console.base.common.tenancy import organization_scope, system_scope

NOVEMBER = date(2026, 11, 1)
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def at(clock):
    clock.now = NOON
    return clock


def payer_now(organization_id):
    with organization_scope(organization_id):
        return payer_of(organization_id)


def test_a_card_that_two_organizations_share_is_one_payer(tenant, other_tenant, paid_by):
    first, second = paid_by(tenant.id, "card_a"), paid_by(other_tenant.id, "card_a")
    assert first == second
    assert payer_now(tenant.id) == payer_now(other_tenant.id) == first.pk
    with system_scope():
        assert payers_of_month(NOVEMBER, [tenant.id, "org_x"]) == {tenant.id: first.pk}
        groups = organizations_of_payers(NOVEMBER, [first.pk])
    assert sorted(groups[first.pk]) == sorted([tenant.id, other_tenant.id])


def test_repeating_it_changes_nothing(tenant, paid_by):
    assert paid_by(tenant.id, "card_a") == paid_by(tenant.id, "card_a")
    assert paid_by(tenant.id, "") == paid_by(tenant.id, "")
    with system_scope():
        assert PayerOrganization.objects.count() == 2
    assert Payer.objects.count() == 2


def test_cards_without_a_fingerprint_are_each_their_own(tenant, other_tenant, paid_by):
    assert paid_by(tenant.id, "") != paid_by(other_tenant.id, "")


def test_a_month_is_the_last_payers_that_it_had(tenant, paid_by, at):
    first = paid_by(tenant.id, "card_a")
    at.now = NOON + timedelta(days=2)
    second = paid_by(tenant.id, "card_b")
    at.now = NOON + timedelta(days=3)
    assert remove_payer(organization_id=tenant.id)
    assert not remove_payer(organization_id=tenant.id)
    assert payer_now(tenant.id) is None
    with system_scope():
        # What was used with a card is billed, though the card was removed before the month's end.
        assert payers_of_month(NOVEMBER, [tenant.id]) == {tenant.id: second.pk}
        assert payers_of_month(date(2026, 12, 1), [tenant.id]) == {}
        assert payers_of_month(date(2026, 10, 1), [tenant.id]) == {}
        assert organizations_of_payers(NOVEMBER, [first.pk]) == {first.pk: []}


def test_a_payer_lifts_what_its_lack_refused(tenant, paid_by):
    for source in (TrafficLimitSource.ALLOWANCE, TrafficLimitSource.BUDGET):
        set_traffic_limit(
            organization_id=tenant.id, source=source, kind=TrafficLimitKind.REFUSE, reason="x"
        )
    paid_by(tenant.id, "card_a")
    with system_scope():
        left = TrafficLimit.objects.values_list("source", flat=True)
        assert list(left) == [TrafficLimitSource.BUDGET]


def test_the_same_account_in_another_writing_is_the_same(tenant, other_tenant):
    writings = ("DE02 1203 0000 0000 2020 51", "de02120300000000202051")
    first, second = (
        assign_payer(
            organization_id=organization.id,
            kind=PayerKind.ACCOUNT,
            fingerprint=account_fingerprint(iban),
        )
        for organization, iban in zip((tenant, other_tenant), writings, strict=True)
    )
    assert first == second


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.update(since=NOON - timedelta(days=9)),
        lambda rows: rows.delete(),
        lambda rows: rows.update(until=NOON - timedelta(days=9)),
    ],
)
def test_who_paid_for_a_past_month_stays(tenant, paid_by, change):
    paid_by(tenant.id, "card_a")
    with system_scope(), pytest.raises(DatabaseError), transaction.atomic():
        change(PayerOrganization.objects.filter(organization_id=tenant.id))
