"""A tenant with a month of usage, a clock behind the month, and a store of its own."""

import dataclasses

import pytest
from django.utils import timezone

from console.common.conf import config
from tests.billing import world
from tests.console import conftest as console

tenant, other_tenant, api = console.tenant, console.other_tenant, console.api


@pytest.fixture(autouse=True)
def documents(tmp_path, settings):
    """The store of numbers and documents is this test's own."""
    known = config()
    billing = dataclasses.replace(known.billing, documents=tmp_path / "documents")
    settings.FRESHET = dataclasses.replace(known, billing=billing)
    return tmp_path / "documents"


@pytest.fixture
def clock(monkeypatch):
    """The time is what the test says, at first one at which the month can be invoiced."""

    class Clock:
        now = world.AFTER

    monkeypatch.setattr(timezone, "now", lambda: Clock.now)
    return Clock


@pytest.fixture
def used(tenant, clock):
    """A tenant that used something in the month, all of it published."""
    world.sign_up(tenant.organization)
    cluster = world.make_cluster(tenant.id, "cl_aaaaaaaaaaaaaaaaaaaa", "orders")
    world.publish_month(world.usual_usage(tenant.id, cluster))
    return tenant
