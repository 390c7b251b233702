"""The states of a payment attempt, and what moves it. Pure.

| From | What happens | To |
|---|---|---|
| - | the invoices are chosen, the attempt is stored | prepared |
| prepared | the call is about to be made | sent |
| prepared | nothing is owed any more, or the card is gone | canceled |
| sent | no answer, or one that says nothing: time-out, 409, 5xx | unknown |
| sent | nothing was done: 429, a wrong key | sent |
| sent, unknown | Stripe refuses the request itself (400) | failed |
| sent, unknown | the intent is `requires_action`, and the customer is there | requires_action |
| sent, unknown, requires_action | the intent is `processing` | processing |
| every live state | it was paid in another way, and the intent is canceled | canceled |
| every live state | the intent can charge no more, with an error | failed |
| every live state | the intent can charge no more, without one | canceled |
| every state | the intent is `succeeded` | succeeded |

An attempt never goes back: each state has a rank, and `moved` takes a state only where its rank is
greater. So answers and webhooks may come in any order, twice, late, or not at all. Only *succeeded*
follows an ended state: it is money that came in, and Stripe has the last word on that.

An intent that was declined (`requires_payment_method`) could still be charged, so it is canceled
before its attempt counts as failed: no two attempts of an invoice can ever charge.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from billing.choices import AttemptState, FailureKind

RANKS = {
    AttemptState.PREPARED: 0,
    AttemptState.SENT: 1,
    AttemptState.UNKNOWN: 2,
    AttemptState.REQUIRES_ACTION: 3,
    AttemptState.PROCESSING: 4,
    AttemptState.FAILED: 5,
    AttemptState.CANCELED: 5,
    AttemptState.SUCCEEDED: 6,
}
ENDED = frozenset({AttemptState.FAILED, AttemptState.CANCELED, AttemptState.SUCCEEDED})
# Codes by which a bank asks for the customer, and not for another card.
AUTHENTICATION = frozenset({"authentication_required", "payment_intent_authentication_failure"})


class IntentStatus(StrEnum):
    """The states of a PaymentIntent at Stripe."""

    REQUIRES_PAYMENT_METHOD = "requires_payment_method"
    REQUIRES_CONFIRMATION = "requires_confirmation"
    REQUIRES_ACTION = "requires_action"
    REQUIRES_CAPTURE = "requires_capture"
    PROCESSING = "processing"
    SUCCEEDED = "succeeded"
    CANCELED = "canceled"


# Where the attempt is in the same state as its intent.
_SAME = {
    IntentStatus.SUCCEEDED: AttemptState.SUCCEEDED,
    IntentStatus.PROCESSING: AttemptState.PROCESSING,
    IntentStatus.REQUIRES_ACTION: AttemptState.REQUIRES_ACTION,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an intent means for its attempt.

    `cancel`: the intent must be canceled first, so that it cannot charge later; the state then
    follows from the canceled intent.
    """

    state: AttemptState
    cancel: bool = False
    failure: FailureKind | None = None


def is_ended(state: str) -> bool:
    """Whether an attempt can charge no more."""
    return AttemptState(state) in ENDED


def moved(before: str, after: str) -> bool:
    """Whether an attempt moves from a state to another one: only forward."""
    return RANKS[AttemptState(after)] > RANKS[AttemptState(before)]


def verdict(status: str, *, error_code: str, decline_code: str, customer_waits: bool) -> Verdict:
    """What an intent's status means. `error_code` and `decline_code` are those of its last error.

    `customer_waits`: the customer made the attempt, and may still authenticate what is owed. A
    status that this service does not know leaves the attempt as it is known: sent, with no outcome.
    """
    if status not in set(IntentStatus):
        return Verdict(AttemptState.UNKNOWN)
    waits = status == IntentStatus.REQUIRES_ACTION
    if status in _SAME and (customer_waits or not waits):
        return Verdict(_SAME[IntentStatus(status)])
    failure = failure_of(error_code, decline_code) if error_code or decline_code else None
    if waits:
        failure = failure or FailureKind.NEEDS_AUTHENTICATION
    state = AttemptState.FAILED if failure else AttemptState.CANCELED
    return Verdict(state, cancel=status != IntentStatus.CANCELED, failure=failure)


def failure_of(error_code: str, decline_code: str) -> FailureKind:
    """Why a charge failed, by Stripe's codes."""
    if AUTHENTICATION & {error_code, decline_code}:
        return FailureKind.NEEDS_AUTHENTICATION
    return FailureKind.DECLINED
