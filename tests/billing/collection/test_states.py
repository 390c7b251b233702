"""The states of an attempt: only forward, whatever comes in whatever order."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing.choices import AttemptState, FailureKind
from billing.collection.states import (
    ENDED,
    RANKS,
    IntentStatus,
    failure_of,
    is_ended,
    moved,
    verdict,
)

STATES = st.sampled_from(list(AttemptState))
CODES = st.sampled_from(["", "card_declined", "authentication_required", "expired_card"])
VERDICTS = st.builds(
    verdict,
    st.sampled_from([*IntentStatus, "a_status_of_next_year"]),
    error_code=CODES,
    decline_code=CODES,
    customer_waits=st.booleans(),
)


def walk(state, verdicts):
    """The states that an attempt takes, one after the other."""
    taken = [state]
    for one in verdicts:
        if not one.cancel and moved(taken[-1], one.state):
            taken.append(one.state)
    return taken


@given(STATES, st.lists(VERDICTS, max_size=12))
def test_an_attempt_never_goes_back(state, verdicts):
    taken = walk(state, verdicts)
    ranks = [RANKS[one] for one in taken]
    assert ranks == sorted(set(ranks))
    ended = [one for one in taken if one in ENDED]
    assert len(ended) <= 1 or ended[-1] is AttemptState.SUCCEEDED


@given(st.lists(VERDICTS, max_size=8))
def test_the_order_of_what_is_heard_does_not_decide_whether_it_was_paid(verdicts):
    results = {
        walk(AttemptState.SENT, order)[-1] is AttemptState.SUCCEEDED
        for order in itertools.islice(itertools.permutations(verdicts), 50)
    }
    assert len(results) == 1


@pytest.mark.parametrize("status", IntentStatus)
@pytest.mark.parametrize("customer_waits", [True, False])
def test_an_intent_that_may_charge_later_never_ends_its_attempt(status, customer_waits):
    """An attempt ends by what is final at Stripe alone; anything else is canceled first."""
    one = verdict(status, error_code="", decline_code="", customer_waits=customer_waits)
    final = status in {IntentStatus.SUCCEEDED, IntentStatus.CANCELED}
    assert is_ended(one.state) == (final or one.cancel)


def test_a_customer_who_is_there_may_authenticate_and_nobody_else():
    facts = {"error_code": "", "decline_code": ""}
    waits = verdict("requires_action", customer_waits=True, **facts)
    alone = verdict("requires_action", customer_waits=False, **facts)
    assert (waits.state, waits.cancel) == (AttemptState.REQUIRES_ACTION, False)
    assert (alone.state, alone.cancel) == (AttemptState.FAILED, True)
    assert alone.failure is FailureKind.NEEDS_AUTHENTICATION


@pytest.mark.parametrize(
    ("error_code", "decline_code", "failure"),
    [
        ("card_declined", "insufficient_funds", FailureKind.DECLINED),
        ("authentication_required", "authentication_required", FailureKind.NEEDS_AUTHENTICATION),
        ("payment_intent_authentication_failure", "", FailureKind.NEEDS_AUTHENTICATION),
        ("expired_card", "expired_card", FailureKind.DECLINED),
    ],
)
def test_codes_say_whether_the_bank_asks_for_the_customer(error_code, decline_code, failure):
    assert failure_of(error_code, decline_code) is failure
