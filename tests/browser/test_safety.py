"""How people sign in safely: a second factor, a forgotten password, sessions elsewhere."""

import re
import time

import pyotp
import pytest
from playwright.sync_api import Route, expect

from tests.browser.visitor import TIMEOUT_MS

PASSWORD = "a sentence for the browser"


def sign_in(page, email, password):
    """Fills in the sign-in page and submits it."""
    page.goto("/signin")
    page.get_by_label("Mail address").fill(email)
    page.get_by_label("Password", exact=True).fill(password)
    page.get_by_role("button", name="Sign in").click()


def sign_out(visitor):
    """Signs out by the account's menu."""
    visitor.page.get_by_role("button", name=re.compile("^Account of")).click()
    visitor.page.get_by_role("menuitem", name="Sign out").click()
    expect(visitor.page).to_have_url(re.compile("/signin"), timeout=TIMEOUT_MS)


def overview(page, organization):
    """The heading that only a signed-in person sees."""
    return page.get_by_role("heading", name=organization)


def unused_code(app, used_at):
    """The code of this time step or, if that was used, of the next one, which is valid already."""
    next_at = (used_at // app.interval + 1) * app.interval
    return app.at(max(int(time.time()), next_at))


def link_of_mail(visitor, service, email, part):
    """Opens the newest local mail to an address; returns the path of its link with this part."""
    page = visitor.page
    visitor.open(service.mail_page)
    listed = page.get_by_role("list", name="Mails").get_by_role("button").filter(has_text=email)
    listed.first.click()
    link = page.get_by_role("article").get_by_role("link", name=part).first
    expect(link).to_be_visible(timeout=TIMEOUT_MS)
    address = link.get_attribute("href")
    return address[address.index(part) :]


@pytest.fixture
def newcomer(people):
    """A person with an account of its own, at the overview."""
    with people() as visitor:
        name = f"Solo {time.monotonic_ns()}"
        email = f"solo-{time.monotonic_ns()}@example.com"
        visitor.sign_up(name, email, PASSWORD)
        yield visitor, name, email


def test_the_local_mail_is_for_who_started_the_service(newcomer, service):
    visitor, _, email = newcomer
    visitor.open("/mail")
    visitor.sees("For who started the service")
    # In the menu of the account, and where the console asks to prove the address.
    expect(visitor.page.get_by_text(email)).to_have_count(2)
    visitor.open(service.mail_page)
    visitor.sees("Confirm your address")
    expect(visitor.page).to_have_url(re.compile("/mail$"), timeout=TIMEOUT_MS)


def test_who_proves_an_address_gets_the_account_of_who_signed_up_with_it(newcomer, people, service):
    squatter, name, email = newcomer
    key = squatter.change("POST", "/api-keys", {"name": "left behind"})["secret"]
    with people() as owner:
        page = owner.page
        # The owner of the address may open a link that they did not expect. It confirms nothing.
        verify = link_of_mail(squatter, service, email, "/verify?token=")
        page.goto(verify)
        owner.sees("Enter the password that you chose at sign-up")
        owner.follow("Set a new one")
        page.get_by_label("Mail address").fill(email)
        owner.press("Send the link")
        owner.sees("Look into your mail.")
        address = link_of_mail(squatter, service, email, "/password-reset#")
        page.goto(address)
        page.get_by_label("New password").fill("an own sentence for it")
        owner.press("Set the password")
        owner.sees("The password is set.")
        sign_in(page, email, "an own sentence for it")
        expect(overview(page, name)).to_be_visible(timeout=TIMEOUT_MS)
        headers = {"Authorization": f"Bearer {key}"}
        refused = page.request.get("/api/v1/organizations/current", headers=headers)
        assert refused.status == 401
        squatter.page.goto("/")
        expect(squatter.page).to_have_url(re.compile("/signin"), timeout=TIMEOUT_MS)


def test_a_second_factor_is_asked_for_and_a_recovery_code_stands_in(newcomer, service):
    visitor, name, email = newcomer
    page = visitor.page
    visitor.open("/settings/sign-in")
    offered = page.get_by_role("button", name="Set up an authenticator app")
    expect(offered).to_be_disabled(timeout=TIMEOUT_MS)
    page.goto(link_of_mail(visitor, service, email, "/verify?token="))
    visitor.sees("Your address is verified.")
    visitor.open("/settings/sign-in")
    visitor.press("Set up an authenticator app")
    panel = page.get_by_role("dialog", name="Set up an authenticator app")
    panel.get_by_label("Password", exact=True).fill(PASSWORD)
    panel.get_by_role("button", name="Go on").click()
    expect(panel.get_by_role("img", name="QR code of the secret")).to_be_visible(timeout=TIMEOUT_MS)
    app = pyotp.TOTP(panel.locator("code").first.inner_text())
    confirmed_at = int(time.time())
    panel.get_by_label("Code", exact=True).fill(app.at(confirmed_at))
    panel.get_by_role("button", name="Turn it on").click()
    codes = panel.get_by_test_id("code Recovery codes")
    expect(codes).to_be_visible(timeout=TIMEOUT_MS)
    recovery = codes.inner_text().split()
    assert len(set(recovery)) == 10
    panel.get_by_role("button", name="I have kept them").click()
    factor = page.get_by_role("region", name="Two-factor sign-in")
    expect(factor.get_by_text("On", exact=True)).to_be_visible(timeout=TIMEOUT_MS)

    sign_out(visitor)
    sign_in(page, email, PASSWORD)
    code = page.get_by_label("Code", exact=True)
    expect(code).to_be_visible(timeout=TIMEOUT_MS)
    code.fill("000000" if app.at(confirmed_at) != "000000" else "111111")
    visitor.press("Sign in")
    expect(page.get_by_role("alert")).to_contain_text("recovery code", timeout=TIMEOUT_MS)
    code.fill(unused_code(app, confirmed_at))
    visitor.press("Sign in")
    expect(overview(page, name)).to_be_visible(timeout=TIMEOUT_MS)

    sign_out(visitor)
    sign_in(page, email, PASSWORD)
    code.fill(recovery[0])
    visitor.press("Sign in")
    expect(overview(page, name)).to_be_visible(timeout=TIMEOUT_MS)


def test_a_forgotten_password_is_set_by_the_mails_link(newcomer, people, service):
    visitor, name, email = newcomer
    page = visitor.page
    with people() as elsewhere:
        # Signing in revokes an older link, so this person signs in before the mail is sent.
        sign_in(elsewhere.page, email, PASSWORD)
        expect(overview(elsewhere.page, name)).to_be_visible(timeout=TIMEOUT_MS)
        sign_out(visitor)
        visitor.follow("Forgotten your password?")
        # The field of the page before has the same name.
        expect(page.get_by_role("heading", name="Forgotten password")).to_be_visible(
            timeout=TIMEOUT_MS
        )
        page.get_by_label("Mail address").fill(email)
        visitor.press("Send the link")
        visitor.sees("Look into your mail.")
        address = link_of_mail(elsewhere, service, email, "/password-reset#")
    page.goto(address)
    page.get_by_label("New password").fill("another sentence for it")
    visitor.press("Set the password")
    visitor.sees("The password is set.")
    sign_in(page, email, PASSWORD)
    expect(page.get_by_role("alert")).to_contain_text("You are not signed in", timeout=TIMEOUT_MS)
    sign_in(page, email, "another sentence for it")
    expect(overview(page, name)).to_be_visible(timeout=TIMEOUT_MS)


def test_a_session_elsewhere_is_ended(newcomer, people):
    visitor, name, email = newcomer
    with people() as elsewhere:
        sign_in(elsewhere.page, email, PASSWORD)
        expect(overview(elsewhere.page, name)).to_be_visible(timeout=TIMEOUT_MS)
        visitor.open("/settings/sign-in")
        table = visitor.page.get_by_role("table", name="Sessions")
        ending = table.get_by_role("button", name=re.compile("^Sign out of"))
        expect(ending).to_have_count(1, timeout=TIMEOUT_MS)
        ending.click()
        expect(ending).to_have_count(0, timeout=TIMEOUT_MS)
        elsewhere.page.reload()
        expect(elsewhere.page).to_have_url(re.compile("/signin"), timeout=TIMEOUT_MS)


def test_whose_session_ended_is_led_to_the_sign_in_also_where_that_takes_a_while(newcomer):
    visitor, _, _ = newcomer
    page = visitor.page
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route(re.compile("/assets/SignInPage-"), hold)
    visitor.open("/settings/sign-in")
    # An answer that is still on its way may bring the session's cookie back.
    page.wait_for_load_state("networkidle")
    page.context.clear_cookies()
    visitor.follow("Clusters")
    expect(page).to_have_url(re.compile("/signin"), timeout=TIMEOUT_MS)
    held.pop().continue_()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible(timeout=TIMEOUT_MS)
    assert page.url.count("signin") == 1, page.url
