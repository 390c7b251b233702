"""The state of a budget for an amount spent. Pure; amounts are minor units, thresholds percents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from billing.choices import BudgetAction, BudgetState

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


def is_holding(*, spent_minor: int, amount_minor: int, action: str) -> bool:
    """Whether produce is suspended by this budget."""
    return action == BudgetAction.SUSPEND and spent_minor >= amount_minor


def base_of(*, spent_minor: int, cap_minor: int | None) -> int:
    """The amount of a month that stays billable when a budget's settings change: what was spent,
    up to the cap under the old settings.

    Nobody makes what they have already used free by setting a budget below it.
    """
    return spent_minor if cap_minor is None else min(spent_minor, cap_minor)


def cap_of(*, amount_minor: int, action: str, base_minor: int) -> int | None:
    """The most that a month is billed under a budget in force; None where it sets no limit.

    `base_minor`: see `base_of`; 0 in every month but that of the change.
    """
    return max(amount_minor, base_minor) if action == BudgetAction.SUSPEND else None
