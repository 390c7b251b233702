"""Every page, in both themes: nothing fails, nothing is wider than the window, and axe finds
nothing against WCAG 2 A and AA; the keyboard reaches everything, and its place is seen.

The API answers from the examples of its description. `tests/browser/test_pages.py` looks at the
same pages with what a service has made.
"""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.looking import look_at_all, screenshots
from tests.browser.mocked.answers import CLUSTER, GROUP, INVOICE, TOPIC, USAGE_ROW
from tests.browser.visitor import TIMEOUT_MS

HERE = f"/clusters/{CLUSTER}"
THE_TOPIC = f"{HERE}/topics/{TOPIC}"
ALERT = "alr_5xw4mzn6yt2ba3k2jq7v"
# A path, and a text that is there once the page has its data.
PAGES = {
    "overview": ("/", "orders"),
    "clusters": ("/clusters", "orders"),
    "new-cluster": ("/clusters?panel=new", "Create cluster"),
    "cluster": (HERE, "Endpoints"),
    "connect": (f"{HERE}/connect", "kcat"),
    "topics": (f"{HERE}/topics", "Deleted topics"),
    "new-topic": (f"{HERE}/topics?panel=new", "Create topic"),
    "messages": (THE_TOPIC, "Hello from Freshet"),
    "live": (f"{THE_TOPIC}?from=live", "Live"),
    "produce": (f"{THE_TOPIC}?panel=produce", "Empty for a record without a key"),
    "consumers": (f"{THE_TOPIC}/consumers", GROUP),
    "partitions": (f"{THE_TOPIC}/partitions", "Add partitions"),
    "configuration": (f"{THE_TOPIC}/configuration", "retention.ms"),
    "groups": (f"{HERE}/groups", GROUP),
    "group": (f"{HERE}/groups/{GROUP}", "Lag by partition"),
    "group-alert": (f"{HERE}/groups/{GROUP}?panel=alert", "Create alert"),
    "reset": (f"{HERE}/groups/{GROUP}?panel=reset", "See what would change"),
    "credentials": (f"{HERE}/credentials", "SCRAM-SHA-512"),
    "new-credential": (f"{HERE}/credentials?panel=new", "Create credential"),
    "delete-records": (f"{THE_TOPIC}/partitions?panel=delete-records", "Show what will be deleted"),
    "skip-damaged": (
        f"{THE_TOPIC}/partitions?panel=skip-damaged-0-94",
        "Show what will be deleted",
    ),
    "acls": (f"{HERE}/acls", "User:"),
    "new-acl": (f"{HERE}/acls?panel=new", "Kafka Streams"),
    "quotas": (f"{HERE}/quotas", "1.0 MiB/s"),
    "new-quota": (f"{HERE}/quotas?panel=new", "Set quotas"),
    "cluster-settings": (f"{HERE}/settings", "All limits, and requests for more"),
    "alerts": ("/alerts", "Checkout falls behind"),
    "alert": (f"/alerts?panel={ALERT}", "Last look"),
    "new-alert": ("/alerts?panel=new", "Create alert"),
    "usage": ("/usage?range=1h", "Traffic"),
    "usage-by-topic": ("/usage?range=7d&by=topic", TOPIC),
    "usage-month": ("/usage?range=30d&by=principal&meter=ingress_bytes", "checkout"),
    "usage-row": (f"/usage?panel={USAGE_ROW}", "SHA-256"),
    "costs": ("/usage/costs", "Forecast"),
    "costs-by-topic": ("/usage/costs?by=topic", "payments"),
    "budgets": ("/usage/budgets", "Team"),
    "new-budget": ("/usage/budgets?panel=new", "Create budget"),
    "prices": ("/prices", "$0.04 per GiB"),
    "invoices": ("/invoices", "Issued"),
    "invoice": (f"/invoices/{INVOICE}", "Data in"),
    "billing": ("/billing", "Visa, ends in 4242"),
    "billing-details": ("/billing-details", "Legal name"),
    "members": ("/access", "Invite somebody"),
    "invite": ("/access?panel=invite", "Send the invitation"),
    "projects": ("/access/projects", "Checkout"),
    "new-project": ("/access/projects?panel=new", "Create project"),
    "service-accounts": ("/access/service-accounts", "Applies what is merged."),
    "new-service-account": ("/access/service-accounts?panel=new", "Create account"),
    "api-keys": ("/access/keys", "API keys"),
    "new-key": ("/access/keys?panel=new", "Create key"),
    "audit": ("/audit", "Topic: create"),
    "mail": ("/mail", "Verify your address"),
    "settings": ("/settings", "Theme"),
    "settings-organization": ("/settings/organization", "Allowed addresses"),
    "settings-limits": ("/settings/limits", "Ask for more"),
    "incidents": ("/incidents", "Brokers of orders crash again and again"),
    "staff": ("/staff", "Limit requests"),
    "staff-money": ("/staff/money", "Failed charges"),
    "staff-payment": ("/staff/money?panel=payment", "The bank's id"),
    "messages-filtered": (f"{THE_TOPIC}?filter=hello", "scanned so far"),
    "settings-sign-in": ("/settings/sign-in", "This one"),
    "absent-cluster": ("/clusters/cl_" + "a" * 20, "The cluster could not be read"),
    "absent-invoice": ("/invoices/inv_" + "a" * 20, "The invoice could not be read"),
    "absent-page": ("/no/such/page", "There is no such page"),
}
ENTRANCES = {
    "sign-in": ("/signin", "Sign in"),
    "sign-up": ("/signup", "Sign up"),
    "forgotten": ("/forgotten", "Send the link"),
    "password-reset": ("/password-reset#token", "Set the password"),
    "invitation": ("/invitation#token", "Make an account and join"),
    "password-reset-half": ("/password-reset", "The link is not complete"),
}


