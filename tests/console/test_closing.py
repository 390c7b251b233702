"""Closing an organization: who may do it, what ends with it, and what can still be read."""

import pyotp
import pytest
from django.core import mail

from console.base.accounts.models import ApiKey, Membership, Organization
from console.base.accounts.signals import organization_closed
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import AGAIN, make_user
from tests.console.outbox import run_outbox

CLOSE = "/organizations/current:close"


@pytest.fixture
def closed_ids():
    """The ids of the organizations that the signal `organization_closed` named."""
    ids = []

    def note(actor, **_):
        ids.append(actor.organization_id)

    organization_closed.connect(note)
    yield ids
    organization_closed.disconnect(note)


@pytest.fixture
def owner(tenant):
    """The owner's browser."""
    return signed_in(tenant.owner)


def closed_at(tenant):
    with organization_scope(tenant.id):
        return Organization.objects.get().closed_at


def test_an_owner_who_types_the_name_closes_it(owner, tenant, other_tenant, closed_ids):
    response = owner.post(CLOSE, {"name": "Acme"})
    assert response.status_code == 200, response.content
    assert response.json()["closed_at"] is not None
    assert closed_ids == [tenant.id]
    for key in tenant.keys.values():
        assert_problem(ApiClient(key).get("/clusters"), 401, "not_authenticated")
    assert ApiClient(other_tenant.key).get("/clusters").status_code == 200
    with organization_scope(tenant.id):
        assert not ApiKey.objects.filter(revoked_at=None).exists()
        entry = AuditEntry.objects.get(action="organization.close")
    assert entry.actor_id == tenant.owner.pk
    assert entry.detail == {"name": "Acme", "api_keys_revoked": len(tenant.keys)}
    run_outbox()
    (message,) = [sent for sent in mail.outbox if sent.subject == '"Acme" was closed']
    assert message.to == [tenant.owner.email]


def test_what_is_closed_is_read_and_not_changed(owner, tenant):
    owner.post(CLOSE, {"name": "Acme"})
    for path in ("/organizations/current", "/invoices", "/audit-log", "/clusters", "/api-keys"):
        assert owner.get(path).status_code == 200, path
    for method, path, body in [
        ("POST", "/clusters", {"name": "x", "region": "local"}),
        ("POST", "/api-keys", {"name": "x"}),
        ("PATCH", "/organizations/current", {"name": "x"}),
        ("POST", "/budgets", {"name": "x", "amount_minor": 1}),
        ("POST", CLOSE, {"name": "Acme"}),
    ]:
        response = owner.request(method, path, body)
        assert_problem(response, 403, "organization_closed")
    # Endpoints of the person still accept changes.
    assert owner.post("/session/totp", AGAIN).status_code == 200
    assert signed_in(tenant.owner).get("/invoices").status_code == 200


@pytest.mark.parametrize("name", ["acme", "Acme ", "", "Globex"])
def test_another_name_closes_nothing(owner, tenant, name, closed_ids):
    response = owner.post(CLOSE, {"name": name})
    # Surrounding space is stripped, as it is when an organization is named.
    if name.strip() == "Acme":
        assert response.status_code == 200
        return
    document = assert_problem(response, 422)
    assert document["errors"][0]["pointer"] == "/name"
    assert (closed_at(tenant), closed_ids) == (None, [])


def test_a_second_factor_is_asked_for(owner, tenant, closed_ids):
    secret = owner.post("/session/totp", AGAIN).json()["secret"]
    app = pyotp.TOTP(secret)
    codes = owner.post("/session/totp/confirm", {"code": app.at(now())}).json()["recovery_codes"]
    owner.csrf_token = owner.get("/session").json()["csrf_token"]
    for body in ({"name": "Acme"}, {"name": "Acme", "code": "123"}):
        document = assert_problem(owner.post(CLOSE, body), 422, "code_wrong")
        assert document["errors"][0]["pointer"] == "/code"
    assert (closed_at(tenant), closed_ids) == (None, [])
    assert owner.post(CLOSE, {"name": "Acme", "code": codes[0]}).status_code == 200


def test_a_program_closes_nothing(tenant, closed_ids):
    response = ApiClient(tenant.key).post(CLOSE, {"name": "Acme"})
    assert_problem(response, 403, "person_required")
    assert closed_ids == []


def test_only_an_owner_closes_it(tenant):
    admin = make_user("admin@acme.example")
    with organization_scope(tenant.id):
        Membership.objects.create(organization=tenant.organization, user=admin, role=Role.ADMIN)
    response = signed_in(admin).post(CLOSE, {"name": "Acme"})
    assert_problem(response, 403, "permission_denied")


def test_what_a_listener_raises_takes_the_end_back(owner, tenant):
    def fail(**_):
        raise RuntimeError

    organization_closed.connect(fail)
    try:
        assert owner.post(CLOSE, {"name": "Acme"}).status_code == 500
    finally:
        organization_closed.disconnect(fail)
    assert closed_at(tenant) is None
    assert ApiClient(tenant.key).get("/clusters").status_code == 200
