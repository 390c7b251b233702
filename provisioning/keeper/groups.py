"""Asks a cluster's brokers for its groups, through the control plane's Kafka functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provisioning.kafka import Clients

# Clusters of a cell that are awake, at most times: another client for each sample costs a hundred
# times as much as one that is kept.
CLIENTS_MAX = 1024


def sample_groups(bootstrap: str, username: str, password: str) -> Sequence[Mapping[str, object]]:
    """The groups of a cluster as a sample holds them. Waits, and raises of many kinds."""
    # Not at the start: a Kafka client's library is large, and most cells sleep at first.
    from provisioning.kafka import Access, Connection  # noqa: PLC0415
    from provisioning.kafka import sample_groups as sample  # noqa: PLC0415

    return sample(Access(_clients(), Connection(bootstrap, password, username)))


@cache
def _clients() -> Clients:
    from provisioning.kafka import Clients  # noqa: PLC0415

    return Clients(kept_max=CLIENTS_MAX)
