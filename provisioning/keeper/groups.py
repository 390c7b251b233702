"""Asks a cluster's brokers for its groups, through the control plane's Kafka functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def sample_groups(bootstrap: str, username: str, password: str) -> Sequence[Mapping[str, object]]:
    """The groups of a cluster as a sample holds them. Waits, and raises of many kinds."""
    # Not at the start: a Kafka client's library is large, and most cells sleep at first.
    from provisioning.kafka import Access, Connection, shared_clients  # noqa: PLC0415
    from provisioning.kafka import sample_groups as sample  # noqa: PLC0415

    return sample(Access(shared_clients(), Connection(bootstrap, password, username)))
