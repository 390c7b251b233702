"""Faults of answers and of webhooks: what they are, and which one acts on a request. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from console.programs.stripe_fake.errors import ApiError, Json

# Before anything is done: nothing is kept, so the same request may be made again.
BEFORE = frozenset({
    "timeout", "reset", "409", "429", "lock_timeout", "500", "expired_key", "delay",
})  # fmt: skip
# Once all is done and the answer is kept for the idempotency key.
AFTER = frozenset({"timeout_after_commit", "reset_after_commit", "500_after_commit"})
# The endpoint failed, nothing was done, and that answer is kept for the idempotency key.
KEPT = frozenset({"500_kept"})
OF_ANSWERS = BEFORE | AFTER | KEPT

OF_WEBHOOKS = frozenset({"drop", "duplicate", "delay", "reorder", "hold", "forge", "stale"})

_SERVER_ERROR = "An unknown error occurred."


def choose_fault(faults: Iterable[Json], method: str, path: str) -> Json | None:
    """Returns the oldest fault of answers that acts on a request."""
    for fault in faults:
        if fault["on"] != "answers" or fault["method"] not in {"*", method}:
            continue
        if fnmatchcase(path, fault["path"]):
            return fault
    return None


def choose_flaws(faults: Iterable[Json], event_type: str) -> list[Json]:
    """Returns the faults of webhooks that act on an event."""
    return [
        fault
        for fault in faults
        if fault["on"] == "webhooks" and fnmatchcase(event_type, fault["types"])
    ]


def fault_error(kind: str, key: str) -> ApiError | None:
    """Returns the answer of a fault; None for those that answer nothing, or late.

    `key`: the API key of the request, of which the answer shows the last characters.
    """
    errors = {
        "409": ApiError(
            409,
            "There is currently another in-progress request using this Stripe account. Please try"
            " again.",
            code="idempotency_key_in_use",
        ).advising(retry=True),
        "429": ApiError(429, "Request rate limit exceeded.", code="rate_limit"),
        "lock_timeout": ApiError(
            429,
            "This object cannot be accessed right now because another API request or Stripe"
            " process is currently accessing it. If you see this error intermittently, retry the"
            " request.",
            code="lock_timeout",
        ).advising(retry=True),
        "500": ApiError(500, _SERVER_ERROR, kind="api_error"),
        "500_kept": _kept_failure(),
        "500_after_commit": _kept_failure(),
        "expired_key": ApiError(
            401, f"Expired API Key provided: {mask(key)}", code="api_key_expired"
        ),
    }
    return errors.get(kind)


def _kept_failure() -> ApiError:
    return ApiError(500, _SERVER_ERROR, kind="api_error").advising(retry=False)


def mask(key: str) -> str:
    """Returns an API key of which only the beginning and the end can be read."""
    return f"{key[:8]}{'*' * max(0, len(key) - 12)}{key[-4:]}"
