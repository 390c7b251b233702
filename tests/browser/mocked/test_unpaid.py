"""What is unpaid stands above every page: legible in both themes and sizes, also for axe."""

from __future__ import annotations

import copy

from playwright.sync_api import expect

from tests.browser.looking import look_at_all, screenshots
from tests.browser.mocked.answers import Answer, Request, answer_to, description
from tests.browser.mocked.site import serving
from tests.browser.visitor import TIMEOUT_MS

ACCOUNT = "/api/v1/account"
PAGES = {"unpaid-overview": ("/", "Running"), "unpaid-billing": ("/billing", "ends in 4242")}


def answer_unpaid(request: Request) -> Answer:
    """The usual answer, but that a card was declined."""
    answer = answer_to(request)
    if (request.method, request.path) != ("GET", ACCOUNT):
        return answer
    described = description()["paths"][ACCOUNT]["get"]["responses"]["200"]["content"]
    examples = described["application/json"]["examples"]
    return Answer(answer.status, copy.deepcopy(examples["ACardWasDeclined"]["value"]))


def test_the_banner_is_on_every_page_and_leads_to_the_payment(people, subtests):
    with serving(answer_unpaid) as service, people(service.state, base=service.address) as visitor:
        look_at_all(visitor.page, PAGES, subtests, screenshots())
        visitor.page.goto("/clusters")
        banner = visitor.page.get_by_role("region", name="Unpaid invoices")
        expect(banner).to_contain_text("$12.50 of an invoice is unpaid", timeout=TIMEOUT_MS)
        expect(banner).to_contain_text("all clusters will refuse produce and fetch")
        expect(banner.get_by_role("button", name="Pay $12.50")).to_be_enabled()
        banner.get_by_role("link", name="Payment").click()
        expect(visitor.page).to_have_url(f"{service.address}/billing", timeout=TIMEOUT_MS)
