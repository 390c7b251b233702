"""Usage that costs a given amount, written as the meter writes it."""

from __future__ import annotations

from datetime import datetime

from console.base.common.clock import now
from tests.metering.console.world import Used, use_minute

GIB = 2**30
FREE_INGRESS = 10 * GIB
# At $0.04 a GiB.
INGRESS_A_CENT = GIB // 4
MINUTES = 30 * 24 * 60
FREE_STORAGE = 5 * GIB * MINUTES
# At $0.06 a GiB-month, of a month of 30 days.
STORAGE_A_CENT = GIB * MINUTES // 6
TOPIC = "0" * 31 + "1"
PRINCIPAL = "User:cred_aaaaaaaaaaaaaaaaaaaa"


def cluster_of(organization_id: str) -> str:
    """The id of a cluster that an organization might have."""
    return organization_id.replace("org_", "cl_")


def use_bytes(
    organization_id: str,
    quantity: int,
    *,
    meter: str = "ingress_bytes",
    cluster_id: str | None = None,
    topic_id: str = TOPIC,
    principal: str = PRINCIPAL,
    minute: datetime | None = None,
    billed: bool = True,
) -> None:
    """Adds to the provisional minutes of an organization; the present minute unless given."""
    moment = (minute or now()).replace(second=0, microsecond=0)
    cluster_id = cluster_id or cluster_of(organization_id)
    used = Used(organization_id, cluster_id, meter, quantity, topic_id, principal, billed)
    use_minute(used, moment)


def spend_cents(organization_id: str, cents: int, *, minute: datetime | None = None) -> None:
    """Adds usage that costs so many cents beyond the free allowance. Works once in a month."""
    use_bytes(organization_id, FREE_INGRESS + cents * INGRESS_A_CENT, minute=minute)


def spend_more_cents(organization_id: str, cents: int, *, minute: datetime | None = None) -> None:
    """Adds usage that costs so many cents more, once the free allowance is used up."""
    use_bytes(organization_id, cents * INGRESS_A_CENT, minute=minute)


def keep_cents(organization_id: str, cents: int, *, minute: datetime | None = None) -> None:
    """Adds storage that costs so many cents beyond the free allowance. Works once in a month."""
    _store(organization_id, FREE_STORAGE + cents * STORAGE_A_CENT, minute)


def keep_more_cents(organization_id: str, cents: int, *, minute: datetime | None = None) -> None:
    """Adds storage that costs so many cents more, once the free allowance is used up."""
    _store(organization_id, cents * STORAGE_A_CENT, minute)


def _store(organization_id: str, quantity: int, minute: datetime | None) -> None:
    use_bytes(organization_id, quantity, meter="storage_byte_minutes", principal="", minute=minute)
