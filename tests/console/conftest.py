"""Tenants and clients of the API."""

from datetime import timedelta

import pytest

# So that failed assertions in this module show what differs, as those of tests do.
pytest.register_assert_rewrite("tests.console.cases")

from console.base.common.clock import now  # noqa: E402
from tests.console.clients import ApiClient  # noqa: E402
from tests.console.factories import make_tenant  # noqa: E402


@pytest.fixture
def tenant(db):
    """An organization with an owner and a key of each role."""
    return make_tenant("Acme")


@pytest.fixture
def other_tenant(db):
    """Another organization, nothing of which `tenant` may see."""
    return make_tenant("Globex")


@pytest.fixture
def later(monkeypatch):
    """Stops the clock; returns a function that moves it on: `later(seconds=5)`."""
    begin, passed = now(), [timedelta()]
    monkeypatch.setattr("django.utils.timezone.now", lambda: begin + passed[0])

    def move_on(**kwargs):
        passed[0] += timedelta(**kwargs)

    return move_on


@pytest.fixture
def organization(tenant):
    """The organization of `tenant`."""
    return tenant.organization


@pytest.fixture
def api_key(tenant):
    """The secret of an owner's API key of `organization`."""
    return tenant.key


@pytest.fixture
def api(tenant):
    """Makes clients: `api()` has an owner's key, `api(key)` that key, `api(None)` no key."""

    def client(key=tenant.key):
        return ApiClient(key)

    return client
