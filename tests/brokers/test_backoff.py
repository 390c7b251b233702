"""When a broker is started again after it has ended."""

from hypothesis import given
from hypothesis import strategies as st

from brokers.backoff import Backoff, Ends

BACKOFF = Backoff(first_s=0.1, max_s=30.0, served_max_s=0.5, quiet_s=5.0)


def pauses(*served_s):
    """Pauses after ends of brokers that served so long."""
    ends, pauses = Ends(), []
    for seconds in served_s:
        ends = BACKOFF.after(ends, seconds)
        pauses.append(round(BACKOFF.pause_s(ends), 3))
    return pauses


def test_the_first_is_at_once_then_pauses_double():
    assert pauses(*[None] * 11) == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30]


def test_one_that_served_is_back_within_a_second():
    assert pauses(*[0.1] * 6) == [0, 0.1, 0.2, 0.4, 0.5, 0.5]


def test_a_quiet_time_makes_the_next_end_a_first_one():
    assert pauses(0.1, 0.1, 0.1, 5.0, 4.9) == [0, 0.1, 0.2, 0, 0.1]


def test_serving_ends_a_row_of_failed_starts():
    assert pauses(None, None, None, 0.1, None) == [0, 0.1, 0.2, 0, 0]


def test_one_that_stands_down_again_and_again_waits_like_one_that_never_served():
    ends, decisions = Ends(), []
    for _ in range(11):
        ends = BACKOFF.after(ends, 0.1, stood_down=True)
        decisions.append((BACKOFF.stands_down_repeatedly(ends), round(BACKOFF.pause_s(ends), 3)))
    pauses = [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30]
    assert decisions == [(False, 0), (False, 0.1), *((True, pause) for pause in pauses)]


def test_a_stand_down_after_a_quiet_time_is_the_first_time():
    ends = Ends()
    for served_s in (0.1, 0.1, 5.0, None, 0.1):
        ends = BACKOFF.after(ends, served_s, stood_down=served_s is not None)
    assert ends.stood_down == 2
    assert not BACKOFF.stands_down_repeatedly(ends)


@given(st.lists(st.none() | st.floats(0, 100)))
def test_pauses_are_bounded(served):
    assert all(0 <= pause <= BACKOFF.max_s for pause in pauses(*served))


def test_a_broker_may_fail_for_months():
    assert BACKOFF.pause_s(Ends(unserved=10**9)) == BACKOFF.max_s
