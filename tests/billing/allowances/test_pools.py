"""A payer's allowance is shared by the organizations that it pays for."""

import json

import pytest

from billing.catalog import GIB
from billing.estimate import estimate_month
from billing.models import AllowanceShare
from billing.services.voiding import void_invoice
from console.base.common.tenancy import organization_scope, system_scope
from metering.services.month_usage import month_totals
from tests.billing import world
from tests.billing.test_evidence import pack_of, recompute, unpacked
from tests.billing.world import MONTH, invoices_of, issue_invoices
from tests.metering.console.world import Used, publish_day

FREE_GIB = 10
# Of 30 GiB that both use together, of which 10 are free: a third of each, and not exactly.
FIRST, SECOND = 10 * GIB + 1, 20 * GIB


@pytest.fixture
def both(tenant, other_tenant, clock):
    """Two organizations that used something in the month, all of it published."""
    used = []
    for organization, name, quantity in ((tenant, "a", FIRST), (other_tenant, "b", SECOND)):
        world.sign_up(organization.organization)
        cluster = world.make_cluster(organization.id, f"cl_{name * 20}", "orders")
        used.append(Used(organization.id, cluster, "ingress_bytes", quantity))
    world.publish_month(used)
    return tenant, other_tenant


@pytest.fixture
def shared(both, clock, collector, paid_by):
    """Both are paid for by one card since the month."""
    collector("transfer")
    clock.now = world.AFTER.replace(month=9, day=2)
    for organization in both:
        paid_by(organization.id, "card_a")
    clock.now = world.AFTER
    return both


def free_of(organization_id):
    """The free quantities on the last invoice of an organization, by meter."""
    invoice = invoices_of(organization_id)[-1]
    return {line.meter: int(line.free_quantity or 0) for line in invoice.lines.all()}


def shares():
    with system_scope():
        rows = AllowanceShare.objects.filter(meter="ingress_bytes").order_by("quantity")
        return [(row.organization_id, int(row.quantity)) for row in rows]


def test_without_a_collector_each_has_its_own(both):
    issue_invoices()
    for organization in both:
        assert free_of(organization.id) == {"ingress_bytes": FREE_GIB * GIB}
        assert invoices_of(organization.id)[0].allowance is None
    assert shares() == []


def test_by_transfer_each_is_its_own_payer(both, collector):
    collector("transfer")
    issue_invoices()
    for organization in both:
        assert free_of(organization.id) == {"ingress_bytes": FREE_GIB * GIB}
        assert invoices_of(organization.id)[0].allowance is None


def test_one_pool_is_shared_and_none_of_it_is_lost(shared):
    issue_invoices()
    first, second = (free_of(organization.id)["ingress_bytes"] for organization in shared)
    assert first + second == FREE_GIB * GIB
    assert abs(first - FREE_GIB * GIB * FIRST // (FIRST + SECOND)) <= 1
    assert shares() == [(shared[0].id, first), (shared[1].id, second)]


def test_the_shares_are_fixed_for_all_when_the_first_is_invoiced(shared, clock, paid_by):
    issue_invoices(shared[0].id)
    fixed = shares()
    assert [owner for owner, _ in fixed] == [organization.id for organization in shared]
    # A later correction changes nobody's share, and an organization that comes later has none.
    publish_day(MONTH, [Used(shared[1].id, "cl_" + "b" * 20, "ingress_bytes", 40 * GIB)])
    issue_invoices()
    assert shares() == fixed
    assert free_of(shared[1].id) == {"ingress_bytes": fixed[1][1]}


def test_who_comes_to_a_payer_after_that_has_nothing_free(both, collector, clock, paid_by):
    collector("transfer")
    clock.now = world.AFTER.replace(month=9, day=2)
    paid_by(both[0].id, "card_a")
    clock.now = world.AFTER.replace(month=9, day=29)
    issue_invoices(both[0].id, close_early="a test")
    assert free_of(both[0].id) == {"ingress_bytes": FREE_GIB * GIB}
    paid_by(both[1].id, "card_a")
    clock.now = world.AFTER
    issue_invoices()
    assert free_of(both[1].id) == {"ingress_bytes": 0}


def test_an_invoice_that_replaces_another_takes_the_same(shared):
    issue_invoices()
    before = free_of(shared[0].id)
    void_invoice(invoice_id=invoices_of(shared[0].id)[0].pk, reason="x", by="tests")
    issue_invoices(shared[0].id)
    assert [
        int(line.free_quantity or 0) for line in invoices_of(shared[0].id)[1].lines.all()
    ] == list(before.values())
    assert len(shares()) == 2


def test_a_draft_fixes_nothing(shared):
    issue_invoices(draft=True)
    assert shares() == []


def test_the_estimate_of_a_month_says_what_its_invoice_will(shared):
    estimates = []
    for organization in shared:
        with organization_scope(organization.id):
            estimates.append(estimate_month(organization.id, MONTH))
            # What others of the payer use is shown to nobody.
            assert (
                month_totals(MONTH, [other.id for other in shared])[
                    shared[organization is shared[0]].id
                ]
                == {}
            )
    issue_invoices()
    for organization, estimate in zip(shared, estimates, strict=True):
        invoice = invoices_of(organization.id)[0]
        assert estimate.total_minor == invoice.subtotal_minor
        assert [line.rated.free_quantity for line in estimate.lines] == [
            free_of(organization.id)["ingress_bytes"]
        ]


def test_the_evidence_says_what_was_free_and_agrees(shared, tmp_path):
    issue_invoices()
    files = unpacked(pack_of(invoices_of(shared[0].id)[0]))
    allowance = json.loads(files["invoice.json"])["allowance"]
    assert allowance["kind"] == "pool"
    assert allowance["free"]["ingress_bytes"] == str(free_of(shared[0].id)["ingress_bytes"])
    result = recompute(tmp_path, files)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_evidence_of_a_credit_note_agrees(shared, tmp_path):
    issue_invoices()
    void_invoice(invoice_id=invoices_of(shared[0].id)[0].pk, reason="x", by="tests")
    result = recompute(tmp_path, unpacked(pack_of(invoices_of(shared[0].id)[-1])))
    assert result.returncode == 0, result.stdout + result.stderr
