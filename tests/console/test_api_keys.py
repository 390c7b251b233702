"""API keys: made, listed, used, revoked."""

import uuid

from console.common.actor import Role
from tests.console import cases
from tests.console.clients import ApiClient


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
