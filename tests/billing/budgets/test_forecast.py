"""Forecasts and shares: pure."""

from hypothesis import given
from hypothesis import strategies as st

from billing.forecast import BASIS_MIN_MS, allocate_amount, forecast_totals

DAY_MS = 86_400_000
INGRESS, STORAGE = ("cl_a", "ingress_bytes"), ("cl_a", "storage_byte_minutes")
quantities = st.integers(0, 10**30)
times = st.integers(0, 31 * DAY_MS)


def forecast(totals, rates=None, *, since=0, until=10 * DAY_MS, end=30 * DAY_MS):
    return forecast_totals(totals, rates or {}, since_ms=since, until_ms=until, end_ms=end)


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
