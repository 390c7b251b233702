"""An organization, and a collector."""

import dataclasses
from datetime import UTC, datetime

import pytest

from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from tests.billing.receivables import ledgers

AT = datetime(2026, 10, 4, 1, tzinfo=UTC)


@pytest.fixture
def collector(settings):
    """Sets who collects; with `transfer`, to a bank account."""

    def choose(name, **more):
        known = config()
        account = ("Freshet Ltd", "IBAN DE02 1203 0000 0000 2020 51")
        billing = dataclasses.replace(
            known.billing, collector=name, bank_account=account, payment_terms_days=14, **more
        )
        settings.FRESHET = dataclasses.replace(known, billing=billing)

    return choose


@pytest.fixture
def owner(tenant, clock):
    """The id of an organization; the clock stands."""
    clock.now = AT
    return tenant.id


@pytest.fixture
def in_scope(owner):
    """The organization's scope, for calls of services."""
    return lambda: organization_scope(owner)


@pytest.fixture
def checked(owner):
    """Afterwards PostgreSQL's checks pass, and the ledger agrees."""
    yield
    ledgers.check_now()
    ledgers.require_ledger_agrees(owner)
