"""Large answers that are not taken: how many bytes of them a process holds, and for how long."""

import asyncio
import gc
import weakref
from contextlib import asynccontextmanager
from unittest.mock import AsyncMock

import pytest
from asgiref.testing import ApplicationCommunicator

from console.asgi import application
from console.base.common.answers import OVERHEAD_BYTES, SMALL_BYTES, AnswerLimit, HeldAnswers
from console.base.common.paths import PartedHandler
from console.base.common.turn_keys import TurnKeys

LARGE = SMALL_BYTES + 1
COUNTED = LARGE + OVERHEAD_BYTES


class Known(TurnKeys):
    """Each credential is of an organization of its name."""

    def organization_of(self, credential):
        return credential or None


def scope(organization, size, method="GET", status=200):
    return {
        "type": "http",
        "method": method,
        "path": f"/{status}/{size}",
        "headers": [(b"authorization", organization.encode())],
        "client": ("192.0.2.1", 1),
    }


async def serve(scope, _receive, send):
    """Answers with the status and the size that the path names."""
    _, status, size = scope["path"].split("/")
    headers = [(b"content-length", size.encode())]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": b""})


class Answering:
    """Answers, so many large ones of which are held in all, a fourth of it for an organization."""

    def __init__(self, large, taken_within_s=60.0):
        held = HeldAnswers(large * COUNTED, 4)
        self.application = AnswerLimit(
            serve, held=held, taken_within_s=taken_within_s, known=Known()
        )
        self.asked: list[Asked] = []

    async def ask(self, *arguments, **more):
        """Asks for an answer and takes its head; returns the request."""
        asked = Asked(self.application, scope(*arguments, **more))
        self.asked.append(asked)
        await asked.begun.wait()
        return asked

    async def status(self, *arguments, **more):
        return (await self.ask(*arguments, **more)).status


class Asked:
    """A request whose client takes the head of its answer, and the rest once it is `taking`."""

    def __init__(self, application, request):
        self.begun, self.taking = asyncio.Event(), asyncio.Event()
        self.status, self.is_complete = 0, False
        self.task = asyncio.create_task(application(request, None, self._send))

    async def _send(self, event):
        if event["type"] == "http.response.start":
            self.status = event["status"]
            self.begun.set()
        else:
            await self.taking.wait()
            self.is_complete = True

    async def end(self):
        self.taking.set()
        await self.task


@asynccontextmanager
async def answering(*arguments, **more):
    async with asyncio.timeout(30):
        made = Answering(*arguments, **more)
        yield made
        for asked in made.asked:
            await asked.end()


def test_an_organization_holds_a_fourth_of_what_all_may():
    async def crowd():
        async with answering(8) as made:
            asked = [await made.ask("org_one", LARGE) for _ in range(2)]
            assert [request.status for request in asked] == [200, 200]
            assert await made.status("org_one", LARGE) == 503
            assert await made.status("org_one", SMALL_BYTES) == 200
            assert await made.status("org_two", LARGE) == 200
            await asked[0].end()
            assert await made.status("org_one", LARGE) == 200

    asyncio.run(crowd())


def test_what_has_changed_something_is_answered():
    async def crowd():
        async with answering(4) as made:
            assert await made.status("org_one", LARGE) == 200
            assert await made.status("org_one", LARGE, method="POST") == 200
            assert await made.status("org_one", LARGE, method="POST", status=422) == 503

    asyncio.run(crowd())


def test_who_has_none_gets_one_of_any_size():
    async def crowd():
        async with answering(4) as made:
            assert await made.status("org_one", 3 * LARGE) == 200
            assert await made.status("org_one", LARGE) == 503
            # Everybody together have a bound.
            assert await made.status("org_two", 5 * LARGE) == 503

    asyncio.run(crowd())


def test_whoever_has_most_makes_room():
    async def crowd():
        async with answering(8) as made:
            greedy = [await made.ask(f"org_{n}", LARGE) for n in range(4) for _ in range(2)]
            assert {request.status for request in greedy} == {200}
            modest = await made.ask("org_5", LARGE)
            assert modest.status == 200
            # It is the oldest answer of one that has two.
            await greedy[0].task
            assert not any(request.is_complete for request in greedy)
            assert sum(request.task.done() for request in greedy) == 1
            # With as much as anybody else nobody gets more.
            assert await made.status("org_5", LARGE) == 503
            assert sum(request.task.done() for request in greedy) == 1

    asyncio.run(crowd())


def test_what_is_not_taken_in_time_is_broken_off():
    async def late():
        async with answering(4, taken_within_s=0.01 - LARGE / 65_536) as made:
            asked = await made.ask("org_one", LARGE)
            await asked.task
            assert not asked.is_complete
            # Nothing of it is held any more.
            assert await made.status("org_one", LARGE) == 200

    asyncio.run(late())


def test_an_error_of_the_application_is_its_own():
    async def failing(_scope, _receive, _send):
        raise TimeoutError

    with pytest.raises(TimeoutError):
        asyncio.run(
            AnswerLimit(failing, known=Known())(scope("org_one", 1), AsyncMock(), AsyncMock())
        )


@pytest.mark.django_db(transaction=True)
def test_an_answer_is_freed_when_it_is_sent(tenant, monkeypatch):
    sent: list[weakref.ref[object]] = []
    serve_request = PartedHandler._serve

    def serve_noted(handler, request):
        response = serve_request(handler, request)
        sent.append(weakref.ref(response))
        return response

    async def ask():
        request = scope(f"Bearer {tenant.key}", 0)
        request |= {"path": "/api/v1/api-keys", "query_string": b""}
        request["headers"].append((b"host", b"localhost"))
        asked = ApplicationCommunicator(application, request)
        await asked.send_input({"type": "http.request", "body": b""})
        head = await asked.receive_output(60)
        while (await asked.receive_output(60)).get("more_body"):
            pass
        await asked.wait(60)
        return head["status"]

    monkeypatch.setattr(PartedHandler, "_serve", serve_noted)
    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(ask()) == 200
        assert [reference() for reference in sent] == [None]
    finally:
        gc.enable()
