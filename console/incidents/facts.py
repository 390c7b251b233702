"""What the rules judge: facts as they are read. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

# Of a topic's name its digest is in a subject.
DIGEST_CHARS = 16


@dataclass(frozen=True, slots=True)
class ClusterFact:
    """An active cluster with the phase and the message that its keeper wrote.

    `crashing`: whether its brokers are in a crash loop (`restarts.is_crash_loop`).
    """

    id: str
    organization_id: str
    name: str
    phase: str
    message: str
    crashing: bool


@dataclass(frozen=True, slots=True)
class OperationFact:
    """An operation that has not ended."""

    id: str
    organization_id: str
    cluster_id: str
    type: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class UsageFact:
    """How many hours of a cluster lack usage that should be complete by now.

    `first`: when the earliest of these hours began.
    """

    organization_id: str
    cluster_id: str
    hours: int
    first: datetime


@dataclass(frozen=True, slots=True)
class InvoicesFact:
    """A closed month of which invoices are missing.

    `month`: as `YYYY-MM`. `missing`: the number of organizations without an invoice. `reason`: why
    nobody gets one; empty where others do.
    """

    month: str
    missing: int
    reason: str


@dataclass(frozen=True, slots=True)
class MoneyFact:
    """What of the service's money needs a person.

    `differences`: how many things do not agree between the ledger, the invoices and Stripe.
    `reason`: why charges or comparisons are not made; empty where they are.
    """

    differences: int
    reason: str


@dataclass(frozen=True, slots=True)
class MeterFact:
    """What of a cell's usage does not agree with what it was made from.

    `totals_differ`: whether the newest check found running totals that are not what their rows sum
    to. `days`: those whose newest comparison with the log did not pass, oldest first.
    """

    totals_differ: bool
    days: Sequence[date]


@dataclass(frozen=True, slots=True)
class DamageFact:
    """The lowest damaged batch of a partition that brokers know of, by its first offset."""

    cluster_id: str
    topic: str
    partition: int
    offset: int

    @property
    def subject(self) -> str:
        """The subject of its incident, which begins with the cluster's id."""
        digest = hashlib.sha256(self.topic.encode()).hexdigest()[:DIGEST_CHARS]
        return f"{self.cluster_id}/{digest}/{self.partition}"


@dataclass(frozen=True, slots=True)
class HealthFact:
    """The last report of a cell's keeper.

    `held`: whether deletions are held, as too many brokers are unhealthy. `desired` and
    `unhealthy`: how many brokers should run, and how many of these do not serve. `platform`: why
    the driver cannot ask what runs the brokers; empty where it can. `machines`: names of lost
    machines. `etcd_file_bytes`: 0 where it is not known; `etcd_quota_bytes`: 0 where there is no
    quota. `damage_unknown`: clusters that run and of which `damaged` may lack some.
    """

    reported_at: datetime
    held: bool
    unhealthy: int
    desired: int
    platform: str
    machines: Sequence[str]
    etcd_file_bytes: int = 0
    etcd_in_use_bytes: int = 0
    etcd_quota_bytes: int = 0
    damaged: Sequence[DamageFact] = ()
    damage_unknown: Sequence[str] = ()
