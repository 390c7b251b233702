"""Repeats calls whose answer was lost, where making them twice is the same as once."""

from __future__ import annotations

from collections.abc import Callable

from brokers.errors import UnavailableError, UnknownOutcomeError


def repeat_unknown(call: Callable[[], object]) -> None:
    """Makes an idempotent call, and makes it once more where the first attempt gave no answer.

    Raises what the second attempt raises.
    """
    try:
        call()
    except (UnavailableError, UnknownOutcomeError):
        call()
