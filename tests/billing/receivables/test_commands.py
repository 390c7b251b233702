"""Money that somebody enters on the command line."""

import io

import pytest
from django.core.management import CommandError, call_command

from billing.models import Payment
from billing.receivables.references import reference_of
from console.base.common.tenancy import organization_scope
from tests.billing.receivables import ledgers
from tests.billing.receivables.test_payments import pay
from tests.billing.world import invoices_of


def command(name, *arguments, **options):
    out = io.StringIO()
    call_command(name, *arguments, stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def invoice(owner):
    """An invoice over $1.80."""
    ledgers.issue_amount(owner, 180)
    return invoices_of(owner)[0]


@pytest.mark.parametrize("named", ["number", "id", "reference"])
def test_a_payment_is_entered_by_what_the_statement_names(invoice, owner, named):
    reference = reference_of(invoice.number)
    text = {
        "number": invoice.number,
        "id": invoice.pk,
        "reference": f"{reference[:4]} {reference[4:]}",
    }
    said = command("record_payment", text[named], "1.50", id="b-1", on="2026-10-20", by="Ann")
    assert f"$1.50 of {owner}. Of FR-2026-000001, $0.30 is open. $0.00 of the payment" in said
    with organization_scope(owner):
        payment = Payment.objects.get()
    assert (payment.entered_by, f"{payment.received_at:%Y-%m-%d}") == ("Ann", "2026-10-20")
    assert command("record_payment", text[named], "1.50", id="b-1") == said


def test_what_is_wrong_is_said(invoice):
    for arguments, why in (
        (["RF98FR2026000001", "1"], "wrong digit"),
        (["FR-2026-000099", "1"], "Nothing is owed under FR-2026-000099"),
        ([invoice.number, "1.555"], "is no amount of USD such as 12.50"),
        ([invoice.number, "-1"], "is no amount"),
        ([invoice.number, "all"], "is no amount"),
    ):
        with pytest.raises(CommandError, match=why):
            command("record_payment", *arguments, id="b-1")
    with pytest.raises(CommandError, match="does not match format"):
        command("record_payment", invoice.number, "1", id="b-1", on="20 October")
    command("record_payment", invoice.number, "1", id="b-1")
    with pytest.raises(CommandError, match="entered before, with other values"):
        command("record_payment", invoice.number, "2", id="b-1")


def test_a_refund_is_entered(invoice, owner):
    command("record_payment", invoice.number, "2", id="b-1")
    with organization_scope(owner):
        payment = Payment.objects.get()
    said = command("refund_payment", payment.pk, "0.50", id="r-1", reason="too much")
    assert f"$0.50 of {payment.pk} is given back." in said
    assert ledgers.states(owner) == {invoice.pk: (30, "open")}
    with pytest.raises(CommandError, match="There is no payment pay_x"):
        command("refund_payment", "pay_x", "1", id="r-2", reason="x")
    with pytest.raises(CommandError, match="Only 150 of the payment's 200"):
        command("refund_payment", payment.pk, "2", id="r-2", reason="x")
    command("refund_payment", payment.pk, "1", id="r-2", reason="sorry", goodwill=True)
    assert ledgers.states(owner) == {invoice.pk: (30, "open")}


def test_a_card_is_refunded_by_stripe_alone(owner):
    payment = pay(owner, 100, method="card")
    with pytest.raises(CommandError, match="refunded by Stripe"):
        command("refund_payment", payment.pk, "1", id="r-1", reason="x")


def test_credit_is_granted(invoice, owner):
    said = command("grant_credit", owner, "2", reason="an outage", id="ticket 1")
    assert "$2.00, of which $0.20 is left for invoices to come." in said
    assert command("grant_credit", owner, "2", reason="an outage", id="ticket 1") == said
    assert ledgers.states(owner) == {invoice.pk: (0, "paid")}
    with pytest.raises(CommandError):
        command("grant_credit", "org_nobody", "2", reason="x")


def test_an_invoice_is_written_off(invoice, owner):
    said = command("write_off_invoice", invoice.number, reason="insolvent")
    assert said == "$1.80 of FR-2026-000001 is written off.\n"
    assert ledgers.states(owner) == {invoice.pk: (0, "uncollectible")}
    command("record_payment", invoice.number, "1.80", id="b-1")
    with pytest.raises(CommandError, match="Nothing of the invoice is open"):
        command("write_off_invoice", invoice.number, reason="x")
