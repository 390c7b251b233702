"""Reaches the brokers of one cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from brokers import _core
from provisioning.kafka.clients import Clients
from provisioning.kafka.connection import Connection


@dataclass(frozen=True)
class Access:
    """Reaches the brokers of one cluster through one of this process's clients."""

    clients: Clients
    connection: Connection

    @contextmanager
    def client(self) -> Iterator[_core.KafkaClient]:
        """Lends the cluster's client for one call. See `Clients.lend`."""
        with self.clients.lend(self.connection) as client:
            yield client
