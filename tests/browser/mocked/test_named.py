"""Alerts name whose figure it is, audit entries what changed, and problems what helps."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from playwright.sync_api import expect

from tests.browser.mocked.answers import CLUSTER, GROUP, TOPIC, Answer, answer_to, problem
from tests.browser.mocked.site import serving
from tests.browser.visitor import TIMEOUT_MS

RESET = f"/clusters/{CLUSTER}/groups/{GROUP}"
SET_CONFIGS = {
    "configs": {
        "retention.ms": {"from": "604800000", "to": "86400000"},
        "cleanup.policy": {"from": "delete", "to": "compact"},
    }
}
PENDING = {
    "name": "Somebody falls behind",
    "group": "",
    "state": "pending",
    "since": "2026-11-21T15:57:00Z",
    "changed_at": "2026-11-21T15:57:00Z",
    "fired_at": None,
    "fired_subject": "",
}
BACK = {"group": "", "subject": "billing", "value": "3", "back_since": "2026-11-21T15:58:00Z"}


def changed(request):
    """The examples, with an alert of each state and a topic's entry that has values."""
    answer = answer_to(request)
    if request.method != "GET":
        return answer
    if request.path == "/api/v1/alerts":
        (firing,) = answer.body["items"]
        pending = firing | PENDING | {"id": "alr_2xw4mzn6yt2ba3k2jq7v"}
        answer.body["items"] = [firing | BACK, pending]
    if request.path == "/api/v1/audit-log":
        (entry,) = answer.body["items"]
        answer.body["items"] = [entry | {"action": "topic.update", "detail": SET_CONFIGS}]
    return answer


@pytest.fixture(scope="module")
def service():
    """A service that answers so."""
    with serving(changed) as running:
        yield running


@pytest.fixture
def somebody(people, service):
    """A person at a page of that service."""
    with people(service.state, base=service.address) as visitor:
        yield visitor


def row(page, table, text):
    return page.get_by_role("table", name=table).get_by_role("row").filter(has_text=text)


def test_an_alert_names_the_group_and_since_when_it_is_pending(somebody):
    page = somebody.page
    somebody.open("/alerts")
    pending = row(page, "Alerts", "Somebody falls behind").get_by_role("cell")
    expect(pending.nth(0)).to_have_text("Pending", timeout=TIMEOUT_MS)
    expect(pending.nth(1)).to_have_text("3 min ago")
    expect(pending.nth(6)).to_have_text("checkout")
    # What fires comes first, also while its figure is back below the threshold.
    firing = page.get_by_role("row").nth(1)
    expect(firing).to_contain_text("Checkout falls behind")
    expect(firing.get_by_role("cell").nth(6)).to_have_text("checkout, now billing")
    page.get_by_role("link", name="Edit Checkout falls behind").click()
    details = page.get_by_role("dialog")
    expect(details.get_by_text("Below since").locator("xpath=..")).to_contain_text("2 min ago")
    expect(details.get_by_text("Now", exact=True).locator("xpath=..")).to_contain_text("of billing")
    expect(details.get_by_text("Fired for").locator("xpath=..")).to_contain_text("checkout")


def test_an_audit_entry_says_what_was_changed_and_how(somebody):
    page = somebody.page
    somebody.open("/audit")
    cells = row(page, "Audit log", "Topic: update").get_by_role("cell")
    expect(cells.nth(3)).to_have_text("topic payments in orders", timeout=TIMEOUT_MS)
    expect(cells.nth(4)).to_have_text(
        "retention.ms 604800000 → 86400000, cleanup.policy delete → compact"
    )
    page.get_by_role("link", name="Topic: update").click()
    values = page.get_by_role("dialog").get_by_role("group", name="What changed")
    expect(values).to_contain_text("cleanup.policy")
    expect(values).to_contain_text("delete → compact")


def refusing(path, status, code, title):
    """The examples, with a problem in place of what one path answers."""

    def answer(request):
        if request.path.endswith(path):
            refusal = problem(status, f"{title}.")
            return Answer(status, refusal.body | {"code": code, "title": title})
        return answer_to(request)

    return answer


@pytest.mark.parametrize(
    ("status", "code", "hint", "kept"),
    [
        pytest.param(
            HTTPStatus.CONFLICT,
            "group_active",
            "Stop the group's consumers and wait until its state is Empty",
            "Nothing was changed.",
            id="a group that is live",
        ),
        pytest.param(
            HTTPStatus.CONFLICT,
            "cluster_asleep",
            "Wake the cluster",
            "Nothing was changed.",
            id="a cluster that sleeps",
        ),
        pytest.param(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "cluster_starting",
            "The cluster is waking",
            "Nothing was changed.",
            id="a cluster that starts",
        ),
        pytest.param(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "outcome_unknown",
            "Reload to see whether the change was made",
            "may or may not have been made",
            id="an answer that was lost",
        ),
    ],
)
def test_a_refused_reset_says_what_helps(people, status, code, hint, kept):
    with (
        serving(refusing("/reset-offsets", status, code, "Refused")) as service,
        people(service.state, base=service.address) as visitor,
    ):
        visitor.open(f"{RESET}?panel=reset")
        visitor.press("See what would change")
        shown = visitor.page.get_by_role("dialog").get_by_role("alert")
        expect(shown).to_contain_text(hint, timeout=TIMEOUT_MS)
        expect(shown).to_contain_text(kept)
        expect(shown).not_to_contain_text("Wait for the other change")
        visitor.complaints.clear()


def test_records_that_cannot_be_read_say_how_to_go_on(people):
    refuse = refusing("/messages", HTTPStatus.BAD_GATEWAY, "kafka_unreadable", "Not readable")
    with (
        serving(refuse) as service,
        people(service.state, base=service.address) as visitor,
    ):
        visitor.open(f"/clusters/{CLUSTER}/topics/{TOPIC}")
        shown = visitor.page.get_by_role("alert").filter(has_text="messages could not be read")
        expect(shown).to_contain_text("skip the damaged batch", timeout=TIMEOUT_MS)
        visitor.complaints.clear()
