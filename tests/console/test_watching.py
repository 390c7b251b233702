"""Streams that tell a page which of its figures have changed: what they say, to whom, how many."""

import asyncio
import json
import threading
from urllib.parse import quote, urlencode

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator

from console.asgi import application
from console.base.common.concurrency import concurrency
from console.base.common.conf import config
from console.web import watching
from console.web.api import watch
from console.web.watching import DIGEST, digest_of
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient

LIMIT_S = 60
ALERTS = "/api/v1/alerts"
PROJECTS = "/api/v1/projects?limit=100"
# A process serves requests in threads, which see only what is committed.
pytestmark = pytest.mark.django_db(transaction=True)


class Page:
    """A page of the console that is notified of changes."""

    def __init__(self, client, *addresses, pace_s=2):
        entries = [("read", f"{pace_s}:{address}") for address in addresses]
        headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream")]
        cookies = "; ".join(f"{m.key}={m.value}" for m in client.client.cookies.values())
        if cookies:
            headers.append((b"cookie", cookies.encode()))
        if client.key:
            headers.append((b"authorization", f"Bearer {client.key}".encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/api/v1/watch",
            "raw_path": b"/api/v1/watch",
            "query_string": urlencode(entries, quote_via=quote).encode(),
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        self.request = ApplicationCommunicator(application, scope)

    async def open(self):
        """Sends the request; returns the status."""
        await self.request.send_input({"type": "http.request", "body": b""})
        return (await self.request.receive_output(LIMIT_S))["status"]

    async def event(self):
        """Returns the next event, its kind and its data; None for the stream's end."""
        part = await self.request.receive_output(LIMIT_S)
        if not part.get("more_body"):
            return None
        kind, data = part["body"].decode().strip().split("\n")
        return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))

    async def seen(self, number):
        """Waits for the next read of an address; returns its digest."""
        while True:
            kind, data = await self.event()
            if kind == "seen" and str(number) in data:
                return data[str(number)]

    async def leave(self):
        """Goes away, and waits until the server has noticed."""
        await self.request.send_input({"type": "http.disconnect"})
        await self.request.wait(LIMIT_S)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    """Reads as fast as it goes."""
    monkeypatch.setattr(watch, "PACES_S", (0.0, 0.0))


def follow(story, *arguments):
    async def within_limit():
        async with asyncio.timeout(LIMIT_S):
            return await story(*arguments)

    return asyncio.run(within_limit())


def digest_read(client, address):
    """Reads an address as the console does; returns the digest that the answer comes with."""
    answer = client.get(address.removeprefix("/api/v1"), headers={DIGEST: "1"})
    assert answer.status_code == 200
    assert answer[DIGEST] == digest_of(answer.content)
    return answer[DIGEST]


def places(tenant):
    return concurrency().used("watches", tenant.id)


def test_a_page_is_notified_what_is_as_it_was_and_what_has_changed(tenant):
    client = signed_in(tenant.owner)
    alerts, projects = digest_read(client, ALERTS), digest_read(client, PROJECTS)

    async def story():
        page = Page(client, ALERTS, PROJECTS)
        assert await page.open() == 200
        assert await page.event() == ("on", {})
        assert (await page.seen(0), await page.seen(1)) == (alerts, projects)
        created = await sync_to_async(client.post)("/projects", {"name": "Another"})
        assert created.status_code == 201
        while (now := await page.seen(1)) == projects:
            pass
        assert await page.seen(0) == alerts
        await page.leave()
        return now

    assert follow(story) == digest_read(client, PROJECTS)


def test_what_changes_with_every_read_is_left_to_the_page(tenant, monkeypatch):
    digests = iter(range(100))
    monkeypatch.setattr(watching, "digest_of", lambda _: f"{next(digests)}")

    async def story():
        page = Page(ApiClient(tenant.key), ALERTS)
        await page.open()
        said = [await page.seen(0) for _ in range(watching.ALWAYS_CHANGING * 2)]
        await page.leave()
        return said

    assert follow(story) == ["0", "1", "2", None, None, None]


