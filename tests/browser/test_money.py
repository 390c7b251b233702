"""From a produced record to its usage, its cost, and an invoice that leads back to it."""

import hashlib
import io
import re
import zipfile

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import TIMEOUT_MS

# The first of them waits until usage is metered, and the roll-up starts Spark.
pytestmark = pytest.mark.timeout(900)


def ingress_line(page, invoice):
    """The line of an invoice for what was produced."""
    lines = page.request.get(f"/api/v1/invoices/{invoice.id}").json()["lines"]
    return next(line for line in lines if line["meter"] == "ingress_bytes")


def test_usage_appears_after_producing(visitor, counted):
    visitor.follow("Usage")
    visitor.sees("Complete until")
    tile = visitor.page.get_by_role("link", name="In: show the rows")
    expect(tile).to_have_text(re.compile(r"[1-9]"), timeout=TIMEOUT_MS)
    chart = visitor.page.get_by_role("figure", name="Traffic").locator("canvas")
    expect(chart).to_be_visible(timeout=TIMEOUT_MS)
    tile.click()
    table = visitor.page.get_by_role("table", name="Usage rows")
    # The console's own credential has written to the topic too.
    rows = table.get_by_role("row").filter(has_text=counted.topic)
    row = rows.filter(has_text=counted.credential).first
    expect(row).to_contain_text("In", timeout=TIMEOUT_MS)
    expect(visitor.page).to_have_url(re.compile("meter=ingress_bytes"))


def test_usage_is_split_by_topic_and_by_credential(visitor, counted):
    visitor.open("/usage")
    visitor.page.get_by_text("Topic", exact=True).first.click()
    totals = visitor.page.get_by_role("table", name="Usage by topic")
    expect(totals.get_by_role("row").filter(has_text=counted.topic).first).to_be_visible(
        timeout=TIMEOUT_MS
    )
    visitor.page.get_by_text("Credential", exact=True).first.click()
    by_credential = visitor.page.get_by_role("table", name="Usage by credential")
    expect(by_credential.get_by_role("row").filter(has_text=counted.credential)).to_be_visible(
        timeout=TIMEOUT_MS
    )
    expect(visitor.page).to_have_url(re.compile("by=principal"))


def test_a_published_row_says_what_it_was_made_of(visitor, invoice):
    row = ingress_line(visitor.page, invoice)["usage_row_ids"][0]
    visitor.open(f"/usage?panel={row}")
    panel = visitor.page.get_by_role("dialog", name="Usage row")
    expect(panel.get_by_text("SHA-256").first).to_be_visible(timeout=TIMEOUT_MS)
    expect(panel.get_by_text(re.compile(r"^v1/cell=.*\.parquet$")).first).to_be_visible()
    expect(panel.get_by_text(re.compile("^run_")).first).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_an_invoice_has_its_pdf_and_its_evidence(visitor, invoice):
    visitor.follow("Invoices")
    visitor.follow(invoice.number)
    visitor.sees(invoice.reason)
    document = visitor.page.get_by_role("article", name="Invoice")
    expect(document.get_by_text("Data in").first).to_be_visible(timeout=TIMEOUT_MS)
    opens = visitor.page.get_by_role("link", name="Open the PDF")
    expect(opens).to_be_visible(timeout=TIMEOUT_MS)
    pdf = visitor.page.request.get(opens.get_attribute("href"))
    assert pdf.body().startswith(b"%PDF-")
    visitor.sees(hashlib.sha256(pdf.body()).hexdigest(), within=document)
    evidence = visitor.page.request.get(
        visitor.page.get_by_role("link", name="Evidence").get_attribute("href")
    )
    with zipfile.ZipFile(io.BytesIO(evidence.body())) as files:
        assert files.testzip() is None
        assert files.namelist()


def test_a_line_leads_to_the_rows_that_it_was_priced_from(visitor, counted, invoice):
    line = ingress_line(visitor.page, invoice)
    rows = [
        visitor.page.request.get(f"/api/v1/usage/rows/{row}").json()
        for row in line["usage_row_ids"]
    ]
    assert sum(int(row["quantity"]) for row in rows) == int(line["quantity"]) > 0
    visitor.open(f"/invoices/{invoice.id}")
    visitor.page.get_by_role("link", name=re.compile("rows? of Data in")).first.click()
    expect(visitor.page).to_have_url(re.compile("meter=ingress_bytes"))
    # The month is not over, so the page has its minutes: whoever closes a month early changes
    # nothing that others see as final.
    table = visitor.page.get_by_role("table", name="Usage rows")
    minutes = table.get_by_role("row").filter(has_text=counted.credential)
    expect(minutes.first).to_be_visible(timeout=TIMEOUT_MS)


def test_a_month_has_a_cost_and_every_meter_its_bar(visitor, counted):
    visitor.open("/")
    visitor.page.get_by_role("link", name=re.compile(r"^\$\d")).click()
    visitor.sees("Forecast")
    expect(visitor.page.get_by_role("figure", name=re.compile("^Cost of"))).to_be_visible()
    visitor.sees("of 10 GiB free")
    costs = visitor.page.get_by_role("table", name="Cost by cluster")
    expect(costs.get_by_role("row").filter(has_text=counted.cluster)).to_be_visible(
        timeout=TIMEOUT_MS
    )
    tabs = visitor.page.get_by_role("navigation", name="Usage", exact=True)
    tabs.get_by_role("link", name="Prices").click()
    prices = visitor.page.get_by_role("table", name="Prices")
    expect(prices).to_contain_text("$0.04 per GiB", timeout=TIMEOUT_MS)


def test_a_suspending_budget_is_explained_before_it_is_saved(visitor):
    visitor.open("/usage/budgets")
    visitor.press("New budget")
    panel = visitor.page.get_by_role("dialog", name="New budget")
    panel.get_by_label("Name", exact=True).fill("hard stop")
    panel.get_by_label("Amount a month, USD").fill("50")
    panel.get_by_role("radio", name="suspend produce").check()
    expect(panel).to_contain_text("When this month's cost reaches $50.00")
    expect(panel).to_contain_text("Storage and partitions go on being billed")
    save = panel.get_by_role("button", name="Create budget")
    save.click()
    expect(panel.get_by_text("Confirm it before saving")).to_be_visible()
    panel.get_by_role("checkbox").check()
    save.click()
    expect(panel).to_be_hidden(timeout=TIMEOUT_MS)
    row = visitor.page.get_by_role("row").filter(has_text="hard stop")
    expect(row).to_contain_text("of $50.00", timeout=TIMEOUT_MS)
    expect(row).to_contain_text("Within")

    visitor.page.get_by_role("link", name="Edit hard stop").click()
    edit = visitor.page.get_by_role("dialog", name="Edit hard stop")
    edit.get_by_label("Amount a month, USD").fill("75.50")
    edit.get_by_role("radio", name="Send mail", exact=True).check()
    edit.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("of $75.50", timeout=TIMEOUT_MS)
    expect(row).to_contain_text("Mail only")

    visitor.press("Remove hard stop")
    dialog = visitor.page.get_by_role("dialog", name="Remove the budget")
    dialog.get_by_role("textbox").fill("hard stop")
    dialog.get_by_role("button", name="Remove the budget").click()
    expect(row).to_have_count(0, timeout=TIMEOUT_MS)
