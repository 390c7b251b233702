"""One service, one browser, one account."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.visitor import Visitor
from tests.supervisor.run import ROOT, Run

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """The path of the system's Chromium."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    assert found, "no Chromium on PATH: apt-get install chromium"
    return found


@pytest.fixture(scope="session")
def service():
    """All of Freshet on an empty home."""
    built = ROOT / "frontend/dist/index.html"
    assert built.is_file(), "the console is not built: npm run build in frontend/"
    # A short path: it holds Unix sockets.
    with tempfile.TemporaryDirectory(prefix="freshet-") as folder:
        run = Run(Path(folder) / "home")
        try:
            yield run.up()
        finally:
            if run.started:
                run.stop()
                run.kill_everything()


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
def account(people):
    """Signs up as a person does; the session's cookies. The first cluster runs when it ends."""
    with people() as visitor:
        visitor.sign_up("Northwind", "mara@northwind.example", "correct horse battery")
        visitor.wait_for_first_cluster()
        return visitor.page.context.storage_state()


@pytest.fixture
def visitor(people, account):
    """A signed-in person at the overview. Fails afterwards if the page complained."""
    with people(account) as visitor:
        visitor.open("/")
        yield visitor


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Runs these tests last, whatever the order of the others is.

    From the first of them to the last an event loop runs in this thread, and what starts one of its
    own would fail.
    """
    here = Path(__file__).parent
    items.sort(key=lambda item: item.path.is_relative_to(here))
