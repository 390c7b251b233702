"""Routes of accounts."""

from __future__ import annotations

from datetime import timedelta

from console.base.accounts import services
from console.base.accounts.models import UserSession
from console.base.common.actor import Permission, Role, system_actor
from console.base.common.clock import now
from console.base.common.tenancy import organization_scope
from tests.console.browsers import signed_in
from tests.console.factories import (
    AGAIN,
    PASSWORD,
    Tenant,
    make_member,
    make_project,
    make_project_member,
)
from tests.console.walk.routes import Parameters, Route

CODE = {"code": "123456"}
# The status of changes of a second factor, which none of the users has.
CONFLICT = frozenset({409})
SIGN_UP = {"email": "new@walk.example", "password": PASSWORD, "organization_name": "New"}


def an_api_key(tenant: Tenant) -> Parameters:
    """Makes an API key."""
    with organization_scope(tenant.id):
        created = services.create_api_key(
            actor=system_actor(tenant.id), name="walked", role=Role.VIEWER
        )
    return {"id": created.key.pk}


def a_session(tenant: Tenant) -> Parameters:
    """Makes a session of the owner."""
    signed_in(tenant.owner)
    return {"id": UserSession.objects.filter(user=tenant.owner).latest("created_at").pk}


def a_project(tenant: Tenant) -> Parameters:
    """Names the default project, in which some of the actors have roles."""
    return {"id": tenant.project.pk}


def another_project(tenant: Tenant) -> Parameters:
    """Makes a project without clusters."""
    return {"id": make_project(tenant, "walked").pk}


def a_member(tenant: Tenant) -> Parameters:
    """Makes a member who is none of the actors."""
    return {"id": make_member(tenant, "walked@acme.example", Role.VIEWER).pk}


def an_invitation(tenant: Tenant) -> Parameters:
    """Makes an invitation that was sent an hour ago, and so may be sent again."""
    with organization_scope(tenant.id):
        invitation = services.create_invitation(
            actor=system_actor(tenant.id), email="invited@walk.example", role=Role.VIEWER
        )
        invitation.sent_at = now() - timedelta(hours=1)
        invitation.save()
    return {"id": invitation.pk}


def a_role_binding(tenant: Tenant) -> Parameters:
    """Makes a role in the default project."""
    member = make_project_member(tenant, tenant.project, Role.VIEWER)
    with organization_scope(tenant.id):
        return {"id": member.role_bindings.get().pk}


def a_service_account(tenant: Tenant) -> Parameters:
    """Makes a service account without keys."""
    with organization_scope(tenant.id):
        account = services.create_service_account(actor=system_actor(tenant.id), name="walked")
    return {"id": account.pk}


