"""What is used before a card is given stays free: the trial, and what slips past its end."""

import dataclasses
from datetime import UTC, date, datetime

import pytest

from billing.allowances.payers import remove_payer
from billing.catalog import GIB
from billing.estimate import estimate_month
from billing.models import PayerOrganization
from console.base.common.tenancy import organization_scope, system_scope
from tests.billing import world
from tests.billing.allowances.test_trials import (
    by_card,  # noqa: F401 (a fixture)
    left,
    prove,
)
from tests.billing.test_evidence import pack_of, recompute, unpacked
from tests.billing.world import MONTH, invoices_of, issue_invoices
from tests.metering.console.world import Used, publish_day

CLUSTER = "cl_aaaaaaaaaaaaaaaaaaaa"
# What the cluster took beyond the trial before the stop reached it.
SLIPPED = 24 * GIB // 10


@pytest.fixture
def cut(tenant):
    """An organization without a payer that used more than its trial."""
    prove(tenant, "ada@example.com")
    world.sign_up(tenant.organization)
    world.make_cluster(tenant.id, CLUSTER, "orders")
    left(tenant)
    world.publish_month([Used(tenant.id, CLUSTER, "ingress_bytes", 10 * GIB + SLIPPED)])
    return tenant


def use_more(organization, quantity):
    """Has it used so much more after the cut, beyond what a card has free in the month."""
    whole = 10 * GIB + SLIPPED + 10 * GIB + quantity
    publish_day(MONTH, [Used(organization.id, CLUSTER, "ingress_bytes", whole)])


def cost_of(organization):
    with organization_scope(organization.id):
        return estimate_month(organization.id, MONTH).total_minor


def test_a_card_bills_nothing_that_was_used_before(cut, paid_by):
    assert cost_of(cut) == 0
    paid_by(cut.id, "card_a")
    assert cost_of(cut) == 0
    # The card begins with what is free in a month.
    use_more(cut, 0)
    assert cost_of(cut) == 0
    use_more(cut, GIB)
    assert cost_of(cut) == 4


def test_what_is_stored_within_the_trial_is_free_and_no_part_of_the_cards(cut, paid_by):
    stored = Used(cut.id, CLUSTER, "storage_byte_minutes", 4 * GIB * world.MINUTES, principal="")
    publish_day(MONTH, [stored])
    paid_by(cut.id, "card_a")
    more = dataclasses.replace(stored, quantity=9 * GIB * world.MINUTES)
    publish_day(MONTH, [more])
    assert cost_of(cut) == 0
    publish_day(MONTH, [dataclasses.replace(stored, quantity=10 * GIB * world.MINUTES)])
    assert cost_of(cut) > 0


def test_a_trial_is_used_up_by_a_month_in_which_a_card_came(cut, paid_by, clock):
    """Who gives a card and removes it again has no second trial; also before the invoice comes."""
    paid_by(cut.id, "card_a")
    remove_payer(organization_id=cut.id)
    october = date(2026, 10, 1)
    assert left(cut, october)["ingress_bytes"] == 0
    clock.now = world.AFTER
    issue_invoices(cut.id)
    after = left(cut, october)
    assert after["ingress_bytes"] == 0
    assert after["egress_bytes"] == 10 * GIB


def test_the_invoice_says_so_and_its_evidence_agrees(cut, paid_by, clock, tmp_path):
    paid_by(cut.id, "card_a")
    use_more(cut, GIB)
    clock.now = world.AFTER
    issue_invoices(cut.id)
    invoice = invoices_of(cut.id)[0]
    assert invoice.subtotal_minor == 4
    assert (invoice.allowance or {})["free"]["ingress_bytes"] == str(20 * GIB + SLIPPED)
    result = recompute(tmp_path, unpacked(pack_of(invoice)))
    assert result.returncode == 0, result.stdout + result.stderr


def test_it_takes_nothing_of_what_others_of_the_card_have_free(cut, other_tenant, paid_by, clock):
    """What the first used before it had a card is free apart from what the card has."""
    world.sign_up(other_tenant.organization)
    cluster = world.make_cluster(other_tenant.id, "cl_bbbbbbbbbbbbbbbbbbbb", "events")
    paid_by(cut.id, "card_a")
    paid_by(other_tenant.id, "card_a")
    more = [
        Used(cut.id, CLUSTER, "ingress_bytes", 20 * GIB + SLIPPED),
        Used(other_tenant.id, cluster, "ingress_bytes", 10 * GIB),
    ]
    publish_day(MONTH, more)
    clock.now = world.AFTER
    issue_invoices()
    free = [
        int(invoices_of(o.id)[0].lines.all()[0].free_quantity or 0) for o in (cut, other_tenant)
    ]
    assert free == [15 * GIB + SLIPPED, 5 * GIB]


def test_changing_or_removing_the_card_makes_nothing_more_free(cut, paid_by, clock):
    paid_by(cut.id, "card_a")
    use_more(cut, GIB)
    for fingerprint in ("card_b", "card_a"):
        paid_by(cut.id, fingerprint)
        assert cost_of(cut) == 4
    remove_payer(organization_id=cut.id)
    use_more(cut, 2 * GIB)
    assert cost_of(cut) == 8
    paid_by(cut.id, "card_a")
    assert cost_of(cut) == 8


def test_only_what_was_used_in_this_month_is_kept(cut, paid_by, clock):
    clock.now = datetime(2026, 10, 2, 12, tzinfo=UTC)
    paid_by(cut.id, "card_a")
    with system_scope():
        assert PayerOrganization.objects.get().free_before == {}


@pytest.mark.parametrize("name", ["none", "transfer"])
def test_where_no_cards_are_charged_nothing_slips_past(cut, paid_by, collector, name):
    collector(name)
    paid_by(cut.id, "account")
    with system_scope():
        assert PayerOrganization.objects.get().free_before == {}


def test_costs_say_what_is_left_of_a_trial(tenant, api, paid_by):
    prove(tenant, "ada@example.com")
    world.sign_up(tenant.organization)
    world.make_cluster(tenant.id, CLUSTER, "orders")
    assert api().get("/costs?month=2026-09").json()["trial_left"] == {}
    left(tenant)
    publish_day(MONTH, [Used(tenant.id, CLUSTER, "ingress_bytes", 4 * GIB)])
    shown = api().get("/costs?month=2026-09").json()["trial_left"]
    assert shown == {
        "ingress_bytes": str(6 * GIB),
        "egress_bytes": str(10 * GIB),
        "storage_byte_minutes": str(5 * GIB * world.MINUTES),
        "partition_minutes": str(1_000 * world.MINUTES),
    }
    publish_day(MONTH, [Used(tenant.id, CLUSTER, "ingress_bytes", 11 * GIB)])
    assert api().get("/costs?month=2026-09").json()["trial_left"]["ingress_bytes"] == "0"
    paid_by(tenant.id, "card_a")
    assert api().get("/costs?month=2026-09").json()["trial_left"] is None
