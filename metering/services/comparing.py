"""Compares running totals with the rows that they must sum to. It reports, and corrects nothing."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connection

from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.tenancy import system_scope
from metering.models import TotalsCheck
from metering.periods import DAY, day_start, month_start
from metering.services.rollup import NIGHTLY
from metering.services.running import hours_from, span_of_month
from metering.services.running_sql import COMPARE_HOURS, COMPARISON, COUNTED, SIDES

logger = logging.getLogger(__name__)

# Differences that are named, of each table. All of them are counted.
NAMED_MAX = 20
# The days of a month in which the one before is still compared: its last days are published then.
MONTH_OPEN_DAYS = 7


@dataclass(frozen=True, slots=True)
class TotalsDifference:
    """A kept total that is not what its rows sum to; its quantities are empty where there is none.

    `place`: the organization, the cluster, the period, and the meter, topic or principal.
    """

    table: str
    place: tuple[str, ...]
    kept: tuple[int, ...]
    summed: tuple[int, ...]

    def __str__(self) -> str:
        kept, summed = (list(side) or "nothing" for side in (self.kept, self.summed))
        return f"{self.table} {' '.join(self.place)}: {kept}, and its rows sum to {summed}"


@dataclass(frozen=True, slots=True)
class TotalsComparison:
    """How many totals differ from their rows, and the first differences of each table."""

    differing: int
    named: list[TotalsDifference]


def compare_month(month: date) -> TotalsComparison:
    """Compares a month's totals with its rows.

    Each table is compared in one statement, so that what is added meanwhile is no difference.
    """
    statements = {
        table: COMPARISON.format(counted=COUNTED, kept=kept, summed=summed)
        for table, (kept, summed) in SIDES.items()
    }
    return _compare(statements, span_of_month(month))


def compare_hours() -> TotalsComparison:
    """Compares the totals of the hours of the last days with their minutes."""
    parameters = {**span_of_month(now().date()), "hours_from": hours_from()}
    return _compare({"metering_runninghour": COMPARE_HOURS}, parameters)


def check_running_totals() -> TotalsCheck | None:
    """Compares what changes of the totals, once a night after the roll-ups; returns the result.

    None where it was done this night, or it is not yet time. A difference is logged as
    `usage.totals_differ` and kept for staff; it stays until a person looks at it.
    """
    cell, at = config().cell.id, now()
    tonight = day_start(at.date()) + NIGHTLY
    if at < tonight or TotalsCheck.objects.filter(cell=cell, checked_at__gte=tonight).exists():
        return None
    month = month_start(at.date())
    months = [month_start(month - DAY), month] if at.day <= MONTH_OPEN_DAYS else [month]
    compared = [*map(compare_month, months), compare_hours()]
    check = TotalsCheck.objects.create(
        cell=cell,
        checked_at=at,
        differing=sum(comparison.differing for comparison in compared),
        differences=[str(one) for comparison in compared for one in comparison.named],
    )
    if check.differing:
        extra = {"differing": check.differing, "differences": check.differences}
        logger.error("usage.totals_differ", extra=extra)
    return check


def _compare(statements: dict[str, str], parameters: dict[str, Any]) -> TotalsComparison:
    differing = 0
    named: list[TotalsDifference] = []
    with system_scope(), connection.cursor() as cursor:
        for table, statement in statements.items():
            cursor.execute(statement, parameters | {"limit": NAMED_MAX})
            rows = cursor.fetchall()
            differing += rows[0][0] if rows else 0
            named += [
                TotalsDifference(table, tuple(place), _quantities(kept), _quantities(summed))
                for _, place, kept, summed in rows
            ]
    return TotalsComparison(differing, named)


def _quantities(values: list[int | None] | None) -> tuple[int, ...]:
    return tuple(int(value) for value in values or () if value is not None)
