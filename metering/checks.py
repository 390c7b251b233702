"""The meter's check for `/readyz`."""

from __future__ import annotations

from datetime import timedelta

from console.base.common.clock import now
from console.base.common.conf import config
from metering.services.status import ingest_lag

# Limits well above the usual: a pass runs every 15 s, and an agent writes a file each minute.
INGEST_EVERY = timedelta(minutes=5)
FILES_EVERY = timedelta(minutes=15)


class IngestStopped(Exception):
    """No ingest pass has ended for `INGEST_EVERY`: look at the workers, their queue, and the usage
    store."""


class AgentSilent(Exception):
    """No usage file came for `FILES_EVERY`: look at the metering agent."""


def check_metering() -> None:
    """Checks that usage files come and are taken in. Raises `IngestStopped` or `AgentSilent`."""
    at = now()
    ran_at, lag = ingest_lag(config().cell.id, at)
    if ran_at is not None and at - ran_at > INGEST_EVERY:
        raise IngestStopped
    if lag is not None and lag > FILES_EVERY:
        raise AgentSilent
