"""Reaches the brokers of one cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from brokers import _core
from provisioning.kafka.clients import Clients
from provisioning.kafka.connection import Connection

# Runs a block of a call that computes. See `Access.computing`.
Computing = Callable[[], AbstractContextManager[Callable[[float], None]]]


@dataclass(frozen=True)
class Access:
    """Reaches the brokers of one cluster through one of this process's clients.

    `payer` is the principal for which its calls are metered; None where they are needs of the
    service itself, such as probes and repairs, which nobody pays for. `computes`: in what its calls
    compute; None where they need no turn for it.
    """

    clients: Clients
    connection: Connection
    payer: str | None = None
    computes: Computing | None = None

    def paid_by(self, payer: str | None) -> Access:
        """The same access for calls that a principal pays for (`accounts.principals`)."""
        return replace(self, payer=payer)

    def computing_by(self, computes: Computing) -> Access:
        """The same access for calls that compute in turns of their own."""
        return replace(self, computes=computes)

    @contextmanager
    def computing(self) -> Iterator[Callable[[float], None]]:
        """Runs a block of a call that computes rather than waits.

        What it yields is called after each step of the block, with the seconds that other threads
        computed for it. It may wait there, and at the block's begin, until others have had turns.
        """
        if self.computes is None:
            yield lambda _: None
        else:
            with self.computes() as charge:
                yield charge

    @contextmanager
    def client(self) -> Iterator[_core.KafkaClient]:
        """Lends the cluster's client for one call. See `Clients.lend`."""
        with self.clients.lend(self.connection, self.payer) as client:
            yield client
