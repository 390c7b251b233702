"""Invitations are mailed, and accepted once, by the person that they are for."""

import dataclasses
import threading
import uuid
from datetime import timedelta

import pytest
from django.db import connections

from console.base.accounts import services
from console.base.accounts.invitation_tokens import TOKEN_CHARS, digest_of, token_of
from console.base.accounts.models import Invitation, Membership, Organization, User
from console.base.common.actor import Role
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope, system_scope
from tests.console import cases
from tests.console.browsers import Browser, signed_in
from tests.console.cases import assert_problem
from tests.console.clients import ApiClient
from tests.console.factories import PASSWORD, make_member, make_project, make_tenant, make_user
from tests.console.outbox import run_outbox

LIMIT_S = 60
ADA = "ada@acme.example"


class TestInvitations(cases.ListCases, cases.CreateCases, cases.DestroyCases):
    path = "/invitations"

    def body(self):
        return {"email": f"{uuid.uuid4().hex[:8]}@acme.example", "role": "viewer"}


def invite(client, email=ADA, role="developer"):
    response = client.post("/invitations", {"email": email, "role": role})
    assert response.status_code == 201, response.content
    return response.json()


def sent_token(mailoutbox):
    """Runs the outbox; returns the token in the newest mail."""
    run_outbox()
    return mailoutbox[-1].body.split("/invitation#")[1].split()[0]


def accept(client, token, **fields):
    return client.post("/invitations/accept", {"token": token, **fields})


def move_clock(monkeypatch, **span):
    moment = now() + timedelta(**span)
    monkeypatch.setattr("django.utils.timezone.now", lambda: moment)


def test_a_mail_leads_to_a_new_account_that_belongs(api, tenant, mailoutbox):
    shown = invite(api(), "Ada@Acme.example")
    assert (shown["email"], shown["state"]) == (ADA, "pending")
    token = sent_token(mailoutbox)
    (mail,) = mailoutbox
    assert mail.to == [ADA]
    assert "Acme" in mail.body
    assert "as developer" in mail.body
    browser = Browser()
    answer = accept(browser, token, password=PASSWORD, name="Ada")
    assert answer.status_code == 201, answer.content
    joined = answer.json()
    assert joined["organization"]["id"] == tenant.id
    assert (joined["member"]["role"], joined["member"]["name"]) == ("developer", "Ada")
    user = User.objects.get(email=ADA)
    assert user.email_verified_at is not None
    # Signed in, in that organization.
    assert browser.user_id == user.pk
    assert browser.get("/organizations/current").json()["id"] == tenant.id
    (accepted,) = api().get("/invitations").json()["items"]
    assert accepted["state"] == "accepted"
    assert signed_in(user, PASSWORD).get("/projects").status_code == 200


def test_who_has_an_account_signs_in_and_joins(api, tenant, mailoutbox):
    user = make_user(ADA)
    invite(api())
    token = sent_token(mailoutbox)
    response = accept(ApiClient(), token, password="another sentence that is long")
    assert_problem(response, 409, "account_exists")
    user.refresh_from_db()
    assert user.check_password(PASSWORD)
    browser = signed_in(user)
    assert accept(browser, token).status_code == 201
    assert browser.get("/organizations/current").json()["id"] == tenant.id


def test_who_belongs_to_no_organization_any_more_joins(api, tenant, other_tenant, mailoutbox):
    member = make_member(other_tenant, ADA, Role.VIEWER)
    browser = signed_in(member.user)
    api(other_tenant.key).delete(f"/members/{member.pk}")
    invite(api())
    assert accept(browser, sent_token(mailoutbox)).status_code == 201
    assert browser.get("/organizations/current").json()["id"] == tenant.id


def test_an_invitation_is_for_its_address_alone(api, other_tenant, mailoutbox):
    invite(api())
    token = sent_token(mailoutbox)
    browser = signed_in(other_tenant.owner)
    assert_problem(accept(browser, token), 409, "invited_another_address")
    assert accept(ApiClient(), token, password=PASSWORD).status_code == 201


