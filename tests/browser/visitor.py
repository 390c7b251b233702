"""What a person does in the console."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import ConsoleMessage, Locator, Page, Response, expect

from tests.supervisor.run import wait_until

CLUSTER = "first-cluster"
TOPIC = "hello-freshet"
# The machine may be busy with other suites.
TIMEOUT_MS = 60_000


class Visitor:
    """A person at a page, with the errors that the page has logged or thrown."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: self.complaints.append(f"thrown: {error}"))
        page.on("console", self._heard)
        page.on("response", self._answered)

    def _heard(self, message: ConsoleMessage) -> None:
        # A refused request is also a console message; the answer itself is looked at instead.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.complaints.append(f"console: {message.text}")

    def _answered(self, response: Response) -> None:
        if response.status >= 500:
            self.complaints.append(f"{response.status}: {response.request.method} {response.url}")

    def assert_no_complaints(self) -> None:
        """Checks that the page threw nothing and no request failed in the server."""
        assert not self.complaints, self.complaints

    def open(self, path: str) -> None:
        """Goes to an address of the console and waits for its frame."""
        self.page.goto(path)
        expect(self.page.get_by_role("navigation", name="Main")).to_be_visible(timeout=TIMEOUT_MS)

    def sees(self, text: str | re.Pattern[str], *, within: Locator | None = None) -> None:
        """Waits until the text is there."""
        scope: Page | Locator = within or self.page
        expect(scope.get_by_text(text).first).to_be_visible(timeout=TIMEOUT_MS)

    def press(self, name: str, *, exact: bool = True) -> None:
        """Presses the button of this name."""
        self.page.get_by_role("button", name=name, exact=exact).click()

    def press_above_list(self, name: str) -> None:
        """Presses the button above a list, which an empty one offers once more."""
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def follow(self, name: str) -> None:
        """Follows the link of this name."""
        self.page.get_by_role("link", name=name, exact=True).click()

    def sign_up(self, organization: str, email: str, password: str) -> None:
        """Signs up, beginning at the address that a new person opens first."""
        self.page.goto("/")
        self.follow("Sign up")
        self.page.get_by_label("Organization").fill(organization)
        self.page.get_by_label("Mail address").fill(email)
        self.page.get_by_label("Password", exact=True).fill(password)
        self.press("Sign up")
        expect(self.page.get_by_role("heading", name=organization)).to_be_visible(
            timeout=TIMEOUT_MS
        )

    def wait_for_first_cluster(self) -> None:
        """Waits until the cluster that comes with the account runs, and its topic is there."""
        row = self.page.get_by_role("row").filter(has_text=CLUSTER)
        expect(row.get_by_text("Running")).to_be_visible(timeout=TIMEOUT_MS)
        expect(self.page.get_by_role("link", name=f"Watch {TOPIC} live")).to_be_visible(
            timeout=TIMEOUT_MS
        )

    def enter_cluster(self, tab: str | None = None) -> None:
        """Goes to the first cluster, and there to a tab."""
        self.page.get_by_role("navigation", name="Main").get_by_role(
            "link", name="Clusters"
        ).click()
        self.page.get_by_role("table", name="Clusters").get_by_role("link", name=CLUSTER).click()
        if tab is not None:
            self.open_tab(tab)

    def open_tab(self, tab: str) -> None:
        """Goes to a tab of the cluster whose page is open."""
        self.page.get_by_role("navigation", name="Cluster", exact=True).get_by_role(
            "link", name=tab, exact=True
        ).click()

    def watch_live(self) -> None:
        """Watches the topic whose page is open; wakes the cluster if nobody used it for long."""
        self.page.get_by_text("Live", exact=True).first.click()
        live = self.page.get_by_text("Live: new messages appear as they are written").first
        wake = self.page.get_by_role("button", name="Wake it and read")
        expect(live.or_(wake)).to_be_visible(timeout=TIMEOUT_MS)
        if wake.is_visible():
            wake.click()
            expect(live).to_be_visible(timeout=TIMEOUT_MS)

    def create_credential(self, name: str, role: str) -> tuple[str, str]:
        """Makes a credential on its tab; returns user name and password, which are shown once."""
        self.open_tab("Credentials")
        self.press_above_list("New credential")
        panel = self.page.get_by_role("dialog", name="New credential")
        panel.get_by_label("Name", exact=True).fill(name)
        panel.get_by_role("radio", name=role, exact=True).check()
        panel.get_by_role("button", name="Create credential").click()
        expect(panel.get_by_text("Copy it now.")).to_be_visible(timeout=TIMEOUT_MS)
        username, password, _ = panel.locator("code").all_inner_texts()
        panel.get_by_role("button", name="I have copied it").click()
        expect(panel).to_be_hidden()
        return username, password

    def read(self, path: str) -> Any:  # noqa: ANN401
        """Reads a path of REST as this person; returns the decoded answer."""
        answer = self.page.request.get(f"/api/v1{path}")
        assert answer.ok, answer.text()
        return answer.json()

    def put_to_sleep(self) -> None:
        """Puts the cluster whose page is open to sleep, which ends its lanes."""
        self._command("sleep")

    def wake(self) -> None:
        """Wakes the cluster whose page is open."""
        self._command("wake")

    def _command(self, verb: str) -> None:
        """Starts an operation and waits for its end, before which no other one may begin."""
        match = re.search(r"/clusters/cl_\w+", self.page.url)
        assert match, self.page.url
        operation = self.change("POST", f"{match[0]}:{verb}")
        address = f"/operations/{operation['id']}?wait=10"
        wait_until(lambda: self.read(address)["state"] == "succeeded", f"{verb} succeeds")

    def change(self, method: str, path: str, data: object = None) -> Any:  # noqa: ANN401
        """Changes something by REST as this person; returns the decoded answer, if any."""
        cookies = {cookie["name"]: cookie["value"] for cookie in self.page.context.cookies()}
        answer = self.page.request.fetch(
            f"/api/v1{path}",
            method=method,
            data=data,
            headers={"X-CSRFToken": cookies["freshet_csrf"], "Referer": self.page.url},
        )
        assert answer.ok, answer.text()
        return answer.json() if answer.body() else None

    def create_budget(self, name: str, amount: str) -> None:
        """Makes a budget that sends mail, with the thresholds that the form proposes."""
        self.open("/usage/budgets?panel=new")
        panel = self.page.get_by_role("dialog", name="New budget")
        panel.get_by_label("Name", exact=True).fill(name)
        panel.get_by_label("Amount a month, USD").fill(amount)
        panel.get_by_role("button", name="Create budget").click()
        expect(panel).to_be_hidden(timeout=TIMEOUT_MS)

    def snippet(self, language: str, title: str) -> str:
        """The code of a block on the connect page, as it would be copied."""
        self.page.get_by_role("tab", name=language).click()
        return self.page.get_by_test_id(f"code {title}").inner_text().replace("\u00a0", " ")
