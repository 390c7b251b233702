"""The Kafka clients of this process, one for each connection, and the limits of their calls.

What brokers send is decoded in Rust, within bounds (`brokers/core/crates/client`). A call holds no
lock of the interpreter while it waits, and a signal ends it.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from brokers import _core
from provisioning.kafka.connection import CLIENT_ID, Connection
from provisioning.kafka.errors import BusyError, kafka_errors

# How many calls may be made at a time, live tails included: of all clusters together, and of one.
CALLS_MAX = 256
CALLS_MAX_CLUSTER = 32
# How many clients are kept. A client without a call has no connection after half a minute, so it is
# some kilobytes; of more, the one that was used longest ago is dropped.
KEPT_MAX = 1_024


@dataclass
class Clients:
    """The clients of this process. It is thread-safe."""

    calls_max: int = CALLS_MAX
    calls_max_cluster: int = CALLS_MAX_CLUSTER
    _kept: OrderedDict[Connection, _core.KafkaClient] = field(default_factory=OrderedDict)
    _calls: Counter[Connection] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def lend(self, connection: Connection, payer: str | None = None) -> Iterator[_core.KafkaClient]:
        """Lends the client of a connection for one call, whose errors it raises as our own.

        `payer` is the principal that pays for the call; None where the service needs it itself.
        Raises `BusyError` where too many calls are being made, and any `KafkaCallError` of the
        block.
        """
        with self._counted(connection), kafka_errors():
            client = self._client(connection)
            yield client if payer is None else client.paid_by(payer)

    @contextmanager
    def _counted(self, connection: Connection) -> Iterator[None]:
        with self._lock:
            calls, of_cluster = self._calls.total(), self._calls[connection]
            if calls >= self.calls_max or of_cluster >= self.calls_max_cluster:
                detail = f"{calls} calls are made, {of_cluster} of the cluster"
                raise BusyError("TOO_MANY_CALLS", detail)
            self._calls[connection] += 1
        try:
            yield
        finally:
            with self._lock:
                self._calls[connection] -= 1
                if not self._calls[connection]:
                    del self._calls[connection]

    def _client(self, connection: Connection) -> _core.KafkaClient:
        with self._lock:
            client = self._kept.get(connection)
            if client is None:
                client = _core.KafkaClient(
                    connection.bootstrap.split(","),
                    user=connection.username,
                    password=connection.password,
                    mechanism=connection.mechanism,
                    client_id=CLIENT_ID,
                )
                self._kept[connection] = client
            self._kept.move_to_end(connection)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        return client


_shared: Clients | None = None
_shared_lock = threading.Lock()


def shared_clients() -> Clients:
    """The clients of this process, which are created at the first call."""
    global _shared  # noqa: PLW0603 (one a process)
    with _shared_lock:
        if _shared is None:
            _shared = Clients()
        return _shared


def _forget_after_fork() -> None:
    """Begins anew in a forked child: connections and threads belong to its parent."""
    global _shared, _shared_lock
    _shared, _shared_lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
