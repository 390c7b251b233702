"""Compares what was billed with what was counted from outside, byte by byte.

Ingress must equal the scan of the log. Egress must equal what the proxy saw, except that a killed
broker may have lost the count of what it handed over in its last second. A single byte more than
the truth is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.brokers.logscan import LogScan
from tests.metering.proof.counting_proxy import SERVICE, total
from tests.metering.proof.stored import by_topic_and_principal, stored_bytes
from tests.metering.proof.tenants import Tenant

INGRESS, EGRESS = "ingress_bytes", "egress_bytes"
# The counters are written each second; a block that was being written when the broker died is not
# covered. A machine under load ticks late.
LAST_MS = 2000
# What the victim still sent while the signal was on its way; its successor takes longer to start.
SIGNAL_MS = 100

# (topic id in hex, principal)
Whose = tuple[str, str]
Bytes = Mapping[Whose, int]
# (cluster, meter, topic id in hex, principal)
Billed = Mapping[tuple[str, str, str, str], int]


@dataclass(frozen=True)
class Comparison:
    """One meter of one tenant. `forgivable`: how short it may be."""

    billed: Bytes
    truth: Bytes
    forgivable: Bytes = field(default_factory=dict)

    def _keys(self) -> set[Whose]:
        return {*self.billed, *self.truth}

    @property
    def over(self) -> int:
        """Bytes billed beyond the truth, where they are."""
        return sum(max(0, self.billed.get(k, 0) - self.truth.get(k, 0)) for k in self._keys())

    @property
    def short(self) -> int:
        """Bytes not billed, where they are."""
        return sum(max(0, self.truth.get(k, 0) - self.billed.get(k, 0)) for k in self._keys())

    @property
    def unforgivable(self) -> int:
        """Bytes not billed for which there is no excuse."""
        return sum(
            max(0, self.truth.get(k, 0) - self.billed.get(k, 0) - self.forgivable.get(k, 0))
            for k in self._keys()
        )

    @property
    def wrong(self) -> int:
        """Bytes billed wrongly."""
        return self.over + self.unforgivable

    def details(self) -> dict[str, int]:
        """Figures for whoever reads the result, all in bytes."""
        return {
            "truth": sum(self.truth.values()),
            "billed": sum(self.billed.values()),
            "over": self.over,
            "short": self.short,
            "short_at_most": sum(self.forgivable.values()),
            "wrong": self.wrong,
        }


@dataclass(frozen=True)
class Verdict:
    """A tenant's bill. `acked_beyond_log`: acknowledged bytes that the log lacks; never any."""

    tenant: Tenant
    ingress: Comparison
    egress: Comparison
    service_egress: Comparison
    """What the service's own user was handed, which nobody is billed."""
    acked_beyond_log: int
    proxy_errors: tuple[str, ...]

    @property
    def wrong(self) -> int:
        """Bytes billed wrongly, in either meter."""
        return self.ingress.wrong + self.egress.wrong

    @property
    def over(self) -> int:
        """Bytes billed beyond the truth, in either meter."""
        return self.ingress.over + self.egress.over

    def details(self) -> dict[str, Any]:
        """Figures for whoever reads the result."""
        return {
            "strikes": len(self.tenant.strikes),
            "ingress_bytes": self.ingress.details(),
            "egress_bytes": self.egress.details(),
            "service_egress_bytes": self.service_egress.details(),
            "acked_beyond_log": self.acked_beyond_log,
            "proxy_errors": list(self.proxy_errors),
        }


def judge_tenant(
    tenant: Tenant, scan: LogScan, billed: Billed, unbilled: Billed | None = None
) -> Verdict:
    """Judges a tenant's billed quantities. Raises `DamageError` where the log does not check.

    `unbilled`: the rows of what nobody pays for, if they are to be compared too.
    """
    stored = by_topic_and_principal(stored_bytes(scan))
    seen = tenant.seen
    acked = total(seen.acked, tenant.topics)
    handed = total(seen.handed, tenant.topics)
    forgivable = _forgivable(tenant)
    own = {whose for whose in handed if whose[1] == SERVICE}
    not_billed = {} if unbilled is None else _of(unbilled, tenant, EGRESS)
    return Verdict(
        tenant,
        Comparison(_of(billed, tenant, INGRESS), stored),
        Comparison(
            _of(billed, tenant, EGRESS),
            {whose: size for whose, size in handed.items() if whose not in own},
            forgivable,
        ),
        Comparison(
            {whose: not_billed.get(whose, 0) for whose in own},
            {whose: handed[whose] for whose in own},
            forgivable,
        ),
        sum(max(0, size - stored.get(whose, 0)) for whose, size in acked.items()),
        tuple(seen.errors),
    )


def _of(billed: Billed, tenant: Tenant, meter: str) -> Bytes:
    return {
        (topic, principal): size
        for (cluster, of_meter, topic, principal), size in billed.items()
        if (cluster, of_meter) == (tenant.cluster_id, meter)
    }


def _forgivable(tenant: Tenant) -> Bytes:
    """What was handed over in the last moments of the brokers that were killed or paused."""
    sums: dict[Whose, int] = {}
    for strike in tenant.strikes:
        last = total(
            tenant.seen.handed,
            tenant.topics,
            since_ms=strike.at_ms - LAST_MS,
            until_ms=strike.at_ms + SIGNAL_MS,
            ports=strike.ports,
        )
        for whose, size in last.items():
            sums[whose] = sums.get(whose, 0) + size
    return sums
