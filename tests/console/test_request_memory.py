"""What a request used is freed at its end, and does not wait for the garbage collector."""

import asyncio
import gc
from collections import Counter

import pytest
from asgiref.testing import ApplicationCommunicator

from console.asgi import application

REQUESTS = 20
# Serializers and their fields refer to each other; a request left four times as much without care.
OBJECTS_MAX = 40


def scope(path, key):
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {key}".encode())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


async def ask(path, key):
    """The status of an answer to a client that closes its connection then."""
    request = ApplicationCommunicator(application, scope(path, key))
    await request.send_input({"type": "http.request", "body": b"", "more_body": False})
    start = await request.receive_output(60)
    await request.receive_output(60)
    await request.send_input({"type": "http.disconnect"})
    await request.wait(60)
    return start["status"]


async def garbage_of(path, key):
    """The statuses of requests, and what they left for the collector, by type."""
    # What the first ones make is kept.
    await ask(path, key)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        statuses = {await ask(path, key) for _ in range(REQUESTS)}
        gc.collect()
        return statuses, Counter(type(left).__qualname__ for left in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("known", "status"), [(True, 200), (False, 401)])
def test_an_answer_and_a_refusal_leave_little(api_key, known, status):
    key = api_key if known else "fk_unknown"
    statuses, left = asyncio.run(garbage_of("/api/v1/clusters", key))
    assert statuses == {status}
    assert left.total() <= OBJECTS_MAX * REQUESTS, left.most_common(20)
