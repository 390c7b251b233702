"""Kafka clients that are kept for a while, because making one costs threads and a handshake.

Admin clients and producers are shared between threads; a consumer belongs to one borrower at a
time. What nobody used for `idle_s` seconds is closed, also where nobody asks for anything again.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from provisioning.kafka.connection import Connection
from provisioning.kafka.errors import RefusedError, kafka_errors

IDLE_S = 60.0
# Together with the borrowed ones; the least recently used goes first.
KEPT_MAX = 64
PRODUCE_TIMEOUT_S = 10.0


@dataclass(eq=False)
class _Kept:
    """A client, and since when it is idle. A shared one may have many users."""

    key: Hashable
    client: Any
    idle_since_s: float
    users: int = 0


@dataclass
class Clients:
    """A cache of clients. Thread-safe. `clock` gives seconds that never go back."""

    idle_s: float = IDLE_S
    kept_max: int = KEPT_MAX
    clock: Callable[[], float] = time.monotonic
    _kept: list[_Kept] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _janitor: threading.Thread | None = None

    @contextmanager
    def admin(self, connection: Connection) -> Iterator[AdminClient]:
        """Lends the connection's admin client, which others may be using too."""
        make = lambda: AdminClient(connection.settings())  # noqa: E731 (one expression)
        with self._lend(("admin", connection), make, shared=True) as client:
            yield client

    @contextmanager
    def producer(self, connection: Connection) -> Iterator[Producer]:
        """Lends the connection's idempotent producer, which others may be using too."""
        make = lambda: Producer(connection.producer_settings(PRODUCE_TIMEOUT_S))  # noqa: E731
        with self._lend(("producer", connection), make, shared=True) as client:
            yield client

    @contextmanager
    def consumer(
        self, connection: Connection, isolation: str = "read_committed"
    ) -> Iterator[Consumer]:
        """Lends a consumer to this borrower alone. It comes without partitions."""
        make = lambda: Consumer(connection.consumer_settings(isolation))  # noqa: E731
        with self._lend(("consumer", isolation, connection), make, shared=False) as client:
            yield client
            # Only after use without an error: a failed consumer is not lent again.
            assign(client, [])

    def close(self) -> None:
        """Closes all that nobody is using."""
        self._close(self._take_idle(lambda _: True))

    def __len__(self) -> int:
        """How many clients there are, lent ones included."""
        with self._changed:
            return len(self._kept)

    @contextmanager
    def _lend(self, key: Hashable, make: Callable[[], Any], *, shared: bool) -> Iterator[Any]:
        kept = self._borrow(key, make, shared=shared)
        try:
            with kafka_errors():
                yield kept.client
        except BaseException as error:
            # A broker's "no" says nothing against the client; after anything else a new one is
            # safer: its broker may have moved, and an idempotent producer may have given up.
            self._give_back(kept, reusable=shared and isinstance(error, RefusedError))
            raise
        self._give_back(kept, reusable=True)

    def _borrow(self, key: Hashable, make: Callable[[], Any], *, shared: bool) -> _Kept:
        with self._changed:
            for kept in self._kept:
                if kept.key == key and (shared or not kept.users):
                    kept.users += 1
                    return kept
            # Made under the lock: it opens no connection yet, and two would be one too many.
            with kafka_errors():
                kept = _Kept(key, make(), self.clock(), users=1)
            self._kept.append(kept)
            self._start_janitor()
        self._close(self._take_idle(self._surplus()))
        return kept

    def _give_back(self, kept: _Kept, *, reusable: bool) -> None:
        with self._changed:
            kept.users -= 1
            kept.idle_since_s = self.clock()
            if not reusable and kept in self._kept:
                self._kept.remove(kept)
            self._changed.notify_all()
            unused = not reusable and not kept.users
        if unused:
            self._close([kept])
        self._close(self._take_idle(self._surplus()))

    def _surplus(self) -> Callable[[_Kept], bool]:
        with self._changed:
            count = len(self._kept) - self.kept_max
            idle = sorted((k.idle_since_s, id(k)) for k in self._kept if not k.users)
        going = {identity for _, identity in idle[: max(count, 0)]}
        return lambda kept: id(kept) in going

    def _take_idle(self, wanted: Callable[[_Kept], bool]) -> list[_Kept]:
        with self._changed:
            taken = [kept for kept in self._kept if not kept.users and wanted(kept)]
            self._kept = [kept for kept in self._kept if kept not in taken]
            self._changed.notify_all()
        return taken

    @staticmethod
    def _close(taken: list[_Kept]) -> None:
        for kept in taken:
            if hasattr(kept.client, "unsubscribe"):
                # The others close when nobody holds them any more.
                kept.client.close()

    def _start_janitor(self) -> None:
        if self._janitor is None or not self._janitor.is_alive():
            self._janitor = threading.Thread(target=self._expire, name="kafka-clients", daemon=True)
            self._janitor.start()

    def _expire(self) -> None:
        """Closes what has been idle too long; ends when nothing is left."""
        while True:
            with self._changed:
                now_s = self.clock()
                taken = self._take_idle(partial(_idle_since, now_s - self.idle_s))
                if not taken:
                    if not self._kept:
                        self._janitor = None
                        return
                    idle = [kept.idle_since_s for kept in self._kept if not kept.users]
                    wait_s = min(idle, default=now_s) + self.idle_s - now_s
                    self._changed.wait(timeout=max(wait_s, 0.01))
            self._close(taken)


def assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    """Gives a consumer other partitions. librdkafka would keep paused what was paused before."""
    consumer.resume(consumer.assignment())
    consumer.assign(partitions)


def take(consumer: Consumer, count: int, timeout_s: float) -> list[Message]:
    """Up to `count` messages, as soon as there is one; none after `timeout_s` seconds."""
    first = consumer.poll(timeout_s)
    # `consume` alone would wait out its time for a batch that is not full.
    return [] if first is None else [first, *consumer.consume(count - 1, timeout=0)]


def _idle_since(moment_s: float, kept: _Kept) -> bool:
    return kept.idle_since_s <= moment_s


@dataclass(frozen=True)
class Access:
    """The brokers of one cluster, through a cache of clients."""

    clients: Clients
    connection: Connection

    def admin(self) -> AbstractContextManager[AdminClient]:
        """Lends an admin client."""
        return self.clients.admin(self.connection)

    def producer(self) -> AbstractContextManager[Producer]:
        """Lends an idempotent producer."""
        return self.clients.producer(self.connection)

    def consumer(self, isolation: str = "read_committed") -> AbstractContextManager[Consumer]:
        """Lends a consumer without partitions."""
        return self.clients.consumer(self.connection, isolation)


_shared: Clients | None = None
_shared_lock = threading.Lock()


def shared_clients() -> Clients:
    """The cache of this process."""
    global _shared  # noqa: PLW0603 (one a process, made when first needed)
    with _shared_lock:
        if _shared is None:
            _shared = Clients()
        return _shared


def _forget_after_fork() -> None:
    """A child has none of the parent's threads, so none of its clients work."""
    global _shared, _shared_lock
    _shared, _shared_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
