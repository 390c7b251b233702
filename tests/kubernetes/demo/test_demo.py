"""The parts of the demonstration that need no Kubernetes."""

import socket
import threading

import pytest

from tests.kubernetes.demo import __main__ as demo
from tests.kubernetes.demo.forward import Forwarder
from tests.ports import free_ports


def test_a_machine_that_lacks_something_reports_what(monkeypatch, capsys):
    monkeypatch.setattr(demo, "missing", lambda: ["root", "cgroups that may be written"])
    monkeypatch.setattr("sys.argv", ["demo"])
    assert demo.main() == demo.EXIT_LACKING
    said = capsys.readouterr().err
    assert "  - root\n  - cgroups that may be written\n" in said


@pytest.fixture
def echo():
    """A server that sends everything back twice."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    while piece := connection.recv(100):
                        connection.sendall(piece * 2)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.fixture
def forwarder():
    running = Forwarder()
    yield running
    running.close()


def test_connections_go_on_both_ways_and_end_with_the_client(forwarder, echo):
    (port,) = free_ports(1)
    forwarder.listen(port, lambda: [echo])
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
            client.sendall(b"hello")
            answer = b""
            while len(answer) < 10:
                answer += client.recv(100)
            assert answer == b"hellohello"
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b""


def test_nobody_behind_it_is_an_end_and_no_error(forwarder):
    (port,) = free_ports(1)
    forwarder.listen(port, list)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        assert client.recv(100) == b""
