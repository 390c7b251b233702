"""From nothing to a message that is seen arriving, and a group whose lag goes to zero."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.clients import python_program, run_in_shell
from tests.browser.visitor import TIMEOUT_MS, TOPIC


def cell(visitor, group, column):
    """A cell of a group's row, by the place of its column."""
    row = visitor.page.get_by_role("row").filter(has_text=group)
    return row.get_by_role("cell").nth(column)


def test_a_pasted_snippet_is_seen_arriving(visitor):
    visitor.enter_cluster("Connect")
    visitor.press("Create a credential and fill it in")
    visitor.sees("is filled in")
    produce = visitor.snippet("kcat", "Produce")
    visitor.open_tab("Topics")
    visitor.follow(TOPIC)
    visitor.watch_live()
    pasted = run_in_shell(produce)
    assert pasted.returncode == 0, pasted.stderr
    grid = visitor.page.get_by_role("grid", name="Messages")
    row = grid.get_by_role("row").filter(has_text="hello from kcat")
    row.click()
    panel = visitor.page.get_by_role("complementary", name="Message")
    visitor.sees(f"{TOPIC} 0 @", within=panel)
    expect(panel.locator("pre", has_text="hello from kcat")).to_be_visible()


def test_a_produced_message_is_the_newest_and_samples_are_the_oldest(visitor):
    visitor.enter_cluster("Topics")
    visitor.follow(TOPIC)
    visitor.press("Produce")
    panel = visitor.page.get_by_role("dialog", name=f"Produce to {TOPIC}")
    panel.get_by_role("textbox", name="Key").fill("from-the-console")
    panel.get_by_role("textbox", name="Value").fill('{"typed": "here"}')
    panel.get_by_role("button", name="Produce", exact=True).click()
    visitor.sees(re.compile("Written to partition 0, offset"))
    visitor.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    first = visitor.page.get_by_role("grid", name="Messages").get_by_role("row").nth(1)
    expect(first).to_contain_text('{"typed": "here"}', timeout=TIMEOUT_MS)
    visitor.page.get_by_text("Oldest", exact=True).click()
    expect(first).to_contain_text("Hello from Freshet", timeout=TIMEOUT_MS)
    visitor.page.get_by_text("Offset", exact=True).first.click()
    offset = visitor.page.get_by_role("textbox", name="Offset")
    offset.fill("2")
    offset.press("Enter")
    expect(first).to_contain_text("Now produce one of your own", timeout=TIMEOUT_MS)


def test_lag_is_shown_in_records_and_time_and_goes_to_zero(visitor, tmp_path):
    visitor.enter_cluster("Connect")
    visitor.press("Create a credential and fill it in")
    visitor.sees("is filled in")
    produce = visitor.snippet("kcat", "Produce")
    program = visitor.snippet("Python", "freshet.py")
    with python_program(program, tmp_path) as consumer:
        consumer.wait_for_line("hello from Python")
        visitor.open_tab("Consumer groups")
        expect(cell(visitor, "python-group", 1)).to_have_text("Stable", timeout=TIMEOUT_MS)
        expect(cell(visitor, "python-group", 2)).to_have_text("1", timeout=TIMEOUT_MS)
        expect(cell(visitor, "python-group", 3)).to_have_text("0", timeout=TIMEOUT_MS)
    expect(cell(visitor, "python-group", 1)).to_have_text("Empty", timeout=TIMEOUT_MS)
    for _ in range(3):
        pasted = run_in_shell(produce)
        assert pasted.returncode == 0, pasted.stderr
    expect(cell(visitor, "python-group", 3)).to_have_text("3", timeout=TIMEOUT_MS)
    expect(cell(visitor, "python-group", 4)).not_to_have_text("0 s", timeout=TIMEOUT_MS)
    with python_program(program, tmp_path) as consumer:
        consumer.wait_for_line("hello from kcat")
        expect(cell(visitor, "python-group", 3)).to_have_text("0", timeout=TIMEOUT_MS)
        expect(cell(visitor, "python-group", 4)).to_have_text("0 s", timeout=TIMEOUT_MS)


def test_offsets_are_reset_after_a_look_at_what_would_change(visitor, tmp_path):
    visitor.enter_cluster()
    visitor.create_credential("of-another-group", "Full")
    visitor.open_tab("Connect")
    visitor.sees("is filled in")
    code = visitor.snippet("Python", "freshet.py").replace("python-group", "reset-group")
    with python_program(code, tmp_path) as consumer:
        consumer.wait_for_line("hello from Python")
    visitor.open_tab("Consumer groups")
    visitor.follow("reset-group")
    visitor.sees("No consumer is connected")
    visitor.press("Reset offsets")
    panel = visitor.page.get_by_role("dialog", name="Reset offsets")
    panel.get_by_role("button", name="See what would change").click()
    row = panel.get_by_role("table").get_by_role("row").nth(1)
    expect(row.get_by_role("cell").nth(2)).to_have_text("0", timeout=TIMEOUT_MS)
    panel.get_by_role("button", name="Apply to one partition").click()
    committed = (
        visitor.page.get_by_role("table", name="Lag by partition")
        .get_by_role("row")
        .nth(1)
        .get_by_role("cell")
        .nth(2)
    )
    expect(committed).to_have_text("0", timeout=TIMEOUT_MS)
    visitor.press("Undo")
    expect(committed).not_to_have_text("0", timeout=TIMEOUT_MS)


@pytest.mark.parametrize(
    ("name", "part"), [("of/a/team", "of%2Fa%2Fteam"), ("..", "~.."), ("50%2F?#", "50%252F%3F%23")]
)
def test_a_group_of_any_name_has_a_page_and_a_reset_and_is_deleted(visitor, name, part):
    visitor.enter_cluster("Consumer groups")
    cluster = re.sub(r"^https?://[^/]+|/groups$", "", visitor.page.url)
    reset = f"{cluster}/groups/{part}/reset-offsets?wake=true"
    visitor.change("POST", reset, {"to": "latest", "topics": [{"topic": TOPIC}]})
    visitor.follow(name)
    heading = visitor.page.get_by_role("heading", name=name, exact=True)
    for _ in range(2):
        expect(heading).to_be_visible(timeout=TIMEOUT_MS)
        visitor.sees("No consumer is connected")
        assert visitor.page.url.endswith(f"{cluster}/groups/{part}")
        visitor.page.reload()
    visitor.press("Reset offsets")
    panel = visitor.page.get_by_role("dialog", name="Reset offsets")
    panel.get_by_role("button", name="See what would change").click()
    panel.get_by_role("button", name=re.compile("^Apply to ")).click()
    expect(panel).to_be_hidden(timeout=TIMEOUT_MS)
    visitor.press("Delete")
    dialog = visitor.page.get_by_role("dialog", name="Delete the group")
    dialog.get_by_role("textbox").fill(name)
    dialog.get_by_role("button", name="Delete the group").click()
    visitor.sees(f"{name} is deleted")
    expect(visitor.page.get_by_role("heading", name="Consumer groups")).to_be_visible()
    expect(visitor.page.get_by_role("link", name=name, exact=True)).to_have_count(0)
