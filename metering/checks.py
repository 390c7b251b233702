"""The meter's check for `/readyz`."""

from __future__ import annotations

from datetime import timedelta

from console.base.common.clock import now
from console.base.common.conf import config
from metering.services.status import ingest_lag

# A pass runs every 15 s; an agent writes a file a minute.
INGEST_EVERY = timedelta(minutes=5)
FILES_EVERY = timedelta(minutes=15)


class IngestStopped(Exception):
    """No pass has ended for a while: workers or their queue are away, or the usage store is."""


class AgentSilent(Exception):
    """No usage file came for a while: the metering agent is away."""


def check_metering() -> None:
    """Usage is taken in, and there is some to take in. Raises; the name says what is wrong."""
    at = now()
    ran_at, lag = ingest_lag(config().cell.id, at)
    if ran_at is not None and at - ran_at > INGEST_EVERY:
        raise IngestStopped
    if lag is not None and lag > FILES_EVERY:
        raise AgentSilent
