"""An alert fires and ends only after its figure lasted, and does not flap."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.alerts.choices import AlertState
from console.alerts.rules import Evaluation, Reading, judge_figure, worst_group

T = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
OK, FIRING = AlertState.OK, AlertState.FIRING


def states_after(values, *, threshold=10, for_s=120):
    """Returns the states after each figure, read a minute apart."""
    evaluation, states = Evaluation(OK, T), []
    for place, value in enumerate(values):
        at = T + place * MINUTE
        evaluation = judge_figure(evaluation, value, threshold=threshold, for_s=for_s, at=at)
        states.append(evaluation.state)
    return states


def test_an_alert_fires_and_ends_once_the_figure_lasted():
    states = states_after([5, 11, 11, 11, 10, 10, 10])
    assert states == [OK, OK, OK, FIRING, FIRING, FIRING, OK]


def test_without_a_duration_an_alert_fires_at_once():
    assert states_after([11, 10], for_s=0) == [FIRING, OK]


def test_a_figure_that_swings_around_the_threshold_never_fires():
    assert set(states_after([11, 9] * 20)) == {OK}
    # Nor does it end what fires.
    assert set(states_after([11, 11, 11, *([9, 11] * 20)])[2:]) == {FIRING}


def test_an_unknown_figure_proves_nothing():
    assert states_after([11, 11, None, 11, 11, 11]) == [OK, OK, OK, OK, OK, FIRING]
    assert set(states_after([11, 11, 11, None, None, None, None])[2:]) == {FIRING}


@given(
    st.lists(st.none() | st.integers(0, 20), max_size=40), st.integers(0, 20), st.integers(0, 300)
)
def test_the_state_changes_only_with_figures_that_all_speak_against_it(values, threshold, for_s):
    states = [OK, *states_after(values, threshold=threshold, for_s=for_s)]
    for place in range(len(values)):
        if states[place] is not states[place + 1]:
            looks = for_s // 60 + (1 if for_s % 60 else 0)
            spoke = values[place - looks : place + 1]
            assert len(spoke) == looks + 1
            assert None not in spoke
            beyond = states[place + 1] is FIRING
            assert all((value > threshold) is beyond for value in spoke)


def test_the_worst_group_counts():
    groups: list[dict[str, Any]] = [
        {"group": "a", "lag": 5, "lag_seconds": None},
        {"group": "b", "lag": 9, "lag_seconds": 1.5},
        {"group": "c", "lag": None, "lag_seconds": None},
    ]
    assert worst_group(groups, figure="lag", group_name="") == Reading(9, "b")
    assert worst_group(groups, figure="lag", group_name="a") == Reading(5, "a")
    assert worst_group(groups, figure="lag_seconds", group_name="") == Reading(1, "b")
    assert worst_group(groups, figure="lag", group_name="c") is None
    assert worst_group(groups, figure="lag", group_name="gone") is None
    assert worst_group([], figure="lag", group_name="") == Reading(0)
