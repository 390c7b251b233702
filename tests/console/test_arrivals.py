"""Requests without a known credential, and for pages and health, are shared out by address."""

import asyncio
import json
import threading

import pytest

from console.base.common import arrivals, health, refusals
from console.base.common.arrivals import ArrivalLimit, Shares
from console.base.common.turn_keys import TurnKeys, scope_credential

PER_S, BURST_S = 10, 1.0
WEBHOOK = "/api/v1/webhooks/some"


class Known(TurnKeys):
    """Knows one credential."""

    def organization_of(self, credential):
        return "org_known" if credential == "Bearer known" else None


def scope(path, *, address="192.0.2.1", method="GET", headers=()):
    return {
        "type": "http",
        "method": method,
        "path": path,
        "headers": list(headers),
        "client": (address, 1),
    }


class Site:
    """The limit in front of an application that answers when `answering` is set."""

    def __init__(self):
        self.answering = asyncio.Event()
        self.inside = 0
        self.inside_most = 0
        self.application = ArrivalLimit(
            self.serve,
            api=Shares("address", PER_S, BURST_S),
            pages=Shares("pages", 2 * PER_S, BURST_S),
            uncounted=[WEBHOOK],
            known=Known(),
        )

    async def serve(self, _scope, _receive, send):
        self.inside += 1
        self.inside_most = max(self.inside, self.inside_most)
        await self.answering.wait()
        self.inside -= 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def ask(self, *arguments, **named):
        """Asks; returns the status, the headers and the body."""
        events = []

        async def send(event):
            events.append(event)

        async def receive():
            return {"type": "http.request"}

        await self.application(scope(*arguments, **named), receive, send)
        start, body = events
        return start["status"], dict(start["headers"]), body["body"]

    async def ask_many(self, size, *arguments, **named):
        """Asks so many times at once; returns how many were answered and how many refused."""
        self.answering.set()
        asked = [self.ask(*arguments, **named) for _ in range(size)]
        statuses = [status for status, _, _ in await asyncio.gather(*asked)]
        assert set(statuses) <= {200, 429}
        return statuses.count(200), statuses.count(429)


@pytest.fixture(autouse=True)
def _refused_at_once(monkeypatch):
    monkeypatch.setattr(refusals, "REFUSED_AFTER_S", 0.0)
    monkeypatch.setattr(arrivals, "WAITS_S", 0.5)


@pytest.mark.parametrize(
    ("path", "per_s"),
    [("/api/v1/session", PER_S), ("/", 2 * PER_S), ("/readyz", 2 * PER_S), (WEBHOOK, 2 * PER_S)],
)
def test_what_is_too_much_waits_and_then_is_refused(path, per_s):
    async def run():
        site = Site()
        # A second's worth at once, and what half a second brings.
        assert await site.ask_many(5 * per_s, path) == (1.5 * per_s, 3.5 * per_s)
        assert await site.ask_many(1, path, address="192.0.2.2") == (1, 0)

    asyncio.run(run())


def test_a_refusal_is_a_problem_with_an_id_of_its_own():
    async def run():
        site = Site()
        site.answering.set()
        return await asyncio.gather(*[site.ask("/api/v1/session") for _ in range(3 * PER_S)])

    ids = set()
    refused = [answer for answer in asyncio.run(run()) if answer[0] != 200]
    for status, headers, body in refused:
        problem = json.loads(body)
        assert (status, problem["code"]) == (429, "rate_limited")
        assert problem["quota"]["name"] == "anonymous_requests_per_second"
        assert headers[b"content-type"] == b"application/problem+json"
        assert int(headers[b"content-length"]) == len(body)
        assert int(headers[b"retry-after"]) >= 1
        assert headers[b"x-request-id"].decode() == problem["request_id"]
        ids.add(problem["request_id"])
    assert len(ids) == len(refused) > 0


def test_who_is_known_goes_by_in_the_api_alone():
    headers = [(b"authorization", b"Bearer known")]

    async def run():
        site = Site()
        assert await site.ask_many(5 * PER_S, "/api/v1/session", headers=headers) == (5 * PER_S, 0)
        assert (await site.ask_many(5 * PER_S, "/", headers=headers))[1] > 0

    asyncio.run(run())


def test_few_reads_of_an_address_are_served_at_a_time():
    async def run():
        site = Site()
        asked = [asyncio.create_task(site.ask("/")) for _ in range(PER_S)]
        other = asyncio.create_task(site.ask("/", address="2001:db8::1"))
        for _ in range(3):
            await asyncio.sleep(0)
        # Of one address two, however many ask, and the one of the other.
        assert site.inside == arrivals.SERVED_MAX + 1
        site.answering.set()
        await asyncio.gather(*asked, other)
        assert site.inside_most == arrivals.SERVED_MAX + 1
        assert not site.application._reads

    asyncio.run(run())


