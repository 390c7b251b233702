"""Who may do what, in the console and at the brokers."""

import re

from playwright.sync_api import expect

from tests.browser.clients import run_in_shell, shell_program
from tests.browser.visitor import TIMEOUT_MS, TOPIC


def test_rules_grant_and_refuse(visitor):
    visitor.enter_cluster()
    username, password = visitor.create_credential("acl-test", "None")
    visitor.open_tab("Connect")
    produce = visitor.snippet("kcat", "Produce")
    assert username in produce
    assert password in produce

    refused = run_in_shell(produce)
    assert refused.returncode != 0
    assert "authorization failed" in refused.stderr

    visitor.open_tab("ACLs")
    visitor.press_above_list("Add ACLs")
    panel = visitor.page.get_by_role("dialog", name="Add ACLs")
    panel.get_by_role("combobox", name="Credential").fill("acl-test")
    visitor.page.get_by_role("option", name=f"acl-test, User:{username}").click()
    panel.get_by_label("Topic").fill(TOPIC)
    panel.get_by_role("button", name=re.compile("^Add")).click()
    expect(panel).to_be_hidden(timeout=TIMEOUT_MS)
    rules = visitor.page.get_by_role("row").filter(has_text=username)
    expect(rules).to_have_count(2, timeout=TIMEOUT_MS)
    granted = run_in_shell(produce)
    assert granted.returncode == 0, granted.stderr

    rules.filter(has_text="WRITE").get_by_role("button").click()
    expect(rules).to_have_count(1, timeout=TIMEOUT_MS)
    again = run_in_shell(produce)
    assert again.returncode != 0
    assert "authorization failed" in again.stderr
    visitor.press("Undo")
    expect(rules).to_have_count(2, timeout=TIMEOUT_MS)


def test_a_deleted_credential_is_refused(visitor):
    visitor.enter_cluster()
    visitor.create_credential("to-delete", "Full")
    visitor.open_tab("Connect")
    produce = visitor.snippet("kcat", "Produce")
    assert run_in_shell(produce).returncode == 0
    visitor.open_tab("Credentials")
    visitor.press("Delete to-delete")
    dialog = visitor.page.get_by_role("dialog", name="Delete the credential")
    confirm = dialog.get_by_role("button", name="Delete the credential")
    expect(confirm).to_be_disabled()
    dialog.get_by_role("textbox").fill("to-delete")
    confirm.click()
    expect(visitor.page.get_by_role("row").filter(has_text="to-delete")).to_have_count(
        0, timeout=TIMEOUT_MS
    )
    # It tries again and again.
    with shell_program(produce) as refused:
        refused.wait_for_line("uthentication")


def test_a_rotated_credential_works_and_the_old_one_until_its_end(visitor):
    visitor.enter_cluster()
    visitor.create_credential("to-rotate", "Full")
    visitor.open_tab("Connect")
    produce = visitor.snippet("kcat", "Produce")
    visitor.open_tab("Credentials")
    visitor.press("Rotate to-rotate")
    panel = visitor.page.get_by_role("dialog", name="Rotate to-rotate")
    panel.get_by_role("button", name="Rotate", exact=True).click()
    expect(panel.get_by_text("Copy it now.")).to_be_visible(timeout=TIMEOUT_MS)
    username = panel.locator("code").first.inner_text()
    panel.get_by_role("button", name="I have copied it").click()
    expect(panel).to_be_hidden(timeout=TIMEOUT_MS)
    visitor.open_tab("Connect")
    rotated = visitor.snippet("kcat", "Produce")
    assert username in rotated
    assert username not in produce
    for command in (rotated, produce):
        done = run_in_shell(command)
        assert done.returncode == 0, done.stderr


def test_an_api_key_is_shown_once_and_works_until_it_is_revoked(visitor, service):
    visitor.follow("Access")
    visitor.follow("API keys")
    visitor.press_above_list("New API key")
    panel = visitor.page.get_by_role("dialog", name="New API key")
    panel.get_by_label("Name", exact=True).fill("script")
    panel.get_by_role("button", name="Create key").click()
    expect(panel.get_by_text("Copy it now.")).to_be_visible(timeout=TIMEOUT_MS)
    secret = panel.locator("code").first.inner_text()
    command = f"curl -fsS -H 'Authorization: Bearer {secret}' {service.address}/api/v1/clusters"
    assert "first-cluster" in run_in_shell(command).stdout
    panel.get_by_role("button", name="I have copied it").click()
    expect(visitor.page.get_by_text(secret)).to_have_count(0)
    visitor.press("Revoke script")
    dialog = visitor.page.get_by_role("dialog", name="Revoke the API key")
    dialog.get_by_role("textbox").fill("script")
    dialog.get_by_role("button", name="Revoke the key").click()
    expect(dialog).to_be_hidden(timeout=TIMEOUT_MS)
    assert run_in_shell(command).returncode != 0


def test_nobody_gets_in_without_signing_in(people, account):
    with people() as visitor:
        page = visitor.page
        page.goto("/clusters")
        expect(page).to_have_url(re.compile(r"/signin\?next="), timeout=TIMEOUT_MS)
        page.get_by_label("Mail address").fill("mara@northwind.example")
        page.get_by_label("Password", exact=True).fill("not the password")
        visitor.press("Sign in")
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("You are not signed in", timeout=TIMEOUT_MS)
        page.get_by_label("Password", exact=True).fill("correct horse battery")
        visitor.press("Sign in")
        expect(page).to_have_url(re.compile("/clusters$"), timeout=TIMEOUT_MS)
        visitor.press("Account of Northwind", exact=False)
        page.get_by_role("menuitem", name="Sign out").click()
        expect(page).to_have_url(re.compile("/signin"), timeout=TIMEOUT_MS)
        page.goto("/")
        expect(page).to_have_url(re.compile("/signin"), timeout=TIMEOUT_MS)
