"""Each view has an address: a reload shows the same, and the way back leads to the view before."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.mocked.answers import CLUSTER, TOPIC, answer_to
from tests.browser.mocked.site import serving
from tests.browser.visitor import TIMEOUT_MS

HERE = f"/clusters/{CLUSTER}"
MESSAGES = f"{HERE}/topics/{TOPIC}"


def many_topics(request):
    """The examples, with ten topics in place of one."""
    answer = answer_to(request)
    if request.path == f"/api/v1/clusters/{CLUSTER}/topics":
        (first,) = answer.body["items"]
        answer.body["items"] = [
            first | {"name": f"topic-{number}", "partitions": 10 - number} for number in range(10)
        ]
    return answer


@pytest.fixture(scope="module")
def service():
    """A service with enough topics to search among them."""
    with serving(many_topics) as running:
        yield running


@pytest.fixture
def somebody(people, service):
    """A person at a page of that service."""
    with people(service.state, base=service.address) as visitor:
        yield visitor


def open_again(page):
    """Opens the page's address in another window, as somebody to whom it was sent."""
    other = page.context.new_page()
    other.goto(page.url)
    return other


def first_topic(page):
    return page.get_by_role("table", name="Topics", exact=True).get_by_role("row").nth(1)


def message_panel(page):
    return page.get_by_role("complementary", name="Message")


def test_the_order_of_a_table(somebody):
    page = somebody.page
    topics = page.get_by_role("table", name="Topics", exact=True)
    somebody.open(f"{HERE}/topics")
    expect(first_topic(page)).to_contain_text("topic-0", timeout=TIMEOUT_MS)
    topics.get_by_role("button", name="Partitions").click()
    expect(first_topic(page)).to_contain_text("topic-9")
    expect(page).to_have_url(re.compile(r"sort=topics\.partitions"))
    expect(first_topic(open_again(page))).to_contain_text("topic-9", timeout=TIMEOUT_MS)
    page.go_back()
    expect(first_topic(page)).to_contain_text("topic-0")


def test_what_is_searched_for(somebody):
    page = somebody.page
    somebody.open(f"{HERE}/topics")
    page.get_by_label("Find a topic").press_sequentially("7")
    expect(page).to_have_url(re.compile("find="))
    other = open_again(page)
    expect(other.get_by_label("Find a topic")).to_have_value("7", timeout=TIMEOUT_MS)
    expect(first_topic(other)).to_contain_text("topic-7")
    # What is typed is no step of its own: the way back leaves the page.
    page.get_by_label("Find a topic").fill("")
    expect(page).not_to_have_url(re.compile("find="))


def test_a_message(somebody):
    page = somebody.page
    somebody.open(MESSAGES)
    page.get_by_role("row").filter(has_text="Hello from Freshet").click()
    expect(message_panel(page)).to_contain_text("@ 43", timeout=TIMEOUT_MS)
    expect(page).to_have_url(re.compile("message=0-43"))
    expect(message_panel(open_again(page))).to_contain_text("@ 43", timeout=TIMEOUT_MS)
    page.keyboard.press("ArrowDown")
    page.go_back()
    expect(message_panel(page)).to_be_hidden()
    expect(page).to_have_url(re.compile(f"{MESSAGES}$"))


def test_a_message_that_is_not_in_the_list(somebody):
    page = somebody.page
    somebody.open(f"{MESSAGES}?from=live&message=0-44")
    expect(message_panel(page)).to_contain_text("@ 44", timeout=TIMEOUT_MS)
    page.get_by_role("button", name="Close the message").click()
    expect(message_panel(page)).to_be_hidden()


@pytest.mark.parametrize(
    ("path", "choose", "address", "shown"),
    [
        pytest.param(
            f"{MESSAGES}/configuration",
            lambda page: page.get_by_label("Only what this topic sets").check(),
            "only=set",
            lambda page: page.get_by_role("switch", checked=True),
            id="switch",
        ),
        pytest.param(
            f"{HERE}/connect",
            lambda page: page.get_by_role("tab", name="Java").click(),
            "language=java",
            lambda page: page.get_by_role("tab", name="Java", selected=True),
            id="language",
        ),
        pytest.param(
            "/usage?range=7d",
            lambda page: page.get_by_text("Credential", exact=True).first.click(),
            "by=principal",
            lambda page: page.get_by_role("table", name="Usage by credential"),
            id="grouping",
        ),
        pytest.param(
            "/audit",
            lambda page: (
                page.get_by_role("combobox", name="Time").click(),
                page.get_by_role("option", name="24 hours").click(),
            ),
            "since=24h",
            lambda page: page.get_by_role("button", name="Show all"),
            id="filter",
        ),
    ],
)
def test_what_is_chosen(somebody, path, choose, address, shown):
    page = somebody.page
    somebody.open(path)
    choose(page)
    expect(page).to_have_url(re.compile(address))
    chosen = shown(open_again(page))
    expect(chosen).to_be_visible(timeout=TIMEOUT_MS)
    page.go_back()
    expect(page).not_to_have_url(re.compile(address))


def test_a_chart_gets_new_figures_without_being_drawn_anew(people, answers_of_usage):
    with serving(answers_of_usage) as service, people(service.state, base=service.address) as who:
        page = who.page
        who.open("/usage?range=1h")
        chart = page.get_by_role("figure", name="Traffic").locator("canvas")
        expect(chart).to_be_visible(timeout=TIMEOUT_MS)
        chart.evaluate("canvas => { canvas.kept = canvas.toDataURL() }")
        answers_of_usage.grown = True
        drawn_otherwise = "canvas => canvas.kept !== canvas.toDataURL()"
        page.wait_for_function(
            f"element => ({drawn_otherwise})(element)", arg=chart.element_handle()
        )
        assert chart.evaluate("canvas => canvas.kept !== undefined")


class Usage:
    """The examples, with usage that grows at a word."""

    grown = False

    def __call__(self, request):
        answer = answer_to(request)
        if request.path == "/api/v1/usage" and self.grown:
            for row in answer.body["items"]:
                row["quantity"] = str(int(row["quantity"]) * 7)
        return answer


@pytest.fixture
def answers_of_usage():
    """What the service of the chart answers."""
    return Usage()
