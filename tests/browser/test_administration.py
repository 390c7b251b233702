"""What people who look after a cluster do: quotas, deleted topics, records, projects, limits."""

import re
import time

from playwright.sync_api import expect

from tests.browser.visitor import TIMEOUT_MS


def a_topic(visitor, partitions="1"):
    """Makes a topic with a name of its own in the first cluster, and returns the name.

    It sorts behind the sample topic: snippets name the first one, also for the tests that follow.
    """
    name = f"later-{time.monotonic_ns()}"
    visitor.enter_cluster("Topics")
    visitor.press("New topic")
    panel = visitor.page.get_by_role("dialog", name="New topic")
    panel.get_by_label("Name", exact=True).fill(name)
    panel.get_by_label("Partitions").fill(partitions)
    panel.get_by_role("button", name="Create topic").click()
    expect(visitor.page.get_by_role("heading", name=name)).to_be_visible(timeout=TIMEOUT_MS)
    return name


def confirm_dialog(visitor, title, name, action=None):
    """Types the name into the dialog with this title, and presses its button."""
    dialog = visitor.page.get_by_role("dialog", name=title)
    dialog.get_by_role("textbox").fill(name)
    dialog.get_by_role("button", name=action or title).click()


def test_a_quota_is_set_changed_removed_and_put_back(visitor):
    visitor.enter_cluster("Quotas")
    visitor.press("New quota")
    panel = visitor.page.get_by_role("dialog", name="New quota")
    client = f"etl-{time.monotonic_ns()}"
    panel.get_by_role("radio", name="Client id", exact=True).check()
    panel.get_by_role("textbox", name="Client id").fill(client)
    panel.get_by_label("Fetch, bytes per second").fill("fast")
    panel.get_by_label("Produce, bytes per second").fill("10 MiB")
    panel.get_by_role("button", name="Set quotas").click()
    visitor.sees("Bytes per second, such as 10 MiB", within=panel)
    panel.get_by_label("Fetch, bytes per second").fill("")
    panel.get_by_role("button", name="Set quotas").click()
    row = visitor.page.get_by_role("row").filter(has_text=client)
    expect(row).to_contain_text("10.0 MiB/s", timeout=TIMEOUT_MS)

    row.get_by_role("link", name=re.compile("^Edit")).click()
    panel = visitor.page.get_by_role("dialog", name=re.compile(client))
    expect(panel.get_by_label("Produce, bytes per second")).to_have_value("10 MiB")
    panel.get_by_label("Produce, bytes per second").fill("1.5 MiB")
    panel.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("1.5 MiB/s", timeout=TIMEOUT_MS)
    expect(panel).to_be_hidden(timeout=TIMEOUT_MS)

    row.get_by_role("button", name=re.compile("^Remove")).click()
    expect(row).to_have_count(0, timeout=TIMEOUT_MS)
    visitor.press("Undo")
    expect(row).to_contain_text("1.5 MiB/s", timeout=TIMEOUT_MS)


def test_a_deleted_topic_comes_back_and_goes_for_good(visitor):
    page = visitor.page
    name = a_topic(visitor)
    visitor.press("Delete")
    confirm_dialog(visitor, "Delete the topic", name)
    deleted = page.get_by_role("table", name="Deleted topics").get_by_role("row")
    expect(deleted.filter(has_text=name)).to_be_visible(timeout=TIMEOUT_MS)
    visitor.press(f"Restore {name}")
    panel = page.get_by_role("dialog", name=f"Restore {name}")
    panel.get_by_label("Name", exact=True).fill(f"{name}-again")
    panel.get_by_role("button", name="Restore the topic").click()
    link = page.get_by_role("link", name=f"{name}-again", exact=True)
    expect(link).to_be_visible(timeout=TIMEOUT_MS)
    expect(panel).to_be_hidden(timeout=TIMEOUT_MS)

    link.click()
    visitor.press("Delete")
    confirm_dialog(visitor, "Delete the topic", f"{name}-again")
    row = deleted.filter(has_text=f"{name}-again")
    expect(row).to_be_visible(timeout=TIMEOUT_MS)
    visitor.press(f"Purge {name}-again")
    confirm_dialog(visitor, "Purge the topic", f"{name}-again")
    expect(row).to_have_count(0, timeout=TIMEOUT_MS)


def test_records_are_deleted_after_a_look_at_what_goes(visitor):
    page = visitor.page
    name = a_topic(visitor, "2")
    topic = page.url.split("?")[0]
    visitor.open(f"{topic}?panel=produce")
    panel = page.get_by_role("dialog", name=re.compile("^Produce"))
    panel.get_by_label("Value", exact=True).fill("not for long")
    panel.get_by_role("button", name=re.compile("^Produce")).click()
    visitor.sees(re.compile("^Written"))
    visitor.open(f"{topic}/partitions?panel=delete-records")
    panel = page.get_by_role("dialog", name=f"Delete records of {name}")
    visitor.sees("Deleted records cannot be brought back.", within=panel)
    panel.get_by_role("button", name="Show what will be deleted").click()
    goes = panel.get_by_role("table", name="What goes")
    expect(goes.get_by_role("row")).to_have_count(3, timeout=TIMEOUT_MS)
    panel.get_by_role("button", name="Delete 1 record").click()
    confirm_dialog(visitor, "Delete the records", name, "Delete 1 record")
    visitor.sees("1 record deleted")
    page.goto(f"{topic}?from=oldest")
    visitor.sees("No messages")


def test_a_cluster_moves_to_a_project_and_asks_for_more(visitor):
    page = visitor.page
    project = f"project {time.monotonic_ns()}"
    visitor.open("/access/projects?panel=new")
    panel = page.get_by_role("dialog", name="New project")
    panel.get_by_label("Name", exact=True).fill(project)
    panel.get_by_role("button", name="Create project").click()
    expect(page.get_by_role("link", name=project, exact=True)).to_be_visible(timeout=TIMEOUT_MS)
    visitor.enter_cluster("Settings")
    page.get_by_role("combobox", name="Project").click()
    page.get_by_role("option", name=project).click()
    visitor.press("Save")
    expect(page.get_by_role("link", name=project, exact=True)).to_be_visible(timeout=TIMEOUT_MS)

    visitor.press("Ask for more: topics")
    panel = page.get_by_role("dialog", name="Ask for more: Topics")
    panel.get_by_label("What for").fill("A launch in March")
    panel.get_by_role("button", name="Send the request").click()
    expect(panel).to_be_hidden(timeout=TIMEOUT_MS)
    visitor.open("/settings/limits")
    asked = page.get_by_role("table", name="Requests").get_by_role("row")
    expect(asked.filter(has_text="first-cluster")).to_contain_text("Topics", timeout=TIMEOUT_MS)

    visitor.enter_cluster("Settings")
    page.get_by_role("combobox", name="Project").click()
    page.get_by_role("option", name=re.compile("^Default", re.IGNORECASE)).click()
    visitor.press("Save")
    visitor.sees("The settings are saved")
