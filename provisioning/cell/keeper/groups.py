"""Reads a cluster's consumer groups from its brokers, with the calls of `provisioning.kafka`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from provisioning.kafka import Access, Connection, Workers
from provisioning.kafka import sample_groups as sample

# About as many as a cell has awake clusters: a sample by a new worker costs ten times as much as
# one by a worker that is kept.
WORKERS_MAX = 128


def sample_groups(
    bootstrap: str, username: str, password: str, limit_s: float
) -> Sequence[Mapping[str, object]]:
    """The groups of a cluster, as a sample holds them.

    Blocks for at most `limit_s` seconds. Raises `KafkaCallError`.
    """
    return sample(
        Access(_kept_workers(), Connection(bootstrap, password, username)), limit_s=limit_s
    )


@cache
def _kept_workers() -> Workers:
    return Workers(kept_max=WORKERS_MAX)