def test_a_request_that_waits_for_long_keeps_no_place(monkeypatch):
    monkeypatch.setattr(arrivals, "COMPUTES_S", 0.01)

    async def run():
        site = Site()
        asked = [asyncio.create_task(site.ask("/")) for _ in range(PER_S)]
        async with asyncio.timeout(30):
            while site.inside < PER_S:
                await asyncio.sleep(0.01)
        site.answering.set()
        await asyncio.gather(*asked)
        # Nothing is given back twice.
        site.answering.clear()
        site.inside_most = 0
        again = [asyncio.create_task(site.ask("/")) for _ in range(4)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert site.inside_most == arrivals.SERVED_MAX
        site.answering.set()
        await asyncio.gather(*again)

    asyncio.run(run())


def test_the_credential_of_a_request_is_its_key_or_session(settings):
    cookie = f"a=b; {settings.SESSION_COOKIE_NAME}=s".encode()
    assert scope_credential(scope("/", headers=[(b"cookie", cookie)])) == "s"
    both = [(b"cookie", cookie), (b"authorization", b"Bearer k")]
    assert scope_credential(scope("/", headers=both)) == "Bearer k"
    assert not scope_credential(scope("/"))


def test_checks_run_once_for_all_who_ask(monkeypatch):
    monkeypatch.setattr(health, "_checks", {})
    runs = []
    begun, going_on = threading.Event(), threading.Event()

    def check():
        runs.append(1)
        begun.set()
        going_on.wait(30)

    health.register_check("slow", check)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(health.recent_parts(timeout_s=30)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    begun.wait(30)
    going_on.set()
    for thread in threads:
        thread.join(30)
    assert len(results) == 8
    assert len(runs) == 1
    health._recent.forget()


KNOWN = [(b"authorization", b"Bearer known")]
BROWSE = "/api/v1/clusters/cl_a/topics/t/messages"


class Refusing(Site):
    """Refuses every request that it is asked to serve, with an error; its clock stands still."""

    def __init__(self, code="too_many_at_once"):
        super().__init__()
        self.code = code
        self.asked = 0
        self.now_s = 0.0
        self.application._refusals = refusals.Refusals(lambda: self.now_s)

    async def serve(self, _scope, _receive, send):
        self.asked += 1
        headers = [(b"retry-after", b"2"), (b"x-request-id", b"req_first"), (b"x-kept", b"yes")]
        await send({"type": "http.response.start", "status": 429, "headers": headers})
        body = json.dumps({"code": self.code, "request_id": "req_first"}).encode()
        await send({"type": "http.response.body", "body": body})


def test_a_refusal_holds_for_as_long_as_it_says():
    async def run():
        site = Refusing()
        await site.ask(BROWSE, headers=KNOWN)
        status, headers, body = await site.ask(BROWSE, headers=KNOWN)
        assert (status, headers[b"retry-after"], headers[b"x-kept"], site.asked) == (
            *(429, b"2", b"yes"),
            1,
        )
        problem = json.loads(body)
        assert problem["request_id"].encode() == headers[b"x-request-id"] != b"req_first"
        site.now_s = 2.0
        await site.ask(BROWSE, headers=KNOWN)
        assert site.asked == 2

    asyncio.run(run())


@pytest.mark.parametrize(
    ("path", "named", "is_same"),
    [
        # However a client varies what it asks for.
        (BROWSE.replace("cl_a", "cl_b").replace("/t/", "/u/"), {}, True),
        (BROWSE, {"method": "POST"}, False),
        ("/api/v1/clusters/cl_a/topics", {}, False),
        (BROWSE, {"headers": [(b"authorization", b"Bearer other")]}, False),
    ],
)
def test_a_refusal_is_of_a_kind_of_requests_of_one_credential(path, named, is_same):
    async def run():
        site = Refusing()
        await site.ask(BROWSE, headers=KNOWN)
        await site.ask(path, **({"headers": KNOWN} | named))
        assert site.asked == (1 if is_same else 2)

    asyncio.run(run())


def test_who_does_not_wait_is_not_refused_with_those_who_do():
    def kind(query):
        return refusals.kind_of(scope("/api/v1/operations/op_1", headers=KNOWN) | query)

    assert kind({"query_string": b"wait=30"}) == kind({"query_string": b"a=b&wait=1"})
    assert kind({"query_string": b"wait=30"}) != kind({})


def test_what_is_refused_by_another_limit_is_asked_again():
    async def run():
        site = Refusing("rate_limited")
        for _ in range(3):
            await site.ask(BROWSE, headers=KNOWN)
        assert site.asked == 3

    asyncio.run(run())


def test_few_refusals_are_remembered(monkeypatch):
    monkeypatch.setattr(refusals, "KEPT_MAX", 2)

    async def run():
        site = Refusing()
        for method in ("GET", "POST", "PUT", "GET"):
            await site.ask(BROWSE, headers=KNOWN, method=method)
        assert site.asked == 4

    asyncio.run(run())
