"""Payment intents: their states, declines, authentication, and how much may be charged."""

import pytest
import stripe

from tests.stripe.calls import error_of
from tests.stripe.fake import (
    AUTHENTICATED_ALWAYS,
    AUTHENTICATED_WHEN_SAVED,
    DECLINES_CHARGES,
    VISA,
)

BACK = "https://console.example.com/billing"


@pytest.fixture
def save_card(fake, v1, customer):
    """Saves a card on Checkout's page; returns its payment method."""

    def save(number=VISA):
        session = v1.checkout.sessions.create({
            "mode": "setup", "currency": "usd", "customer": customer.id, "success_url": BACK,
        })  # fmt: skip
        assert fake.give_card(session.url, number).location == BACK
        done = v1.checkout.sessions.retrieve(session.id, {"expand": ["setup_intent"]})
        return done.setup_intent.payment_method

    return save


@pytest.fixture
def pay(v1, customer):
    """Charges a card without its owner."""

    def charge(method, amount=1250, *, key=None, **params):
        whole = {
            "amount": amount,
            "currency": "usd",
            "customer": customer.id,
            "payment_method": method,
            "confirm": True,
            "off_session": True,
            **params,
        }
        return v1.payment_intents.create(whole, {"idempotency_key": key} if key else {})

    return charge


def events_of(v1, object_id):
    events = v1.events.list({"limit": 100}).data
    return [event.type for event in reversed(events) if event.data.object.id == object_id]


def test_a_card_is_charged_without_its_owner(fake, v1, save_card, pay):
    intent = pay(save_card(), metadata={"attempt": "att_1"})
    assert (intent.status, intent.amount_received) == ("succeeded", 1250)
    (charge,) = fake.charges()
    assert charge["id"] == intent.latest_charge
    assert charge["metadata"] == {"attempt": "att_1"}
    movement = v1.balance_transactions.retrieve(charge["balance_transaction"])
    assert (movement.amount, movement.fee, movement.net) == (1250, 66, 1184)
    created = ["payment_intent.created", "payment_intent.succeeded"]
    assert events_of(v1, intent.id) == created
    assert events_of(v1, charge["id"]) == ["charge.succeeded"]


def test_a_decline_names_the_intent_and_can_be_paid_by_another_card(fake, v1, save_card, pay):
    declining, good = save_card(DECLINES_CHARGES), save_card()
    with pytest.raises(stripe.CardError) as declined:
        pay(declining)
    error = error_of(declined)
    assert (declined.value.http_status, error.code) == (402, "card_declined")
    assert error.decline_code == "generic_decline"
    intent = v1.payment_intents.retrieve(error.payment_intent.id)
    assert intent.status == "requires_payment_method"
    assert intent.payment_method is None
    assert intent.last_payment_error.payment_method.id == declining
    assert intent.last_payment_error.decline_code == "generic_decline"
    (failed,) = fake.charges(paid=False)
    assert (failed["status"], failed["failure_code"]) == ("failed", "card_declined")
    paid = v1.payment_intents.confirm(intent.id, {"payment_method": good, "off_session": True})
    assert (paid.status, paid.last_payment_error) == ("succeeded", None)
    assert len(fake.charges()) == 1


@pytest.mark.parametrize(
    ("code", "answered"),
    [
        ("insufficient_funds", "card_declined"),
        ("lost_card", "card_declined"),
        ("expired_card", "expired_card"),
        ("processing_error", "processing_error"),
    ],
)
def test_the_issuer_may_change_its_mind(fake, save_card, pay, code, answered):
    method = save_card()
    fake.change_card(method, declines=code)
    with pytest.raises(stripe.CardError) as declined:
        pay(method)
    assert (declined.value.code, error_of(declined).decline_code) == (answered, code)
    fake.change_card(method, declines=None)
    assert pay(method).status == "succeeded"


def test_a_card_that_wants_its_owner_is_authenticated_on_a_page(fake, v1, save_card, pay):
    method = save_card(AUTHENTICATED_ALWAYS)
    with pytest.raises(stripe.CardError) as declined:
        pay(method)
    error = error_of(declined)
    assert (error.code, error.decline_code) == ("authentication_required",) * 2
    intent = error.payment_intent
    assert intent.status == "requires_payment_method"
    asking = v1.payment_intents.confirm(intent.id, {"payment_method": method, "return_url": BACK})
    assert asking.status == "requires_action"
    assert fake.charges() == []
    url = asking.next_action.redirect_to_url.url
    assert "1250 USD" in fake.visit(url).html
    visit = fake.authenticate(url)
    assert visit.location.startswith(f"{BACK}?payment_intent={intent.id}")
    assert visit.location.endswith("redirect_status=succeeded")
    assert v1.payment_intents.retrieve(intent.id).status == "succeeded"
    assert len(fake.charges()) == 1
    assert fake.authenticate(url).status == 404
    assert len(fake.charges()) == 1


def test_a_refused_authentication_takes_nothing(fake, v1, save_card, pay):
    method = save_card(AUTHENTICATED_ALWAYS)
    intent = pay(method, off_session=False, return_url=BACK)
    visit = fake.authenticate(intent.next_action.redirect_to_url.url, approve=False)
    assert visit.location.endswith("redirect_status=failed")
    intent = v1.payment_intents.retrieve(intent.id)
    assert intent.status == "requires_payment_method"
    assert intent.last_payment_error.code == "payment_intent_authentication_failure"
    assert fake.charges(paid=False) == []


