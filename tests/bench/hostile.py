"""Attacks of a tenant on what tenants share, each for as long as standard input is open.

`python -m tests.bench.hostile ATTACK TARGET`, where `TARGET` is JSON of `Target`, prints `ready`
when it begins, and at the end one line of JSON: how often which answer came.

Formats: https://kafka.apache.org/protocol.html (SaslHandshake v1, SaslAuthenticate v0, JoinGroup
v2, Metadata v1, Produce v7).
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import socket
import struct
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.attack import Attack
from tests.bench.probe import METADATA, NotServedError, call_api

SASL_HANDSHAKE, SASL_AUTHENTICATE, JOIN_GROUP = 17, 36, 11
ANNOUNCED_BYTES = 512 << 10
METADATA_BYTES = 64 << 10
HELD_S = 0.5
TIMEOUT_S = 60.0
BOMBS_PER_CONNECTION_S = 8 << 20
# What is asked for and not taken: a page of so many records, for so long.
UNREAD_RECORDS, UNREAD_RECORD_BYTES = 64, 64 << 10
UNREAD_BUFFER_BYTES, UNREAD_S = 4096, 10.0


@dataclass(frozen=True)
class Target:
    """Addresses of the shared gateway and web server, and what the attacker has there.

    `bomb` is a file with a batch that decompresses to much; `operation` one that does not end.
    """

    kafka: str
    user: str
    password: str
    web: int
    key: str
    cluster: str
    topic: str
    bomb: str
    operation: str


@dataclass
class Attackers:
    """The threads of an attack, and what they were answered."""

    target: Target
    stopped: threading.Event = field(default_factory=threading.Event)
    answers: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, count: int, step: Callable[[], object]) -> None:
        """Has so many threads repeat a step until the end. An error of the network is counted."""
        for _ in range(count):
            threading.Thread(target=self._repeat, args=(step,), daemon=True).start()

    def _repeat(self, step: Callable[[], object]) -> None:
        while not self.stopped.is_set():
            try:
                answer = str(step())
            except (OSError, NotServedError, http.client.HTTPException) as error:
                answer = type(error).__name__
                self.stopped.wait(HELD_S / 10)
            self.count(answer)

    def count(self, answer: str) -> None:
        """Counts an answer."""
        with self._lock:
            self.answers[answer] += 1

    def connect(self) -> socket.socket:
        """A new connection to the gateway."""
        host, port = self.target.kafka.rsplit(":", 1)
        return socket.create_connection((host, int(port)), TIMEOUT_S)

    def ask(self, method: str, path: str, body: object = None, *, key: bool = True) -> int:
        """The status of the answer to a REST request by a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.target.web, timeout=TIMEOUT_S)
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {self.target.key}"
        with contextlib.closing(connection):
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status


def log_in(connection: socket.socket, user: str, password: str) -> int:
    """Authenticates by PLAIN. Returns the error code; 0 is success."""
    mechanism = b"PLAIN"
    call_api(connection, SASL_HANDSHAKE, 1, struct.pack(">h", len(mechanism)) + mechanism)
    token = f"\0{user}\0{password}".encode()
    body = struct.pack(">i", len(token)) + token
    (code,) = struct.unpack_from(">h", call_api(connection, SASL_AUTHENTICATE, 0, body))
    return int(code)


def _hold(attackers: Attackers, count: int, sent: bytes) -> None:
    """Opens connections that send so little, and opens those again that are closed."""

    def step() -> str:
        with attackers.connect() as connection:
            connection.sendall(sent)
            connection.settimeout(HELD_S)
            while not attackers.stopped.is_set():
                with contextlib.suppress(TimeoutError):
                    return "closed" if connection.recv(1) == b"" else "answered"
        return "held"

    attackers.run(count, step)


def announced_lengths(attackers: Attackers) -> None:
    """Announces requests that never come."""
    _hold(attackers, 128, struct.pack(">i", ANNOUNCED_BYTES))


def idle_connections(attackers: Attackers) -> None:
    """Sends nothing at all."""
    _hold(attackers, 1_000, b"")


def guessed_passwords(attackers: Attackers) -> None:
    """Guesses the password of a user."""
    guesses = itertools.count()

    def step() -> str:
        with attackers.connect() as connection:
            return f"sasl {log_in(connection, attackers.target.user, f'guess-{next(guesses)}')}"

    attackers.run(32, step)