def test_joining_by_a_session_needs_the_csrf_token(api, mailoutbox):
    user = make_user(ADA)
    invite(api())
    browser = signed_in(user)
    browser.csrf_token = ""
    assert_problem(accept(browser, sent_token(mailoutbox)), 403, "permission_denied")


def test_a_token_is_good_once(api, mailoutbox):
    invite(api())
    token = sent_token(mailoutbox)
    assert accept(ApiClient(), token, password=PASSWORD).status_code == 201
    again = accept(ApiClient(), token, password=PASSWORD)
    unknown = accept(ApiClient(), "a" * TOKEN_CHARS, password=PASSWORD)
    documents = [
        assert_problem(response, 422, "invitation_invalid") for response in (again, unknown)
    ]
    assert {**documents[0], "request_id": ""} == {**documents[1], "request_id": ""}


@pytest.mark.django_db(transaction=True)
def test_of_two_who_accept_at_once_one_joins(mailoutbox):
    tenant = make_tenant("Acme")
    invitation = invite(ApiClient(tenant.key))
    services.send_invitation(organization_id=tenant.id, invitation_id=invitation["id"])
    token = mailoutbox[-1].body.split("/invitation#")[1].split()[0]
    ready, statuses = threading.Barrier(2), []

    def join():
        try:
            ready.wait(LIMIT_S)
            statuses.append(accept(ApiClient(), token, password=PASSWORD).status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=join) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert sorted(statuses) == [201, 422]
    with organization_scope(tenant.id):
        assert Membership.objects.filter(user__email=ADA).count() == 1


def test_a_token_expires(api, mailoutbox, monkeypatch):
    invite(api())
    token = sent_token(mailoutbox)
    move_clock(monkeypatch, days=7, seconds=1)
    assert_problem(accept(ApiClient(), token, password=PASSWORD), 422, "invitation_expired")
    (shown,) = api().get("/invitations").json()["items"]
    assert shown["state"] == "expired"
    # Its place is free.
    invite(api())


def test_a_revoked_invitation_is_not_accepted(api, mailoutbox):
    invitation = invite(api())
    token = sent_token(mailoutbox)
    for _ in range(2):
        assert api().delete(f"/invitations/{invitation['id']}").status_code == 204
    assert_problem(accept(ApiClient(), token, password=PASSWORD), 422, "invitation_invalid")
    assert not User.objects.filter(email=ADA).exists()


def test_nobody_joins_a_closed_organization(api, tenant, mailoutbox):
    invite(api())
    token = sent_token(mailoutbox)
    with organization_scope(tenant.id):
        Organization.objects.update(closed_at=now())
    assert_problem(accept(ApiClient(), token, password=PASSWORD), 422, "invitation_invalid")


def test_sending_anew_ends_the_older_link(api, mailoutbox, monkeypatch):
    invitation = invite(api())
    old = sent_token(mailoutbox)
    path = f"/invitations/{invitation['id']}:resend"
    too_soon = api().post(path, {})
    assert_problem(too_soon, 429, "too_many_requests")
    assert 0 < int(too_soon["Retry-After"]) <= 60
    move_clock(monkeypatch, minutes=2)
    again = api().post(path, {})
    assert again.status_code == 200
    assert again.json()["expires_at"] > invitation["expires_at"]
    new = sent_token(mailoutbox)
    assert_problem(accept(ApiClient(), old, password=PASSWORD), 422, "invitation_invalid")
    assert accept(ApiClient(), new, password=PASSWORD).status_code == 201
    assert_problem(api().post(path, {}), 409, "invitation_closed")


