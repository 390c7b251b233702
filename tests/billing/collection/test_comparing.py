"""What does not agree between two lists of money."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from billing.choices import DifferenceKind
from billing.collection.comparing import Money, compare, compare_sums

AT = datetime(2026, 10, 4, tzinfo=UTC)
AMOUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3), max_size=6)


def money(amounts):
    return [Money(id_, amount, "USD", AT, "org_a") for id_, amount in amounts.items()]


def differences(ours, theirs):
    return {
        one.subject: (one.kind, one.ours_minor, one.theirs_minor)
        for one in compare(
            money(ours),
            money(theirs),
            unknown=DifferenceKind.PAYMENT_UNKNOWN,
            absent=DifferenceKind.PAYMENT_ABSENT,
        )
    }


def test_each_kind_of_difference_is_named():
    assert differences({"a": 1, "b": 2, "c": 3}, {"b": 2, "c": 4, "d": 5}) == {
        "a": (DifferenceKind.PAYMENT_ABSENT, 1, None),
        "c": (DifferenceKind.AMOUNT_DIFFERS, 3, 4),
        "d": (DifferenceKind.PAYMENT_UNKNOWN, None, 5),
    }


@given(AMOUNTS, AMOUNTS)
def test_a_difference_is_there_where_the_lists_differ_and_nowhere_else(ours, theirs):
    expected = {id_ for id_ in ours | theirs if ours.get(id_) != theirs.get(id_)}
    assert set(differences(ours, theirs)) == expected


def test_another_currency_is_another_amount():
    ours, theirs = money({"a": 1}), [Money("a", 1, "EUR", AT)]
    (one,) = compare(
        ours,
        theirs,
        unknown=DifferenceKind.REFUND_UNKNOWN,
        absent=DifferenceKind.REFUND_ABSENT,
    )
    assert one.kind is DifferenceKind.AMOUNT_DIFFERS


def test_sums_of_the_ledger_are_those_of_the_rows():
    kind = DifferenceKind.LEDGER_DIFFERS
    ledger, rows = {("org_a", "USD"): 5, ("org_b", "USD"): 1}, {("org_a", "USD"): 4}
    differing = compare_sums(kind, ledger, rows, AT)
    assert [(one.subject, one.ours_minor, one.theirs_minor) for one in differing] == [
        ("org_a:USD", 5, 4),
        ("org_b:USD", 1, 0),
    ]
    assert compare_sums(kind, ledger, dict(ledger), AT) == []
