"""The control plane's one clock. Tests replace `django.utils.timezone.now`."""

from __future__ import annotations

from datetime import datetime

from django.utils import timezone


def now() -> datetime:
    """The time, aware, in UTC."""
    return timezone.now()
