"""One browser and one account on the service that all tests share."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.bookkeeping import issue_invoice, roll_up
from tests.browser.clients import run_in_shell
from tests.browser.visitor import CLUSTER, TIMEOUT_MS, TOPIC, Visitor
from tests.service.running import wait_with_tasks
from tests.supervisor.run import ROOT, wait_until

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The path of the system's Chromium."""
    path_of_program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    assert path_of_program, "no Chromium on PATH: apt-get install chromium"
    return path_of_program


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window."""
    with sync_playwright() as playwright:
        # Without its sandbox, which a container's root cannot have: it sees our pages only.
        launched = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def people(service, browser):
    """Makes a person with a window of its own, who must have had no complaint at the end."""
    built = ROOT / "frontend/dist/index.html"
    assert built.is_file(), "the console is not built: npm run build in frontend/"

    @contextlib.contextmanager
    def person(state=None, **options):
        context = browser.new_context(
            base_url=service.address, storage_state=state, reduced_motion="reduce", **options
        )
        visitor = Visitor(context.new_page())
        try:
            yield visitor
            visitor.assert_no_complaints()
        finally:
            context.close()

    return person


@pytest.fixture(scope="session")
def account(people, service):
    """Signs up as a person does, and waits for the first cluster; returns the session's cookies."""
    with people() as visitor:
        visitor.sign_up("Northwind", "mara@northwind.example", "correct horse battery")
        visitor.wait_for_first_cluster()
        # From then on this browser may read the local mail.
        visitor.open(service.mail_page)
        visitor.sees("Confirm your address")
        return visitor.page.context.storage_state()


@pytest.fixture
def visitor(people, account):
    """A signed-in person at the overview. Fails afterwards if the page complained."""
    with people(account) as visitor:
        visitor.open("/")
        yield visitor


@dataclass(frozen=True)
class Counted:
    """Usage that is metered: who produced what, and since when."""

    cluster: str
    topic: str
    credential: str
    since: datetime


@pytest.fixture(scope="session")
def counted(people, account, service):
    """Produces with a credential of its own, and waits until the console shows that.

    The cluster sleeps then, as a lane is metered when it ends; whoever connects next wakes it.
    """
    with people(account) as visitor:
        visitor.open("/")
        visitor.enter_cluster()
        since = datetime.now(UTC)
        username, _ = visitor.create_credential("web-shop", "Full")
        visitor.open_tab("Connect")
        produce = visitor.snippet("kcat", "Produce")
        for _ in range(3):
            pasted = run_in_shell(produce)
            assert pasted.returncode == 0, pasted.stderr
        visitor.put_to_sleep()
        counted = f"/usage?principal=User:{username}&meter=ingress_bytes"
        wait_with_tasks(
            service,
            ("metering.ingest_usage",),
            lambda: visitor.read(counted)["items"] != [],
            "usage is counted",
            TIMEOUT_MS / 1000,
        )
        visitor.wake()
        visitor.open("/usage?range=1h&by=principal")
        totals = visitor.page.get_by_role("table", name="Usage by credential")
        row = totals.get_by_role("row").filter(has_text="web-shop")
        expect(row).to_be_visible(timeout=TIMEOUT_MS)
    return Counted(CLUSTER, TOPIC, "web-shop", since)


@dataclass(frozen=True)
class Issued:
    """An issued invoice, of a month that was closed early."""

    id: str
    number: str
    reason: str


@pytest.fixture(scope="session")
def invoice(people, account, service, counted):
    """Rolls up what was counted and issues the month's invoice, as somebody at a terminal does."""
    reason = "to be seen in a browser"
    with people(account) as visitor:
        request = visitor.page.request
        organization = request.get("/api/v1/session").json()["organization"]["id"]
        roll_up(service, counted.since.date(), datetime.now(UTC).date())
        issue_invoice(service, organization, f"{counted.since:%Y-%m}", reason)

        def newest():
            return request.get("/api/v1/invoices").json()["items"][0]

        wait_until(lambda: newest()["sha256"] is not None, "the invoice's PDF is made")
        return Issued(newest()["id"], newest()["number"], reason)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Runs these tests last, whatever the order of the others is.

    From the first of them to the last an event loop runs in this thread, and what starts one of its
    own would fail.
    """
    here = Path(__file__).parent
    items.sort(key=lambda item: item.path.is_relative_to(here))
