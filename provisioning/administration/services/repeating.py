"""Repeating calls whose answer was lost, where a repetition changes nothing."""

from __future__ import annotations

from collections.abc import Callable

from brokers.errors import UnavailableError, UnknownOutcomeError


def repeat_unknown(call: Callable[[], object]) -> None:
    """Makes an idempotent call, and once more where the first gave no answer."""
    try:
        call()
    except (UnavailableError, UnknownOutcomeError):
        call()
