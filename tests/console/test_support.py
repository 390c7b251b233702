"""The commands with which staff help an organization that cannot help itself."""

from datetime import datetime
from unittest.mock import ANY

import pytest
from django.core.management import CommandError, call_command

from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.browsers import signed_in
from tests.console.clients import ApiClient

CURRENT = "/organizations/current"


def detail_of(tenant, action):
    with organization_scope(tenant.id):
        return AuditEntry.objects.get(action=action).detail


def test_who_locked_everybody_out_is_let_in_again(tenant):
    client = ApiClient(tenant.key)
    locked = {"allowed_addresses": ["192.0.2.0/24"], "two_factor_required": True}
    assert client.patch(CURRENT, locked, query={"force": "true"}).status_code == 200
    assert client.get(CURRENT).status_code == 403
    call_command("admit_everybody", tenant.id, reason="wrong network")
    shown = client.get(CURRENT).json()
    assert (shown["allowed_addresses"], shown["two_factor_required"]) == ([], False)
    assert shown["generation"] == 3
    assert signed_in(tenant.owner).get(CURRENT).status_code == 200
    assert detail_of(tenant, "organization.admit_everybody") == {
        "allowed_addresses": {"from": ["192.0.2.0/24"], "to": []},
        "two_factor_required": {"from": True, "to": False},
        "reason": "wrong network",
    }
    with pytest.raises(CommandError, match="nothing was changed"):
        call_command("admit_everybody", tenant.id, reason="again")


def test_an_end_is_taken_back(tenant):
    browser = signed_in(tenant.owner)
    closed = browser.post(f"{CURRENT}:close", {"name": "Acme"})
    assert closed.status_code == 200
    assert browser.post("/api-keys", {"name": "new"}).status_code == 403
    call_command("reopen_organization", tenant.id, reason="a mistake")
    assert browser.post("/api-keys", {"name": "new"}).status_code == 201
    # Keys from before the closing stay revoked.
    assert ApiClient(tenant.key).get(CURRENT).status_code == 401
    detail = detail_of(tenant, "organization.reopen")
    assert detail == {"closed_at": {"from": ANY, "to": None}, "reason": "a mistake"}
    closed_at = datetime.fromisoformat(closed.json()["closed_at"])
    assert datetime.fromisoformat(detail["closed_at"]["from"]) == closed_at
    with pytest.raises(CommandError, match="is not closed"):
        call_command("reopen_organization", tenant.id, reason="again")


def test_an_organization_that_is_none_is_said_to_be_none(db):
    with pytest.raises(CommandError, match="is not closed"):
        call_command("reopen_organization", "org_aaaaaaaaaaaaaaaaaaaa", reason="x")
