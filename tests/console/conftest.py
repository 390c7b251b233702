"""Tenants and clients of the API."""

from datetime import timedelta

import pytest

# Its assertions say what differs, as a test's own do.
pytest.register_assert_rewrite("tests.console.cases")

from console.base.common.clock import now  # noqa: E402
from tests.console.clients import ApiClient  # noqa: E402
from tests.console.factories import make_tenant  # noqa: E402


@pytest.fixture
def tenant(db):
    """An organisation with an owner and a key of each role."""
    return make_tenant("Acme")


@pytest.fixture
def other_tenant(db):
    """Another organisation, whose things `tenant` must not see."""
    return make_tenant("Globex")


@pytest.fixture
def later(monkeypatch):
    """The clock stands still, but for what the test says: `later(seconds=5)`."""
    begin, passed = now(), [timedelta()]
    monkeypatch.setattr("django.utils.timezone.now", lambda: begin + passed[0])

    def go_on(**kwargs):
        passed[0] += timedelta(**kwargs)

    return go_on


@pytest.fixture
def organization(tenant):
    """The organisation of `tenant`."""
    return tenant.organization


@pytest.fixture
def api_key(tenant):
    """The secret of an owner's API key of `organization`."""
    return tenant.key


@pytest.fixture
def api(tenant):
    """Gives a client of the API: `api()` as the owner's key, `api(key)`, `api(None)` as nobody."""

    def client(key=tenant.key):
        return ApiClient(key)

    return client