# Where addresses begin, by area: the first that fits is a page's.
AREAS = {
    "topic": (THE_TOPIC,),
    "cluster": (HERE,),
    "money": ("/usage", "/prices", "/invoices", "/billing"),
    "people": ("/access", "/settings", "/audit"),
    "organization": ("/",),
}


def area_of(path):
    return next(area for area, begins in AREAS.items() if path.startswith(begins))


@pytest.mark.parametrize("area", AREAS)
def test_every_page_is_shown(people, site, area, subtests):
    pages = {name: page for name, page in PAGES.items() if area_of(page[0]) == area}
    assert pages
    with people(site.state) as visitor:
        look_at_all(visitor.page, pages, subtests, screenshots())


def test_every_entrance_is_shown(people, subtests):
    with people(None) as visitor:
        look_at_all(visitor.page, ENTRANCES, subtests, screenshots())


def test_the_keyboard_reaches_content_and_its_place_is_seen(visitor):
    visitor.page.keyboard.press("Tab")
    skip = visitor.page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    visitor.page.keyboard.press("Tab")
    outline = visitor.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    visitor.page.keyboard.press("Control+k")
    search = visitor.page.get_by_role("textbox", name="Jump to")
    search.fill("orders")
    palette = visitor.page.get_by_role("dialog")
    expect(palette.get_by_text("orders", exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("Enter")
    expect(visitor.page).to_have_url(re.compile("/clusters/cl_"), timeout=TIMEOUT_MS)


def test_a_panel_keeps_the_focus_and_gives_it_back(visitor):
    page = visitor.page
    visitor.open("/alerts")
    opener = page.get_by_role("button", name="New alert")
    opener.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog", name="New alert")
    expect(panel.get_by_label("Name", exact=True)).to_be_focused(timeout=TIMEOUT_MS)
    # Once around: the focus never leaves the panel.
    stops = panel.locator("input:visible, button:visible").count()
    for _ in range(stops + 1):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('[role=dialog]') !== null")
    # A field with a list of choices keeps its first Escape for the list.
    panel.get_by_label("Name", exact=True).focus()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden(timeout=TIMEOUT_MS)
    expect(opener).to_be_focused(timeout=TIMEOUT_MS)


def test_a_table_is_sorted_and_its_rows_are_worked_on_by_keyboard(visitor):
    page = visitor.page
    visitor.open("/access/projects")
    heading = page.get_by_role("columnheader", name="Name")
    heading.get_by_role("button").focus()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "descending")
    visitor.open("/access/keys")
    revoke = page.get_by_role("button", name=re.compile("^Revoke")).first
    revoke.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Revoke the API key")
    expect(dialog.get_by_role("textbox")).to_be_focused(timeout=TIMEOUT_MS)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden(timeout=TIMEOUT_MS)
    expect(revoke).to_be_focused(timeout=TIMEOUT_MS)


def test_a_table_wider_than_the_window_scrolls_by_keyboard(visitor):
    page = visitor.page
    # Wider than a phone, on which rows are cards, and narrower than the table.
    page.set_viewport_size({"width": 680, "height": 780})
    visitor.open("/access/keys")
    scroller = page.get_by_role("group", name=re.compile("scrolls$")).first
    scroller.focus()
    expect(scroller).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.activeElement.scrollLeft > 0", timeout=TIMEOUT_MS)


def test_a_chosen_theme_stays(visitor):
    visitor.follow("Settings")
    visitor.page.get_by_text("Dark", exact=True).click()
    html = visitor.page.locator("html")
    expect(html).to_have_attribute("data-mantine-color-scheme", "dark")
    visitor.page.reload()
    expect(html).to_have_attribute("data-mantine-color-scheme", "dark", timeout=TIMEOUT_MS)
