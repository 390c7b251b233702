"""Whether brokers restart again and again, from how often they have since their cluster woke up.

Pure. The count alone says nothing: a cluster that runs for months has restarted now and then.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

# So many restarts, each within so long of the one before, are a crash loop.
RESTARTS = 3
APART_MAX = timedelta(minutes=10)
# Without another one for so long it is over.
QUIET = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Restarts:
    """What was seen of a cluster's restarts. `streak`: of those that followed on each other."""

    count: int
    streak: int
    last_at: datetime


def seen(before: Restarts | None, count: int, at: datetime) -> Restarts | None:
    """What is known after a look that found `count`; None: none that matters."""
    if count == 0:
        return None
    if before is None:
        return Restarts(count, 1, at)
    # A lower count is of a cluster that slept and woke up since.
    more = count - before.count if count >= before.count else count
    if more == 0:
        return before
    follows = at - before.last_at <= APART_MAX
    return Restarts(count, before.streak + more if follows else more, at)


def crashing(known: Restarts | None, at: datetime) -> bool:
    """Whether it is a crash loop at a moment."""
    return known is not None and known.streak >= RESTARTS and at - known.last_at < QUIET
