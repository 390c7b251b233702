"""Limits of an organization's traffic: which of several holds. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from console.base.accounts.choices import TrafficLimitKind

KINDS = [kind.value for kind in TrafficLimitKind]


@dataclass(frozen=True, slots=True)
class LimitInForce:
    """What clusters do with the traffic of clients: a `TrafficLimitKind`, and why.

    `bytes_per_s` is that of `throttle`, of produce and fetch together, for each cluster.
    """

    kind: str
    reason: str
    bytes_per_s: int | None = None

    @property
    def refuses_produce(self) -> bool:
        """Whether clusters refuse produce."""
        return self.kind in {TrafficLimitKind.REFUSE, TrafficLimitKind.REFUSE_PRODUCE}

    @property
    def refuses_fetch(self) -> bool:
        """Whether clusters refuse fetch."""
        return self.kind == TrafficLimitKind.REFUSE

    @property
    def throttles(self) -> bool:
        """Whether clusters slow both down."""
        return self.kind == TrafficLimitKind.THROTTLE


def strictest(limits: Iterable[LimitInForce]) -> LimitInForce | None:
    """The limit that holds: the strictest kind, the lowest rate, and of equal ones the first."""

    def order(limit: LimitInForce) -> tuple[int, int]:
        return KINDS.index(limit.kind), limit.bytes_per_s or 0

    return min(limits, key=order, default=None)


def limit_in_force(
    kind: str | None, reason: str | None, bytes_per_s: int | None
) -> LimitInForce | None:
    """The limit that three columns of a row say; None where there is none.

    Releases that knew no kinds wrote the reason alone, and meant that produce is refused.
    """
    if reason is None:
        return None
    return LimitInForce(kind or TrafficLimitKind.REFUSE_PRODUCE.value, reason, bytes_per_s)
