"""The web server's bounds of connections: who is refused, who makes room, how often one is read."""

import asyncio
import contextlib
import functools
import resource
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from console.base.common.bodies import BodyLimit
from console.programs.web import protocol
from console.programs.web import reads as reads_module
from console.programs.web.__main__ import uvicorn_config
from console.programs.web.connections import Connections
from console.programs.web.reads import Reads
from console.programs.web.server import RESERVED_FILES, BoundedServer, connections_max, listen

ONE, OTHER, THIRD = "192.0.2.1", "192.0.2.2", "2001:db8::/64"


@pytest.fixture
def serving():
    return set()


@pytest.fixture
def connections(serving):
    return Connections(most=5, most_of_network=4, is_serving=serving.__contains__)


def add(connections, network, *names):
    for name in names:
        connections.add(network, name)


def test_a_network_has_a_bound(connections):
    add(connections, ONE, "a", "b", "c", "d")
    assert not connections.may_open(ONE, bounded=True)
    # That of a proxy has none.
    assert connections.may_open(ONE, bounded=False)
    assert connections.may_open(OTHER, bounded=True)
    connections.remove(ONE, "b")
    connections.remove(ONE, "b")
    assert (len(connections), connections.may_open(ONE, bounded=True)) == (3, True)


def test_the_newest_of_the_greediest_makes_room(connections, serving):
    add(connections, ONE, "a", "b", "c", "d")
    add(connections, OTHER, "x")
    assert connections.is_full
    assert connections.to_close(THIRD) == "d"
    serving.update("cd")
    assert connections.to_close(THIRD) == "b"
    serving.update("ab")
    assert connections.to_close(THIRD) == "d"
    # It makes no room for itself.
    assert connections.to_close(ONE) is None


def test_among_equals_only_who_serves_nothing_makes_room(connections, serving):
    for number in range(5):
        add(connections, f"192.0.2.{number}", number)
    assert connections.to_close(THIRD) == 0
    serving.add(0)
    assert connections.to_close(THIRD) is None
    assert connections.to_close("192.0.2.1") is None


def test_counts_are_those_of_any_order(connections):
    add(connections, ONE, "a", "b", "c")
    add(connections, OTHER, "x", "y")
    for name in "abc":
        connections.remove(ONE, name)
    assert (connections.of(ONE), connections.of(OTHER), len(connections)) == (0, 2, 2)
    add(connections, THIRD, "k", "l", "m")
    assert connections.to_close(ONE) == "m"
    for name in "klm":
        connections.remove(THIRD, name)
    connections.remove(OTHER, "x")
    connections.remove(OTHER, "y")
    assert len(connections) == 0
    add(connections, ONE, "a")
    assert connections.to_close(OTHER) == "a"


def test_what_an_address_sends_too_often_waits_in_its_order(monkeypatch):
    monkeypatch.setattr(reads_module, "READS_OF_GROUP", 2)
    went_on: list[int] = []

    async def run():
        reads = Reads(per_s=100, at_once=3)
        assert [reads.take(ONE) for _ in range(5)] == [True] * 3 + [False] * 2
        assert reads.take(OTHER)
        over = asyncio.Event()
        began = asyncio.get_running_loop().time()
        for number in range(5):
            reads.wait(ONE, functools.partial(went_on.append, number))
        reads.wait(ONE, over.set)
        # Who comes later does not go first.
        assert not reads.take(ONE)
        async with asyncio.timeout(30):
            await over.wait()
        assert asyncio.get_running_loop().time() - began >= 0.05

    asyncio.run(run())
    assert went_on == [0, 1, 2, 3, 4]


def test_files_are_left_for_the_rest_of_the_process():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert connections_max(1) == 1
    assert connections_max(hard) == hard - min(RESERVED_FILES, hard // 2)
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 400));"
        "from console.programs.web.server import connections_max; print(connections_max(10_000));"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import django; from django.conf import settings;settings.configure(); {program}",
        ],
        capture_output=True,
        check=True,
        text=True,
    )
    assert run.stdout.split() == ["200", "400"]


LARGE = 32 * 1024 * 1024
counted: list[str] = []
GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
GET_LARGE = GET.replace(b"/ ", b"/large ", 1)


async def site(scope, receive, send):
    """Answers at once, or with 32 MiB; notes each request of `/counted`."""
    if scope["path"] == "/counted":
        counted.append(scope["path"])
    body = b"x" * LARGE if scope["path"] == "/large" else b"fine"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextmanager
def running(most=100, of_network_max=100, application=site):
    """Runs the server in a thread; gives its port."""
    listeners = listen("127.0.0.1", 0, 128)
    port = listeners[0].getsockname()[1]
    config = uvicorn.Config(application, lifespan="off", http="h11", ws="none", log_level="warning")
    server = BoundedServer(config, listeners, most=most, of_network_max=of_network_max)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join(60)


def connect(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))


