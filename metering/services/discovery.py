"""Finds usage files that are not known yet.

A look lists the days of emission since the last that were listed after their end, and never less
than the last three days, whose files may come late; so it costs the same however old the store is.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

from metering.choices import FileState
from metering.events.keys import cell_prefix, day_prefix, parse_key
from metering.events.store import UsageStore
from metering.models import IngestState, UsageFile
from metering.periods import DAY

# Files come so late without anybody asking.
LATE = timedelta(days=3)
# A manifest is written after its file, by another clock.
SETTLING = timedelta(minutes=10)
# A damaged file may have been put right.
TRY_AGAIN = timedelta(minutes=10)


def find_files(
    store: UsageStore, state: IngestState, *, at: datetime, since: date | None = None
) -> list[str]:
    """Keys of files to take in, in the order of emission. `since`: look at all days from then on.

    Raises `OSError` where the store cannot be reached.
    """
    first = _first_day(store, state, at, since)
    if first is None:
        return []
    found = []
    # By the agents' clocks it may be tomorrow already.
    while first <= at.date() + DAY:
        known = _known(state.cell, first, at)
        for key in store.list(day_prefix(state.cell, first)):
            parsed = parse_key(key)
            if parsed is not None and parsed.is_manifest:
                data = f"{key.removesuffix('.json')}.parquet"
                if data not in known:
                    found.append(data)
        first += DAY
    return found


def settled_before(at: datetime) -> date:
    """Days before this one have been listed after their end, by a look at this time."""
    return (at - SETTLING).date()


def _first_day(
    store: UsageStore, state: IngestState, at: datetime, since: date | None
) -> date | None:
    late = (at - LATE).date()
    if state.settled_before is not None:
        return min(filter(None, (state.settled_before, late, since)))
    # The first look at this store: keys come in order, so the first one tells.
    for key in store.list(cell_prefix(state.cell)):
        parsed = parse_key(key)
        if parsed is not None:
            return parsed.day
    return None


def _known(cell: str, day: date, at: datetime) -> set[str]:
    """Files of a day that need no look: taken in, or found damaged a short while ago."""
    files = UsageFile.objects.filter(cell=cell, day=day)
    waiting = files.exclude(state=FileState.DAMAGED, tried_at__lte=at - TRY_AGAIN)
    return set(waiting.values_list("key", flat=True))
