"""The hosted pages of the fake of Stripe in a real browser: axe finds nothing, keys are enough."""

import pytest
from playwright.sync_api import expect

from tests.browser.looking import AXE, NO_WIDER_THAN_THE_WINDOW, SIZES, VIOLATIONS
from tests.stripe.calls import client_of
from tests.stripe.fake import AUTHENTICATED_ALWAYS, VISA, running_fake

pytestmark = pytest.mark.full


@pytest.fixture
def fake():
    with running_fake() as running:
        yield running


@pytest.fixture
def page(browser):
    page = browser.new_page()
    page.add_init_script(path=AXE)
    yield page
    page.close()


def test_a_card_is_saved_and_a_payment_approved_by_the_keyboard(fake, page):
    v1 = client_of(fake.base, fake.key)
    customer = v1.customers.create({"name": "Ada"})
    done = f"{fake.base}/"  # a page that is there
    session = {"mode": "setup", "currency": "usd", "customer": customer.id, "success_url": done}
    checkout = v1.checkout.sessions.create({**session, "cancel_url": done})
    page.goto(checkout.url)
    page.get_by_label("Card number").focus()
    page.keyboard.type("4000 0000 0000 0002")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("Your card was declined.")
    page.get_by_label("Card number").fill(AUTHENTICATED_ALWAYS)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Approve").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(done)
    (method,) = v1.payment_methods.list({"customer": customer.id}).data
    payment = {"amount": 1250, "currency": "usd", "customer": customer.id, "return_url": done}
    intent = v1.payment_intents.create({**payment, "payment_method": method.id, "confirm": True})
    portal = v1.billing_portal.sessions.create({"customer": customer.id, "return_url": done})
    for url in (
        v1.checkout.sessions.create(session).url,
        portal.url,
        intent.next_action.redirect_to_url.url,
        done,
    ):
        look_at(page, url)
    page.goto(portal.url)
    page.get_by_label("Card number").fill(VISA)
    page.get_by_role("button", name="Add card").click()
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="ending in 4242")).to_contain_text("(default)")
    page.get_by_role("button", name="Remove: Visa ending in 3184").click()
    expect(rows.filter(has_text="ending in 3184")).to_have_count(0)


def look_at(page, url):
    """Looks at a page in both sizes: by axe, and for its width."""
    for width, height in SIZES.values():
        page.set_viewport_size({"width": width, "height": height})
        page.goto(url)
        assert page.evaluate(VIOLATIONS) == []
        assert page.evaluate(NO_WIDER_THAN_THE_WINDOW)