def _authenticated(attackers: Attackers, call: Callable[[socket.socket], object]) -> None:
    """Logs in once a thread and repeats a call."""

    def step() -> str:
        with attackers.connect() as connection:
            if log_in(connection, attackers.target.user, attackers.target.password):
                return "refused"
            while not attackers.stopped.is_set():
                call(connection)
                attackers.count("answered")
        return "ended"

    attackers.run(8, step)


def hostile_groups(attackers: Attackers) -> None:
    """Makes groups with names and metadata that no client would send."""
    numbers = itertools.count()

    def join(connection: socket.socket) -> None:
        group = f"\x01\u202e%s\ud7ff{next(numbers)}".encode()
        kind, protocol, junk = b"\x00weird", b"\x1b[2Jrange", os.urandom(METADATA_BYTES)
        body = struct.pack(">h", len(group)) + group + struct.pack(">ii", 10_000, 1_000)
        body += struct.pack(">h", 0) + struct.pack(">h", len(kind)) + kind + struct.pack(">i", 1)
        body += struct.pack(">h", len(protocol)) + protocol + struct.pack(">i", len(junk)) + junk
        call_api(connection, JOIN_GROUP, 2, body)

    _authenticated(attackers, join)


def largest_answers(attackers: Attackers) -> None:
    """Asks for the metadata of all topics again and again."""
    _authenticated(attackers, lambda c: call_api(c, METADATA, 1, struct.pack(">i", -1)))


def bombs(attackers: Attackers) -> None:
    """Sends batches that decompress to much."""
    target = attackers.target
    attack = Attack(target.kafka, target.topic, Path(target.bomb).read_bytes(), 0)

    def send(connection: socket.socket) -> None:
        call_api(connection, 0, 7, attack.request(0))
        attackers.stopped.wait(len(attack.batch) / BOMBS_PER_CONNECTION_S)

    _authenticated(attackers, send)


def slow_browses(attackers: Attackers) -> None:
    """Has the control plane look through a topic for what is not there."""
    path = f"/api/v1/clusters/{attackers.target.cluster}/topics/{attackers.target.topic}/messages"
    attackers.run(24, lambda: attackers.ask("GET", f"{path}?filter=not-there"))


def wrong_sign_ins(attackers: Attackers) -> None:
    """Signs in with wrong passwords."""
    body = {"email": "nobody@example.com", "password": "a-wrong-password"}
    attackers.run(30, lambda: attackers.ask("POST", "/api/v1/session", body, key=False))


def operation_waits(attackers: Attackers) -> None:
    """Waits for an operation that does not end, many times over."""
    path = f"/api/v1/operations/{attackers.target.operation}?wait=30"
    attackers.run(60, lambda: attackers.ask("GET", path))


def unread_answers(attackers: Attackers) -> None:
    """Asks for pages of large records, by connections that take nothing of what is answered."""
    target = attackers.target
    path = f"/api/v1/clusters/{target.cluster}/topics/{target.topic}/messages"
    for _ in range(UNREAD_RECORDS):
        with contextlib.suppress(OSError, http.client.HTTPException):
            attackers.ask("POST", path, {"value": "x" * UNREAD_RECORD_BYTES, "partition": 0})
    head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {target.key}\r\n\r\n"
    request = f"GET {path}?limit=500&partition=0 HTTP/1.1\r\n{head}".encode()

    def step() -> str:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD_BUFFER_BYTES)
            connection.connect(("127.0.0.1", target.web))
            # The second one waits behind the answer to the first one.
            connection.sendall(2 * request)
            connection.settimeout(TIMEOUT_S)
            status = connection.recv(12, socket.MSG_PEEK).decode()
            attackers.stopped.wait(UNREAD_S)
        return status

    attackers.run(64, step)


ATTACKS: dict[str, Callable[[Attackers], None]] = {
    attack.__name__: attack
    for attack in (
        announced_lengths,
        idle_connections,
        guessed_passwords,
        hostile_groups,
        largest_answers,
        bombs,
        slow_browses,
        wrong_sign_ins,
        operation_waits,
        unread_answers,
    )
}


def main() -> None:
    """Attacks until standard input ends."""
    name, text = sys.argv[1:]
    fields: dict[str, Any] = json.loads(text)
    attackers = Attackers(Target(**fields))
    ATTACKS[name](attackers)
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps(dict(attackers.answers)), flush=True)
    # Requests that are not answered yet are given up.
    os._exit(0)


if __name__ == "__main__":
    main()
