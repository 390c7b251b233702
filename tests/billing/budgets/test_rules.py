"""What budgets say of spending: pure."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.budgets import rules
from billing.budgets.rules import Cap
from billing.choices import BudgetAction, BudgetState
from billing.rating import Spent

amounts = st.integers(1, 10**15)
spents = st.integers(0, 10**16)
thresholds = st.lists(st.integers(1, 1_000), max_size=10)


@pytest.mark.parametrize(
    ("spent", "amount", "expected"),
    [
        (0, 1, BudgetState.OK),
        (1, 1, BudgetState.EXCEEDED),
        (49, 100, BudgetState.OK),
        (50, 100, BudgetState.WARNED),
        (99, 100, BudgetState.WARNED),
        (100, 100, BudgetState.EXCEEDED),
        (101, 100, BudgetState.EXCEEDED),
        (1, 3, BudgetState.OK),
        (2, 3, BudgetState.WARNED),
    ],
)
def test_states_change_at_their_very_cent(spent, amount, expected):
    state = rules.state_of(spent_minor=spent, amount_minor=amount, thresholds=[80, 50])
    assert state == expected


def test_without_thresholds_nobody_is_warned():
    assert rules.state_of(spent_minor=99, amount_minor=100, thresholds=[]) == BudgetState.OK


@given(spents, amounts, thresholds)
def test_what_is_reached_is_reached_for_good(spent, amount, given_thresholds):
    facts = {"amount_minor": amount, "thresholds": given_thresholds}
    now = rules.reached_thresholds(spent_minor=spent, **facts)
    later = rules.reached_thresholds(spent_minor=spent + 1, **facts)
    assert now == sorted(now)
    assert set(now) <= set(later) <= set(given_thresholds)
    assert (100 in now) == (100 in given_thresholds and spent >= amount)


@given(spents, amounts)
def test_all_but_notify_act_once_it_is_used_up(spent, amount):
    facts = {"spent_minor": spent, "amount_minor": amount}
    for action in (BudgetAction.SUSPEND, BudgetAction.THROTTLE):
        acting_as = rules.acts_as(**facts, action=action.value)
        assert acting_as == (action.value if spent >= amount else "")
    assert rules.acts_as(**facts, action=BudgetAction.NOTIFY.value) == ""


def test_a_budget_under_the_old_promise_refuses_produce_alone_in_its_months():
    suspend, throttle = BudgetAction.SUSPEND.value, BudgetAction.THROTTLE.value
    assert rules.limit_kind(acting_as=suspend, covers_all=True) == "refuse_produce"
    assert rules.limit_kind(acting_as=suspend, covers_all=False) == "refuse"
    assert rules.limit_kind(acting_as=throttle, covers_all=False) == "throttle"
    november, december = date(2026, 11, 1), date(2026, 12, 1)
    assert rules.covers_all(november, november)
    assert not rules.covers_all(november, december)
    assert not rules.covers_all(None, november)


amounts_of_parts = st.builds(
    Spent, traffic_minor=st.integers(0, 10**16), kept_minor=st.integers(0, 10**16)
)
caps = st.builds(
    Cap,
    amount_minor=amounts,
    base_minor=spents,
    kept_minor=st.none() | spents,
    covers_all=st.booleans(),
)


@pytest.mark.parametrize(
    ("cap", "spent", "billed"),
    [
        # Traffic that slipped past: 80 were left of 100 when it was refused.
        (Cap(100, 0, kept_minor=20), Spent(90, 20), 100),
        # What is kept goes on costing, and makes no traffic free.
        (Cap(100, 0, kept_minor=20), Spent(90, 50), 130),
        (Cap(100, 0, kept_minor=20), Spent(70, 500), 570),
        # Storage alone used it up: nothing was left for traffic.
        (Cap(100, 0, kept_minor=120), Spent(60, 130), 130),
        # It was not refused by the month's end: what is kept then counts.
        (Cap(100, 0), Spent(90, 20), 100),
        (Cap(100, 0), Spent(60, 20), 80),
        # What was used before the budget was set is billed.
        (Cap(1, 60, kept_minor=40), Spent(65, 45), 105),
        # The promise of decision 0009.
        (Cap(100, 0, covers_all=True), Spent(60, 500), 100),
        (Cap(100, 300, covers_all=True), Spent(60, 500), 300),
    ],
)
def test_what_a_cap_lets_be_billed(cap, spent, billed):
    assert rules.billed_minor(spent, [cap]) == billed
    larger = Cap(10**9, 0)
    assert rules.billed_minor(spent, [cap, larger]) == billed


def test_without_a_cap_all_of_it_is_billed():
    assert rules.billed_minor(Spent(7, 8), []) == 15
    assert rules.most_billed([], kept_minor=8) is None


@given(amounts_of_parts, st.lists(caps, max_size=3))
def test_a_bill_is_never_above_what_was_used_nor_below_what_is_kept(spent, caps):
    billed = rules.billed_minor(spent, caps)
    assert billed <= spent.total_minor
    if not any(cap.covers_all for cap in caps):
        assert billed >= spent.kept_minor
        # Each unit that is kept more costs what it costs, once traffic is refused.
        if all(cap.kept_minor is not None for cap in caps):
            more = Spent(spent.traffic_minor, spent.kept_minor + 5)
            assert rules.billed_minor(more, caps) == billed + 5


@given(amounts_of_parts, amounts, st.none() | caps)
def test_no_change_of_a_budget_makes_free_what_was_billable(spent, after, cap):
    before = rules.billed_minor(spent, [] if cap is None else [cap])
    used_up = spent.total_minor >= after
    changed = Cap(
        amount_minor=after,
        base_minor=rules.base_of(spent, cap),
        kept_minor=spent.kept_minor if used_up else None,
    )
    billed = rules.billed_minor(spent, [changed])
    assert billed >= before
    # Nor does it bill more than the budget lets be spent, of what was not billable before.
    assert billed <= max(before, after, spent.kept_minor)


@given(amounts_of_parts, amounts, st.integers(0, 10**6))
def test_a_forecast_never_lets_less_be_spent_than_there_is(spent, amount, more):
    later = Spent(spent.traffic_minor + more, spent.kept_minor + more)
    caps = [Cap(amount, 0)]
    now = rules.billed_minor(spent, caps)
    assert rules.billed_minor(later, caps, known_kept_minor=spent.kept_minor) >= now


def test_of_a_capped_bill_each_has_what_it_keeps_and_its_share_of_the_traffic():
    spent = {"a": Spent(60, 5), "b": Spent(20, 0), "c": Spent(0, 7)}
    assert rules.share_billed(spent, 92) == {"a": 65, "b": 20, "c": 7}
    assert rules.share_billed(spent, 12 + 4) == {"a": 5 + 3, "b": 1, "c": 7}
    # A budget of an earlier promise covers what is kept, too.
    assert sum(rules.share_billed(spent, 6).values()) == 6


@given(st.dictionaries(st.text(), amounts_of_parts, min_size=1), st.data())
def test_shares_of_a_bill_sum_to_it_and_are_no_more_than_was_spent(spent_by, data):
    total = sum(spent.total_minor for spent in spent_by.values())
    billed = data.draw(st.integers(0, total))
    shares = rules.share_billed(spent_by, billed)
    assert sum(shares.values()) == billed
    assert all(0 <= share <= spent_by[key].total_minor for key, share in shares.items())
