"""Clients that send the same batch to a broker again and again, until standard input ends.

`python -m tests.bench.attack ADDRESS TOPIC BATCH_FILE CONNECTIONS BYTES_PER_S` prints `ready` when
it begins. Each connection has a partition of its own and one request under way. All together send
at most so many bytes a second, so that small batches which decompress to a lot are measured, and
not a full disk. At the end it prints one line of JSON: how many batches were answered by each error
code (0: acknowledged), and how many were not answered because the broker closed the connection.

Format: https://kafka.apache.org/protocol.html (Produce v7).
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.probe import NotServedError, call_api

PRODUCE = 0
PRODUCE_VERSION = 7
ACKS_ALL = -1
ACK_TIMEOUT_MS = 30_000
ANSWER_SECONDS = 600.0
RETRY_S = 0.1
CLOSED = "closed"
# Of an answer: one topic with its name, one partition with its number, and then the error code.
TOPICS_BYTES, NAME_LENGTH_BYTES, PARTITIONS_BYTES, NUMBER_BYTES = 4, 2, 4, 4


@dataclass
class Attack:
    """The clients together: when the next of them may send, and what they were answered."""

    address: str
    topic: str
    batch: bytes
    bytes_per_s: int
    answers: Counter[str] = field(default_factory=Counter)
    stopped: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _free_at: float = 0.0

    def send_from(self, partition: int) -> None:
        """Sends to a partition until `stopped` is set, by one connection after another."""
        while not self.stopped.is_set():
            try:
                self._send_while_open(partition)
            except (OSError, NotServedError):
                self._count(CLOSED)
                self.stopped.wait(RETRY_S)

    def _send_while_open(self, partition: int) -> None:
        request = self.request(partition)
        host, port = self.address.rsplit(":", 1)
        error_at = TOPICS_BYTES + NAME_LENGTH_BYTES + len(self.topic) + PARTITIONS_BYTES
        with socket.create_connection((host, int(port)), ANSWER_SECONDS) as connection:
            while not self.stopped.is_set():
                self._wait_for_turn()
                answer = call_api(connection, PRODUCE, PRODUCE_VERSION, request)
                (error,) = struct.unpack_from(">h", answer, error_at + NUMBER_BYTES)
                self._count(str(error))

    def request(self, partition: int) -> bytes:
        """A request with the batch for a partition."""
        name = self.topic.encode()
        head = struct.pack(">hhiih", -1, ACKS_ALL, ACK_TIMEOUT_MS, 1, len(name))
        return head + name + struct.pack(">iii", 1, partition, len(self.batch)) + self.batch

    def _wait_for_turn(self) -> None:
        with self._lock:
            turn = max(self._free_at, time.monotonic())
            self._free_at = turn + len(self.batch) / self.bytes_per_s
        self.stopped.wait(max(0.0, turn - time.monotonic()))

    def _count(self, answer: str) -> None:
        with self._lock:
            self.answers[answer] += 1


def main() -> None:
    """Sends until standard input ends."""
    address, topic, file, connections, bytes_per_s = sys.argv[1:]
    attack = Attack(address, topic, Path(file).read_bytes(), int(bytes_per_s))
    print("ready", flush=True)
    for partition in range(int(connections)):
        threading.Thread(target=attack.send_from, args=(partition,), daemon=True).start()
    sys.stdin.read()
    print(json.dumps(dict(attack.answers)), flush=True)
    # Requests that are not answered yet are given up.
    os._exit(0)


if __name__ == "__main__":
    main()
