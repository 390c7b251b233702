"""What slips past the end of a trial before a card is given is free, also afterwards."""

from datetime import UTC, datetime

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
    """Has it used so much more after the cut."""
    whole = 10 * GIB + SLIPPED + quantity
    publish_day(MONTH, [Used(organization.id, CLUSTER, "ingress_bytes", whole)])


def cost_of(organization):
    with organization_scope(organization.id):
        return estimate_month(organization.id, MONTH).total_minor


def test_a_card_bills_nothing_that_slipped_past_before(cut, paid_by):
    assert cost_of(cut) == 0
    paid_by(cut.id, "card_a")
    assert cost_of(cut) == 0
    use_more(cut, GIB)
    # With a card each byte is billed beyond what the card has free.
    assert cost_of(cut) == 4


def test_the_invoice_says_so_and_its_evidence_agrees(cut, paid_by, clock, tmp_path):
    paid_by(cut.id, "card_a")
    use_more(cut, GIB)
    clock.now = world.AFTER
    issue_invoices(cut.id)
    invoice = invoices_of(cut.id)[0]
    assert invoice.subtotal_minor == 4
    assert (invoice.allowance or {})["free"]["ingress_bytes"] == str(10 * GIB + SLIPPED)
    result = recompute(tmp_path, unpacked(pack_of(invoice)))
    assert result.returncode == 0, result.stdout + result.stderr


def test_it_takes_nothing_of_what_others_of_the_card_have_free(cut, other_tenant, paid_by, clock):
    """10 GiB of the card were used by the first, so that the second has nothing free."""
    world.sign_up(other_tenant.organization)
    cluster = world.make_cluster(other_tenant.id, "cl_bbbbbbbbbbbbbbbbbbbb", "events")
    paid_by(cut.id, "card_a")
    paid_by(other_tenant.id, "card_a")
    more = [
        Used(cut.id, CLUSTER, "ingress_bytes", 10 * GIB + SLIPPED),
        Used(other_tenant.id, cluster, "ingress_bytes", 10 * GIB),
    ]
    publish_day(MONTH, more)
    clock.now = world.AFTER
    issue_invoices()
    free = [
        int(invoices_of(o.id)[0].lines.all()[0].free_quantity or 0) for o in (cut, other_tenant)
    ]
    assert free == [5 * GIB + SLIPPED, 5 * GIB]


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


def test_only_traffic_past_the_trial_of_this_month_is_kept(cut, paid_by, clock):
    clock.now = datetime(2026, 10, 2, 12, tzinfo=UTC)
    paid_by(cut.id, "card_a")
    with system_scope():
        assert PayerOrganization.objects.get().past_trial == {}


@pytest.mark.parametrize("name", ["none", "transfer"])
def test_where_no_cards_are_charged_nothing_slips_past(cut, paid_by, collector, name):
    collector(name)
    paid_by(cut.id, "account")
    with system_scope():
        assert PayerOrganization.objects.get().past_trial == {}


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
