"""Reaches the brokers of one cluster through worker processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from provisioning.kafka.connection import Connection
from provisioning.kafka.workers import Workers

# The time limit of a call, which makes several requests of some seconds each.
LIMIT_S = 30.0


@dataclass(frozen=True)
class Access:
    """Reaches the brokers of one cluster through workers."""

    workers: Workers
    connection: Connection

    def call(
        self,
        name: str,
        *arguments: object,
        limit_s: float = LIMIT_S,
        on_item: Callable[[Any], None] = lambda _: None,
        **options: object,
    ) -> Any:  # noqa: ANN401 (JSON)
        """Calls a worker's function by name. Returns its result as JSON has it.

        `on_item` gets what the function announces before its result.
        """
        return self.workers.call(
            self.connection, name, *arguments, limit_s=limit_s, on_item=on_item, **options
        )
