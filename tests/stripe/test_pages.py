"""The hosted pages: Checkout, the portal, the bank's page, receipts."""

import re

import pytest
import stripe

from tests.stripe.fake import AUTHENTICATED_WHEN_SAVED, DECLINED, MASTERCARD, VISA

DONE, AWAY = "https://console.example.com/done", "https://console.example.com/cards"


@pytest.fixture
def session(v1, customer):
    return v1.checkout.sessions.create({
        "mode": "setup", "customer": customer.id, "cancel_url": AWAY,
        "allowed_payment_method_types": ["card"],
        "success_url": DONE + "?session={CHECKOUT_SESSION_ID}", "metadata": {"setup": "1"},
    })  # fmt: skip


@pytest.fixture
def portal(v1, customer):
    return v1.billing_portal.sessions.create({"customer": customer.id, "return_url": AWAY})


def methods_of(v1, customer):
    return v1.payment_methods.list({"customer": customer.id, "type": "card"}).data


def default_of(v1, customer):
    return v1.customers.retrieve(customer.id).invoice_settings.default_payment_method


def test_checkout_saves_a_card(fake, v1, customer, session):
    html = fake.visit(session.url).html
    assert '<label for="number">Card number</label>' in html
    assert f'href="{AWAY}"' in html
    visit = fake.give_card(session.url, "4242 4242 4242 4242")
    assert (visit.status, visit.location) == (303, f"{DONE}?session={session.id}")
    (method,) = methods_of(v1, customer)
    assert (method.card.last4, method.card.exp_year) == ("4242", 2034)
    done = v1.checkout.sessions.retrieve(session.id, {"expand": ["setup_intent"]})
    assert (done.status, done.url, done.setup_intent.status) == ("complete", None, "succeeded")
    assert done.setup_intent.payment_method == method.id
    types = [event["type"] for event in fake.objects("event")]
    assert types == [
        "customer.created",
        "setup_intent.created",
        "payment_method.attached",
        "setup_intent.succeeded",
        "checkout.session.completed",
    ]
    # A second look at the page saves nothing more.
    assert fake.visit(session.url, {"number": MASTERCARD}).status == 404
    assert len(methods_of(v1, customer)) == 1


@pytest.mark.parametrize(
    ("number", "message"),
    [("1234", "number is invalid"), (DECLINED, "was declined"), ("", "number is invalid")],
)
def test_checkout_says_what_is_wrong_and_can_be_tried_again(
    fake, v1, customer, session, number, message
):
    visit = fake.visit(session.url, {"number": number})
    assert visit.status == 402
    alert = re.search(r'<p role="alert" id="error">([^<]*)</p>', visit.html)
    assert alert
    assert message in alert.group(1)
    assert methods_of(v1, customer) == []
    assert fake.give_card(session.url, VISA).location.startswith(DONE)


def test_a_bank_may_be_asked_on_the_way(fake, v1, customer, session):
    visit = fake.visit(session.url, {"number": AUTHENTICATED_WHEN_SAVED})
    assert "/authenticate/seti_" in visit.location
    refused = fake.authenticate(visit.location, approve=False)
    page = fake.visit(refused.location)
    assert page.status == 402
    assert "unable to authenticate" in page.html
    assert methods_of(v1, customer) == []
    assert fake.give_card(session.url, AUTHENTICATED_WHEN_SAVED).location.startswith(DONE)
    assert len(methods_of(v1, customer)) == 1


def test_a_session_expires(fake, v1, customer):
    fake.set_time(1_800_000_000)
    params = {"mode": "setup", "currency": "usd", "customer": customer.id, "success_url": DONE}
    first = v1.checkout.sessions.create(params)
    second = v1.checkout.sessions.create({**params, "expires_at": 1_800_001_800})
    fake.advance(1800)
    statuses = [v1.checkout.sessions.retrieve(s.id).status for s in (first, second)]
    assert statuses == ["open", "expired"]
    assert fake.visit(second.url).status == 404
    assert v1.checkout.sessions.expire(first.id).status == "expired"
    with pytest.raises(stripe.InvalidRequestError):
        v1.checkout.sessions.expire(first.id)
    with pytest.raises(stripe.InvalidRequestError):
        v1.checkout.sessions.create({**params, "expires_at": 1_800_001_801})


