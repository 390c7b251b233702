"""Every page with what tenants may have written: nothing fails, nothing is drawn that cannot be
seen, no name pushes what stands beside it out of view, and axe finds nothing.
"""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.looking import (
    AXE,
    AXE_SIZES,
    NO_WIDER_THAN_THE_WINDOW,
    SIZES,
    VIOLATIONS,
    open_loaded,
    screenshots,
    show_in,
)
from tests.browser.mocked.answers import (
    CLUSTER,
    Request,
    answer_to,
    complaints,
    operation_of,
)
from tests.browser.mocked.hostile import (
    BEYOND,
    GROUPS,
    LONG,
    NAMES,
    TOPICS,
    answer_with_hostile_names,
    content_of,
)
from tests.browser.mocked.site import serving
from tests.browser.mocked.test_answers import FROM, address_of
from tests.browser.mocked.test_pages import PAGES
from tests.browser.visitor import TIMEOUT_MS

HERE = f"/clusters/{CLUSTER}"
# What a page must never draw as it is, in text and in what appears on hover.
RAW = r"""() => {
  const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u2066-\u2069\ufeff]/;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const raw = [];
  while (texts.nextNode()) {
    if (unseen.test(texts.currentNode.data)) raw.push(texts.currentNode.data);
  }
  for (const element of document.querySelectorAll("[title]")) {
    if (unseen.test(element.title)) raw.push(`title ${element.title}`);
  }
  return raw.map((text) => JSON.stringify(text.slice(0, 120)));
}"""
THOUSANDS = 4_500
INJECTED = "window.hostile !== undefined || document.querySelector('img[src=x]') !== null"


@pytest.fixture(scope="module")
def hostile_site():
    """The built console, with an API whose answers are full of odd names."""
    with serving(answer_with_hostile_names) as site:
        yield site


@pytest.fixture
def page(hostile_site, people):
    """A page of a person who is signed in."""
    with people(hostile_site.state, base=hostile_site.address) as visitor:
        visitor.page.add_init_script(path=AXE)
        yield visitor.page


def look_at(page, name):
    """Looks at an open page in both themes: raw text, markup, width."""
    assert page.evaluate(RAW) == []
    assert not page.evaluate(INJECTED)
    for theme, size in AXE_SIZES.items():
        show_in(page, theme, *SIZES[size])
        page.wait_for_function(f"() => {NO_WIDER_THAN_THE_WINDOW}", timeout=TIMEOUT_MS)
        if folder := screenshots():
            page.screenshot(path=folder / f"hostile-{name}-{theme}-{size}.png")


def has_no_violations(page, _name):
    """Has axe look at an open page in both themes."""
    for theme, size in AXE_SIZES.items():
        show_in(page, theme, *SIZES[size])
        assert page.evaluate(VIOLATIONS) == []


def test_what_is_answered_is_what_the_api_describes():
    for path in (
        f"/api/v1{HERE}/topics",
        f"/api/v1{HERE}/groups",
        f"/api/v1{HERE}/topics/payments/messages",
        "/api/v1/clusters",
        "/api/v1/members",
        "/api/v1/projects",
        "/api/v1/audit-log",
    ):
        operation = operation_of("GET", path)
        answer = answer_with_hostile_names(Request("GET", path, FROM))
        assert operation is not None
        assert list(complaints(operation, answer)) == []
        assert len(answer.body["items"]) >= len(NAMES)
    assert address_of(operation) == path


def parts_of_pages(count, *, everyday=0):
    """Parametrizes a test with every so many-th page, from the first, the second and so on.

    Behind the first `everyday` parts they are `full`.
    """
    pages = [name for name in PAGES if not name.startswith("absent")]
    parts = [
        pytest.param(
            pages[at::count],
            id=f"{at + 1} of {count}",
            marks=[] if at < everyday else [pytest.mark.full],
        )
        for at in range(count)
    ]
    return pytest.mark.parametrize("names", parts)


def check_pages(page, names, subtests, check):
    for name in names:
        with subtests.test(name):
            page.set_viewport_size(dict(zip(("width", "height"), SIZES["wide"], strict=True)))
            open_loaded(page, PAGES[name][0])
            check(page, name)


@parts_of_pages(12, everyday=4)
def test_every_page_works_with_hostile_names(page, names, subtests):
    check_pages(page, names, subtests, look_at)


@parts_of_pages(4)
def test_axe_finds_nothing_on_a_page_with_hostile_names(page, names, subtests):
    check_pages(page, names, subtests, has_no_violations)


@pytest.mark.parametrize("name", [name for name in NAMES if name != ".."])
def test_a_group_of_any_name_has_its_page(page, name):
    open_loaded(page, f"{HERE}/groups/{quote(name, safe='')}")
    assert page.evaluate(RAW) == []
    shown = name.replace("\0", "\\x00").replace("\u202e", "\\u202e").strip()
    first = re.split(r"[\s\x1b\u200b]", shown)[0]
    expect(page.get_by_role("heading", level=1)).to_contain_text(first, timeout=TIMEOUT_MS)


