"""A tenant with a month of usage, a clock after the month, and a store of its own."""

import dataclasses
from datetime import UTC, datetime

import pytest
from django.utils import timezone

from billing.budgets.changes import create_budget
from console.base.common.actor import system_actor
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from tests.billing import world
from tests.console import conftest as console

tenant, other_tenant, api = console.tenant, console.other_tenant, console.api


@pytest.fixture(autouse=True)
def documents(tmp_path, settings):
    """Gives each test its own store of numbers and documents."""
    known = config()
    billing = dataclasses.replace(known.billing, documents=str(tmp_path / "documents"))
    settings.FRESHET = dataclasses.replace(known, billing=billing)
    return tmp_path / "documents"


@pytest.fixture
def vat(settings):
    """Registers the seller for VAT; `rates` are texts of the settings, such as `("DE=19",)`."""

    def charge(*rates):
        known = config()
        billing = dataclasses.replace(
            known.billing, seller_country="DE", seller_vat_id="DE111111111", vat_rates=rates
        )
        settings.FRESHET = dataclasses.replace(known, billing=billing)

    return charge


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets. At first the month can be invoiced."""

    class Clock:
        now = world.AFTER

    monkeypatch.setattr(timezone, "now", lambda: Clock.now)
    return Clock


@pytest.fixture
def missing_days():
    """Days of the month that no roll-up is published of. Tests set their own."""
    return ()


@pytest.fixture
def used(tenant, clock, missing_days):
    """A tenant that used something in the month, all of it published."""
    world.sign_up(tenant.organization)
    cluster = world.make_cluster(tenant.id, "cl_aaaaaaaaaaaaaaaaaaaa", "orders")
    world.publish_month(world.usual_usage(tenant.id, cluster), but=missing_days)
    return tenant


@pytest.fixture
def capped(tenant, clock):
    """A tenant that used as much, $0.60 of it traffic past a suspending budget of a dollar."""
    world.sign_up(tenant.organization)
    cluster = world.make_cluster(tenant.id, "cl_aaaaaaaaaaaaaaaaaaaa", "orders")
    clock.now = datetime(2026, 9, 1, 1, tzinfo=UTC)
    with organization_scope(tenant.id):
        create_budget(
            actor=system_actor(tenant.id),
            name="one dollar",
            amount_minor=100,
            thresholds=[100],
            action="suspend",
        )
    clock.now = world.AFTER
    world.publish_month(world.usual_usage(tenant.id, cluster))
    return tenant
