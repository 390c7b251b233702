"""Whatever is lost, repeated or refused: an attempt is charged once, and the balance agrees."""

import stripe
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.stripe.calls import client_of
from tests.stripe.fake import FakeStripe, running_fake

PATH = "/v1/payment_intents*"
FAULTS = st.sampled_from(
    ["reset", "reset_after_commit", "429", "409", "500", "500_kept", "500_after_commit"]
)
CODES = st.sampled_from([None, None, "insufficient_funds", "processing_error"])


class Payments(RuleBasedStateMachine):
    """A customer pays attempts by keys; the caller sees only what gets through."""

    fake: FakeStripe

    @initialize()
    def begin(self):
        self.fake.clear_faults()
        self.v1 = client_of(self.fake.base, self.fake.key, timeout_s=5)
        customer = self.v1.customers.create({})
        self.customer = customer.id
        method = self.v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
        self.method = method.id
        self.seen_paid = set()

    def _call(self, verb, *arguments):
        """What a call of payment intents answered; None where it failed for its caller."""
        try:
            return getattr(self.v1.payment_intents, verb)(*arguments)
        except stripe.StripeError:
            return None

    @rule(attempt=st.integers(1, 3))
    def pay(self, attempt):
        params = {
            "amount": 1000 + attempt,
            "currency": "usd",
            "customer": self.customer,
            "payment_method": self.method,
            "confirm": True,
            "off_session": True,
            "metadata": {"attempt": str(attempt)},
        }
        key = {"idempotency_key": f"{self.customer}:{attempt}"}
        intent = self._call("create", params, key)
        if intent is not None and intent.status == "succeeded":
            self.seen_paid.add(intent.id)

    @rule(attempt=st.integers(1, 3))
    def confirm(self, attempt):
        for intent in self._intents(attempt):
            params = {"payment_method": self.method, "off_session": True}
            self._call("confirm", intent["id"], params)

    @rule(attempt=st.integers(1, 3))
    def cancel(self, attempt):
        for intent in self._intents(attempt):
            self._call("cancel", intent["id"])

    @rule(kind=FAULTS)
    def fail_next(self, kind):
        self.fake.add_fault(kind, path=PATH, method="POST")

    @rule(code=CODES, seconds=st.sampled_from([0, 0, 30]))
    def change_card(self, code, seconds):
        self.fake.change_card(self.method, declines=code, processing_s=seconds)

    @rule(seconds=st.integers(1, 60))
    def advance(self, seconds):
        self.fake.advance(seconds)

    def _intents(self, attempt=None):
        return [
            intent
            for intent in self.fake.objects("payment_intent")
            if intent["customer"] == self.customer
            and attempt in {None, int(intent["metadata"]["attempt"])}
        ]

    @invariant()
    def an_attempt_is_charged_once(self):
        if not hasattr(self, "customer"):
            return
        charges = [c for c in self.fake.charges() if c["customer"] == self.customer]
        attempts = [charge["metadata"]["attempt"] for charge in charges]
        assert len(attempts) == len(set(attempts))
        intents = {intent["id"]: intent for intent in self._intents()}
        paid = {name for name, intent in intents.items() if intent["status"] == "succeeded"}
        assert paid == {charge["payment_intent"] for charge in charges}
        assert self.seen_paid <= paid
        for charge in charges:
            assert charge["amount"] == intents[charge["payment_intent"]]["amount_received"]
        received = sum(intent["amount_received"] for intent in intents.values())
        assert received == sum(charge["amount"] for charge in charges)
        sources = {charge["id"] for charge in charges}
        movements = self.fake.objects("balance_transaction")
        assert received == sum(m["amount"] for m in movements if m["source"] in sources)


def test_an_attempt_is_charged_once():
    with running_fake() as fake:
        fake.set_time(1_800_000_000)
        Payments.fake = fake
        run_state_machine_as_test(
            Payments, settings=settings(max_examples=30, stateful_step_count=20, deadline=None)
        )
