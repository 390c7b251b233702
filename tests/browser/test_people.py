"""People who work together: an invitation, and a role in one project alone."""

import re
import time

from playwright.sync_api import expect

from tests.browser.visitor import CLUSTER, TIMEOUT_MS

PASSWORD = "a sentence for somebody new"


def test_who_is_invited_joins_and_sees_only_their_project(visitor, people):
    page = visitor.page
    email = f"guest-{time.monotonic_ns()}@example.com"
    project = f"guests {time.monotonic_ns()}"
    visitor.open("/access/projects?panel=new")
    panel = page.get_by_role("dialog", name="New project")
    panel.get_by_label("Name", exact=True).fill(project)
    panel.get_by_role("button", name="Create project").click()
    expect(page.get_by_role("link", name=project, exact=True)).to_be_visible(timeout=TIMEOUT_MS)

    visitor.open("/access?panel=invite")
    panel = page.get_by_role("dialog", name="Invite somebody")
    panel.get_by_label("Mail address").fill(email)
    panel.get_by_role("combobox", name="Role").click()
    page.get_by_role("option", name=re.compile("^Member:")).click()
    panel.get_by_role("button", name="Send the invitation").click()
    waiting = page.get_by_role("table", name="Invitations").get_by_role("row")
    expect(waiting.filter(has_text=email)).to_contain_text("Waiting", timeout=TIMEOUT_MS)

    visitor.open("/mail")
    link = page.get_by_role("link", name=re.compile("invitation#")).first
    expect(link).to_be_visible(timeout=TIMEOUT_MS)
    address = link.get_attribute("href")
    with people() as guest:
        guest.page.goto(address[address.index("/invitation#") :])
        guest.page.get_by_label("Your name").fill("Guest")
        guest.page.get_by_label("Password", exact=True).fill(PASSWORD)
        guest.press("Make an account and join")
        guest.sees("You belong to Northwind now")

        visitor.open("/access")
        member = page.get_by_role("link", name=email, exact=True)
        expect(member).to_be_visible(timeout=TIMEOUT_MS)
        member.click()
        panel = page.get_by_role("dialog", name=email)
        panel.get_by_role("combobox", name="Project").click()
        page.get_by_role("option", name=project).click()
        panel.get_by_role("button", name="Give the role").click()
        roles = panel.get_by_role("table", name="Roles in projects")
        expect(roles).to_contain_text(project, timeout=TIMEOUT_MS)

        guest.page.goto("/signin")
        guest.page.get_by_label("Mail address").fill(email)
        guest.page.get_by_label("Password", exact=True).fill(PASSWORD)
        guest.press("Sign in")
        expect(guest.page.get_by_role("heading", name="Northwind")).to_be_visible(
            timeout=TIMEOUT_MS
        )
        guest.open("/access/projects")
        expect(guest.page.get_by_role("link", name=project, exact=True)).to_be_visible(
            timeout=TIMEOUT_MS
        )
        rows = guest.page.get_by_role("table", name="Projects").get_by_role("row")
        expect(rows).to_have_count(2, timeout=TIMEOUT_MS)
        guest.open("/clusters")
        guest.sees("No cluster yet")
        expect(guest.page.get_by_text(CLUSTER)).to_have_count(0)
