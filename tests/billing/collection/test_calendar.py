"""The calendar after an unpaid invoice: nothing happens that no mail announced in time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.choices import DunningStage
from billing.collection.calendar import (
    DAY,
    ORDER,
    STEPS,
    Announcement,
    next_move,
    next_retry,
    next_step,
    oldest,
)

SINCE = datetime(2026, 10, 4, 1, tzinfo=UTC)
# How long the service looks away between two looks, and how long a mail takes.
PAUSES = st.lists(
    st.tuples(
        st.timedeltas(timedelta(minutes=1), timedelta(days=12)),
        st.timedeltas(timedelta(0), timedelta(days=4)),
    ),
    min_size=1,
    max_size=60,
)


def live(pauses):
    """Runs the calendar as dunning does; yields (time, stage before, stage, sent announcement)."""
    at, stage, announcement, sent_at = SINCE, DunningStage.PAID, None, SINCE
    for pause, mail_takes in pauses:
        at += pause
        if announcement and not announcement.sent and at >= sent_at:
            (notice,) = [step.notice for step in STEPS if step.stage is announcement.stage]
            acts_at = max(announcement.acts_at, sent_at + notice)
            announcement = Announcement(announcement.stage, acts_at, sent=True)
        move = next_move(stage=stage, since=SINCE, announced=announcement, at=at)
        yield at, stage, move.stage, announcement, sent_at
        stage = move.stage
        if move.announce is not None:
            step, acts_at = move.announce
            announcement = Announcement(step.stage, acts_at, sent=False)
            sent_at = at + mail_takes


@given(PAUSES)
def test_each_step_was_announced_its_whole_notice_before(pauses):
    for at, before, stage, announcement, sent_at in live(pauses):
        if stage in (DunningStage.UNPAID, before):
            continue
        step = next(step for step in STEPS if step.stage is stage)
        unpaid = max(before, DunningStage.UNPAID, key=ORDER.index)
        assert ORDER.index(stage) == ORDER.index(unpaid) + 1
        assert announcement.stage is stage
        assert announcement.sent
        assert at - sent_at >= step.notice
        assert at >= SINCE + step.after


def test_a_service_that_looks_often_keeps_the_days():
    looks = [(timedelta(hours=6), timedelta(minutes=1))] * (4 * 70)
    days = {
        stage: (at - SINCE) / DAY for at, before, stage, *_ in live(looks) if stage is not before
    }
    assert days == {
        DunningStage.UNPAID: 0.25,
        DunningStage.SUSPENDED: 14,
        DunningStage.ASLEEP: 30,
        DunningStage.DELETED: 60,
    }


@pytest.mark.parametrize("stage", ORDER)
def test_who_owes_nothing_is_left_alone_at_once(stage):
    move = next_move(stage=stage, since=None, announced=None, at=SINCE + 80 * DAY)
    assert (move.stage, move.announce, move.look_at) == (DunningStage.PAID, None, None)


@pytest.mark.parametrize(
    ("newer_days", "expected"),
    [
        (3, DunningStage.UNPAID),
        (15, DunningStage.SUSPENDED),
        (31, DunningStage.ASLEEP),
    ],
)
def test_once_an_older_invoice_is_paid_the_calendar_of_the_newer_one_holds(newer_days, expected):
    at = SINCE + 61 * DAY
    move = next_move(stage=DunningStage.DELETED, since=at - newer_days * DAY, announced=None, at=at)
    assert move.stage is expected


def test_a_step_that_was_announced_for_an_older_invoice_is_announced_again():
    announced = Announcement(DunningStage.SUSPENDED, SINCE + 14 * DAY, sent=True)
    since = SINCE + 10 * DAY
    early = next_move(
        stage=DunningStage.UNPAID, since=since, announced=announced, at=SINCE + 15 * DAY
    )
    assert (early.stage, early.announce) == (DunningStage.UNPAID, None)
    late = next_move(
        stage=DunningStage.UNPAID, since=since, announced=announced, at=since + 11 * DAY
    )
    assert late.announce == (STEPS[0], since + 14 * DAY)


def test_the_card_is_charged_again_on_three_days_and_never_after():
    times = [SINCE]
    while (retry := next_retry(SINCE, times[-1])) is not None:
        times.append(retry)
    assert [(time - SINCE) / DAY for time in times] == [0, 1, 3, 7]
    # A worker that was away for days goes on with the next day.
    assert next_retry(SINCE, SINCE + 5 * DAY) == SINCE + 7 * DAY


def test_steps_follow_each_other():
    stages = [DunningStage.PAID]
    while (step := next_step(stages[-1])) is not None:
        stages.append(step.stage)
    assert stages[1:] == [step.stage for step in STEPS]
    assert oldest([None, SINCE + DAY, SINCE]) == SINCE
    assert oldest([None]) is None
