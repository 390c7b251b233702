"""Every page, in both themes: nothing fails, nothing is wider than the window, and axe finds
nothing against WCAG 2 A and AA; the keyboard reaches everything, and its place is seen.
"""

import itertools
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.clients import python_program, run_in_shell
from tests.browser.visitor import CLUSTER, PATIENCE_MS, TOPIC
from tests.supervisor.run import ROOT

# The first of them waits until usage is metered, rolled up and invoiced.
pytestmark = pytest.mark.timeout(900)

# A path, and a text that is there once the page has its data. `{c}`: the cluster's address,
# `{i}`: an invoice's, `{row}`: a usage row's, `{alert}`: an alert's.
PAGES = {
    "overview": ("/", CLUSTER),
    "clusters": ("/clusters", CLUSTER),
    "new-cluster": ("/clusters?panel=new", "Create cluster"),
    "cluster": ("{c}", "Endpoints"),
    "connect": ("{c}/connect", "kcat"),
    "topics": ("{c}/topics", "Deleted topics"),
    "new-topic": ("{c}/topics?panel=new", "Create topic"),
    "messages": (f"{{c}}/topics/{TOPIC}", "Hello from Freshet"),
    "live": (f"{{c}}/topics/{TOPIC}?from=live", "Live"),
    "produce": (f"{{c}}/topics/{TOPIC}?panel=produce", "Empty for a record without a key"),
    "consumers": (f"{{c}}/topics/{TOPIC}/consumers", "pages-group"),
    "partitions": (f"{{c}}/topics/{TOPIC}/partitions", "Leader epoch"),
    "configuration": (f"{{c}}/topics/{TOPIC}/configuration", "retention.ms"),
    "groups": ("{c}/groups", "pages-group"),
    "group": ("{c}/groups/pages-group", "Lag by partition"),
    "group-alert": ("{c}/groups/pages-group?panel=alert", "Create alert"),
    "reset": ("{c}/groups/pages-group?panel=reset", "See what would change"),
    "credentials": ("{c}/credentials", "SCRAM-SHA-512"),
    "new-credential": ("{c}/credentials?panel=new", "Create credential"),
    "delete-records": (f"{{c}}/topics/{TOPIC}/partitions?panel=delete-records", "See what goes"),
    "acls": ("{c}/acls", "User:"),
    "new-acl": ("{c}/acls?panel=new", "Kafka Streams"),
    "quotas": ("{c}/quotas", "every other credential"),
    "new-quota": ("{c}/quotas?panel=new", "Set quotas"),
    "cluster-settings": ("{c}/settings", "All limits, and requests for more"),
    "alerts": ("/alerts", "Somebody falls behind"),
    "alert": ("{alert}", "Last look"),
    "new-alert": ("/alerts?panel=new", "Create alert"),
    "usage": ("/usage?range=1h", "Traffic"),
    "usage-by-topic": ("/usage?range=7d&by=topic", TOPIC),
    "usage-month": ("/usage?range=30d&by=principal&meter=ingress_bytes", "web-shop"),
    "usage-row": ("{row}", "SHA-256"),
    "costs": ("/usage/costs", "Forecast"),
    "costs-by-topic": ("/usage/costs?by=topic", "within what is free each month"),
    "budgets": ("/usage/budgets", "Team"),
    "new-budget": ("/usage/budgets?panel=new", "Create budget"),
    "prices": ("/prices", "$0.04 per GiB"),
    "invoices": ("/invoices", "Issued"),
    "invoice": ("{i}", "Data in"),
    "billing-details": ("/billing-details", "Legal name"),
    "members": ("/access", "Invite somebody"),
    "invite": ("/access?panel=invite", "Send the invitation"),
    "projects": ("/access/projects", "default"),
    "new-project": ("/access/projects?panel=new", "Create project"),
    "service-accounts": ("/access/service-accounts", "No service account"),
    "new-service-account": ("/access/service-accounts?panel=new", "Create account"),
    "api-keys": ("/access/keys", "API keys"),
    "new-key": ("/access/keys?panel=new", "Create key"),
    "audit": ("/audit", "Cluster: create"),
    "audit-nothing": ("/audit?action=nothing.such", "Nothing of this kind"),
    "mail": ("/mail", "Confirm your address"),
    "settings": ("/settings", "Theme"),
    "settings-organization": ("/settings/organization", "Allowed addresses"),
    "settings-limits": ("/settings/limits", "What happens there"),
    "incidents": ("/incidents", "Incidents"),
    "messages-filtered": (f"{{c}}/topics/{TOPIC}?filter=hello", "scanned so far"),
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
THEMES = ("light", "dark")
NO_WIDER_THAN_THE_WINDOW = "document.documentElement.scrollWidth <= window.innerWidth"
SIZES = {"wide": (1280, 860), "narrow": (360, 780)}
AXE = ROOT / "frontend/node_modules/axe-core/axe.min.js"
# Each theme at one size: what hides at the other one is looked at in the other theme.
AXE_SIZES = {"light": "wide", "dark": "narrow"}
# Labels fade from the colours of one theme to those of the other, of which the last ones count.
VIOLATIONS = """async () => {
  for (const each of document.getAnimations()) if (each instanceof CSSTransition) each.finish();
  const values = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
  const runOnly = { type: "tag", values };
  const found = await axe.run(document, { runOnly, resultTypes: ["violations"] });
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}: ${failureSummary}`),
  );
}"""

# What lies in the cluster besides: a method, a path inside the cluster, a body.
PLANTED = (
    ("PUT", "quotas", {"user": "", "produce_bytes_per_second": 10_485_760}),
    ("POST", "topics", {"name": "given-up", "partitions": 2}),
    ("DELETE", "topics/given-up", None),
)
ALERT = {"name": "Somebody falls behind", "kind": "group_lag", "threshold": 0, "for_s": 0}


@pytest.fixture(scope="module")
def addresses(people, account, invoice, tmp_path_factory):
    """A session's own addresses: a cluster with a group that lags, an invoice, a usage row, an
    alert.
    """
    with people(account) as visitor:
        visitor.open("/")
        visitor.enter_cluster("Connect")
        visitor.press("Create a credential and fill it in")
        visitor.sees("is filled in")
        code = visitor.snippet("Python", "freshet.py").replace("python-group", "pages-group")
        with python_program(code, tmp_path_factory.mktemp("client")) as consumer:
            consumer.wait_for_line("hello from Python")
        assert run_in_shell(visitor.snippet("kcat", "Produce")).returncode == 0
        cluster = re.sub(r"^https?://[^/]+|/connect$", "", visitor.page.url)
        # However long it takes to look at every page.
        visitor.change("PATCH", cluster, {"idle_timeout_s": 24 * 3600})
        for method, path, data in PLANTED:
            visitor.change(method, f"{cluster}/{path}", data)
        watched = {"cluster_id": cluster.removeprefix("/clusters/"), **ALERT}
        alert = visitor.change("POST", "/alerts", watched)["id"]
        visitor.create_budget("Team", "20")
        lines = visitor.page.request.get(f"/api/v1/invoices/{invoice.id}").json()["lines"]
        row = next(line["usage_row_ids"][0] for line in lines if line["usage_row_ids"])
        return {
            "c": cluster,
            "i": f"/invoices/{invoice.id}",
            "row": f"/usage?panel={row}",
            "alert": f"/alerts?panel={alert}",
        }


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The folder for screenshots."""
    chosen = os.environ.get("FRESHET_SCREENSHOTS")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def open_page(page, path, text):
    """Opens a page and waits for its text, and for all that it loads."""
    page.goto(path)
    expect(page.get_by_text(text).first).to_be_visible(timeout=PATIENCE_MS)
    for waiting in ("[aria-busy=true]", ".mantine-Skeleton-root"):
        expect(page.locator(waiting)).to_have_count(0, timeout=PATIENCE_MS)
    page.evaluate("document.fonts.ready")


def look_at(page, text, theme, size, picture):
    """Shows an open page in a theme and a window's size, takes a picture, and measures it."""
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    shown = page.locator(f"html[data-mantine-color-scheme={theme}]")
    expect(shown).to_have_count(1, timeout=PATIENCE_MS)
    expect(page.get_by_text(text).first).to_be_visible(timeout=PATIENCE_MS)
    page.screenshot(path=picture)
    # Charts follow the window one frame later. (A predicate as a function: no page allows `eval`.)
    page.wait_for_function(f"() => {NO_WIDER_THAN_THE_WINDOW}", timeout=PATIENCE_MS)
    if AXE_SIZES[theme] == size:
        assert page.evaluate(VIOLATIONS) == []


@pytest.mark.parametrize("who", ["stranger", "member"])
def test_every_page_is_shown(people, account, addresses, pictures, who, subtests):
    """Each is opened once: theme and width change while it is open, as they do for a person."""
    pages, state = (ENTRANCES, None) if who == "stranger" else (PAGES, account)
    with people(state) as visitor:
        visitor.page.add_init_script(path=AXE)
        for name, (path, text) in pages.items():
            with subtests.test(name):
                open_page(visitor.page, path.format(**addresses), text)
            for theme, size in itertools.product(THEMES, SIZES):
                with subtests.test(f"{name}-{theme}-{size}"):
                    picture = pictures / f"{name}-{theme}-{size}.png"
                    look_at(visitor.page, text, theme, size, picture)


def test_the_keyboard_reaches_content_and_its_place_is_seen(visitor):
    visitor.page.keyboard.press("Tab")
    skip = visitor.page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    visitor.page.keyboard.press("Tab")
    outline = visitor.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    visitor.page.keyboard.press("Control+k")
    search = visitor.page.get_by_role("textbox", name="Jump to")
    search.fill(CLUSTER)
    palette = visitor.page.get_by_role("dialog")
    expect(palette.get_by_text(CLUSTER, exact=True)).to_be_visible(timeout=PATIENCE_MS)
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("Enter")
    expect(visitor.page).to_have_url(re.compile("/clusters/cl_"), timeout=PATIENCE_MS)


def test_a_panel_keeps_the_focus_and_gives_it_back(visitor):
    page = visitor.page
    visitor.open("/alerts")
    opener = page.get_by_role("button", name="New alert")
    opener.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("dialog", name="New alert")
    expect(panel.get_by_label("Name", exact=True)).to_be_focused(timeout=PATIENCE_MS)
    # Once around: the focus never leaves the panel.
    stops = panel.locator("input:visible, button:visible").count()
    for _ in range(stops + 1):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('[role=dialog]') !== null")
    # A field with a list of choices keeps its first Escape for the list.
    panel.get_by_label("Name", exact=True).focus()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden(timeout=PATIENCE_MS)
    expect(opener).to_be_focused(timeout=PATIENCE_MS)


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
    expect(dialog.get_by_role("textbox")).to_be_focused(timeout=PATIENCE_MS)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden(timeout=PATIENCE_MS)
    expect(revoke).to_be_focused(timeout=PATIENCE_MS)


def test_a_table_wider_than_the_window_scrolls_by_keyboard(visitor):
    page = visitor.page
    page.set_viewport_size({"width": 360, "height": 780})
    visitor.open("/prices")
    scroller = page.get_by_role("group", name=re.compile("scrolls$")).first
    scroller.focus()
    expect(scroller).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.activeElement.scrollLeft > 0", timeout=PATIENCE_MS)


def test_a_chosen_theme_stays(visitor):
    visitor.follow("Settings")
    visitor.page.get_by_text("Dark", exact=True).click()
    html = visitor.page.locator("html")
    expect(html).to_have_attribute("data-mantine-color-scheme", "dark")
    visitor.page.reload()
    expect(html).to_have_attribute("data-mantine-color-scheme", "dark", timeout=PATIENCE_MS)
