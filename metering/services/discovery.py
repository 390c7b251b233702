"""Finds usage files in the store that are not known yet.

A look lists the days of emission that were not listed after their end yet, and always the last
three days, whose files may come late. So its cost does not grow with the store.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

from metering.choices import FileState
from metering.events.keys import cell_prefix, day_prefix, parse_key
from metering.events.store import UsageStore
from metering.models import IngestState, UsageFile
from metering.periods import DAY

# Files of these last days are looked for without a request.
LATE = timedelta(days=3)
# A day counts as listed only this long after its end: a manifest is written after the time in its
# key, and by another clock.
SETTLING = timedelta(minutes=10)
# A damaged file is tried again after this time, since it may have been repaired.
TRY_AGAIN = timedelta(minutes=10)


def find_files(
    store: UsageStore, state: IngestState, *, at: datetime, since: date | None = None
) -> list[str]:
    """Keys of data files to take in, in the order of emission. `since`: list all days from then on.

    Raises `OSError` where the store cannot be reached.
    """
    first = _first_day(store, state, at, since)
    if first is None:
        return []
    keys = []
    # Tomorrow too: agents' clocks may be ahead.
    while first <= at.date() + DAY:
        known_keys = _known_files(state.cell, first, at)
        for key in store.list(day_prefix(state.cell, first)):
            parsed = parse_key(key)
            if parsed is not None and parsed.is_manifest:
                data = f"{key.removesuffix('.json')}.parquet"
                if data not in known_keys:
                    keys.append(data)
        first += DAY
    return keys


def settled_before(at: datetime) -> date:
    """The day before which a look at a time has listed all days after their end."""
    return (at - SETTLING).date()


def _first_day(
    store: UsageStore, state: IngestState, at: datetime, since: date | None
) -> date | None:
    late = (at - LATE).date()
    if state.settled_before is not None:
        return min(filter(None, (state.settled_before, late, since)))
    # At the first look the first key in the store has the first day, because keys are in order.
    for key in store.list(cell_prefix(state.cell)):
        parsed = parse_key(key)
        if parsed is not None:
            return parsed.day
    return None


def _known_files(cell: str, day: date, at: datetime) -> set[str]:
    """The files of a day to skip: taken in, or tried and damaged a short while ago."""
    files = UsageFile.objects.filter(cell=cell, day=day)
    waiting = files.exclude(state=FileState.DAMAGED, tried_at__lte=at - TRY_AGAIN)
    return set(waiting.values_list("key", flat=True))
