"""What the roll-up has rows of that nobody pays for, and whose it is.

Two things may be there: traffic and storage of the service's own topics, whoever caused it, and
what the service's own user read and wrote. Anything else is money that is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.metering.proof.counting_proxy import SERVICE
from tests.metering.proof.tenants import Tenant
from tests.metering.proof.verdict import Billed

# Shown to customers, and in no price.
SHOWN_ONLY = frozenset({"broker_seconds"})

# (meter, principal; empty for what is kept)
Share = tuple[str, str]


@dataclass(frozen=True)
class Unbilled:
    """Quantities of all tenants by meter and principal, each in its meter's unit."""

    internal: Counter[Share] = field(default_factory=Counter)
    """On topics of the service's own, such as committed offsets."""
    service: Counter[Share] = field(default_factory=Counter)
    """By the service's own user, on topics of users."""
    others: Counter[Share] = field(default_factory=Counter)
    """Everything else: there must be none."""

    def details(self) -> dict[str, dict[str, int]]:
        """Figures for whoever reads the result."""
        shares = {"internal": self.internal, "service": self.service, "others": self.others}
        return {
            name: {" ".join(filter(None, share)): size for share, size in sorted(shares.items())}
            for name, shares in shares.items()
        }


def sort_unbilled(rows: Billed, tenants: Iterable[Tenant]) -> Unbilled:
    """Sorts the rows that are not billed by why they are not."""
    internal = {
        (tenant.cluster_id, topic_id)
        for tenant in tenants
        for name, topic_id in tenant.topics.items()
        if name.startswith("__")
    }
    unbilled = Unbilled()
    for (cluster_id, meter, topic_id, principal), quantity in rows.items():
        if meter in SHOWN_ONLY:
            continue
        if (cluster_id, topic_id) in internal:
            unbilled.internal[meter, principal] += quantity
        elif principal == SERVICE:
            unbilled.service[meter, principal] += quantity
        else:
            unbilled.others[meter, principal] += quantity
    return unbilled
