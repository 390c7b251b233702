"""An alert fires and ends only after its figure lasted, and does not flap."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.alerts.choices import AlertState
from console.alerts.rules import Evaluation, Reading, judge_figure, leading_topic, worst_group

T = datetime(2026, 11, 20, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
OK, PENDING, FIRING = AlertState.OK, AlertState.PENDING, AlertState.FIRING


def evaluations_after(values, *, threshold=10, for_s=120):
    """Returns the evaluation after each figure, read a minute apart."""
    evaluation, evaluations = Evaluation(OK, T), []
    for place, value in enumerate(values):
        at = T + place * MINUTE
        evaluation = judge_figure(evaluation, value, threshold=threshold, for_s=for_s, at=at)
        evaluations.append(evaluation)
    return evaluations


def states_after(values, **options):
    return [evaluation.state for evaluation in evaluations_after(values, **options)]


def test_an_alert_fires_and_ends_once_the_figure_lasted():
    states = states_after([5, 11, 11, 11, 10, 10, 10])
    assert states == [OK, PENDING, PENDING, FIRING, FIRING, FIRING, OK]


def test_it_is_known_since_when():
    seen = evaluations_after([5, 11, 11, 11, 10, 11, 10, 10, 10])
    assert [(place.changed_at - T) // MINUTE for place in seen] == [0, 1, 1, 3, 3, 3, 3, 3, 8]
    # When it went beyond the threshold stays known when it fires, and when that is over.
    assert {place.beyond_since for place in seen[1:]} == {T + MINUTE}
    back = [place.back_since and (place.back_since - T) // MINUTE for place in seen]
    assert back == [None, None, None, None, 4, None, 6, 6, None]


def test_without_a_duration_an_alert_fires_at_once():
    assert states_after([11, 10], for_s=0) == [FIRING, OK]


def test_a_figure_that_swings_around_the_threshold_never_fires():
    assert states_after([11, 9] * 20) == [PENDING, OK] * 20
    # Nor does it end what fires.
    assert set(states_after([11, 11, 11, *([9, 11] * 20)])[2:]) == {FIRING}


def test_what_is_pending_again_is_so_since_then():
    (*_, last) = evaluations_after([11, 11, 9, 11])
    assert (last.state, last.changed_at, last.beyond_since) == (PENDING, *[T + 3 * MINUTE] * 2)


def test_an_unknown_figure_proves_nothing():
    states = states_after([11, 11, None, 11, 11, 11])
    assert states == [PENDING, PENDING, OK, PENDING, PENDING, FIRING]
    assert set(states_after([11, 11, 11, None, None, None, None])[2:]) == {FIRING}


@given(
    st.lists(st.none() | st.integers(0, 20), max_size=40), st.integers(0, 20), st.integers(0, 300)
)
def test_it_fires_and_ends_only_with_figures_that_all_speak_for_it(values, threshold, for_s):
    states = [OK, *states_after(values, threshold=threshold, for_s=for_s)]
    for place in range(len(values)):
        fired, fires = (state is FIRING for state in states[place : place + 2])
        if fired is not fires:
            looks = for_s // 60 + (1 if for_s % 60 else 0)
            spoke = values[place - looks : place + 1]
            assert len(spoke) == looks + 1
            assert None not in spoke
            assert all((value > threshold) is fires for value in spoke)


@given(
    st.lists(st.none() | st.integers(0, 20), max_size=40), st.integers(0, 20), st.integers(1, 300)
)
def test_it_is_pending_from_the_first_figure_beyond_the_threshold(values, threshold, for_s):
    seen = evaluations_after(values, threshold=threshold, for_s=for_s)
    for place, value in enumerate(values):
        before = seen[place - 1].state if place else OK
        if value is not None and value > threshold and before is OK:
            at = T + place * MINUTE
            assert seen[place] == Evaluation(PENDING, at, at)
        if seen[place].state is PENDING:
            assert value is not None
            assert value > threshold


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


def test_the_topic_with_most_of_the_bytes_leads():
    assert leading_topic({"a": 5, "b": 9, "c": 2}) == "b"
    # None leads where none has grown, or nothing is stored.
    assert leading_topic({"a": -5, "b": 0}) == leading_topic({}) == ""
