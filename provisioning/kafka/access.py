"""Reaches the brokers of one cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from brokers import _core
from provisioning.kafka.clients import Clients
from provisioning.kafka.connection import Connection


@dataclass(frozen=True)
class Access:
    """Reaches the brokers of one cluster through one of this process's clients.

    `payer` is the principal for which its calls are metered; None where they are needs of the
    service itself, such as probes and repairs, which nobody pays for.
    """

    clients: Clients
    connection: Connection
    payer: str | None = None

    def paid_by(self, payer: str | None) -> Access:
        """The same access for calls that a principal pays for (`accounts.principals`)."""
        return replace(self, payer=payer)

    @contextmanager
    def computing(self) -> Iterator[Callable[[float], None]]:
        """Runs a block of a call that computes rather than waits.

        What it yields is called with the seconds that other threads computed for the block.
        """
        yield lambda _: None

    @contextmanager
    def client(self) -> Iterator[_core.KafkaClient]:
        """Lends the cluster's client for one call. See `Clients.lend`."""
        with self.clients.lend(self.connection, self.payer) as client:
            yield client
