"""Who has no payer has a trial: once for an address, and a hard stop behind it."""

import dataclasses
from datetime import UTC, date, datetime

import pytest
from django.core import mail

from billing.allowances.enforcement import enforce_allowances
from billing.allowances.payers import remove_payer
from billing.allowances.trials import ensure_trials, trials_left
from billing.catalog import GIB
from billing.estimate import estimate_month
from billing.models import AllowanceShare, Trial
from console.base.accounts.models import TrafficLimit, User
from console.base.common.tenancy import organization_scope, system_scope
from tests.billing import world
from tests.billing.test_evidence import pack_of, recompute, unpacked
from tests.billing.world import MINUTES, MONTH, invoices_of, issue_invoices
from tests.console.outbox import run_outbox
from tests.metering.console.world import Used, use_minute

TRIAL = {
    "ingress_bytes": 10 * GIB,
    "egress_bytes": 10 * GIB,
    "storage_byte_minutes": 5 * GIB * MINUTES,
    "partition_minutes": 1_000 * MINUTES,
}
IN_MONTH = datetime(2026, 9, 20, 12, tzinfo=UTC)
NEXT_MONTH = datetime(2026, 10, 2, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def by_card(collector, clock):
    """Cards are charged; it is a day in `MONTH`."""
    collector("stripe")
    clock.now = IN_MONTH


def prove(organization, email):
    """Has the owner of an organization prove an address."""
    User.objects.filter(pk=organization.owner.pk).update(email=email, email_verified_at=IN_MONTH)


def use(organization, quantity, meter="ingress_bytes", at=IN_MONTH):
    use_minute(Used(organization.id, f"cl_{organization.id[4:]}", meter, quantity), at)


def left(organization, month=MONTH):
    with system_scope():
        ensure_trials([organization.id])
        return trials_left(month, [organization.id]).get(organization.id)


def refused():
    """The organizations whose traffic is refused for want of an allowance."""
    with system_scope():
        limits = TrafficLimit.objects.filter(source="allowance", kind="refuse")
        return set(limits.values_list("organization_id", flat=True))


def test_an_address_gives_one_trial(tenant, other_tenant):
    prove(tenant, "ada@example.com")
    assert left(tenant) == TRIAL
    prove(other_tenant, "ada+again@example.com")
    assert left(other_tenant) == {}
    with system_scope():
        first, second = Trial.objects.order_by("address_sha256")
    assert (first.organization_id, second.organization_id) == (tenant.id, other_tenant.id)
    # No address is kept.
    assert "ada" not in str(first.__dict__)


def test_an_address_that_is_not_proved_gives_none(tenant, settings):
    User.objects.filter(pk=tenant.owner.pk).update(email_verified_at=None)
    settings.FRESHET = dataclasses.replace(settings.FRESHET, mode="production")
    assert left(tenant) is None
    settings.FRESHET = dataclasses.replace(settings.FRESHET, mode="local")
    assert left(tenant) == TRIAL


def test_traffic_stops_where_a_trial_is_used_up(tenant, other_tenant):
    prove(tenant, "ada@example.com")
    prove(other_tenant, "bea@example.com")
    use(tenant, 10 * GIB - 1)
    assert enforce_allowances() == 0
    use(tenant, 1)
    assert enforce_allowances() == 1
    assert refused() == {tenant.id}
    # Repeating it changes nothing.
    assert enforce_allowances() == 0


@pytest.mark.parametrize("meter", sorted(TRIAL))
def test_any_meter_that_is_used_up_stops_traffic(tenant, other_tenant, meter):
    prove(tenant, "ada@example.com")
    prove(other_tenant, "bea@example.com")
    use(tenant, TRIAL[meter], meter)
    enforce_allowances()
    assert refused() == {tenant.id}


def test_without_a_trial_traffic_is_refused_at_once(tenant, other_tenant):
    prove(tenant, "ada@example.com")
    assert left(tenant) == TRIAL
    prove(other_tenant, "ada+b@example.com")
    enforce_allowances()
    assert refused() == {other_tenant.id}


def test_a_card_lifts_it_at_once_and_removing_it_stops_again(tenant, other_tenant, paid_by):
    prove(tenant, "ada@example.com")
    prove(other_tenant, "bea@example.com")
    use(tenant, 11 * GIB)
    enforce_allowances()
    paid_by(tenant.id, "card_a")
    assert refused() == set()
    assert enforce_allowances() == 0
    remove_payer(organization_id=tenant.id)
    enforce_allowances()
    assert refused() == {tenant.id}


def test_where_no_cards_are_charged_nothing_is_stopped(tenant, other_tenant, collector):
    prove(tenant, "ada@example.com")
    use(tenant, 11 * GIB)
    enforce_allowances()
    assert tenant.id in refused()
    collector("none")
    enforce_allowances()
    assert refused() == set()
    with organization_scope(tenant.id):
        # As ever: the catalogue's allowance.
        assert estimate_month(tenant.id, MONTH).total_minor == 4


def test_what_is_left_goes_from_month_to_month(tenant, other_tenant, clock):
    prove(tenant, "ada@example.com")
    prove(other_tenant, "bea@example.com")
    assert left(tenant) == TRIAL
    use(tenant, 7 * GIB)
    clock.now = NEXT_MONTH
    assert left(tenant, date(2026, 10, 1)) == TRIAL | {"ingress_bytes": 3 * GIB}
    use(tenant, 3 * GIB, at=NEXT_MONTH)
    enforce_allowances()
    assert refused() == {tenant.id}


def test_a_month_that_a_card_paid_uses_no_trial_up(tenant, other_tenant, clock, paid_by):
    prove(tenant, "ada@example.com")
    assert left(tenant) == TRIAL
    paid_by(tenant.id, "card_a")
    use(tenant, 9 * GIB)
    clock.now = NEXT_MONTH
    remove_payer(organization_id=tenant.id)
    assert left(tenant, date(2026, 10, 1)) == TRIAL


def mails_of_trials():
    """The subjects of the mails since the last look, as workers send them."""
    run_outbox()
    subjects = [(tuple(message.to), message.subject) for message in mail.outbox]
    mail.outbox.clear()
    return [(to, subject) for to, subject in subjects if "trial" in subject or "card" in subject]


def test_who_has_little_left_gets_one_mail_and_another_at_the_end(tenant, other_tenant, paid_by):
    prove(tenant, "ada@example.com")
    prove(other_tenant, "bea@example.com")
    use(tenant, 8 * GIB - 1)
    enforce_allowances()
    assert mails_of_trials() == []
    use(tenant, 1)
    for _ in range(3):
        assert enforce_allowances() == 0
    nearly = [(("ada@example.com",), "Your trial is nearly used up")]
    assert mails_of_trials() == nearly
    use(tenant, 2 * GIB)
    for _ in range(3):
        enforce_allowances()
    ended = [(("ada@example.com",), "Your clusters refuse traffic until a card is given")]
    assert mails_of_trials() == ended
    # With a card no mail is sent; without it again, the one that says what holds then.
    paid_by(tenant.id, "card_a")
    enforce_allowances()
    assert mails_of_trials() == []
    remove_payer(organization_id=tenant.id)
    enforce_allowances()
    assert mails_of_trials() == ended


def test_the_mails_say_what_is_refused_and_what_helps(tenant, other_tenant):
    prove(tenant, "ada@example.com")
    assert left(tenant) == TRIAL
    prove(other_tenant, "ada+b@example.com")
    use(tenant, 9 * GIB)
    enforce_allowances()
    run_outbox()
    texts = {message.to[0]: message.body for message in mail.outbox}
    assert "refuse to take records" in texts["ada@example.com"]
    assert "four fifths are used" in texts["ada@example.com"]
    assert "Your address gave its trial to an organization before" in texts["ada+b@example.com"]
    for text in texts.values():
        assert text.rstrip().endswith("/billing")


def test_who_has_not_proved_an_address_gets_no_mail_of_a_trial(tenant, settings):
    User.objects.filter(pk=tenant.owner.pk).update(email_verified_at=None)
    settings.FRESHET = dataclasses.replace(settings.FRESHET, mode="production")
    enforce_allowances()
    assert tenant.id in refused()
    assert mails_of_trials() == []


@pytest.fixture
def invoiced(tenant, other_tenant, clock):
    """A month without a payer, invoiced: traffic past the trial, and storage past it."""
    prove(tenant, "ada@example.com")
    world.sign_up(tenant.organization)
    cluster = world.make_cluster(tenant.id, "cl_aaaaaaaaaaaaaaaaaaaa", "orders")
    assert left(tenant) == TRIAL
    world.publish_month(
        [
            Used(tenant.id, cluster, "ingress_bytes", 12 * GIB),
            Used(tenant.id, cluster, "egress_bytes", 4 * GIB),
            Used(tenant.id, cluster, "storage_byte_minutes", 25 * GIB * MINUTES, principal=""),
        ]
    )
    clock.now = world.AFTER
    issue_invoices(tenant.id)
    return invoices_of(tenant.id)[0]


def test_what_slips_past_the_stop_is_free_and_what_is_kept_is_billed(invoiced):
    amounts = {line.meter: line.amount_minor for line in invoiced.lines.all()}
    assert amounts == {"ingress_bytes": 0, "egress_bytes": 0, "storage_byte_minutes": 120}
    assert invoiced.allowance["kind"] == "trial"


def test_an_invoice_takes_its_part_of_the_trial_once(invoiced, tenant):
    with system_scope():
        rows = AllowanceShare.objects.filter(organization_id=tenant.id)
        parts = {row.meter: int(row.of_trial) for row in rows}
    assert parts == TRIAL | {"egress_bytes": 4 * GIB, "partition_minutes": 0}
    assert left(tenant, date(2026, 10, 1)) == {
        meter: TRIAL[meter] - parts[meter] for meter in TRIAL
    }


def test_its_evidence_agrees(invoiced, tmp_path):
    result = recompute(tmp_path, unpacked(pack_of(invoiced)))
    assert result.returncode == 0, result.stdout + result.stderr