def test_mails_that_are_sent_anew_count_for_the_day(api, settings, monkeypatch):
    limits = dataclasses.replace(config().limits, invitations_per_day=2)
    settings.FRESHET = dataclasses.replace(config(), limits=limits)
    path = f"/invitations/{invite(api())['id']}:resend"
    move_clock(monkeypatch, minutes=2)
    assert api().post(path, {}).status_code == 200
    move_clock(monkeypatch, minutes=4)
    assert_problem(api().post(path, {}), 403, "limit_reached")
    move_clock(monkeypatch, minutes=25 * 60)
    assert api().post(path, {}).status_code == 200


def test_the_token_is_in_the_mail_and_nowhere_else(api, tenant, mailoutbox):
    shown = api().post("/invitations", {"email": ADA, "role": "viewer"})
    token = sent_token(mailoutbox)
    assert token.encode() not in shown.content
    with organization_scope(tenant.id):
        row = Invitation.objects.get()
        assert token not in str(Invitation.objects.values().get())
        details = [str(entry.detail) for entry in AuditEntry.objects.all()]
    assert row.token_digest == digest_of(token)
    assert not [detail for detail in details if token in detail]
    # A worker that sends it twice sends the same link.
    assert token_of(row.pk, row.nonce) == token


def test_a_mail_is_not_sent_for_what_is_over(api, mailoutbox):
    invitation = invite(api())
    api().delete(f"/invitations/{invitation['id']}")
    run_outbox()
    assert mailoutbox == []


@pytest.mark.parametrize("name", ["Acme\nSubject: spam", "Acme\r\nBcc: eve@evil.example"])
def test_the_name_of_an_organization_writes_no_header(api, tenant, mailoutbox, name):
    with organization_scope(tenant.id):
        Organization.objects.update(name=name)
    invite(api())
    run_outbox()
    (mail,) = mailoutbox
    assert mail.to == [ADA]
    assert mail.bcc == []
    assert "\nSubject: spam" not in mail.body


def test_nobody_invites_above_their_own_role(api, tenant):
    admin = api(tenant.keys[Role.ADMIN])
    refused = admin.post("/invitations", {"email": ADA, "role": "owner"})
    assert_problem(refused, 403, "role_too_high")
    owned = invite(api(), role="owner")
    resent = admin.post(f"/invitations/{owned['id']}:resend", {})
    assert_problem(resent, 403, "role_too_high")


def test_invitations_of_who_has_left_end(api, tenant, mailoutbox):
    member = make_member(tenant, "boss@acme.example", Role.ADMIN)
    assert signed_in(member.user).post("/invitations", {"email": ADA}).status_code == 201
    token = sent_token(mailoutbox)
    api().delete(f"/members/{member.pk}")
    assert_problem(accept(ApiClient(), token, password=PASSWORD), 422, "invitation_invalid")


def test_who_belongs_or_is_invited_is_not_invited_again(api, tenant):
    make_member(tenant, "grace@acme.example", Role.VIEWER)
    assert_problem(
        api().post("/invitations", {"email": "Grace@acme.example"}), 409, "already_member"
    )
    invite(api())
    assert_problem(api().post("/invitations", {"email": ADA}), 409, "already_invited")


def test_two_organizations_may_invite_one_person(api, tenant, other_tenant, mailoutbox):
    invite(api())
    first = sent_token(mailoutbox)
    invite(api(other_tenant.key))
    second = sent_token(mailoutbox)
    browser = Browser()
    assert accept(browser, first, password=PASSWORD).status_code == 201
    browser.csrf_token = browser.get("/session").json()["csrf_token"]
    assert accept(browser, second).status_code == 201
    with system_scope():
        assert Membership.objects.filter(user__email=ADA).count() == 2


@pytest.mark.parametrize(
    ("fields", "code"), [({}, "required"), ({"password": "short"}, "password_too_short")]
)
def test_a_new_account_needs_a_password_that_holds(api, mailoutbox, fields, code):
    invite(api())
    token = sent_token(mailoutbox)
    document = assert_problem(accept(ApiClient(), token, **fields), 422, "validation_failed")
    assert (document["errors"][0]["pointer"], document["errors"][0]["code"]) == (
        "/password",
        code,
    )
    assert accept(ApiClient(), token, password=PASSWORD).status_code == 201


