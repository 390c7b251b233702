"""Limits per address, counted in rows: they hold over processes and restarts."""

from __future__ import annotations

import ipaddress
import math
from datetime import timedelta

from console.accounts.models import AddressEvent
from console.common import locks
from console.common.clock import now
from console.common.errors import Quota, TooManyRequests

WINDOW = timedelta(hours=1)


def check_address(*, kind: str, address: str, limit: int) -> None:
    """Raises `TooManyRequests` if the address did it as often as allowed within the last hour.

    Holds the address's lock until the transaction ends, so that many requests at once do not pass
    together.
    """
    network = network_of(address)
    locks.lock(f"address:{kind}", network)
    since = now() - WINDOW
    events = AddressEvent.objects.filter(kind=kind, address=network, created_at__gt=since)
    times = list(events.order_by("created_at").values_list("created_at", flat=True))
    if len(times) < limit:
        return
    # With the oldest of the last `limit` ones gone there is room again.
    room_at = times[len(times) - limit] + WINDOW if limit else now() + WINDOW
    raise TooManyRequests(
        "This address has done this too often within an hour.",
        quota=Quota(f"{kind}_per_address_per_hour", limit, len(times)),
        retry_after_s=max(1, math.ceil((room_at - now()).total_seconds())),
    )


def note_address(*, kind: str, address: str) -> None:
    """Counts one."""
    AddressEvent.objects.create(kind=kind, address=network_of(address))


def events_of_address(*, kind: str, address: str) -> int:
    """How often it was counted within the last hour."""
    since = now() - WINDOW
    events = AddressEvent.objects.filter(kind=kind, created_at__gt=since)
    return events.filter(address=network_of(address)).count()


def network_of(address: str) -> str:
    """What counts as one address: in IPv6 the /64 network, which one customer line has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def purge_address_events() -> int:
    """Deletes what no window reaches any more; gives how many."""
    deleted, _ = AddressEvent.objects.filter(created_at__lt=now() - 2 * WINDOW).delete()
    return deleted
