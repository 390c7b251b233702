"""Errors of metering. Codes never change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.base.common.errors import Conflict, PlatformError, UserError


class RollupBusy(Conflict):
    """Another process rolls the same day up; the detail says which one."""

    code = "rollup_busy"
    title = "Another roll-up of this day is running"


class DayNotOver(UserError):
    """The day is not over yet. Only `early` rolls such a day up."""

    code = "day_not_over"
    status = 409
    title = "The day is not over"


class DayNotRolledUp(UserError):
    """The day has no published roll-up, which a comparison with the log needs."""

    code = "day_not_rolled_up"
    status = 409
    title = "The day is not rolled up"


class ReconcileBusy(Conflict):
    """Another process compares the same day."""

    code = "reconcile_busy"
    title = "Another comparison of this day is running"


class UnknownCell(UserError):
    """The control plane does not have this cell."""

    code = "unknown_cell"
    status = 422
    title = "There is no such cell"


class RollupFailed(PlatformError):
    """The Spark job failed, or its result cannot be read. Nothing was published."""

    code = "rollup_failed"
    title = "The roll-up failed"


@dataclass(frozen=True, slots=True)
class Check:
    """One check of a roll-up or a comparison; `detail` says what was compared."""

    name: str
    passed: bool
    detail: str


class PublishRefused(RollupFailed):
    """A check of a roll-up failed, so nothing was published."""

    code = "publish_refused"
    title = "The roll-up was not published"

    def __init__(self, checks: Sequence[Check]) -> None:
        self.checks = tuple(checks)
        failed = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
        super().__init__("; ".join(failed))