def test_who_is_not_verified_invites_nobody_but_on_one_machine(api, tenant, settings):
    with organization_scope(tenant.id):
        Organization.objects.update(verified_at=None)
    assert config().local
    invite(api())
    away = dataclasses.replace(config(), mode="production")
    settings.FRESHET = away
    refused = api().post("/invitations", {"email": "bob@acme.example"})
    assert_problem(refused, 403, "not_verified")


@pytest.mark.parametrize(("limit", "value"), [("members", 2), ("invitations_per_day", 1)])
def test_invitations_are_limited(api, settings, limit, value):
    limits = dataclasses.replace(config().limits, **{limit: value})
    settings.FRESHET = dataclasses.replace(config(), limits=limits)
    first = invite(api())
    refused = api().post("/invitations", {"email": "bob@acme.example"})
    document = assert_problem(refused, 403, "limit_reached")
    assert document["quota"]["name"] == limit
    api().delete(f"/invitations/{first['id']}")
    # Whoever invites and revokes in turns sends no more mail.
    again = api().post("/invitations", {"email": "bob@acme.example"}).status_code
    assert again == (403 if limit == "invitations_per_day" else 201)


def test_an_acceptance_is_audited(api, tenant, mailoutbox):
    invitation = invite(api())
    accept(ApiClient(), sent_token(mailoutbox), password=PASSWORD)
    user = User.objects.get(email=ADA)
    with organization_scope(tenant.id):
        entry = AuditEntry.objects.get(action="invitation.accept")
    assert (entry.actor_id, entry.target_id) == (user.pk, invitation["id"])


def test_an_invitation_carries_roles_in_projects(api, tenant, mailoutbox):
    project, deleted = make_project(tenant), make_project(tenant, "Gone")
    roles = [
        {"project_id": project.pk, "role": "developer"},
        {"project_id": deleted.pk, "role": "viewer"},
    ]
    body = {"email": ADA, "role": "member", "project_roles": roles}
    created = api().post("/invitations", body)
    assert created.status_code == 201, created.content
    assert created.json()["project_roles"] == roles
    assert api().delete(f"/projects/{deleted.pk}").status_code == 204
    browser = Browser()
    joined = accept(browser, sent_token(mailoutbox), password=PASSWORD)
    assert joined.status_code == 201, joined.content
    user_id = joined.json()["member"]["user_id"]
    query = {"principal_id": user_id}
    (binding,) = api().get("/role-bindings", query=query).json()["items"]
    assert (binding["project_id"], binding["role"]) == (project.pk, "developer")
    (entry,) = api().get("/audit-log", query={"action": "role_binding.create"}).json()["items"]
    assert (entry["actor"]["id"], entry["target"]["id"]) == (user_id, binding["id"])


@pytest.mark.parametrize(
    ("roles", "status", "code", "pointer"),
    [
        ([("prj_" + "a" * 20, "viewer")], 422, "unknown_project", "/project_roles/0/project_id"),
        ([("own", "owner")], 403, "role_too_high", "/project_roles/0/role"),
        ([("own", "viewer")] * 2, 409, "already_bound", None),
    ],
)
def test_nobody_invites_into_what_they_do_not_have(api, tenant, roles, status, code, pointer):
    own = make_project(tenant).pk
    project_roles = [
        {"project_id": own if project == "own" else project, "role": role}
        for project, role in roles
    ]
    body = {"email": ADA, "role": "member", "project_roles": project_roles}
    response = api(tenant.keys[Role.ADMIN]).post("/invitations", body)
    document = assert_problem(response, status, code)
    if pointer is not None:
        assert document["errors"][0]["pointer"] == pointer
    assert api().get("/invitations").json()["items"] == []
