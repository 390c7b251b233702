"""Tests when schedules want a cluster awake, also where clocks change."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioning.clusters.schedules import (
    DAYS,
    ScheduledState,
    minutes_of,
    scheduled_state,
    schedules_of,
    zone_of,
)

ZURICH = "Europe/Zurich"
WEEKDAYS = ["mon", "tue", "wed", "thu", "fri"]


def schedule(days=WEEKDAYS, start="07:00", end="19:00", time_zone=ZURICH):
    return {"days": days, "start": start, "end": end, "time_zone": time_zone}


def utc(year, month, day, hour=0, minute=0):
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def at(moment, *stored):
    return scheduled_state(schedules_of(stored), moment)


@pytest.mark.parametrize(
    ("moment", "awake", "until"),
    [
        # A Monday in winter (UTC+1) and one in summer (UTC+2).
        (utc(2026, 11, 23, 5, 59), False, utc(2026, 11, 23, 6)),
        (utc(2026, 11, 23, 6), True, utc(2026, 11, 23, 18)),
        (utc(2026, 11, 23, 18), False, utc(2026, 11, 24, 6)),
        (utc(2026, 7, 6, 5), True, utc(2026, 7, 6, 17)),
        # Over a weekend on which clocks are put back.
        (utc(2026, 10, 23, 17), False, utc(2026, 10, 26, 6)),
    ],
)
def test_working_hours_are_those_of_the_wall(moment, awake, until):
    assert at(moment, schedule()) == ScheduledState(awake=awake, until=until)


def test_a_night_ends_on_the_day_after():
    night = schedule(["sun"], "22:00", "06:00")
    # It is Monday, and the schedule began on Sunday evening.
    assert at(utc(2026, 11, 23, 4), night) == ScheduledState(awake=True, until=utc(2026, 11, 23, 5))
    assert not at(utc(2026, 11, 22, 4), night).awake


def test_those_that_meet_are_one():
    schedules = schedule(["mon"], "07:00", "12:00"), schedule(["mon"], "12:00", "15:00")
    until = utc(2026, 11, 23, 14)
    assert at(utc(2026, 11, 23, 7), *schedules) == ScheduledState(awake=True, until=until)
    days = schedule(list(DAYS), "00:00", "24:00")
    assert at(utc(2026, 11, 23, 7), days) == ScheduledState(awake=True, until=None)
    assert at(utc(2026, 11, 23, 7)) == ScheduledState(awake=False, until=None)


def test_an_hour_that_comes_twice_has_no_gap():
    """On 2026-10-25 at 03:00 clocks in Zurich go back to 02:00, which is at 01:00 UTC."""
    early = schedule(["sun"], "01:00", "02:30")
    until = utc(2026, 10, 25, 1, 30)
    for minute in range(0, 150, 10):
        moment = utc(2026, 10, 24, 23) + timedelta(minutes=minute)
        assert at(moment, early) == ScheduledState(awake=True, until=until)
    # A schedule that starts in the repeated hour starts in its first pass.
    late = schedule(["sun"], "02:30", "04:00")
    assert at(utc(2026, 10, 25, 0, 30), late) == ScheduledState(
        awake=True, until=utc(2026, 10, 25, 3)
    )


def test_an_hour_that_is_skipped_is_as_before_the_change():
    """On 2026-03-29 at 02:00 clocks in Zurich go to 03:00, which is at 01:00 UTC."""
    begins = schedule(["sun"], "02:30", "05:00")
    assert not at(utc(2026, 3, 29, 1, 29), begins).awake
    until = utc(2026, 3, 29, 3)
    assert at(utc(2026, 3, 29, 1, 30), begins) == ScheduledState(awake=True, until=until)
    ends = schedule(["sun"], "01:00", "02:30")
    assert at(utc(2026, 3, 29, 0), ends).until == utc(2026, 3, 29, 1, 30)
    # The schedule begins in the half hour that no clock shows, and is over at once.
    nothing = schedule(["sun"], "02:15", "03:10")
    assert not at(utc(2026, 3, 29, 1, 20), nothing).awake


clock_times = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
schedules = st.builds(
    schedule,
    st.lists(st.sampled_from(DAYS), min_size=1, max_size=7, unique=True),
    clock_times,
    clock_times,
    st.sampled_from([ZURICH, "America/St_Johns", "Australia/Lord_Howe", "UTC", "Asia/Kolkata"]),
)
moments = st.integers(0, 4 * 366 * 24 * 60).map(lambda n: utc(2024, 1, 1) + timedelta(minutes=n))


@given(moments, st.lists(schedules, max_size=3), st.timedeltas(timedelta(0), timedelta(days=8)))
def test_nothing_changes_before_it_is_said_to(moment, stored, later):
    """Any moment before the end of a state has the same state, and its end has another one."""
    state = at(moment, *stored)
    if state.until is None:
        assert at(moment + later, *stored).awake == state.awake
        return
    assert state.until > moment
    between = min(moment + later, state.until - timedelta(microseconds=1))
    assert at(between, *stored) == state
    assert at(state.until, *stored).awake != state.awake


def test_what_never_sleeps_in_one_zone_is_endless_beside_what_sleeps_in_another():
    always = schedule(DAYS, "00:00", "00:00", "America/St_Johns")
    mornings = schedule(["mon", "tue"], "05:00", "00:00", ZURICH)
    # It is Monday in Zurich and still Sunday in St John's: weeks end at different moments.
    state = at(utc(2024, 1, 1, 0, 30), mornings, always)
    assert (state.awake, state.until) == (True, None)


@pytest.mark.parametrize("text", ["7:00", "07:00:00", "24:30", "", "noon", "07:00Z", "25:00"])
def test_what_no_clock_shows_is_no_time(text):
    with pytest.raises(ValueError, match="is not like"):
        minutes_of(text)


@pytest.mark.parametrize("name", ["", "Zurich", "../etc/passwd", "europe/zurich", "localtime"])
def test_zones_have_their_name(name):
    with pytest.raises(ValueError, match="time zone"):
        zone_of(name)
