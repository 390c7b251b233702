"""What follows from a budget and an amount spent. Pure; amounts are minor units, thresholds are %.

What a month costs has two parts: *traffic* (ingress and egress), which a budget stops, and what is
*kept* (storage and partitions), which costs as long as it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from billing.choices import BudgetAction, BudgetState
from billing.money import Key, allocate_amount
from billing.rating import Spent
from console.base.accounts.choices import TrafficLimitKind

PERCENT = 100


def state_of(*, spent_minor: int, amount_minor: int, thresholds: Sequence[int]) -> BudgetState:
    """The state of a budget: used up, past its lowest threshold, or neither."""
    if spent_minor >= amount_minor:
        return BudgetState.EXCEEDED
    if reached_thresholds(
        spent_minor=spent_minor, amount_minor=amount_minor, thresholds=thresholds
    ):
        return BudgetState.WARNED
    return BudgetState.OK


def reached_thresholds(
    *, spent_minor: int, amount_minor: int, thresholds: Iterable[int]
) -> list[int]:
    """The thresholds at or below what was spent, ascending."""
    return sorted(
        threshold for threshold in thresholds if spent_minor * PERCENT >= amount_minor * threshold
    )


def acts_as(*, spent_minor: int, amount_minor: int, action: str) -> str:
    """The action that a budget takes now: its own, once it is used up; "" where it takes none."""
    return action if action != BudgetAction.NOTIFY and spent_minor >= amount_minor else ""


def limit_kind(*, acting_as: str, covers_all: bool) -> TrafficLimitKind:
    """How a budget that acts limits traffic. One that covers all of the bill, as was promised until
    decision 0016, refuses produce alone."""
    if acting_as == BudgetAction.THROTTLE:
        return TrafficLimitKind.THROTTLE
    return TrafficLimitKind.REFUSE_PRODUCE if covers_all else TrafficLimitKind.REFUSE


def covers_all(covers_all_until: date | None, month: date) -> bool:
    """Whether a budget caps all of a month's bill, as was promised until decision 0016."""
    return covers_all_until is not None and month <= covers_all_until


@dataclass(frozen=True, slots=True)
class Cap:
    """The limit that one suspending budget sets to the bill of a month.

    `base_minor`: what stays billable whatever the amount is (see `base_of`). `kept_minor`: what was
    kept had cost so much when traffic was refused; None where it was not. `covers_all`: the amount
    is for all of the bill, and not for traffic alone.
    """

    amount_minor: int
    base_minor: int
    kept_minor: int | None = None
    covers_all: bool = False

    def total_minor(self, *, kept_minor: int, known_kept_minor: int | None = None) -> int:
        """The most that a month is billed in which what is kept costs `kept_minor`.

        That is what is kept, and traffic up to what was left of the amount when it was refused.
        Where it was not refused, that is what is left beside what is kept as far as it is known.
        """
        if self.covers_all:
            return max(self.amount_minor, self.base_minor)
        known = kept_minor if known_kept_minor is None else known_kept_minor
        at_refusal = known if self.kept_minor is None else self.kept_minor
        return kept_minor + max(self.amount_minor - at_refusal, self.base_minor)


def most_billed(
    caps: Iterable[Cap], *, kept_minor: int, known_kept_minor: int | None = None
) -> int | None:
    """The most that a month is billed under several budgets: the least of them; None without one.

    `known_kept_minor` is what is kept as far as it is known, where `kept_minor` is a forecast.
    """
    totals = (
        cap.total_minor(kept_minor=kept_minor, known_kept_minor=known_kept_minor) for cap in caps
    )
    return min(totals, default=None)


def billed_minor(spent: Spent, caps: Iterable[Cap], *, known_kept_minor: int | None = None) -> int:
    """What a month is billed that costs `spent`, before taxes."""
    most = most_billed(caps, kept_minor=spent.kept_minor, known_kept_minor=known_kept_minor)
    return spent.total_minor if most is None else min(spent.total_minor, most)


def share_billed(spent_by: Mapping[Key, Spent], billed: int) -> dict[Key, int]:
    """Which part of a month's bill each of those has who spent it: a cluster, for example.

    Each has what is kept in full, and of the traffic that is billed its share by what it spent.
    Where a budget covers all of the bill, and less is billed than is kept, each has its share of
    all. The shares sum to `billed`, which is at most what all spent; without any spending there
    are none.
    """
    traffic = {key: spent.traffic_minor for key, spent in spent_by.items()}
    kept_minor = sum(spent.kept_minor for spent in spent_by.values())
    if billed < kept_minor:
        return allocate_amount(billed, {key: spent.total_minor for key, spent in spent_by.items()})
    shares = allocate_amount(billed - kept_minor, traffic)
    return {key: spent.kept_minor + shares.get(key, 0) for key, spent in spent_by.items()}


def base_of(spent: Spent, cap: Cap | None) -> int:
    """The traffic of a month that stays billable when a budget's settings change: what was billable
    under the settings that end.

    Nobody makes what they have already used free by setting a budget below it.
    """
    billable = billed_minor(spent, [] if cap is None else [cap])
    return max(0, billable - spent.kept_minor)
