"""Errors of metering. Codes never change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from console.base.common.errors import Conflict, PlatformError, UserError


class RollupBusy(Conflict):
    """Another process rolls the same day up; the text says which."""

    code = "rollup_busy"
    title = "Another roll-up of this day is running"


class DayNotOver(UserError):
    """A day that is not over yet is rolled up only if one says so."""

    code = "day_not_over"
    status = 409
    title = "The day is not over"


class DayNotRolledUp(UserError):
    """Usage of a day is compared with the log once it is rolled up."""

    code = "day_not_rolled_up"
    status = 409
    title = "The day is not rolled up"


class ReconcileBusy(Conflict):
    """Another process compares the same day."""

    code = "reconcile_busy"
    title = "Another comparison of this day is running"


class UnknownCell(UserError):
    """This control plane has no such cell."""

    code = "unknown_cell"
    status = 422
    title = "There is no such cell"


class RollupFailed(PlatformError):
    """The job did not end as it should."""

    code = "rollup_failed"
    title = "The roll-up failed"


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at before publishing, and what was found."""

    name: str
    passed: bool
    detail: str


class PublishRefused(RollupFailed):
    """A check failed; nothing was published."""

    code = "publish_refused"
    title = "The roll-up was not published"

    def __init__(self, checks: Sequence[Check]) -> None:
        self.checks = tuple(checks)
        failed = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
        super().__init__("; ".join(failed))
