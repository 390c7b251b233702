"""Tenants, a clock that does not move by itself, and budgets."""

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from tests.console import conftest as console

tenant, other_tenant, api = console.tenant, console.other_tenant, console.api

# A Saturday in a month of 30 days.
T0 = datetime(2026, 11, 21, 15, 0, tzinfo=UTC)


@pytest.fixture
def at(monkeypatch):
    """Sets the control plane's clock, which shows `T0` before."""

    def move(moment):
        monkeypatch.setattr(timezone, "now", lambda: moment)

    move(T0)
    return move


@pytest.fixture
def make_budget(api):
    """Creates a budget through the API; returns it as the API shows it."""

    def make(amount_minor=100, **fields):
        body = {"name": "Team", "amount_minor": amount_minor, "action": "suspend", **fields}
        response = api().post("/budgets", body)
        assert response.status_code == 201, response.content
        return response.json()

    return make
