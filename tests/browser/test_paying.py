"""From a card to a paid invoice, and from a decline through the banner to paid, at Stripe's fake.

The service is one of its own: in the others nobody collects invoices.
"""

import re
import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from console.programs.stripe_fake.keys import CONTROL_TOKEN
from tests.browser.bookkeeping import issue_invoice, use_month
from tests.browser.visitor import TIMEOUT_MS, Visitor
from tests.ports import free_ports
from tests.service.running import everybody_is_gone, wait_with_tasks
from tests.supervisor.run import Run

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

GOOD, DECLINES, ASKS = "4242424242424242", "4000000000000341", "4000002760003184"
TASKS = ("billing.collect_due", "billing.sweep_collection")
PAID = re.compile("^Paid$")


@pytest.fixture(scope="module")
def fake():
    """The address of the fake of Stripe."""
    return f"http://127.0.0.1:{free_ports(1)[0]}"


@pytest.fixture(scope="module")
def collecting(fake):
    """A service that charges cards at the fake, as `FRESHET_BILLING_COLLECTOR=stripe make up`."""
    settings = {"FRESHET_BILLING_COLLECTOR": "stripe", "FRESHET_BILLING_STRIPE_API_BASE": fake}
    with tempfile.TemporaryDirectory(prefix="freshet-", ignore_cleanup_errors=True) as folder:
        run = Run(Path(folder) / "home", extra=settings)
        try:
            yield run.up()
            everybody_is_gone(run)
        finally:
            if run.started:
                run.kill_everything()


@pytest.fixture
def payer(collecting, browser):
    """Somebody who signed up at that service, at the address that Stripe's pages lead back to."""
    address = f"http://localhost:{collecting.http}"
    context = browser.new_context(base_url=address, reduced_motion="reduce")
    visitor = Visitor(context.new_page())
    try:
        visitor.sign_up("Northwind", "mara@northwind.example", "correct horse battery")
        visitor.wait_for_first_cluster()
        yield visitor
        visitor.assert_no_complaints()
    finally:
        context.close()


def give_card(visitor, button, number):
    """Gives a card on the fake's page, and comes back to the console."""
    page = visitor.page
    visitor.open("/billing")
    visitor.press(button)
    page.get_by_label("Card number").fill(number)
    page.get_by_role("button", name="Save card").click()
    approve = page.get_by_role("button", name="Approve")
    card = page.get_by_text(f"ends in {number[-4:]}")
    expect(approve.or_(card)).to_be_visible(timeout=TIMEOUT_MS)
    if approve.is_visible():
        approve.click()
    expect(card).to_be_visible(timeout=TIMEOUT_MS)


def bill(service, visitor, month):
    """Issues the invoice of a month in which something was used; returns its id."""
    organization = visitor.read("/session")["organization"]["id"]
    use_month(service, organization, month)
    issue_invoice(service, organization, month, "to be seen in a browser")
    (invoice,) = visitor.read(f"/invoices?month={month}")["items"]
    assert invoice["total_minor"] > 50
    return invoice["id"]


def state_of(visitor, invoice):
    return visitor.read(f"/invoices/{invoice}")["state"]


def test_a_card_is_charged_and_what_is_declined_is_paid_from_the_banner(payer, collecting, fake):
    page = payer.page
    banner = page.get_by_role("region", name="Unpaid invoices")

    give_card(payer, "Add a card", GOOD)
    first = bill(collecting, payer, "2026-09")
    wait_with_tasks(collecting, TASKS, lambda: state_of(payer, first) == "paid", "it is charged")
    payer.open(f"/invoices/{first}")
    expect(page.get_by_text(PAID)).to_be_visible(timeout=TIMEOUT_MS)
    receipts = page.get_by_role("table", name="Payments of this invoice")
    expect(receipts.get_by_role("row").nth(1)).to_contain_text("Card", timeout=TIMEOUT_MS)
    expect(banner).to_have_count(0)

    give_card(payer, "Use another card", DECLINES)
    second = bill(collecting, payer, "2026-10")

    def is_unpaid():
        return payer.read("/account")["stage"] == "unpaid"

    wait_with_tasks(collecting, TASKS, is_unpaid, "the card is declined")
    payer.open("/clusters")
    expect(banner).to_contain_text("The card was declined.", timeout=TIMEOUT_MS)
    expect(banner).to_contain_text("all clusters will refuse produce and fetch")
    banner.get_by_role("button", name=re.compile(r"^Pay \$")).click()
    expect(banner.get_by_role("status")).to_contain_text("declined", timeout=TIMEOUT_MS)

    # The new card is charged by itself, and its bank asks for the customer.
    give_card(payer, "Use another card", ASKS)

    def bank_asks():
        return payer.read("/account")["failure"] == "needs_authentication"

    wait_with_tasks(collecting, TASKS, bank_asks, "the bank asks to confirm it")
    payer.open("/")
    expect(banner).to_contain_text("asks you to confirm", timeout=TIMEOUT_MS)
    banner.get_by_role("button", name=re.compile(r"^Pay \$")).click()
    page.get_by_role("button", name="Approve").click()
    payer.sees("The payment came in. This invoice is paid.")
    expect(page).to_have_url(re.compile(f"/invoices/{second}"))
    expect(banner).to_have_count(0, timeout=TIMEOUT_MS)

    charges = page.request.get(
        f"{fake}/_fake/objects/charge", headers={"Authorization": f"Bearer {CONTROL_TOKEN}"}
    ).json()["data"]
    assert [charge["status"] for charge in charges].count("succeeded") == 2
    payments = payer.read("/payments")["items"]
    assert {paid["id"] for payment in payments for paid in payment["invoices"]} == {first, second}
