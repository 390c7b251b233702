"""The control plane's one clock. Tests replace `django.utils.timezone.now`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.utils import timezone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now() -> datetime:
    """Returns the current time, timezone-aware, in UTC."""
    return timezone.now()


def unix_ms(moment: datetime) -> int:
    """Returns a moment's whole milliseconds since 1970."""
    return (moment - EPOCH) // timedelta(milliseconds=1)
