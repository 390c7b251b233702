"""Service accounts and their keys: rights, rotation, disabling and deletion."""

import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connections

from console.base.accounts import services
from console.base.accounts.models import ApiKey, ServiceAccount
from console.base.common.actor import Permission, Role, system_actor
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope
from tests.console import cases
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import make_project, make_project_key, make_tenant

LIMIT_S = 60


class TestServiceAccounts(
    cases.ListCases,
    cases.RetrieveCases,
    cases.CreateCases,
    cases.UpdateCases,
    cases.DestroyCases,
):
    path = "/service-accounts"
    update_body = {"name": "release", "description": "Releases.", "role": "developer"}

    def body(self):
        return {"name": f"deploy {uuid.uuid4().hex[:6]}", "role": "viewer"}


@pytest.fixture
def account(api):
    """A service account with the role of a developer."""
    return api().post("/service-accounts", {"name": "deploy", "role": "developer"}).json()


def key_for(client, account, **fields):
    return client.post("/api-keys", {"name": "key", "service_account_id": account["id"], **fields})


def test_without_a_role_it_is_a_member(api):
    assert api().post("/service-accounts", {"name": "x"}).json()["role"] == "member"


def test_its_key_has_its_role_whatever_that_is_at_the_moment(api, account):
    key = key_for(api(), account).json()
    assert (key["role"], key["service_account_id"]) == ("developer", account["id"])
    client = ApiClient(key["secret"])
    assert_problem(client.post("/projects", {"name": "x"}), 403, "permission_denied")
    api().patch(f"/service-accounts/{account['id']}", {"role": "admin"})
    assert client.post("/projects", {"name": "x"}).status_code == 201
    api().patch(f"/service-accounts/{account['id']}", {"role": "viewer"})
    assert_problem(client.post("/projects", {"name": "y"}), 403, "permission_denied")


