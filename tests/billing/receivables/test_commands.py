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
    said = command("record_payment", text[named], "1.50", id="b-1", on="2026-10-03", by="Ann")
    assert f"$1.50 of {owner}. Of FR-2026-000001, $0.30 is open. $0.00 of the payment" in said
    with organization_scope(owner):
        payment = Payment.objects.get()
    assert (payment.entered_by, f"{payment.received_at:%Y-%m-%d}") == ("Ann", "2026-10-03")
    assert command("record_payment", text[named], "1.50", id="b-1") == said


def test_what_is_wrong_is_said(invoice):
    for arguments, why in (
        (["RF98FR2026000001", "1"], "wrong digit"),
        (["FR-2026-000099", "1"], "Nothing is owed under FR-2026-000099"),
        ([invoice.number, "1.555"], "is no amount of USD such as 12.50"),
        ([invoice.number, "-1"], "is no amount"),
        ([invoice.number, "all"], "is no amount"),
        ([invoice.number, "1e2"], "is no amount"),
        ([invoice.number, "1_000"], "is no amount"),
        ([invoice.number, "٣"], "is no amount"),
        ([invoice.number, "+5"], "is no amount"),
        ([invoice.number, " 5"], "is no amount"),
        ([invoice.number, "0"], "is no amount"),
        ([invoice.number, "1.500"], "is no amount"),
        ([invoice.number, "99999999999.00"], r"too much: at most \$1,000,000,000.00"),
        ([invoice.number, "9" * 20], "too much"),
    ):
        with pytest.raises(CommandError, match=why):
            command("record_payment", *arguments, id="b-1")
    for on, why in (
        ("20 October", "is no day; YYYY-MM-DD is expected"),
        ("2026-02-30", "is no day"),
        ("٢٠٢٦-10-10", "is no day"),
        ("9999-12-31", "is still to come"),
        ("2099-01-01", "2099-01-01 is still to come"),
        ("0001-01-01", "0001-01-01 is before 2020-01-01"),
    ):
        with pytest.raises(CommandError, match=why):
            command("record_payment", invoice.number, "1", id="b-1", on=on)
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
    with pytest.raises(CommandError, match="too much"):
        command("grant_credit", owner, "9" * 20, reason="x")
    command("grant_credit", owner, "1000000000.00", reason="x")


def test_an_invoice_is_written_off(invoice, owner):
    said = command("write_off_invoice", invoice.number, reason="insolvent")
    assert said == "$1.80 of FR-2026-000001 is written off.\n"
    assert ledgers.states(owner) == {invoice.pk: (0, "uncollectible")}
    command("record_payment", invoice.number, "1.80", id="b-1")
    with pytest.raises(CommandError, match="Nothing of the invoice is open"):
        command("write_off_invoice", invoice.number, reason="x")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["record_payment", "x", "1", "--id", "b" * 256], "--id: it has 256 characters"),
        (["record_payment", "x", "1", "--id", "b", "--note", "n" * 501], "--note: it has 501"),
        (["grant_credit", "x", "1", "--reason", "r" * 501], "--reason: it has 501 characters"),
        (["grant_credit", "x", "1", "--reason", "a\nb"], "--reason: printable characters only"),
        (["refund_payment", "x", "1", "--id", "b", "--reason", "r", "--by", "b" * 201], "--by: it"),
        (["void_invoice", "x", "--reason", "r" * 501], "--reason: it has 501 characters"),
        (["write_off_invoice", "x", "--reason", "r" * 501], "--reason: it has 501 characters"),
        (["issue_invoices", "--month", "2026-10", "--close-early", "r" * 501], "it has 501"),
        (["issue_invoices", "--month", "1999-01"], "1999-01 is before 2020-01, the first month"),
        (["issue_invoices", "--month", "2026-13"], "'2026-13' is no month; YYYY-MM is expected"),
        (["issue_invoices", "--month", "9999-12"], "'9999-12' is no month"),
        (["issue_invoices", "--month", "٢٠٢٦-10"], "is no month"),
        (["missing_invoices", "--month", "0000-00"], "is no month"),
    ],
)
def test_an_argument_that_cannot_be_is_named(db, arguments, why):
    with pytest.raises(CommandError, match=why):
        call_command(*arguments)
