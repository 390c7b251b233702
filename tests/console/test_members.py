"""Members are listed, get other roles and are removed; an organization always has an owner."""

import threading
from dataclasses import replace

import pytest
from django.db import connections

from console.base.accounts import services
from console.base.accounts.models import ApiKey, Invitation, Membership, SecondFactor
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console import cases
from tests.console.browsers import signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import (
    make_member,
    make_project,
    make_project_key,
    make_project_member,
    make_tenant,
)

LIMIT_S = 60


class TestMembers(cases.RetrieveCases, cases.DestroyCases):
    path = "/members"

    @pytest.fixture
    def item(self, tenant, owner):
        member = make_member(tenant, "ada@acme.example", Role.VIEWER)
        return owner.get(f"/members/{member.pk}").json()


def member_of(tenant, role, name="ada"):
    return make_member(tenant, f"{name}@acme.example", role)


def test_a_member_is_shown_with_what_matters(api, tenant):
    member = member_of(tenant, Role.BILLING)
    SecondFactor.objects.create(user=member.user, sealed_secret=b"", confirmed_at=now())
    owner, ada = api().get("/members").json()["items"]
    assert (owner["email"], owner["role"], owner["two_factor"]) == (
        tenant.owner.email,
        "owner",
        False,
    )
    assert ada == {
        "id": member.pk,
        "user_id": member.user_id,
        "email": "ada@acme.example",
        "name": "",
        "role": "billing",
        "two_factor": True,
        "last_seen_at": None,
        "created_at": ada["created_at"],
    }


@pytest.mark.django_db(transaction=True)
def test_it_is_noted_when_a_member_was_there_last():
    tenant = make_tenant("Acme")
    browser = signed_in(tenant.owner)
    browser.get("/projects")
    (owner,) = ApiClient(tenant.key).get("/members").json()["items"]
    assert owner["last_seen_at"] is not None


def test_members_of_other_organizations_are_not_listed(api, tenant, other_tenant):
    (only,) = api().get("/members").json()["items"]
    assert only["user_id"] == tenant.owner.pk


def test_who_may_not_read_sees_themself_alone(tenant):
    member_of(tenant, Role.VIEWER, "grace")
    ada = make_project_member(tenant, tenant.project, Role.DEVELOPER)
    browser = signed_in(ada.user)
    assert [item["id"] for item in browser.get("/members").json()["items"]] == [ada.pk]


def test_who_manages_a_project_sees_whom_to_give_roles(api, tenant):
    key = make_project_key(tenant, make_project(tenant), Role.ADMIN)
    assert len(api(key).get("/members").json()["items"]) == 1
    assert len(api(key).get("/service-accounts").json()["items"]) == 1


def test_a_plain_member_sees_the_name_of_the_organization_and_nothing_of_it(tenant):
    browser = signed_in(member_of(tenant, Role.MEMBER).user)
    assert browser.get("/organizations/current").json()["name"] == "Acme"
    for empty in ("/projects", "/clusters", "/operations", "/usage", "/role-bindings"):
        assert browser.get(empty).json()["items"] == [], empty
    for closed in ("/api-keys", "/invitations", "/budgets", "/audit-log"):
        assert_problem(browser.get(closed), 403, "permission_denied")


@pytest.mark.parametrize(
    ("actor", "before", "after", "status"),
    [
        (Role.OWNER, "viewer", "owner", 200),
        (Role.OWNER, "owner", "viewer", 200),
        (Role.ADMIN, "viewer", "admin", 200),
        (Role.ADMIN, "viewer", "owner", 403),
        (Role.ADMIN, "owner", "viewer", 403),
        (Role.DEVELOPER, "viewer", "developer", 403),
        (Role.BILLING, "viewer", "billing", 403),
    ],
)
def test_nobody_gives_or_takes_a_role_above_their_own(api, tenant, actor, before, after, status):
    member = member_of(tenant, Role(before))
    response = api(tenant.keys[actor]).patch(f"/members/{member.pk}", {"role": after})
    assert response.status_code == status, response.content
    with organization_scope(tenant.id):
        member.refresh_from_db()
    assert member.role == (after if status == 200 else before)


def test_an_admin_removes_no_owner(api, tenant):
    owner = member_of(tenant, Role.OWNER)
    refused = api(tenant.keys[Role.ADMIN]).delete(f"/members/{owner.pk}")
    assert_problem(refused, 403, "role_too_high")


def test_the_last_owner_stays(api, tenant):
    with organization_scope(tenant.id):
        owner = Membership.objects.get()
    assert_problem(api().patch(f"/members/{owner.pk}", {"role": "admin"}), 409, "last_owner")
    assert_problem(api().delete(f"/members/{owner.pk}"), 409, "last_owner")
    another = member_of(tenant, Role.OWNER)
    another.user.is_active = False
    another.user.save()
    assert_problem(api().delete(f"/members/{owner.pk}"), 409, "last_owner")
    another.user.is_active = True
    another.user.save()
    assert api().delete(f"/members/{owner.pk}").status_code == 204


@pytest.mark.django_db(transaction=True)
def test_of_two_owners_who_leave_at_once_one_stays():
    tenant = make_tenant("Acme")
    member_of(tenant, Role.OWNER)
    with organization_scope(tenant.id):
        owners = list(Membership.objects.values_list("pk", flat=True))
    ready, statuses = threading.Barrier(2), []

    def remove(name):
        try:
            ready.wait(LIMIT_S)
            statuses.append(ApiClient(tenant.key).delete(f"/members/{name}").status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=remove, args=(name,)) for name in owners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert sorted(statuses) == [204, 409]


