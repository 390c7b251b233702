"""Tenants and clients, as the console's tests have them; a usage store and its agent."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from console.base.common.conf import config
from metering.events.store import FolderUsageStore
from metering.periods import to_ms
from tests.console import conftest as console
from tests.metering.console.files import Agent

tenant, other_tenant, api = console.tenant, console.other_tenant, console.api
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch):
    """The control plane's clock: `clock.now = …`."""

    class Clock:
        now = NOON

    monkeypatch.setattr(timezone, "now", lambda: Clock.now)
    return Clock


@pytest.fixture
def store(tmp_path):
    """An empty usage store."""
    return FolderUsageStore(tmp_path / "usage")


@pytest.fixture
def agent(store):
    """The agent of one cluster, whose broker started at 11:00."""
    return Agent(
        store=store,
        cell=config().cell.id,
        organization_id="org_a",
        cluster_id="cl_a",
        started_at_ms=to_ms(NOON.replace(hour=11)),
    )
