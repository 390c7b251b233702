"""What a page shows is what the service has.

It is notified of changes over one stream, says how old its figures are and since when there is no
answer, and is loaded anew where a part of it is gone.
"""

from __future__ import annotations

import contextlib
import re

import pytest
from playwright.sync_api import expect

from tests.browser.looking import AXE, THEMES, VIOLATIONS
from tests.browser.mocked.answers import CLUSTER, GROUP, answer_to
from tests.browser.mocked.site import serving
from tests.browser.visitor import TIMEOUT_MS
from tests.supervisor.run import wait_until

CLUSTERS = "/api/v1/clusters"
GROUP_PAGE = f"/clusters/{CLUSTER}/groups/{GROUP}"
NO_ANSWER = re.compile(r"^No answer since \d\d:\d\d:\d\d UTC\. All figures below are from then\.")
# What a browser does when its window is covered, or another tab is chosen.
SHOW = """state => {
  Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


class Changing:
    """Answers from the examples, of which one can be changed."""

    def __init__(self):
        self.changes = {}

    def __call__(self, request):
        answer = answer_to(request)
        change = self.changes.get(request.path)
        if change is not None:
            change(answer.body)
        return answer


@pytest.fixture
def answers():
    """What the service of this test answers."""
    return Changing()


@pytest.fixture
def service(answers):
    """A service of this test alone, which can go away."""
    with serving(answers) as running:
        yield running


@pytest.fixture
def somebody(people, service):
    """A person at a page of that service. What fails there is expected to."""
    with contextlib.ExitStack() as stack:
        visitor = stack.enter_context(people(service.state, base=service.address))
        yield visitor
        visitor.complaints.clear()


def wait_for_stream(service):
    wait_until(lambda: service.watching == 1, "a stream is open")


def test_a_page_asks_once_and_is_notified_of_what_changes(service, answers, somebody):
    somebody.open("/clusters")
    somebody.sees("orders")
    wait_for_stream(service)
    service.reads.clear()
    # A page that asked by itself every two seconds would have done so twice in this time.
    somebody.page.wait_for_timeout(5_000)
    assert service.reads == []

    def rename(page):
        page["items"][0]["name"] = "renamed"

    answers.changes[CLUSTERS] = rename
    somebody.sees("renamed")
    assert set(service.reads) == {CLUSTERS}


def test_a_stream_follows_what_the_page_shows(service, somebody):
    somebody.open("/prices")
    wait_for_stream(service)
    page = somebody.page
    with page.expect_request(re.compile(r"/watch\?.*members")):
        page.get_by_role("navigation", name="Main").get_by_role("link", name="Access").click()
    somebody.sees("Invite somebody")
    wait_for_stream(service)
    with page.expect_request(lambda request: "/watch?" in request.url) as opened:
        page.go_back()
    assert "members" not in opened.value.url


def test_a_hidden_page_asks_for_nothing(service, answers, somebody):
    somebody.open("/clusters")
    somebody.sees("orders")
    wait_for_stream(service)
    somebody.page.evaluate(SHOW, "hidden")
    wait_until(lambda: service.watching == 0, "the stream is closed")
    service.reads.clear()
    answers.changes[CLUSTERS] = lambda page: page["items"][0].update(name="renamed")
    somebody.page.wait_for_timeout(5_000)
    assert service.reads == []
    somebody.page.evaluate(SHOW, "visible")
    somebody.sees("renamed")
    wait_for_stream(service)


def test_a_page_asks_by_itself_where_no_stream_can_be_opened(service, answers, somebody):
    somebody.page.route("**/api/v1/watch*", lambda route: route.fulfill(status=429))
    somebody.open("/clusters")
    somebody.sees("orders")
    answers.changes[CLUSTERS] = lambda page: page["items"][0].update(name="renamed")
    somebody.sees("renamed")


@pytest.mark.parametrize("hangs", [False, True], ids=["refuses", "hangs"])
def test_a_page_says_since_when_there_is_no_answer(service, somebody, hangs):
    page = somebody.page
    page.add_init_script(path=AXE)
    if hangs:
        # Time goes on, since nothing but time tells that an answer does not come.
        page.clock.install()
        page.clock.resume()
    somebody.open(GROUP_PAGE)
    expect(page.get_by_test_id("read at")).to_have_text(re.compile(r"^Figures of [\d:]+ UTC"))
    stable = page.get_by_text("Stable").first
    expect(stable).to_be_visible(timeout=TIMEOUT_MS)
    before = colour_of(stable)
    if hangs:
        page.route("**/api/**", lambda _: None)
        page.route("**/readyz", lambda _: None)
    service.away = True
    expect(page.get_by_text(re.compile("^No answer"))).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_text("Server not reachable")).to_be_visible(timeout=TIMEOUT_MS)
    if not hangs:
        expect(page.get_by_text(NO_ANSWER)).to_contain_text("could not reach its server")
    assert colour_of(stable) != before
    for theme in () if hangs else THEMES:
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        expect(page.locator(f"html[data-mantine-color-scheme={theme}]")).to_have_count(1)
        assert page.evaluate(VIOLATIONS) == []
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.unroute_all()
    service.away = False
    # A click of the driver's would wait for the requests that hang.
    page.get_by_role("button", name="Try again").first.dispatch_event("click")
    expect(page.get_by_test_id("read at")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator("[data-stale]")).to_have_count(0)
    assert colour_of(stable) == before


def colour_of(element):
    return element.evaluate("element => getComputedStyle(element).color")


def test_a_part_that_a_newer_version_replaced_is_loaded_with_it(somebody):
    page = somebody.page
    somebody.open("/clusters")
    somebody.sees("orders")
    lost: list[str] = []

    def lose(route):
        """The old part is gone; what the service has now is there once the page is loaded anew."""
        if loads:
            route.continue_()
        else:
            lost.append(route.request.url)
            route.fulfill(status=404)

    loads = count_loads(page)
    page.route("**/assets/AuditPage-*.js", lose)
    page.get_by_role("link", name="Audit log").click()
    somebody.sees("Topic: create")
    assert lost != []
    assert len(loads) == 1


def test_a_part_that_stays_away_does_not_send_anybody_round_in_circles(somebody):
    page = somebody.page
    somebody.open("/clusters")
    somebody.sees("orders")
    loads = count_loads(page)
    page.route("**/assets/AuditPage-*.js", lambda route: route.fulfill(status=404))
    with page.expect_event("domcontentloaded"):
        page.get_by_role("link", name="Audit log").click()
    somebody.sees("A part of the console could not be loaded.")
    page.wait_for_timeout(2_000)
    assert len(loads) == 1


def test_a_page_stays_where_no_part_can_be_had(service, somebody):
    page = somebody.page
    somebody.open("/clusters")
    somebody.sees("orders")
    loads = count_loads(page)
    service.away = True
    page.get_by_role("link", name="Audit log").click()
    somebody.sees("A part of the console could not be loaded.")
    # Loaded anew it would be the browser's own page of errors.
    assert loads == []


def count_loads(page):
    """Counts from now on how often the page is loaded anew."""
    loads = []
    page.on("domcontentloaded", lambda _: loads.append(page.url))
    return loads
