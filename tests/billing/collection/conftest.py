"""A service that collects by the fake of Stripe."""

import dataclasses
from datetime import UTC, datetime

import pytest
import stripe
from celery import current_app

from billing.collection import gateway as gateway_module
from console.base.common import rates
from console.base.common.conf import config
from console.programs.stripe_fake.keys import SECRET_KEY, WEBHOOK_SECRET
from console.programs.stripe_fake.server import FakeServer
from tests.billing.collection.world import World, caught_up

AT = datetime(2026, 10, 4, 1, tzinfo=UTC)


@pytest.fixture
def at_once(monkeypatch):
    """Has the client repeat a call without a pause."""
    monkeypatch.setattr(stripe.HTTPClient, "INITIAL_DELAY", 0)
    monkeypatch.setattr(stripe.HTTPClient, "MAX_DELAY", 0)
    gateway_module._answers.cache_clear()
    rates.forget_rates()


@pytest.fixture
def fake(at_once):
    """The fake, which sends no webhooks by itself."""
    server = FakeServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def collector(settings):
    """Sets who collects: `collector("transfer")`."""

    def choose(name, **more):
        known = config()
        billing = dataclasses.replace(known.billing, collector=name, **more)
        settings.FRESHET = dataclasses.replace(known, billing=billing)

    return choose


@pytest.fixture
def by_card(fake, collector):
    """Has the service charge cards, at the fake."""
    collector(
        "stripe",
        stripe_api_key=SECRET_KEY,
        stripe_webhook_secret=WEBHOOK_SECRET,
        stripe_api_base=fake.base,
    )


@pytest.fixture
def world(tenant, clock, fake, by_card):
    """An organization of a service that charges cards."""
    current_app.loader.import_default_modules()
    clock.now = AT
    made = World(fake, clock, tenant.id)
    caught_up()
    return made
