"""The limit on the length of a request's body."""

import asyncio
import json

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings

from console.asgi import application
from console.base.common.bodies import BodyLimit, HeldBodies

CHUNK = 64 * 1024
# Signing in queries the database.
pytestmark = pytest.mark.django_db(transaction=True)


def scope(path, address="127.0.0.1"):
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "client": (address, 1),
        "server": ("127.0.0.1", 80),
    }


async def send_chunks(chunks):
    """Sends a body in chunks of unknown length; returns status and JSON of the answer."""
    request = ApplicationCommunicator(application, scope("/api/v1/session"))
    for number, chunk in enumerate(chunks, start=1):
        more = number < len(chunks)
        await request.send_input({"type": "http.request", "body": chunk, "more_body": more})
    start = await request.receive_output(60)
    body = await request.receive_output(60)
    await request.wait(60)
    return start["status"], json.loads(body["body"])


def test_a_body_of_unknown_length_has_a_limit():
    chunks = [b" " * CHUNK] * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE // CHUNK + 1)
    status, problem = asyncio.run(send_chunks(chunks))
    assert (status, problem["code"]) == (413, "body_too_large")


def test_a_body_within_the_limit_is_read_whole():
    text = json.dumps({"email": "x"}).encode()
    room = settings.DATA_UPLOAD_MAX_MEMORY_SIZE - len(text)
    status, problem = asyncio.run(
        send_chunks([text, b" " * (room // 2), b" " * (room - room // 2)])
    )
    assert (status, problem["code"]) == (422, "validation_failed")


class Held:
    """A limit of 800 bytes in all, in front of an application that reads bodies and then waits."""

    def __init__(self, *, arrives_within_s=60):
        self.answering = asyncio.Event()
        self.application = BodyLimit(
            self.read, 500, held=HeldBodies(800), arrives_within_s=arrives_within_s
        )

    async def read(self, _scope, receive, send):
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                return
            if not event["more_body"]:
                break
        await self.answering.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def send(self, address, size, *, more=False):
        """A request with so many bytes of a body, of which `more` may be to come."""
        request = ApplicationCommunicator(self.application, scope("/", address))
        await request.send_input({"type": "http.request", "body": b" " * size, "more_body": more})
        return request


async def answered(request):
    start = await request.receive_output(60)
    body = await request.receive_output(60)
    await request.wait(60)
    return start["status"], json.loads(body["body"]).get("detail")


REFUSED = (503, "Too many bodies of requests are being received.")


def test_an_address_holds_an_eighth_of_what_all_may():
    async def crowd():
        held = Held()
        first = await held.send("192.0.2.1", 90, more=True)
        neighbour = await held.send("192.0.2.2", 90)
        network = await held.send("2001:db8::1", 90, more=True)
        # Not even the connection that began: its bytes are more than a share now.
        for address in ("192.0.2.1", "2001:db8::2"):
            assert await answered(await held.send(address, 20, more=True)) == REFUSED
        await first.send_input({"type": "http.request", "body": b" " * 20, "more_body": True})
        assert await answered(first) == REFUSED
        # What it held is free again.
        again = await held.send("192.0.2.1", 90)
        held.answering.set()
        assert await answered(neighbour) == await answered(again) == (200, None)
        await network.send_input({"type": "http.disconnect"})
        await network.wait(60)

    asyncio.run(crowd())


def test_all_together_hold_so_much():
    async def crowd():
        held = Held()
        requests = [await held.send(f"192.0.2.{number}", 100) for number in range(8)]
        assert await answered(await held.send("192.0.2.9", 1)) == REFUSED
        # A request without a body is served.
        bare = await held.send("192.0.2.9", 0)
        held.answering.set()
        assert {(await answered(request))[0] for request in [*requests, bare]} == {200}
        assert (await answered(await held.send("192.0.2.9", 100)))[0] == 200

    asyncio.run(crowd())


def test_the_loopback_has_no_share_by_address():
    async def crowd():
        held = Held()
        held.answering.set()
        assert (await answered(await held.send("127.0.0.1", 400)))[0] == 200

    asyncio.run(crowd())


def test_a_body_arrives_within_a_time():
    async def late():
        held = Held(arrives_within_s=0.05)
        request = await held.send("192.0.2.1", 10, more=True)
        late = (503, "The request's body did not arrive in time.")
        assert await answered(request) == late
        # Once it is there, the answer may take longer.
        complete = await held.send("192.0.2.1", 90)
        await answered(await held.send("192.0.2.2", 10, more=True))
        held.answering.set()
        assert (await answered(complete))[0] == 200

    asyncio.run(late())
