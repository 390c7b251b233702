"""API keys are created, listed, used and revoked."""

import dataclasses
import uuid
from datetime import timedelta

import pytest
from django.db import OperationalError

from console.base.accounts.models import ApiKey
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console import cases
from tests.console.clients import ApiClient
from tests.console.factories import make_tenant


class TestApiKeys(cases.ListCases, cases.CreateCases, cases.DestroyCases):
    path = "/api-keys"

    def body(self):
        return {"name": f"deploy {uuid.uuid4().hex[:6]}", "role": "developer"}


def test_a_new_key_authenticates(api):
    secret = api().post("/api-keys", {"name": "ci", "role": "viewer"}).json()["secret"]
    assert ApiClient(secret).get("/api-keys").status_code == 200


def test_a_revoked_key_does_not(api):
    key = api().post("/api-keys", {"name": "ci"}).json()
    assert api().delete(f"/api-keys/{key['id']}").status_code == 204
    cases.assert_problem(ApiClient(key["secret"]).get("/api-keys"), 401, "not_authenticated")


def test_nobody_hands_out_more_than_they_have(api, tenant):
    for role, expected in [(Role.VIEWER, 201), (Role.ADMIN, 201), (Role.OWNER, 403)]:
        response = api(tenant.keys[Role.ADMIN]).post("/api-keys", {"name": "up", "role": role})
        assert response.status_code == expected, (role, response.content)


@pytest.mark.django_db(transaction=True)
def test_a_key_remembers_its_last_use_to_some_minutes(monkeypatch):
    tenant = make_tenant("Acme")
    client = ApiClient(tenant.key)
    client.get("/api-keys")

    def last_uses():
        items = client.get("/api-keys").json()["items"]
        return [item["last_used_at"] for item in items if item["last_used_at"]]

    (first,) = last_uses()
    assert last_uses() == [first]
    later = now() + timedelta(minutes=6)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)
    client.get("/api-keys")
    assert last_uses() > [first]


@pytest.mark.django_db(transaction=True)
def test_what_fails_after_the_commit_does_not_take_the_answer_away(monkeypatch):
    """The database may stop answering between a commit and the callbacks after it."""
    client = ApiClient(make_tenant("Acme").key)

    def fail(*_):
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr("console.base.accounts.services.authentication._write_last_use", fail)
        assert client.post("/api-keys", {"name": "ci"}).status_code == 201
    assert "ci" in [item["name"] for item in client.get("/api-keys").json()["items"]]


def test_an_expired_key_does_not_authenticate(api, monkeypatch):
    expires_at = (now() + timedelta(hours=1)).isoformat()
    key = api().post("/api-keys", {"name": "ci", "expires_at": expires_at}).json()
    assert ApiClient(key["secret"]).get("/api-keys").status_code == 200
    later = now() + timedelta(hours=1)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)
    cases.assert_problem(ApiClient(key["secret"]).get("/api-keys"), 401, "not_authenticated")


def test_an_expiry_in_the_past_is_refused(api):
    body = {"name": "ci", "expires_at": (now() - timedelta(seconds=1)).isoformat()}
    document = cases.assert_problem(api().post("/api-keys", body), 422, "expiry_in_the_past")
    assert document["errors"][0]["pointer"] == "/expires_at"


def test_keys_of_an_organization_are_limited(api, tenant, settings):
    room = len(Role) + 1
    limits = dataclasses.replace(config().limits, api_keys=room)
    settings.FRESHET = dataclasses.replace(config(), limits=limits)
    key = api().post("/api-keys", {"name": "the last"}).json()
    refused = api().post("/api-keys", {"name": "one more"})
    document = cases.assert_problem(refused, 403, "limit_reached")
    assert document["quota"] == {"name": "api_keys", "limit": room, "used": room}
    api().delete(f"/api-keys/{key['id']}")
    assert api().post("/api-keys", {"name": "again"}).status_code == 201


def test_validate_only_changes_nothing(api, tenant):
    response = api().post("/api-keys", {"name": "ci"}, query={"validate_only": "true"})
    assert (response.status_code, response.json()) == (200, {"valid": True})
    too_high = api(tenant.keys[Role.ADMIN]).post(
        "/api-keys", {"name": "up", "role": "owner"}, query={"validate_only": "true"}
    )
    cases.assert_problem(too_high, 403, "role_too_high")
    refused = api().post("/api-keys", {"name": "ci"}, query={"validate_only": "perhaps"})
    cases.assert_problem(refused, 422, "validation_failed")
    with organization_scope(tenant.id):
        assert ApiKey.objects.count() == len(Role)


def test_making_and_revoking_a_key_is_audited(api, tenant):
    key = api().post("/api-keys", {"name": "ci"}).json()
    api().delete(f"/api-keys/{key['id']}")
    api().delete(f"/api-keys/{key['id']}")
    with organization_scope(tenant.id):
        entries = list(AuditEntry.objects.filter(target_id=key["id"]).order_by("created_at"))
    assert [entry.action for entry in entries] == ["api_key.create", "api_key.revoke"]
    assert entries[0].actor_kind == "api_key"
    assert entries[0].request_id.startswith("req_")
    assert entries[0].address == "127.0.0.1"
    assert key["secret"] not in str(entries[0].detail)


def test_a_key_that_is_no_name_of_one_is_no_address(api):
    cases.assert_problem(api().delete("/api-keys/x"), 404, "not_found")
