"""Forecasts: pure."""

from hypothesis import given
from hypothesis import strategies as st

from billing.forecast import BASIS_MIN_MS, HeldTraffic, forecast_totals

DAY_MS = 86_400_000
INGRESS, STORAGE = ("cl_a", "ingress_bytes"), ("cl_a", "storage_byte_minutes")
EGRESS, OTHER = ("cl_a", "egress_bytes"), ("cl_b", "ingress_bytes")
quantities = st.integers(0, 10**30)
times = st.integers(0, 31 * DAY_MS)


def forecast(totals, rates=None, *, since=0, until=10 * DAY_MS, end=30 * DAY_MS, **held):
    times_of = {"since_ms": since, "until_ms": until, "end_ms": end}
    return forecast_totals(totals, rates or {}, **times_of, held=HeldTraffic(**held))


def test_traffic_goes_on_at_its_average_rate():
    assert forecast({INGRESS: 100}) == {INGRESS: 300}
    assert forecast({INGRESS: 100}, since=5 * DAY_MS) == {INGRESS: 500}


def test_storage_goes_on_at_the_present_rate():
    minutes = 20 * 24 * 60
    assert forecast({STORAGE: 100}, {STORAGE: 3}) == {STORAGE: 100 + 3 * minutes}
    # Deleted since: nothing more comes.
    assert forecast({STORAGE: 100}) == {STORAGE: 100}
    # Just begun: no total yet.
    assert forecast({}, {STORAGE: 1}) == {STORAGE: minutes}


def test_traffic_that_is_refused_does_not_go_on():
    totals = {INGRESS: 100, EGRESS: 50, OTHER: 100, STORAGE: 7}
    expected = {INGRESS: 100, EGRESS: 150, OTHER: 300, STORAGE: 7 + 20 * 24 * 60}
    # What is kept costs as before.
    assert forecast(totals, {STORAGE: 1}, refused={INGRESS, STORAGE}) == expected


def test_traffic_that_is_slowed_down_has_its_rate_at_most_in_each_cluster():
    totals = {INGRESS: 300_000_000, EGRESS: 100_000_000, OTHER: 100}
    seconds = 20 * 86_400
    slowed = forecast(totals, bytes_per_s_max=4)
    assert slowed[INGRESS] == totals[INGRESS] + 3 * seconds
    assert slowed[EGRESS] == totals[EGRESS] + seconds
    assert slowed[OTHER] == 300


def test_the_first_minutes_of_a_month_are_not_taken_for_all_of_it():
    early = forecast({INGRESS: 1}, until=1_000)
    assert early == {INGRESS: 1 + (30 * DAY_MS - 1_000) // BASIS_MIN_MS}


def test_at_the_end_of_the_month_the_forecast_is_what_was_used():
    totals = {INGRESS: 7, STORAGE: 11}
    assert forecast(totals, {STORAGE: 5}, until=30 * DAY_MS) == totals
    assert forecast(totals, {STORAGE: 5}, until=31 * DAY_MS) == totals


@given(quantities, quantities, quantities, times, times)
def test_a_forecast_is_never_below_what_was_used(ingress, storage, rate, since, until):
    totals = {INGRESS: ingress, STORAGE: storage}
    quantities = forecast(
        totals, {STORAGE: rate}, since=since, until=max(since, until), end=31 * DAY_MS
    )
    assert all(quantities[key] >= quantity for key, quantity in totals.items())