def test_its_key_has_no_role_of_its_own(api, account):
    document = assert_problem(key_for(api(), account, role="viewer"), 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "/role"


def test_a_key_of_another_organizations_account_is_not_made(api, account, other_tenant):
    refused = key_for(api(other_tenant.key), account)
    assert_problem(refused, 422, "unknown_service_account")


def test_keys_of_a_disabled_account_are_out_until_it_is_enabled(api, account):
    client = ApiClient(key_for(api(), account).json()["secret"])
    path = f"/service-accounts/{account['id']}"
    assert api().patch(path, {"disabled": True}).status_code == 200
    assert_problem(client.get("/projects"), 401, "not_authenticated")
    assert api().patch(path, {"disabled": False}).status_code == 200
    assert client.get("/projects").status_code == 200


def test_keys_of_a_deleted_account_are_revoked(api, account, tenant):
    key = key_for(api(), account).json()
    assert api().delete(f"/service-accounts/{account['id']}").status_code == 204
    assert_problem(ApiClient(key["secret"]).get("/projects"), 401, "not_authenticated")
    query = {"service_account_id": account["id"]}
    (listed,) = api().get("/api-keys", query=query).json()["items"]
    assert listed["revoked_at"] is not None
    assert_problem(key_for(api(), account), 422, "unknown_service_account")
    # Its name is free again.
    assert api().post("/service-accounts", {"name": "deploy"}).status_code == 201


@pytest.mark.parametrize("end", ["disabled", "deleted"])
def test_what_an_account_made_ends_with_it(api, end):
    maker = api().post("/service-accounts", {"name": "admin", "role": "admin"}).json()
    other = api().post("/service-accounts", {"name": "other", "role": "viewer"}).json()
    program = api(key_for(api(), maker).json()["secret"])
    key = program.post("/api-keys", {"name": "made", "role": "admin"}).json()
    second = api(key["secret"]).post("/api-keys", {"name": "by a key of its making"}).json()
    foreign = key_for(program, other).json()
    body = {"email": "ada@acme.example", "role": "viewer"}
    invitation = program.post("/invitations", body).json()
    path = f"/service-accounts/{maker['id']}"
    if end == "disabled":
        assert api().patch(path, {"disabled": True}).status_code == 200
    else:
        assert api().delete(path).status_code == 204
    for revoked in (key, second):
        assert_problem(api(revoked["secret"]).get("/api-keys"), 401, "not_authenticated")
    # As when a member leaves: another account's keys stay, and the audit log names them.
    assert api(foreign["secret"]).get("/clusters").status_code == 200
    (shown,) = api().get("/invitations").json()["items"]
    assert (shown["id"], shown["state"]) == (invitation["id"], "revoked")
    action = "service_account.update" if end == "disabled" else "service_account.delete"
    (entry,) = api().get("/audit-log", query={"action": action}).json()["items"]
    assert set(entry["detail"]["revoked_made_keys"]) == {key["id"], second["id"]}
    assert entry["detail"]["revoked_invitations"] == [invitation["id"]]
    assert entry["detail"]["service_account_keys_seen"] == [foreign["id"]]


def actor_of(tenant, secret):
    """Returns the actor of a key, and that actor renewed as an open stream renews it."""
    actor = services.authenticate_key(text=secret, address="192.0.2.1")
    return actor, services.renew_actor(actor)


def test_an_open_stream_ends_with_what_its_key_had(api, tenant):
    project = make_project(tenant)
    secret = make_project_key(tenant, project, Role.DEVELOPER)
    actor, again = actor_of(tenant, secret)
    assert again == actor
    assert actor.may(Permission.READ, project.pk)
    (binding,) = api().get("/role-bindings", query={"project_id": project.pk}).json()["items"]
    api().delete(f"/role-bindings/{binding['id']}")
    narrowed = services.renew_actor(actor)
    assert narrowed is not None
    assert not narrowed.may(Permission.READ, project.pk)
    api().patch(f"/service-accounts/{actor.service_account_id}", {"disabled": True})
    assert services.renew_actor(actor) is None


def test_nobody_makes_an_account_above_their_own(api, tenant):
    admin = api(tenant.keys[Role.ADMIN])
    refused = admin.post("/service-accounts", {"name": "x", "role": "owner"})
    assert_problem(refused, 403, "role_too_high")


def test_nobody_gets_a_key_of_an_account_above_their_own(api, tenant):
    owned = api().post("/service-accounts", {"name": "root", "role": "owner"}).json()
    admin = api(tenant.keys[Role.ADMIN])
    assert_problem(key_for(admin, owned), 403, "role_too_high")
    # Its rights in projects count as well.
    plain = api().post("/service-accounts", {"name": "plain"}).json()
    binding = {
        "principal_type": "service_account",
        "principal_id": plain["id"],
        "project_id": tenant.project.pk,
        "role": "owner",
    }
    assert api().post("/role-bindings", binding).status_code == 201
    assert_problem(key_for(admin, plain), 403, "role_too_high")
    assert key_for(api(), plain).status_code == 201


def test_nobody_rotates_a_key_above_their_own(api, tenant):
    key = api().post("/api-keys", {"name": "root", "role": "owner"}).json()
    path = f"/api-keys/{key['id']}:rotate"
    assert_problem(api(tenant.keys[Role.ADMIN]).post(path, {}), 403, "role_too_high")
    # The refusal changed nothing.
    (listed,) = [item for item in api().get("/api-keys").json()["items"] if item["id"] == key["id"]]
    assert listed["expires_at"] is None
    assert ApiClient(key["secret"]).get("/projects").status_code == 200


def test_a_rotated_key_has_the_same_rights_and_the_old_one_ends(api, monkeypatch):
    old = api().post("/api-keys", {"name": "ci", "role": "developer"}).json()
    response = api().post(f"/api-keys/{old['id']}:rotate", {"overlap_s": 600})
    assert response.status_code == 201, response.content
    new = response.json()
    assert (new["name"], new["role"], new["expires_at"]) == ("ci", "developer", None)
    assert new["id"] != old["id"]
    for key in (old, new):
        assert ApiClient(key["secret"]).get("/projects").status_code == 200
    later = now() + timedelta(seconds=601)
    monkeypatch.setattr("django.utils.timezone.now", lambda: later)
    assert_problem(ApiClient(old["secret"]).get("/projects"), 401, "not_authenticated")
    assert ApiClient(new["secret"]).get("/projects").status_code == 200


def test_without_overlap_the_old_key_ends_at_once(api):
    old = api().post("/api-keys", {"name": "ci"}).json()
    assert api().post(f"/api-keys/{old['id']}:rotate", {"overlap_s": 0}).status_code == 201
    assert_problem(ApiClient(old["secret"]).get("/projects"), 401, "not_authenticated")


def test_rotating_does_not_lengthen_the_old_key_and_keeps_the_lifetime(api, tenant):
    expires_at = now() + timedelta(minutes=5)
    old = api().post("/api-keys", {"name": "ci", "expires_at": expires_at.isoformat()}).json()
    new = api().post(f"/api-keys/{old['id']}:rotate", {"overlap_s": 86_400}).json()
    with organization_scope(tenant.id):
        rows = ApiKey.objects.in_bulk([old["id"], new["id"]])
    assert rows[old["id"]].expires_at == expires_at
    ends_at = rows[new["id"]].expires_at
    assert ends_at is not None
    lifetime = ends_at - rows[new["id"]].created_at
    assert abs(lifetime - timedelta(minutes=5)) < timedelta(minutes=1)


def test_what_is_over_is_not_rotated(api):
    key = api().post("/api-keys", {"name": "ci"}).json()
    api().delete(f"/api-keys/{key['id']}")
    assert_problem(api().post(f"/api-keys/{key['id']}:rotate", {}), 409, "key_not_active")


def test_a_rotation_happens_once_for_one_idempotency_key(api, tenant):
    key = api().post("/api-keys", {"name": "ci"}).json()
    headers = {"Idempotency-Key": uuid.uuid4().hex}
    first = api().post(f"/api-keys/{key['id']}:rotate", {}, headers=headers)
    second = api().post(f"/api-keys/{key['id']}:rotate", {}, headers=headers)
    assert first.json() == second.json()
    with organization_scope(tenant.id):
        assert ApiKey.objects.filter(name="ci").count() == 2


def test_an_account_has_at_most_two_active_keys(api, account):
    first = key_for(api(), account).json()
    second = key_for(api(), account).json()
    assert_problem(key_for(api(), account), 409, "two_keys_already")
    rotate = f"/api-keys/{first['id']}:rotate"
    assert_problem(api().post(rotate, {"overlap_s": 60}), 409, "two_keys_already")
    assert api().post(rotate, {"overlap_s": 0}).status_code == 201
    api().delete(f"/api-keys/{second['id']}")
    assert key_for(api(), account).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_two_who_make_the_second_key_at_once_make_one():
    tenant = make_tenant("Acme")
    actor = system_actor(tenant.id)
    with organization_scope(tenant.id):
        account = services.create_service_account(actor=actor, name="deploy")
        services.create_api_key(actor=actor, name="first", service_account_id=account.pk)
    ready = threading.Barrier(2)

    def make():
        try:
            ready.wait(LIMIT_S)
            key_for(ApiClient(tenant.key), {"id": account.pk})
        finally:
            connections.close_all()

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    with organization_scope(tenant.id):
        assert ServiceAccount.objects.get().api_keys.count() == 2