def test_the_portal_adds_replaces_and_removes_cards(fake, v1, customer, portal):
    assert "No card is saved." in fake.visit(portal.url).html
    fake.visit(f"{portal.url}/add", {"number": VISA})
    (visa,) = methods_of(v1, customer)
    assert default_of(v1, customer) == visa.id
    fake.visit(f"{portal.url}/add", {"number": MASTERCARD, "expiry": "01/31"})
    mastercard = next(m for m in methods_of(v1, customer) if m.id != visa.id)
    assert default_of(v1, customer) == mastercard.id
    html = fake.visit(portal.url).html
    assert "Mastercard ending in 4444, expires 01/31 (default)" in html
    assert 'aria-label="Remove: Visa ending in 4242' in html
    fake.visit(f"{portal.url}/default", {"payment_method": visa.id})
    assert default_of(v1, customer) == visa.id
    fake.visit(f"{portal.url}/remove", {"payment_method": visa.id})
    assert default_of(v1, customer) is None
    assert [m.id for m in methods_of(v1, customer)] == [mastercard.id]
    types = {event["type"] for event in fake.objects("event")}
    assert {"payment_method.detached", "customer.updated"} <= types


def test_a_card_of_the_portal_may_be_authenticated(fake, v1, customer, portal):
    visit = fake.visit(f"{portal.url}/add", {"number": AUTHENTICATED_WHEN_SAVED})
    back = fake.authenticate(visit.location)
    assert fake.visit(back.location).location.startswith("/portal/")
    (method,) = methods_of(v1, customer)
    assert default_of(v1, customer) == method.id


def test_the_portal_shows_errors_and_keeps_to_its_customer(fake, v1, portal):
    assert "was declined" in fake.visit(f"{portal.url}/add", {"number": DECLINED}).html
    other = v1.customers.create({})
    foreign = v1.payment_methods.attach("pm_card_visa", {"customer": other.id})
    assert fake.visit(f"{portal.url}/remove", {"payment_method": foreign.id}).status == 402
    assert v1.payment_methods.retrieve(foreign.id).customer == other.id
    assert fake.visit(f"{fake.base}/portal/guess").status == 404


def test_the_portal_closes_after_an_hour(fake, v1, customer):
    fake.set_time(1_800_000_000)
    portal = v1.billing_portal.sessions.create({"customer": customer.id})
    assert fake.visit(portal.url).status == 200
    fake.advance(3600)
    assert fake.visit(portal.url).status == 404


def test_a_receipt_and_the_overview_show_what_was_charged(fake, v1, customer):
    method = v1.payment_methods.attach("pm_card_visa", {"customer": customer.id})
    intent = v1.payment_intents.create({
        "amount": 1250, "currency": "usd", "customer": customer.id, "confirm": True,
        "payment_method": method.id, "off_session": True, "description": "Invoice <1>",
        "expand": ["latest_charge"],
    })  # fmt: skip
    receipt = fake.visit(intent.latest_charge.receipt_url)
    assert "Invoice &lt;1&gt;" in receipt.html
    assert "1250 USD" in receipt.html
    assert intent.latest_charge.id in fake.visit(fake.base + "/").html
    assert fake.visit(f"{fake.base}/nothing").status == 404


def test_the_secret_of_an_intent_opens_its_page_alone(fake, v1, customer, session):
    visit = fake.visit(session.url, {"number": AUTHENTICATED_WHEN_SAVED})
    assert fake.visit(visit.location[:-1] + "?").status == 404
    assert fake.visit(visit.location).status == 200
