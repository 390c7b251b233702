"""Data-quality checks of a run.

Where one fails, the job still ends well, but its result must not be published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spark_usage.extract import Content


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `detail` says what was compared."""

    name: str
    passed: bool
    detail: str


def equal_check(name: str, what: str, one: object, other: object) -> Check:
    """A check that two figures of the same thing, which were computed in two ways, are equal."""
    return Check(name, one == other, f"{what}: {one} and {other}")


def totals_check(name: str, what: str, one: Mapping[str, int], other: Mapping[str, int]) -> Check:
    """A check that the totals of every meter are equal; a meter without a total has 0."""
    meters = sorted({*one, *other})
    wrong = [meter for meter in meters if one.get(meter, 0) != other.get(meter, 0)]
    figures = [
        f"{meter} {one.get(meter, 0)} and {other.get(meter, 0)}" for meter in wrong or meters
    ]
    return Check(name, not wrong, f"{what}: {', '.join(figures) or 'nothing'}")


def content_checks(content: Content) -> list[Check]:
    """Checks that hold for the rows of all usage files."""
    unknown = content.unknown_meters
    return [
        Check(
            "no_negative_quantities",
            content.negative == 0,
            f"{content.negative} of {content.row_count} rows are negative",
        ),
        Check("known_meters", not unknown, f"unknown: {', '.join(unknown) or 'none'}"),
    ]
