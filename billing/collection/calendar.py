"""The calendar after an unpaid invoice. Pure: times in, what to do out.

Days are counted from `since`: when the first charge failed, a transfer was due, or a paid invoice
was open again.

| Day | What happens |
|---|---|
| 0 | a mail that says so, and what follows when |
| 1, 3, 7 | the card is charged again |
| 11 | a mail: produce and fetch are refused in three days |
| 14 | they are refused |
| 27 | a mail: the clusters sleep in three days |
| 30 | they sleep |
| 53 | a mail: the clusters are deleted in seven days |
| 60 | they are deleted, with the usual days in which they can be restored |

No step is taken that no mail announced its whole notice before, however late the mail was sent. All
is undone by paying, at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from billing.choices import DunningStage

DAY = timedelta(days=1)
RETRIES = (1 * DAY, 3 * DAY, 7 * DAY)
# Mails are noted so much ahead of the notice, as they take a while to be sent.
AHEAD = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the calendar: the stage that begins, when, and how long before it is announced."""

    stage: DunningStage
    after: timedelta
    notice: timedelta


STEPS = (
    Step(DunningStage.SUSPENDED, 14 * DAY, 3 * DAY),
    Step(DunningStage.ASLEEP, 30 * DAY, 3 * DAY),
    Step(DunningStage.DELETED, 60 * DAY, 7 * DAY),
)
ORDER = (DunningStage.PAID, DunningStage.UNPAID, *(step.stage for step in STEPS))


@dataclass(frozen=True, slots=True)
class Announcement:
    """The mail before a step: its stage, when it begins, and whether the mail was sent."""

    stage: DunningStage
    acts_at: datetime
    sent: bool


@dataclass(frozen=True, slots=True)
class Move:
    """What to do now.

    `stage`: the stage that holds now. `announce`: the step to send a mail about, and when it is to
    be taken. `look_at`: when to look again; None where nothing follows.
    """

    stage: DunningStage
    announce: tuple[Step, datetime] | None = None
    look_at: datetime | None = None


def next_retry(since: datetime, at: datetime) -> datetime | None:
    """When an invoice is charged again whose first charge failed at `since`; None after the last
    time."""
    times = (since + after for after in RETRIES)
    return next((time for time in times if time > at), None)


def oldest(times: Iterable[datetime | None]) -> datetime | None:
    """The earliest of some times, of which those that are None do not count."""
    return min((time for time in times if time is not None), default=None)


def next_step(stage: DunningStage) -> Step | None:
    """The step after a stage; None after the last one."""
    following = ORDER[ORDER.index(stage) + 1 :]
    return next((step for step in STEPS if step.stage in following), None)


def next_move(
    *,
    stage: DunningStage,
    since: datetime | None,
    announced: Announcement | None,
    at: datetime,
) -> Move:
    """What the calendar has an organization's dunning do at a time.

    `since`: None where nothing is unpaid. `announced`: the last mail before a step.
    """
    if since is None:
        return Move(DunningStage.PAID)
    # Where an older invoice was paid, the calendar of the next one holds, which may be less strict.
    stage = min(stage, _latest(since, at), key=ORDER.index)
    if stage is DunningStage.PAID:
        stage = DunningStage.UNPAID
    step = next_step(stage)
    if step is None:
        return Move(stage)
    due = since + step.after
    if announced is None or announced.stage is not step.stage or announced.acts_at < due:
        if at < due - step.notice - AHEAD:
            return Move(stage, look_at=due - step.notice - AHEAD)
        acts_at = max(due, at + step.notice)
        return Move(stage, announce=(step, acts_at), look_at=acts_at)
    if not announced.sent or at < announced.acts_at:
        return Move(stage, look_at=announced.acts_at)
    following = next_step(step.stage)
    look_at = None
    if following is not None:
        look_at = max(at, since + following.after - following.notice - AHEAD)
    return Move(step.stage, look_at=look_at)


def _latest(since: datetime, at: datetime) -> DunningStage:
    """The strictest stage that an invoice which is unpaid since then can have come to."""
    reached = [step.stage for step in STEPS if since + step.after <= at]
    return reached[-1] if reached else DunningStage.UNPAID
