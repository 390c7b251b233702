"""Asks a cluster's brokers for its groups, through the control plane's Kafka functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from provisioning.kafka import Access, Connection, Workers
from provisioning.kafka import sample_groups as sample

# Clusters of a cell that are awake, at most times: another worker for each sample costs ten times
# as much as one that is kept.
WORKERS_MAX = 128


def sample_groups(
    bootstrap: str, username: str, password: str, limit_s: float
) -> Sequence[Mapping[str, object]]:
    """The groups of a cluster as a sample holds them, within `limit_s` seconds.

    Waits. Raises `KafkaCallError`.
    """
    return sample(Access(_workers(), Connection(bootstrap, password, username)), limit_s=limit_s)


@cache
def _workers() -> Workers:
    return Workers(kept_max=WORKERS_MAX)
