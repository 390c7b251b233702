"""What budgets say of spending: pure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.budgets import rules
from billing.choices import BudgetAction, BudgetState

amounts = st.integers(1, 10**15)
spents = st.integers(0, 10**16)
thresholds = st.lists(st.integers(1, 1_000), max_size=10)
caps = st.none() | st.integers(0, 10**16)


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
def test_only_a_suspending_budget_suspends(spent, amount):
    facts = {"spent_minor": spent, "amount_minor": amount}
    assert rules.is_holding(**facts, action=BudgetAction.SUSPEND.value) == (spent >= amount)
    assert not rules.is_holding(**facts, action=BudgetAction.NOTIFY.value)


@given(spents, amounts, caps)
def test_no_change_of_a_budget_makes_free_what_was_billable(spent, after, cap):
    billable = spent if cap is None else min(spent, cap)
    base = rules.base_of(spent_minor=spent, cap_minor=cap)
    new_cap = rules.cap_of(amount_minor=after, action=BudgetAction.SUSPEND.value, base_minor=base)
    assert new_cap is not None
    assert new_cap >= billable
    # Nor does it bill more than the budget lets be spent, of what was not billable before.
    assert new_cap == max(after, billable)


def test_a_budget_that_only_notifies_caps_nothing():
    assert rules.cap_of(amount_minor=1, action=BudgetAction.NOTIFY.value, base_minor=0) is None