def test_a_long_name_leaves_the_columns_in_view_and_is_copied_whole(page):
    page.set_viewport_size({"width": 1280, "height": 860})
    open_loaded(page, f"{HERE}/groups")
    table = page.get_by_role("table", name="Consumer groups")
    expect(table.get_by_role("row")).to_have_count(GROUPS + 1)
    row = table.get_by_role("row").filter(has_text=LONG).first
    name, lag = row.get_by_role("cell").first, row.get_by_role("cell").last
    assert name.get_by_role("link").bounding_box()["width"] < 450
    box = lag.bounding_box()
    assert box["x"] + box["width"] <= 1280
    assert name.locator("[title]").get_attribute("title") == LONG
    name.get_by_role("link").evaluate("(link) => getSelection().selectAllChildren(link)")
    assert page.evaluate("getSelection().toString()") == LONG


def test_a_list_of_hundreds_is_whole(page):
    open_loaded(page, f"{HERE}/topics")
    table = page.get_by_role("table", name="Topics", exact=True)
    expect(table.get_by_role("row")).to_have_count(TOPICS + 1)


def test_thousands_of_topics_are_all_found(people):
    pages = []

    def thousands(request):
        """The examples, with more topics than a page of the API has, on three pages."""
        answer = answer_to(request)
        if request.path == f"/api/v1{HERE}/topics":
            (first,) = answer.body["items"]
            begin = int(request.query.get("cursor", "0"))
            most = min(int(request.query["limit"]), THOUSANDS - begin)
            numbers = range(begin, begin + most)
            answer.body["items"] = [first | {"name": f"topic-{n:05}"} for n in numbers]
            answer.body["next_cursor"] = str(begin + most) if begin + most < THOUSANDS else None
            pages.append(begin)
        return answer

    with serving(thousands) as site, people(site.state, base=site.address) as visitor:
        page = visitor.page
        open_loaded(page, f"{HERE}/topics")
        assert len(pages) >= 3
        visitor.sees(re.compile(r" of 4.500 rows are shown"))
        page.get_by_label("Find a topic").fill(f"{THOUSANDS - 1:05}")
        table = page.get_by_role("table", name="Topics", exact=True)
        expect(table.get_by_role("row")).to_have_count(2)
        expect(table.get_by_role("row").nth(1)).to_contain_text(f"topic-{THOUSANDS - 1:05}")


def test_a_long_key_leaves_the_value_in_view_and_is_whole_in_its_panel(people):
    key = "k" * 30_000 + "-end"

    def with_a_long_key(request):
        answer = answer_to(request)
        if request.path == f"/api/v1{HERE}/topics/payments/messages":
            first = answer.body["items"][0]
            value = content_of(b"the value")
            answer.body["items"] = [first | {"key": content_of(key.encode()), "value": value}]
        return answer

    with serving(with_a_long_key) as site, people(site.state, base=site.address) as visitor:
        page = visitor.page
        for width, height in ((1280, 860), (390, 844)):
            page.set_viewport_size({"width": width, "height": height})
            open_loaded(page, f"{HERE}/topics/payments")
            row = page.get_by_role("grid", name="Messages").get_by_role("row").last
            value = row.get_by_role("gridcell").last
            expect(value).to_contain_text("the value")
            box = value.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + 60 <= width
            page.wait_for_function(f"() => {NO_WIDER_THAN_THE_WINDOW}", timeout=TIMEOUT_MS)
        row.click()
        panel = page.get_by_role("complementary", name="Message")
        expect(panel.locator("pre").first).to_have_text(key, timeout=TIMEOUT_MS)


def test_on_a_phone_each_row_is_a_card_with_all_its_values(page):
    page.set_viewport_size({"width": 390, "height": 844})
    open_loaded(page, f"{HERE}/groups")
    row = page.get_by_role("table", name="Consumer groups").get_by_role("row").nth(2)
    for cell in row.get_by_role("cell").all():
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    open_loaded(page, f"{HERE}/topics/payments")
    record = page.get_by_role("grid", name="Messages").get_by_role("row").first
    value = record.get_by_role("gridcell").last
    assert value.bounding_box()["width"] > 200
    expect(value).to_contain_text("plain")


def test_records_are_shown_as_what_they_are(page):
    page.set_viewport_size({"width": 1280, "height": 2400})
    open_loaded(page, f"{HERE}/topics/payments")
    grid = page.get_by_role("grid", name="Messages")
    expect(grid).to_contain_text(r"\u202egnp.exe")
    expect(grid).to_contain_text("int32 -7")
    expect(grid).to_contain_text(f"int64 {BEYOND}")
    expect(grid).to_contain_text("Confluent header, schema 17")
    # Offsets beyond 2^53 keep their last digit.
    shown = f"{BEYOND + 100:,}".replace(",", "\u202f")
    expect(grid.get_by_role("row").nth(1)).to_contain_text(shown)
    # A time that no calendar has does not break the page, and 1 ms after 1970 is a date.
    expect(grid).to_contain_text("1970-01-01")
    expect(grid).to_contain_text("9\u202f223\u202f372\u202f036\u202f854\u202f775\u202f807 ms")
