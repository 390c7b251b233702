"""A payer's allowance is shared by the organizations that it pays for."""

import json

import pytest
from django.utils import timezone

from billing.allowances.services import read_allowances
from billing.catalog import GIB
from billing.estimate import estimate_month
from billing.models import AllowanceShare, PriceVersion
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


def paid_by_in_month(organization, paid_by, fingerprint="card_a"):
    """Has a card pay for an organization since early in the month."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timezone, "now", lambda: world.AFTER.replace(month=9, day=2))
        paid_by(organization.id, fingerprint)


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


def test_an_invoice_takes_no_more_than_was_used_and_the_others_have_the_rest(
    both, collector, paid_by
):
    """One of a card's two organizations is closed early in the month, having used very little."""
    collector("transfer")
    publish_day(MONTH, [Used(both[0].id, "cl_" + "a" * 20, "ingress_bytes", 20_000_000)])
    for organization in both:
        paid_by_in_month(organization, paid_by)
    issue_invoices(both[0].id, close_early="a test")
    assert free_of(both[0].id) == {"ingress_bytes": 20_000_000}
    assert shares() == [(both[0].id, 20_000_000)]
    later = [
        Used(both[0].id, "cl_" + "a" * 20, "ingress_bytes", 20_000_000),
        Used(both[1].id, "cl_" + "b" * 20, "ingress_bytes", 20_000_000),
        Used(both[1].id, "cl_" + "b" * 20, "egress_bytes", 600_000_000),
    ]
    publish_day(MONTH, later)
    with organization_scope(both[1].id):
        assert estimate_month(both[1].id, MONTH).total_minor == 0
    issue_invoices()
    assert free_of(both[1].id) == {"ingress_bytes": 20_000_000, "egress_bytes": 600_000_000}
    assert invoices_of(both[1].id)[0].subtotal_minor == 0


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("quantities", [(3, 5), (7, 9), (12, 1), (1, 12), (15, 15)])
def test_the_order_of_invoices_changes_nothing_of_their_sum(shared, first, quantities):
    used = [
        Used(organization.id, "cl_" + name * 20, "ingress_bytes", quantity * GIB + 1)
        for organization, name, quantity in zip(shared, "ab", quantities, strict=True)
    ]
    publish_day(MONTH, used)
    issue_invoices(shared[first].id)
    issue_invoices()
    free = sum(free_of(organization.id)["ingress_bytes"] for organization in shared)
    assert free == min(FREE_GIB * GIB, sum(one.quantity for one in used))


def test_what_is_used_after_an_invoice_is_another_months(shared):
    issue_invoices(shared[0].id)
    fixed = free_of(shared[0].id)
    publish_day(MONTH, [Used(shared[0].id, "cl_" + "a" * 20, "ingress_bytes", 40 * GIB)])
    issue_invoices()
    assert free_of(shared[0].id) == fixed


def test_who_comes_to_a_payer_after_that_has_what_is_left(both, collector, clock, paid_by):
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
    assert len(shares()) == 3


def test_an_invoice_that_replaces_another_takes_what_was_used_as_is_known_now(shared):
    """A correction after the first invoice of a payer: what is left of the pool covers it."""
    for first, of_second in ((4, 10 - 4), (6, 10 - 6), (2, 10 - 2)):
        correct = [
            Used(shared[0].id, "cl_" + "a" * 20, "ingress_bytes", first * GIB),
            Used(shared[1].id, "cl_" + "b" * 20, "ingress_bytes", 20 * GIB),
        ]
        publish_day(MONTH, correct)
        issue_invoices(shared[0].id)
        invoices = [row for row in invoices_of(shared[0].id) if row.kind == "invoice"]
        lines = invoices[-1].lines.all()
        assert sum(int(line.free_quantity or 0) for line in lines) == first * GIB
        allowance = invoices[-1].allowance or {}
        assert allowance["free"]["ingress_bytes"] == str(first * GIB)
        with organization_scope(shared[1].id):
            used = {("cl_" + "b" * 20, "ingress_bytes"): 20 * GIB}
            catalog = PriceVersion.objects.in_force(MONTH).catalog()
            free = read_allowances(MONTH, [shared[1].id], catalog).free_of(shared[1].id, used)
        assert (free or {})["ingress_bytes"] == of_second * GIB
        void_invoice(invoice_id=invoices[-1].pk, reason="x", by="tests")


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
