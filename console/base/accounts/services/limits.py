"""Limits per network address, counted in rows, so that all processes share them across restarts."""

from __future__ import annotations

import math
from datetime import timedelta

from console.base.accounts.models import AddressEvent
from console.base.common import locks
from console.base.common.clock import now
from console.base.common.errors import Quota, TooManyRequests
from console.base.common.requests import network_of

WINDOW = timedelta(hours=1)
# The kind of event that is counted → the name of its published limit.
PUBLISHED = {
    "password_reset": "password_resets_per_address",
    "signin_failed": "signins_failed_per_address",
    "signup": "signups_per_address",
    # It sends the same mail as a sign-up.
    "verification": "signups_per_address",
}


def check_address(*, kind: str, address: str, limit: int) -> None:
    """Raises `TooManyRequests` if the address had `limit` events of a kind within the last hour.

    Holds the address's lock until the transaction ends or waits, so that simultaneous requests are
    counted one after the other.
    """
    network = network_of(address)
    locks.lock_briefly(f"address:{kind}", network)
    since = now() - WINDOW
    events = AddressEvent.objects.filter(kind=kind, address=network, created_at__gt=since)
    times = list(events.order_by("created_at").values_list("created_at", flat=True))
    if len(times) < limit:
        return
    # There is room again once the oldest of the last `limit` events is an hour old.
    room_at = times[len(times) - limit] + WINDOW if limit else now() + WINDOW
    raise TooManyRequests(
        "This address has done this too often within an hour.",
        quota=Quota(PUBLISHED[kind], limit, len(times)),
        retry_after_s=max(1, math.ceil((room_at - now()).total_seconds())),
    )


def note_address(*, kind: str, address: str) -> AddressEvent:
    """Counts one event of an address, or of the /64 network of an IPv6 address; returns its row."""
    return AddressEvent.objects.create(kind=kind, address=network_of(address))


def events_of_address(*, kind: str, address: str) -> int:
    """Returns how many events of a kind an address had within the last hour."""
    since = now() - WINDOW
    events = AddressEvent.objects.filter(kind=kind, created_at__gt=since)
    return events.filter(address=network_of(address)).count()


def purge_address_events() -> int:
    """Deletes events that no limit counts any more; returns how many."""
    deleted, _ = AddressEvent.objects.filter(created_at__lt=now() - 2 * WINDOW).delete()
    return deleted
