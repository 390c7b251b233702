"""Shares of a pool and parts of a trial, for random numbers."""

from hypothesis import given
from hypothesis import strategies as st

from billing.allowances.rules import (
    free_of_trial,
    is_used_up,
    split_allowance,
    split_pool,
    sum_by_meter,
    trial_left,
    trial_part,
)

quantities = st.integers(0, 2**70)
METERS = ("ingress_bytes", "storage_byte_minutes")
by_meter = st.fixed_dictionaries(dict.fromkeys(METERS, quantities))
by_owner = st.dictionaries(st.sampled_from([f"org_{n}" for n in range(9)]), quantities, min_size=1)


@given(pool=quantities, used=by_owner)
def test_shares_are_whole_and_sum_to_the_pool(pool, used):
    shares = split_pool(pool, used)
    assert shares.keys() == used.keys()
    assert sum(shares.values()) == (pool if any(used.values()) else 0)
    total = sum(used.values())
    for owner, share in shares.items():
        # Nobody gets more or less than the exact share, but for one unit by rounding.
        assert abs(share * total - pool * used[owner]) < total or not total


@given(pool=quantities, used=by_owner)
def test_nobody_pays_before_the_pool_is_used_up_and_none_of_it_is_lost(pool, used):
    shares = split_pool(pool, used)
    free = sum(min(used[owner], share) for owner, share in shares.items())
    assert free == min(pool, sum(used.values()))


@given(pool=by_meter, used=st.dictionaries(st.sampled_from("abc"), by_meter, min_size=1))
def test_each_meter_is_split_by_itself(pool, used):
    shares = split_allowance(pool, used)
    for meter in METERS:
        of_meter = {owner: quantities[meter] for owner, quantities in used.items()}
        assert {owner: of[meter] for owner, of in shares.items()} == split_pool(
            pool[meter], of_meter
        )


@given(trial=by_meter, months=st.lists(by_meter, max_size=6))
def test_a_trial_is_used_up_once_however_many_months_it_lasts(trial, months):
    left, taken = dict(trial), dict.fromkeys(METERS, 0)
    for used in months:
        part = trial_part(left, used)
        assert is_used_up(left, used) == any(used[meter] >= left[meter] for meter in METERS)
        free = free_of_trial(left, used)
        assert free["storage_byte_minutes"] == part["storage_byte_minutes"]
        assert free["ingress_bytes"] == used["ingress_bytes"]
        left = trial_left(left, part)
        taken = {meter: taken[meter] + part[meter] for meter in METERS}
    for meter in METERS:
        assert taken[meter] == min(trial[meter], sum(used[meter] for used in months))
        assert left[meter] == trial[meter] - taken[meter]


def test_without_a_trial_nothing_is_left():
    assert is_used_up({}, {})
    assert free_of_trial({}, {"egress_bytes": 3, "storage_byte_minutes": 4}) == {"egress_bytes": 3}


def test_clusters_are_summed():
    totals = {("cl_a", "egress_bytes"): 1, ("cl_b", "egress_bytes"): 2, ("cl_a", "x"): 4}
    assert sum_by_meter(totals) == {"egress_bytes": 3, "x": 4}
