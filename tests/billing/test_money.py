"""Money is whole minor units, rounded once, half up, and shared without a rest."""

from decimal import Decimal
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.money import (
    allocate_amount,
    plain_amount,
    price_text,
    readable_amount,
    round_half_up,
    scaled_price,
    share_of,
)


@pytest.mark.parametrize(
    ("numerator", "denominator", "rounded"),
    [(0, 1, 0), (1, 2, 1), (3, 2, 2), (-1, 2, 0), (-3, 2, -1), (499, 1000, 0), (2, 3, 1)],
)
def test_halves_round_up(numerator, denominator, rounded):
    assert round_half_up(numerator, denominator) == rounded


@given(st.integers(), st.integers(min_value=1))
def test_rounding_is_the_floor_of_a_half_more(numerator, denominator):
    exact = Fraction(numerator, denominator) + Fraction(1, 2)
    assert round_half_up(numerator, denominator) == floor(exact)


@pytest.mark.parametrize("denominator", [0, -1])
def test_what_divides_is_positive(denominator):
    with pytest.raises(ValueError, match="positive"):
        round_half_up(1, denominator)


@pytest.mark.parametrize(
    ("price", "scaled"),
    [
        ("0", 0),
        ("0.04", 4 * 10**16),
        ("1E+2", 10**20),
        ("0.000000000000000001", 1),
        ("0.0400000000000000000000", 4 * 10**16),
    ],
)
def test_a_price_is_exact(price, scaled):
    assert scaled_price(Decimal(price)) == scaled


@pytest.mark.parametrize("price", ["0.0000000000000000001", "-1", "NaN", "Infinity"])
def test_what_is_no_price_is_refused(price):
    with pytest.raises(ValueError, match=r"price|places"):
        scaled_price(Decimal(price))


@pytest.mark.parametrize(
    ("amount", "percent", "tax"),
    [
        (1000, "19", 190),
        (50, "19", 10),
        (50, "20.5", 10),
        (10, "5", 1),
        (10, "4.9", 0),
        (7, "0", 0),
    ],
)
def test_tax_is_rounded_half_up(amount, percent, tax):
    assert share_of(amount, Decimal(percent)) == tax


@pytest.mark.parametrize(
    ("amount", "currency", "file", "page"),
    [
        (0, "USD", "0.00", "$0.00"),
        (5, "USD", "0.05", "$0.05"),
        (123456789, "USD", "1234567.89", "$1,234,567.89"),
        (-1205, "EUR", "-12.05", "\N{MINUS SIGN}€12.05"),
        (1500, "JPY", "1500", "¥1,500"),
    ],
)
def test_an_amount_is_written_for_files_and_for_people(amount, currency, file, page):
    assert plain_amount(amount, currency) == file
    assert readable_amount(amount, currency) == page


@pytest.mark.parametrize(
    ("price", "text"), [("0.040000000000000000", "0.04"), ("0.0005", "0.0005"), ("2", "2.00")]
)
def test_a_price_is_written_without_needless_zeros(price, text):
    assert price_text(Decimal(price)) == text


@given(
    st.integers(0, 10**12),
    st.dictionaries(st.text("abc", max_size=4), st.integers(0, 10**30), max_size=30),
)
def test_shares_sum_to_the_amount_exactly_and_follow_the_weights(amount, weights):
    shares = allocate_amount(amount, weights)
    total = sum(weights.values())
    if not total:
        assert shares == {}
        return
    assert sum(shares.values()) == amount
    assert shares.keys() == weights.keys()
    for key, weight in weights.items():
        assert 0 <= shares[key] - amount * weight // total <= 1
        if not weight:
            assert shares[key] == 0


@given(st.permutations(["a", "b", "c", "d"]))
def test_shares_do_not_depend_on_the_order(order):
    assert allocate_amount(10, dict.fromkeys(order, 1)) == {"a": 3, "b": 3, "c": 2, "d": 2}


@given(st.dictionaries(st.text("abc", max_size=3), st.integers(0, 5), max_size=12), st.data())
def test_the_greatest_remainders_come_first_then_weights_then_keys(weights, data):
    amount, total = data.draw(st.integers(0, 30)), sum(weights.values())
    if not total:
        return
    floors = {key: amount * weight // total for key, weight in weights.items()}
    ranked = sorted(
        weights, key=lambda key: (-(amount * weights[key] % total), -weights[key], str(key))
    )
    more = set(ranked[: amount - sum(floors.values())])
    assert allocate_amount(amount, weights) == {key: n + (key in more) for key, n in floors.items()}