def test_a_card_that_was_authenticated_when_saved_needs_no_more(save_card, pay):
    method = save_card(AUTHENTICATED_WHEN_SAVED)
    assert pay(method).status == "succeeded"
    intent = pay(method, off_session=False, return_url=BACK)
    assert intent.status == "requires_action"


def test_a_library_is_asked_where_no_page_can_be_returned_to(v1, customer, save_card):
    intent = v1.payment_intents.create({
        "amount": 800, "currency": "usd", "customer": customer.id, "confirm": True,
        "payment_method": save_card(AUTHENTICATED_ALWAYS), "allowed_payment_method_types": ["card"],
    })  # fmt: skip
    assert intent.next_action.type == "use_stripe_sdk"


def test_processing_ends_by_the_clock(fake, v1, save_card, pay):
    method = save_card()
    fake.set_time(1_800_000_000)
    fake.change_card(method, processing_s=3600)
    good, bad = pay(method), pay(method)
    assert {good.status, bad.status} == {"processing"}
    with pytest.raises(stripe.InvalidRequestError) as refused:
        v1.payment_intents.cancel(good.id)
    assert refused.value.code == "payment_intent_unexpected_state"
    fake.advance(3599)
    assert v1.payment_intents.retrieve(good.id).status == "processing"
    fake.advance(1)
    assert v1.payment_intents.retrieve(good.id).status == "succeeded"
    fake.change_card(method, processing_s=60, declines="insufficient_funds")
    third = pay(method)
    fake.advance(60)
    ended = v1.payment_intents.retrieve(third.id)
    assert ended.status == "requires_payment_method"
    assert ended.last_payment_error.decline_code == "insufficient_funds"


def test_what_has_ended_stays_as_it_is(fake, v1, save_card, pay):
    method = save_card()
    paid = pay(method)
    draft = v1.payment_intents.create({"amount": 900, "currency": "usd"})
    canceled = v1.payment_intents.cancel(draft.id, {"cancellation_reason": "duplicate"})
    assert (canceled.status, canceled.cancellation_reason) == ("canceled", "duplicate")
    for intent in (paid, canceled):
        for verb, params in (
            ("confirm", {"payment_method": method}),
            ("cancel", {}),
            ("update", {"amount": 1000}),
        ):
            with pytest.raises(stripe.InvalidRequestError) as refused:
                getattr(v1.payment_intents, verb)(intent.id, params)
            assert refused.value.code == "payment_intent_unexpected_state"
            assert error_of(refused).payment_intent.status == intent.status
    assert len(fake.charges()) == 1
    assert v1.payment_intents.update(paid.id, {"metadata": {"a": "1"}}).metadata["a"] == "1"


@pytest.mark.parametrize(
    ("amount", "currency", "code"),
    [
        (49, "usd", "amount_too_small"),
        (50, "usd", None),
        (29, "gbp", "amount_too_small"),
        (49, "jpy", "amount_too_small"),
        (299, "sek", "amount_too_small"),
        (99_999_999, "eur", None),
        (100_000_000, "eur", "amount_too_large"),
        (0, "usd", "parameter_invalid_integer"),
        (-5, "usd", "parameter_invalid_integer"),
    ],
)
def test_amounts_have_limits(v1, amount, currency, code):
    params = {"amount": amount, "currency": currency}
    if code is None:
        assert v1.payment_intents.create(params).amount == amount
        return
    with pytest.raises(stripe.InvalidRequestError) as refused:
        v1.payment_intents.create(params)
    assert (refused.value.code, refused.value.param) == (code, "amount")


def test_parameters_of_a_confirmation_need_one(v1, customer):
    for name, value in (("off_session", True), ("return_url", BACK)):
        with pytest.raises(stripe.InvalidRequestError) as refused:
            v1.payment_intents.create({"amount": 900, "currency": "usd", name: value})
        assert refused.value.param == name
    with pytest.raises(stripe.InvalidRequestError) as refused:
        v1.payment_intents.create({
            "amount": 900, "currency": "usd", "customer": customer.id, "confirm": True,
            "payment_method": "pm_card_visa",
        })  # fmt: skip
    assert refused.value.param == "return_url"


def test_a_removed_card_cannot_be_used_again(v1, save_card, pay, customer):
    method = save_card()
    v1.customers.update(customer.id, {"invoice_settings": {"default_payment_method": method}})
    v1.payment_methods.detach(method)
    assert v1.customers.retrieve(customer.id).invoice_settings.default_payment_method is None
    with pytest.raises(stripe.InvalidRequestError, match="detached"):
        pay(method)
    with pytest.raises(stripe.InvalidRequestError):
        v1.payment_methods.attach(method, {"customer": customer.id})


def test_another_customers_card_is_refused(v1, save_card):
    method = save_card()
    other = v1.customers.create({})
    with pytest.raises(stripe.InvalidRequestError, match="another Customer"):
        v1.payment_intents.create({
            "amount": 900, "currency": "usd", "customer": other.id, "payment_method": method,
        })  # fmt: skip


def test_one_number_has_one_fingerprint(v1, save_card):
    one, same, other = save_card(), save_card(), save_card("5555555555554444")
    prints = [v1.payment_methods.retrieve(m).card.fingerprint for m in (one, same, other)]
    assert prints[0] == prints[1] != prints[2]
