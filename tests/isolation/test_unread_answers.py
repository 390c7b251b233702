"""Large answers that nobody takes: they keep nothing that other organizations need."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer

from tests.service.traffic import librdkafka_settings
from tests.supervisor.run import wait_until

TOPIC = "large"
RECORDS, RECORD_BYTES = 150, 65_536
# More than the web process has connections to PostgreSQL.
UNREAD = 30
BUFFER_BYTES = 4096
REFUSED = b"HTTP/1.1 503"
# What all large answers of an organization may take, and what Python takes to make one.
MEMORY_MAX_BYTES = 160 << 20


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def web_pid(service) -> int:
    """The process that listens on the web server's port."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"console.programs.web" in command and str(service.http).encode() in command:
            return int(folder.name)
    raise AssertionError("no web server")


def unread(service, path: str, key: str) -> socket.socket:
    """A connection that has asked for an answer and takes none of it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    connection.connect(("127.0.0.1", service.http))
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n"
    connection.sendall(request.encode())
    return connection


def has_status(connection: socket.socket) -> bool:
    """Whether the answer has begun, without taking any of it."""
    try:
        return bool(connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False


def test_answers_that_nobody_takes_keep_nobody_waiting(service, attacker, victim):
    cluster_id = attacker.create_cluster("slow")
    attacker.create_topic(cluster_id, TOPIC, partitions=1)
    producer = Producer(librdkafka_settings(attacker.connect(cluster_id)))
    for _ in range(RECORDS):
        producer.produce(TOPIC, b"x" * RECORD_BYTES)
    assert producer.flush(60) == 0
    made = attacker.call("POST", "/api-keys", {"name": "reader", "role": "reader"}, status=201)
    path = f"/clusters/{cluster_id}/topics/{TOPIC}/messages?limit=500&wake=true"
    size = len(attacker.http.get(path).content)
    assert size > BUFFER_BYTES * 1000
    process = web_pid(service)
    before = resident_bytes(process)
    with ExitStack() as open_connections:
        connections = [
            open_connections.enter_context(unread(service, f"/api/v1{path}", made["secret"]))
            for _ in range(UNREAD)
        ]
        wait_until(lambda: all(map(has_status, connections)), "each answer has begun", 120)
        for _ in range(20):
            victim.call("GET", "/clusters", status=200)
        statuses = [connection.recv(12, socket.MSG_PEEK) for connection in connections]
        assert resident_bytes(process) - before < MEMORY_MAX_BYTES
    # Some are sent, and the others refused.
    assert 0 < statuses.count(REFUSED) < UNREAD
    # What they held is free again.
    wait_until(lambda: attacker.http.get(path).status_code == 200, "a page is read again")
