"""Which tax an invoice has."""

from decimal import Decimal

import pytest

from billing.drafts import Draft, DraftLine, cap_line, credit_lines
from billing.parties import Party, Tax, TaxUnknown, tax_between
from console.settings.sellers import parse_rates

SELLER = Party(name="Freshet", country="DE", vat_id="DE123456789")
RATES = {"DE": Decimal(19), "FR": Decimal(20), "GR": Decimal(24)}


@pytest.mark.parametrize(
    ("seller", "customer", "category", "percent"),
    [
        (Party(name="Freshet"), Party(name="Acme", country="DE"), "O", 0),
        (SELLER, Party(name="Acme"), "S", 19),
        (SELLER, Party(name="Acme", country="DE", vat_id="DE1"), "S", 19),
        (SELLER, Party(name="Acme", country="FR"), "S", 20),
        (SELLER, Party(name="Acme", country="FR", vat_id="FR40303265045"), "AE", 0),
        (SELLER, Party(name="Acme", country="GR", vat_id="EL094259216"), "AE", 0),
        (SELLER, Party(name="Acme", country="US"), "O", 0),
        (SELLER, Party(name="Acme", country="GB", vat_id="XI980780684"), "O", 0),
        # Monaco is treated as France.
        (SELLER, Party(name="Acme", country="MC"), "S", 20),
        # Rows of before countries and VAT ids were checked.
        (SELLER, Party(name="Acme", country="FR", vat_id="XX00"), "S", 20),
        (SELLER, Party(name="Acme", country="FR", vat_id="DE99"), "S", 20),
        (SELLER, Party(name="Acme", country="FR", vat_id="DE136695976"), "S", 20),
        (SELLER, Party(name="Acme", country="FR", vat_id="FR00000000000"), "S", 20),
        (SELLER, Party(name="Acme", country="EL", vat_id="EL094259216"), "AE", 0),
        (SELLER, Party(name="Acme", country="EL"), "S", 24),
        (SELLER, Party(name="Acme", country="UK"), "O", 0),
        (SELLER, Party(name="Acme", country="ZZ"), "S", 19),
        (SELLER, Party(name="Acme", country="EU", vat_id="EU372000041"), "S", 19),
    ],
)
def test_the_tax_follows_from_who_buys_where(seller, customer, category, percent):
    tax = tax_between(seller, customer, RATES)
    assert (tax.category, tax.percent) == (category, percent)
    assert bool(tax.reason) == (percent == 0)


def test_a_country_without_a_rate_is_not_taken_for_free():
    with pytest.raises(TaxUnknown, match="IT"):
        tax_between(SELLER, Party(name="Acme", country="IT"), RATES)


def test_a_rate_of_zero_says_so():
    assert tax_between(SELLER, Party(name="Acme"), {"DE": Decimal(0)}).category == "Z"


def test_rates_are_read_from_the_settings():
    assert parse_rates(["DE=19", " fr = 5.5 "]) == {"DE": Decimal(19), "FR": Decimal("5.5")}
    with pytest.raises(ValueError, match="like DE=19"):
        parse_rates(["DE"])
    for wrong in ("D=19", "DE=-1", "DE=101", "DE=NaN", "=19"):
        with pytest.raises(ValueError, match="like DE=19"):
            parse_rates([wrong])
    with pytest.raises(ValueError, match="DE has two rates"):
        parse_rates(["DE=19", "de=7"])


def draft(amounts, percent="19", kind="invoice"):
    from datetime import date  # noqa: PLC0415 (one use)

    return Draft(
        organization_id="org_x",
        kind=kind,
        month=date(2026, 9, 1),
        revision=1,
        price_version="prv_x",
        basis_id="ub_x",
        currency="USD",
        seller=SELLER,
        customer=Party(name="Acme"),
        tax=Tax("S", Decimal(percent)),
        lines=tuple(DraftLine("usage", "x", amount) for amount in amounts),
    )


def test_tax_is_rounded_once_on_the_sum():
    made = draft([50, 50, 50])
    assert (made.subtotal_minor, made.tax_minor, made.total_minor) == (150, 29, 179)


def test_a_credit_note_takes_back_to_the_cent():
    made = draft([50])
    lines = [line.amount_minor for line in credit_lines(made.lines)]
    note = draft(lines, kind="credit_note")
    assert (made.tax_minor, note.tax_minor) == (10, -10)
    assert made.total_minor + note.total_minor == 0


@pytest.mark.parametrize(
    ("cap", "taken_back"), [(None, []), (151, []), (150, []), (149, [-1]), (0, [-150])]
)
def test_what_slipped_past_a_budget_is_taken_back(cap, taken_back):
    lines = draft([100, 50]).lines
    assert [line.amount_minor for line in cap_line(lines, cap)] == taken_back


def test_another_word_is_another_hash():
    assert draft([1]).sha256() == draft([1]).sha256()
    assert draft([1]).sha256() != draft([2]).sha256()