PROJECT = "/api/v1/projects/<id>"
MEMBER = "/api/v1/members/<id>"
BINDING = "/api/v1/role-bindings/<id>"
ACCOUNT = "/api/v1/service-accounts/<id>"
BELONG, READ, MANAGE = Permission.BELONG, Permission.READ, Permission.MANAGE
NOBODY = {
    "principal_type": "user",
    "principal_id": "usr_aaaaaaaaaaaaaaaaaaaa",
    "project_id": "prj_aaaaaaaaaaaaaaaaaaaa",
    "role": "viewer",
}
ROUTES = [
    Route("GET", "/api/v1/projects", READ, parameters=a_project, in_project=True),
    Route("POST", "/api/v1/projects", MANAGE, body={"name": "new"}),
    Route("GET", PROJECT, READ, parameters=a_project, in_project=True),
    Route("PATCH", PROJECT, MANAGE, body={"name": "new"}, parameters=a_project, in_project=True),
    Route("DELETE", PROJECT, MANAGE, parameters=another_project, in_project=True),
    Route("GET", "/api/v1/members", BELONG, parameters=a_member),
    Route("GET", MEMBER, READ, parameters=a_member, hidden=True),
    Route("PATCH", MEMBER, MANAGE, body={"role": "developer"}, parameters=a_member),
    Route("DELETE", MEMBER, MANAGE, parameters=a_member, hidden=True),
    Route("GET", "/api/v1/invitations", READ, parameters=an_invitation),
    Route(
        "POST",
        "/api/v1/invitations",
        MANAGE,
        body={"email": "new@walk.example", "role": "viewer"},
    ),
    Route("DELETE", "/api/v1/invitations/<id>", MANAGE, parameters=an_invitation),
    Route("POST", "/api/v1/invitations/<id>:resend", MANAGE, body={}, parameters=an_invitation),
    Route(
        "POST",
        "/api/v1/invitations/accept",
        None,
        body={"token": "made up", "password": PASSWORD},
        succeeds=frozenset({422}),
    ),
    Route("GET", "/api/v1/role-bindings", READ, parameters=a_role_binding, in_project=True),
    Route(
        "POST",
        "/api/v1/role-bindings",
        MANAGE,
        body=NOBODY,
        in_project=True,
        succeeds=frozenset({422}),
    ),
    Route("GET", BINDING, READ, parameters=a_role_binding, in_project=True),
    Route("DELETE", BINDING, MANAGE, parameters=a_role_binding, in_project=True),
    Route("GET", "/api/v1/service-accounts", BELONG, parameters=a_service_account),
    Route("POST", "/api/v1/service-accounts", MANAGE, body={"name": "new"}),
    Route("GET", ACCOUNT, READ, parameters=a_service_account, hidden=True),
    Route("PATCH", ACCOUNT, MANAGE, body={"disabled": True}, parameters=a_service_account),
    Route("DELETE", ACCOUNT, MANAGE, parameters=a_service_account),
    Route("POST", "/api/v1/api-keys/<id>:rotate", MANAGE, body={}, parameters=an_api_key),
    Route("GET", "/api/v1/api-keys", Permission.READ, parameters=an_api_key),
    Route("POST", "/api/v1/api-keys", Permission.MANAGE, body={"name": "walk", "role": "viewer"}),
    Route("DELETE", "/api/v1/api-keys/<id>", Permission.MANAGE, parameters=an_api_key),
    Route("GET", "/api/v1/organizations/current", Permission.BELONG),
    Route("PATCH", "/api/v1/organizations/current", Permission.MANAGE, body={"name": "Renamed"}),
    Route("GET", "/api/v1/organizations/current/export", Permission.MANAGE),
    # An API key may not close an organization, whatever its role.
    Route(
        "POST",
        "/api/v1/organizations/current:close",
        Permission.OWN,
        body={"name": "Acme"},
        succeeds=frozenset({403}),
    ),
    Route("POST", "/api/v1/password-reset", None, body={"email": "nobody@walk.example"}),
    Route(
        "POST",
        "/api/v1/password-reset/confirm",
        None,
        body={"token": "made up", "password": PASSWORD},
        succeeds=frozenset({422}),
    ),
    # Endpoints of a person, which no API key may call.
    Route("GET", "/api/v1/sessions", None, parameters=a_session, session=True),
    Route("DELETE", "/api/v1/sessions/<id>", None, parameters=a_session, session=True),
    Route("POST", "/api/v1/sessions:end-others", None, parameters=a_session, session=True),
    Route(
        "POST",
        "/api/v1/session/password",
        None,
        body={"current_password": PASSWORD, "new_password": PASSWORD},
        session=True,
    ),
    Route("POST", "/api/v1/session/totp", None, body=AGAIN, session=True),
    Route(
        "DELETE",
        "/api/v1/session/totp",
        None,
        body={**AGAIN, **CODE},
        session=True,
        succeeds=CONFLICT,
    ),
    Route("POST", "/api/v1/session/totp/confirm", None, body=CODE, session=True, succeeds=CONFLICT),
    Route(
        "POST", "/api/v1/session/recovery-codes", None, body=CODE, session=True, succeeds=CONFLICT
    ),
    Route("POST", "/api/v1/session/link", None, body={"email": "nobody@walk.example"}),
    Route("GET", "/api/v1/session", None),
    # A request with an API key, or with none, is signed in to no session.
    Route(
        "POST",
        "/api/v1/session",
        None,
        body={"email": "nobody@walk.example", "password": PASSWORD},
        succeeds=frozenset({401}),
    ),
    Route(
        "PATCH",
        "/api/v1/session",
        None,
        body={"organization_id": "org_aaaaaaaaaaaaaaaaaaaa"},
        succeeds=frozenset({401}),
    ),
    Route("DELETE", "/api/v1/session", None),
    Route("POST", "/api/v1/signup", None, body=SIGN_UP),
    Route("POST", "/api/v1/signup/verification", None, body={"email": "nobody@walk.example"}),
    Route(
        "POST",
        "/api/v1/signup/verify",
        None,
        body={"token": "made up"},
        succeeds=frozenset({422}),
    ),
]
