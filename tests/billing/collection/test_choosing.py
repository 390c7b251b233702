"""Which invoices one attempt charges."""

from hypothesis import given
from hypothesis import strategies as st

from billing.collection.choosing import INVOICES_MAX, Owed, choose_invoices

MINIMUM = 50


def owed(*amounts, currency="USD"):
    return [Owed(f"inv_{n}", amount, currency) for n, amount in enumerate(amounts)]


def ids(chosen):
    return [one.invoice_id for one in chosen]


def test_an_invoice_is_charged_by_itself():
    assert ids(choose_invoices(owed(1250, 3000), MINIMUM)) == ["inv_0"]


def test_small_invoices_wait_for_the_next_one_and_are_charged_with_it():
    assert choose_invoices(owed(20), MINIMUM) == []
    assert choose_invoices(owed(20, 29), MINIMUM) == []
    assert ids(choose_invoices(owed(20, 30), MINIMUM)) == ["inv_0", "inv_1"]
    assert ids(choose_invoices(owed(20, 3000), MINIMUM)) == ["inv_1", "inv_0"]


def test_what_waits_for_its_day_is_not_charged():
    waiting = Owed("inv_9", 4000, "USD", is_due=False)
    assert ids(choose_invoices([waiting, *owed(1250)], MINIMUM)) == ["inv_0"]
    assert choose_invoices([waiting], MINIMUM) == []


def test_one_charge_has_one_currency():
    mixed = [*owed(20), Owed("inv_eur", 3000, "EUR")]
    assert ids(choose_invoices(mixed, MINIMUM)) == ["inv_eur"]


def test_of_many_small_ones_the_greatest_are_charged_together():
    chosen = choose_invoices(owed(*[1] * 40, *[20] * 10), MINIMUM)
    assert len(chosen) == INVOICES_MAX
    assert sum(one.open_minor for one in chosen) >= MINIMUM


@given(
    st.lists(
        st.builds(
            Owed,
            st.uuids().map(str),
            st.integers(0, 200),
            st.sampled_from(["USD", "EUR"]),
            st.booleans(),
        ),
        max_size=30,
    ),
    st.integers(0, 100),
)
def test_what_is_charged_is_due_once_and_enough_for_a_card(rows, minimum):
    chosen = choose_invoices(rows, minimum)
    assert len(chosen) <= INVOICES_MAX
    assert len(set(ids(chosen))) == len(chosen)
    assert all(one.is_due and one.open_minor > 0 for one in chosen)
    assert len({one.currency for one in chosen}) <= 1
    assert not chosen or sum(one.open_minor for one in chosen) >= minimum
    if not chosen:
        # Whatever could be charged by itself would have been.
        assert all(one.open_minor < minimum for one in rows if one.is_due and one.open_minor)