def test_a_list_with_another_page_behind_it_is_left_to_the_page(tenant):
    client = ApiClient(tenant.key)
    assert client.post("/projects", {"name": "Another"}).status_code == 201

    async def story():
        page = Page(client, "/api/v1/projects?limit=1", "/api/v1/nowhere", "/api/v1/openapi.csv")
        await page.open()
        said = [await page.seen(number) for number in range(3)]
        await page.leave()
        return said

    assert follow(story) == [None, None, None]


def test_nobody_is_notified_of_what_is_anothers(tenant, other_tenant):
    mine = digest_read(ApiClient(tenant.key), PROJECTS)
    theirs = digest_read(ApiClient(other_tenant.key), PROJECTS)
    assert mine != theirs

    async def story():
        page = Page(ApiClient(other_tenant.key), PROJECTS)
        await page.open()
        said = await page.seen(0)
        await page.leave()
        return said

    assert follow(story) == theirs


@pytest.mark.parametrize(
    "address",
    [
        "/readyz",
        "/api/v1/clusters/cl_a/topics/t/messages/stream",
        "/api/v1/operations/op_a?wait=10",
        "/api/v1/a b",
        "http://elsewhere.example/api/v1/alerts",
    ],
)
def test_only_short_reads_of_the_api_are_watched(tenant, address):
    assert follow(Page(ApiClient(tenant.key), address).open) == 422


def test_a_page_watches_not_more_than_it_can_show(tenant):
    assert follow(Page(ApiClient(tenant.key)).open) == 422
    many = [ALERTS] * (watch.ADDRESSES_MAX + 1)
    assert follow(Page(ApiClient(tenant.key), *many).open) == 422


def test_whoever_is_not_signed_in_watches_nothing(tenant):
    assert follow(Page(ApiClient(None), ALERTS).open) == 401
    assert follow(Page(ApiClient("fk_wrong"), ALERTS).open) == 401


def test_a_stream_ends_with_its_session(tenant):
    client = signed_in(tenant.owner)

    async def story():
        page = Page(client, ALERTS)
        await page.open()
        assert await page.seen(0)
        await sync_to_async(tenant.owner.sessions.all().delete)()
        while await page.event() is not None:
            pass
        await page.request.wait(LIMIT_S)

    follow(story)


def test_streams_of_an_organization_are_limited(tenant, other_tenant, monkeypatch):
    monkeypatch.setattr("console.base.common.concurrency.limit_of_organization", lambda *_: 1)

    async def story():
        first = Page(ApiClient(tenant.key), ALERTS)
        assert await first.open() == 200
        assert await sync_to_async(places)(tenant) == 1
        refused = Page(ApiClient(tenant.key), ALERTS)
        assert await refused.open() == 429
        problem = json.loads((await refused.request.receive_output(LIMIT_S))["body"])
        another = Page(ApiClient(other_tenant.key), ALERTS)
        assert await another.open() == 200
        await first.leave()
        await another.leave()
        return problem

    problem = follow(story)
    assert problem["quota"] == {"name": "watches", "limit": 1, "used": 1}


def test_a_stream_that_ended_counts_no_more(tenant):
    async def story():
        page = Page(ApiClient(tenant.key), ALERTS)
        await page.open()
        await page.leave()
        while await sync_to_async(places)(tenant):
            pass

    follow(story)


def test_between_its_reads_a_stream_has_neither_thread_nor_connection(tenant, monkeypatch):
    monkeypatch.setattr(watch, "PACES_S", (LIMIT_S, LIMIT_S))

    async def story():
        before = threads()
        pages = [Page(ApiClient(tenant.key), ALERTS) for _ in range(8)]
        for page in pages:
            assert await page.open() == 200
            assert await page.event() == ("on", {})
        # A thread that is given up ends on its own.
        while threads() > before:
            await asyncio.sleep(0)
        for page in pages:
            await page.leave()

    follow(story)


def threads():
    """The threads that serve requests; each has the only connection of its own."""
    return sum("ThreadPoolExecutor" in thread.name for thread in threading.enumerate())


def test_a_request_that_no_server_of_events_sent_is_refused_like_any_other(tenant):
    answer = ApiClient(tenant.key).client.get("/api/v1/watch")
    assert_problem(answer, 401, "not_authenticated")
    assert config().limits.watches > 0