def answers(connection):
    """Whether a request is answered; no answer where the connection was closed."""
    try:
        connection.sendall(GET)
        answer = b""
        while not answer.endswith(b"fine"):
            part = connection.recv(4096)
            if not part:
                return False
            answer += part
    except ConnectionError:
        return False
    return True


def test_connections_beyond_the_bound_of_an_address_are_closed():
    with running(of_network_max=2) as port:
        first, second = connect(port), connect(port)
        assert answers(first)
        assert answers(second)
        assert not answers(connect(port))
        assert answers(connect(port, "127.0.1.2"))
        first.close()
        # The server may notice a moment later.
        deadline = time.monotonic() + 30
        while not answers(connect(port)):
            assert time.monotonic() < deadline


def test_behind_a_proxy_only_the_number_of_all_is_bounded():
    with running(most=4, of_network_max=None) as port:
        kept = [connect(port) for _ in range(4)]
        assert all(answers(connection) for connection in kept)
        assert not answers(connect(port))
        # Another proxy gets the place of the newest.
        assert answers(connect(port, "127.0.1.2"))
        assert [answers(connection) for connection in kept] == [True, True, True, False]


@pytest.mark.parametrize("first", [b"", GET], ids=["first request", "next request"])
def test_the_time_for_a_head_does_not_begin_anew_with_each_byte(monkeypatch, first):
    monkeypatch.setattr(protocol, "HEAD_WITHIN_S", 0.5)
    with running() as port, connect(port) as connection:
        if first:
            assert answers(connection)
        connection.settimeout(0.1)
        got, began = b"", time.monotonic()
        while time.monotonic() - began < 30:
            try:
                connection.sendall(b"G")
                part = connection.recv(4096)
            except TimeoutError:
                continue
            except ConnectionError:
                break
            got += part
            if not part:
                break
        # Beside it, a connection may idle for five seconds between requests.
        assert time.monotonic() - began < 20
        assert not got or got.startswith(b"HTTP/1.1 408 ")


def test_who_takes_nothing_of_an_answer_loses_its_connection(monkeypatch):
    monkeypatch.setattr(protocol, "TAKEN_EVERY_S", 0.3)
    with running() as port, connect(port) as taker, connect(port) as other:
        taker.sendall(GET_LARGE)
        other.sendall(GET_LARGE)
        pace, taken, began = threading.Event(), 0, time.monotonic()
        while taken < LARGE:
            # Slowly, and still fast enough.
            part = taker.recv(1 << 20)
            assert part
            taken += len(part)
            pace.wait(0.02)
        assert time.monotonic() - began > protocol.TAKEN_EVERY_S
        rest = 0
        with contextlib.suppress(ConnectionError):
            while part := other.recv(1 << 20):
                rest += len(part)
        assert rest < LARGE


POST_LARGE = GET_LARGE.replace(b"GET", b"POST").replace(
    b"\r\n\r\n", b"\r\nContent-Length: 4\r\n\r\n"
)


@pytest.mark.parametrize(
    ("first", "rest"), [(GET_LARGE, b""), (POST_LARGE, b"late")], ids=["no body", "late body"]
)
def test_a_request_begins_once_the_answer_before_it_is_taken(first, rest):
    counted.clear()
    with running() as port, connect(port) as connection, connect(port) as other:
        connection.sendall(first)
        # It is complete for the application.
        assert connection.recv(1, socket.MSG_PEEK)
        connection.sendall(rest + GET.replace(b"/ ", b"/counted ", 1))
        assert all(answers(other) for _ in range(100))
        assert counted == []
        taken = b""
        while not taken.endswith(b"fine"):
            taken = taken[-4:] + connection.recv(1 << 20)
        assert counted == ["/counted"]
        # The connection goes on as before.
        assert answers(connection)


@pytest.mark.parametrize("names", [("Content-Length", "Transfer-Encoding"), ("content-length",)])
def test_a_body_whose_end_can_be_read_in_two_ways_is_refused(names):
    counted.clear()
    values = {"content-length": "5", "transfer-encoding": "chunked"}
    heads = "".join(f"{name}: {values[name.lower()]}\r\n" for name in names)
    body = b"0\r\n\r\n" + GET.replace(b"/ ", b"/counted ", 1)
    with running(application=BodyLimit(site, 100)) as port, connect(port) as connection:
        post = f"POST / HTTP/1.1\r\nHost: localhost\r\n{heads}\r\n"
        connection.sendall(post.encode() + body)
        taken = b""
        while part := connection.recv(1 << 20):
            taken += part
            if taken.count(b"fine") == 2:
                break
    if len(names) == 1:
        assert counted == ["/counted"]
        return
    assert taken.startswith(b"HTTP/1.1 400 ")
    assert b'"code": "ambiguous_length"' in taken
    # What follows is not taken for another request.
    assert taken.count(b"HTTP/1.1") == 1
    assert counted == []


def test_forwarded_addresses_count_only_by_the_setting():
    assert not uvicorn_config(1).proxy_headers
