"""Usage and costs agree: each cost leads to the rows that it is the sum of, to the byte."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.looking import AXE, VIOLATIONS
from tests.browser.mocked import used
from tests.browser.mocked.answers import CLUSTER, Request, complaints, operation_of
from tests.browser.mocked.site import serving
from tests.browser.visitor import TIMEOUT_MS

NARROW = "\u202f"
MONTH = {"from": "2026-11-01", "to": "2026-12-01"}
# How the cost page names each of `used.KINDS`, and what the links of its rows name.
TABLES = {
    "cluster": ("Cost by cluster", {"cluster": "cluster"}),
    "topic": ("Cost by topic", {"cluster": "cluster", "topic": "topic"}),
    "principal": ("Cost by credential", {"cluster": "cluster", "principal": "principal"}),
    "day": ("Cost by day", {}),
}
METERS = {used.INGRESS: "In", used.EGRESS: "Out", used.STORED: "Stored"}


@pytest.fixture(scope="module")
def service():
    """A service with a month of usage of which not all is billed."""
    with serving(used.answer_with_usage) as running:
        yield running


@pytest.fixture
def somebody(people, service):
    """A person at a page of that service."""
    with people(service.state, base=service.address) as visitor:
        yield visitor


def digits(quantity, unit="byte"):
    """A quantity as the console writes it, to the last digit."""
    return f"{quantity:,} {unit}{'' if quantity == 1 else 's'}".replace(",", NARROW)


def cells_of(page):
    """The texts of the sums of the rows."""
    table = page.get_by_role("table", name="Sums of the rows")
    expect(table.get_by_role("row").nth(1)).to_be_visible(timeout=TIMEOUT_MS)
    expect(table).to_have_attribute("aria-busy", "false")
    return [row.get_by_role("cell").all_inner_texts() for row in table.get_by_role("row").all()[1:]]


def links_of(page, by):
    """(address, exact quantity or "") of each link in the table of costs."""
    page.goto(f"/usage/costs?by={by}")
    table = page.get_by_role("table", name=TABLES[by][0])
    expect(table.get_by_role("link").first).to_be_visible(timeout=TIMEOUT_MS)
    return table.get_by_role("link").evaluate_all(
        "links => links.map(link => [link.getAttribute('href'), link.title])"
    )


@pytest.mark.parametrize(
    "request_of",
    [
        Request("GET", "/api/v1/costs", {"month": "2026-11"}),
        *(
            Request("GET", "/api/v1/usage", {**MONTH, "granularity": "day", "group_by": by})
            for by in ("none", "topic", "principal", "meter")
        ),
        Request("GET", "/api/v1/usage/stored"),
    ],
    ids=lambda request: f"{request.path} {request.query.get('group_by', '')}",
)
def test_the_answers_of_this_month_are_as_described(request_of):
    query = {
        name: f"{value}T00:00:00Z" if name in MONTH else value
        for name, value in request_of.query.items()
    }
    answer = used.answer_with_usage(Request("GET", request_of.path, query))
    operation = operation_of("GET", request_of.path)
    assert operation is not None
    assert list(complaints(operation, answer)) == []


def test_what_is_not_billed_is_apart_and_named(somebody):
    page = somebody.page
    page.add_init_script(path=AXE)
    somebody.open("/usage?range=30d")
    out = page.get_by_role("link", name=re.compile("^Out: show the rows of"))
    expect(out).to_have_text(re.compile(r"1\.7 MiB$"), timeout=TIMEOUT_MS)
    somebody.sees("988 MiB more, not billed: Freshet itself")
    somebody.sees("4.0 KiB more, not billed: internal topics")
    traffic = page.get_by_role("figure", name="Traffic")
    expect(traffic).to_contain_text("Out, not billed")
    assert page.evaluate(VIOLATIONS) == []
    out.click()
    expect(page).to_have_url(re.compile("meter=egress_bytes&billed=true#rows"))
    billed = used.quantity_of(meter=used.EGRESS)
    fresh = used.quantity_of(meter=used.EGRESS, day=used.TODAY)
    assert cells_of(page) == [["Out", "Billed", "1.7 MiB", digits(billed), digits(fresh)]]
    page.get_by_role("link", name="988 MiB more").click()
    expect(page.get_by_role("radio", name="Not billed", exact=True)).to_be_checked()
    assert cells_of(page) == [
        [
            "Out",
            "Not billed: Freshet itself",
            "988 MiB",
            digits(988 * used.MIB),
            digits(8 * used.MIB),
        ],
        ["Out", "Not billed: internal topics", "4.0 KiB", digits(4096), digits(4096)],
    ]
    rows = page.get_by_role("table", name="Usage rows").get_by_role("row")
    expect(rows.filter(has_text="Freshet itself")).to_have_count(2, timeout=TIMEOUT_MS)
    expect(rows.filter(has_text="reader")).to_have_count(1)


@pytest.mark.parametrize("by", list(TABLES))
def test_a_cost_leads_to_exactly_the_rows_that_it_is_made_of(somebody, by):
    page = somebody.page
    somebody.open("/")
    links = links_of(page, by)
    kind = used.KINDS[f"by_{by}"]
    assert len([1 for _, exact in links if exact]) == len(
        {(tuple(getattr(row, name) for name in kind), row.meter) for row in used.billed()}
    )
    for address, exact in links:
        query = dict(parse_qsl(urlsplit(address).query, keep_blank_values=True))
        assert query["billed"] == "true"
        names = {name: query[name] for name in ("cluster", "topic", "principal") if name in query}
        assert set(names) == set(TABLES[by][1])
        if by == "day":
            names["day"] = int(query["from"].rpartition("-")[2])
        else:
            assert {name: query[name] for name in MONTH} == MONTH
        page.goto(address)
        shown = [(cells[0], cells[3]) for cells in cells_of(page)]
        meters = [query["meter"]] if "meter" in query else list(METERS)
        assert shown == [
            (METERS[meter], digits(used.quantity_of(**names, meter=meter), unit_of(meter)))
            for meter in meters
            if used.billed(**names, meter=meter)
        ]
        if exact:
            assert [quantity for _, quantity in shown] == [exact]
        rows = page.get_by_role("table", name="Usage rows").get_by_role("row")
        held = [row for row in used.billed(**names) if row.meter in meters]
        expect(rows).to_have_count(1 + len(held), timeout=TIMEOUT_MS)
        expect(rows.filter(has_text="Not billed")).to_have_count(0)


def unit_of(meter):
    return "byte-minute" if meter == used.STORED else "byte"


def test_one_click_leads_there_and_its_filters_are_in_view(somebody):
    page = somebody.page
    somebody.open("/usage/costs?by=principal")
    table = page.get_by_role("table", name="Cost by credential")
    row = table.get_by_role("row").filter(has_text="No credential").filter(has_text=CLUSTER)
    row.get_by_role("link").nth(1).click()
    expect(page.get_by_role("button", name="Leave: No credential")).to_be_visible(
        timeout=TIMEOUT_MS
    )
    expect(page.get_by_role("button", name="Leave the chosen time")).to_have_text("Nov 2026")
    expect(page.get_by_role("combobox", name="Cluster")).to_have_value("orders")
    expect(page.get_by_role("radio", name="Billed", exact=True)).to_be_checked()
    expect(page.get_by_role("radiogroup", name="Meter").get_by_label("Stored")).to_be_checked()
    quantity = used.quantity_of(cluster=CLUSTER, principal="")
    assert cells_of(page) == [
        ["Stored", "Billed", "3 GiB-months", digits(quantity, "byte-minute"), "–"]
    ]
    page.go_back()
    expect(table).to_be_visible(timeout=TIMEOUT_MS)


def test_what_is_stored_is_shown_in_bytes_that_are_there_now(somebody):
    page = somebody.page
    somebody.open("/")
    somebody.sees("12.4 GiB")
    somebody.sees("now: 21 Nov, 14:57 UTC")
    somebody.open("/usage/costs")
    held = page.get_by_text("12.4 GiB now (21 Nov, 14:57 UTC)")
    expect(held).to_be_visible(timeout=TIMEOUT_MS)
    expect(held).to_have_attribute("title", digits(used.HELD))
    somebody.open("/usage")
    somebody.sees("12.4 GiB at 21 Nov, 14:57 UTC")
    # What there is now is no part of another month's costs.
    somebody.open("/usage/costs?month=2026-10")
    somebody.sees("month before")
    expect(page.get_by_text("12.4 GiB")).to_have_count(0)
