"""Rating: golden lines at half cents and at the edges of allowances, and what always holds."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.catalog import GIB, Catalog, MeterPrice, unit_size
from billing.choices import Meter
from billing.rating import UnpricedMeter, exact_amount, rate_totals

MONTH = date(2026, 11, 1)  # 30 days
FEBRUARY = date(2027, 2, 1)  # 28
MINUTES = 30 * 24 * 60
INGRESS, EGRESS = Meter.INGRESS.value, Meter.EGRESS.value
STORAGE, PARTITIONS = Meter.STORAGE.value, Meter.PARTITIONS.value
CATALOG = Catalog(
    version="prv_test",
    currency="USD",
    prices={
        INGRESS: MeterPrice(INGRESS, Decimal("0.04"), "GiB", 10, "GiB"),
        EGRESS: MeterPrice(EGRESS, Decimal("0.04"), "GiB", 10, "GiB"),
        STORAGE: MeterPrice(STORAGE, Decimal("0.06"), "GiB-month", 5, "GiB-month"),
        PARTITIONS: MeterPrice(
            PARTITIONS, Decimal("0.0005"), "partition-hour", 1000, "partition-month"
        ),
    },
)
# 1/8 GiB over the allowance is exactly half a cent.
EIGHTH = GIB // 8


def amounts(totals, month=MONTH):
    return [line.amount_minor for line in rate_totals(totals, CATALOG, month)]


@pytest.mark.parametrize(
    ("meter", "quantity", "amount"),
    [
        (INGRESS, 1, 0),
        (INGRESS, 10 * GIB - 1, 0),
        (INGRESS, 10 * GIB, 0),
        (INGRESS, 10 * GIB + 1, 0),
        (INGRESS, 10 * GIB + EIGHTH - 1, 0),
        (INGRESS, 10 * GIB + EIGHTH, 1),
        (INGRESS, 10 * GIB + EIGHTH + 1, 1),
        (INGRESS, 10 * GIB + 3 * EIGHTH - 1, 1),
        (INGRESS, 10 * GIB + 3 * EIGHTH, 2),
        (INGRESS, 11 * GIB, 4),
        (EGRESS, 10 * GIB + EIGHTH, 1),
        (EGRESS, 1_010 * GIB, 4_000),
        # A byte kept for a month is a 2^30th of a GiB-month, to the minute.
        (STORAGE, 5 * GIB * MINUTES, 0),
        (STORAGE, 6 * GIB * MINUTES, 6),
        (STORAGE, 5 * GIB * MINUTES + GIB * MINUTES // 12, 1),
        (STORAGE, 5 * GIB * MINUTES + GIB * MINUTES // 12 - 1, 0),
        (PARTITIONS, 1_000 * MINUTES, 0),
        # 0.0005 $ an hour: half a cent is ten hours, 600 partition-minutes.
        (PARTITIONS, 1_000 * MINUTES + 599, 0),
        (PARTITIONS, 1_000 * MINUTES + 600, 1),
        (PARTITIONS, 1_001 * MINUTES, 36),
    ],
)
def test_golden_lines(meter, quantity, amount):
    assert amounts({("cl_a", meter): quantity}) == [amount]


def test_a_gib_month_has_the_minutes_of_its_month():
    kept = 6 * GIB * 28 * 24 * 60
    assert amounts({("cl_a", STORAGE): kept}, FEBRUARY) == [6]
    # In a longer month the same byte-minutes are less of a GiB-month, and within the allowance of 5
    # but for 0.6 of one.
    assert amounts({("cl_a", STORAGE): kept}, MONTH) == [4]


def test_clusters_use_the_allowance_up_in_the_order_of_their_ids():
    totals = {("cl_c", INGRESS): GIB, ("cl_a", INGRESS): 8 * GIB, ("cl_b", INGRESS): 3 * GIB}
    lines = rate_totals(totals, CATALOG, MONTH)
    assert [(line.cluster_id, line.free_quantity, line.amount_minor) for line in lines] == [
        ("cl_a", 8 * GIB, 0),
        ("cl_b", 2 * GIB, 4),
        ("cl_c", 0, 4),
    ]


def test_each_meter_has_an_allowance_of_its_own():
    totals = {("cl_a", INGRESS): 11 * GIB, ("cl_a", EGRESS): 10 * GIB}
    assert amounts(totals) == [4, 0]


def test_lines_say_what_they_were_made_of():
    (line,) = rate_totals({("cl_a", STORAGE): 7 * GIB * MINUTES}, CATALOG, MONTH)
    assert line.unit_price == Decimal("0.06")
    assert line.unit == "GiB-month"
    assert line.unit_size == GIB * MINUTES
    assert line.billable_quantity == 2 * GIB * MINUTES
    assert line.amount_minor == 12


def test_nothing_used_is_no_line():
    assert rate_totals({}, CATALOG, MONTH) == []
    assert rate_totals({("cl_a", INGRESS): 0}, CATALOG, MONTH) == []


def test_what_is_only_shown_is_no_line():
    assert rate_totals({("cl_a", "broker_seconds"): 7}, CATALOG, MONTH) == []


def test_a_meter_without_a_price_does_not_pass_as_free():
    with pytest.raises(UnpricedMeter):
        rate_totals({("cl_a", "moon_phases"): 7}, CATALOG, MONTH)


def test_a_quantity_below_zero_is_refused():
    with pytest.raises(ValueError, match="below zero"):
        rate_totals({("cl_a", INGRESS): -1}, CATALOG, MONTH)


quantities = st.one_of(
    st.integers(0, 40 * GIB),
    st.integers(0, 10**20),
    # Near edges of allowances and half cents.
    st.builds(lambda n, d: max(0, n * EIGHTH + d), st.integers(0, 200), st.integers(-2, 2)),
)
meters = st.sampled_from([INGRESS, EGRESS, STORAGE, PARTITIONS])
clusters = st.sampled_from(["cl_a", "cl_b", "cl_c", "cl_d"])
totals_of = st.dictionaries(st.tuples(clusters, meters), quantities)
months = st.sampled_from([MONTH, FEBRUARY, date(2028, 2, 1), date(2026, 12, 1)])


@given(totals_of, months)
def test_an_allowance_is_given_once_and_all_of_it(totals, month):
    lines = rate_totals(totals, CATALOG, month)
    for meter, price in CATALOG.prices.items():
        used = sum(n for (_, of), n in totals.items() if of == meter)
        free = sum(line.free_quantity for line in lines if line.meter == meter)
        assert free == min(used, price.free_quantity(month))


@given(totals_of, months)
def test_nothing_is_below_zero_and_each_line_has_its_share_of_its_meters_cents(totals, month):
    lines = rate_totals(totals, CATALOG, month)
    for line in lines:
        assert 0 <= line.free_quantity <= line.quantity
        of_meter = [one for one in lines if one.meter == line.meter]
        amount = sum(one.amount_minor for one in of_meter)
        billable = sum(one.billable_quantity for one in of_meter)
        share = Fraction(amount * line.billable_quantity, max(billable, 1))
        assert line.amount_minor >= 0
        assert abs(line.amount_minor - share) < 1


@given(totals_of, clusters, meters, quantities, months)
def test_more_never_costs_less(totals, cluster, meter, more, month):
    greater = {**totals, (cluster, meter): totals.get((cluster, meter), 0) + more}
    assert sum(amounts(greater, month)) >= sum(amounts(totals, month))


@given(meters, st.lists(quantities, min_size=1, max_size=6), months)
def test_the_parts_cost_exactly_what_the_whole_does(meter, parts, month):
    price = CATALOG.prices[meter]
    split = {(f"cl_{number}", meter): part for number, part in enumerate(parts)}
    lines = rate_totals(split, CATALOG, month)
    whole = max(0, sum(parts) - price.free_quantity(month))
    assert sum(line.billable_quantity for line in lines) == whole
    together = amounts({("cl_a", meter): sum(parts)}, month)
    assert sum(line.amount_minor for line in lines) == sum(together)
    exact = exact_amount(whole, price, "USD", month)
    assert -Fraction(1, 2) <= exact - sum(together) < Fraction(1, 2)


@pytest.mark.parametrize("billable", [EIGHTH - 1, EIGHTH])
def test_ten_thousand_small_lines_cost_what_one_large_line_does(billable):
    """Rounded each by itself they would cost nothing, or twice as much."""
    totals = {(f"cl_{number:05}", INGRESS): billable for number in range(10_000)}
    lines = rate_totals(totals, CATALOG, MONTH, free={})
    assert amounts({("cl_a", INGRESS): billable * 10_000 + 10 * GIB}) == [5_000]
    assert sum(line.amount_minor for line in lines) == 5_000
    # Who has the same pays the same, to the cent.
    assert {line.amount_minor for line in lines} == {0, 1}


def test_who_is_due_most_of_the_next_cent_gets_it():
    totals = {("cl_a", INGRESS): EIGHTH, ("cl_b", INGRESS): 3 * EIGHTH, ("cl_c", INGRESS): EIGHTH}
    lines = rate_totals(totals, CATALOG, MONTH, free={})
    # 0.5 + 1.5 + 0.5 cents are 2.5, so 3, of which each has 0.6, 1.8 and 0.6.
    assert [line.amount_minor for line in lines] == [1, 2, 0]


@given(totals_of, months, st.randoms(use_true_random=False))
def test_the_order_of_the_totals_does_not_matter(totals, month, random):
    shuffled = list(totals.items())
    random.shuffle(shuffled)
    assert rate_totals(dict(shuffled), CATALOG, month) == rate_totals(totals, CATALOG, month)


@pytest.mark.parametrize(
    ("unit", "month", "size"),
    [
        ("GiB", MONTH, 2**30),
        ("GiB-month", MONTH, 2**30 * 43_200),
        ("GiB-month", FEBRUARY, 2**30 * 40_320),
        ("partition-hour", MONTH, 60),
        ("partition-month", date(2026, 12, 15), 44_640),
    ],
)
def test_units_have_their_base_units(unit, month, size):
    assert unit_size(unit, month) == size