def test_a_removed_member_is_out_at_once_with_what_they_opened(api, tenant):
    member = make_project_member(tenant, tenant.project, Role.DEVELOPER)
    browser = signed_in(member.user)
    session = services.sessions_of(member.user).get()
    actor = services.actor_of_user(user=member.user, organization_id=tenant.id, address="")
    assert actor is not None
    opened = replace(actor, session_id=session.pk)
    assert services.renew_actor(opened) == opened
    assert browser.get("/projects").status_code == 200
    assert api().delete(f"/members/{member.pk}").status_code == 204
    assert_problem(browser.get("/projects"), 401, "not_authenticated")
    # An open stream asks this every few seconds.
    assert services.renew_actor(opened) is None
    with organization_scope(tenant.id):
        assert not tenant.project.role_bindings.exists()


def test_a_removed_member_works_on_in_another_organization(api, tenant, other_tenant):
    member = member_of(tenant, Role.DEVELOPER)
    with organization_scope(other_tenant.id):
        Membership.objects.create(
            organization=other_tenant.organization, user=member.user, role=Role.ADMIN
        )
    browser = signed_in(member.user)
    assert browser.get("/organizations/current").json()["id"] == tenant.id
    api().delete(f"/members/{member.pk}")
    # A change is not sent to another organization than the one that was shown.
    assert_problem(browser.post("/projects", {"name": "x"}), 401, "not_authenticated")
    assert browser.get("/organizations/current").json()["id"] == other_tenant.id
    assert browser.post("/projects", {"name": "x"}).status_code == 201


def keys_made_by(browser):
    """Makes a key, and with it another one; returns both secrets."""
    key = browser.post("/api-keys", {"name": "own", "role": "admin"}).json()
    chained = ApiClient(key["secret"]).post("/api-keys", {"name": "chained", "role": "admin"})
    return [key["secret"], chained.json()["secret"]]


def test_keys_of_a_removed_member_end_however_they_were_made(api, tenant):
    member = member_of(tenant, Role.ADMIN)
    secrets = keys_made_by(signed_in(member.user))
    api().delete(f"/members/{member.pk}")
    for secret in secrets:
        assert_problem(ApiClient(secret).get("/projects"), 401, "not_authenticated")


def test_keys_of_service_accounts_outlive_who_made_them_and_are_named(api, tenant):
    member = member_of(tenant, Role.ADMIN)
    browser = signed_in(member.user)
    account = browser.post("/service-accounts", {"name": "deploy", "role": "viewer"}).json()
    body = {"name": "key", "service_account_id": account["id"]}
    key = browser.post("/api-keys", body).json()
    api().delete(f"/members/{member.pk}")
    assert ApiClient(key["secret"]).get("/projects").status_code == 200
    with organization_scope(tenant.id):
        detail = AuditEntry.objects.get(action="member.delete").detail
    assert detail["service_account_keys_seen"] == [key["id"]]


def test_what_a_demoted_member_made_ends_where_it_grants_more(api, tenant):
    member = member_of(tenant, Role.ADMIN)
    browser = signed_in(member.user)
    admin, chained = keys_made_by(browser)
    viewer = browser.post("/api-keys", {"name": "low", "role": "viewer"}).json()["secret"]
    browser.post("/invitations", {"email": "eve@acme.example", "role": "admin"})
    browser.post("/invitations", {"email": "bob@acme.example", "role": "viewer"})
    assert api().patch(f"/members/{member.pk}", {"role": "developer"}).status_code == 200
    for secret in (admin, chained):
        assert_problem(ApiClient(secret).get("/projects"), 401, "not_authenticated")
    assert ApiClient(viewer).get("/projects").status_code == 200
    with organization_scope(tenant.id):
        states = dict(Invitation.objects.values_list("email", "state"))
    assert states == {"eve@acme.example": "revoked", "bob@acme.example": "pending"}


def test_members_leave_by_themselves_and_remove_nobody_else(tenant):
    ada, grace = member_of(tenant, Role.VIEWER), member_of(tenant, Role.VIEWER, "grace")
    browser = signed_in(ada.user)
    assert_problem(browser.delete(f"/members/{grace.pk}"), 403, "permission_denied")
    assert browser.delete(f"/members/{ada.pk}").status_code == 204
    assert_problem(browser.get("/projects"), 401, "not_authenticated")


def test_a_key_does_not_have_its_maker_leave(api, tenant):
    member = member_of(tenant, Role.VIEWER)
    with organization_scope(tenant.id):
        ApiKey.objects.filter(role=Role.VIEWER).update(created_by=member.user)
    refused = api(tenant.keys[Role.VIEWER]).delete(f"/members/{member.pk}")
    assert_problem(refused, 403, "permission_denied")


def test_another_role_is_audited(api, tenant):
    member = member_of(tenant, Role.VIEWER)
    api().patch(f"/members/{member.pk}", {"role": "admin"})
    api().patch(f"/members/{member.pk}", {"role": "admin"})
    with organization_scope(tenant.id):
        entry = AuditEntry.objects.get(action="member.update")
    assert entry.detail["role"] == {"from": "viewer", "to": "admin"}
