"""Reads a cluster's consumer groups from its brokers, with the calls of `provisioning.kafka`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from provisioning.kafka import Access, Connection, shared_clients
from provisioning.kafka import sample_groups as sample


def sample_groups(
    bootstrap: str, username: str, password: str, limit_s: float
) -> Sequence[Mapping[str, object]]:
    """The groups of a cluster, as a sample holds them.

    Blocks for at most about `limit_s` seconds. Raises `KafkaCallError`.
    """
    connection = Connection(bootstrap, password, username)
    return sample(Access(shared_clients(), connection), limit_s=limit_s)
