"""Recognises a crash loop from how often a cluster's brokers restarted since it woke up. Pure.

The count alone says nothing: the brokers of a cluster that runs for months restart now and then.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

# So many restarts are a crash loop if each followed the one before within APART_MAX.
RESTARTS = 3
APART_MAX = timedelta(minutes=10)
# The crash loop is over when no restart happened for this long.
QUIET = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Restarts:
    """Restarts of a cluster's brokers as of the last sweep that saw a new one.

    `count`: all since the cluster woke up. `streak`: the latest ones that each followed the one
    before within `APART_MAX`.
    """

    count: int
    streak: int
    last_at: datetime


def count_restarts(before: Restarts | None, count: int, at: datetime) -> Restarts | None:
    """Returns the restarts after a sweep that read `count`; None where there were none."""
    if count == 0:
        return None
    if before is None:
        return Restarts(count, 1, at)
    # The count begins at 0 when a cluster wakes up: a lower one means that it slept meanwhile.
    added = count - before.count if count >= before.count else count
    if added == 0:
        return before
    follows = at - before.last_at <= APART_MAX
    return Restarts(count, before.streak + added if follows else added, at)


def is_crash_loop(restarts: Restarts | None, at: datetime) -> bool:
    """Returns whether the restarts are a crash loop at the moment `at`."""
    return restarts is not None and restarts.streak >= RESTARTS and at - restarts.last_at < QUIET
