"""The limit on the length of a request's body."""

import asyncio
import json

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings

from console.asgi import application

CHUNK = 64 * 1024
# Signing in queries the database.
pytestmark = pytest.mark.django_db(transaction=True)


def scope(path):
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
        "client": ("127.0.0.1", 1),
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
