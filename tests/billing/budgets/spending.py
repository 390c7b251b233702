"""Usage that costs a given amount, written as the meter writes it."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from console.base.common.clock import now
from console.base.common.tenancy import organization_scope
from metering.models import ProvisionalMinute

GIB = 2**30
FREE_INGRESS = 10 * GIB
# At $0.04 a GiB.
INGRESS_A_CENT = GIB // 4
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
    with organization_scope(organization_id):
        row, _ = ProvisionalMinute.objects.get_or_create(
            organization_id=organization_id,
            cluster_id=cluster_id or cluster_of(organization_id),
            topic_id=topic_id,
            principal=principal,
            meter=meter,
            minute=moment,
            billed=billed,
            defaults={"quantity": Decimal(0)},
        )
        row.quantity += quantity
        row.save(update_fields=["quantity"])


def spend_cents(organization_id: str, cents: int, *, minute: datetime | None = None) -> None:
    """Adds usage that costs so many cents beyond the free allowance. Works once in a month."""
    use_bytes(organization_id, FREE_INGRESS + cents * INGRESS_A_CENT, minute=minute)


def spend_more_cents(organization_id: str, cents: int, *, minute: datetime | None = None) -> None:
    """Adds usage that costs so many cents more, once the free allowance is used up."""
    use_bytes(organization_id, cents * INGRESS_A_CENT, minute=minute)
