"""References of transfers: made from invoice numbers, checked by their digits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.receivables.references import (
    BODY_CHARS_MAX,
    parse_reference,
    readable_reference,
    reference_of,
)

PREFIX = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,15}", fullmatch=True)
NUMBER = st.builds(
    lambda prefix, year, sequence: f"{prefix}-{year}-{sequence:06d}",
    PREFIX,
    st.integers(2020, 2099),
    st.integers(1, 10**9),
)


def test_it_is_a_creditor_reference_by_iso_11649():
    # An example of the standard: RF18 5390 0754 7034.
    assert parse_reference("RF18 5390 0754 7034") == "RF18539007547034"
    assert reference_of("FR-2026-000042") == "RF97FR2026000042"
    assert readable_reference("RF97FR2026000042") == "RF97 FR20 2600 0042"


@given(NUMBER)
def test_each_number_has_one_that_is_accepted_as_it_is_printed(number):
    reference = reference_of(number)
    assert len(reference) <= 4 + BODY_CHARS_MAX
    assert parse_reference(readable_reference(reference).lower()) == reference


@given(NUMBER, NUMBER)
def test_two_numbers_never_share_one(one, other):
    assert (reference_of(one) == reference_of(other)) == (one == other)


@pytest.mark.parametrize("pair", [("A-B-2026-000001", "AB-2026-000001")])
def test_hyphens_in_a_prefix_count(pair):
    assert len({reference_of(number) for number in pair}) == 2


@given(NUMBER, st.data())
def test_one_wrong_digit_and_two_that_are_swapped_are_noticed(number, data):
    reference = reference_of(number)
    places = [at for at in range(2, len(reference)) if reference[at].isdigit()]
    at = data.draw(st.sampled_from(places))
    digit = data.draw(st.sampled_from("0123456789").filter(lambda char: char != reference[at]))
    wrong = [reference[:at] + digit + reference[at + 1 :]]
    first, second = tuple(reference[at : at + 2].ljust(2))
    if second.isdigit() and first != second:
        wrong.append(reference[:at] + second + first + reference[at + 2 :])
    for text in wrong:
        with pytest.raises(ValueError, match="wrong digit"):
            parse_reference(text)


@pytest.mark.parametrize("text", ["", "RF", "RF97", "FR-2026-000042", "RF97FR2026000042" * 2])
def test_what_is_none_is_refused(text):
    with pytest.raises(ValueError, match="is no reference"):
        parse_reference(text)
